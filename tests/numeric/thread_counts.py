# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""What the tests of threads share: samples, and calls on several numbers of threads."""

from __future__ import annotations

import numpy as np

import graphc

COUNTS = (1, 2, 3, 5)


def sample(dtype, *shape, seed=0):
    rng = np.random.default_rng(seed)
    if dtype == "bool":
        return rng.random(shape) < 0.999
    if dtype.startswith(("int", "uint")):
        return rng.integers(0 if dtype[0] == "u" else -100, 100, shape).astype(dtype)
    values = rng.standard_normal(shape)
    return (values + 1j * rng.standard_normal(shape) if dtype.startswith("complex") else values).astype(dtype)


def same_on_all_counts(f, *values):
    """The results, after a comparison bit by bit of those on 1, 2, 3 and 5 threads."""
    found = []
    for count in COUNTS:
        with graphc.threads(count):
            found.append(f(*values))
    for others in found[1:]:
        for a, b in zip(found[0], others, strict=True):
            np.testing.assert_array_equal(a, b, strict=True)
            assert a.tobytes() == b.tobytes()
    return found[0]
