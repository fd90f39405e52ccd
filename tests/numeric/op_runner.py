# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Runs cases of `op_table`: many in one compiled function, over sizes and memory layouts."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from op_table import CASES, TOLERANCES, Argument, Case

import graphc

# Memory layouts -----------------------------------------------------------------------------------


def _spaced(x: np.ndarray) -> np.ndarray:
    wide = np.zeros((*x.shape[:-1], 2 * x.shape[-1]), x.dtype) if x.ndim else np.zeros(2, x.dtype)
    part = wide[..., ::2] if x.ndim else wide[1:].reshape(())
    part[...] = x
    return part


def _reversed(x: np.ndarray) -> np.ndarray:
    return np.ascontiguousarray(np.flip(x))[(slice(None, None, -1),) * x.ndim] if x.ndim else x.copy()


def _read_only(x: np.ndarray) -> np.ndarray:
    x = x.copy()
    x.flags.writeable = False
    return x


def _unaligned(x: np.ndarray) -> np.ndarray:
    memory = np.zeros(x.nbytes + 1, np.uint8)
    part = memory[1:].view(x.dtype).reshape(x.shape) if x.size else x.copy()
    part[...] = x
    return part


LAYOUTS: dict[str, Callable[[np.ndarray], np.ndarray]] = {
    "plain": np.array,
    "spaced": _spaced,
    "negative strides": _reversed,
    "read-only": _read_only,
    "Fortran order": lambda x: np.array(x, order="F"),
    "unaligned": _unaligned,
    "byte-swapped": lambda x: x.astype(x.dtype.newbyteorder()),
}


def _permuted(x: np.ndarray) -> np.ndarray:
    """No axis is where another order would have it."""
    order = np.roll(np.arange(x.ndim), 1)
    return np.ascontiguousarray(x.transpose(order)).transpose(np.argsort(order)) if x.ndim else x.copy()


def _of_records(x: np.ndarray) -> np.ndarray:
    """A field, beside which lie numbers of one byte."""
    records = np.zeros(x.shape, [("other", "i1"), ("x", x.dtype)])
    records["x"] = x
    return records["x"]


def _repeated(x: np.ndarray) -> np.ndarray:
    """Rows that are equal are one in memory."""
    is_one = x.ndim > 0 and len(x) > 0 and bool((x == x[:1]).all())
    return np.broadcast_to(x[:1].copy(), x.shape) if is_one else _inside(x)


def _inside(x: np.ndarray) -> np.ndarray:
    """A part of a larger array, of every second row from the last one on."""
    if not x.ndim:
        return x.copy()
    wide = np.ones(tuple(2 * size + 3 for size in x.shape), x.dtype)
    part = wide[tuple(slice(2 * size, 0, -2) for size in x.shape)]
    part[...] = x
    return part


# Also those that tests of single operations do without.
VIEWS: dict[str, Callable[[np.ndarray], np.ndarray]] = {
    **LAYOUTS,
    "permuted axes": _permuted,
    "field of records": _of_records,
    "repeated": _repeated,
    "inside": _inside,
}


# Groups of cases in one function ------------------------------------------------------------------


@dataclass
class Group:
    """Cases of one dtype and choice of sizes, as one graph; equal arguments are one input."""

    dtype: str
    sizes: tuple[int, ...]
    python: bool
    cases: list[Case] = field(default_factory=list)
    inputs: dict[Argument, Any] = field(default_factory=dict)
    outputs: list[list[Any]] = field(default_factory=list)

    def __str__(self) -> str:
        families = ", ".join(dict.fromkeys(case.family for case in self.cases))
        return f"{families}-{self.dtype}-{'-'.join(map(str, self.sizes))}{'-python' if self.python else ''}"

    def build(self) -> None:
        """Make the graph."""
        if not self.outputs:
            for case in self.cases:
                for argument in case.arguments:
                    if argument not in self.inputs:
                        self.inputs[argument] = argument.variable(self.dtype)
                self.outputs.append(case.symbolic([self.inputs[a] for a in case.arguments]))

    def compile(self, mode: str) -> Any:
        """One function of all cases.

        Raises:
            AssertionError: naming the cases that do not compile.
        """
        self.build()
        flat = [y for ys in self.outputs for y in ys]
        try:
            f = graphc.function(list(self.inputs.values()), flat, mode=mode, on_unused_input="ignore")
        except Exception as error:
            raise AssertionError("\n".join(self._broken(mode)) or f"together only: {error}") from error
        if mode != "reference" and not self.python:
            fallen = [str(fallback) for fallback in f.report.fallbacks]
            assert not fallen, f"not machine code: {fallen}"
        return f

    def _broken(self, mode: str) -> Iterator[str]:
        for case, ys in zip(self.cases, self.outputs, strict=True):
            try:
                graphc.function(list(self.inputs.values()), ys, mode=mode, on_unused_input="ignore")
            except Exception as error:
                yield f"{case.name} of {self.dtype}: {type(error).__name__}: {error}"

    def check(self, mode: str, layouts: Sequence[str] = tuple(LAYOUTS)) -> None:
        """Run the function on all sizes and layouts.

        Raises:
            AssertionError: naming every case that differs from its reference.
        """
        f = self.compile(mode)
        failures: list[str] = []
        for n in self.sizes:
            arrays = {a: a.array(self.dtype, n) for a in self.inputs}
            expected = [case.expected([arrays[a].copy() for a in case.arguments]) for case in self.cases]
            for layout in layouts if n > 1 else ("plain", "negative strides"):
                values = [LAYOUTS[layout](x) for x in arrays.values()]
                results = f(*values)
                for value, x in zip(values, arrays.values(), strict=True):
                    np.testing.assert_array_equal(value, x, err_msg=f"an input was changed: {layout}")
                failures += self._differences(results, expected, f"n = {n}, {layout}")
            if failures:
                break
        assert not failures, f"{len(failures)} differ in mode {mode}:\n" + "\n".join(failures)

    def _differences(self, results: list[Any], expected: list[list[np.ndarray]], what: str) -> Iterator[str]:
        given = iter(results)
        for case, ys, want in zip(self.cases, self.outputs, expected, strict=True):
            got = [next(given) for _ in ys]
            if len(got) != len(want):
                yield f"{case.name} of {self.dtype}: {len(got)} results, expected {len(want)}"
                continue
            for i, (y, a, b) in enumerate(zip(ys, got, want, strict=True)):
                error = difference(case, y, a, b)
                if error:
                    yield f"{case.name} of {self.dtype}, result {i}, {what}: {error}"


def difference(case: Case, y: Any, got: Any, want: np.ndarray) -> str:
    """How a result differs from what is expected, or an empty text."""
    if got.dtype != y.type.dtype or (case.same_dtype and got.dtype != want.dtype):
        return f"dtype {got.dtype}, inferred {y.type.dtype}, expected {want.dtype}"
    if got.shape != want.shape:
        return f"shape {got.shape}, expected {want.shape}"
    if not y.type.is_valid_value(got):
        return f"shape {got.shape}, inferred {y.type}"
    if got.dtype.kind not in "fc":
        return "" if np.array_equal(got, want) else f"\n{got}\nexpected\n{want}"
    # A result of float32 and of float64 is as precise as the less precise one.
    tolerance = case.tolerance * max(TOLERANCES.get(x.dtype.name, 0.0) for x in (got, want))
    finite = np.abs(want[np.isfinite(want)].astype(np.complex128))
    scale = float(finite.max(initial=1e-30))
    with np.errstate(all="ignore"):
        good = np.allclose(got, want, rtol=tolerance, atol=tolerance * scale, equal_nan=True)
    return "" if good else f"\n{got}\nexpected\n{want}"


GROUP_SIZE = 40


def groups(
    cases: Sequence[Case] = tuple(CASES), choose: Callable[[int, Case], Collection[str]] | None = None
) -> list[Group]:
    """All cases for all their dtypes, in groups of at most `GROUP_SIZE`.

    Args:
        cases: of the table.
        choose: takes the number of a case and the case; gives the dtypes that are wanted, instead of all.
    """
    found: dict[Any, list[Group]] = {}
    for number, case in enumerate(cases):
        for dtype in case.dtypes if choose is None else choose(number, case):
            key = (dtype, case.sizes, bool(case.python))
            rows = found.setdefault(key, [Group(*key)])
            if len(rows[-1].cases) == GROUP_SIZE:
                rows.append(Group(*key))
            rows[-1].cases.append(case)
    return [group for rows in found.values() for group in rows]


# Gradients ----------------------------------------------------------------------------------------


def free_positions(case: Case) -> list[int]:
    """Positions of the arguments in which a case is differentiated."""
    if isinstance(case.gradient, tuple):
        return list(case.gradient)
    return [i for i, a in enumerate(case.arguments) if a.dtype is None] if case.gradient else []


def differentiable(case: Case) -> Callable[..., Any]:
    """The float outputs of a case as a function of the arguments in which it is differentiated."""
    n = max(min(case.sizes, key=lambda size: abs(size - 3)), 1)
    fixed = [a.array("float64", n) for a in case.arguments]
    free = free_positions(case)

    def function(*variables: Any) -> list[Any]:
        arguments: list[Any] = list(fixed)
        for position, variable in zip(free, variables, strict=True):
            arguments[position] = variable
        return [y for y in case.symbolic(arguments) if y.type.dtype.startswith(("float", "complex"))]

    return function


def gradient_point(case: Case) -> list[np.ndarray]:
    """Values of the arguments in which a case is differentiated."""
    n = max(min(case.sizes, key=lambda size: abs(size - 3)), 1)
    return [case.arguments[i].array("float64", n) for i in free_positions(case)]
