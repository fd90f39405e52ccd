# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""The kernel language: what it computes is what Python computes."""

from __future__ import annotations

import numpy as np
import pytest

from graphc.native import I64, Value, type_of_dtype
from graphc.native.builtins import (
    apart,
    backwards,
    cast,
    choose,
    copysign,
    evens,
    fma,
    high,
    isnan,
    local,
    low,
    odds,
    positions,
    put,
    row,
    spread,
    sqrt,
    total,
    unrolled,
    view,
    word,
)
from graphc.native.translate import KernelError, Translator

from ._compiled import both, compiled


def sum_of(first, second, third, fourth):
    return first + second + third + fourth


def sum_of_given(x, *, more):
    first, rest = x[0], (x[2], x[3]) if more else (0.0, 0.0)
    return sum_of(first, x[1], *rest)


def running_sum(x, out, n):
    total = 0.0
    for i in range(n):
        total += x[i]
        out[i] = total
    return n


def helper(x, n):
    if n == 0:
        return -1
    best = 0
    for i in range(1, n):
        if x[i] > x[best]:
            best = i
    return best


def control(x, out, n, *, backwards):
    count = 0
    for i in range(n - 1, -1, -1):
        if x[i] < 0.0:
            continue
        if x[i] > 100.0:
            break
        out[count if backwards else n - 1 - count] = x[i]
        count += 1
    while count < n and not (x[count] > 2.0 or count == 3):
        count += 1
    return count + helper(x, n) * 1000 + helper(x[1:], n - 1) * 1000000


def written_out(x, out, n, *, lanes):
    """Loops that are written out, one in the other, with ways out of them."""
    for i in unrolled(lanes):
        if i == 1:
            continue
        for j in unrolled(3):
            if x[i] > 2.0 and j > 0:
                break
            out[3 * i + j] = x[i] + j
        if x[i] < -2.0:
            break
    return n


def places(x, out, n):
    """Variables that have one value, and others that have several."""
    first = x[0]
    x[0] = 5.0
    last = -1
    for i in range(n):
        twice = 2 * i
        if x[i] > first:
            inside = x[i] * twice
            out[i] = inside
            last = twice
        else:
            out[i] = first
    if n > 1:
        below = n - 1
    after = i
    return last + 100 * (after + i) + 10000 * below


def integers(a, out, n):
    for i in range(n):
        for j in range(n):
            k = (i * n + j) * 6
            out[k] = a[i] // a[j] if a[j] != 0 else 0
            out[k + 1] = a[i] % a[j] if a[j] != 0 else 0
            out[k + 2] = (a[i] << 2) ^ (a[j] >> 1) | 1
            out[k + 3] = min(a[i], a[j]) - max(a[i], 3)
            out[k + 4] = abs(a[i]) & ~a[j]
            out[k + 5] = -a[i]


def swaps(x, n):
    w = local(4, "float64")
    for i in range(4):
        w[i] = x[i]
    w[0], w[3] = w[3], w[0]
    for i in range(4):
        x[i] = w[i]


def numbers(x, out, n):
    for i in range(n):
        y = sqrt(abs(x[i])) if x[i] != 0.0 else 1.0
        out[i] = copysign(y / (1.0 + y), x[i]) if not isnan(x[i]) else 7.0
        out[i] += cast(cast(y, "int64"), "float64") if y < 100.0 else 0.0


def bits(x, out, n):
    raw = view(x, "uint64")
    words = view(out, "uint64")
    for i in range(n):
        words[i] = (raw[i] >> 3) ^ (raw[i] << 5)


def bools(a, b, out, n):
    for i in range(n):
        out[i] = (a[i] and not b[i]) or (i == 2 <= n)


@pytest.fixture
def rng():
    return np.random.default_rng(0)


def test_loops_that_are_written_out():
    for x in ([1.0, 0.0, 3.0, 4.0], [-3.0, 1.0, 1.0, 1.0], [3.0, 1.0, -3.0, 0.0]):
        both(written_out, np.array(x), np.zeros(12), 4, lanes=4)
    with pytest.raises(KernelError, match="the number of iterations must be known"):
        compiled(unknown_number, 3)


def unknown_number(n):
    for i in unrolled(n):
        n += i
    return n


def test_places_of_variables():
    for n in (2, 5):
        got, expected = both(places, np.array([1.0, 0.5, 3.0, 2.0, -1.0]), np.zeros(5), n)
        assert got == expected
    # None needs memory; only these are read where values of several blocks meet.
    text = Translator()
    formal = [
        Value("%x", type_of_dtype(np.dtype(float)).to),
        Value("%out", type_of_dtype(np.dtype(float)).to),
    ]
    text.define(places, "kernel", [*formal, Value("%n", I64)])
    assert text.text().count("alloca") == 0
    assert text.text().count(" = phi ") == len(["counter", "last", "last after the branch", "i", "below"])


def test_loops_and_arrays(rng):
    x = rng.normal(size=50)
    assert both(running_sum, x, np.zeros(50), 50) == (50, 50)
    assert both(running_sum, np.zeros(1), np.zeros(1), 0) == (0, 0)


@pytest.mark.parametrize("more", [False, True])
def test_arguments_of_a_tuple(rng, more):
    got, expected = both(sum_of_given, rng.normal(size=4), more=more)
    assert got == expected
    assert sum_of_given(np.arange(4.0), more=more) == (6 if more else 1)


@pytest.mark.parametrize("backwards", [True, False])
def test_control_flow_routines_and_static_attributes(rng, backwards):
    for n in (1, 2, 7, 20):
        x = rng.normal(size=n) * 60
        got, expected = both(control, x, np.zeros(n), n, backwards=backwards)
        assert got == expected


def test_integers_divide_as_in_python():
    a = np.array([-7, -2, -1, 0, 1, 3, 8], np.int64)
    both(integers, a, np.zeros(7 * 7 * 6, np.int64), 7)


def test_floats_and_conversions(rng):
    x = np.concatenate([rng.normal(size=20) * 50, [0.0, -0.0, np.nan, np.inf]])
    both(numbers, x, np.zeros(24), 24)


def test_views_of_bits_and_unsigned_shifts(rng):
    both(bits, rng.normal(size=8), np.zeros(8), 8)


def test_local_memory_and_exchange(rng):
    both(swaps, rng.normal(size=4), 4)


def by_type(x, out, n, *, twice):
    if twice:
        for i in range(n):
            out[i] = choose(x[i] > 0.0, 2.0 * x[i], x[i])
        return 2
    return missing_in_the_other_case(x)  # noqa: F821


TABLE = (0.1, -0.0, 1e300, 3.0)


def looked_up(x, out, n):
    for i in range(n):
        out[i] = fma(x[i], TABLE[i % 4], TABLE[3 - i % 4])


def bytes_at(x, out):
    raw = view(x, "u8")
    words = view(out, "uint64")
    words[0] = word(raw, 3)


def test_what_stands_after_a_return_need_not_make_sense(rng):
    assert both(by_type, rng.normal(size=9), np.zeros(9), 9, twice=True) == (2, 2)


def test_constant_arrays_and_fused_products(rng):
    both(looked_up, rng.standard_normal(9), np.zeros(9), 9)


def test_words_at_any_place(rng):
    both(bytes_at, rng.normal(size=3), np.zeros(1))


def test_booleans(rng):
    a, b = rng.random(9) < 0.5, rng.random(9) < 0.5
    both(bools, a, b, np.zeros(9, bool), 9)


def rows(x, out, n):
    a, b = row(x, 0, 8), row(x, 3, 8, n)
    put(out, 0, a * b - 2.0 * a + spread(x[1], 8))
    put(out, 8, abs(choose(a > b, a, 0.0)), n)
    lanes = positions(8)
    put(out, 16, choose((lanes >= 2) & (lanes < n), x[0], b) / (abs(a) + 1.0))
    put(out, 24, -a, 3)
    put(out, 24, choose(n > 3, a, b), n - 4)
    ones = local(8, "float64")
    for i in range(8):
        ones[i] = i
    return total(row(ones, 0, 8) + 1.0)


@pytest.mark.parametrize("dtype", ["float32", "float64"])
def test_vectors(rng, dtype):
    for n in (-1, 0, 1, 5, 8, 11):
        x = rng.normal(size=12).astype(dtype)
        assert both(rows, x, np.zeros(32, dtype), n) == (36, 36)


def shuffles(x, out, lanes):
    a, b = row(x, 0, lanes), row(x, lanes, lanes)
    put(out, 0, evens(a, b))
    put(out, lanes, odds(a, b))
    put(out, 2 * lanes, low(a, b))
    put(out, 3 * lanes, high(a, b))
    put(out, 4 * lanes, backwards(a))
    put(out, 5 * lanes, row(x, 0, lanes, None) + row(x, 0, lanes, 0), None)


@pytest.mark.parametrize("lanes", [1, 4, 8])
def test_shuffles(rng, lanes):
    both(shuffles, rng.normal(size=2 * lanes), np.zeros(6 * lanes), lanes=lanes)


@apart
def half_of(x):
    return x / 2


def quarter(x, out):
    out[0] = half_of(half_of(x[0]))


def test_routines_that_are_not_copied():
    both(quarter, np.array([3.0]), np.zeros(1))


def vector_as_condition(x, n):
    if row(x, 0, 4) > 0.0:
        return 1
    return 0


def vector_as_number(x, n):
    x[0] = row(x, 0, 4)


def not_defined(x, n):
    return missing_name(x)  # noqa: F821


def float_to_int(x, n):
    k = 0
    k = x[0]
    return k


def with_statement(x, n):
    with x:
        pass


@pytest.mark.parametrize(
    "function, message",
    [
        (not_defined, "missing_name is not defined"),
        (float_to_int, "a f64 does not fit into a i64; use cast"),
        (vector_as_condition, "a vector is neither true nor false"),
        (vector_as_number, "a vector of 4 lanes does not fit into 1"),
        (with_statement, "With is not part of the kernel language"),
    ],
)
def test_errors_name_the_line(function, message):
    with pytest.raises(KernelError, match=rf"test_language:\d+: {message}"):
        compiled(function, np.zeros(1), 1)
