# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""The kernel language, a small part of Python that is translated to LLVM IR: its types and values."""

from __future__ import annotations

import struct
from collections.abc import Callable
from typing import Any

import numpy as np

from graphc_runtime.record import record


@record(frozen=True)
class Type:
    """A scalar type, a pointer to one, or a vector of them.

    Attributes:
        name: ``bool``, ``i8`` to ``i64``, ``u8`` to ``u64``, ``f16`` to ``f64``, ``c64``, ``c128``.
        pointer: whether values are addresses of such elements.
        lanes: how many numbers a value has; more than one is a vector of the machine.
    """

    name: str
    pointer: bool = False
    lanes: int = 1

    @property
    def is_float(self) -> bool:
        return self.name[0] == "f" and not self.pointer

    @property
    def is_complex(self) -> bool:
        return self.name[0] == "c" and not self.pointer

    @property
    def is_integer(self) -> bool:
        return self.name[0] in "iu" and not self.pointer

    @property
    def is_bool(self) -> bool:
        return self.name == "bool" and not self.pointer

    @property
    def signed(self) -> bool:
        return self.name[0] == "i"

    @property
    def bits(self) -> int:
        """Of a number; of a bool, those in memory."""
        return 8 if self.name == "bool" else int(self.name[1:])

    @property
    def element(self) -> Type:
        """The pointee of a pointer, or one lane of a vector."""
        return Type(self.name)

    def over(self, lanes: int) -> Type:
        """A vector of such numbers; with one lane, the number."""
        return Type(self.name, lanes=lanes)

    @property
    def to(self) -> Type:
        """A pointer to elements of this type."""
        return Type(self.name, True)

    @property
    def real(self) -> Type:
        """The type of the real part."""
        return Type(f"f{self.bits // 2}") if self.name[0] == "c" else Type(self.name)

    @property
    def llvm(self) -> str:
        """As a value."""
        if self.pointer:
            return "ptr"
        one = "i1" if self.name == "bool" else _LLVM[self.name]
        return one if self.lanes == 1 else f"<{self.lanes} x {one}>"

    @property
    def mangled(self) -> str:
        """As names of intrinsics have it."""
        return self.name if self.lanes == 1 else f"v{self.lanes}{self.name}"

    @property
    def stored(self) -> str:
        """In memory."""
        return "i8" if self.is_bool and self.lanes == 1 else self.llvm


_FLOATS = {"f16": "half", "f32": "float", "f64": "double"}
_LLVM = {
    **_FLOATS,
    "c64": "{float, float}",
    "c128": "{double, double}",
    **{f"{kind}{bits}": f"i{bits}" for kind in "iu" for bits in (8, 16, 32, 64)},
}
BOOL, I64, F64, BYTE = Type("bool"), Type("i64"), Type("f64"), Type("u8")
NAMES = ("bool", *_LLVM)


def kind_of(name: Type | str) -> Type:
    """A type from itself, its name here, or a NumPy dtype or the name of one; with ``*``, a pointer to it."""
    if isinstance(name, Type):
        return name
    if name.endswith("*"):
        return kind_of(name[:-1]).to
    return Type(name) if name in NAMES else type_of_dtype(np.dtype(name))


def type_of_dtype(dtype: np.dtype) -> Type:
    """The type of a NumPy dtype."""
    dtype = np.dtype(dtype)
    if dtype.kind == "b":
        return BOOL
    return Type(f"{dtype.kind}{dtype.itemsize * 8}")


@record(frozen=True)
class Value:
    """A typed LLVM value."""

    text: str
    type: Type


@record(frozen=True)
class Static:
    """A Python value that is known while the kernel is translated."""

    value: Any


_NATURAL: dict[type, Type] = {bool: BOOL, int: I64, float: F64, complex: Type("c128")}


def natural_type(value: object) -> Type | None:
    """The type of a number of Python's; None for anything else."""
    return _NATURAL.get(type(value))


Operand = Value | Static
Routine = Callable[..., object]


def literal(value: Any, type_: Type) -> str:
    """A number as LLVM writes it; in all lanes of a vector."""
    if type_.lanes > 1:
        one = f"{type_.element.llvm} {literal(value, type_.element)}"
        return f"<{', '.join([one] * type_.lanes)}>"
    if type_.is_bool:
        return "true" if value else "false"
    if type_.is_integer:
        return str(int(value))
    if type_.is_float:
        return float_literal(float(value), type_.name)
    part = type_.real
    number = complex(value)
    return f"{{{part.llvm} {literal(number.real, part)}, {part.llvm} {literal(number.imag, part)}}}"


def float_literal(value: float, name: str) -> str:
    """A float with all its bits. LLVM writes a `float` with the bits of the equal `double`."""
    if name == "f16":
        return f"0xH{struct.unpack('<H', np.float16(value).tobytes())[0]:04X}"
    rounded = float(np.float32(value)) if name == "f32" else value
    return f"0x{struct.unpack('<Q', struct.pack('<d', rounded))[0]:016X}"
