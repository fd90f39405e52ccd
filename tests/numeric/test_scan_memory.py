# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""scan-save-mem on graphs that index the results of scans the way users do, for all small lengths."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from itertools import product
from random import Random
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import graphc.tensor as pt
from graphc.backends.interpret.interpreter import run_function
from graphc.emit import emit_module
from graphc.graph.function_graph import FunctionGraph
from graphc.ir.scan_view import retention, scans
from graphc.ir.walk import walk
from graphc.passes.run import run_pipeline
from graphc.scan import spec as roles
from graphc.scan.op import Scan
from graphc_dialects._mlir import ir
from graphc_dialects.dialect import new_context

TIDY = ["canonicalize,cse", "graphc-shape-simplification", "canonicalize,cse"]
PASS = "graphc-scan-save-mem"
LENGTHS = (0, 1, 2, 3, 4, 5, 9, 13)
Index = Any
Take = Callable[[Any, Any, Any], Sequence[Any]]


def scan_module(
    take: Take, *, taps: tuple[int, ...] = (-1,), reverse: bool = False, steps: Any = None
) -> str:
    """A module with one scan over `x` (a state `h` of rows of 2, an output `y` of scalars).

    Args:
        take: what is returned, from the traces of h and y and a symbolic integer k.
        taps: of the state. reverse: run backwards. steps: number of steps, the length of x if None.
    """
    x_t, k = pt.dscalar("x_t"), pt.lscalar("k")
    rows = [pt.dvector(f"h{tap}") for tap in taps]
    spec = roles.ScanSpec(
        sequences=(roles.Sequence("x"),), states=(roles.State("h", taps),), outputs=(roles.Output("y"),)
    )
    new = sum((row * 0.5 for row in rows[1:]), rows[0] * 0.25) + x_t
    op = Scan(spec, [x_t, *rows], [new, new.sum() * 2], name="loop", reverse=reverse)
    x, h0 = pt.dvector("x"), pt.dmatrix("h0")
    h, y = op(x.shape[0] if steps is None else steps, x, h0)
    return emit_module(FunctionGraph([x, h0, k], list(take(h, y, k)))).text


def outcome(module: Any, inputs: Sequence[Any]) -> Any:
    try:
        return run_function(module, inputs)
    except (ValueError, IndexError) as error:
        return type(error).__name__


def inputs_for(length: int, window: int, k: int = 2) -> list[Any]:
    rng = np.random.default_rng(length)
    return [rng.normal(size=length), rng.normal(size=(window, 2)), np.asarray(k)]


def values_of_k(name: str) -> tuple[int, ...]:
    """The values of k that a case can tell apart."""
    return (-3, 0, 2, 20) if " k" in name else (2,)


def assert_saves(text: str, calls: Sequence[list[Any]], passes: Sequence[str] = (PASS,)) -> str:
    """Asserts that all calls give the same before and after; returns the module after."""
    with new_context(), ir.Location.unknown():
        before, after = ir.Module.parse(text), ir.Module.parse(text)
        run_pipeline(after, [*TIDY, *passes, "canonicalize,cse"], verify_each=True)
        for inputs in calls:
            want, have = outcome(before, inputs), outcome(after, inputs)
            if isinstance(want, str) or isinstance(have, str):
                assert want == have, f"{want}, then {have}, for {inputs}\n{after}"
                continue
            for a, b in zip(want, have, strict=True):
                np.testing.assert_array_equal(a, b, err_msg=f"{inputs}\n{after}")
        return str(after)


def kept(text: str) -> dict[str, tuple[str, int | None]]:
    with new_context():
        module = ir.Module.parse(text)
        operations = walk(module.operation)
        return {
            op.attributes["state"].value: retention(op)
            for op in operations
            if op.name in ("graphc.scan_carry", "graphc.scan_collect")
        }


def iterations(text: str, inputs: list[Any]) -> int:
    """How many iterations the only scan of a module runs."""
    with new_context(), ir.Location.unknown():
        module = ir.Module.parse(text)
        scan = scans(module.operation)[0]
        function = next(iter(module.body.operations))
        terminator = list(function.regions[0].blocks[0].operations)[-1].operation
        with ir.InsertionPoint(terminator):
            count = ir.Operation.create("graphc.scan_steps", [ir.IndexType.get()], [scan.results[0]]).result
            ir.Operation.create("func.return", operands=[count])
        terminator.erase()
        function.attributes["function_type"] = ir.TypeAttr.get(
            ir.FunctionType.get([a.type for a in function.regions[0].blocks[0].arguments], [count.type])
        )
        return int(run_function(module, inputs)[0])


ALL, STEPS, NOTHING = ("all", None), ("steps", None), ("last", 0)


def last(rows: int) -> tuple[str, int]:
    return "last", rows


# What is returned; what is kept of h and y with taps (-1,), and with taps (-3, -1).
CASES: dict[str, tuple[Take, Any, Any]] = {
    "nothing but the length": (lambda h, y, k: [h.shape[0] + y[1:].shape[0]], None, None),
    "everything": (lambda h, y, k: [h, y], (ALL, STEPS), (ALL, STEPS)),
    "all steps": (lambda h, y, k: [h[1:], h[3:]], (STEPS, NOTHING), (ALL, NOTHING)),
    "steps of three": (lambda h, y, k: [h[3:]], (STEPS, NOTHING), (STEPS, NOTHING)),
    "last": (lambda h, y, k: [h[-1]], (last(1), NOTHING), (last(1), NOTHING)),
    "last of steps": (lambda h, y, k: [h[1:][-1]], (last(1), NOTHING), (last(1), NOTHING)),
    "last of an output": (lambda h, y, k: [y[-1], y[-1] * 2], (NOTHING, last(1)), (NOTHING, last(1))),
    "two last": (lambda h, y, k: [h[-2:]], (last(2), NOTHING), (last(2), NOTHING)),
    "two last steps": (lambda h, y, k: [h[1:][-2:], y[-3:]], (last(2), last(3)), (last(2), last(3))),
    "twenty last": (lambda h, y, k: [h[-20:]], (ALL, NOTHING), (ALL, NOTHING)),
    "the last but one": (lambda h, y, k: [h[-2]], (last(1), NOTHING), (last(2), NOTHING)),
    "the last but three of an output": (lambda h, y, k: [y[-4]], (NOTHING, last(1)), (NOTHING, last(1))),
    "last and all": (lambda h, y, k: [h[-1], h], (ALL, NOTHING), (ALL, NOTHING)),
    "last element": (lambda h, y, k: [h[-1, 1]], (last(1), NOTHING), (last(1), NOTHING)),
    "last of a column": (lambda h, y, k: [h[:, 1][-1]], (last(1), NOTHING), (last(1), NOTHING)),
    "last through moved axes": (lambda h, y, k: [h.T[0][-1]], (last(1), NOTHING), (last(1), NOTHING)),
    "initial": (lambda h, y, k: [h[0], h[1:]], (STEPS, NOTHING), (ALL, NOTHING)),
    "initial and last": (lambda h, y, k: [h[0], h[-1]], (last(1), NOTHING), (last(1), NOTHING)),
    "backwards": (lambda h, y, k: [h[1:][::-1]], (STEPS, NOTHING), (ALL, NOTHING)),
    "all backwards": (lambda h, y, k: [h[::-1]], (ALL, NOTHING), (ALL, NOTHING)),
    "every second": (lambda h, y, k: [h[1::2]], (STEPS, NOTHING), (ALL, NOTHING)),
    "every second step": (lambda h, y, k: [h[1:][::2], h[1:][1::3]], (STEPS, NOTHING), (ALL, NOTHING)),
    "head": (lambda h, y, k: [y[:4]], (NOTHING, STEPS), (NOTHING, STEPS)),
    "heads": (lambda h, y, k: [y[:4], h[:2], h[3]], (ALL, STEPS), (STEPS, STEPS)),
    "row 3": (lambda h, y, k: [h[3]], (last(1), NOTHING), (last(1), NOTHING)),
    "rows 5 to 7": (lambda h, y, k: [h[5:7]], (last(2), NOTHING), (last(2), NOTHING)),
    "all but the last": (lambda h, y, k: [h[:-1], y[:-2]], (ALL, STEPS), (ALL, STEPS)),
    "up to k": (lambda h, y, k: [y[:k], h[1:][:k]], (STEPS, STEPS), (ALL, STEPS)),
    "from k": (lambda h, y, k: [y[k:], h[k:]], (ALL, STEPS), (ALL, STEPS)),
    "a row by an array": (
        lambda h, y, k: [h[np.array([-1])], h[np.array([[-1]])], y.take(np.int64(-1), axis=0)],
        (last(1), last(1)),
        (last(1), last(1)),
    ),
    "rows by an array": (lambda h, y, k: [h[np.array([-1, 0])]], (ALL, NOTHING), (ALL, NOTHING)),
    "row k": (lambda h, y, k: [h[k]], (last(1), NOTHING), (last(3), NOTHING)),
    "row k of an output": (lambda h, y, k: [y[k]], (NOTHING, last(1)), (NOTHING, last(1))),
    "row k from the end, by k": (lambda h, y, k: [h[-k]], (last(1), NOTHING), (last(3), NOTHING)),
    "row n - k": (lambda h, y, k: [h[y.shape[0] - k]], (last(1), NOTHING), (last(3), NOTHING)),
    "row n - 3": (lambda h, y, k: [h[y.shape[0] - 3]], (last(1), NOTHING), (last(3), NOTHING)),
    "row n - 3 of an output": (lambda h, y, k: [y[y.shape[0] - 3]], (NOTHING, last(1)), (NOTHING, last(1))),
    "rows n - 3 and n - 5": (
        lambda h, y, k: [h[y.shape[0] - 3], h[y.shape[0] - 5]],
        (last(4), NOTHING),
        (last(6), NOTHING),
    ),
    "row k twice, by k": (lambda h, y, k: [h[k], h[k] + 1], (last(1), NOTHING), (last(3), NOTHING)),
    "rows k and k + 1, by k": (lambda h, y, k: [h[k], h[k + 1]], (ALL, NOTHING), (ALL, NOTHING)),
    "row k and all after it, by k": (lambda h, y, k: [h[k], h[k:]], (ALL, NOTHING), (ALL, NOTHING)),
    "row k of both, by k": (lambda h, y, k: [h[k], y[k]], (ALL, STEPS), (ALL, STEPS)),
}


@pytest.mark.parametrize("name", CASES)
@pytest.mark.parametrize("taps", [(-1,), (-3, -1)])
def test_what_is_kept(name: str, taps: tuple[int, ...]) -> None:
    take, *expected = CASES[name]
    text = scan_module(take, taps=taps)
    window = -taps[0]
    after = assert_saves(text, [inputs_for(n, window, k) for n, k in product(LENGTHS, values_of_k(name))])
    wanted = expected[0 if taps == (-1,) else 1]
    assert kept(after) == dict(zip("hy", wanted or (), strict=False)), after


@pytest.mark.parametrize("name", CASES)
@pytest.mark.parametrize("taps", [(-1,), (-3, -1)])
def test_backwards(name: str, taps: tuple[int, ...]) -> None:
    text = scan_module(CASES[name][0], taps=taps, reverse=True)
    assert_saves(text, [inputs_for(n, -taps[0], k) for n, k in product(LENGTHS, values_of_k(name))])


@pytest.mark.parametrize("steps", [0, 1, 5])
@pytest.mark.parametrize("reverse", [False, True])
@pytest.mark.parametrize("name", CASES)
def test_constant_lengths(name: str, steps: int, reverse: bool) -> None:
    try:
        text = scan_module(CASES[name][0], steps=steps, reverse=reverse)
    except IndexError:
        return  # the graph cannot even be built
    after = assert_saves(text, [inputs_for(steps, 1, k) for k in values_of_k(name)])
    if name == "two last" and steps and not reverse:
        assert kept(after)["h"] == (("last", 2) if steps > 1 else ("all", None))


@pytest.mark.parametrize(
    ("name", "reverse", "wanted"),
    [
        ("head", False, 4),
        ("heads", False, 4),
        ("row 3", False, 3),
        ("rows 5 to 7", False, 6),
        ("up to k", False, 2),
        ("row n - 3", False, 10),
        ("row n - k", False, 11),
        ("row k from the end, by k", False, 12),
        ("row k of an output", False, 3),
        ("the last but one", False, 12),
        ("all but the last", False, 12),
        ("last", False, 13),
        ("everything", False, 13),
        ("from k", False, 13),
        ("last of an output", True, 1),
        ("the last but three of an output", True, 4),
    ],
)
def test_iterations(name: str, reverse: bool, wanted: int) -> None:
    inputs = inputs_for(13, 1)
    after = assert_saves(scan_module(CASES[name][0], reverse=reverse), [inputs])
    assert iterations(after, inputs) == wanted


# Indices that are known at run time, from the number of rows and k.
SYMBOLIC: dict[str, Callable[[Any, Any], Any]] = {
    "k": lambda size, k: k,
    "-k": lambda size, k: -k,
    "n - k": lambda size, k: size - k,
    "n - 3": lambda size, k: size - 3,
}
INDICES = st.one_of(
    st.integers(-5, 5),
    st.sampled_from(sorted(SYMBOLIC)),
    st.builds(
        slice,
        st.none() | st.integers(-5, 5),
        st.none() | st.integers(-5, 5),
        st.none() | st.sampled_from([-3, -2, -1, 1, 1, 2, 3]),
    ),
)


@given(
    chains=st.lists(
        st.tuples(st.booleans(), st.lists(INDICES, min_size=1, max_size=3)), min_size=1, max_size=3
    ),
    window=st.integers(1, 3),
    reverse=st.booleans(),
    again=st.booleans(),
)
def test_random_indices(
    chains: list[tuple[bool, list[Index]]], window: int, reverse: bool, again: bool
) -> None:
    """Chains of indices: the rows first, then, after an integer, what is left of a row."""

    def take(h: Any, y: Any, k: Any) -> list[Any]:
        found = []
        for of_state, indices in chains:
            value = h if of_state else y
            for index in indices[: 3 if value.ndim else 0]:
                if value.ndim:
                    value = value[SYMBOLIC[index](value.shape[0], k) if isinstance(index, str) else index]
            found.append(value)
        return found

    taps = tuple(sorted({-window, -1}))
    try:
        text = scan_module(take, taps=taps, reverse=reverse)
    except IndexError:
        return  # an index into a row of 2 is out of bounds
    calls = [inputs_for(n, window, k) for n, k in product(LENGTHS, (2, 5))]
    assert_saves(text, calls, [PASS, *TIDY, PASS] if again else [PASS])


@pytest.mark.parametrize("seed", range(5))
def test_two_scans(seed: int) -> None:
    """A scan that reads few rows of another one lets that one run fewer iterations."""
    rng = Random(seed)
    count = rng.randint(1, 4)
    x_t, h = pt.dscalar("x_t"), pt.dscalar("h")
    spec = roles.ScanSpec(sequences=(roles.Sequence("x"),), states=(roles.State("h"),))
    op = Scan(spec, [x_t, h], [h * 0.5 + x_t], name="loop", reverse=rng.random() < 0.5)
    x, h0, k = pt.dvector("x"), pt.dvector("h0"), pt.lscalar("k")
    first = op(x.shape[0], x, h0)
    second = op(first.shape[0] - 1, first[:-1], h0)
    text = emit_module(FunctionGraph([x, h0, k], [second[1 : 1 + count], second[0]])).text
    calls = [[np.arange(float(n)), np.ones(1), np.asarray(0)] for n in LENGTHS]
    assert_saves(text, calls)
    assert_saves(text, calls, [PASS, *TIDY, PASS])
