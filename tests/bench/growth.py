# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Times of programs whose work is sparse in a larger array, at sizes each twice the one before.

graphc beside PyTensor and JAX, each in a process of its own; a row says in milliseconds what the fastest of
some calls takes. What grows by more than two from size to size is not linear. `tests/numeric/
test_growth_of_work.py` counts the same for many more programs.

    python tests/bench/growth.py --peers-python .venv-peers/bin/python --sizes 2000,4000,8000
"""

from __future__ import annotations

import argparse
import json
import subprocess
import sys
import time
from collections.abc import Callable
from typing import Any

import numpy as np

_SECONDS = 0.3
_PARTS = 30


def inputs_of(name: str, size: int) -> list[Any]:
    """What a program is called with."""
    rng = np.random.default_rng(size)
    index = rng.integers(size, size=size)
    if name == "write an element, gradient":
        return [np.float64(0.3), np.arange(size)]
    if name == "parts, gradient":
        return [rng.normal(size=_PARTS * size)]
    if name in ("rows read, gradient", "steps along gradients of rows"):
        return [rng.normal(size=(size, 4)), index]
    return [rng.normal(size=size), index]


def symbolic(package: Any, tensor: Any, function: Callable[..., Any]) -> dict[str, Callable[[int], Any]]:
    """The programs for graphc and PyTensor; each makes a function for a size."""
    x, k, a, e = tensor.vector("x"), tensor.lvector("k"), tensor.scalar("a"), tensor.matrix("e")

    def loop(step: Any, sequences: list[Any], start: Any, others: tuple[Any, ...] = ()) -> Any:
        made = package.scan(
            step, sequences=sequences, outputs_info=[start], non_sequences=list(others), return_updates=False
        )
        return made[-1]

    def write(size: int) -> Any:
        return function(
            [x, k], loop(lambda v, i, b: tensor.set_subtensor(b[i], v), [x, k], tensor.zeros(size))
        )

    def histogram(size: int) -> Any:
        return function(
            [x, k], loop(lambda v, i, b: tensor.inc_subtensor(b[i], v), [x, k], tensor.zeros(size))
        )

    def write_gradient(size: int) -> Any:
        def step(i: Any, b: Any, a: Any) -> Any:
            return tensor.set_subtensor(b[i], tensor.tanh(a * b[i - 1]) + 1)

        return function([a, k], package.grad(loop(step, [k], tensor.zeros(size), (a,)).sum(), a))

    def rows_gradient(size: int) -> Any:
        last = loop(lambda i, h, e: tensor.tanh(h + e[i]), [k], tensor.zeros(4), (e,))
        return function([e, k], package.grad(last.sum(), e))

    def descent(size: int) -> Any:
        step = lambda i, w: w - 0.01 * package.grad((w[i].sum() - 1.0) ** 2, w)  # noqa: E731
        return function([e, k], loop(step, [k], e))

    def parts_gradient(size: int) -> Any:
        parts = [x[i * size : (i + 1) * size] for i in range(_PARTS)]
        return function(
            [x], package.grad(sum(tensor.exp(0.01 * i * p).sum() for i, p in enumerate(parts, 1)), x)
        )

    return {
        "write an element": write,
        "add to an element": histogram,
        "write an element, gradient": write_gradient,
        "rows read, gradient": rows_gradient,
        "parts, gradient": parts_gradient,
        "steps along gradients of rows": descent,
    }


def jax_programs() -> dict[str, Callable[[int], Any]]:
    """The same for JAX."""
    import jax
    import jax.numpy as jnp

    jax.config.update("jax_enable_x64", True)

    def write(size: int) -> Any:
        return lambda x, k: jax.lax.scan(
            lambda b, vi: (b.at[vi[1]].set(vi[0]), None), jnp.zeros(size), (x, k)
        )[0]

    def histogram(size: int) -> Any:
        return lambda x, k: jax.lax.scan(
            lambda b, vi: (b.at[vi[1]].add(vi[0]), None), jnp.zeros(size), (x, k)
        )[0]

    def write_gradient(size: int) -> Any:
        def total(a: Any, k: Any) -> Any:
            step = lambda b, i: (b.at[i].set(jnp.tanh(a * b[i - 1]) + 1), None)  # noqa: E731
            return jax.lax.scan(step, jnp.zeros(size), k)[0].sum()

        return jax.grad(total)

    def rows_gradient(size: int) -> Any:
        def total(e: Any, k: Any) -> Any:
            return jax.lax.scan(lambda h, i: (jnp.tanh(h + e[i]), None), jnp.zeros(4), k)[0].sum()

        return jax.grad(total)

    def descent(size: int) -> Any:
        slope = jax.grad(lambda w, i: (w[i].sum() - 1.0) ** 2)
        return lambda e, k: jax.lax.scan(lambda w, i: (w - 0.01 * slope(w, i), None), e, k)[0]

    def parts_gradient(size: int) -> Any:
        def total(x: Any) -> Any:
            parts = [x[i * size : (i + 1) * size] for i in range(_PARTS)]
            return sum(jnp.exp(0.01 * i * p).sum() for i, p in enumerate(parts, 1))

        return jax.grad(total)

    found = {
        "write an element": write,
        "add to an element": histogram,
        "write an element, gradient": write_gradient,
        "rows read, gradient": rows_gradient,
        "parts, gradient": parts_gradient,
        "steps along gradients of rows": descent,
    }

    def compiled(make: Callable[[int], Any]) -> Callable[[int], Any]:
        def of_size(size: int) -> Any:
            f = jax.jit(make(size))
            return lambda *values: f(*values).block_until_ready()

        return of_size

    return {name: compiled(make) for name, make in found.items()}


def programs(library: str) -> dict[str, Callable[[int], Any]]:
    """The programs of a library."""
    if library == "jax":
        return jax_programs()
    if library == "pytensor":
        import pytensor
        import pytensor.tensor as tensor

        return symbolic(pytensor, tensor, lambda *a: pytensor.function(*a, mode="NUMBA"))
    import graphc
    import graphc.tensor as gt

    return symbolic(graphc, gt, graphc.function)


def milliseconds(library: str, sizes: list[int]) -> dict[str, list[float]]:
    """The fastest call of each program at each size."""
    result: dict[str, list[float]] = {}
    for name, make in programs(library).items():
        result[name] = []
        for size in sizes:
            f, values = make(size), inputs_of(name, size)
            f(*values)
            best, end = float("inf"), time.perf_counter() + _SECONDS
            while time.perf_counter() < end:
                start = time.perf_counter()
                f(*values)
                best = min(best, time.perf_counter() - start)
            result[name].append(1e3 * best)
    return result


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--peers-python", help="an interpreter with PyTensor, numba and JAX")
    parser.add_argument("--sizes", default="5000,10000,20000")
    parser.add_argument("--library", help=argparse.SUPPRESS)
    options = parser.parse_args()
    sizes = [int(size) for size in options.sizes.split(",")]
    if options.library:
        print(json.dumps(milliseconds(options.library, sizes)))
        return
    found = {"graphc": milliseconds("graphc", sizes)}
    for library in ("pytensor", "jax") if options.peers_python else ():
        command = [options.peers_python, __file__, "--library", library, "--sizes", options.sizes]
        made = subprocess.run(command, capture_output=True, text=True, check=False)
        if made.returncode:
            print(f"{library}: {made.stderr.strip().splitlines()[-1]}", file=sys.stderr)
        else:
            found[library] = json.loads(made.stdout.splitlines()[-1])
    print(f"{'milliseconds':30}" + "".join(f"{size:>10}" for size in sizes))
    for name in found["graphc"]:
        for library, times in found.items():
            print(f"{name:30}" + "".join(f"{t:10.3f}" for t in times[name]) + f"  {library}")


if __name__ == "__main__":
    main()
