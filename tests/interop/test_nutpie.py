# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""nutpie samples models compiled by graphc."""

from __future__ import annotations

import numpy as np
import pymc as pm
import pytest

nutpie = pytest.importorskip("nutpie")

from graphc.interop.nutpie import compile_pymc_model  # noqa: E402


def test_posterior_and_exchanged_data():
    rng = np.random.default_rng(1)
    with pm.Model(coords={"group": ["a", "b"]}) as model:
        y = pm.Data("y", rng.normal(2.0, 1.0, (200, 2)))
        mu = pm.Normal("mu", 0, 10, dims="group")
        pm.Normal("likelihood", mu, 1.0, observed=y)
    compiled = compile_pymc_model(model)
    options = {"draws": 400, "tune": 300, "chains": 2, "seed": 3, "progress_bar": False}
    trace = nutpie.sample(compiled, **options)
    assert trace.posterior["mu"].dims == ("chain", "draw", "group")
    np.testing.assert_allclose(
        trace.posterior["mu"].mean(("chain", "draw")), y.get_value().mean(0), atol=0.02
    )
    moved = nutpie.sample(compiled.with_data(y=y.get_value()[:50] + 5), **options)
    np.testing.assert_allclose(
        moved.posterior["mu"].mean(("chain", "draw")), 5 + y.get_value()[:50].mean(0), atol=0.05
    )
    with pytest.raises(KeyError, match="no data named 'z'"):
        compiled.with_data(z=0)
    with pytest.raises(ValueError, match="2 axes"):
        compiled.with_data(y=np.zeros(3))
