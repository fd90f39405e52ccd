# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Objects define what their kernel and their entry call, and no more: each function costs a millisecond."""

import numpy as np
import pytest

import graphc
import graphc.tensor as pt
from graphc.backends.cpu import generate
from graphc.backends.cpu.entry import entry_ir
from graphc.backends.cpu.entry_calls import helpers_ir
from graphc.native.parts import Part
from graphc_runtime.manifest import ArraySpec, Signature


@pytest.fixture
def texts(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """The texts of the parts that are made with a function."""
    made: list[str] = []

    def note(text: str, *arguments: object, **options: object) -> Part:
        made.append(text)
        return Part(text, *arguments, **options)  # type: ignore[arg-type]

    monkeypatch.setattr(generate, "Part", note)
    return made


@pytest.mark.usefixtures("no_cache")
def test_a_kernel_without_buffers_has_no_arena(texts: list[str]) -> None:
    x = pt.dvector("x")
    with graphc.config.change_flags(cache_dir=""):
        f = graphc.function([x], x + 1)
    np.testing.assert_array_equal(f([1.0, 2.0]), [2.0, 3.0])
    assert any("define void @graphc_release(" in text for text in texts)
    assert not any("@graphc_alloc(" in text or "@graphc_mark(" in text for text in texts)


@pytest.mark.usefixtures("no_cache")
def test_buffers_of_unknown_sizes_in_a_loop_bring_it(texts: list[str]) -> None:
    x = pt.dmatrix("x")

    def step(i: pt.TensorVariable, total: pt.TensorVariable) -> pt.TensorVariable:
        return total + (x[:i] @ x[:i].T).sum()

    total = graphc.scan(step, pt.arange(1, x.shape[0]), 0.0, return_updates=False)[-1]
    with graphc.config.change_flags(cache_dir=""):
        f = graphc.function([x], total)
    value = np.arange(12.0).reshape(4, 3)
    np.testing.assert_allclose(f(value), sum((value[:i] @ value[:i].T).sum() for i in range(1, 4)))
    assert any("define ptr @graphc_alloc(" in text for text in texts)


@pytest.mark.parametrize("tier", ["struct", "buffer"])
def test_views_are_released_where_there_are_some(tier: str) -> None:
    array = ArraySpec("float64", (None,))
    text = entry_ir(Signature((array,), outputs=(array,)), (tier,), interruptible=False)
    assert ("call void @graphc_close(" in text) == (tier == "buffer")
    assert ("define void @graphc_close(" in helpers_ir((tier,))) == (tier == "buffer")


def test_what_entries_call_is_a_part_of_its_own(texts: list[str]) -> None:
    """The same for all functions: it is made once, and with little effort."""
    x, y = pt.dvector("x"), pt.dmatrix("y")
    with graphc.config.change_flags(cache_dir=""):
        graphc.function([x], x + 1)
        graphc.function([y, x], [y * x, y.sum()])
    entries = [text for text in texts if "define ptr @graphc_entry" in text]
    assert len(set(entries)) == 2
    assert all(text.count("\ndefine ptr ") == 2 for text in entries)  # itself, and what CPython calls
    # Nothing is given back where no memory is taken, and a module for what does nothing is one too many.
    assert all("define void @graphc_release(" in text for text in entries)
    assert not any("call void @graphc_release(" in text for text in entries)
    helpers = [text for text in texts if "define void @graphc_raise(" in text]
    assert len(helpers) == 2
    assert len(set(helpers)) == 1


@pytest.mark.parametrize(("inputs", "in_place"), [(1, True), (3, True), (4, False)])
def test_few_arrays_are_compared_in_place(inputs: int, in_place: bool) -> None:
    array = ArraySpec("float64", (None,))
    text = entry_ir(Signature((array,) * inputs, outputs=(array,)))
    assert ("call i1 @graphc_overlap(" in text) != in_place
