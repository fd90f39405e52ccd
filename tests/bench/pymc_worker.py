# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""One PyMC model compiled by one backend, in a process of its own that has imported everything before.

`serve` compiles log density and gradient, calls them once and sends
`{"cpu": s, "wall": s, "built": s, "values": [...], "python": [ops that run in Python]}`. `cpu` and `wall` are
from the finished graph, gradient included, to the first result: PyTensor's rewrites, the compiler's loading
and the first call count; imports, the building of the graph (`built`) and the collection of the garbage
that it leaves do not.
"""

from __future__ import annotations

import gc
import time
from collections.abc import Callable
from multiprocessing.connection import Connection
from pathlib import Path
from typing import Any

import numpy as np
from timing import best_time

# What a process has imported before its time counts.
IMPORTS = [
    "graphc.interop.pytensor", "jax", "models", "pymc", "pytensor.link.jax.dispatch",
    "pytensor.link.numba.dispatch", "pymc_worker",
]  # fmt: skip
Density = Callable[[np.ndarray], list]


def use_caches(caches: Path) -> None:
    """Compiled functions are kept below this folder, of all backends."""
    import jax
    import pytensor.link.numba.cache

    import graphc

    graphc.config.cache_dir = str(caches / "graphc")
    pytensor.link.numba.cache.NUMBA_CACHE_PATH = caches / "numba"
    (caches / "numba").mkdir(parents=True, exist_ok=True)
    jax.config.update("jax_compilation_cache_dir", str(caches / "jax"))
    jax.config.update("jax_persistent_cache_min_compile_time_secs", 0.0)


def flat_point(model: Any) -> np.ndarray:
    """The initial point as one vector, moved a little."""
    start = model.initial_point()
    x = np.concatenate([np.ravel(start[v.name]) for v in model.value_vars]).astype(np.float64)
    return x + 0.1 * np.random.default_rng(0).normal(size=x.shape)


def graph(model: Any, with_gradient: bool) -> tuple[Any, list[Any]]:
    """One vector in, the density and its gradient out, as `model.logp_dlogp_function` makes it."""
    import pytensor
    from pymc.pytensorf import join_nonshared_inputs, rewrite_pregrad

    outputs = [model.logp()]
    if with_gradient:
        cost = rewrite_pregrad(outputs[0])
        slopes = pytensor.grad(cost, model.value_vars, disconnected_inputs="ignore")
        outputs = [cost, pytensor.tensor.join(0, *[slope.ravel() for slope in slopes])]
    outputs, point = join_nonshared_inputs(
        point=model.initial_point(), inputs=model.value_vars, outputs=outputs, make_inputs_shared=False
    )
    return point, outputs


def whole(point: Any, outputs: list[Any]) -> Any:
    """The graph of the density differentiated by graphc."""
    import graphc
    from graphc.interop.pytensor import from_pytensor

    [x], [density] = from_pytensor([point], outputs)
    return graphc.function([x], [density, graphc.grad(density, x)])


def compiled(name: str, mode: str) -> tuple[Density, np.ndarray, dict[str, Any]]:
    """The function of a flat point, a point to call it at, and what its making took."""
    from models import MODELS
    from pymc.pytensorf import compile

    model = MODELS[name]()
    x = flat_point(model)
    began = time.perf_counter()
    point, outputs = graph(model, mode != "GRAPHC_GRAD")
    built = time.perf_counter() - began
    # The graph's making has brought Python close to its next full collection, 0.2 s for all that is imported;
    # which mode would pay for it is chance.
    gc.collect()
    wall, cpu = time.perf_counter(), time.process_time()
    f = whole(point, outputs) if mode == "GRAPHC_GRAD" else compile([point], outputs, mode=mode)
    f.trust_input = True
    values = [np.asarray(value) for value in f(x)]
    found = {"wall": time.perf_counter() - wall, "cpu": time.process_time() - cpu, "built": built}
    found["values"] = np.concatenate([np.ravel(value) for value in values]).tolist()
    if mode.startswith("GRAPHC"):
        report = f.report if mode == "GRAPHC_GRAD" else f.vm.jit_fn.report
        found["python"] = [fallback.op for fallback in report.fallbacks]
    if mode == "JAX":  # what a caller gets is computed when it is asked for
        return lambda x: [np.asarray(value) for value in f(x)], x, found
    return f, x, found


def serve(pipe: Connection, name: str, mode: str, caches: Path) -> None:
    """Compile, then answer each number of seconds with the best time of a call, until None."""
    f, x = None, None
    try:
        use_caches(caches)
        f, x, hello = compiled(name, mode)
    except Exception as error:
        hello = {"error": f"{type(error).__name__}: {str(error).splitlines()[:1]}"}
    pipe.send(hello)
    while seconds := pipe.recv():
        pipe.send(best_time("f(x)", {"f": f, "x": x}, seconds))
