# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""``Iota``, equally spaced numbers, and builders of arrays that are created from sizes and numbers."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from graphc.config import config
from graphc.errors import ArgumentError, VectorizeError
from graphc.graph.basic import Apply, Flags, Maybe, Variable, Variables, describe, only, remember
from graphc.graph.op import FieldOp
from graphc.graph.tensor.convert import as_tensor_variable, operand
from graphc.graph.tensor.type import TensorType, parse_dtype
from graphc.ops.checks import as_count, required
from graphc.ops.elementwise import cast_to
from graphc.ops.math import ceil, eq, ge, gt, le, lt, maximum, minimum, ne, switch
from graphc.ops.shape import Shape_i, as_size, checked_size, known_as, known_value, made_as, sizes_of
from graphc.ops.shaping import BroadcastTo, as_sizes, dimshuffle
from graphc.ops.table.arithmetic import promote

if TYPE_CHECKING:
    from collections.abc import Callable

    from graphc.emit.emitter import Emitter
    from graphc.graph.tensor import DTypeLike, SizeLike, TensorLike
    from graphc.graph.tensor.variable import TensorVariable
    from graphc_runtime.thunk import Register

__all__ = [
    "alloc", "arange", "empty", "empty_like", "eye", "full", "full_like", "identity", "identity_like", "ones",
    "ones_like", "tri", "tril", "triu", "zeros", "zeros_like",
]  # fmt: skip

# No memory holds more numbers.
_MOST = 1 << 60


class Iota(FieldOp):
    """``start + step * i`` for i in range(length).

    Args:
        dtype: dtype of the result; start and step are cast to it.
    """

    takes_as_stored = False

    dtype: str
    depends_on = (0, 1)

    def make_node(self, start: TensorLike, step: TensorLike, length: TensorLike) -> Apply:
        ends = [cast_to(as_tensor_variable(x), self.dtype) for x in (start, step)]
        if any(x.type.ndim for x in ends):
            raise TypeError(f"start and step must be 0-d, got {ends[0]} and {ends[1]}")
        length = as_size(length, "arange")
        size = checked_size(length)
        if size is not None and size < 0:
            raise ValueError(f"a length must be at least 0, got {size}")
        return Apply(self, [*ends, length], [TensorType(self.dtype, (size,)).make_variable()])

    def perform(self, node: Apply, inputs: Sequence[np.ndarray], output_storage: Sequence[Register]) -> None:
        start, step, length = inputs
        if length < 0:
            raise ValueError(f"a length must be at least 0, got {length}{describe(node.location)}")
        if length > _MOST:
            raise ValueError(f"arange: {length} elements were asked for, memory holds at most {_MOST}")
        numbers = np.arange(int(length)).astype(self.dtype)
        with np.errstate(all="ignore"):
            output_storage[0][0] = np.asarray(start + step * numbers, dtype=self.dtype)

    def pullback(self, inputs: Variables, outputs: Variables, cotangents: Maybe) -> list[Variable | None]:
        g = only(cotangents)
        return [g.sum(), (g * self(0, 1, inputs[2])).sum(), None]

    def pushforward(self, inputs: Variables, outputs: Variables, tangents: Maybe) -> list[Variable | None]:
        start, step = (0 if t is None else t for t in tangents[:2])
        return [self(start, step, inputs[2])]

    def batch(self, node: Apply, inputs: Variables, batched: Flags, size: Variable | int) -> list[Variable]:
        if batched[2]:
            raise VectorizeError(f"{self} cannot take a batch of lengths")
        ends = zip(inputs[:2], batched[:2], strict=True)
        start, step = (dimshuffle(x, (0, "x")) if b else x for x, b in ends)
        return [start + step * self(0, 1, inputs[2])]

    def emit(self, node: Apply, operands: Sequence[str], e: Emitter) -> list[str]:
        start, step, length = node.inputs
        types = [e.type_of(start), e.type_of(step), "index"]
        values = [operands[0], operands[1], e.index(length, operands[2])]
        return [e.op("graphc.iota", values, types, e.type_of(node.outputs[0]))]


def alloc(value: TensorLike, *shape: SizeLike) -> TensorVariable:
    """``value`` broadcast to a shape, whose sizes are given one by one, or as one vector of known length.

    Examples:
        >>> pt.alloc(7.0, 2, 3).eval()
        array([[7., 7., 7.],
               [7., 7., 7.]])
    """
    value = as_tensor_variable(value)
    sizes = as_sizes(shape[0] if len(shape) == 1 else list(shape), "alloc")
    return BroadcastTo()(value, *sizes) if sizes else value


def full(shape: SizeLike, fill_value: TensorLike, dtype: DTypeLike | None = None) -> TensorVariable:
    """An array of a shape filled with a value.

    Args:
        shape: one size, a sequence of sizes, or an integer vector of known length.
        fill_value: array-like that broadcasts to the shape.
        dtype: dtype of the result; that of the value by default.

    Examples:
        >>> pt.full((2,), 7).eval()
        array([7, 7])
    """
    value = as_tensor_variable(fill_value)
    value = value if dtype is None else cast_to(value, parse_dtype(dtype))
    sizes = as_sizes(shape, "an array")
    return BroadcastTo()(value, *sizes) if sizes else value


def zeros(shape: SizeLike, dtype: DTypeLike | None = None) -> TensorVariable:
    """Zeros of a shape; ``dtype`` is ``config.floatX`` by default.

    Examples:
        >>> pt.zeros((2, 2)).eval()
        array([[0., 0.],
               [0., 0.]])
    """
    return full(shape, np.zeros((), config.floatX if dtype is None else parse_dtype(dtype)))


def ones(shape: SizeLike, dtype: DTypeLike | None = None) -> TensorVariable:
    """Ones of a shape; ``dtype`` is ``config.floatX`` by default.

    Examples:
        >>> pt.ones((2, 2), dtype="int64").eval()
        array([[1, 1],
               [1, 1]])
    """
    return full(shape, np.ones((), config.floatX if dtype is None else parse_dtype(dtype)))


def empty(shape: SizeLike, dtype: DTypeLike | None = None) -> TensorVariable:
    """An array whose elements do not matter; they are zeros.

    Examples:
        >>> pt.empty((2, 3)).shape.eval()
        array([2, 3])
    """
    return zeros(shape, dtype)


def full_like(a: TensorLike, fill_value: TensorLike, dtype: DTypeLike | None = None) -> TensorVariable:
    """An array of the shape of ``a``, and by default of its dtype, filled with a value.

    Examples:
        >>> pt.full_like([1.0, 2.0], 7).eval()
        array([7., 7.])
    """
    a = as_tensor_variable(a)
    filled = full(sizes_of(a), fill_value, a.type.dtype if dtype is None else dtype)
    return filled if a.type.ndim else remember(filled, a)


def zeros_like(model: TensorLike, dtype: DTypeLike | None = None, opt: bool = False) -> TensorVariable:
    """Zeros of the shape, and by default the dtype, of ``model``.

    Examples:
        >>> pt.zeros_like([1.5, 2.5]).eval()
        array([0., 0.])
    """
    return full_like(model, False, dtype)


def ones_like(model: TensorLike, dtype: DTypeLike | None = None, opt: bool = False) -> TensorVariable:
    """Ones of the shape, and by default the dtype, of ``model``.

    Examples:
        >>> pt.ones_like([1.5, 2.5]).eval()
        array([1., 1.])
    """
    return full_like(model, True, dtype)


def empty_like(model: TensorLike, dtype: DTypeLike | None = None) -> TensorVariable:
    """An array like ``model`` whose elements do not matter; they are zeros.

    Examples:
        >>> pt.empty_like([1, 2]).shape.eval()
        array([2])
    """
    return zeros_like(model, dtype)


def _arange_dtype(ends: list[TensorVariable]) -> str:
    if any(x.type.ndim for x in ends):
        wide = next(x for x in ends if x.type.ndim)
        raise TypeError(
            f"arange takes 0-d operands, got {wide} of type {wide.type}; its length is {wide}.shape[0]"
        )
    dtype = promote(*(x.type.numpy_dtype for x in ends))
    if dtype.kind == "c":
        raise TypeError("arange takes real numbers")
    return "int64" if dtype.kind == "b" or (dtype.kind == "i" and dtype.itemsize < 8) else dtype.name


def _length(start: TensorVariable, stop: TensorVariable, step: TensorVariable) -> TensorVariable:
    values: list[Any] = [known_value(x) for x in (start, stop, step)]
    # Not by its absolute value: that of the least integer is negative.
    message = "the step of arange must be finite and not 0"
    step = required(step, lambda v: ((v < 0) | (v > 0)) & np.isfinite(v), message)
    whole = all(x.type.kind in "iu" for x in (start, stop, step))
    if all(value is not None for value in values):
        # NumPy's count of integers wraps around; Python's does not.
        known = -((int(values[0]) - int(values[1])) // int(values[2])) if whole else len(np.arange(*values))
        if known > _MOST:
            raise ValueError(f"arange: {known} elements were asked for, memory holds at most {_MOST}")
        return known_as(max(known, 0), start, stop, step)
    if values[0] is not None and values[2] is not None and values[0] == 0 and values[2] == 1:
        count = stop
        if isinstance(getattr(made_as(count).owner, "op", None), Shape_i):
            return count
    elif whole:
        count = _whole_steps(start, stop, step)
    else:
        count = stop - start if values[2] == 1 else _steps(start, stop, step)
    if count.type.kind == "f":
        message = "the number of elements of arange must be finite, and below 2**62"
        count = ceil(required(count, lambda n: (n > -np.inf) & (n < 2.0**62), message))
    return as_size(maximum(cast_to(count, "int64"), 0), "arange")


def _whole_steps(start: TensorVariable, stop: TensorVariable, step: TensorVariable) -> TensorVariable:
    """Number of steps that fit between int64. Distances and steps are counted unsigned: any distance of two
    int64 is an uint64, and the least integer has an absolute value.
    """
    up = gt(step, 0)
    ahead, size = (cast_to(switch(up, x, -x), "uint64") for x in (stop - start, step))
    steps = minimum((ahead - 1) // size, _MOST) + 1
    return switch(switch(up, lt(start, stop), lt(stop, start)), cast_to(steps, "int64"), 0)


def _steps(start: TensorVariable, stop: TensorVariable, step: TensorVariable) -> TensorVariable:
    """Number of steps that fit between numbers; a quotient that underflows is part of one."""
    count = (stop - start) / step
    under = eq(count, 0) & ne(start, stop) & eq(lt(start, stop), gt(step, 0))
    return switch(under, 1.0, count)


def arange(
    start: TensorLike, stop: TensorLike | None = None, step: TensorLike = 1, dtype: DTypeLike | None = None
) -> TensorVariable:
    """``start``, ``start + step``, ... up to, but not including, ``stop``.

    Args:
        start: first number; with one argument it is ``stop``, and the first number is 0.
        stop: bound.
        step: distance.
        dtype: dtype of the result; by default int64 for integers, else what the arguments are promoted to.

    Raises:
        ValueError: the step is 0 or not finite, or there is no such number of elements; here or when run.

    Examples:
        >>> pt.arange(1, 10, 3).eval()
        array([1, 4, 7])
    """
    if stop is None:
        start, stop = 0, start
    ends = [as_tensor_variable(x) for x in (start, stop, step)]
    resolved = _arange_dtype(ends)
    dtype = resolved if dtype is None else parse_dtype(dtype)
    if "bfloat16" in (dtype, *(x.type.dtype for x in ends)):
        start, stop, step = (cast_to(x, "float32") for x in ends)
        return cast_to(arange(start, stop, step), dtype)
    wide = [cast_to(x, resolved if np.dtype(resolved).kind == "f" else "int64") for x in ends]
    return Iota(dtype)(ends[0], ends[2], _length(*wide))


# No diagonal is further away: sums of it and a position do not overflow.
_FAR = 1 << 62


def bounded(k: TensorLike) -> TensorVariable:
    """The number of a diagonal, int64, within what positions can be added to."""
    number = operand(k, "a diagonal has a 0-d integer as its number", 0, 0, "iu", ArgumentError)
    if number.type.numpy_dtype.itemsize < 8:
        return cast_to(number, "int64")
    number = minimum(number, _FAR)
    return maximum(cast_to(number, "int64"), -_FAR)


def _band(
    rows: TensorLike,
    columns: TensorLike,
    k: TensorLike,
    compare: Callable[[TensorLike, TensorLike], TensorVariable],
    dtype: DTypeLike | None,
) -> TensorVariable:
    row = dimshuffle(arange(rows, dtype="int64"), (0, "x"))
    column = dimshuffle(arange(columns, dtype="int64"), ("x", 0))
    offset = row if isinstance(k, int) and k == 0 else row + bounded(k)
    return cast_to(compare(column, offset), config.floatX if dtype is None else parse_dtype(dtype))


def eye(
    n: TensorLike, m: TensorLike | None = None, k: TensorLike = 0, dtype: DTypeLike | None = None
) -> TensorVariable:
    """A matrix with ones on a diagonal.

    Args:
        n: number of rows.
        m: number of columns; ``n`` by default.
        k: which diagonal; positive ones lie above the main diagonal.
        dtype: ``config.floatX`` by default.

    Examples:
        >>> pt.eye(2).eval()
        array([[1., 0.],
               [0., 1.]])
    """
    rows = as_count(n, "eye")
    return _band(rows, rows if m is None else as_count(m, "eye"), k, eq, dtype)


def identity(n: TensorLike, dtype: DTypeLike | None = None) -> TensorVariable:
    """The identity matrix.

    Examples:
        >>> pt.identity(2).eval()
        array([[1., 0.],
               [0., 1.]])
    """
    return eye(n, dtype=dtype)


def identity_like(x: TensorLike, dtype: DTypeLike | None = None) -> TensorVariable:
    """A matrix of the shape of x with ones on the main diagonal.

    Examples:
        >>> pt.identity_like(np.zeros((2, 2))).eval()
        array([[1., 0.],
               [0., 1.]])
    """
    x = as_tensor_variable(x)
    rows, columns = sizes_of(x)
    return eye(rows, columns, dtype=x.type.dtype if dtype is None else dtype)


def tri(
    N: TensorLike, M: TensorLike | None = None, k: TensorLike = 0, dtype: DTypeLike | None = None
) -> TensorVariable:
    """A matrix with ones on and below a diagonal.

    Examples:
        >>> pt.tri(2).eval()
        array([[1., 0.],
               [1., 1.]])
    """
    return _band(N, N if M is None else M, k, le, dtype)


def _triangle(
    m: TensorLike, k: TensorLike, compare: Callable[[TensorLike, TensorLike], TensorVariable], what: str
) -> TensorVariable:
    m = operand(m, f"{what} takes arrays of at least two dimensions", least=2)
    rows, columns = sizes_of(m)[-2:]
    return switch(_band(rows, columns, k, compare, "bool"), m, np.zeros((), m.type.dtype))


def tril(m: TensorLike, k: TensorLike = 0) -> TensorVariable:
    """``m`` with zeros above diagonal ``k`` of its last two axes.

    Examples:
        >>> pt.tril([[1, 2], [3, 4]]).eval()
        array([[1, 0],
               [3, 4]])
    """
    return _triangle(m, k, le, "tril")


def triu(m: TensorLike, k: TensorLike = 0) -> TensorVariable:
    """``m`` with zeros below diagonal ``k`` of its last two axes.

    Examples:
        >>> pt.triu([[1, 2], [3, 4]]).eval()
        array([[1, 2],
               [0, 4]])
    """
    return _triangle(m, k, ge, "triu")
