# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Forward and reverse mode are transposes of each other on random graphs: ``<c, J t> = <J' c, t>``."""

from __future__ import annotations

import numpy as np
import pytest
from graphs import Choices, Graph, build
from hypothesis import HealthCheck, given, note, settings
from hypothesis import strategies as st

import graphc
import graphc.tensor as pt


def check_transposes(graph: Graph) -> None:
    """Compare both products; graphs without real inputs and outputs have nothing to compare.

    Raises:
        AssertionError: the products differ by more than rounding.
    """
    ys = [y for y in graph.outputs if y.type.dtype == "float64" and y.owner is not None]
    xs = [x for x in graph.inputs if x.type.dtype == "float64"]
    if not ys or not xs:
        return
    places = [v.type() for v in (*xs, ys[0])]
    y, tangents, cotangent = ys[0], places[: len(xs)], places[-1]
    options = {"disconnected_inputs": "ignore"}
    back = graphc.pullback(y, xs, cotangent, **options)
    sums = [(g * t).sum() for g, t in zip(back, tangents, strict=True)]
    totals = [pt.add(*sums) if len(sums) > 1 else sums[0]]
    sizes = [abs(g * t).sum() for g, t in zip(back, tangents, strict=True)]
    for direct in (True, False):
        forward = graphc.pushforward(
            y, xs, tangents, disconnected_outputs="ignore", use_op_pushforward=direct
        )
        totals.append((forward * cotangent).sum())
    inputs = [*graph.inputs, *places]
    f = graphc.function(inputs, [*totals, *sizes], mode="reference", on_unused_input="ignore")
    evaluate = graphc.function(graph.inputs, y, mode="reference", on_unused_input="ignore")
    value = evaluate(*graph.values)
    rng = np.random.default_rng(0)
    shapes = [v.shape for x, v in zip(graph.inputs, graph.values, strict=True) if x in xs]
    directions = [rng.normal(size=shape) for shape in (*shapes, value.shape)]
    backward, *forwards = f(*graph.values, *directions)[:3]
    scale = max(1.0, *(float(size) for size in f(*graph.values, *directions)[3:]))
    if np.isfinite(scale):
        np.testing.assert_allclose(forwards, backward, rtol=1e-6, atol=1e-9 * scale)


@st.composite
def graphs(draw):
    return build(Choices(lambda low, high: draw(st.integers(low, high))))


@pytest.mark.fuzz
@settings(
    suppress_health_check=[HealthCheck.too_slow, HealthCheck.data_too_large, HealthCheck.filter_too_much]
)
@given(graph=graphs())
def test_forward_and_reverse_mode_are_transposes(graph):
    note(str(graph))
    check_transposes(graph)


@pytest.mark.parametrize("seed", range(60))
def test_seeded_graphs(seed):
    check_transposes(build(Choices.seeded(seed), max_steps=14))
