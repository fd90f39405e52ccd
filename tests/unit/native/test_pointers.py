# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""The kernel language: addresses, memory that threads share, code as a value, vectors of the target."""

from __future__ import annotations

import ctypes
import threading

import numpy as np
import pytest

from graphc.native import I64, Value
from graphc.native.builtins import (
    address,
    at,
    atomic_load,
    atomic_store,
    call,
    cast,
    compare_exchange,
    exchange,
    fetch_add,
    fmuladd,
    function,
    inlined,
    invoke,
    lanes_of,
    local,
    put,
    row,
    seldom,
    short,
    spread,
    total,
    variable,
    view,
)
from graphc.native.translate import KernelError, Translator

from ._compiled import both, compiled


def atomics(x, out):
    out[0] = fetch_add(x, 0, 5, "monotonic")
    out[1] = fetch_add(x, 0, -2, "acq_rel")
    out[2] = fetch_add(x, 1, 3, "seq_cst")
    out[3] = exchange(x, 2, 8, "acquire")
    atomic_store(x, 3, out[0] + 1, "release")
    out[4] = atomic_load(x, 3, "acquire")
    out[5] = cast(compare_exchange(x, 4, 5, 6, "acq_rel"), "int64")
    out[6] = cast(compare_exchange(x, 4, 5, 7, "seq_cst"), "int64")


@pytest.mark.parametrize("dtype", ["int64", "uint64", "int32", "uint8"])
def test_atomic_operations(dtype):
    both(atomics, np.array([1, 7, 3, 4, 5], dtype), np.zeros(7, np.int64))


def count(shared, plain, n):
    """Adds one n times: at once, and while no other thread is where the lock keeps it from."""
    for _ in range(n):
        fetch_add(shared, 0, 1, "monotonic")
        while not compare_exchange(shared, 1, 0, 1, "acquire"):
            pass
        plain[0] += 1
        atomic_store(shared, 1, 0, "release")


@pytest.mark.parametrize("as_python, n", [(False, 20000), (True, 50)])
def test_threads_that_count_together(as_python, n):
    shared, plain = np.zeros(2, np.int64), np.zeros(1, np.int64)
    f = compiled(count, shared, plain, n)

    def run():
        if as_python:
            count(shared, plain, n)
        else:
            f(shared.ctypes.data, plain.ctypes.data, n)

    threads = [threading.Thread(target=run) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert shared[0] == plain[0] == 4 * n


def twice(x, i):
    return x[i] * 2


def thrice(x, i):
    return x[i] * 3


def through_pointers(x, out, n):
    codes = local(2, "i64")
    codes[0] = address(function(twice, "i64*", "i64", returns="i64"))
    codes[1] = address(function(thrice, "i64*", "i64", returns="i64"))
    for i in range(n):
        out[i] = invoke(at(codes[i % 2], "u8"), x, i, returns="i64")


def test_code_is_called_by_its_address():
    both(through_pointers, np.arange(7) - 3, np.zeros(7, np.int64), 7)


def told(table, x):
    return invoke(at(table[0], "u8"), x[0], cast(2, "i32"), returns="f64")


def test_code_of_others_is_called_with_a_typed_signature():
    seen = []

    def given(x, i):
        seen.append((x, i))
        return x / i

    code = ctypes.CFUNCTYPE(ctypes.c_double, ctypes.c_double, ctypes.c_int32)(given)
    table = np.array([ctypes.cast(code, ctypes.c_void_p).value], np.int64)
    assert both(told, table, np.array([5.0])) == (2.5, 2.5)
    assert seen == [(5.0, 2)] * 2


def linked(out, n):
    """A list of numbers in memory of the C library."""
    head = 0
    for i in range(n):
        block = address(call("malloc", 16, returns="u8*"))
        at(block, "i64")[0] = head
        at(block, "i64")[1] = i * i
        head = block
    i = 0
    while head != 0:
        out[i] = at(head, "i64")[1]
        i += 1
        rest = at(head, "i64")[0]
        call("free", at(head, "u8"))
        head = rest
    return i


def test_memory_at_addresses():
    assert both(linked, np.zeros(9, np.int64), 9) == (9, 9)


@inlined
def divided(a, b):
    if b == 0:
        return 0, -1
    return a // b, a % b


@inlined
def sign(x):
    if x < 0:
        return -1
    if x == 0:
        return 0
    return 1


@seldom
def far(x):
    return x + 1


@short
def near(x):
    return far(x) + 1


def copied(x, out, n):
    for i in range(n):
        quotient, rest = divided(x[i], x[n - 1 - i])
        x[i] = quotient
        out[2 * i] = rest
        out[2 * i + 1] = sign(quotient) + near(rest)


def test_routines_that_are_written_in_place():
    both(copied, np.array([7, -2, 0, 5, 3]), np.zeros(10, np.int64), 5)
    translator = Translator()
    translator.define(copied, "kernel", [Value("%x", I64.to), Value("%out", I64.to), Value("%n", I64)])
    assert translator.text().count("define ") == len(["kernel", "near", "far"])


def sums(x, out, n):
    return sums_of_lanes(x, out, n, lanes_of("float64"))


def sums_of_lanes(x, out, n, lanes):
    found = spread(0.0, lanes)
    for i in range(n // lanes):
        found = fmuladd(row(x, i * lanes, lanes), spread(2.0, lanes), found)
    put(out, 0, found)
    return total(found)


@pytest.mark.parametrize("register", [16, 32, 64])
def test_vectors_of_the_target(register):
    x = np.arange(16.0)
    f = compiled(sums, x, np.zeros(8), 16, register=register)
    out = np.zeros(8)
    assert f(x.ctypes.data, out.ctypes.data, 16) == 2 * x.sum() == sums(x, np.zeros(2), 16)
    np.testing.assert_array_equal(out[: register // 8], 2 * x.reshape(-1, register // 8).sum(axis=0))


TABLE = (3, -1, 2**40)


def from_table(out, n):
    for i in range(n):
        out[i] = view(TABLE, "i64")[i]
    variable("unused", "i64")


def test_constant_integers():
    both(from_table, np.zeros(3, np.int64), 3)


def bad_order(x):
    atomic_load(x, 0, "release")


def bad_result(x):
    function(twice, "i64*", "i64")


def bad_code(x):
    invoke(x[0])


@pytest.mark.parametrize(
    "kernel, message",
    [
        (bad_order, "'release' is no order of memory here; there are monotonic, acquire, seq_cst"),
        (bad_result, "twice returns i64, not None"),
        (bad_code, "invoke calls what a pointer points at"),
    ],
)
def test_errors_say_what_is_expected(kernel, message):
    with pytest.raises(KernelError, match=rf"test_pointers:\d+: {message}"):
        compiled(kernel, np.zeros(1, np.int64))
