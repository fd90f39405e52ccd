# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""The same seed gives the numbers of NumPy's generator."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from random_cases import CONTINUOUS, DISCRETE, VECTORS, Case

import graphc
import graphc.tensor as pt

GENERATORS = {"PCG64": np.random.PCG64, "Philox": np.random.Philox}
# Small functions compile faster than large ones.
GROUPS = {
    **{f"continuous{i}": CONTINUOUS[i : i + 7] for i in range(0, len(CONTINUOUS), 7)},
    **{f"discrete{i}": DISCRETE[i : i + 7] for i in range(0, len(DISCRETE), 7)},
    "vectors": VECTORS,
}


def check(cases: list[Case], bits: str, mode: str, size: Any, seed: int = 5) -> None:
    """Draws each case twice from generators of their own, the second time where the first has ended."""
    inputs, values, outputs, shared = [], [], [], []
    for i, case in enumerate(cases):
        args = []
        for value in case.args:
            if isinstance(value, np.ndarray):
                # Ones are static, so that they broadcast.
                x = pt.TensorType(value.dtype, tuple(1 if n == 1 else None for n in value.shape))()
                inputs.append(x)
                values.append(value)
                args.append(x)
            else:
                args.append(value)
        rng = graphc.shared(np.random.Generator(GENERATORS[bits](seed + i)))
        _, draws = first = getattr(rng, case.name)(*args, size=size, **dict(case.options))
        second, again = getattr(first[0], case.name)(*args, size=size, **dict(case.options))
        outputs += [draws, again]
        shared.append((rng, second))
    f = graphc.function(inputs, outputs, updates=shared, mode=mode)
    found = f(*values)
    for i, case in enumerate(cases):
        generator = np.random.Generator(GENERATORS[bits](seed + i))
        for draws in found[2 * i : 2 * i + 2]:
            expected = np.asarray(case.numpy(generator, *case.args, size=size))
            assert draws.shape == expected.shape
            if case.exact:
                np.testing.assert_array_equal(draws, expected, err_msg=case.name)
            else:
                np.testing.assert_allclose(draws, expected, rtol=1e-13, err_msg=case.name)
            if "dtype" in dict(case.options) and draws.ndim:
                assert draws.dtype == expected.dtype
        state = shared[i][0].get_value().bit_generator.state
        np.testing.assert_equal(state, generator.bit_generator.state, err_msg=case.name)
    assert mode != "fast_run" or not f.report.fallbacks


@pytest.mark.parametrize("group", GROUPS)
def test_same_numbers_as_numpy(group: str) -> None:
    check(GROUPS[group], "PCG64", "fast_run", None)
    check(GROUPS[group], "Philox", "reference", None)


@pytest.mark.parametrize("group", GROUPS)
def test_same_numbers_as_numpy_with_philox(group: str) -> None:
    check(GROUPS[group], "Philox", "fast_compile", None)


def test_size_repeats_parameters() -> None:
    check([*CONTINUOUS[:9], *DISCRETE[2:6]], "PCG64", "fast_run", (4, 2, 3))
    check([VECTORS[1]], "PCG64", "fast_run", (300,))


def test_long_runs_reach_the_tails() -> None:
    """Enough draws for every rare branch of the loops that keep the generator in registers."""
    cases = [CONTINUOUS[i] for i in (0, 1, 2, -4, -3, -2)]
    assert {case.name for case in cases} == {"random", "standard_normal", "standard_exponential"}
    check(cases, "PCG64", "fast_run", 200_001)
    scalar = [Case(c.name, c.args[:0], c.numpy, options=c.options) for c in (CONTINUOUS[4], CONTINUOUS[5])]
    check(scalar, "PCG64", "fast_run", 200_001)
    bounds = [(0, 10), (-5, 2**31 + 7), (0, 2**32), (3, 4), (0, 2**32 + 1), (-(2**62), 2**62)]
    check([Case("integers", pair, DISCRETE[0].numpy) for pair in bounds], "PCG64", "fast_run", 20_001)
