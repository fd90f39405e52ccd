# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Generates modules with conditionals: in `@main`, in each other, in bodies of loops and around loops.

Regions capture values, compute with reductions, products and loops, and check. They yield what they computed
or captured, values of sizes that differ between the sides, and empty tensors, which nobody reads.
"""

from __future__ import annotations

from dataclasses import replace
from random import Random

import numpy as np
from scan_expressions import Dim, Value, expression, total
from scan_modules import Limits, ScanCase, _Case, _Result, _State, _Steps


def generate(rng: Random, limits: Limits | None = None) -> ScanCase:
    """One case with at least one conditional; equal states of `rng` give equal cases."""
    return _ConditionalCase(rng, limits or Limits()).build()


def flipped(case: ScanCase) -> list[list[np.ndarray]]:
    """Inputs of a case: as they are, and with its conditions that are arguments the other way round."""
    other = [~x if x.dtype == np.bool_ and not x.ndim else x for x in case.inputs]
    return [case.inputs, other]


class _ConditionalCase(_Case):
    def build(self) -> ScanCase:
        rng = self.rng
        pool = self.leaves()
        for number in range(rng.randint(1, 3)):
            if self.limits.scans and rng.random() < 0.4:
                self.scan(pool, depth=0)
            if number == 0 or rng.random() < 0.6:
                self.conditional(pool, depth=0)
        self.results = self.results or [pool[2]]
        return self.case()

    def declare(
        self,
        states: list[_State],
        previous: dict[str, list[Value]],
        pool: list[Value],
        steps: _Steps,
        stop: bool,
    ) -> list[_Result]:
        """Bodies of loops have conditionals too, before what the next rows are computed from."""
        if self.rng.random() < 0.5:
            self.conditional(pool, depth=1)
        return super().declare(states, previous, pool, steps, stop)

    # -- conditionals ----------------------------------------------------------------------------------------

    def condition(self, pool: list[Value], depth: int) -> str:
        rng, w = self.rng, self.w
        flags = []
        for _ in range(rng.choice([1, 1, 1, 2])):
            if depth == 0 and rng.random() < 0.6:
                flag = self.argument("i1", ())
                self.arguments[-1] = (flag, np.asarray(rng.random() < 0.5))
            else:
                flag = expression(w, rng, pool, "i1", ())
            flags.append(w.raw(f"tensor.extract {flag.name}[] : {flag.type}"))
        if len(flags) == 1:
            return flags[0]
        return w.raw(f"arith.{rng.choice(['andi', 'ori', 'xori'])} {flags[0]}, {flags[1]} : i1")

    def conditional(self, pool: list[Value], depth: int) -> None:
        """Emits a conditional; its results become part of the pool."""
        rng = self.rng
        condition = self.condition(pool, depth)
        wanted = [(rng.choice(self.limits.dtypes), self.row()) for _ in range(rng.choice([1, 1, 2, 3]))]
        sized = rng.random() < 0.3  # the last result has sizes that differ
        unread = not sized and rng.random() < 0.2  # the last result is empty on one side
        sides = [self.region(pool, wanted, sized, unread and side == 1, depth) for side in range(2)]
        results = self.join_sides(condition, sides)
        if sized:
            last = results.pop()
            if depth == 0:
                self.results.append(last)
            results.append(total(self.w, last))
        if unread:
            results += self.second(condition, pool, results.pop(), depth)
        pool += results
        self.note(conditional=True, branch_in_loop=depth > 0, sized=sized, unread=unread)
        if depth == 0:
            self.results += [x for x in results if rng.random() < 0.8]
            self.joined(results, pool)

    def second(self, condition: str, pool: list[Value], value: Value, depth: int) -> list[Value]:
        """A further conditional of the same condition, which reads what one side of the first computed."""
        sides = [
            self.region(
                [*pool, value] if side == 0 else pool, [(value.dtype, value.shape)], False, False, depth
            )
            for side in range(2)
        ]
        if sides[0][1][0].type == value.type:
            sides[0][1][0] = value
        return self.join_sides(condition, sides)

    def region(
        self,
        pool: list[Value],
        wanted: list[tuple[str, tuple[Dim, ...]]],
        sized: bool,
        unread: bool,
        depth: int,
    ) -> tuple[list[str], list[Value]]:
        """The lines of a region, and what it yields."""
        rng, w = self.rng, self.w
        outer, w.lines = w.lines, []
        inner = list(pool)
        if rng.random() < 0.3:
            self.check(inner)
        if depth < 2 and rng.random() < 0.3:
            self.conditional(inner, depth + 1)
            self.note(nested_conditional=True)
        if depth < 2 and self.limits.scans and rng.random() < 0.25:
            self.scan(inner, depth=1)
            self.note(loop_in_branch=True)
        yields = [self.yielded(inner, pool, dtype, shape) for dtype, shape in wanted]
        if unread:
            yields[-1] = self.nothing(yields[-1])
        if sized:
            yields.append(self.some_rows(inner))
        lines, w.lines = w.lines, outer
        return lines, yields

    def yielded(self, inner: list[Value], pool: list[Value], dtype: str, shape: tuple[Dim, ...]) -> Value:
        rng = self.rng
        captured = [x for x in pool if (x.dtype, x.shape) == (dtype, shape)]
        if captured and rng.random() < 0.2:
            return rng.choice(captured)
        return expression(self.w, rng, inner, dtype, shape)

    def nothing(self, like: Value) -> Value:
        """A tensor without contents."""
        if not like.shape and self.rng.random() < 0.5:
            return self.w.literal(like.dtype, (), self.rng)
        zero = self.w.constant(0)
        sizes = ", ".join(zero for dim in like.shape if not dim.static)
        return replace(like, name=self.w.raw(f"tensor.empty({sizes}) : {like.type}"))

    def some_rows(self, inner: list[Value]) -> Value:
        """Rows of the matrix: as many as a number says that is known, computed, or the size itself."""
        rng, w = self.rng, self.w
        matrix = inner[2]
        rows = matrix.shape[0]
        kind, free = rng.random(), Value("", "f64", (Dim(-1, False), matrix.shape[1]))
        if kind < 0.3:
            value = expression(w, rng, inner, "f64", matrix.shape)
            return (
                replace(free, name=w.raw(f"tensor.cast {value.name} : {value.type} to {free.type}"))
                if (value.type != free.type)
                else replace(free, name=value.name)
            )
        size = w.constant(rng.randint(0, rows.size))
        if kind > 0.6:
            number = expression(w, rng, inner, "i64", ())
            number = w.op("cast", [w.op("gt", [number, w.literal("i64", (), rng)], "i1", ())], "i64", ())
            integer = w.raw(f"tensor.extract {number.name}[] : {number.type}")
            size = w.raw(f"arith.index_cast {integer} : i64 to index")
        sliced = w.slice(matrix, w.constant(0), size, w.constant(1), Dim(-1, False))
        return w.op("tanh", [sliced], "f64", free.shape) if rng.random() < 0.5 else sliced

    def check(self, inner: list[Value]) -> None:
        """A check that holds, of what is computed in the region."""
        w = self.w
        value = expression(w, self.rng, inner, "f64", ())
        same = w.op("eq", [value, value], "i1", ())
        flag = w.raw(f"tensor.extract {same.name}[] : {same.type}")
        one = w.constant(1)
        w.lines.append(
            f'    "graphc.check"({flag}, {one}, {one}) {{message = "nan", error = "ValueError"}} : '
            "(i1, index, index) -> ()"
        )

    def join_sides(self, condition: str, sides: list[tuple[list[str], list[Value]]]) -> list[Value]:
        """The `scf.if` of two regions."""
        w = self.w
        name, values = f"%r{w.number()}", sides[0][1]
        types = ", ".join(x.type for x in values)
        bodies = []
        for lines, yields in sides:
            names = ", ".join(x.name for x in yields)
            bodies.append("\n".join([*lines, f"    scf.yield {names} : {types}"]))
        count = f":{len(values)}" if len(values) > 1 else ""
        w.lines.append(
            f"    {name}{count} = scf.if {condition} -> ({types}) {{\n{bodies[0]}\n    }} else {{\n"
            f"{bodies[1]}\n    }}"
        )
        return [replace(x, name=f"{name}#{number}" if count else name) for number, x in enumerate(values)]

    def joined(self, results: list[Value], pool: list[Value]) -> None:
        """Joins a result with another vector."""
        w = self.w
        vectors = [x for x in results if len(x.shape) == 1 and x.dtype == "f64"]
        if not vectors or self.rng.random() < 0.5:
            return
        free = (Dim(-1, False),)
        operands = [vectors[0], expression(w, self.rng, pool, "f64", (self.dims[0],))]
        same = [
            x
            if str(x.shape[0]) == "?"
            else Value(w.raw(f"tensor.cast {x.name} : {x.type} to tensor<?xf64>"), "f64", free)
            for x in operands
        ]
        self.results.append(w.op("join", same, "f64", free, "axis = 0 : i64"))
        self.note(joined=True)
