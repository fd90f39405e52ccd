# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Runs a program in four ways and compares."""

from __future__ import annotations

from typing import Any

import numpy as np
from comparing import TOLERANCES
from programs import SYMBOLIC, Program

import graphc
from graphc.immediate import Environment

# One environment each, so that programs share executables.
EAGER, LAZY = Environment(name="eager"), Environment(name="lazy", lazy=True)


def compiled(program: Program, mode: str) -> list[np.ndarray]:
    """The results of a compiled function."""
    outputs = program.run(SYMBOLIC, program.inputs)
    return graphc.function(program.inputs, outputs, mode=mode, on_unused_input="ignore")(*program.values)


def immediate(program: Program, env: Environment) -> list[np.ndarray]:
    """The results of running the program in an environment."""
    tensors = [env.numpy_to_tensor(value) for value in program.values]
    return [np.asarray(y) for y in program.run(env, tensors)]


def check_program(program: Program) -> None:
    """Compare the ways with the reference.

    Raises:
        AssertionError: a result has another dtype, shape or value; or inputs have changed.
    """
    before = [value.copy() for value in program.values]
    expected = compiled(program, "reference")
    ways: dict[str, Any] = {
        "compiled": lambda: compiled(program, "fast_run"),
        "immediate": lambda: immediate(program, EAGER),
        "immediate lazy": lambda: immediate(program, LAZY),
    }
    tolerance = max((TOLERANCES.get(dtype, 0.0) for dtype in program.dtypes), default=0.0)
    limit = program.scale if np.isfinite(program.scale) else 1.0
    for way, run in ways.items():
        for i, (got, want) in enumerate(zip(run(), expected, strict=True)):
            what = f"result {i}, {way}"
            assert got.dtype == want.dtype, f"{what}: dtype {got.dtype}, expected {want.dtype}"
            assert got.shape == want.shape, f"{what}: shape {got.shape}, expected {want.shape}"
            if want.dtype.kind == "f":
                np.testing.assert_allclose(got, want, tolerance, tolerance * limit, err_msg=what)
            else:
                np.testing.assert_array_equal(got, want, err_msg=what)
        for old, value in zip(before, program.values, strict=True):
            np.testing.assert_array_equal(value, old, err_msg=f"{way} changed an input")
