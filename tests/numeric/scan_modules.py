# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Generates modules with scans: MLIR text of the graph stage, and inputs that fit.

A case has one or two scans in `@main`, with random states (taps with gaps, several writes, rows of any rank
and dtype), sequences with offsets, captured values, outputs, stop conditions, nested scans and uses of the
results. All arguments and results of `@main` are tensors, so a case can be interpreted and compiled. Data are
small and rows are bounded, so results stay finite.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from random import Random
from typing import Any

import numpy as np
from hypothesis import strategies as st
from scan_expressions import DTYPES, ONE, Dim, Value, Writer, expression, part, total


@dataclass(frozen=True)
class ScanCase:
    """A module and what to call its `@main` with.

    Attributes:
        text: the module. inputs: one array for each argument. features: `while`, `nested`, `reverse`, ...
    """

    text: str
    inputs: list[np.ndarray]
    features: frozenset[str]


@dataclass(frozen=True)
class Limits:
    """What may occur in a case.

    Attributes:
        scans: largest number of scans side by side in `@main`.
        nested: scans in the bodies of scans.
        whiles: stop conditions.
        writes: states with several writes.
        dtypes: element types of rows.
        last: retention of the last rows only, which just scan-save-mem asks for.
    """

    scans: int = 2
    nested: bool = True
    whiles: bool = True
    writes: bool = True
    dtypes: tuple[str, ...] = ("f64", "f64", "f64", "f32", "i64", "i1")
    last: bool = True


def generate(rng: Random, limits: Limits | None = None) -> ScanCase:
    """One case; equal states of `rng` give equal cases."""
    return _Case(rng, limits or Limits()).build()


def scan_cases(limits: Limits | None = None) -> st.SearchStrategy[ScanCase]:
    """A hypothesis strategy of cases."""
    return st.randoms(use_true_random=False).map(lambda rng: generate(rng, limits))


def assert_close(results: Sequence[Any], expected: Sequence[Any]) -> None:
    """Compares what two ways to run a case give; single precision differs more."""
    assert len(results) == len(expected)
    for result, want in zip(results, expected, strict=True):
        assert result.dtype == want.dtype
        tolerance = 2e-4 if want.dtype == np.float32 else 1e-9
        np.testing.assert_allclose(result, want, rtol=tolerance, atol=tolerance, strict=True)


@dataclass(frozen=True)
class _Steps:
    """A number of iterations: its index value, its size, and whether it is written as a constant."""

    index: str
    size: int
    constant: bool


@dataclass(frozen=True)
class _State:
    name: str
    initial: Value
    taps: list[int]
    writes: list[int]
    seed: int

    @property
    def row(self) -> tuple[Dim, ...]:
        return self.initial.shape[1:]


@dataclass(frozen=True)
class _Result:
    """A declaration, and how many rows it surely keeps (None: depends on a stop condition)."""

    name: str
    dtype: str
    row: tuple[Dim, ...]
    rows: int | None
    at_least: int


class _Case:
    def __init__(self, rng: Random, limits: Limits) -> None:
        self.rng, self.limits = rng, limits
        self.w = Writer()
        self.arguments: list[tuple[Value, np.ndarray]] = []
        self.features: set[str] = set()
        self.results: list[Value] = []
        self.counts: list[_Steps] = []
        self.dims: list[Dim] = []
        self.reverse = rng.random() < 0.3
        self.stacks: list[Value] = []

    # -- the function ----------------------------------------------------------------------------------------

    def build(self) -> ScanCase:
        rng = self.rng
        pool = self.leaves()
        for _ in range(rng.randint(1, self.limits.scans)):
            # Half of the scans see the results of earlier ones as sequences only.
            self.scan(pool if rng.random() < 0.5 else pool[:5], depth=0)
        if not self.results:
            self.results.append(pool[-1])
        return self.case()

    def leaves(self) -> list[Value]:
        """The arguments and the literal that everything else is made of."""
        rng = self.rng
        self.dims = [Dim(rng.choice([1, 2, 3, 3]), rng.random() < 0.5) for _ in range(2)]
        pool: list[Value] = []
        for dim in self.dims:
            pool.append(self.argument("f64", (dim,)))
            if not dim.static:
                self.w.sizes[dim] = self.w.index(
                    "tensor.dim", [pool[-1].name, self.w.constant(0)], pool[-1].type
                )
        pool.append(self.argument("f64", tuple(self.dims)))
        pool.append(self.argument(rng.choice(self.limits.dtypes), ()))
        pool.append(self.w.literal(rng.choice(self.limits.dtypes), (), rng))
        return pool

    def case(self) -> ScanCase:
        return ScanCase(self.text(), [data for _, data in self.arguments], frozenset(self.features))

    def text(self) -> str:
        signature = ", ".join(f"{value.name}: {value.type}" for value, _ in self.arguments)
        types = ", ".join(value.type for value in self.results)
        names = ", ".join(value.name for value in self.results)
        body = "\n".join(self.w.lines)
        return f"func.func @main({signature}) -> ({types}) {{\n{body}\n  return {names} : {types}\n}}\n"

    def argument(self, dtype: str, shape: Sequence[Dim]) -> Value:
        value = Value(f"%a{len(self.arguments)}", dtype, tuple(shape))
        data = np.random.default_rng(self.rng.getrandbits(32)).uniform(-1, 1, [dim.size for dim in shape])
        if dtype in ("i64", "i1"):
            data = np.round(data * (3 if dtype == "i64" else 1))
        self.arguments.append((value, np.round(data, 2).astype(DTYPES[dtype])))
        return value

    def row(self) -> tuple[Dim, ...]:
        return self.rng.choice([(), (), (self.dims[0],), (self.dims[1],), tuple(self.dims)])

    # -- scans -----------------------------------------------------------------------------------------------

    def steps(self, depth: int) -> _Steps:
        rng = self.rng
        if depth == 0 and self.counts and rng.random() < 0.7:
            return self.counts[-1]
        size = rng.choice([0, 1, 2, 3, 4, 6] if depth == 0 else [0, 1, 2, 3])
        if depth or rng.random() < 0.3:
            steps = _Steps(self.w.constant(size), size, True)
        else:
            scalar = self.argument("i64", ())
            self.arguments[-1] = (scalar, np.asarray(size))
            integer = self.w.raw(f"tensor.extract {scalar.name}[] : {scalar.type}")
            steps = _Steps(self.w.raw(f"arith.index_cast {integer} : i64 to index"), size, False)
        if depth == 0:
            self.counts.append(steps)
        return steps

    def scan(self, pool: list[Value], depth: int) -> None:
        """Emits a scan and some uses of its results, which become part of the pool."""
        rng, w = self.rng, self.w
        steps, reverse = self.steps(depth), rng.random() < 0.3
        if depth == 0 and rng.random() < 0.6:
            reverse = self.reverse
        stop = self.limits.whiles and rng.random() < 0.25
        self.note(reverse=reverse, nested=depth > 0, zero_steps=steps.size == 0, one_step=steps.size == 1)
        sequences = [self.sequence(pool, steps, depth) for _ in range(rng.randint(0, 2))]
        states = self.states(pool, depth)
        t = f"%t{w.number()}"
        outer, w.lines = w.lines, []
        inner = list(pool) + self.sequence_rows(sequences, steps, t)
        previous = {state.name: self.state_rows(state, t) for state in states}
        inner += [row for rows in previous.values() for row in rows if rng.random() < 0.8]
        if depth == 0 and self.limits.nested and rng.random() < 0.3:
            self.scan(inner, depth + 1)
        results = self.declare(states, previous, inner, steps, stop)
        self.end(inner, t, stop)
        body, w.lines = w.lines, outer
        attributes = f'name = "loop{w.number()}", reverse = {str(reverse).lower()}'
        text = "\n".join(body)
        loop = w.raw(
            f'"graphc.scan"({steps.index}) ({{\n  ^bb0({t}: index):\n{text}\n  }}) {{{attributes}}} : '
            "(index) -> !graphc.loop"
        )
        for result in results:
            self.use(result, loop, pool, steps, depth)
        if rng.random() < 0.3:
            self.use_steps(loop, pool, depth)

    def note(self, **features: bool) -> None:
        self.features |= {name.rstrip("_").replace("_", "-") for name, present in features.items() if present}

    def sequence(self, pool: list[Value], steps: _Steps, depth: int) -> tuple[Value, int]:
        """A stack of enough rows, and how far beyond the step it may be read."""
        rng, w = self.rng, self.w
        made = [value for value in self.stacks if value.shape[0].size >= steps.size]
        if made and depth == 0 and rng.random() < 0.6:
            self.note(consumer=True)
            return made[-1], made[-1].shape[0].size - steps.size
        stacks = [value for value in pool if value.shape and value.shape[0].size >= steps.size]
        if stacks and (depth or rng.random() < 0.35):
            chosen = rng.choice(stacks[-4:])
            return chosen, chosen.shape[0].size - steps.size
        rows = [value for value in pool if len(value.shape) < 2 and w.knows(value.shape)]
        if rng.random() < 0.25 and rows:
            row = rng.choice(rows)
            self.note(broadcast=True)
            dim = Dim(steps.size, steps.constant)
            sizes = [steps.index, *(w.size(d) for d in row.shape)]
            return w.op("broadcast_to", [row], row.dtype, (dim, *row.shape), extra=sizes), 0
        row_shape = self.row()
        extra = rng.choice([0, 0, 1, 3])
        dim = Dim(steps.size + extra, rng.random() < 0.4)
        if depth:
            stack = w.literal("f64", (Dim(dim.size, True),), rng)
            return stack, extra
        return self.argument(rng.choice(self.limits.dtypes), (dim, *row_shape)), extra

    def sequence_rows(self, sequences: list[tuple[Value, int]], steps: _Steps, t: str) -> list[Value]:
        rng, w, rows = self.rng, self.w, []
        for stack, extra in sequences:
            offsets = {rng.randint(0, extra) for _ in range(2)} if rng.random() < 0.4 else {0}
            for offset in sorted(offsets):
                index = t if not offset else w.index("arith.addi", [t, w.constant(offset)])
                if rng.random() < 0.1:
                    last = w.index("arith.subi", [steps.index, w.constant(1)])
                    index = w.index("arith.subi", [last, t])
                if stack.shape[0].size > 0 and rng.random() < 0.1:
                    index = w.constant(0)
                rows += [
                    w.op("scan_seq", [stack], stack.dtype, stack.shape[1:], extra=[index])
                    for _ in range(rng.choice([1, 1, 1, 1, 2]))
                ]
        return rows

    def states(self, pool: list[Value], depth: int) -> list[_State]:
        rng, states = self.rng, []
        for number in range(rng.choice([0, 1, 1, 2, 3])):
            if states and rng.random() < 0.3:
                twin = rng.choice(states)
                self.note(twins=True)
                seed = twin.seed if rng.random() < 0.7 else rng.getrandbits(32)
                states.append(_State(f"s{number}", twin.initial, twin.taps, twin.writes, seed))
                continue
            window = rng.choice([1, 1, 1, 2, 3])
            taps = [-window, *(tap for tap in range(1 - window, 0) if rng.random() < 0.6)]
            older = [w for w in range(1 - window, 0) if rng.random() < 0.5]
            writes = [*older, 0] if self.limits.writes and rng.random() < 0.35 else [0]
            self.note(mit_sot=window > 1, mit_mot=len(writes) > 1)
            initial = self.initial(pool, window, depth)
            states.append(_State(f"s{number}", initial, taps, writes, rng.getrandbits(32)))
        return states

    def initial(self, pool: list[Value], window: int, depth: int) -> Value:
        rng, w = self.rng, self.w
        rows = [value for value in pool if len(value.shape) < 2 and w.knows(value.shape)]
        if window == 1 and rows and (depth or rng.random() < 0.25):
            row = rng.choice(rows)
            order = ", ".join(map(str, (-1, *range(len(row.shape)))))
            return w.op("dimshuffle", [row], row.dtype, (ONE, *row.shape), f"order = array<i64: {order}>")
        if depth:
            return w.literal("f64", (Dim(window, True),), rng)
        return self.argument(rng.choice(self.limits.dtypes), (Dim(window, rng.random() < 0.5), *self.row()))

    def state_rows(self, state: _State, t: str) -> list[Value]:
        rng, rows = self.rng, []
        for tap in state.taps:
            if rng.random() < 0.85:
                attributes = f'state = "{state.name}", tap = {tap} : i64'
                rows.append(self.w.op("scan_prev", [], state.initial.dtype, state.row, attributes, [t]))
        return rows

    def declare(
        self,
        states: list[_State],
        previous: dict[str, list[Value]],
        pool: list[Value],
        steps: _Steps,
        stop: bool,
    ) -> list[_Result]:
        rng, results = self.rng, []
        for state in states:
            own = Random(state.seed)  # equal seeds give equal functions of the state's own rows
            shared = [value for value in pool if value not in previous[state.name]]
            rows = [self.next_row(own, state, previous[state.name], shared) for _ in state.writes]
            operands = ", ".join(value.name for value in (state.initial, *rows))
            types = ", ".join(value.type for value in (state.initial, *rows))
            least = min(steps.size, 1) if stop else steps.size
            keep, result = self.retention(state, len(states), steps, stop, -state.taps[0], least)
            attributes = (
                f'state = "{state.name}", taps = array<i64: {", ".join(map(str, state.taps))}>, '
                f"writes = array<i64: {', '.join(map(str, state.writes))}>, {keep}"
            )
            self.w.lines.append(f'    "graphc.scan_carry"({operands}) {{{attributes}}} : ({types}) -> ()')
            results.append(result)
            pool += rows
        for number in range(rng.choice([0, 1, 1, 2])):
            dtype, row = rng.choice(self.limits.dtypes), self.row()
            value = (
                rng.choice(pool[-5:])
                if pool and rng.random() < 0.5
                else expression(self.w, rng, pool, dtype, row)
            )
            if rng.random() < 0.15 and len(value.shape) == 0:
                value = self.w.op("dimshuffle", [value], value.dtype, (ONE,), "order = array<i64: -1>")
            least = min(steps.size, 1) if stop else steps.size
            keep, result = self.retention(value, number, steps, stop, 0, least)
            self.w.lines.append(
                f'    "graphc.scan_collect"({value.name}) {{state = "y{number}", {keep}}} : '
                f"({value.type}) -> ()"
            )
            results.append(result)
        return results

    def next_row(self, own: Random, state: _State, rows: list[Value], shared: list[Value]) -> Value:
        dtype = state.initial.dtype
        kind = own.random()
        if rows and kind < 0.12:
            return own.choice(rows)
        same = [value for value in shared if value.dtype == dtype and value.shape == state.row]
        if same and kind < 0.2:
            return same[own.randrange(len(same))]
        if rows and dtype in ("f64", "f32") and kind < 0.5:
            factor = self.w.literal(dtype, (ONE,) * len(state.row), own)
            scaled = self.w.op("mul", [factor, rows[-1]], dtype, state.row)
            term = expression(self.w, own, shared, dtype, state.row, depth=1)
            return self.w.op("add", [scaled, term], dtype, state.row)
        value = expression(self.w, own, [*shared, *rows, *rows], dtype, state.row)
        return self.w.op("tanh", [value], dtype, state.row) if dtype in ("f64", "f32") else value

    def retention(
        self, source: Any, number: int, steps: _Steps, stop: bool, window: int, least: int
    ) -> tuple[str, _Result]:
        rng = self.rng
        value = source.initial if isinstance(source, _State) else source
        row = source.row if isinstance(source, _State) else source.shape
        name = source.name if isinstance(source, _State) else f"y{number}"
        keep = rng.choice(["all", "all", "steps", "last"] if window else ["all", "steps", "steps", "last"])
        if keep == "last" and self.limits.last:
            rows = rng.randint(0, window + least)
            return f'keep = "last", rows = {rows} : i64', _Result(name, value.dtype, row, rows, rows)
        keep = "all" if keep == "last" else keep
        kept = window if keep == "all" else 0
        return f'keep = "{keep}"', _Result(
            name, value.dtype, row, None if stop else kept + steps.size, kept + least
        )

    def end(self, pool: list[Value], t: str, stop: bool) -> None:
        rng, w = self.rng, self.w
        if not stop:
            w.lines.append('    "graphc.scan_end"() : () -> ()')
            return
        self.note(while_=True)
        if rng.random() < 0.2:
            flag = w.raw(f"arith.constant {rng.choice(['true', 'false', 'false'])}")
        elif rng.random() < 0.3:
            flag = w.raw(f"arith.cmpi eq, {t}, {w.constant(rng.randint(0, 3))} : index")
        else:
            condition = expression(w, rng, pool, "i1", ())
            flag = w.raw(f"tensor.extract {condition.name}[] : {condition.type}")
        w.lines.append(f'    "graphc.scan_end"({flag}) : (i1) -> ()')

    # -- uses of results -------------------------------------------------------------------------------------

    def use(self, result: _Result, loop: str, pool: list[Value], steps: _Steps, depth: int) -> None:
        """Takes a result, whole or in part, once, twice or not at all."""
        rng, w = self.rng, self.w
        for _ in range(rng.choice([0, 1, 1, 2])):
            size = result.rows if result.rows is not None else -1
            leading = Dim(size, steps.constant and size >= 0 and rng.random() < 0.5)
            attributes = f'state = "{result.name}"'
            trace = w.op("scan_trace", [], result.dtype, (leading, *result.row), attributes, loop=loop)
            kind = rng.choice(["whole", "whole", "last row", "tail", "head", "last two", "sum"])
            value = part(w, trace, kind, result.at_least)
            if value is trace and size < 0:
                self.results.append(value) if depth == 0 else pool.append(total(w, trace))
                continue
            pool.append(value)
            if depth == 0:
                self.results.append(value)
                self.stacks += [value] if kind in ("whole", "tail") and value.shape else []

    def use_steps(self, loop: str, pool: list[Value], depth: int) -> None:
        w = self.w
        steps = w.raw(f'"graphc.scan_steps"({loop}) : (!graphc.loop) -> index')
        integer = w.raw(f"arith.index_cast {steps} : index to i64")
        value = Value(w.raw(f"tensor.from_elements {integer} : tensor<i64>"), "i64", ())
        pool.append(value)
        if depth == 0:
            self.results.append(value)
