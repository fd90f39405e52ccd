# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""A model, compiled and as an artifact, and the engines that run it: real clusters of two processes.

They end with the module: what talks to them allocates memory, which other tests would take for that of calls.
"""

from __future__ import annotations

import multiprocessing
import os
import sys
import tempfile
from concurrent.futures import ProcessPoolExecutor

import numpy as np
import pytest

import graphc
import graphc.tensor as pt
import graphc_runtime

ENGINES = ("pool", "dask", "ray")


@pytest.fixture(scope="module", autouse=True)
def no_cache():
    """Workers cannot find code in a cache."""
    with graphc.config.change_flags(cache_dir=""):
        yield


@pytest.fixture(scope="module")
def pool():
    with ProcessPoolExecutor(2, mp_context=multiprocessing.get_context("spawn")) as pool:
        yield pool


@pytest.fixture(scope="module")
def dask_client():
    distributed = pytest.importorskip("distributed", reason="graphc[dask] is not installed")
    dask = pytest.importorskip("dask", reason="graphc[dask] is not installed")
    with tempfile.TemporaryDirectory() as folder:
        cluster = distributed.LocalCluster(
            n_workers=2, threads_per_worker=1, processes=True, dashboard_address=None, local_directory=folder
        )
        # A worker that wants results of a killed one waits for it that long.
        quick = dask.config.set({"distributed.comm.timeouts.connect": "2s"})
        with quick, cluster, distributed.Client(cluster) as client:
            yield client


@pytest.fixture(scope="module")
def ray_cluster():
    ray = pytest.importorskip("ray", reason="graphc[ray] is not installed")
    # Sockets have short paths; workers import these tests by name.
    with tempfile.TemporaryDirectory(prefix="ray-", dir="/tmp") as folder:
        ray.init(
            address="local",
            num_cpus=2,
            include_dashboard=False,
            log_to_driver=False,
            logging_level="error",
            object_store_memory=100 << 20,
            _temp_dir=folder,
            runtime_env={"env_vars": {"PYTHONPATH": os.pathsep.join(filter(None, sys.path))}},
        )
        yield "ray"
        ray.shutdown()


@pytest.fixture(params=ENGINES)
def on(request):
    """What the argument of that name can be."""
    name = {"pool": "pool", "dask": "dask_client", "ray": "ray_cluster"}[request.param]
    return request.getfixturevalue(name)


def exported(function, folder):
    return graphc_runtime.load(graphc.export(function, folder / f"{function.name}.gcx"))[function.name]


@pytest.fixture(scope="module", params=["function", "artifact"])
def regression(request, tmp_path_factory):
    """Negative log likelihood and gradient, of parameters, rows and targets."""
    w, x, y = pt.dvector("w"), pt.dmatrix("x"), pt.dvector("y")
    z = pt.dot(x, w)
    loss = (pt.log1p(pt.exp(-y * z)) + 0.01 * pt.exp(z / 7)).sum()
    f = graphc.function([w, x, y], [loss, graphc.grad(loss, w)], name="regression")
    return f if request.param == "function" else exported(f, tmp_path_factory.mktemp("regression"))


@pytest.fixture(scope="module", params=["function", "artifact"])
def walk(request, tmp_path_factory):
    """A step of a random walk with two generators."""
    at = graphc.shared(np.zeros(3), name="at")
    first = graphc.shared(np.random.default_rng(1), name="first")
    second = graphc.shared(np.random.Generator(np.random.Philox(2)), name="second")
    drift = pt.dscalar("drift")
    next_first, noise = first.normal(size=3)
    next_second, jump = second.exponential(1.0)
    new = at + drift + noise + jump
    f = graphc.function(
        [drift],
        {"at": new, "norm": (new**2).sum()},
        updates={at: new, first: next_first, second: next_second},
        name="walk",
    )
    return f if request.param == "function" else exported(f, tmp_path_factory.mktemp("walk"))
