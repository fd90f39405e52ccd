# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Functions with hundreds of inputs: their code is a loop over these, and right."""

from __future__ import annotations

import numpy as np
import pytest

import graphc
import graphc.tensor as pt
from graphc.backends.cpu import generate
from graphc.backends.cpu.entry import entry_ir
from graphc.backends.cpu.generate import LOADING, MANY_ARGUMENTS, load_arguments
from graphc.native.parts import Part
from graphc_runtime.manifest import ArraySpec, Signature


@pytest.mark.parametrize("tier", ["struct", "buffer"])
def test_entries_do_not_grow(tier):
    """Lines of an entry, for inputs of two kinds."""

    def lines(count: int) -> int:
        inputs = (*[ArraySpec("float64", (None,))] * count, *[ArraySpec("int32", (3, None))] * count)
        return entry_ir(Signature(inputs, outputs=(ArraySpec("float64", ()),)), (tier,)).count("\n")

    # What counts elements takes no line for each either.
    assert lines(300) == lines(100) < lines(4) + 60


def test_entries_take_the_lowest_level_of_code_generation(monkeypatch):
    """The kernel alone takes a higher one."""
    levels = []

    def note(text, *rest, **keywords):
        levels.append((keywords["level"], keywords["finished"]))
        return Part(text, *rest, **keywords)

    monkeypatch.setattr(generate, "Part", note)
    x = pt.dvector("x")
    with graphc.config.change_flags(cache_dir=""):
        f = graphc.function([x], [x + float(i) for i in range(3)])
    np.testing.assert_array_equal(f([1.0, 2.0])[2], [3.0, 4.0])
    with pytest.raises(TypeError, match="x"):
        f([[1.0]])
    assert levels == [(0, True)] * 2  # the entry, and what all entries call; no memory is taken


def test_long_kernels_load_their_arguments():
    """The numbers of values stay those of the text."""
    count = MANY_ARGUMENTS // 5 + 1
    names = [
        f"ptr %{i}, ptr noalias %{i + 1}" + "".join(f", i64 %{i + j}" for j in (2, 3, 4))
        for i in range(1, 5 * count, 5)
    ]
    last = 5 * count + 1
    text = (
        f"define internal i64 @main(ptr %0, {', '.join(names)}) {{\n"
        f"  br label %{last + 1}\n\n{last + 1}:  ; preds = %{last}\n  ret i64 %4\n}}\n"
    )
    found = load_arguments(text, [(None,)] * count, [])
    lines = [line.strip() for line in found.splitlines()]
    assert lines[:2] == ["define internal i64 @main(ptr %ctx, ptr %data, ptr %dims) {", LOADING]
    assert f"%{last - 1} = add i64 1, 0" in lines and f"{last}:" in lines
    assert load_arguments(text, [(None,)] * (count - 1), []) == text


@pytest.mark.parametrize("tier", ["struct", "buffer"])
def test_many_inputs_of_several_kinds(tier, monkeypatch):
    monkeypatch.setenv("GRAPHC_CALL_TIER", tier)
    vectors = [pt.dvector(f"v{i}") for i in range(60)]
    numbers = [pt.iscalar(f"n{i}") for i in range(30)]
    rows = [pt.tensor(f"r{i}", dtype="float32", shape=(2, None)) for i in range(30)]
    results = [sum(vectors[1:], vectors[0]), pt.stack(numbers), pt.concatenate(rows, axis=1)]
    # One that is written to stands between the others.
    inputs = [*vectors[:30], graphc.In(vectors[30], mutable=True), *vectors[31:], *numbers, *rows]
    with graphc.config.change_flags(cache_dir=""):
        f = graphc.function(inputs, results)
    assert f.report.fast_call == (tier == "struct")

    def values(length: int):
        yield from (np.full(length, float(i)) for i in range(60))
        yield from (np.asarray(i, "int32") for i in range(30))
        yield from (np.full((2, i % 3), i, "float32") for i in range(30))

    for length in (0, 1, 50):
        given = list(values(length))
        total, numbered, joined = f(*given)
        np.testing.assert_array_equal(total, np.full(length, 59.0 * 30))
        np.testing.assert_array_equal(numbered, np.arange(30))
        np.testing.assert_array_equal(joined, np.concatenate(given[90:], axis=1))
    given = list(values(3))
    given[7] = [7, 7, 7]  # is converted by the fallback
    np.testing.assert_array_equal(f(*given)[0], np.full(3, 59.0 * 30))
    out = [np.zeros(3), np.zeros(30, "int32"), np.zeros((2, 30), "float32")]
    given = list(values(3))
    assert f(*given, out=out)[0] is out[0] and out[0][0] == 59.0 * 30
    # A result that overlaps an input of a run.
    memory = np.arange(6.0)
    given = list(values(3))
    given[12] = memory[:3]
    expected = sum(given[:60])
    assert f(*given, out=[memory[1:4], *out[1:]])[0] is not given[12]
    np.testing.assert_array_equal(memory[1:4], expected)
    for wrong, error in ((np.zeros(4), ValueError), (np.zeros((3, 3)), TypeError)):
        given[20] = wrong
        with pytest.raises(error, match=r"v20|20"):
            f(*given)
