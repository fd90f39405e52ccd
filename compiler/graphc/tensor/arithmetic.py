# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Functions of ``graphc.tensor`` that are made of elementwise ones: rounding, bits as elements, questions
about whole arrays and about the kind of their elements.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from graphc.graph.tensor.convert import as_tensor_variable, constant, operand
from graphc.hooks import publish
from graphc.ops.checks import required
from graphc.ops.create import zeros
from graphc.ops.elementwise import cast_to, ufunc_rule
from graphc.ops.ifelse import ifelse
from graphc.ops.join import concatenate, stack
from graphc.ops.math import abs as abs_
from graphc.ops.math import (
    bitwise_and,
    cast,
    copysign,
    eq,
    floor_div,
    gt,
    imag,
    isinf,
    isnan,
    lt,
    maximum,
    minimum,
    mod,
    ne,
    real,
    signbit,
    switch,
    trunc,
)
from graphc.ops.math import complex as complex_
from graphc.ops.math import pow as pow_
from graphc.ops.math import round as round_
from graphc.ops.reduce import all as all_
from graphc.ops.reduce import max as max_
from graphc.ops.reduce import min as min_
from graphc.ops.reduce import sum as sum_
from graphc.ops.shape import as_size, sizes_of
from graphc.ops.shaping import expand_dims, moveaxis, on_axis, reshape
from graphc.ops.table.arithmetic import promote
from graphc.tensor.dims import atleast_Nd

if TYPE_CHECKING:
    from collections.abc import Callable

    from graphc.graph.tensor import TensorLike
    from graphc.graph.tensor.variable import TensorVariable


def array_equal(a1: TensorLike, a2: TensorLike, equal_nan: bool = False) -> TensorVariable:
    """True if shapes and elements agree; arrays of other shapes are not compared.

    Examples:
        >>> pt.array_equal([1, 2], [1, 2]).eval()
        array(True)
    """
    a, b = as_tensor_variable(a1), as_tensor_variable(a2)
    if a.type.ndim != b.type.ndim:
        return as_tensor_variable(False)
    pairs = zip(a.type.shape, b.type.shape, strict=True)
    if any(m is not None and n is not None and m != n for m, n in pairs):
        return as_tensor_variable(False)
    same = eq(a, b)
    if equal_nan:
        same = same | (isnan(a) & isnan(b))
    if a.type.ndim == 0:
        return same
    equal = [eq(m, n) for m, n in zip(sizes_of(a), sizes_of(b), strict=True)]
    return ifelse(all_(stack(equal)), all_(same), as_tensor_variable(False))


def array_equiv(a1: TensorLike, a2: TensorLike) -> TensorVariable:
    """True if elements agree after broadcasting, of sizes that are known to be 1.

    Examples:
        >>> pt.array_equiv([1, 2], [[1, 2], [1, 2]]).eval()
        array(True)
    """
    a, b = as_tensor_variable(a1), as_tensor_variable(a2)
    rank = max(a.type.ndim, b.type.ndim)
    pairs = zip(atleast_Nd(a, n=rank).type.shape, atleast_Nd(b, n=rank).type.shape, strict=True)
    if any(m is not None and n is not None and m != n and 1 not in (m, n) for m, n in pairs):
        return as_tensor_variable(False)
    return all_(eq(a, b))


def _real_operand(x: TensorLike, name: str) -> TensorVariable:
    """x as a variable.

    Raises:
        TypeError: it is complex, and those have no order.
    """
    return operand(x, f"{name} is not defined for complex numbers", kinds="biuf", error=TypeError)


def isposinf(x: TensorLike) -> TensorVariable:
    """True where x, which is real, is positive infinity.

    Examples:
        >>> pt.isposinf([-np.inf, np.inf]).eval()
        array([False,  True])
    """
    x = _real_operand(x, "isposinf")
    return isinf(x) & gt(x, 0)


def isneginf(x: TensorLike) -> TensorVariable:
    """True where x, which is real, is negative infinity.

    Examples:
        >>> pt.isneginf([-np.inf, np.inf]).eval()
        array([ True, False])
    """
    x = _real_operand(x, "isneginf")
    return isinf(x) & lt(x, 0)


def iscomplex(x: TensorLike) -> TensorVariable:
    """True where the imaginary part is not 0.

    Examples:
        >>> pt.iscomplex([1.0 + 0j, 1j]).eval()
        array([False,  True])
    """
    return ne(imag(x), 0)


def isreal(x: TensorLike) -> TensorVariable:
    """True where the imaginary part is 0.

    Examples:
        >>> pt.isreal([1.0 + 0j, 1j]).eval()
        array([ True, False])
    """
    return eq(imag(x), 0)


def packbits(a: TensorLike, axis: int | None = None, bitorder: str = "big") -> TensorVariable:
    """Eight booleans as one uint8 each; the last ones are filled up with 0.

    Args:
        a: booleans or integers, of which those that are not 0 count as true.
        axis: the axis; by default the array is flattened.
        bitorder: "big": the first one is the highest bit; or "little".

    Examples:
        >>> pt.packbits([1, 0, 0, 0, 0, 0, 0, 1]).eval()
        array([129], dtype=uint8)
    """
    x, axis = on_axis(a, axis, "packbits")
    values = moveaxis(cast(ne(x, 0), "uint8"), axis, -1)
    *batch, n = sizes_of(values)
    groups = (n + 7) // 8
    padded = concatenate([values, zeros((*batch, groups * 8 - n), dtype="uint8")], axis=-1)
    bits = reshape(padded, (*batch, groups, 8)) * constant(_weights(bitorder))
    return moveaxis(sum_(bits, axis=-1, dtype="uint8"), -1, axis)


def unpackbits(
    a: TensorLike, axis: int | None = None, count: int | None = None, bitorder: str = "big"
) -> TensorVariable:
    """The bits of uint8 as eight elements each; arguments as of `packbits`.

    ``count`` limits the result to so many along the axis; negative numbers leave out the last ones.

    Examples:
        >>> pt.unpackbits(np.array([129], dtype="uint8")).eval()
        array([1, 0, 0, 0, 0, 0, 0, 1], dtype=uint8)
    """
    x, axis = on_axis(a, axis, "unpackbits")
    if x.type.dtype != "uint8":
        raise TypeError(f"unpackbits takes uint8, got {x} of type {x.type}")
    values = expand_dims(moveaxis(x, axis, -1), -1)
    *batch, n, _ = sizes_of(values)
    bits = cast(ne(bitwise_and(values, constant(_weights(bitorder))), 0), "uint8")
    flat = reshape(bits, (*batch, n * 8))
    if count is not None:
        number, size = as_size(count, "unpackbits"), n * 8
        message = "unpackbits: a negative count must leave out at most all bits"
        number = required(switch(lt(number, 0), number + size, number), lambda n: n >= 0, message)
        more = zeros((*batch, maximum(number - size, 0)), dtype="uint8")
        flat = concatenate([flat, more], axis=-1)[..., :number]
    return moveaxis(flat, -1, axis)


def _weights(bitorder: str) -> np.ndarray:
    if bitorder not in ("big", "little"):
        raise ValueError(f'bitorder must be "big" or "little", got {bitorder!r}')
    powers = 1 << np.arange(8)
    return (powers if bitorder == "little" else powers[::-1]).astype(np.uint8)


def fix(x: TensorLike) -> TensorVariable:
    """Rounded towards 0; integers stay as they are.

    Examples:
        >>> pt.fix([-1.7, 1.7]).eval()
        array([-1.,  1.])
    """
    x = _real_operand(x, "fix")
    return trunc(x) if x.type.kind == "f" else x


def iround(a: TensorLike, mode: str | None = None) -> TensorVariable:
    """Nearest integers as int64; ``mode`` as of `round`.

    Examples:
        >>> pt.iround([1.4, 1.6]).eval()
        array([1, 2])
    """
    return cast(round_(a, mode=mode), "int64")


def _common(x: TensorLike, y: TensorLike) -> tuple[TensorVariable, TensorVariable]:
    a, b = as_tensor_variable(x), as_tensor_variable(y)
    dtype = promote(a.type.numpy_dtype, b.type.numpy_dtype).name
    return cast_to(a, dtype), cast_to(b, dtype)


def fabs(x: TensorLike) -> TensorVariable:
    """Magnitude as a floating-point number.

    Raises:
        TypeError: x is complex.

    Examples:
        >>> pt.fabs([-1, 2]).eval()
        array([1., 2.])
    """
    x = as_tensor_variable(x)
    dtype = ufunc_rule(np.fabs)((x.type.numpy_dtype,))[-1]
    return abs_(cast_to(x, dtype.name))


def nan_to_num(
    x: TensorLike, nan: TensorLike = 0.0, posinf: TensorLike | None = None, neginf: TensorLike | None = None
) -> TensorVariable:
    """x with NaN and infinities replaced.

    Args:
        x: array-like; integers stay as they are.
        nan: what replaces NaN.
        posinf, neginf: what replaces infinities; by default the largest and the smallest number.

    Examples:
        >>> pt.nan_to_num([np.nan, 1.0]).eval()
        array([0., 1.])
    """
    x = as_tensor_variable(x)
    if x.type.kind == "c":
        parts = [nan_to_num(part, nan, posinf, neginf) for part in (real(x), imag(x))]
        return complex_(*parts)
    if x.type.kind != "f":
        return x
    limits = np.finfo(x.type.numpy_dtype)
    high = limits.max if posinf is None else posinf
    low = limits.min if neginf is None else neginf
    result = switch(isnan(x), cast_to(as_tensor_variable(nan), x.type.dtype), x)
    for infinity, number in ((np.inf, high), (-np.inf, low)):
        at = eq(x, np.asarray(infinity, x.type.dtype))
        result = switch(at, cast_to(as_tensor_variable(number), x.type.dtype), result)
    return result


def positive(x: TensorLike) -> TensorVariable:
    """x itself.

    Examples:
        >>> pt.positive([-1, 1]).eval()
        array([-1,  1])
    """
    return as_tensor_variable(x)


def fmax(x: TensorLike, y: TensorLike) -> TensorVariable:
    """Larger operand; a number wins over NaN.

    Examples:
        >>> pt.fmax([1.0, np.nan], [0.0, 2.0]).eval()
        array([1., 2.])
    """
    x, y = _common(x, y)
    return _number_of(x, y, maximum)


def fmin(x: TensorLike, y: TensorLike) -> TensorVariable:
    """Smaller operand; a number wins over NaN.

    Examples:
        >>> pt.fmin([1.0, np.nan], [0.0, 2.0]).eval()
        array([0., 2.])
    """
    x, y = _common(x, y)
    return _number_of(x, y, minimum)


def _number_of(x: TensorVariable, y: TensorVariable, choose: Callable[..., TensorVariable]) -> TensorVariable:
    if x.type.kind not in "fc":
        return choose(x, y)
    # Of two complex NaN the first one counts.
    return switch(isnan(y), x, switch(isnan(x), y, choose(x, y)))


def fmod(x: TensorLike, y: TensorLike) -> TensorVariable:
    """Remainder of a division, with the sign of x; of integers, 0 for division by 0.

    Examples:
        >>> pt.fmod([-3.0, 3.0], 2.0).eval()
        array([-1.,  1.])
    """
    x, y = _common(x, y)
    kind = x.type.kind
    if kind in "ub":
        return mod(x, y)
    if kind == "f":
        # Not the magnitude of x, which has no slope at 0.
        below = signbit(x)
        rest = mod(switch(below, -x, x), abs_(y))
        return switch(below, -rest, rest)
    # The smallest integer has no magnitude of its dtype.
    rest = mod(x, y)
    other_side = ne(rest, 0) & ne(lt(x, 0), lt(y, 0))
    return switch(other_side, rest - y, rest)


def modf(x: TensorLike) -> tuple[TensorVariable, TensorVariable]:
    """Fractional and integral part, both with the sign of x.

    Examples:
        >>> [v.eval().tolist() for v in pt.modf([1.5, -2.25])]
        [[0.5, -0.25], [1.0, -2.0]]
    """
    x = as_tensor_variable(x)
    if x.type.kind != "f":
        x = cast_to(x, "float64")
    whole = trunc(x)
    return copysign(switch(isinf(x), 0, x - whole), x), whole


def float_power(x: TensorLike, y: TensorLike) -> TensorVariable:
    """x to the power y in float64 or complex128.

    Examples:
        >>> pt.float_power(2, [2, -1]).eval()
        array([4. , 0.5])
    """
    x, y = as_tensor_variable(x), as_tensor_variable(y)
    is_complex = "c" in (x.type.kind, y.type.kind)
    dtype = "complex128" if is_complex else "float64"
    return pow_(cast_to(x, dtype), cast_to(y, dtype))


def heaviside(x: TensorLike, y: TensorLike) -> TensorVariable:
    """0 below zero, 1 above, y at zero.

    Examples:
        >>> pt.heaviside([-1.0, 0.0, 1.0], 0.5).eval()
        array([0. , 0.5, 1. ])
    """
    x, y = _common(x, y)
    if x.type.kind != "f":
        x, y = cast_to(x, "float64"), cast_to(y, "float64")
    step = switch(eq(x, 0), y, cast(gt(x, 0), x.type.dtype))
    return switch(isnan(x), x, step)


def bitwise_count(x: TensorLike) -> TensorVariable:
    """Number of bits set in the magnitude of an integer (uint8).

    Examples:
        >>> pt.bitwise_count([3, 8, 255]).eval()
        array([2, 1, 8], dtype=uint8)
    """
    x = operand(x, "bitwise_count takes integers", kinds="biu", error=TypeError)
    bits = cast(abs_(cast(x, "int64")) if x.type.kind == "i" else x, "uint64")
    # Sums of 2, 4 and 8 neighbouring bits; the product adds the bytes up.
    for shift, mask in ((1, 0x5555555555555555), (2, 0x3333333333333333)):
        low = constant(np.uint64(mask))
        bits = (bits & low) + ((bits >> np.uint64(shift)) & low)
    bits = (bits + (bits >> np.uint64(4))) & np.uint64(0x0F0F0F0F0F0F0F0F)
    return cast((bits * np.uint64(0x0101010101010101)) >> np.uint64(56), "uint8")


def ceil_intdiv(a: TensorLike, b: TensorLike) -> TensorVariable:
    """The smallest integer not below the quotient of integers.

    Examples:
        >>> pt.ceil_intdiv([4, 5], 2).eval()
        array([2, 3])
    """
    x, y = _common(a, b)
    quotient = floor_div(x, y)
    return quotient + cast(ne(mod(x, y), 0), quotient.type.dtype)


def largest(*args: TensorLike) -> TensorVariable:
    """The largest of several arrays, element by element.

    Examples:
        >>> pt.largest([1, 5], [3, 2]).eval()
        array([3, 5])
    """
    return max_(stack(args), axis=0) if len(args) != 2 else maximum(*args)


def smallest(*args: TensorLike) -> TensorVariable:
    """The smallest of several arrays, element by element.

    Examples:
        >>> pt.smallest([1, 5], [3, 2]).eval()
        array([1, 2])
    """
    return min_(stack(args), axis=0) if len(args) != 2 else minimum(*args)


publish(globals())
