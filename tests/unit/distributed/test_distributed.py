# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""``graphc.distributed`` on real clusters: the bits of one process, nobody compiles, nothing is lost."""

from __future__ import annotations

import os
import pickle
import sys
from concurrent.futures import ThreadPoolExecutor

import numpy as np
import pytest
from cluster_calls import DiesOnce, Reads, Witness

import graphc
import graphc.tensor as pt
import graphc_runtime
from graphc import distributed

RNG = np.random.default_rng(0)
WEIGHTS = RNG.normal(size=5)
SIZES = (7, 1, 30, 12, 64, 3, 9, 21, 2, 40, 5)
PARTITIONS = [(RNG.normal(size=(n, 5)), np.sign(RNG.normal(size=n))) for n in SIZES]


def same(found, expected):
    if isinstance(expected, dict):
        assert list(found) == list(expected)
        found, expected = list(found.values()), list(expected.values())
    for x, y in zip(found, expected, strict=True):
        assert x.dtype == y.dtype
        np.testing.assert_array_equal(x, y)


def test_batches(regression, on):
    told = []
    batches = [(WEIGHTS, x, y) for x, y in PARTITIONS]
    found = distributed.map_batches(
        Witness(regression), batches, on=on, progress=lambda done, total: told.append((done, total))
    )
    for (result, process, compilers), batch in zip(found, batches, strict=True):
        assert process != os.getpid() and compilers == []
        same(result, regression(*batch))
    assert told == [(i + 1, len(batches)) for i in range(len(batches))]


def test_sums_have_the_bits_of_one_process(regression, on, tmp_path):
    for fan_in in (2, 4):
        alone = distributed.value_and_grad(regression, PARTITIONS, fan_in=fan_in)
        spread = distributed.value_and_grad(regression, PARTITIONS, on=on, fan_in=fan_in)
        assert spread.n_partitions == len(PARTITIONS)
        for scale in (1.0, 0.3):
            same(spread(scale * WEIGHTS), alone(scale * WEIGHTS))
    whole = regression(WEIGHTS, *(np.concatenate(parts) for parts in zip(*PARTITIONS, strict=True)))
    for x, y in zip(alone(WEIGHTS), whole, strict=True):
        np.testing.assert_allclose(x, y, rtol=1e-12)
    for i, (x, y) in enumerate(PARTITIONS):
        np.savez(tmp_path / f"{i}.npz", x=x, y=y)
    files = [Reads(tmp_path / f"{i}.npz") for i in range(len(PARTITIONS))]
    told = []
    read = distributed.value_and_grad(
        regression, files, on=on, fan_in=4, progress=lambda done, total: told.append((done, total))
    )
    same(read(WEIGHTS), alone(WEIGHTS))
    assert told[-1] == (len(PARTITIONS) + 4, len(PARTITIONS) + 4)


def test_chains(walk, on):
    alone = distributed.sample_chains(walk, 3, 0.5, draws=4, discard=2, seed=7)
    spread = distributed.sample_chains(walk, 3, 0.5, draws=4, discard=2, seed=7, on=on)
    same(spread, alone)
    assert alone["at"].shape == (3, 4, 3) and alone["norm"].shape == (3, 4)
    assert len({chain.tobytes() for chain in alone["at"]}) == 3


@pytest.mark.parametrize("engine", ["dask_client", "ray_cluster"])
def test_a_killed_worker_loses_nothing(regression, engine, request, tmp_path):
    on = request.getfixturevalue(engine)
    batches = [(WEIGHTS, x, y) for x, y in PARTITIONS]
    found = distributed.map_batches(DiesOnce(regression, tmp_path / "batches"), batches, on=on)
    for result, batch in zip(found, batches, strict=True):
        same(result, regression(*batch))
    if engine == "dask_client":
        # Dask gives up a worker that ends while it starts, and waits for ever when there is none.
        on.wait_for_workers(2, timeout=60)
    # The worker that dies has partitions and partial sums.
    spread = distributed.value_and_grad(DiesOnce(regression, tmp_path / "sums"), PARTITIONS, on=on, fan_in=2)
    alone = distributed.value_and_grad(regression, PARTITIONS, fan_in=2)
    for scale in (1.0, 0.3):
        same(spread(scale * WEIGHTS), alone(scale * WEIGHTS))
    assert (tmp_path / "batches").exists() and (tmp_path / "sums").exists()
    if engine == "dask_client":
        on.wait_for_workers(2, timeout=60)


def test_dask_arrays(dask_client, tmp_path):
    array = pytest.importorskip("dask.array")
    x = pt.dmatrix("x")
    rows = RNG.normal(size=(50, 4))
    blocks = array.from_array(rows, chunks=(16, 4))
    for graph in (pt.tanh(x).sum(axis=1), pt.tanh(x) * 2, [pt.tanh(x)[:, :, None] * x[:, None, :]]):
        f = graphc.function([x], graph, name="f")
        graphc.export(f, tmp_path / "f.gcx")
        for function in (f, graphc_runtime.load(tmp_path / "f.gcx").f):
            made = distributed.map_batches(function, blocks)
            expected = f(rows)[0] if isinstance(graph, list) else f(rows)
            assert made.chunks[0] == (16, 16, 16, 2) and made.dtype == expected.dtype
            np.testing.assert_array_equal(made.compute(), expected)
    with pytest.raises(TypeError, match="one number for each block"):
        distributed.map_batches(graphc.function([x], x.sum()), blocks)
    with pytest.raises(ValueError, match="whole rows"):
        distributed.map_batches(f, array.from_array(rows, chunks=(16, 2)))
    with pytest.raises(ValueError, match="needs a row for each"):
        distributed.map_batches(graphc.function([x], x[1:]), blocks).compute()


def test_arguments_that_are_overwritten_belong_to_the_task():
    x = pt.dvector("x")
    f = graphc.function([graphc.In(x, mutable=True, borrow=True)], x * 2 + 1)
    batch = np.arange(5.0)
    with ThreadPoolExecutor(2) as threads:
        for found in distributed.map_batches(f, [batch] * 4, on=threads):
            np.testing.assert_array_equal(found, np.arange(5.0) * 2 + 1)
    np.testing.assert_array_equal(batch, np.arange(5.0))


def test_chains_begin_where_they_are_told(walk):
    start = [{"at": np.full(3, 100.0 * i)} for i in range(2)]
    found = distributed.sample_chains(walk, 2, 0.0, seed=np.random.SeedSequence(1), start=start)
    assert abs(found["at"][0]).max() < 50 < found["at"][1].min()


def test_functions_and_artifacts_have_the_same_chains(tmp_path):
    rng = graphc.shared(np.random.default_rng(1), name="rng")
    next_rng, x = rng.normal(size=2)
    f = graphc.function([], [x], updates={rng: next_rng}, name="f")
    before = rng.get_value().bit_generator.state
    graphc.export(f, tmp_path / "f.gcx")
    other = graphc_runtime.load(tmp_path / "f.gcx").f
    same(*(distributed.sample_chains(each, 2, draws=3, seed=0) for each in (f, other)))
    assert rng.get_value().bit_generator.state == before


def test_code_is_loaded_once(tmp_path):
    x = pt.dvector("x")
    f = graphc.function([x], pt.exp(x).sum(), name="f")
    graphc.export(f, tmp_path / "f.gcx")
    module = graphc_runtime.load(tmp_path / "f.gcx")
    one, two = (pickle.loads(pickle.dumps(module)) for _ in range(2))
    assert one is not two and one._content is two._content
    one, two = (pickle.loads(pickle.dumps(f)) for _ in range(2))
    assert one is not two and one.executor.executable is two.executor.executable
    assert one(np.zeros(3)) == two(np.zeros(3)) == 3.0


def test_refusals(walk, monkeypatch):
    x = pt.dvector("x")
    f = graphc.function([x], x.sum(), name="total")
    with pytest.raises(TypeError, match="walk updates shared variables"):
        distributed.map_batches(walk, [0.0])
    with pytest.raises(TypeError, match="walk updates shared variables"):
        distributed.value_and_grad(walk, [0.0])
    with pytest.raises(TypeError, match="total gives the same each time"):
        distributed.sample_chains(f, 2, np.ones(2))
    with pytest.raises(TypeError, match="list of arrays, not one"):
        distributed.map_batches(f, np.ones((2, 2)))
    with pytest.raises(ValueError, match="at least one partition"):
        distributed.value_and_grad(f, [])
    with pytest.raises(ValueError, match="start has values for 1 chains, of 2"):
        distributed.sample_chains(walk, 2, 0.0, start=[{}])
    with pytest.raises(KeyError, match="nowhere"):
        distributed.sample_chains(walk, 1, 0.0, start=[{"nowhere": 0.0}])
    with pytest.raises(TypeError, match="on= must be None"):
        distributed.map_batches(f, [np.ones(2)], on=3)
    monkeypatch.setitem(sys.modules, "ray", None)
    with pytest.raises(ImportError, match=r"graphc\[ray\]"):
        distributed.map_batches(f, [np.ones(2)], on="ray")


def test_functions_of_a_session(dask_client):
    """What is submitted may use a compiled function, as any other."""
    x = pt.dvector("x")
    for mode in ("fast_run", "fast_compile", "debug", "tiered"):
        f = graphc.function([x], pt.exp(x).sum(), mode=mode)
        found = dask_client.submit(lambda v, f=f: f([v]), 1.0, pure=False).result()
        np.testing.assert_allclose(found, np.exp(1.0))
