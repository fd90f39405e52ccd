# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Accuracy of elementwise functions: few points, many in `make fuzz-inputs` (`tests/numeric/ulp.py`)."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

pytest.importorskip("mpmath")

from fuzzing import EXAMPLES, FUZZING
from mpmath import mp, mpf
from ulp import CASES, DIGITS, DTYPES, error_in_ulp, sweep
from ulp_complex import FUNCTIONS
from ulp_exceptions import EXCEPTIONS, limit
from ulp_references import EXACT

# Those whose code is ours or libm's, and quick in mpmath.
SHORT = [name for name, case in CASES.items() if case.cost <= 2 and name not in ("sqrt", "true_div")]


@pytest.mark.parametrize("name", SHORT)
def test_error_bound(name: str) -> None:
    for dtype in DTYPES:
        result = sweep(name, dtype, 48)
        assert result.worst <= limit(name, dtype), result
        assert not result.wrong, result.wrong[:5]


@pytest.mark.fuzz
@pytest.mark.skipif(not FUZZING, reason="`make fuzz-inputs` runs the long sweep")
@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("name", CASES)
def test_error_bound_on_many_points(name: str, dtype: str) -> None:
    result = sweep(name, dtype, 4 * EXAMPLES, seed=1)
    assert result.worst <= limit(name, dtype), result
    assert not result.wrong, result.wrong[:5]


def test_every_function_is_swept_or_exact() -> None:
    from graphc.ops.elementwise import ROWS

    assert set(ROWS) - set(CASES) - set(FUNCTIONS) == EXACT - set(FUNCTIONS)


def test_exceptions_are_of_functions_that_are_tested() -> None:
    assert set(EXCEPTIONS) <= set(CASES)


def test_the_measure() -> None:
    assert error_in_ulp(np.float32(1), mpf(1) + mpf(2) ** -24) == 0.5
    assert error_in_ulp(np.float64(5e-324), mpf(0)) == 1
    assert error_in_ulp(np.float32(np.inf), mpf("3.5e38")) == 0
    assert error_in_ulp(np.float64(np.nan), mpf(1)) == np.inf
    assert error_in_ulp(np.float32(0), mpf(2) ** -150) == 0.5


# Where functions were once wrong: operands, and how many units in the last place they may be off now.
PLACES: dict[str, tuple[list[Any], float]] = {
    "digamma": ([-0.5040830082644554, -3.635293366436901, -1.6639182178087875, -482.93040627994986], 4),
    # Both sides of the places where the method changes.
    "gammaln": (
        [
            0.49999999999999994,
            0.5,
            1.4999999999999998,
            1.5,
            2.9999999999999996,
            3.0,
            9.999999999999998,
            10.0,
            5e-324,
            1.0000000000000002,
            0.9999999999999999,
            1.9999999999999998,
            2.0000000000000004,
            0.96,
        ],
        3,
    ),
    "trigamma": ([344832.8711246991, 10.009876824710638, -193.09, 1.0], 4),
    "kl_div": ([(8.840947679379438e306, 1.0041659494022289e307), (3.1, 1.0), (1.0, 3.1)], 4),
    "i0": ([712.0770496251098, 7.99, 8.01], 4),
    "i1e": ([7.996524977136296, 8.000001], 4),
    "spence": ([0.5703137124156377, 2.0006036144921393, 1.0000001, 9.7, 0.01], 4),
    "expi": ([0.3725074107813666, 0.37, 0.375], 4),
    "beta": ([(19.029432692856517, 47.51726862415355)], 8),
    "rgamma": ([-170.91000063272386, 171.6, 176.9], 8),
}


@pytest.mark.parametrize("name", PLACES)
def test_places_that_were_wrong(name: str) -> None:
    import graphc
    import graphc.tensor as pt
    from graphc.ops.elementwise import OPS

    points, bound = PLACES[name]
    arrays = [np.array(x) for x in zip(*(p if isinstance(p, tuple) else (p,) for p in points), strict=True)]
    variables = [pt.vector() for _ in arrays]
    got = graphc.function(variables, OPS[name](*variables))(*arrays)
    with mp.workdps(DIGITS):
        for i, value in enumerate(got):
            exact = CASES[name].exact(*(mpf(float(x[i])) for x in arrays))
            assert error_in_ulp(value, exact) <= bound, (points[i], value)
