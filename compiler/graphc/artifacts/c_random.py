# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Tables of NumPy's ziggurats for C programs, which cannot link them: in NumPy's library they are local."""

from __future__ import annotations

import ctypes
import struct
from collections.abc import Collection

from graphc.errors import CompileError
from graphc_runtime import npyrandom
from graphc_runtime.errors import LoadError

PREFIX = "npyrandom_"
_LENGTH = 256
_KINDS = {"k_double": "i64", "w_double": "double", "k_float": "i32", "w_float": "float"}
_TYPES: dict[str, type[ctypes._SimpleCData[int] | ctypes._SimpleCData[float]]] = {
    "i64": ctypes.c_uint64,
    "double": ctypes.c_double,
    "i32": ctypes.c_uint32,
    "float": ctypes.c_float,
}


def tables_ir(symbols: Collection[str]) -> str:
    """LLVM IR of tables, with the values that NumPy has in this process.

    Args:
        symbols: names such as ``npyrandom_ki_double``.

    Raises:
        CompileError: this NumPy has no such table.
    """
    return "\n".join(map(_table, symbols))


def _table(symbol: str) -> str:
    name = symbol.removeprefix(PREFIX)
    kind = _KINDS.get(name[:1] + name[2:])
    try:
        address = npyrandom.address(name)
    except LoadError as error:
        raise CompileError(f"draws of C programs need a table of NumPy's: {error}") from None
    if kind is None:
        raise CompileError(f"C programs cannot have {symbol}")
    values = (_TYPES[kind] * _LENGTH).from_address(address)
    # Numbers of both widths are written as the bits of a double.
    texts = [
        f"{kind} {value}" if isinstance(value, int) else f"{kind} 0x{struct.pack('>d', value).hex()}"
        for value in values
    ]
    return f"@{symbol} = constant [{_LENGTH} x {kind}] [{', '.join(texts)}]"
