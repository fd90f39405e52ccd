# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Log densities of PyMC's models and their gradients: numbers and stability as PyTensor's own."""

from __future__ import annotations

import numpy as np
import pymc as pm
from models import MODELS
from pymc.blocking import DictToArrayBijection
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
# Where PyTensor's numbers overflow and ours do not, and why.
BETTER = {
    "logistic": "PyTensor multiplies 0 by infinity in the derivative of a logarithm of a sigmoid",
}
# Where neither has a number for the density, but not the same, and why; then slopes have no meaning.
OTHERS = {
    "lkj_mvnormal": "PyMC's prior is inf; PyTensor before 3.1 takes the factor of a covariance that overflows: inf - inf",
}
MODES = ("GRAPHC", "GRAPHC_REWRITTEN")
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


def test_log_density_and_gradient(name):
    """Of both modes, against one function of PyTensor: making that takes longer than all else here."""
    model = MODELS[name]()
    outputs = [model.logp(), model.dlogp()]
    reference, *compiled = (
        model.compile_fn(outputs, inputs=model.value_vars, mode=m, on_unused_input="ignore", point_fn=True)
        for m in (REFERENCE, *MODES)
    )
    assert [f.f.vm.jit_fn.report.fallbacks for f in compiled] == [[], []]
    for i, point in enumerate(points(model)):
        wanted = [np.asarray(want) for want in reference(point)]
        for mode, f in zip(MODES, compiled, strict=True):
            for want, got in zip(wanted, map(np.asarray, f(point)), strict=True):
                compare(want, got, 1e-9 if i < len(NEAR) + 1 else 1e-7, mode)
                if mode == "GRAPHC" and name in QUICK:
                    check_overflows(name, f, point, np.atleast_1d(want), np.atleast_1d(got))


def compare(want, got, tolerance, mode):
    finite = np.isfinite(want)
    scale = np.max(np.abs(want), where=finite, initial=1e-8)
    np.testing.assert_allclose(
        got[finite], want[finite], rtol=tolerance, atol=1e-4 * tolerance * scale, err_msg=mode
    )


def check_overflows(name, compiled, point, want, got):
    """NaN and infinities are PyTensor's, or else the slopes of the log density."""
    same = (want == got) | (np.isnan(want) & np.isnan(got))
    if name in OTHERS and not np.isfinite(float(compiled(point)[0])):
        return
    for k in np.flatnonzero(~np.isfinite(want) & ~same):
        assert name in BETTER, f"element {k} is {got[k]}, PyTensor's {want[k]}"
        flat = DictToArrayBijection.map(point)
        step = 1e-6 * max(1.0, abs(flat.data[k]))
        ends = [flat._replace(data=flat.data + h * np.eye(flat.data.size)[k]) for h in (step, -step)]
        high, low = (float(compiled(DictToArrayBijection.rmap(end))[0]) for end in ends)
        np.testing.assert_allclose(got[k], (high - low) / (2 * step), rtol=1e-3, atol=1e-3)
