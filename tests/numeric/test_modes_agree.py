# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Random graphs give the same results in every mode."""

from __future__ import annotations

import pytest
from comparing import check, check_all, compile_checked
from fuzzing import examples
from graphs import Choices, build
from hypothesis import HealthCheck, given, note, settings
from hypothesis import strategies as st

import graphc
import graphc.tensor as pt

COMPILED_MODES = ["fast_run", "fast_compile"]


@st.composite
def graphs(draw):
    return build(Choices(lambda low, high: draw(st.integers(low, high))))


@pytest.mark.fuzz
@pytest.mark.parametrize("mode", COMPILED_MODES)
@settings(
    max_examples=examples(12),
    suppress_health_check=[HealthCheck.too_slow, HealthCheck.data_too_large, HealthCheck.filter_too_much],
)
@given(graph=graphs())
def test_compiled_modes_agree_with_the_reference(mode, graph):
    note(str(graph))
    check(graph, mode)


@pytest.mark.parametrize("mode", COMPILED_MODES)
@pytest.mark.parametrize("first", range(0, 15, 5))
def test_seeded_graphs(mode, first):
    check_all([build(Choices.seeded(seed), max_steps=14) for seed in range(first, first + 5)], mode)


def test_the_comparison_would_notice_a_python_fallback():
    class Python(graphc.Op):
        __props__ = ()

        def make_node(self, x):
            return graphc.Apply(self, [x], [x.type()])

        def perform(self, node, inputs, outputs):
            outputs[0][0] = inputs[0] + 1

    x = pt.dvector("x")
    with pytest.raises(AssertionError, match="not native"):
        compile_checked([x], [Python()(x)], "fast_run")


def test_the_generator_covers_its_steps():
    from steps import STEPS

    seen = {name for seed in range(300) for name in build(Choices.seeded(seed)).steps}
    assert seen >= set(STEPS)
