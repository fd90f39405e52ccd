# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""nutpie samples models compiled by graphc."""

from __future__ import annotations

import os
import subprocess
import sys

import numpy as np
import pymc as pm
import pytensor.tensor as pt
import pytest
from pytensor.graph.basic import Apply
from pytensor.graph.op import Op

nutpie = pytest.importorskip("nutpie")

from graphc.interop.nutpie import compile_pymc_model, register_backend  # noqa: E402


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


OPTIONS = {"draws": 300, "tune": 200, "chains": 2, "seed": 3, "progress_bar": False}


@pytest.fixture
def backend():
    """The backend by its name; nutpie's function is what it was afterwards."""
    found = nutpie.compile_pymc_model
    # A page of the guides may have registered it in this process before.
    theirs = nutpie.compile_pymc_model = getattr(found, "_before_graphc", found)
    register_backend()
    ours = nutpie.compile_pymc_model
    register_backend()
    assert nutpie.compile_pymc_model is ours is not theirs
    yield
    nutpie.compile_pymc_model = found


def _model(likelihood):
    with pm.Model() as model:
        mu, sigma = pm.Normal("mu", 0, 10), pm.HalfNormal("sigma", 3)
        likelihood(mu, sigma, np.random.default_rng(1).normal(2.0, 1.0, 200))
    return model


def _plain(mu, sigma, y):
    pm.Normal("y", mu, sigma, observed=y)


def test_pymc_samples_with_the_backend(backend):
    model = _model(_plain)
    sizes = {"draws": 200, "tune": 200, "chains": 2, "cores": 1, "progressbar": False, "random_seed": 3}
    kwargs = {"nuts_sampler_kwargs": {"backend": "graphc"}}
    if int(pm.__version__.split(".")[0]) > 5:
        kwargs = {"compile_kwargs": {"backend": "graphc"}}
    with model:
        trace = pm.sample(nuts_sampler="nutpie", compute_convergence_checks=False, **sizes, **kwargs)
    assert abs(float(trace.posterior["mu"].mean()) - 2.0) < 0.3
    compiled = nutpie.compile_pymc_model(
        model, backend="GraphC", initial_points={"mu": 1.0}, var_names=["mu"], freeze_model=True
    )
    assert type(compiled).__module__ == "graphc.interop.nutpie"
    with pytest.raises(ValueError, match="gradient of backend"):
        nutpie.compile_pymc_model(model, backend="graphc", gradient_backend="jax")
    with pytest.raises(ValueError, match="numba and jax"):
        nutpie.compile_pymc_model(model, backend="torch")


class _Shift(Op):
    """An op that graphc does not know."""

    __props__ = ("error",)

    def __init__(self, error=None):
        self.error = error

    def make_node(self, x):
        x = pt.as_tensor(x)
        return Apply(self, [x], [x.type()])

    def perform(self, node, inputs, outputs):
        if self.error is not None:
            raise self.error("far out")
        outputs[0][0] = inputs[0] + 1.0

    def pullback(self, inputs, outputs, gradients):
        return gradients

    L_op = pullback

    def grad(self, inputs, gradients):
        return gradients


def test_ops_in_python_run_with_the_lock():
    model = _model(lambda mu, sigma, y: pm.Normal("y", _Shift()(mu), sigma, observed=y))
    with model:
        pm.Deterministic("moved", _Shift()(model["mu"]) * 2)
    with pytest.warns(UserWarning, match="runs in Python.*_Shift"):
        compiled = compile_pymc_model(model)
    trace = nutpie.sample(compiled, **OPTIONS)
    assert abs(float(trace.posterior["mu"].mean()) - 1.0) < 0.2
    np.testing.assert_allclose(trace.posterior["moved"], 2 * (trace.posterior["mu"] + 1))


def test_errors_of_ops_in_python_end_sampling(capfd):
    model = _model(lambda mu, sigma, y: pm.Normal("y", _Shift(KeyError)(mu), sigma, observed=y))
    with pytest.warns(UserWarning, match="runs in Python"):
        compiled = compile_pymc_model(model)
    with pytest.raises(RuntimeError):
        nutpie.sample(compiled, **OPTIONS)
    assert "far out" in capfd.readouterr().err


def test_no_compiler_for_c_is_started(tmp_path):
    """Initial points are found in Python: PyTensor's virtual machine is not compiled for them."""
    code = """if True:
        import pymc as pm
        from graphc.interop.nutpie import compile_pymc_model
        with pm.Model() as model:
            pm.Normal("x", pm.HalfNormal("s"))
        compile_pymc_model(model)
        """
    flags = {**os.environ, "PYTENSOR_FLAGS": f"base_compiledir={tmp_path}"}
    subprocess.run([sys.executable, "-c", code], check=True, env=flags)
    assert not list(tmp_path.rglob("lazylinker_ext*"))
