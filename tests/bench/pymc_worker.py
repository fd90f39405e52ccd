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

import numpy as np
from timing import best_time

sys.path.insert(0, str(Path(__file__).resolve().parents[1] / "interop"))

Density = Callable[[np.ndarray], list]


def compiled(name: str, mode: str) -> tuple[Density, np.ndarray, dict[str, object]]:
    """The function of a flat point, a point to call it at, and what its making took."""
    import pymc as pm
    import pytensor
    from models import MODELS
    from pymc.pytensorf import join_nonshared_inputs, rewrite_pregrad

    linker = {"NUMBA": "pytensor.link.numba.dispatch", "JAX": "pytensor.link.jax.dispatch"}
    importlib.import_module(linker.get(mode, "graphc.interop.pytensor"))
    if mode == "JAX":
        importlib.import_module("jax").config.update("jax_persistent_cache_min_compile_time_secs", 0.0)
    model = MODELS[name]()
    start = model.initial_point()
    x = np.concatenate([np.ravel(start[v.name]) for v in model.value_vars]).astype(np.float64)
    x = x + 0.1 * np.random.default_rng(0).normal(size=x.shape)
    began = time.perf_counter()
    # As `model.logp_dlogp_function` does it: one vector in, the density and one vector out.
    cost = rewrite_pregrad(model.logp())
    slopes = pytensor.grad(cost, model.value_vars, disconnected_inputs="ignore")
    outputs = [cost, pytensor.tensor.join(0, *[slope.ravel() for slope in slopes])]
    outputs, point = join_nonshared_inputs(
        point=start, inputs=model.value_vars, outputs=outputs, make_inputs_shared=False
    )
    built = time.perf_counter() - began
    wall, cpu = time.perf_counter(), time.process_time()
    f = pm.pytensorf.compile([point], outputs, mode=mode)
    f.trust_input = True
    values = [np.asarray(value) for value in f(x)]
    laps = {"wall": time.perf_counter() - wall, "cpu": time.process_time() - cpu, "built": built}
    in_python = f.vm.jit_fn.report.fallbacks if mode.startswith("GRAPHC") else []
    flat = np.concatenate([np.ravel(value) for value in values]).tolist()
    if mode == "JAX":  # what a caller gets is computed when it is asked for
        return lambda x: [np.asarray(value) for value in f(x)], x, {**laps, "values": flat, "python": []}
    return f, x, {**laps, "values": flat, "python": [str(op) for op in in_python]}


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
