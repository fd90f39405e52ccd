# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""One PyMC model compiled by one backend in a fresh process: run as `pymc_worker.py MODEL MODE`.

Prints one JSON object when log density and gradient are compiled and called once:
`{"cpu": s, "wall": s, "built": s, "values": [...], "python": [ops that run in Python]}`. `cpu` and `wall` are
from the finished graph, gradient included, to the first result: PyTensor's rewrites, the compiler's loading
and the first call count, imports and the building of the graph (`built`) do not. Then answers each line of
its input, a number of seconds, with `{"best": seconds of a call}`.

The caches are where GRAPHC_CACHE_DIR, PYTENSOR_FLAGS=base_compiledir and JAX_COMPILATION_CACHE_DIR say.
"""

from __future__ import annotations

import importlib
import json
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
from timing import best_time

sys.path.insert(0, str(Path(__file__).resolve().parents[1] / "interop"))

Density = Callable[[np.ndarray], list]


LINKERS = {"NUMBA": "pytensor.link.numba.dispatch", "JAX": "pytensor.link.jax.dispatch"}


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

    importlib.import_module(LINKERS.get(mode, "graphc.interop.pytensor"))
    if mode == "JAX":
        importlib.import_module("jax").config.update("jax_persistent_cache_min_compile_time_secs", 0.0)
    model = MODELS[name]()
    x = flat_point(model)
    began = time.perf_counter()
    point, outputs = graph(model, mode != "GRAPHC_GRAD")
    built = time.perf_counter() - began
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


def main() -> None:
    """Compile, then answer until the input ends."""
    answers, sys.stdout = sys.stdout, sys.stderr  # what a library prints must not get into the answers
    try:
        f, x, hello = compiled(*sys.argv[1:3])
    except Exception as error:
        f, x, hello = None, None, {"error": f"{type(error).__name__}: {str(error).splitlines()[:1]}"}
    print(json.dumps(hello), file=answers, flush=True)
    for line in sys.stdin:
        print(
            json.dumps({"best": best_time("f(x)", {"f": f, "x": x}, float(line))}), file=answers, flush=True
        )


if __name__ == "__main__":
    main()
