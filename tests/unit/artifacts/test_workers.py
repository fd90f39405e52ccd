# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Pickled functions and artifacts in other processes: machine code arrives there, and nobody compiles."""

from __future__ import annotations

import multiprocessing
import os
import sys
from concurrent.futures import ProcessPoolExecutor

import numpy as np
import pytest

import graphc
import graphc.tensor as pt
import graphc_runtime

COMPILERS = ("llvmlite", "torch_mlir")


def call(function, *values):
    """A result, and what of a compiler the process has loaded."""
    return function(*values), os.getpid(), [name for name in COMPILERS if name in sys.modules]


@pytest.fixture(scope="module")
def pool():
    """New interpreters: no fork, so that nothing of this process's compiler is there."""
    with ProcessPoolExecutor(2, mp_context=multiprocessing.get_context("spawn")) as pool:
        yield pool


@pytest.fixture(scope="module")
def functions(tmp_path_factory):
    """A compiled function and the same from an artifact."""
    # A worker with a cache could find the code there.
    with graphc.config.change_flags(cache_dir=""):
        x = pt.dvector("x")
        scale = graphc.shared(2.0, name="scale")
        h = graphc.scan(
            lambda xt, h: pt.tanh(h + scale * xt),
            sequences=[x],
            outputs_info=[pt.constant(0.0)],
            return_updates=False,
        )
        value = (h**2).sum()
        f = graphc.function([x], [value, graphc.grad(value, x)], name="f")
        path = graphc.export(f, tmp_path_factory.mktemp("workers") / "f.gcx")
    return f, graphc_runtime.load(path)["f"]


def check(answers, f, points):
    for (found, process, compilers), point in zip(answers, points, strict=True):
        assert process != os.getpid() and compilers == []
        for result, expected in zip(found, f(point), strict=True):
            np.testing.assert_array_equal(result, expected)


POINTS = np.random.default_rng(0).normal(size=(6, 20))


def test_workers_of_concurrent_futures(pool, functions):
    for function in functions:
        futures = [pool.submit(call, function, point) for point in POINTS]
        check([future.result(timeout=120) for future in futures], functions[0], POINTS)


def test_workers_of_joblib(functions):
    joblib = pytest.importorskip("joblib", reason="scikit-learn brings joblib along")
    for function in functions:
        work = [joblib.delayed(call)(function, point) for point in POINTS]
        check(joblib.Parallel(n_jobs=2)(work), functions[0], POINTS)
