# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""What the tests of linear algebra share."""

from __future__ import annotations

import numpy as np
import pytest

import graphc
import graphc.tensor as pt

TOLERANCES = {"f4": 5e-3, "c8": 5e-3, "f8": 1e-8, "c16": 1e-8}


@pytest.fixture
def rng():
    return np.random.default_rng(0)


@pytest.fixture
def random(rng):
    """Makes arrays of normal numbers of a dtype."""

    def make(*shape, dtype="float64"):
        x = rng.normal(size=shape)
        if np.dtype(dtype).kind == "c":
            x = x + 1j * rng.normal(size=shape)
        return x.astype(dtype)

    return make


@pytest.fixture
def positive(random):
    """Makes Hermitian positive definite matrices."""

    def make(*shape, dtype="float64"):
        x = random(*shape, dtype=dtype)
        return (x @ np.conj(np.swapaxes(x, -1, -2)) + np.eye(shape[-1])).astype(dtype)

    return make


def _listed(x):
    return list(x) if isinstance(x, list | tuple) else [x]


@pytest.fixture
def compare():
    """Compiles an expression, runs it and compares all results with those of a reference."""

    def run(build, reference, *arguments, static=False, tolerance=None, mode="fast_run"):
        shapes = [x.shape if static else (None,) * x.ndim for x in arguments]
        variables = [pt.tensor(dtype=x.dtype.name, shape=s) for x, s in zip(arguments, shapes, strict=True)]
        f = graphc.function(variables, _listed(build(*variables)), mode=mode)
        expected = _listed(reference(*arguments))
        for number, (x, y) in enumerate(zip(f(*arguments), expected, strict=True)):
            assert x.shape == np.shape(y), number
            limit = tolerance or TOLERANCES.get(x.dtype.str[1:], 0)
            np.testing.assert_allclose(x, y, rtol=limit, atol=limit, err_msg=f"result {number}")

    return run
