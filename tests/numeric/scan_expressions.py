# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Random expressions over tensors of the graph stage, as MLIR text (for scan_modules)."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from random import Random

DTYPES = {"f64": "float64", "f32": "float32", "i64": "int64", "i1": "bool"}


@dataclass(frozen=True)
class Dim:
    """A size, and whether types say it. Sizes that no one knows are -1."""

    size: int
    static: bool

    def __str__(self) -> str:
        return str(self.size) if self.static else "?"


ONE = Dim(1, True)


@dataclass(frozen=True)
class Value:
    """An SSA value with a tensor type."""

    name: str
    dtype: str
    shape: tuple[Dim, ...]

    @property
    def type(self) -> str:
        """The MLIR type."""
        return f"tensor<{''.join(f'{dim}x' for dim in self.shape)}{self.dtype}>"


class Writer:
    """Writes operations, one a line.

    Attributes:
        lines: the block that is being written.
        sizes: index values of dynamic sizes.
    """

    def __init__(self) -> None:
        self.lines: list[str] = []
        self.sizes: dict[Dim, str] = {}
        self._count = 0

    def number(self) -> int:
        """A fresh number."""
        self._count += 1
        return self._count

    def raw(self, text: str) -> str:
        """An operation with one result."""
        name = f"%v{self.number()}"
        self.lines.append(f"    {name} = {text}")
        return name

    def constant(self, number: int) -> str:
        """A constant of index type."""
        return self.raw(f"arith.constant {number} : index")

    def index(self, name: str, operands: Sequence[str], type_: str = "") -> str:
        """An operation on index values, or `tensor.dim`."""
        types = f"{type_}, index" if type_ else "index, index"
        return (
            self.raw(f'"{name}"({", ".join(operands)}) : ({types}) -> index')
            if type_
            else self.raw(f"{name} {', '.join(operands)} : index")
        )

    def knows(self, shape: Sequence[Dim]) -> bool:
        """Whether `size` can give all sizes of a shape."""
        return all(dim.static or dim in self.sizes for dim in shape)

    def size(self, dim: Dim) -> str:
        """An index value with a size."""
        return self.constant(dim.size) if dim.static else self.sizes[dim]

    def op(
        self,
        name: str,
        operands: Sequence[Value],
        dtype: str,
        shape: Sequence[Dim],
        attributes: str = "",
        extra: Sequence[str] = (),
        loop: str = "",
    ) -> Value:
        """A graphc operation on tensors, then index values or a loop."""
        names = [value.name for value in operands] + list(extra) + ([loop] if loop else [])
        types = (
            [value.type for value in operands] + ["index"] * len(extra) + (["!graphc.loop"] if loop else [])
        )
        value = Value(f"%v{self.number()}", dtype, tuple(shape))
        attributes = f" {{{attributes}}}" if attributes else ""
        self.lines.append(
            f'    {value.name} = "graphc.{name}"({", ".join(names)}){attributes} : '
            f"({', '.join(types)}) -> {value.type}"
        )
        return value

    def slice(self, x: Value, offset: str, size: str, stride: str, dim: Dim) -> Value:
        """A slice along the first axis."""
        zero, one = self.constant(0), self.constant(1)
        others = len(x.shape) - 1
        sizes = [size, *(self.size(other) for other in x.shape[1:])]
        bounds = [offset, *[zero] * others, *sizes, stride, *[one] * others]
        return self.op("slice", [x], x.dtype, (dim, *x.shape[1:]), extra=bounds)

    def literal(self, dtype: str, shape: Sequence[Dim], rng: Random) -> Value:
        """A constant: a splat, of static shape."""
        numbers = {
            "f64": ["0.5", "-0.25", "0.9", "1.0", "0.0"],
            "f32": ["0.5", "-0.25", "1.0", "0.0"],
            "i64": ["0", "1", "-2", "3"],
            "i1": ["true", "false"],
        }
        value = Value("", dtype, tuple(shape))
        return Value(
            self.raw(f"arith.constant dense<{rng.choice(numbers[dtype])}> : {value.type}"), dtype, value.shape
        )


def expression(
    w: Writer, rng: Random, pool: list[Value], dtype: str, shape: tuple[Dim, ...], depth: int = 2
) -> Value:
    """A value of a type, computed from those of the pool."""
    kind = rng.random()
    if depth == 0 or kind < 0.25:
        return _leaf(w, rng, pool, dtype, shape)
    if kind < 0.45 and dtype in ("f64", "i64"):
        contracted = _contraction(w, rng, pool, dtype, shape)
        if contracted is not None:
            return contracted
    if dtype == "i1":
        return _boolean(w, rng, pool, shape, depth)
    if kind < 0.55 and shape and shape[0].size > 0:
        x = expression(w, rng, pool, dtype, shape, depth - 1)
        last = w.index("arith.subi", [w.size(shape[0]), w.constant(1)])
        return w.slice(x, last, w.size(shape[0]), w.constant(-1), shape[0])
    if kind < 0.62:
        condition = expression(w, rng, pool, "i1", shape, depth - 1)
        branches = [expression(w, rng, pool, dtype, shape, depth - 1) for _ in range(2)]
        return w.op("switch", [condition, *branches], dtype, shape)
    unary = ["tanh", "neg", "sigmoid", "sin"] if dtype.startswith("f") else ["neg"]
    if kind < 0.72:
        return w.op(rng.choice(unary), [expression(w, rng, pool, dtype, shape, depth - 1)], dtype, shape)
    other = {"f64": "i64", "f32": "f64", "i64": "i1"}[dtype]
    if kind < 0.77:
        return w.op("cast", [expression(w, rng, pool, other, shape, depth - 1)], dtype, shape)
    operands = [expression(w, rng, pool, dtype, shape, depth - 1) for _ in range(2)]
    return w.op(rng.choice(["add", "sub", "mul", "maximum", "minimum"]), operands, dtype, shape)


def _leaf(w: Writer, rng: Random, pool: list[Value], dtype: str, shape: tuple[Dim, ...]) -> Value:
    same = [value for value in pool if value.dtype == dtype and value.shape == shape]
    if same and rng.random() < 0.9:
        return rng.choice(same[-6:])
    scalars = [value for value in pool if value.dtype == dtype and not value.shape]
    value = rng.choice(scalars[-4:]) if scalars and rng.random() < 0.6 else w.literal(dtype, (), rng)
    if not shape:
        return value
    return w.op("broadcast_to", [value], dtype, shape, extra=[w.size(dim) for dim in shape])


def _boolean(w: Writer, rng: Random, pool: list[Value], shape: tuple[Dim, ...], depth: int) -> Value:
    if rng.random() < 0.3:
        operands = [expression(w, rng, pool, "i1", shape, depth - 1) for _ in range(2)]
        return w.op(rng.choice(["logical_and", "logical_or", "logical_xor"]), operands, "i1", shape)
    dtype = rng.choice(["f64", "i64"])
    operands = [expression(w, rng, pool, dtype, shape, depth - 1) for _ in range(2)]
    return w.op(rng.choice(["gt", "le", "ge"]), operands, "i1", shape)


def _contraction(
    w: Writer, rng: Random, pool: list[Value], dtype: str, shape: tuple[Dim, ...]
) -> Value | None:
    """A reduction of a value of higher rank, or a product of a vector and a matrix."""
    known = [value for value in pool if value.dtype == dtype and all(dim.size > 0 for dim in value.shape)]
    taller = [value for value in known if len(value.shape) == len(shape) + 1]
    along = [
        (value, axis)
        for value in taller
        for axis in range(len(value.shape))
        if _without(value, axis) == shape
    ]
    if along and rng.random() < 0.6:
        value, axis = rng.choice(along)
        name = rng.choice(["reduce_sum", "reduce_sum", "reduce_max", "reduce_min"])
        return w.op(name, [value], dtype, shape, f"axes = array<i64: {axis}>")
    pairs = [
        (vector, matrix)
        for vector in known
        for matrix in known
        if len(vector.shape) == 1 and len(matrix.shape) == 2 and (vector.shape[0], *shape) == matrix.shape
    ]
    if not pairs or dtype != "f64":
        return None
    vector, matrix = rng.choice(pairs)
    row = w.op("dimshuffle", [vector], dtype, (ONE, *vector.shape), "order = array<i64: -1, 0>")
    product = w.op("matmul", [row, matrix], dtype, (ONE, *shape), "transpose_a = false, transpose_b = false")
    return w.op("dimshuffle", [product], dtype, shape, "order = array<i64: 1>")


def _without(value: Value, axis: int) -> tuple[Dim, ...]:
    return value.shape[:axis] + value.shape[axis + 1 :]


def part(w: Writer, trace: Value, kind: str, least: int) -> Value:
    """What a program may want of a trace that has at least `least` rows."""
    if kind == "sum" and trace.dtype != "i1":
        return total(w, trace)
    known = trace.shape[0].size
    if kind == "whole" or least == 0 or not w.knows(trace.shape[1:]) or (known < 0 and kind != "last row"):
        return trace
    rows = w.index("tensor.dim", [trace.name, w.constant(0)], trace.type)
    if kind == "last row":
        last = w.index("arith.subi", [rows, w.constant(1)])
        return w.op("scan_seq", [trace], trace.dtype, trace.shape[1:], extra=[last])
    count = min(known, 2) if kind == "last two" else known - 1
    offset, size = w.constant(0 if kind == "head" else known - count), w.constant(count)
    return w.slice(trace, offset, size, w.constant(1), Dim(count, False))


def total(w: Writer, trace: Value) -> Value:
    """All rows in one."""
    kind = "or" if trace.dtype == "i1" else "sum"
    return w.op(f"reduce_{kind}", [trace], trace.dtype, trace.shape[1:], "axes = array<i64: 0>")
