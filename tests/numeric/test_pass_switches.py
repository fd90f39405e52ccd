# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Compiled code computes what the module meant before lowering, whichever optional passes run."""

from __future__ import annotations

import pytest
from comparing import compare_parts, merged
from fuzzing import examples
from graphs import Choices, build
from hypothesis import HealthCheck, given, note, settings
from hypothesis import strategies as st
from pipelines import OPTIONAL, compile_text, interpret, module_of, with_options, without

from graphc.pipelines import FAST_COMPILE, FAST_RUN

VARIANTS = {
    "all": FAST_RUN,
    **{f"without {flag}": without(flag) for flag in OPTIONAL},
    "without all": without(*OPTIONAL),
    "every product by gemm": with_options("graphc-matmul-to-blas", "threshold=0"),
    "small clusters": with_options("graphc-fusion", "max-inputs=2"),
    "fast_compile": FAST_COMPILE,
}
SLOW = [HealthCheck.too_slow, HealthCheck.data_too_large, HealthCheck.filter_too_much]


def check_variant(graphs, variant):
    text, values = module_of(merged(graphs))
    results = compile_text(text, VARIANTS[variant])(*values)
    compare_parts(graphs, results, interpret(text, values), variant)


@st.composite
def graphs(draw):
    return build(Choices(lambda low, high: draw(st.integers(low, high))), max_steps=10)


@pytest.mark.fuzz
@settings(suppress_health_check=SLOW, max_examples=examples(10))
@given(variant=st.sampled_from(list(VARIANTS)), graph=graphs())
def test_random_graphs(variant, graph):
    note(str(graph))
    check_variant([graph], variant)


@pytest.mark.parametrize("variant", VARIANTS)
def test_seeded_graphs(variant):
    graphs = [build(Choices.seeded(seed), max_steps=16) for seed in range(400, 405)]
    check_variant(graphs, variant)
