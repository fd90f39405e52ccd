# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Accuracy of elementwise functions: a few points each here, many in `make fuzz` (`tests/numeric/ulp.py`)."""

from __future__ import annotations

import os

import numpy as np
import pytest

pytest.importorskip("mpmath")

from mpmath import mpf
from ulp import CASES, DTYPES, error_in_ulp, sweep
from ulp_exceptions import EXCEPTIONS, limit

# Those whose code is ours or libm's, and quick in mpmath.
SHORT = [name for name, case in CASES.items() if case.cost <= 2 and name not in ("sqrt", "true_div")]


@pytest.mark.parametrize("name", SHORT)
def test_error_bound(name: str) -> None:
    for dtype in DTYPES:
        result = sweep(name, dtype, 48)
        assert result.worst <= limit(name, dtype), result
        assert not result.wrong, result.wrong[:5]


@pytest.mark.fuzz
@pytest.mark.skipif("FUZZ_EXAMPLES" not in os.environ, reason="`make fuzz` runs the long sweep")
@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("name", CASES)
def test_error_bound_on_many_points(name: str, dtype: str) -> None:
    result = sweep(name, dtype, 4 * int(os.environ["FUZZ_EXAMPLES"]), seed=1)
    assert result.worst <= limit(name, dtype), result
    assert not result.wrong, result.wrong[:5]


def test_exceptions_are_of_functions_that_are_tested() -> None:
    assert set(EXCEPTIONS) <= set(CASES)


def test_the_measure() -> None:
    assert error_in_ulp(np.float32(1), mpf(1) + mpf(2) ** -24) == 0.5
    assert error_in_ulp(np.float64(5e-324), mpf(0)) == 1
    assert error_in_ulp(np.float32(np.inf), mpf("3.5e38")) == 0
    assert error_in_ulp(np.float64(np.nan), mpf(1)) == np.inf
    assert error_in_ulp(np.float32(0), mpf(2) ** -150) == 0.5
