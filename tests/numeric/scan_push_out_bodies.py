# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Generates scans with much work on sequences, outputs and accumulators: what the push-out passes move."""

from __future__ import annotations

from dataclasses import dataclass
from random import Random

import numpy as np

SIZES = {"H": 3, "K": 4, "B": 2, "1": 1}
Shape = tuple[str, ...]


@dataclass(frozen=True)
class Row:
    """A value of the body."""

    name: str
    shape: Shape


class BodyCase:
    """One module with one scan, and arguments for it.

    Args:
        rng: source of choices. steps: number of iterations. element: element type of all values.
    """

    def __init__(self, rng: Random, steps: int, element: str = "f64") -> None:
        self.rng, self.steps, self.element = rng, steps, element
        self.static = {dim: dim == "1" or rng.random() < 0.4 for dim in SIZES}
        self.arguments: list[tuple[str, Shape, np.ndarray]] = []
        self.lines: list[str] = []
        self.before: list[str] = []
        self.after: list[str] = []
        self.results: list[tuple[str, str]] = []
        self.count = 0
        self.reverse = rng.random() < 0.4
        self.stop = rng.random() < 0.2
        self._build()

    # -- text ------------------------------------------------------------------------------------------------

    def type(self, shape: Shape) -> str:
        """The text of a tensor type; `N` and `?` are dynamic."""
        sizes = [str(SIZES[d]) if self.static.get(d) else "?" for d in shape]
        return f"tensor<{''.join(s + 'x' for s in sizes)}{self.element}>"

    def fresh(self) -> str:
        """A new name."""
        self.count += 1
        return f"%v{self.count}"

    def op(self, name: str, operands: list[Row], shape: Shape, attributes: str = "") -> Row:
        """Adds an operation to the body."""
        result = Row(self.fresh(), shape)
        types = ", ".join(self.type(x.shape) for x in operands)
        names = ", ".join(x.name for x in operands)
        self.lines.append(
            f'    {result.name} = "graphc.{name}"({names}) {{{attributes}}} : ({types}) -> {self.type(shape)}'
        )
        return result

    def argument(self, shape: Shape, rows: int | None = None) -> str:
        """A new argument; `rows` leading rows."""
        sizes = [] if rows is None else [rows]
        data = np.random.default_rng(self.rng.randrange(1 << 30)).normal(
            size=(*sizes, *(SIZES[d] for d in shape))
        )
        name = f"%a{len(self.arguments)}"
        dtype = {"f64": "f8", "f32": "f4", "complex<f64>": "c16"}[self.element]
        self.arguments.append((name, shape if rows is None else ("N", *shape), data.astype(dtype) * 0.5))
        return name

    # -- structure -------------------------------------------------------------------------------------------

    def _build(self) -> None:
        rng = self.rng
        pool = [self._sequence() for _ in range(rng.randint(1, 3))]
        pool += [Row(self.argument(shape), shape) for shape in (("H", "K"), ("H",), ("K", "K"))]
        states = [self._state(i) for i in range(rng.randint(0, 2))]
        pool += [row for _, _, row in states]
        for _ in range(rng.randint(4, 14)):
            made = self._operation(pool)
            if made is not None:
                pool.append(made)
        for name, initial, row in states:
            new = self.op("tanh", [self._like(pool, row)], row.shape)
            self._carry(name, initial, new)
            if rng.random() < 0.5:
                self._use(name, ("N", *row.shape))
        inside = [x for x in pool if not x.name.startswith("%a")]
        for i in range(rng.randint(1, 3)):
            self._output(f"y{i}", rng.choice(inside))
        for i in range(rng.randint(1, 3)):
            self._accumulator(f"s{i}", rng.choice(inside))

    def _sequence(self) -> Row:
        shape = self.rng.choice([("H",), ("K",), ("B", "H"), ("H", "1"), ()])
        extra = self.rng.randint(0, 2)
        x = self.argument(shape, self.steps + extra)
        result = Row(self.fresh(), shape)
        offset = self.rng.randint(0, extra)
        index = self.fresh()
        self.lines.append(f"    {index}c = arith.constant {offset} : index")
        if self.rng.random() < 0.3:
            self.lines.append(f"    {index}m = arith.subi %n, %c1 : index")
            self.lines.append(f"    {index}r = arith.subi {index}m, %t : index")
            self.lines.append(f"    {index} = arith.addi {index}r, {index}c : index")
        else:
            self.lines.append(f"    {index} = arith.addi %t, {index}c : index")
        self.lines.append(
            f'    {result.name} = "graphc.scan_seq"({x}, {index}) : ({self.type(("N", *shape))}, index) -> '
            f"{self.type(shape)}"
        )
        return result

    def _state(self, number: int) -> tuple[str, str, Row]:
        shape = self.rng.choice([("H",), ("K",), ("B", "H"), ()])
        initial = self.argument(shape, 1)
        row = self._previous(f"h{number}", shape)
        return f"h{number}", initial, row

    def _previous(self, state: str, shape: Shape) -> Row:
        row = Row(self.fresh(), shape)
        self.lines.append(
            f'    {row.name} = "graphc.scan_prev"(%t) {{state = "{state}", tap = -1 : i64}} : (index) -> '
            f"{self.type(shape)}"
        )
        return row

    def _carry(self, name: str, initial: str, new: Row) -> None:
        self.lines.append(
            f'    "graphc.scan_carry"({initial}, {new.name}) {{state = "{name}", taps = array<i64: -1>, '
            f'writes = array<i64: 0>, keep = "all"}} : '
            f"({self.type(('N', *new.shape))}, {self.type(new.shape)}) -> ()"
        )

    def _like(self, pool: list[Row], row: Row) -> Row:
        same = [x for x in pool if x.shape == row.shape and x != row]
        if not same:
            return row
        return self.op(self.rng.choice(["add", "mul"]), [row, self.rng.choice(same)], row.shape)

    def _output(self, name: str, row: Row) -> None:
        self.lines.append(
            f'    "graphc.scan_collect"({row.name}) {{state = "{name}", keep = "steps"}} : '
            f"({self.type(row.shape)}) -> ()"
        )
        self._use(name, ("N", *row.shape))

    def _accumulator(self, name: str, row: Row) -> None:
        """A sum of which the last row is used, found in one of many ways."""
        initial = self.argument(row.shape, 1)
        old = self._previous(name, row.shape)
        kind = self.rng.choice(["add", "add", "swapped", "sub"])
        operands = [row, old] if kind == "swapped" else [old, row]
        new = self.op("sub" if kind == "sub" else "add", operands, row.shape)
        self._carry(name, initial, new)
        self._use_last(name, row.shape)

    # -- results ---------------------------------------------------------------------------------------------

    def _trace(self, name: str, shape: Shape) -> str:
        trace = self.fresh()
        self.after.append(
            f'  {trace} = "graphc.scan_trace"(%s) {{state = "{name}"}} : (!graphc.loop) -> {self.type(shape)}'
        )
        return trace

    def _use(self, name: str, shape: Shape) -> None:
        self.results.append((self._trace(name, shape), self.type(shape)))

    def _use_last(self, name: str, shape: Shape) -> None:
        trace, type_ = self._trace(name, ("N", *shape)), self.type(("N", *shape))
        at = self.fresh()
        if self.reverse:
            self.after.append(f"  {at} = arith.constant 0 : index")
        else:
            self.after.append(f"  {at}d = tensor.dim {trace}, %c0 : {type_}")
            self.after.append(f"  {at} = arith.subi {at}d, %c1 : index")
        if self.rng.random() < 0.5:
            row = self.fresh()
            self.after.append(
                f'  {row} = "graphc.scan_seq"({trace}, {at}) : ({type_}, index) -> {self.type(shape)}'
            )
            self.results.append((row, self.type(shape)))
            return
        sizes = []
        for axis in range(1, len(shape) + 1):
            sizes.append(f"{at}s{axis}")
            self.after.append(f"  {at}i{axis} = arith.constant {axis} : index")
            self.after.append(f"  {at}s{axis} = tensor.dim {trace}, {at}i{axis} : {type_}")
        rank = len(shape)
        bounds = [at, *["%c0"] * rank, "%c1", *sizes, *["%c1"] * (rank + 1)]
        row = self.fresh()
        indices = ", ".join(["index"] * len(bounds))
        kind = self.type(("1", *shape))
        self.after.append(
            f'  {row} = "graphc.slice"({trace}, {", ".join(bounds)}) : ({type_}, {indices}) -> {kind}'
        )
        self.results.append((row, kind))

    # -- operations ------------------------------------------------------------------------------------------

    def _operation(self, pool: list[Row]) -> Row | None:
        rng = self.rng
        x = rng.choice(pool)
        kind = rng.choice(
            ["unary", "binary", "matmul", "matmul", "matmul", "view", "outer", "reduce", "softmax"]
        )
        if kind == "unary":
            return self.op(rng.choice(["tanh", "sin", "neg", "tanh", "sqr"]), [x], x.shape)
        if kind == "binary":
            same = [y for y in pool if y.shape == x.shape]
            return self.op(rng.choice(["add", "mul", "sub"]), [x, rng.choice(same)], x.shape)
        if kind == "matmul":
            return self._matmul(pool)
        if kind == "view":
            return self._view(x)
        if kind == "outer":
            return self._outer(pool)
        if not x.shape or self.element.startswith("c"):
            return None
        axis = rng.randrange(len(x.shape))
        if kind == "softmax":
            return self.op("softmax", [x], x.shape, f"axes = array<i64: {axis}>")
        kept = tuple(d for i, d in enumerate(x.shape) if i != axis)
        return self.op(rng.choice(["reduce_sum", "reduce_max"]), [x], kept, f"axes = array<i64: {axis}>")

    def _view(self, x: Row) -> Row | None:
        orders: dict[int, list[list[int]]] = {0: [[-1]], 1: [[-1, 0], [0, -1]], 2: [[1, 0]]}
        options = [*orders.get(len(x.shape), [])]
        if "1" in x.shape and len(x.shape) == 2:
            options.append([i for i, d in enumerate(x.shape) if d != "1"][:1] or [0])
        if not options:
            return None
        order = self.rng.choice(options)
        shape = tuple("1" if axis < 0 else x.shape[axis] for axis in order)
        if any(x.shape[axis] != "1" for axis in range(len(x.shape)) if axis not in order):
            return None
        return self.op("dimshuffle", [x], shape, f"order = array<i64: {', '.join(map(str, order))}>")

    def _outer(self, pool: list[Row]) -> Row | None:
        vectors = [x for x in pool if len(x.shape) == 1 and x.shape[0] != "1"]
        if not vectors:
            return None
        x, y = self.rng.choice(vectors), self.rng.choice(vectors)
        column = self.op("dimshuffle", [x], (x.shape[0], "1"), "order = array<i64: 0, -1>")
        row = self.op("dimshuffle", [y], ("1", y.shape[0]), "order = array<i64: -1, 0>")
        operands = [column, row] if self.rng.random() < 0.7 else [row, column]
        return self.op("mul", operands, (x.shape[0], y.shape[0]))

    def _matmul(self, pool: list[Row]) -> Row | None:
        matrices = [x for x in pool if len(x.shape) == 2]
        vectors = [x for x in pool if len(x.shape) == 1]
        if vectors and self.rng.random() < 0.6:
            x = self.rng.choice(vectors)
            row = self.op("dimshuffle", [x], ("1", x.shape[0]), "order = array<i64: -1, 0>")
            matrices += [row] * 3
        found = []
        for a in matrices:
            for b in matrices:
                for ta in (False, True):
                    for tb in (False, True):
                        left = a.shape[::-1] if ta else a.shape
                        right = b.shape[::-1] if tb else b.shape
                        if left[1] == right[0]:
                            found.append((a, b, ta, tb, (left[0], right[1])))
        if not found:
            return None
        a, b, ta, tb, shape = self.rng.choice(found)
        flags = f"transpose_a = {str(ta).lower()}, transpose_b = {str(tb).lower()}"
        return self.op("matmul", [a, b], shape, flags)

    # -- the module ------------------------------------------------------------------------------------------

    @property
    def text(self) -> str:
        """The module."""
        arguments = ", ".join(f"{name}: {self.type(shape)}" for name, shape, _ in self.arguments)
        types = ", ".join(t for _, t in self.results)
        names = ", ".join(n for n, _ in self.results)
        end = '    "graphc.scan_end"() : () -> ()'
        if self.stop:
            at = "arith.constant 2 : index"
            end = (
                f"    %stop2 = {at}\n    %stop = arith.cmpi eq, %t, %stop2 : index\n"
                '    "graphc.scan_end"(%stop) : (i1) -> ()'
            )
        return "\n".join(
            [
                f"func.func @main(%n: index, {arguments}) -> ({types}) {{",
                "  %c0 = arith.constant 0 : index",
                "  %c1 = arith.constant 1 : index",
                '  %s = "graphc.scan"(%n) ({',
                "  ^bb0(%t: index):",
                *self.lines,
                end,
                f'  }}) {{name = "loop", reverse = {str(self.reverse).lower()}}} : (index) -> !graphc.loop',
                *self.after,
                f"  return {names} : {types}",
                "}",
            ]
        )

    @property
    def inputs(self) -> list[object]:
        """Values of the arguments."""
        return [self.steps, *(data for _, _, data in self.arguments)]
