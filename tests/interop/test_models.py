# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Log densities of PyMC's models and their gradients: numbers and stability as PyTensor's own."""

from __future__ import annotations

import numpy as np
import pymc as pm
import pytest
from models import MODELS
from pytensor.compile.mode import Mode
from pytensor.graph.rewriting.db import RewriteDatabaseQuery

import graphc.interop.pytensor  # noqa: F401

# What PyTensor compiles by default, but in Python and without what only makes it faster.
REFERENCE = Mode(
    "py",
    RewriteDatabaseQuery(
        include=["fast_run"],
        exclude=["fusion", "inplace", "BlasOpt", "scan_save_mem", "local_careduce_fusion"],
    ),
)
# One of each kind, for every run of the tests.
QUICK = (
    "radon", "logistic", "negbin_offset", "gamma_censored", "truncated", "garch", "moving_average", "kalman", "normal_mixture",
    "lkj_mvnormal", "gp_marginal", "car",
)  # fmt: skip
# Distances from the initial point, on the unconstrained scale.
NEAR, FAR = (0.1,) * 5, (1.0, 3.0, 10.0, 100.0)


def pytest_generate_tests(metafunc):
    if "name" in metafunc.fixturenames:
        names = MODELS if metafunc.config.getoption("--models") == "all" else QUICK
        metafunc.parametrize("name", names)


def points(model: pm.Model) -> list[dict[str, np.ndarray]]:
    rng, start = np.random.default_rng(0), model.initial_point()
    return [
        {name: np.asarray(value + scale * rng.normal(size=np.shape(value))) for name, value in start.items()}
        for scale in NEAR + FAR
    ]


@pytest.mark.parametrize("mode", ["GRAPHC", "GRAPHC_REWRITTEN"])
def test_log_density_and_gradient(name, mode):
    model = MODELS[name]()
    outputs = [model.logp(), model.dlogp()]
    reference, compiled = (
        model.compile_fn(outputs, inputs=model.value_vars, mode=m, on_unused_input="ignore", point_fn=True)
        for m in (REFERENCE, mode)
    )
    assert compiled.f.vm.jit_fn.report.fallbacks == []
    for i, point in enumerate(points(model)):
        for want, got in zip(reference(point), compiled(point), strict=True):
            # Where PyTensor overflows, a number is as good as what it gives.
            finite = np.isfinite(want)
            scale = np.max(np.abs(want), where=finite, initial=1e-8)
            tolerance = 1e-9 if i < len(NEAR) + 1 else 1e-7
            np.testing.assert_allclose(
                np.asarray(got)[finite],
                np.asarray(want)[finite],
                rtol=tolerance,
                atol=1e-4 * tolerance * scale,
            )
