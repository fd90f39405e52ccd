# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Gradients of every case: against finite differences, and compiled ones against the reference mode."""

from __future__ import annotations

import numpy as np
import pytest
import test_op_table
from fuzzing import FUZZING
from op_runner import differentiable, free_positions, gradient_point
from op_table import CASES

import graphc
import graphc.tensor as pt

assert test_op_table.MODULES  # they fill the table
DIFFERENTIABLE = [
    case
    for case in CASES
    if free_positions(case) and {"float64", "float32"} & set(case.dtypes) and not case.python
]
BATCH = 30


@pytest.mark.parametrize("case", DIFFERENTIABLE, ids=lambda case: case.name)
def test_gradient(case):
    graphc.verify_grad(differentiable(case), gradient_point(case), n_tests=1, mode="reference")


# Compiling takes most of the time: every third batch, and all of them in `make fuzz-inputs`.
STARTS = range(0, len(DIFFERENTIABLE), BATCH if FUZZING else 3 * BATCH)


@pytest.mark.fuzz
@pytest.mark.parametrize("start", STARTS)
def test_compiled_gradients(start):
    inputs, outputs, values, names = [], [], [], []
    for case in DIFFERENTIABLE[start : start + BATCH]:
        point = gradient_point(case)
        variables = [case.arguments[i].variable("float64") for i in free_positions(case)]
        results = differentiable(case)(*variables)
        cost = sum(pt.real(y * y).sum() if y.type.dtype[0] == "c" else (y * y).sum() for y in results)
        outputs += graphc.grad(cost, variables, disconnected_inputs="ignore")
        names += [f"{case.name}, argument {i}" for i in free_positions(case)]
        inputs += variables
        values += point
    reference = graphc.function(inputs, outputs, mode="reference", on_unused_input="ignore")
    compiled = graphc.function(inputs, outputs, on_unused_input="ignore")
    for name, got, want in zip(names, compiled(*values), reference(*values), strict=True):
        scale = max(1.0, float(np.abs(want).max(initial=0.0)))
        np.testing.assert_allclose(got, want, rtol=1e-7, atol=1e-9 * scale, err_msg=name)
