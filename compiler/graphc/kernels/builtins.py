# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""What kernels may call, as Python functions: a kernel that calls no library also runs as it stands.

The translator (`graphc.kernels.translate`) knows these by name.
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from graphc.kernels.types import Type, kind_of, type_of_dtype


def local(count: int, type_: Any) -> np.ndarray:
    """Memory for a few elements, for the time of the call; `count` is known when translating."""
    return np.zeros(count, _dtype(type_))


def view(pointer: np.ndarray, type_: Any) -> np.ndarray:
    """The same memory as elements of another type."""
    return pointer.view(_dtype(type_))


def word(pointer: np.ndarray, i: int) -> Any:
    """The eight bytes from byte i on as a number, wherever they are."""
    return pointer[i : i + 8].view(np.uint64)[0]


def cast(x: Any, type_: Any) -> Any:
    """A number in another type; floats are cut off towards 0 on the way to integers."""
    return _dtype(type_).type(x)


def type_of(x: Any) -> Type:
    """The type of a number, or of the elements behind a pointer; known when translating."""
    return type_of_dtype(np.asarray(x).dtype)


def choose(condition: Any, a: Any, b: Any) -> Any:
    """a or b, without a branch: for conditions that nothing predicts."""
    return a if condition else b


def isnan(x: Any) -> bool:
    """Whether a number is not a number."""
    return bool(x != x)


def real(z: Any) -> Any:
    """Real part; of a real number, itself."""
    return np.real(z)


def imag(z: Any) -> Any:
    """Imaginary part; of a real number, 0."""
    return np.imag(z)


def conj(z: Any) -> Any:
    """Complex conjugate."""
    return np.conj(z)


sqrt, floor, ceil, exp, log = math.sqrt, math.floor, math.ceil, math.exp, math.log
copysign = math.copysign


_C_LIBRARY: dict[str, Any] = {
    "log1p": np.log1p,
    "lgamma": math.lgamma,
    "pow": np.power,
    "sin": np.sin,
    "cos": np.cos,
}


def call(symbol: str, *arguments: Any, returns: str | None = None) -> Any:
    """Calls a C function by its symbol, as `graphc_runtime.symbols` resolves it.

    A ``?`` in the symbol stands for the BLAS letter of the kernel's first operand. The functions of the C
    library that Python has too run in Python.
    """
    if symbol in _C_LIBRARY:
        return _C_LIBRARY[symbol](*arguments)
    raise NotImplementedError(f"{symbol} is only called by compiled kernels")


def ref(x: Any, type_: str = "i32") -> Any:
    """The address of a number, as Fortran takes its arguments. A string of one character is a byte."""
    raise NotImplementedError("only compiled kernels have addresses")


def _dtype(type_: Any) -> np.dtype:
    kind = kind_of(type_)
    return np.dtype(bool) if kind.is_bool else np.dtype(f"{kind.name[0]}{kind.bits // 8}")
