# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Elementwise rows: rounding, and the parts of complex numbers."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from graphc.graph.tensor.convert import as_tensor_variable, constant
from graphc.ops.elementwise import OperandType, register
from graphc.ops.math import cast, conj, imag, real
from graphc.ops.table.arithmetic import promote

if TYPE_CHECKING:
    from graphc.graph.tensor.variable import TensorVariable
    from graphc.lowering.scalar_builder import Scalar, ScalarBuilder


def _round_rule(types: tuple[OperandType, ...]) -> tuple[np.dtype, ...]:
    if types[0] == np.bool_:
        raise TypeError("booleans cannot be rounded; cast them first")
    return types[0], types[0]


def _round_half_away_rule(types: tuple[OperandType, ...]) -> tuple[np.dtype, ...]:
    if types[0].kind == "c":
        raise TypeError("complex numbers cannot be rounded away from zero")
    return _round_rule(types)


def _real_rule(types: tuple[OperandType, ...]) -> tuple[np.dtype, ...]:
    dtype = types[0]
    return dtype, np.dtype(f"f{dtype.itemsize // 2}") if dtype.kind == "c" else dtype


def _complex_rule(types: tuple[OperandType, ...]) -> tuple[np.dtype, ...]:
    part = promote(*types, np.dtype("float32"))
    if part.kind == "c":
        raise TypeError("the parts of a complex number must be real")
    return part, part, np.dtype(f"c{part.itemsize * 2}")


def _complex(x: np.ndarray, y: np.ndarray) -> np.ndarray:
    # Not x + 1j * y: an infinite y would make the real part NaN.
    z = np.empty(np.broadcast_shapes(np.shape(x), np.shape(y)), np.result_type(x, np.complex64))
    z.real, z.imag = x, y
    return z


def _round_half_away(x: np.ndarray) -> np.ndarray:
    whole = np.trunc(x)
    return np.where(np.abs(x - whole) >= 0.5, whole + np.sign(x), whole)


def _round_half_away_scalar(b: ScalarBuilder, x: Scalar) -> Scalar:
    if x.dtype.kind != "f":
        return x
    whole = b.trunc(x)
    far = b.ge(b.abs(b.sub(x, whole)), b.const(0.5, x.dtype))
    return b.select(far, b.add(whole, b.sign(x)), whole)


def _rint_scalar(b: ScalarBuilder, x: Scalar) -> Scalar:
    if x.dtype.kind == "c":
        return b.complex(b.rint(b.real(x)), b.rint(b.imag(x)))
    return b.rint(x)


def _real_as_it_is(x: TensorVariable) -> TensorVariable | None:
    """Real numbers are their own conjugates."""
    x = as_tensor_variable(x)
    return x if x.type.kind in "iuf" else None


register("floor", np.floor, "Largest integer not above x.", grad=(None,))
register("ceil", np.ceil, "Smallest integer not below x.", grad=(None,))
register("trunc", np.trunc, "x without its fraction.", grad=(None,))
register(
    "round",
    np.round,
    "Nearest integer; halves go to the even one.",
    _rint_scalar,
    grad=(None,),
    dtypes=_round_rule,
)
register(
    "round_half_away",
    _round_half_away,
    "Nearest integer; halves go away from zero.",
    _round_half_away_scalar,
    grad=(None,),
    dtypes=_round_half_away_rule,
)
register(
    "real",
    np.real,
    "Real part.",
    dtypes=_real_rule,
    holomorphic=False,
    grad=(lambda x, out, g: cast(g, x.type.dtype),),
)
register(
    "imag",
    np.imag,
    "Imaginary part.",
    dtypes=_real_rule,
    holomorphic=False,
    grad=(lambda x, out, g: None if x.type.kind != "c" else constant(np.asarray(-1j, x.type.dtype)) * g,),
)
register(
    "conj",
    np.conjugate,
    "Complex conjugate.",
    grad=(lambda x, out, g: conj(g),),
    holomorphic=False,
    dtypes=lambda types: (types[0], types[0]),
    special=_real_as_it_is,
)
register(
    "complex",
    _complex,
    "Complex number with real part x and imaginary part y.",
    dtypes=_complex_rule,
    holomorphic=False,
    grad=(lambda x, y, out, g: real(g), lambda x, y, out, g: -imag(g)),
)
