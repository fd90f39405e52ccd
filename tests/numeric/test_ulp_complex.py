# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Accuracy and special values of functions of complex numbers; many points in `make fuzz-inputs`."""

from __future__ import annotations

import numpy as np
import pytest

pytest.importorskip("mpmath")

from fuzzing import EXAMPLES, FUZZING
from ulp_complex import DTYPES, EXCEPTIONS, FUNCTIONS, UNLIKE_NUMPY, limit, sweep, wrong_specials

import graphc
import graphc.tensor as pt


@pytest.mark.parametrize("name", FUNCTIONS)
def test_error_bound(name: str) -> None:
    for dtype in DTYPES:
        worst, _, at = sweep(name, dtype, 64)
        assert worst <= limit(name, dtype), at


@pytest.mark.fuzz
@pytest.mark.skipif(not FUZZING, reason="`make fuzz-inputs` runs the long sweep")
@pytest.mark.parametrize("name", FUNCTIONS)
def test_error_bound_on_many_points(name: str) -> None:
    for dtype in DTYPES:
        worst, _, at = sweep(name, dtype, 4 * EXAMPLES, seed=1)
        assert worst <= limit(name, dtype), at


@pytest.mark.parametrize("name", [name for name in FUNCTIONS if name not in UNLIKE_NUMPY])
def test_special_values(name: str) -> None:
    for dtype in DTYPES:
        wrong = wrong_specials(name, dtype)
        assert not wrong, wrong[:5]


def test_exceptions_are_of_functions_that_are_tested() -> None:
    assert set(EXCEPTIONS) | set(UNLIKE_NUMPY) <= set(FUNCTIONS)


def test_branch_cuts() -> None:
    """Both sides of every cut, where a real part or an angle jumps."""
    values = np.array([complex(x, y) for x in (-2.0, -0.5, 0.5, 2.0) for y in (0.0, -0.0)])
    values = np.concatenate([values, [complex(z.imag, z.real) for z in values]])
    z = pt.zvector()
    names = ("log", "sqrt", "arcsin", "arccos", "arctan", "arcsinh", "arccosh", "arctanh")
    function = graphc.function([z], [getattr(pt, name)(z) for name in names])
    for name, got in zip(names, function(values), strict=True):
        expected = getattr(np, name)(values)
        np.testing.assert_allclose(got, expected, rtol=1e-14, atol=1e-14, err_msg=name)
        large = np.abs(expected.imag) > 0.1
        np.testing.assert_array_equal(np.signbit(got.imag[large]), np.signbit(expected.imag[large]), name)


def test_whole_powers_are_products() -> None:
    z, k = pt.zvector(), pt.zvector()
    bases = np.array([1 + 1j, 3 - 2j, -1j, 2 + 0j, 0j, 5j])
    exponents = np.array([2 + 0j, 3 + 0j, -1 + 0j, 10 + 0j, 0j, -2 + 0j])
    got = graphc.function([z, k], z**k)(bases, exponents)
    np.testing.assert_array_equal(got, bases**exponents)


def test_comparison_with_an_unknown_imaginary_part() -> None:
    x, y = pt.zvector(), pt.zvector()
    a = np.array([complex(-1, np.nan), 1 + 1j, -3 + 0j])
    b = np.array([0j, complex(2, np.nan), complex(-2, 1)])
    outputs = [x < y, x >= y, pt.maximum(x, y), pt.minimum(x, y)]
    expected = [a < b, a >= b, np.maximum(a, b), np.minimum(a, b)]
    for got, right in zip(graphc.function([x, y], outputs)(a, b), expected, strict=True):
        np.testing.assert_array_equal(got, right)
