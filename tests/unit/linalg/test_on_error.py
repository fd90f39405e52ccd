# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Systems without a solution: an error, or NaN where that is asked for, in each way of solving."""

import numpy as np
import pytest

import graphc
import graphc.tensor as pt

GOOD, SINGULAR = np.array([[2.0, 0.5], [0.5, 1.0]]), np.array([[0.0, 0.0], [0.0, 1.0]])
LARGE = np.diag([0.0] + [1.0] * 69)
KINDS = ["gen", "sym", "pos", "lower triangular", "upper triangular", "tridiagonal"]


@pytest.mark.parametrize("mode", ["fast_run", "reference"])
@pytest.mark.parametrize("kind", KINDS)
def test_no_solution_is_nan(kind, mode):
    a, b = pt.dtensor3("a"), pt.dtensor3("b")
    x = pt.linalg.solve(a, b, assume_a=kind, on_error="nan")
    raising = pt.linalg.solve(a, b, assume_a=kind)
    f = graphc.function([a, b], [x, graphc.grad(x.sum(), b)], mode=mode)
    whole = np.array([GOOD, SINGULAR, GOOD])
    found, slope = f(whole, np.ones((3, 2, 1)))
    core = {"lower triangular": np.tril, "upper triangular": np.triu}.get(kind, np.asarray)(GOOD)
    np.testing.assert_allclose(
        found[[0, 2]], np.broadcast_to(np.linalg.solve(core, np.ones((2, 1))), (2, 2, 1))
    )
    assert np.isnan(found[1]).all() and np.isnan(slope[1]).all() and np.isfinite(slope[[0, 2]]).all()
    if mode == "fast_run":
        assert np.isnan(f(LARGE[None], np.ones((1, 70, 2)))[0]).all() and not f.report.fallbacks
        with pytest.raises(np.linalg.LinAlgError):
            graphc.function([a, b], raising, mode=mode)(whole, np.ones((3, 2, 1)))


def test_rewrites_of_systems_keep_what_happens_on_errors():
    a, b, c = pt.dmatrix("a"), pt.dvector("b"), pt.dvector("c")
    factor = pt.linalg.cholesky(a, on_error="nan")
    outputs = [pt.linalg.solve(a, v, on_error="nan") for v in (b, c)]
    outputs += [pt.linalg.solve(factor, b, on_error="nan"), pt.linalg.solve_triangular(a, c, on_error="nan")]
    outputs.append(pt.linalg.solve(factor @ factor.T, b, on_error="nan"))
    f = graphc.function([a, b, c], outputs)
    assert all(np.isnan(x).all() for x in f(SINGULAR, [1.0, 2.0], [3.0, 4.0]))
    assert all(np.isfinite(x).all() for x in f(GOOD, [1.0, 2.0], [3.0, 4.0]))
    with pytest.raises(ValueError, match="on_error"):
        pt.linalg.solve(a, b, on_error="ignore")
