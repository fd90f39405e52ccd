# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""NumPy semantics of the graph-stage operations, for constant folding and for the interpreter.

Elementwise operations use the reference of their row (graphc.ops); the structural ones are written out here.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

import graphc.ops  # noqa: F401  (fills the table of rows)
from graphc.ir.constants import element_dtype
from graphc.ir.kernels import attributes_of
from graphc.library.registry import find
from graphc.ops.elementwise import ROWS
from graphc.tensor.random.native import draw_native

Reference = Callable[..., Any]


def evaluate(op: Any, operands: list[Any], dtype: np.dtype) -> Any:
    """The result of a graphc operation for concrete operands.

    Args:
        op: a graphc-dialect operation with one tensor result.
        operands: ndarrays for tensors, ints for index values.
        dtype: dtype of the result.

    Raises:
        NotImplementedError: the operation has no NumPy semantics (checks, structured operations).
        ValueError: the operands' shapes do not fit.
    """
    name = op.name.removeprefix("graphc.")
    structural = STRUCTURAL.get(name)
    with np.errstate(all="ignore"):
        if structural is not None:
            return np.asarray(structural(op, *operands), dtype)
        if name == "cast":
            return cast(operands[0], dtype)
        return np.asarray(elementwise_reference(name)(*operands), dtype)


def has_reference(name: str) -> bool:
    """Whether `evaluate` knows `graphc.<name>`."""
    return name in STRUCTURAL or name == "cast" or name in ROWS


def elementwise_reference(name: str) -> Reference:
    """The NumPy function of an elementwise row.

    Raises:
        NotImplementedError: there is no such row.
    """
    if name not in ROWS:
        raise NotImplementedError(f"graphc.{name} has no NumPy reference")
    return ROWS[name].reference


def kernel_reference(op: Any, operands: list[Any]) -> list[Any]:
    """The results of a kernel operation, in the dtypes of its result types."""
    found = find(op.name[7:]).reference(attributes_of(op), *operands)
    values = found if isinstance(found, tuple) else (found,)
    types = [element_dtype(result.type.element_type) for result in op.results]
    return [np.asarray(value, dtype) for value, dtype in zip(values, types, strict=True)]


def random_reference(op: Any, operands: list[Any]) -> tuple[np.ndarray, np.ndarray]:
    """The draws of `graphc.random`, and the state of the generator after them."""
    cores = list(op.attributes["cores"])
    state, *rest = operands
    parameters, sizes = rest[: len(cores)], rest[len(cores) :]
    return draw_native(op.attributes["distribution"].value, state, parameters, sizes)


def cast(x: np.ndarray, dtype: np.dtype) -> np.ndarray:
    """`astype`, dropping imaginary parts silently."""
    if x.dtype.kind == "c" and dtype.kind not in "cb":
        x = x.real
    return x.astype(dtype)


def _axes(op: Any) -> tuple[int, ...]:
    return tuple(op.attributes["axes"])


def _axis(op: Any) -> int:
    return int(op.attributes["axis"].value)


def _flag(op: Any, name: str) -> bool:
    return bool(op.attributes[name].value)


def _reduction(ufunc: Any) -> Reference:
    def reduce(op: Any, x: np.ndarray) -> Any:
        axes = _axes(op)
        if ufunc in (np.maximum, np.minimum) and any(x.shape[axis] == 0 for axis in axes):
            return ufunc.reduce(x, axis=axes, initial=_identity(x.dtype, lowest=ufunc is np.maximum))
        return ufunc.reduce(x, axis=axes, dtype=x.dtype)

    return reduce


def _identity(dtype: np.dtype, lowest: bool) -> Any:
    if dtype.kind in "fc":
        return -np.inf if lowest else np.inf
    if dtype.kind == "b":
        return not lowest
    return np.iinfo(dtype).min if lowest else np.iinfo(dtype).max


def _dimshuffle(op: Any, x: np.ndarray) -> np.ndarray:
    order = list(op.attributes["order"])
    kept = [axis for axis in order if axis >= 0]
    dropped = tuple(axis for axis in range(x.ndim) if axis not in kept)
    ranks = {axis: position for position, axis in enumerate(sorted(kept))}
    moved = np.squeeze(x, dropped).transpose([ranks[axis] for axis in kept])
    return moved[tuple(np.newaxis if axis < 0 else slice(None) for axis in order)]


def _specify_shape(op: Any, x: np.ndarray, *sizes: int) -> np.ndarray:
    if x.shape != sizes:
        raise ValueError(f"specify_shape: {x.shape} is not {sizes}")
    return x


def _iota(op: Any, start: np.ndarray, step: np.ndarray, length: int) -> np.ndarray:
    positions = np.arange(length).astype(start.dtype)
    return np.asarray(start + step * positions)


def positions(x: np.ndarray, bounds: tuple[int, ...]) -> tuple[np.ndarray, ...]:
    """Open mesh of the positions that normalised offsets, sizes and strides select."""
    rank = x.ndim
    offsets, sizes, strides = bounds[:rank], bounds[rank : 2 * rank], bounds[2 * rank :]
    selected = [o + s * np.arange(n) for o, n, s in zip(offsets, sizes, strides, strict=True)]
    return np.ix_(*selected) if rank else ()


def _slice(op: Any, x: np.ndarray, *bounds: int) -> np.ndarray:
    return np.asarray(x[positions(x, bounds)])


def _update_slice(op: Any, x: np.ndarray, y: np.ndarray, *bounds: int) -> np.ndarray:
    where, result = positions(x, bounds), x.copy()
    result[where] = result[where] + y if _flag(op, "accumulate") else y
    return result


def _put(op: Any, x: np.ndarray, y: np.ndarray, indices: np.ndarray) -> np.ndarray:
    axis, result = _axis(op), x.copy()
    front: tuple[Any, ...] = (slice(None),) * axis
    trailing = x.ndim - axis - 1
    for position in np.ndindex(indices.shape):
        row = y[front + position + (slice(None),) * trailing]
        target = (*front, indices[position])
        result[target] = result[target] + row if _flag(op, "accumulate") else row
    return result


def _matmul(op: Any, a: np.ndarray, b: np.ndarray) -> np.ndarray:
    if _flag(op, "transpose_a"):
        a = np.swapaxes(a, -1, -2)
    if _flag(op, "transpose_b"):
        b = np.swapaxes(b, -1, -2)
    if a.shape[:-2] != b.shape[:-2]:
        raise ValueError(f"matmul: batch shapes {a.shape[:-2]} and {b.shape[:-2]} differ")
    return np.matmul(a, b)


def _scan_seq(op: Any, x: np.ndarray, i: int) -> np.ndarray:
    if not 0 <= i < len(x):
        raise IndexError(f"scan_seq: row {i} of {len(x)}")
    return np.asarray(x[i])


def _shifted(op: Any, x: np.ndarray) -> np.ndarray:
    top = np.max(x, axis=_axes(op), keepdims=True, initial=-np.inf)
    if "guarded" in op.attributes and _flag(op, "guarded"):
        top = np.where(np.isfinite(top), top, 0)
    return np.asarray(x - top)


def _softmax(op: Any, x: np.ndarray) -> np.ndarray:
    e = np.exp(_shifted(op, x))
    return np.asarray(e / np.sum(e, axis=_axes(op), keepdims=True))


def _log_softmax(op: Any, x: np.ndarray) -> np.ndarray:
    shifted = _shifted(op, x)
    return np.asarray(shifted - np.log(np.sum(np.exp(shifted), axis=_axes(op), keepdims=True)))


def _recurrence(op: Any, operands: tuple[Any, ...], step: Callable[..., Any]) -> np.ndarray:
    """Rows made one from the other: `step(row before, *operands' rows)`."""
    *stacks, initial, n = operands
    for stack, type_ in zip(stacks, (x.type for x in op.operands), strict=False):
        sizes = zip(stack.shape, (n, *initial.shape[1:]), type_.shape, strict=True)
        if n and any(have != want and known != 1 for have, want, known in sizes):
            raise ValueError(f"{op.name}: {stack.shape} does not fit {n} rows of shape {initial.shape[1:]}")
    rows = [initial[0]]
    for t in reversed(range(n)) if _flag(op, "reverse") else range(n):
        rows.append(step(rows[-1], *(stack[t if len(stack) != 1 else 0] for stack in stacks)))
    if not _flag(op, "keep_initial"):
        del rows[0]
    if _flag(op, "reverse"):
        rows.reverse()
    return np.stack(rows) if rows else np.empty((0, *initial.shape[1:]), initial.dtype)


_CUMULATIVE: dict[str, Any] = {
    "add": np.add,
    "mul": np.multiply,
    "max": np.maximum,
    "min": np.minimum,
    "and": np.bitwise_and,
    "or": np.bitwise_or,
}


def _cumulative(op: Any, *operands: Any) -> np.ndarray:
    return _recurrence(op, operands, _CUMULATIVE[op.attributes["kind"].value])


def _linear_recurrence(op: Any, *operands: Any) -> np.ndarray:
    return _recurrence(op, operands, lambda h, a, b: a * h + b)


STRUCTURAL: dict[str, Reference] = {
    "reduce_sum": _reduction(np.add),
    "reduce_prod": _reduction(np.multiply),
    "reduce_max": _reduction(np.maximum),
    "reduce_min": _reduction(np.minimum),
    "reduce_and": _reduction(np.bitwise_and),
    "reduce_or": _reduction(np.bitwise_or),
    "argmax": lambda op, x: np.argmax(x, axis=_axis(op)),
    "argmin": lambda op, x: np.argmin(x, axis=_axis(op)),
    "softmax": _softmax,
    "log_softmax": _log_softmax,
    "dimshuffle": _dimshuffle,
    "reshape": lambda op, x, *sizes: x.reshape(sizes),
    "broadcast_to": lambda op, x, *sizes: np.broadcast_to(x, sizes),
    "specify_shape": _specify_shape,
    "iota": _iota,
    "join": lambda op, *xs: np.concatenate(xs, axis=_axis(op)),
    "slice": _slice,
    "update_slice": _update_slice,
    "take": lambda op, x, indices: np.take(x, indices, axis=_axis(op)),
    "put": _put,
    "matmul": _matmul,
    "scan_seq": _scan_seq,
    "cumulative": _cumulative,
    "linear_recurrence": _linear_recurrence,
}
