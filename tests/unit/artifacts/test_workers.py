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


def test_pickled_functions_do_not_compile_in_workers(pool, tmp_path, monkeypatch):
    # A worker with a cache could find the code there.
    monkeypatch.setattr(graphc.config, "cache_dir", "")
    x = pt.dvector("x")
    scale = graphc.shared(2.0, name="scale")
    h = graphc.scan(
        lambda xt, h: pt.tanh(h + scale * xt),
        sequences=[x],
        outputs_info=[pt.constant(0.0)],
        return_updates=False,
    )
    value = (h**2).sum()
    f = graphc.function([x], [value, graphc.grad(value, x)])
    graphc.export(f, tmp_path / "f.gcx")
    loaded = graphc_runtime.load(tmp_path / "f.gcx")["function"]
    points = np.random.default_rng(0).normal(size=(8, 20))
    for function in (f, loaded):
        futures = [pool.submit(call, function, point) for point in points]
        for future, point in zip(futures, points, strict=True):
            found, process, compilers = future.result(timeout=120)
            assert process != os.getpid() and compilers == []
            for result, expected in zip(found, f(point), strict=True):
                np.testing.assert_array_equal(result, expected)
