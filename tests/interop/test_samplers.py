# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""PyMC's distributions with samplers of their own: draws are those of PyTensor's Python, without Python."""

from __future__ import annotations

import numpy as np
import pymc as pm
import pytensor.tensor as pt
import pytest
import scipy.sparse
from pymc.pytensorf import compile
from pytensor.compile.mode import Mode

import graphc.interop.pytensor  # noqa: F401

X = np.linspace(-2, 3, 12)
PDF = np.exp(-(X**2) / 2) + 0.1
PDF[3:6] = 0.7  # flat in a part
A = np.array([0.5, 1.0, 4.0])
PATH = np.diag(np.ones(11), 1) + np.diag(np.ones(11), -1)
SPREAD = np.eye(12)[[7, 2, 9, 0, 11, 4, 1, 10, 3, 8, 5, 6]]
WEIGHTS = SPREAD @ (PATH + 2.0 * np.diag(np.ones(8), 4) + 2.0 * np.diag(np.ones(8), -4)) @ SPREAD.T
SCALE = np.array([[2.0, 0.3, 0.1], [0.3, 1.0, 0.2], [0.1, 0.2, 0.7]])
DISTRIBUTIONS = {
    "skew_normal": lambda: pm.SkewNormal.dist(mu=A, sigma=2.0, alpha=[-3, 0, 5]),
    "skew_normal_sized": lambda: pm.SkewNormal.dist(mu=A, sigma=2.0, alpha=1.5, size=(4, 3)),
    "rice": lambda: pm.Rice.dist(nu=A, sigma=1.5),
    "rice_sized": lambda: pm.Rice.dist(nu=1.0, sigma=1.5, size=5),
    "moyal": lambda: pm.Moyal.dist(A, 0.5, size=(2, 3)),
    "skew_student": lambda: pm.SkewStudentT.dist(a=A, b=2.0, mu=1.0, sigma=3.0),
    "truncated_normal": lambda: pm.TruncatedNormal.dist(
        [0.0, 3.0, -9.0, 0.5, 9.0],
        1.5,
        lower=[-1, 5, -8, -np.inf, 0],
        upper=[2.0, np.inf, 9, 0.0, 1],
        size=(3, 5),
    ),
    "truncated_normal_scalar": lambda: pm.TruncatedNormal.dist(0.0, 1.0, lower=0.0),
    "matrix_normal": lambda: pm.MatrixNormal.dist(np.ones((3, 2)), rowcov=SCALE, colcov=np.eye(2) * 2),
    "stick_breaking": lambda: pm.StickBreakingWeights.dist(alpha=A, K=4),
    "stick_breaking_sized": lambda: pm.StickBreakingWeights.dist(alpha=2.0, K=6, size=(2, 3)),
    "interpolated": lambda: pm.Interpolated.dist(X, PDF, size=(4, 50)),
    "interpolated_scalar": lambda: pm.Interpolated.dist(X, PDF),
    "car": lambda: pm.CAR.dist(mu=np.arange(12.0), W=WEIGHTS, alpha=0.7, tau=2.0),
    "car_sized": lambda: pm.CAR.dist(mu=np.arange(12.0), W=WEIGHTS, alpha=-0.4, tau=2.0, size=(2, 3)),
    "car_of_a_path": lambda: pm.CAR.dist(mu=np.zeros(12), W=SPREAD @ PATH @ SPREAD.T, alpha=0.9, tau=1.0),
    "car_sparse": lambda: pm.CAR.dist(np.ones(12), scipy.sparse.csr_matrix(WEIGHTS), 0.5, 3.0),
    "wishart": lambda: pm.Wishart.dist(nu=7, V=SCALE),
    "wishart_sized": lambda: pm.Wishart.dist(nu=7, V=SCALE, size=(4,)),
}


@pytest.mark.parametrize("name", DISTRIBUTIONS)
def test_draws_are_those_of_python(name):
    drawn = DISTRIBUTIONS[name]()
    found = []
    for mode in (Mode("py", "minimum_compile"), "GRAPHC"):
        f = compile([], [drawn], random_seed=3, mode=mode)  # seeds the generator that both modes share
        found.append([f()[0], f()[0]])
    assert f.vm.jit_fn.report.fallbacks == []
    for want, got in zip(*found, strict=True):
        assert np.shape(got) == np.shape(want)
        np.testing.assert_allclose(got, want, rtol=1e-8, atol=1e-12)


def test_parameters_of_a_lattice_are_checked():
    alpha = pt.dscalar("alpha")
    f = compile([alpha], [pm.CAR.dist(np.zeros(12), WEIGHTS, alpha, 1.0)], mode="GRAPHC")
    assert np.isfinite(f(-0.9)[0]).all()
    with pytest.raises(ValueError, match="-1 < alpha < 1"):
        f(1.0)
    with pytest.raises(ValueError, match="valid adjacency matrix"):
        compile([], [pm.CAR.dist(np.zeros(12), np.triu(WEIGHTS), 0.5, 1.0)], mode="GRAPHC")()
