# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""What a call does, the same on every tier."""

from __future__ import annotations

import gc
import pickle
import sys
import threading
import weakref

import numpy as np
import pytest

from graphc_runtime.errors import Origin

X, Y = np.arange(4.0), np.full(4, 10.0)


@pytest.fixture
def two(executable, tier):
    return executable("two").bind()


def test_returns_fresh_arrays(two):
    first, second = two(X, Y)
    np.testing.assert_array_equal(first, X + Y)
    np.testing.assert_array_equal(second, X + 2 * Y)
    assert first.flags.carray and first.flags.owndata and type(first) is np.ndarray


def test_the_tier_is_the_one_asked_for(executable, tier):
    assert executable("two").tier == tier


READ_ONLY = X.copy()
READ_ONLY.flags.writeable = False
MISALIGNED = np.frombuffer(b"\0" + X.tobytes(), np.uint8)[1:].view("f8")


@pytest.mark.parametrize(
    "value",
    [
        *(
            X[::-1],
            np.repeat(X, 2)[::2],
            READ_ONLY,
            MISALIGNED,
            X.astype(">f8"),
            list(X),
            tuple(X.astype(int)),
        ),
        *(X.astype("f4"), X.astype("i4"), X.astype("?"), X[:0], memoryview(X), X.view(np.matrix).A1),
        X.astype(np.dtype("f8", metadata={"a": 1})),
    ],
)
def test_any_array_like(two, value):
    expected = np.asarray(value, "f8")
    y = np.ones(len(expected))
    first, second = two(value, y)
    np.testing.assert_array_equal(first, expected + y)
    np.testing.assert_array_equal(second, expected + 2 * y)


@pytest.mark.parametrize(
    ("arguments", "error", "words"),
    [
        ((X,), TypeError, "takes 2 arguments"),
        ((X, Y, Y), TypeError, "given 3"),
        ((X, X[:2]), ValueError, "given 2, expected 4"),
        ((X, X.astype(complex)), TypeError, "input 1 \\(x\\).*complex128"),
        ((X, X.reshape(2, 2)), TypeError, "expected 1 dimensions, given 2"),
        ((X, "text"), TypeError, "given str"),
        ((X, None), TypeError, "given NoneType"),
        ((X, [[1], [2, 3]]), TypeError, "cannot be turned into an array"),
    ],
)
def test_errors_name_the_input(two, arguments, error, words):
    with pytest.raises(error, match=words):
        two(*arguments)


def test_error_names_the_users_line(executable, tier):
    function = executable("two").bind(where=lambda node: Origin(f"model.py:12 ({node})"))
    with pytest.raises(ValueError, match=r"model.py:12 \(n4\)"):
        function(X, X[:1])


def test_unknown_keyword(two):
    with pytest.raises(TypeError, match="unexpected keyword argument 'other'"):
        two(X, Y, other=1)


@pytest.mark.parametrize("container", [tuple, list])
def test_out(two, container):
    outs = container([np.zeros(4), np.zeros(4)])
    results = two(X, Y, out=outs)
    assert results[0] is outs[0] and results[1] is outs[1]
    np.testing.assert_array_equal(outs[0], X + Y)
    np.testing.assert_array_equal(outs[1], X + 2 * Y)


def test_out_that_overlaps(two):
    memory = np.arange(10.0)
    x, y, out = memory[:4], memory[4:8], memory[2:6]
    first, second = x + y, x + 2 * y
    other = np.zeros(4)
    two(x, y, out=(other, out))
    np.testing.assert_array_equal(other, first)
    np.testing.assert_array_equal(out, second)


def test_out_of_unusual_layout(two):
    outs = (np.zeros(8)[::2], np.zeros(4, ">f8"))
    two(X, Y, out=outs)
    np.testing.assert_array_equal(outs[0], X + Y)
    np.testing.assert_array_equal(outs[1], X + 2 * Y)


@pytest.mark.parametrize(
    ("out", "error"),
    [
        (np.zeros(4), TypeError),
        ((np.zeros(4),), TypeError),
        ((np.zeros(4), np.zeros(5)), ValueError),
        ((np.zeros(4), np.zeros(4, "f4")), TypeError),
        ((np.zeros(4), READ_ONLY), ValueError),
        ((np.zeros(4), [0.0] * 4), TypeError),
    ],
)
def test_wrong_out(two, out, error):
    with pytest.raises(error, match="out"):
        two(X, Y, out=out)


def test_out_none_means_fresh(two):
    np.testing.assert_array_equal(two(X, Y, out=None)[0], X + Y)


def test_update_only_after_success(executable, tier):
    start = np.zeros(3)
    cell = [start]
    count = executable("counter").bind([cell])
    assert count(np.ones(3)) is None
    assert cell[0] is not start and not start.any()
    np.testing.assert_array_equal(cell[0], np.ones(3))
    before = cell[0]
    with pytest.raises(IndexError, match="negative: -7"):
        count(-np.ones(3))
    with pytest.raises(ValueError, match="expected shape \\(3\\), given \\(2,\\)"):
        count(np.ones(2))
    assert cell[0] is before
    cell[0] = [5, 5, 5]
    count(np.ones(3))
    np.testing.assert_array_equal(cell[0], [6, 6, 6])


def test_cells_are_checked(executable, tier):
    with pytest.raises(TypeError, match="expected 1 cells"):
        executable("counter").bind([])
    with pytest.raises(TypeError, match="each a list of one array"):
        executable("counter").bind([np.zeros(3)])
    cell = [np.zeros(3)]
    count = executable("counter").bind([cell])
    cell.clear()
    with pytest.raises(IndexError):
        count(np.ones(3))


def test_zero_dimensions_and_memory(executable, tier):
    ones = executable("ones").bind()
    np.testing.assert_array_equal(ones(np.array(3)), np.ones(3))
    np.testing.assert_array_equal(ones(3), np.ones(3))
    assert ones(0).shape == (0,)
    with pytest.raises(MemoryError):
        ones(99)
    with pytest.raises(ValueError):
        ones(np.array(-5))


def test_fallback_gets_the_call_and_its_exception_comes_out(executable, tier):
    def fallback(*args, **keywords):
        if keywords:
            raise KeyError("from the fallback")
        return args

    function = executable("two").bind(fallback=fallback)
    assert function(1, 2) == (1, 2)
    assert function() == ()
    with pytest.raises(KeyError, match="from the fallback"):
        function(X, Y, wrong=1)
    np.testing.assert_array_equal(function(X, Y)[0], X + Y)


def test_error_handler_that_does_not_raise(executable, tier):
    seen = []
    function = executable("two").bind(on_error=lambda *status: seen.append(status))
    with pytest.raises(RuntimeError, match="did not raise"):
        function(X, X[:3])
    assert seen == [(1, 3, 4)]


def test_no_leaks(executable, tier):
    two, cell = executable("two").bind(), [np.zeros(3)]
    count = executable("counter").bind([cell])
    outs, three, bad = (np.zeros(4), np.zeros(4)), np.ones(3), -np.ones(3)
    watched = [X, Y, *outs, outs, three, bad, X.dtype]

    def calls():
        for _ in range(100):
            two(X, Y)
            two(X, Y, out=outs)
            two(X[::-1], Y)
            count(three)
            for wrong in (
                lambda: two(X, Y[:2]),
                lambda: two(X, 1j),
                lambda: count(bad),
                lambda: two(X, X, out=X),
            ):
                with pytest.raises((ValueError, TypeError, IndexError)):
                    wrong()

    calls()
    gc.collect()
    before = [sys.getrefcount(value) for value in watched]
    calls()
    gc.collect()
    assert [sys.getrefcount(value) for value in watched] == pytest.approx(before, abs=3)
    held = sys.getrefcount(cell[0])  # outside the assert, whose rewriting keeps values
    assert held == 2


def test_results_are_freed(executable, tier):
    two = executable("two").bind()
    result = two(X, Y)[0]
    alive = weakref.ref(result)
    del result
    assert alive() is None


def test_code_lives_as_long_as_the_function(executable, tier):
    functions = [executable("two").bind() for _ in range(50)]
    gc.collect()
    assert all(function(X, Y)[0][0] == 10 for function in functions)
    del functions
    gc.collect()


def test_many_threads(executable, tier):
    two, count = executable("two").bind(), executable("counter").bind([[np.zeros(3)]])
    problems = []

    def work(seed):
        x, y = np.full(2000, float(seed)), np.arange(2000.0)  # above the threshold: runs without the GIL
        out = (np.empty(2000), np.empty(2000))
        for step in range(150):
            first, second = two(x, y, out=out) if step % 2 else two(x, y)
            if not (np.array_equal(first, x + y) and np.array_equal(second, x + 2 * y)):
                problems.append(seed)
            try:
                two(x, y[:-1])
            except ValueError:
                count(np.ones(3))
            else:
                problems.append("no error")

    threads = [threading.Thread(target=work, args=(seed,)) for seed in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert not problems


def test_pickle(executable, tier):
    copy = pickle.loads(pickle.dumps(executable("two")))
    np.testing.assert_array_equal(copy.bind()(X, Y)[0], X + Y)


def test_vectorcall_of_instances(executable):
    from graphc_runtime import callable_type

    program = executable("two")
    address = program.vectorcall_address()
    if not callable_type.SUPPORTED or address is None:
        pytest.skip("this interpreter has no struct tier")

    @callable_type.enable
    class Function(callable_type.NativeCallable):
        __slots__ = ("_native_self",)

        def __call__(self, *args):
            return "slow"

    function = Function()
    assert callable_type.install(function, address, program.native_self())
    np.testing.assert_array_equal(function(X, Y)[0], X + Y)
    np.testing.assert_array_equal(function(*[X, list(Y)])[1], X + 2 * Y)
