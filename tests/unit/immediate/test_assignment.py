# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Assignment to tensors: the same program on NumPy's arrays and on tensors, with views of views, in eager,
lazy, recording and tracing environments; and its gradients.
"""

from __future__ import annotations

import contextlib
import copy
import random
import threading

import numpy as np
import pytest

import graphc
import graphc.tensor as pt

# Views, as both libraries write them.
VIEWS = {
    "row": lambda x, n: x[n % max(int(x.shape[0]), 1)],
    "last": lambda x, n: x[..., -1],
    "slice": lambda x, n: x[n % 2 :],
    "back": lambda x, n: x[::-1],
    "step": lambda x, n: x[:, ::2] if x.ndim > 1 else x[::2],
    "new": lambda x, n: x[None],
    "T": lambda x, n: x.T,
    "all": lambda x, n: x[...],
    "ravel": lambda x, n: x.ravel(),
    "reshape": lambda x, n: x.reshape((-1, 1)),
    "swap": lambda x, n: x.swapaxes(0, -1),
    "expand": lambda x, n: np.expand_dims(x, 1),
    "moved": lambda x, n: np.moveaxis(x, 0, -1),
    "flip": lambda x, n: np.flip(x),
    "copy": lambda x, n: x[[0]].copy(),
    "mask": lambda x, n: x[x > 0],
    "new value": lambda x, n: (x * 1.0).copy(),
    "diagonal": lambda x, n: np.diagonal(x) if x.ndim > 1 else x[:],
    "piece": lambda x, n: np.array_split(x, 2)[0],
    "squeezed": lambda x, n: x[:1].squeeze(),
}


def _change(x, kind, other):
    if kind == "number":
        x[0] = 7
    elif kind == "slice":
        x[1:] = x[:-1]
    elif kind == "mask":
        x[x > 1] = -1.5
    elif kind == "positions":
        x[[0, -1]] = 2.0
    elif kind == "add":
        x += 1
    elif kind == "multiply":
        x *= x
    elif kind == "part":
        x[0] += 0.5
    elif kind == "last":
        x[..., -1] -= 3
    elif kind == "other":
        x[...] = other
    elif kind == "itself":
        x[:] = x[::-1]
    elif kind == "transposed" and x.ndim == 2:
        x.T[0] = 4


CHANGES = "number slice mask positions add multiply part last other itself transposed".split()


def _program(seed):
    """Views and changes, by number of the tensor that they are of."""
    rng = random.Random(seed)
    return [
        (rng.choice(list(VIEWS) if rng.random() < 0.55 else CHANGES), rng.random(), rng.random())
        for _ in range(14)
    ]


def _run(x, program):
    """All tensors of a program, as they are at its end; an error of an operation is noted and passed over."""
    made, errors = [x], []
    for name, which, other in program:
        y = made[int(which * len(made))]
        z = made[int(other * len(made))]
        try:
            if name in VIEWS:
                made.append(VIEWS[name](y, int(other * 10)))
            else:
                _change(y, name, z)
        except (ValueError, IndexError):
            errors.append(name)
        if isinstance(made[-1], np.generic):
            made[-1] = np.array(made[-1])
    return made, errors


SEEDS = [
    *[("eager", seed) for seed in range(60)],
    *[("recording", seed) for seed in range(60, 80)],
    *[(mode, seed) for mode in ("tracing", "lazy") for seed in range(80, 88)],
]


@pytest.mark.parametrize(("mode", "seed"), SEEDS)
def test_programs_of_views_and_assignments_are_numpys(env, lazy, tracing, mode, seed):
    gt = {"lazy": lazy, "tracing": tracing}.get(mode, env)
    start = np.random.default_rng(seed).normal(size=(3, 4) if seed % 3 else (5,)).round(2)
    program = _program(seed)
    expected, errors = _run(start.copy(), program)
    if mode == "lazy" and errors:  # which come later there
        program = [
            step for step in program if step[0] in VIEWS or step[0] in ("add", "multiply", "last", "slice")
        ]
        expected, errors = _run(start.copy(), program)
        if errors:
            return
    with env.record() if mode == "recording" else contextlib.nullcontext():
        found, found_errors = _run(gt.numpy_to_tensor(start), program)
        found = [np.asarray(x) for x in found]
    assert found_errors == errors, program
    assert len(found) == len(expected)
    for number, (a, b) in enumerate(zip(found, expected, strict=True)):
        np.testing.assert_array_equal(a, b, err_msg=f"tensor {number} of {program}")


@pytest.fixture(scope="module")
def tracing():
    return graphc.immediate.Environment(full_tracing=True)


# Values -----------------------------------------------------------------------------------------------------

ASSIGNED = {
    "float into int": (np.zeros(3, int), slice(None), np.array([1.7, -1.7, 2.0])),
    "int into float32": (np.zeros(3, np.float32), 1, 5),
    "large number": (np.zeros(3, np.float32), 0, 1e10),
    "bool": (np.zeros(3), np.array([True, False, True]), True),
    "empty mask": (np.ones((2, 3)), np.zeros((2, 3), bool), 5.0),
    "mask of a row": (np.ones((2, 3)), (0, np.array([True, False, True])), [4.0, 5.0]),
    "broadcast": (np.zeros((2, 3)), slice(None), np.arange(3.0)),
    "leading ones": (np.zeros((2, 3)), 0, np.ones((1, 1, 3))),
    "positions twice": (np.zeros(4), np.array([1, 1, 2]), np.array([1.0, 2.0, 3.0])),
    "negative": (np.zeros(4), -1, 3.0),
    "two of them": (np.zeros((3, 4)), (np.array([0, 2]), np.array([1, 3])), 9.0),
    "grid": (np.zeros((3, 4)), (np.array([[0], [2]]), np.array([1, 3])), 9.0),
    "ellipsis": (np.zeros((2, 3, 4)), (..., 0), np.ones((2, 3))),
    "new axis": (np.zeros((2, 3)), (None, 1), np.ones((1, 3))),
    "no elements": (np.zeros((0, 3)), slice(None), 1.0),
    "zero dimensions": (np.zeros(()), (), 4.0),
    "all of zero dimensions": (np.zeros(()), ..., 4.0),
    "complex": (np.zeros(2, complex), 0, 1 + 2j),
    "list of lists": (np.zeros((2, 2)), slice(None), [[1, 2], [3, 4]]),
    "float16": (np.zeros(3, np.float16), slice(1, None), 0.1),
    "uint8": (np.zeros(3, np.uint8), 0, 255),
}


@pytest.mark.parametrize("name", ASSIGNED)
@pytest.mark.parametrize("mode", ["eager", "recording", "lazy"])
@pytest.mark.parametrize("tensors", [False, True])
def test_values_are_converted_and_broadcast_as_numpys(env, lazy, mode, name, tensors):
    start, index, value = ASSIGNED[name]
    expected = start.copy()
    expected[index] = value
    gt = lazy if mode == "lazy" else env
    with env.record() if mode == "recording" else contextlib.nullcontext():
        x = gt.numpy_to_tensor(start)
        if tensors:
            value = gt.as_tensor(value)
            index = gt.numpy_to_tensor(index) if isinstance(index, np.ndarray) else index
        x[index] = value
        assert x.dtype == expected.dtype.name
        np.testing.assert_array_equal(np.asarray(x), expected)


@pytest.mark.parametrize("mode", ["eager", "recording"])
def test_what_does_not_fit_is_refused_and_changes_nothing(env, mode):
    with env.record() if mode == "recording" else contextlib.nullcontext():
        for start, index, value, error in [
            (np.zeros(3), slice(None), np.ones(4), ValueError),
            (np.zeros(3), 3, 1.0, IndexError),
            (np.zeros(3), np.array([0, -4]), 1.0, IndexError),
            (np.zeros(3, np.int8), 0, 300, OverflowError),
            (np.zeros(3, int), 0, float("nan"), ValueError),
            (np.zeros(3), 0, 1j, TypeError),
            (np.zeros(3), np.array([True]), 1.0, IndexError),
        ]:
            x = env.numpy_to_tensor(start)
            with pytest.raises(error):
                x[index] = value
            np.testing.assert_array_equal(np.asarray(x), start)


def test_augmented_assignment_keeps_dtype_and_shape(gt):
    x = gt.as_tensor([1, 2])
    with pytest.raises(TypeError, match=r"float64, which cannot be stored in a tensor of int64.*x = x \+ y"):
        x += 0.5
    with pytest.raises(ValueError, match=r"shape \(3, 2\).*shape \(2,\)"):
        x += gt.ones((3, 1), "int64")
    alias = x
    x += np.array([1, 1], np.int8)
    assert alias is x and x.tolist() == [2, 3] and x.dtype == "int64"
    half = gt.numpy_to_tensor(np.ones(2, np.float32))
    half += np.array([1.0, 2.0])  # as in NumPy, a float64 is stored in a float32
    assert half.dtype == "float32" and half.tolist() == [2.0, 3.0]
    for operator in "+= -= *= /= //= %= **= @= &= |= ^= <<= >>=".split():
        ints = operator in ("&=", "|=", "^=", "<<=", ">>=")
        a = np.array([[7, 3], [5, 2]], int if ints else float)
        names = {"a": a.copy(), "t": gt.numpy_to_tensor(a)}
        names["v"] = names["t"].T
        names["b"] = a - 1
        exec(f"a {operator} b; t {operator} b", names)
        np.testing.assert_allclose(np.asarray(names["t"]), names["a"])
        np.testing.assert_allclose(np.asarray(names["v"]), names["a"].T)


def test_real_and_imaginary_parts_are_views(gt):
    a = np.array([1 + 2j, 3 - 1j, 0.5j])
    x = gt.numpy_to_tensor(a)
    with gt.record():
        x.real[1:] = 7
        x[::2].imag[...] = gt.as_tensor([1.0, 2.0])
    x.imag[1] = -5
    a.real[1:] = 7
    a[::2].imag[...] = [1.0, 2.0]
    a.imag[1] = -5
    np.testing.assert_array_equal(np.asarray(x), a)


def test_views_with_elements_several_times_are_read_only(gt):
    x = gt.as_tensor([1.0, 2.0])
    wide = gt.broadcast_to(x, (3, 2))
    with pytest.raises(ValueError, match="read-only"):
        wide[0] = 5
    x[0] = 9
    assert wide.tolist() == [[9.0, 2.0]] * 3


# What keeps its value ---------------------------------------------------------------------------------------


def test_what_was_read_before_keeps_its_value(gt):
    a = np.array([1.0, 2.0])
    x = gt.numpy_to_tensor(a, copy=False)
    seen, double, other, deep = np.asarray(x), x * 2, copy.copy(x), copy.deepcopy(x)
    index = gt.as_tensor(0)
    row = gt.as_tensor([[1.0], [2.0]])[index]
    x[0] = 10
    index += 1
    assert x.tolist() == [10.0, 2.0] and a.tolist() == seen.tolist() == [1.0, 2.0]
    assert double.tolist() == [2.0, 4.0] and other.tolist() == deep.tolist() == [1.0, 2.0]
    row += 5
    assert row.tolist() == [6.0]
    other[1] = 0
    assert x.tolist() == [10.0, 2.0]


def test_loops_of_assignments_neither_copy_nor_keep_memory(env):
    x = env.zeros(1000)
    x[0] = 1.0
    data = x._data
    address = data.ctypes.data
    del data
    for i in range(1000):
        x[i] = i
    assert x._data.ctypes.data == address
    np.testing.assert_array_equal(np.asarray(x), np.arange(1000.0))
    y = env.as_tensor(np.ones((8, 8)))
    z = (y + 1).T
    assert not hasattr(z, "_family")  # what it was a view of is gone
    rows = list(y)
    assert len(y._family.members) == 9
    del rows
    assert not hasattr(y, "_family")


def test_threads_write_to_one_tensor(gt):
    x = gt.zeros(64)

    def write(start):
        for i in range(start, 64, 4):
            x[i] = i
            x[i : i + 1] += 1

    threads = [threading.Thread(target=write, args=(i,)) for i in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    np.testing.assert_array_equal(np.asarray(x), np.arange(64.0) + 1)


# Graphs and gradients ---------------------------------------------------------------------------------------


def _cumulative(w, x):
    for i in range(1, 4):
        x[i] = x[i - 1] * w[i] + w[0]
    return (x**2).sum()


def _through_views(w, x):
    v = x[1:]
    v *= w[1:]
    x.reshape((2, 2)).T[0] += w[:2] ** 2
    x[[0, 0, 3]] = w[[1, 2, 3]]
    x[x > 1] *= 0.5
    return (x * w).sum()


def _overlapping(w, x):
    x[...] = w
    x[1:] = x[:-1]
    x[::-1][:2] -= x[:2] * w[0]
    return (x**3).sum()


def _augmented(w, x):
    total = w[0]
    total += (w * w).sum()
    x += w
    x /= w[1]
    return total * x.sum()


@pytest.mark.parametrize("function", [_cumulative, _through_views, _overlapping, _augmented])
@pytest.mark.parametrize("dtype", ["float64", "float32"])
def test_tapes_differentiate_assignments(gt, function, dtype):
    a = np.array([0.8, 1.3, 0.6, 1.9])
    w = gt.numpy_to_tensor(a.astype(dtype))
    with gt.tape(persistent=True) as tape:
        x = gt.ones(4, dtype)
        loss = function(w, x)
    assert float(loss) == pytest.approx(float(function(a, np.ones(4))), rel=1e-5)
    found = np.asarray(tape.gradient(loss, w))
    for i in range(4):
        step = np.zeros(4)
        step[i] = 1e-6
        slope = (function(a + step, np.ones(4)) - function(a - step, np.ones(4))) / 2e-6
        assert found[i] == pytest.approx(slope, rel=1e-4 if dtype == "float32" else 1e-6)


def test_gradients_are_of_the_values_that_were_used(gt):
    w = gt.shared(np.array([1.0, 2.0]))
    with gt.tape(persistent=True) as tape:
        old = w
        y = (w * w).sum()
    before = np.asarray(tape.gradient(y, w))
    with gt.tape() as tape:
        x = w * 1.0
        y = (x**3).sum()
        w += 1  # the leaf of the tape is the value before
        gradient_of = x
    np.testing.assert_allclose(np.asarray(tape.gradient(y, gradient_of)), [3.0, 12.0])
    assert before.tolist() == [2.0, 4.0] and old is w
    with gt.tape() as tape:
        y = (w * x).sum()
        w.set_value(np.zeros(2))
    np.testing.assert_allclose(np.asarray(tape.gradient(y, x)), [2.0, 3.0])


def test_tapes_differentiate_by_parts_that_were_not_written_to(gt):
    x = gt.as_tensor([2.0, 3.0, 4.0])
    with gt.tape() as tape:
        a, b = x[:1], x[1:2]
        x[2:] = a * b
        loss = x.sum()
    if gt.lazy:
        return  # there each write makes views of the tensor anew
    assert np.asarray(tape.gradient(loss, a, disconnected_inputs="ignore")).tolist() == [3.0]


def test_recorded_assignments_are_functions(gt):
    start = gt.as_tensor([[1.0, 2.0], [3.0, 4.0]])
    with gt.record() as recording:
        x = start + 0.0
        x[0] = x[1] * 2
        x.T[1] += 1
    f = recording.graph([x], [start]).function()
    np.testing.assert_array_equal(f(np.array([[0.0, 0.0], [5.0, 6.0]]))[0], [[10.0, 13.0], [5.0, 7.0]])


def test_functions_that_are_traced_do_not_write(env):
    x, v = env.zeros(3), env.as_tensor([1.0, 2.0])

    def body(row):
        x[0] = 1.0
        return row + x[0]

    with pytest.raises(TypeError, match="while a function is traced"):
        env.scan(body, sequences=v, return_updates=False)
    with pytest.raises(TypeError, match=r"symbolic.*set_subtensor"):
        x[0] = pt.scalar("s")
    assert x.tolist() == [0.0, 0.0, 0.0]

    def doubled(row, total):
        total += row
        return total

    found = env.scan(doubled, sequences=v, outputs_info=env.as_tensor(0.0), return_updates=False)
    assert found.tolist() == [1.0, 3.0]
