# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Integers at their limits: overflow, division by zero, shifts beyond the width, and casts of floats."""

from __future__ import annotations

import itertools
import platform
from typing import Any

import numpy as np
import pytest

import graphc
import graphc.tensor as pt
from graphc.ops.elementwise import OPS, ROWS

DTYPES = ("int8", "int16", "int32", "int64", "uint8", "uint16", "uint32", "uint64")
MODES = ("fast_run", "fast_compile", "reference")
BINARY = ("add", "sub", "mul", "floor_div", "mod", "left_shift", "right_shift", "maximum", "lt", "gcd")
UNARY = ("neg", "abs", "sign", "sqr", "invert")


def _limits(dtype: str) -> np.ndarray:
    """Numbers at the ends of the range, around 0, and around the width in bits."""
    info = np.iinfo(dtype)
    near = [0, 1, 2, 3, 7, info.bits - 1, info.bits, info.bits + 1, 2 * info.bits]
    signed = [-1, -2, -3, -7, -info.bits] if info.min < 0 else []
    ends = [info.min, info.min + 1, info.max - 1, info.max]
    return np.array(sorted({*(x for x in near if x <= info.max), *signed, *ends}), dtype)


@pytest.mark.parametrize("mode", MODES)
@pytest.mark.parametrize("dtype", DTYPES)
def test_arithmetic_is_numpys(dtype: str, mode: str) -> None:
    values = _limits(dtype)
    a, b = (x.ravel() for x in np.meshgrid(values, values))
    x, y = pt.vector(dtype=dtype), pt.vector(dtype=dtype)
    names = [name for name in BINARY + UNARY if not (name == "gcd" and dtype.startswith("int"))]
    outputs = [OPS[name](*(x, y)[: ROWS[name].arity]) for name in names]
    for name, got in zip(names, graphc.function([x, y], outputs, mode=mode)(a, b), strict=True):
        with np.errstate(all="ignore"):
            expected = ROWS[name].reference(*(a, b)[: ROWS[name].arity])
        assert got.dtype == expected.dtype, name
        np.testing.assert_array_equal(got, expected, err_msg=name)


@pytest.mark.parametrize("mode", MODES)
@pytest.mark.parametrize("dtype", DTYPES)
def test_known_divisors_and_shifts(dtype: str, mode: str) -> None:
    """Literals take other ways through LLVM than variables."""
    values = _limits(dtype)
    bits = np.iinfo(dtype).bits
    literals: list[Any] = [0, 1, bits - 1, bits, bits + 1] + ([-1, -bits] if dtype.startswith("int") else [])
    x = pt.vector(dtype=dtype)
    constants = [np.array(literal, dtype) for literal in literals]
    functions = [np.floor_divide, np.mod, np.left_shift, np.right_shift]
    outputs = [f(x, pt.constant(c)) for c in constants for f in functions]
    with np.errstate(all="ignore"):
        expected = [f(values, c) for c in constants for f in functions]
    for got, right in zip(graphc.function([x], outputs, mode=mode)(values), expected, strict=True):
        assert got.dtype == right.dtype
        np.testing.assert_array_equal(got, right)


def _floats(dtype: str) -> np.ndarray:
    """NaN, infinities, fractions, and numbers on both sides of all integer ranges that the dtype has."""
    ends = [float(2**k) for k in (7, 8, 15, 16, 31, 32, 63, 64)]
    values = [np.nan, np.inf, -np.inf, 0.0, -0.0, 0.9, -0.9, 1.5, -1.5, 1e4 + 0.5]
    values += [sign * x for x in ends for sign in (1, -1)]
    values += (
        [x - 0.5 for x in ends[:6]] + [-x - 0.5 for x in ends[:6]] + [3e9, -3e9, 1e19, -1e19, 1e30, -1e30]
    )
    with np.errstate(over="ignore"):
        return np.unique(np.array(values).astype(dtype))


@pytest.mark.parametrize("mode", MODES)
@pytest.mark.parametrize("dtype", ["float16", "float32", "float64"])
def test_casts_of_floats(dtype: str, mode: str) -> None:
    if platform.machine() not in ("x86_64", "AMD64"):
        pytest.skip("values out of range are those of x86-64")
    for target in DTYPES:
        values = np.tile(_floats(dtype), 3)
        x, few = pt.vector(dtype=dtype), values[::8]
        with np.errstate(all="ignore"):
            # NumPy's result out of range for uint32 depends on whether its loop is vectorised.
            expected = (values.astype("int64") if target == "uint32" else values).astype(target)
        numbers = pt.constant(few).astype(target), pt.constant(values).astype(target)
        found = graphc.function([x], [x.astype(target), *numbers], mode=mode)(values)
        eager = graphc.immediate.Environment().cast(values, target)
        for got, wanted in zip([*found, eager], [expected, expected[::8], *[expected] * 2], strict=True):
            np.testing.assert_array_equal(got, wanted, err_msg=target)


@pytest.mark.parametrize("mode", MODES)
@pytest.mark.parametrize("known", ["", "start", "start and step"])
def test_steps_of_arange_at_the_ends_of_their_dtype(mode, known):
    """Distances that are no int64, and a step without an absolute value: as Python counts."""
    low, high = -(2**63), 2**63 - 1
    ends = [low, low + 1, -3, 0, 1, 5, high - 1, high]
    a, b, s = pt.lscalars("a", "b", "step")
    for step in [x for x in ends if x]:
        if known == "start and step":
            f = graphc.function([a, b], pt.arange(0, b, step), mode=mode, on_unused_input="ignore")
        elif step == low:
            start = 0 if known else a
            g = graphc.function([a, b, s], pt.arange(start, b, s), mode=mode, on_unused_input="ignore")
        for start, stop in itertools.product([0] if known else ends, ends):
            limits = (start, stop) if known == "start and step" else (start, stop, step)
            call = f if known == "start and step" else g
            count = max(0, -((start - stop) // step))
            if count < 10:
                expected = [start + i * step for i in range(count)]
                np.testing.assert_array_equal(call(*limits), expected, err_msg=str((start, stop, step)))
                np.testing.assert_array_equal(pt.arange(start, stop, step).type.shape, count)
            else:
                with pytest.raises((ValueError, MemoryError)):
                    call(*limits)
