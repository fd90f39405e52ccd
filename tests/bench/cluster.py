# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""What a data-parallel gradient costs on a cluster: kernel, tasks, bytes.

`python tests/bench/cluster.py`. A logistic regression of 4 M rows in 64 partitions, 32 parameters, on two
workers of each engine. Prints what the formula in docs/guide/run-on-a-cluster.md is fed with.
"""

from __future__ import annotations

import os
import time
from collections.abc import Callable, Iterator
from concurrent.futures import ProcessPoolExecutor
from contextlib import contextmanager
from multiprocessing import get_context
from typing import Any

import distributed as dask_distributed
import numpy as np
import ray

import graphc
import graphc.tensor as pt
from graphc import distributed
from graphc_runtime.distributed.engines import engine_of

ROWS, PARTS, PARAMETERS = 1 << 16, 64, 32
TASKS, BYTES = 1000, 1 << 23


def model() -> Any:
    """Loss and gradient of a partition."""
    w, x, y = pt.dvector("w"), pt.dmatrix("x"), pt.dvector("y")
    loss = pt.softplus(-y * pt.dot(x, w)).sum()
    return graphc.function([w, x, y], [loss, graphc.grad(loss, w)], name="model")


class Partition:
    """Reads, that is, makes rows where they are used."""

    def __init__(self, number: int) -> None:
        self.number = number

    def __call__(self) -> tuple[np.ndarray, np.ndarray]:
        rng = np.random.default_rng(self.number)
        return rng.normal(size=(ROWS, PARAMETERS)), np.sign(rng.normal(size=ROWS))


def nothing(*args: Any) -> None:
    """A task without work."""


def block(number: int) -> np.ndarray:
    """A result of `BYTES` bytes."""
    return np.full(BYTES // 8, float(number))


def best(run: Callable[[], Any], rounds: int = 5) -> float:
    """Seconds of a call."""
    times = []
    for _ in range(rounds):
        start = time.perf_counter()
        run()
        times.append(time.perf_counter() - start)
    return min(times)


@contextmanager
def engines() -> Iterator[dict[str, Any]]:
    """Two processes of each kind."""
    cluster = dask_distributed.LocalCluster(
        n_workers=2, threads_per_worker=1, processes=True, dashboard_address=None
    )
    path = {"PYTHONPATH": os.pathsep.join([os.path.dirname(__file__), os.environ.get("PYTHONPATH", "")])}
    ray.init(
        address="local",
        num_cpus=2,
        include_dashboard=False,
        log_to_driver=False,
        runtime_env={"env_vars": path},
    )
    with (
        ProcessPoolExecutor(2, mp_context=get_context("spawn")) as pool,
        cluster,
        dask_distributed.Client(cluster) as client,
    ):
        yield {"processes": pool, "Dask": client, "Ray": "ray"}
        ray.shutdown()


def main() -> None:
    """Prints a line for the kernel and one for each engine."""
    f, w = model(), np.full(PARAMETERS, 0.1)
    rows = Partition(0)()
    with graphc.threads(1):
        kernel = best(lambda: f(w, *rows), 20)
    print(f"kernel: {kernel * 1e3:.2f} ms for {ROWS} rows, {kernel / ROWS * 1e9:.1f} ns a row, one thread")
    print(f"parameters: {w.nbytes} bytes; result of a partition: {w.nbytes + 8} bytes")
    with engines() as found:
        for name, on in found.items():
            engine = engine_of(on)
            engine.results([engine.submit(nothing, i) for i in range(10)])
            start = time.perf_counter()
            engine.results([engine.submit(nothing, i) for i in range(TASKS)])
            task = (time.perf_counter() - start) / TASKS
            line = f"{name}: {task * 1e6:.0f} us a task"
            if name != "processes":
                step = distributed.value_and_grad(f, [Partition(i) for i in range(PARTS)], on=on)
                step(w)
                line += f", a gradient of {PARTS} partitions {best(lambda: step(w)) * 1e3:.0f} ms"  # noqa: B023
            start = time.perf_counter()
            engine.results([engine.submit(block, i) for i in range(8)])
            line += f", {8 * BYTES / (time.perf_counter() - start) / 1e6:.0f} MB/s to this process"
            print(line)


if __name__ == "__main__":
    main()
