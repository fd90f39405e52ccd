# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Results in memory that the caller gives."""

import ctypes
import tracemalloc
from collections import namedtuple

import numpy as np
import pytest

import graphc
import graphc.tensor as pt
from graphc.function.io import Out
from graphc.graph import Apply, Op
from graphc_runtime.layout import tier as call_tier

A = np.array([1.0, 2.0, 3.0])
Pair = namedtuple("Pair", "first second")


class MallInfo(ctypes.Structure):
    _fields_ = [
        (name, ctypes.c_size_t)
        for name in "arena ordblks smblks hblks hblkhd usmblks fsmblks uordblks fordblks keepcost".split()
    ]


def bytes_in_use():
    """What malloc has given out, mapped blocks included."""
    try:
        mallinfo = ctypes.CDLL(None).mallinfo2
    except AttributeError:
        pytest.skip("no mallinfo2 here")
    mallinfo.restype = MallInfo
    info = mallinfo()
    return info.uordblks + info.hblkhd


@pytest.mark.skipif(call_tier() != "struct", reason="other tiers make Python objects in each call")
@pytest.mark.parametrize("form", ["single", "list", "dict", "nested"])
def test_repeated_calls_allocate_nothing(form):
    x = pt.dvector("x")
    outputs, out = {
        "single": (x * 2.0, np.empty(1000)),
        "list": ([x * 2.0, pt.tanh(x) @ x], [np.empty(1000), np.empty(())]),
        "dict": ({"a": x * 2.0, "b": x + 1.0}, {"a": np.empty(1000), "b": np.empty(1000)}),
        "nested": ([x * 2.0, (x + 1.0, {"c": x})], [np.empty(1000), (np.empty(1000), {"c": np.empty(1000)})]),
    }[form]
    f = graphc.function([x], outputs)
    a = np.ones(1000)
    for _ in range(100):
        f(a, out=out)
    rounds = []
    for _ in range(5):
        before = bytes_in_use()
        tracemalloc.start()
        for _ in range(2_000):
            f(a, out=out)
        now, peak = tracemalloc.get_traced_memory()
        tracemalloc.stop()
        rounds.append((peak, now, bytes_in_use() - before))
    # Other threads allocate at times, the calls would in every round.
    peak, now, grown = map(min, zip(*rounds, strict=True))
    assert peak < 8000  # the size of one array: none is made at any time
    assert now < 4000 and grown < 8000


def test_the_forms_of_the_outputs(mode):
    x = pt.dvector("x")
    f = graphc.function([x], {"a": x * 2.0, "b": [x + 1.0, (x.sum(),)]}, mode=mode)
    out = {"a": np.empty(3), "b": (np.empty(3), [np.empty(())])}
    results = f(A, out=out)
    assert (
        results["a"] is out["a"] and results["b"][0] is out["b"][0] and results["b"][1][0] is out["b"][1][0]
    )
    assert out["a"].tolist() == [2, 4, 6] and out["b"][0].tolist() == [2, 3, 4] and out["b"][1][0] == 6
    some = f([1, 2, 3], out={"a": None, "b": [out["b"][0], None]})
    assert some["a"].tolist() == [2, 4, 6] and some["b"][0] is out["b"][0] and some["b"][1][0] == 6
    g = graphc.function([x], Pair(x * 2.0, x + 1.0), mode=mode)
    pair = g(A, out=(np.empty(3), np.empty(3)))
    assert type(pair) is Pair and pair.second.tolist() == [2, 3, 4]


@pytest.mark.parametrize(
    ("out", "text"),
    [
        ({"a": np.empty(3)}, r" must be a dict with the keys \['a', 'b'\], got a dict with the keys \['a'\]"),
        ([np.empty(3), None], r" must be a dict with the keys \['a', 'b'\], got a list of 2 items"),
        ({"a": None, "b": np.empty(3)}, r"\['b'\] must be a list of 2 items, got array.* of type ndarray"),
        ({"a": None, "b": [None]}, r"\['b'\] must be a list of 2 items, got a list of 1 items"),
        ({"a": 1.5, "b": None}, "result 0 must be an array, got float"),
    ],
)
def test_another_form(mode, out, text):
    x = pt.dvector("x")
    f = graphc.function([x], {"a": x * 2.0, "b": [x + 1.0, x]}, mode=mode, name="model")
    with pytest.raises(TypeError, match="out= of model.*" + text):
        f(A, out=out)


WIDE = np.zeros((3, 8))


@pytest.mark.parametrize(
    ("out", "error", "words"),
    [
        (np.empty((4, 2)), ValueError, [r"must have shape \(3, 2\), got \(4, 2\)", r"strides \(16, 8\)"]),
        (np.empty((3, 5)), ValueError, [r"must have shape \(\?, 2\), got \(3, 5\)"]),
        (np.empty(3), ValueError, [r"got \(3,\)"]),
        (np.empty((3, 2), "f4"), TypeError, ["must have dtype float64, got dtype float32"]),
        (np.empty((3, 2), ">f8"), TypeError, ["got dtype >f8"]),
        (np.empty((2, 3)).T, ValueError, [r"C-contiguous, with strides \(16, 8\), got \(8, 24\)", "aligned"]),
        (WIDE[:, :2], ValueError, [r"got \(64, 8\)"]),
        (np.broadcast_to(1.0, (3, 2)), ValueError, ["read-only", "writeable"]),
        (np.zeros(49, "u1")[1:].view("f8").reshape(3, 2), ValueError, ["aligned to 8 bytes", "not aligned"]),
        (np.empty((3, 2)).view(np.matrix), TypeError, ["subclass matrix", "np.asarray"]),
        ([[1.0, 2.0]], TypeError, ["must be an array, got list"]),
    ],
)
def test_buffers_that_do_not_fit(mode, out, error, words):
    x = pt.tensor("x", dtype="float64", shape=(None, 2))
    s = graphc.shared(0.0)
    y = x * 2.0
    y.name = "doubled"
    f = graphc.function([x], y, mode=mode, name="model", updates={s: s + 1.0})
    with pytest.raises(error, match="out= of model for result 0 'doubled'") as raised:
        f(np.ones((3, 2)), out=out)
    for word in words:
        raised.match(word)
    assert s.get_value() == 0


def test_overlap_with_inputs_counts_as_fresh_memory(mode):
    x, y = pt.dvector("x"), pt.dvector("y")
    f = graphc.function([x, y], [x + y[::-1], x - y], mode=mode)
    memory = np.arange(8.0)
    before = memory.copy()
    out = [memory[1:5], memory[5:]]
    with pytest.raises(ValueError, match="shape"):
        f(memory[:4], memory[2:6], out=out)
    np.testing.assert_array_equal(memory, before)
    out = [memory[1:5], np.empty(4)]
    f(memory[:4], memory[2:6], out=out)
    np.testing.assert_array_equal(out[0], before[:4] + before[2:6][::-1])
    np.testing.assert_array_equal(out[1], before[:4] - before[2:6])


def test_overlap_of_buffers_is_refused(mode):
    x = pt.dvector("x")
    f = graphc.function([x], [x + 1.0, x * 2.0], mode=mode)
    memory = np.zeros(5)
    for out in ([memory[:3], memory[2:]], [memory[:3], memory[:3]]):
        with pytest.raises(ValueError, match="result 1 shares memory with that for result 0"):
            f(A, out=out)
    assert not memory.any()
    first, second = f(A, out=[np.empty(6)[:3], np.empty(6)[3:]])
    assert first.tolist() == [2, 3, 4] and second.tolist() == [2, 4, 6]


class ViewOp(Op):
    """A view of its input, made in Python."""

    __props__ = ()
    view_map = {0: [0]}

    def make_node(self, x):
        return Apply(self, [x], [x.type()])

    def perform(self, node, inputs, output_storage):
        output_storage[0][0] = inputs[0][:]


def test_borrowed_results_may_share_memory():
    x = pt.dvector("x")
    a = A.copy()
    own, borrowed = graphc.function([x], ViewOp()(x)), graphc.function([x], Out(ViewOp()(x), borrow=True))
    assert not np.may_share_memory(own(a), a)
    assert np.may_share_memory(borrowed(a), a)
    a.flags.writeable = False
    assert not np.may_share_memory(borrowed(a), a)
    native = graphc.function([x], Out(x[::1] * 1.0, borrow=True))
    assert not np.may_share_memory(native(A), A)


def test_an_input_named_out():
    x = pt.dvector("out")
    f = graphc.function([x], {"a": x + 1.0})
    assert f(out=A)["a"].tolist() == [2, 3, 4]
