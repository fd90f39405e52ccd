# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""The models of `artifacts.py` as files of JAX and of torch. Runs in the peers' environment, without graphc.

`artifact_peers.py make FOLDER` reads `<model>.npz` and writes a file for each model and way; `time FOLDER
WAY MODEL` prints seconds to load and of a call; `first FOLDER WAY MODEL` computes one result.

Ways: "jax.export" (StableHLO, compiled when it is loaded), "jax compiled" (its serialised executable), and
"AOTInductor" (`torch.export`, compiled to a shared library in a package).
"""

from __future__ import annotations

import pickle
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np

WAYS = {"jax.export": "hlo", "jax compiled": "xla", "AOTInductor": "pt2"}


def log_density(np_like: Any, take: Callable[[Any], Any], q: Any, floor: Any, level: Any) -> Any:
    """Negative log posterior of the hierarchical regression."""
    mean, slope, spread, noise, z = q[0], q[1], np_like.exp(q[2]), np_like.exp(q[3]), q[4:]
    apart = (level - take(mean + spread * z) - slope * floor) / noise
    density = 0.5 * (apart**2).sum() + 919 * q[3] + 0.5 * (z**2).sum() + 0.005 * (mean**2 + slope**2)
    return density + 0.5 * spread**2 - q[2] + 0.02 * noise**2 - q[3]


def jax_model(name: str, data: dict[str, np.ndarray]) -> Callable[..., Any]:
    """Value and gradient of a model."""
    import jax
    import jax.numpy as jnp

    if name == "hierarchical":
        group, floor, level = (jnp.asarray(data[key]) for key in ("group", "floor", "level"))
        return jax.value_and_grad(lambda q: log_density(jnp, lambda a: a[group], q, floor, level))

    def loss(x: Any, w: Any, u: Any) -> Any:
        def step(h: Any, row: Any) -> Any:
            h = jnp.tanh(row + h @ w)
            return h, h

        _, h = jax.lax.scan(step, jnp.zeros(w.shape[0]), x @ u)
        return (h**2).mean()

    return jax.value_and_grad(loss, (1, 2))


def torch_model(name: str, data: dict[str, np.ndarray]) -> Callable[..., Any]:
    """Value and gradient of a model."""
    import torch
    from torch.func import grad_and_value

    if name == "hierarchical":
        group, floor, level = (torch.from_numpy(data[key]) for key in ("group", "floor", "level"))
        return grad_and_value(lambda q: log_density(torch, lambda a: a[group], q, floor, level))

    def loss(x: Any, w: Any, u: Any) -> Any:
        h, rows = torch.zeros(w.shape[0], dtype=w.dtype), []
        for row in x @ u:
            h = torch.tanh(row + h @ w)
            rows.append(h)
        return (torch.stack(rows) ** 2).mean()

    return grad_and_value(loss, (1, 2))


def read(folder: Path, model: str) -> tuple[dict[str, np.ndarray], list[np.ndarray]]:
    """Data and inputs of a model."""
    with np.load(folder / f"{model}.npz") as found:
        data = dict(found)
    return data, [data[key] for key in sorted(data) if key.startswith("input_")]


def make(folder: Path) -> None:
    """Writes all files."""
    import jax
    import torch
    from jax import export
    from jax.experimental import serialize_executable
    from torch.fx.experimental.proxy_tensor import make_fx

    jax.config.update("jax_enable_x64", True)
    for model in ("hierarchical", "recurrent"):
        data, values = read(folder, model)
        jitted = jax.jit(jax_model(model, data))
        (folder / f"{model}.hlo").write_bytes(export.export(jitted)(*values).serialize())
        compiled = serialize_executable.serialize(jitted.lower(*values).compile())
        (folder / f"{model}.xla").write_bytes(pickle.dumps(compiled))
        tensors = tuple(map(torch.from_numpy, values))
        program = torch.export.export(make_fx(torch_model(model, data))(*tensors), tensors)
        torch._inductor.aoti_compile_and_package(program, package_path=str(folder / f"{model}.pt2"))


def load(folder: Path, way: str, model: str) -> Callable[..., Any]:
    """A function of NumPy arrays that waits for its results."""
    path = folder / f"{model}.{WAYS[way]}"
    if way == "AOTInductor":
        import torch

        function = torch._inductor.aoti_load_package(str(path))
        return lambda *values: function(*map(torch.from_numpy, values))
    import jax

    jax.config.update("jax_enable_x64", True)
    if way == "jax.export":
        from jax import export

        called = jax.jit(export.deserialize(bytearray(path.read_bytes())).call)
    else:
        from jax.experimental import serialize_executable

        called = serialize_executable.deserialize_and_load(*pickle.loads(path.read_bytes()))
    return lambda *values: jax.block_until_ready(called(*values))


def first(result: Any) -> float:
    """The model's value among what a way returns."""
    value = result[1] if type(result[0]).__module__.startswith(("torch", "builtins")) else result[0]
    return float(value if np.ndim(value) == 0 else result[-1])


def best(run: Callable[[], Any], rounds: int = 30) -> float:
    """Seconds of a call."""
    start = time.perf_counter()
    run()
    count = max(1, int(0.01 / max(time.perf_counter() - start, 1e-7)))
    times = []
    for _ in range(rounds):
        start = time.perf_counter()
        for _ in range(count):
            run()
        times.append((time.perf_counter() - start) / count)
    return min(times)


def main() -> None:
    """See above."""
    command, folder = sys.argv[1], Path(sys.argv[2])
    if command == "make":
        make(folder)
        return
    way, model = sys.argv[3:]
    values = read(folder, model)[1]
    if command == "first":
        load(folder, way, model)(*values)
        return
    load(folder, way, model)(*values)  # imports, and what a process does once
    start = time.perf_counter()
    function = load(folder, way, model)
    if way == "jax.export":
        function(*values)  # compiles
    loaded = time.perf_counter() - start
    print(loaded, best(lambda: function(*values)), first(function(*values)))


if __name__ == "__main__":
    main()
