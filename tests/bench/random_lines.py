# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Random draws: the workload, and the functions `normals(seed, n)` of the namespaces.

Each library draws other numbers, so that mean and deviation are compared. JAX is given a seed in each call;
the others go on from where the call before has stopped.
"""

from __future__ import annotations

import warnings
from typing import Any

import numpy as np
from cases import Case


def numpy_draws() -> dict[str, Any]:
    """Of a generator that all calls share."""
    generator = np.random.default_rng(0)
    return {"normals": lambda seed, n: generator.normal(0.0, 1.0, n)}


def symbolic_draws(tensor: Any) -> dict[str, Any]:
    """Of a stream of graphc or PyTensor; functions move its generators on."""

    def normals(seed: Any, n: int) -> Any:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # PyTensor means to replace its streams
            stream = tensor.random.RandomStream(0)
        return stream.normal(0.0, 1.0, size=(n,))

    return {"normals": normals}


def jax_draws() -> dict[str, Any]:
    """Of a key made of the seed."""
    import jax

    return {"normals": lambda seed, n: jax.random.normal(jax.random.key(seed), (n,))}


CASES = [
    Case(
        "normal",
        "1e6 normal random numbers, float64",
        "ms",
        lambda: (np.asarray(7),),
        lambda m, seed: m.normals(seed, 1_000_000),
        lead=(("numpy", 1.0), ("pytensor", 1.0), ("jax", 1.0)),
        draws=True,
    ),
]
