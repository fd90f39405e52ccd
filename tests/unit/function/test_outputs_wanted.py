# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""``f(..., outputs_wanted=[...])``: some of the outputs, in the form of all."""

import numpy as np
import pytest

import graphc
import graphc.tensor as pt
from graphc import In
from graphc.graph import Apply, Op

A = np.array([1.0, 2.0])


class Count(Op):
    """Adds 1 and notes that it ran."""

    def __init__(self):
        self.runs = 0

    def make_node(self, x):
        return Apply(self, [x], [x.type()])

    def perform(self, node, inputs, output_storage):
        self.runs += 1
        output_storage[0][0] = inputs[0] + 1.0


def equal(got, expected):
    if isinstance(expected, dict):
        return list(got) == list(expected) and all(equal(got[key], expected[key]) for key in expected)
    if isinstance(expected, list | tuple):
        pairs = zip(got, expected, strict=True)
        return type(got) is type(expected) and all(equal(a, b) for a, b in pairs)
    return got is None if expected is None else np.array_equal(got, expected)


def test_positions_and_names(mode):
    x = pt.dvector("x")
    total = x.sum()
    total.name = "total"
    f = graphc.function([x], [x * 2.0, total, x + 1.0], mode=mode)
    assert equal(f(A, outputs_wanted=[1]), [None, 3.0, None])
    assert equal(f(A, outputs_wanted=[0, -1]), [A * 2, None, A + 1])
    assert equal(f(A, outputs_wanted=["total", 1]), [None, 3.0, None])
    assert equal(f(x=A, output_subset=(2,)), [None, None, A + 1])
    assert equal(f(A, outputs_wanted=[]), [None, None, None])
    assert equal(f(A, outputs_wanted=None), [A * 2, 3.0, A + 1])
    assert equal(f([1, 2], outputs_wanted={np.int64(0)}), [A * 2, None, None])


def test_keys_and_nested_forms():
    x = pt.dvector("x")
    f = graphc.function([x], {"a": x * 2.0, "b": [x + 1.0, (x.sum(),)]})
    assert equal(f(A, outputs_wanted=["b"]), {"a": None, "b": [A + 1, (3.0,)]})
    assert equal(f(A, outputs_wanted=["a"]), {"a": A * 2, "b": [None, (None,)]})
    assert equal(f(A, outputs_wanted=[1]), {"a": None, "b": [A + 1, (3.0,)]})
    single = graphc.function([x], x * 2.0)
    assert equal(single(A, outputs_wanted=[0]), A * 2) and single(A, outputs_wanted=[]) is None


def test_only_ancestors_run_and_the_choice_is_kept():
    x, y = pt.dvector("x"), pt.dvector("y")
    first, second = Count(), Count()
    f = graphc.function([x, y], [first(x) * 2.0, second(y) * 2.0])
    for _ in range(3):
        assert equal(f(A, A, outputs_wanted=[0]), [A * 2 + 2, None])
    assert (first.runs, second.runs) == (3, 0) and len(f.subsets) == 1
    f(A, A)
    assert (first.runs, second.runs) == (4, 1)
    native = graphc.function([x, y], [x * 2.0, y[5]])
    assert equal(native(A, A, outputs_wanted=[0]), [A * 2, None])
    with pytest.raises(IndexError):
        native(A, A)


def test_updates_happen_all_the_same():
    x = pt.dvector("x")
    state = graphc.shared(np.zeros(2), "state")
    f = graphc.function([x], [x * 2.0, state.sum()], updates={state: state + x})
    f(A, outputs_wanted=[0])
    f(A, outputs_wanted=[])
    assert state.get_value().tolist() == [2.0, 4.0] and f(A)[1] == 6.0
    count = pt.dscalar("count")
    g = graphc.function([In(count, value=0.0, update=count + 1.0)], [count, -count])
    assert g(outputs_wanted=[1])[1] == 0 and g(outputs_wanted=[1])[1] == -1 and g()[0] == 2


def test_given_buffers():
    x = pt.dvector("x")
    f = graphc.function([x], [x * 2.0, x + 1.0])
    buffer = np.empty(2)
    result = f(A, out=[None, buffer], outputs_wanted=[1])
    assert result[0] is None and result[1] is buffer and buffer.tolist() == [2.0, 3.0]


def test_an_input_of_the_same_name_is_an_input():
    x = pt.dvector("outputs_wanted")
    f = graphc.function([x], [x * 2.0, x])
    assert equal(f(outputs_wanted=A), [A * 2, A])
    assert equal(f(A, output_subset=[0]), [A * 2, None])


def test_what_is_not_there_is_refused():
    x = pt.dvector("x")
    y = x * 2.0
    y.name = "double"
    f = graphc.function([x], [y, x.sum()], name="f")
    for wrong in (2, -3, "triple", 0.5, True):
        with pytest.raises(ValueError, match=r"f has no output .*; its outputs are 0, 1, 'double'"):
            f(A, outputs_wanted=[wrong])
    with pytest.raises(TypeError, match=r"outputs_wanted of f must be a list .* write \[0\]"):
        f(A, outputs_wanted=0)
    with pytest.raises(TypeError, match=r"write \['double'\]"):
        f(A, outputs_wanted="double")
    g = graphc.function([x], {"a": y, "b": x}, name="g")
    with pytest.raises(ValueError, match="its outputs are 'a', 'b', 'double', 'x'"):
        g(A, outputs_wanted=["c"])
    with pytest.raises(TypeError, match="takes positions, keys and names"):
        g(A, outputs_wanted=[["a"]])
