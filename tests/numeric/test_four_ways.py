# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Random programs give equal results compiled, immediate, immediate and lazy, and in the reference mode."""

from __future__ import annotations

import pytest
from four_ways import check_program
from fuzzing import FUZZING, examples
from graphs import Choices
from hypothesis import HealthCheck, given, note, settings
from hypothesis import strategies as st
from program_steps import RECIPES
from programs import build_program


@st.composite
def programs(draw):
    return build_program(Choices(lambda low, high: draw(st.integers(low, high))))


@pytest.mark.fuzz
@pytest.mark.parametrize("seed", range(40 if FUZZING else 20))
def test_seeded_programs(seed):
    check_program(build_program(Choices.seeded(seed)))


# Twice as many as of other generated inputs in `make fuzz`, which runs a thousand.
@pytest.mark.fuzz
@settings(
    max_examples=examples(8, factor=2),
    suppress_health_check=[HealthCheck.too_slow, HealthCheck.data_too_large, HealthCheck.filter_too_much],
)
@given(program=programs())
def test_generated_programs(program):
    note(str(program))
    check_program(program)


def test_the_generator_covers_its_steps():
    seen = {name for seed in range(200) for name, _, _ in build_program(Choices.seeded(seed)).steps}
    assert seen >= set(RECIPES)
