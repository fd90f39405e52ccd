# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Graphs of native segments, Python ops and lazy thunks: what runs, how often, and what stays."""

import gc
import pickle
import threading
import weakref

import numpy as np
import pytest

import graphc
import graphc.tensor as pt
from graphc.graph import Apply, Op, Type
from graphc.ops.ifelse import ifelse
from graphc_runtime import Thunk

A = np.array([1.0, 2.0])


class Count(Op):
    """Adds its inputs and 1, and notes that it ran."""

    def __init__(self, tag="", log=None):
        self.tag, self.log = tag, [] if log is None else log

    def make_node(self, *xs):
        return Apply(self, list(xs), [xs[0].type()])

    def perform(self, node, inputs, output_storage):
        self.log.append(self.tag)
        output_storage[0][0] = sum(inputs) + 1.0

    def pullback(self, inputs, outputs, cotangents):
        return [cotangents[0]] * len(inputs)


class PickThunk(Thunk):
    lazy = True

    def __init__(self, known, computed, inputs, outputs):
        self.known, self.computed, self.inputs, self.outputs = known, computed, inputs, outputs

    def __call__(self):
        if not self.known[0][0]:
            return [0]
        chosen = 1 + int(self.inputs[0][0])
        if not self.known[chosen][0]:
            return [chosen]
        self.outputs[0][0] = self.inputs[chosen][0]
        self.computed[0][0] = True
        return None


class Pick(Op):
    """``Pick()(i, x0, x1, ...)`` is ``xi``."""

    __props__ = ()

    def make_node(self, i, *xs):
        return Apply(self, [pt.as_tensor(i), *xs], [xs[0].type()])

    def make_thunk(self, node, input_computed, output_computed, input_registers, output_registers):
        return PickThunk(input_computed, output_computed, input_registers, output_registers)

    def perform(self, node, inputs, output_storage):
        output_storage[0][0] = inputs[1 + int(inputs[0])]


class Shout(Op):
    """Notes when its thunk is made."""

    def __init__(self):
        self.made = 0

    def make_node(self, x):
        return Apply(self, [x], [x.type()])

    def make_thunk(self, *arguments):
        self.made += 1
        return super().make_thunk(*arguments)

    def perform(self, node, inputs, output_storage):
        output_storage[0][0] = inputs[0] * 2


class AddTo(Op):
    """Adds 1 to its input, in place."""

    __props__ = ()
    destroy_map = {0: [0]}

    def make_node(self, x):
        return Apply(self, [x], [x.type()])

    def perform(self, node, inputs, output_storage):
        inputs[0] += 1
        output_storage[0][0] = inputs[0]


def test_mixed_graphs_alternate():
    x = pt.dvector("x")
    y, expected = x, A
    ops = [Count() for _ in range(5)]
    for op in ops:
        y, expected = op(y * 2.0 + 1.0), expected * 2.0 + 2.0
    f = graphc.function([x], [y, x])
    result, same = f(A)
    assert np.array_equal(result, expected) and np.array_equal(same, A) and same is not A
    assert [len(op.log) for op in ops] == [1] * 5
    assert len(f.report.fallbacks) == 5 and f.report.segments == 5
    # Values that are no exact arrays, strided ones and keywords take the slower way to the same result.
    for value in ([1, 2], np.array([1.0, 0.0, 2.0, 0.0])[::2], np.array([2.0, 1.0])[::-1]):
        assert np.array_equal(f(value)[0], expected)
    assert np.array_equal(f(x=A)[0], expected)
    with pytest.raises(TypeError, match="cannot take this value for input 0 'x'"):
        f(np.ones((2, 2)))


def test_a_strided_result_of_python_is_taken_by_native_code():
    class Reversed(Count):
        def perform(self, node, inputs, output_storage):
            output_storage[0][0] = inputs[0][::-1]

    x = pt.dvector("x")
    assert graphc.function([x], Reversed()(x + 1.0) * 2.0)(A).tolist() == [6.0, 4.0]


def test_errors_name_op_and_line_and_leave_nothing_behind():
    class Odd(Count):
        def perform(self, node, inputs, output_storage):
            if inputs[0][0] < 0:
                raise ValueError("negative")
            output_storage[0][0] = inputs[0].astype("float32") if inputs[0][0] > 5 else inputs[0]

    x = pt.dvector("x")
    f = graphc.function([x], Odd()(x * 2.0) + 1.0)
    with pytest.raises(ValueError, match=r"negative\n  while running Odd.*test_lazy.py"):
        f(-A)
    with pytest.raises(TypeError, match=r"while running Odd.*test_lazy.py"):
        f(A * 10)
    assert f(A).tolist() == [3.0, 5.0]


def test_only_the_chosen_branch_runs(mode):
    log = []
    c, x = pt.bscalar("c"), pt.dvector("x")
    y = ifelse(c, Count("then", log)(pt.exp(x)), Count("else", log)(Count("deep", log)(x * 3.0)))
    f = graphc.function([c, x], [y * 2.0, x.sum()], mode=mode)
    times = 2 if mode == "debug" else 1
    for value, expected, ran in ((1, np.exp(A) + 1, ["then"]), (0, A * 3 + 2, ["deep", "else"])):
        log.clear()
        result, total = f(np.int8(value), A)
        np.testing.assert_allclose(result, expected * 2)
        assert total == 3 and log == ran * times


@pytest.mark.parametrize("n", [4, 8, 16, 32])
def test_nested_conditionals_are_linear(n):
    log = []
    c, x = pt.bscalar("c"), pt.dvector("x")
    y = x
    for i in range(n):
        y = ifelse(c, Count(i, log)(y), Count(-i, log)(y))
    f = graphc.function([c, x], y)
    np.testing.assert_allclose(f(np.int8(1), A), A + n)
    assert log == list(range(n))


def test_several_outputs_of_a_conditional_are_chosen_each_for_itself():
    log = []
    c, d, x = pt.bscalar("c"), pt.bscalar("d"), pt.dvector("x")
    first, second = ifelse(c, [Count("a", log)(x), Count("b", log)(x)], [x, x * 2.0])
    f = graphc.function([c, d, x], ifelse(d, first, second))
    assert f(np.int8(1), np.int8(1), A).tolist() == [2.0, 3.0] and log == ["a"]
    assert f(np.int8(1), np.int8(0), A).tolist() == [2.0, 3.0] and log == ["a", "b"]


def test_conditionals_that_compile_stay_compiled():
    c, x = pt.bscalar("c"), pt.dvector("x")
    near = ifelse(c, pt.exp(x), x * 4.0)
    f = graphc.function([c, x], [near, Count()(x)])
    assert [fallback.op for fallback in f.report.fallbacks] == ["Count"] and f.report.segments == 1
    np.testing.assert_allclose(f(np.int8(1), A)[0], np.exp(A))
    # Here the branches belong to other segments than the choice.
    g = graphc.function([c, x], ifelse(c, Count()(x), x)[0] + ifelse(c, x * 2.0, Count()(x) + x[5])[1])
    reasons = [fallback.reason for fallback in g.report.fallbacks if fallback.op == "IfElse"]
    assert reasons == ["it decides about Count, which runs in Python"] * 2
    assert g(np.int8(1), A) == 2.0 + 4.0
    with pytest.raises(IndexError):
        g(np.int8(0), A)


def test_gradients_run_only_the_chosen_branch():
    log = []
    c, x = pt.bscalar("c"), pt.dvector("x")
    y = ifelse(c, Count("then", log)(x * x), Count("else", log)(x * 3.0)).sum()
    f = graphc.function([c, x], [y, graphc.grad(y, x)])
    value, gradient = f(np.int8(1), A)
    assert value == 7 and gradient.tolist() == [2.0, 4.0] and log == ["then"]
    assert f(np.int8(0), A)[1].tolist() == [3.0, 3.0] and log == ["then", "else"]


def test_a_lazy_op_of_the_user():
    log = []
    i, x = pt.lscalar("i"), pt.dvector("x")
    shared = Count("shared", log)(x)
    parts = [Count(k, log)(shared * float(k)) for k in range(3)]
    f = graphc.function([i, x], Pick()(i + 0, *parts, pt.exp(x)) - 1.0)
    for k in range(3):
        log.clear()
        np.testing.assert_allclose(f(k, A), (A + 1) * k)
        assert log == ["shared", k]
    log.clear()
    np.testing.assert_allclose(f(3, A), np.exp(A) - 1)
    assert log == []
    assert any(fallback.op == "Pick" for fallback in f.report.fallbacks)


def test_native_nodes_of_an_unselected_part_do_not_run():
    i, x = pt.lscalar("i"), pt.dvector("x")
    # Out of bounds for an index of 1, which only the first part reads.
    f = graphc.function([i, x], Pick()(i, x[i + 5 : i + 6] * 1.0 + x[i + 2], x * 2.0))
    assert f(1, A).tolist() == [2.0, 4.0]
    with pytest.raises(IndexError):
        f(0, A)


def test_thunks_are_made_with_the_function_and_for_calls_at_the_same_time():
    x = pt.dvector("x")
    op = Shout()
    f = graphc.function([x], op(x + 1.0))
    assert op.made == 1
    for _ in range(5):
        assert f(A).tolist() == [4.0, 6.0]
    assert op.made == 1


def test_python_ops_inside_loops_and_branches_of_loops():
    log = []
    x = pt.dvector("x")

    def body(v, total):
        return ifelse(v > 1.5, Count("big", log)(total + v), total * 2.0)

    result = graphc.scan(body, sequences=[x], outputs_info=[pt.constant(1.0)], return_updates=False)
    f = graphc.function([x], result)
    assert f(np.array([1.0, 2.0, 1.0])).tolist() == [2.0, 5.0, 10.0] and log == ["big"]
    assert "runs in Python: Scan" in str(f.report)


def test_overwritten_memory_is_read_before():
    x = pt.dvector("x")
    y = x * 2.0
    f = graphc.function([x], [AddTo()(y), Count()(y), y.sum()])
    for _ in range(2):
        changed, read, total = f(A)
        assert changed.tolist() == [3.0, 5.0] and read.tolist() == [3.0, 5.0] and total == 6.0


def test_overwriting_in_a_branch_leaves_other_readers_alone():
    log = []
    c, x = pt.bscalar("c"), pt.dvector("x")
    y = Count("y", log)(x * 2.0)
    late = Count("late", log)(y)
    out = ifelse(c, AddTo()(y), x)
    # The second conditional reads y after the first one has overwritten it.
    f = graphc.function([c, x], [out, ifelse(c, late, x)])
    out, late = f(np.int8(1), A)
    assert out.tolist() == [4.0, 6.0] and late.tolist() == [4.0, 6.0]
    log.clear()
    assert f(np.int8(0), A)[0].tolist() == A.tolist() and log == []


def test_intermediate_values_do_not_outlive_their_readers():
    class Blob(np.ndarray):
        pass

    alive, seen = [], []

    class Make(Count):
        def perform(self, node, inputs, output_storage):
            value = inputs[0] + 1.0
            alive.append(weakref.ref(value))
            output_storage[0][0] = value

    class Look(Count):
        def perform(self, node, inputs, output_storage):
            gc.collect()
            seen.append(sum(ref() is not None for ref in alive))
            output_storage[0][0] = inputs[0] + 1.0

    x = pt.dvector("x")
    f = graphc.function([x], Look()(Make()(Make()(Make()(x)))))
    result = f(A)
    assert result.tolist() == (A + 4).tolist() and seen == [1]
    gc.collect()
    assert not any(ref() is not None for ref in alive)
    held = weakref.ref(result)
    del result
    assert held() is None


def test_many_threads_call_one_function():
    x, i = pt.dvector("x"), pt.lscalar("i")
    y = Pick()(i, Count()(x * 2.0), Count()(x + 5.0))
    f = graphc.function([i, x], Count()(y * 2.0))
    errors = []

    def work(seed):
        for k in range(200):
            value = np.array([seed, k], dtype="float64")
            expected = ((value * 2 if k % 2 == 0 else value + 5) + 1) * 2 + 1
            if not np.array_equal(f(k % 2, value), expected):
                errors.append((seed, k))

    threads = [threading.Thread(target=work, args=(seed,)) for seed in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert errors == []


def test_functions_call_themselves_through_their_ops():
    class Recursive(Count):
        def perform(self, node, inputs, output_storage):
            (value,) = inputs
            output_storage[0][0] = value if value[0] <= 0 else f(value - 1.0) + 1.0

    x = pt.dvector("x")
    f = graphc.function([x], Recursive()(x * 1.0))
    assert f(np.array([5.0])).tolist() == [5.0]


def test_updates_wait_for_success():
    class Odd(Count):
        def perform(self, node, inputs, output_storage):
            if inputs[0][0] < 0:
                raise ValueError("negative")
            output_storage[0][0] = inputs[0] * 1.0

    x = pt.dvector("x")
    state = graphc.shared(np.zeros(2), "state")
    f = graphc.function([x], Odd()(x * 1.0), updates={state: Count()(state + x)})
    f(A)
    assert state.get_value().tolist() == [2.0, 3.0]
    with pytest.raises(ValueError):
        f(-A)
    assert state.get_value().tolist() == [2.0, 3.0]


def test_lazy_functions_pickle():
    c, x = pt.bscalar("c"), pt.dvector("x")
    f = graphc.function([c, x], ifelse(c, Plus()(pt.exp(x)), x * 2.0))
    g = pickle.loads(pickle.dumps(f))
    for value in (0, 1):
        assert np.array_equal(f(np.int8(value), A), g(np.int8(value), A))


class Plus(Op):
    __props__ = ()

    def make_node(self, x):
        return Apply(self, [x], [x.type()])

    def perform(self, node, inputs, output_storage):
        output_storage[0][0] = inputs[0] + 1.0


class Apart(Op):
    """Each output is twice the input of its number, and says so."""

    def make_node(self, *xs):
        return Apply(self, list(xs), [x.type() for x in xs])

    def connection_pattern(self, node):
        return [[i == k for k in range(len(node.outputs))] for i in range(len(node.inputs))]

    def make_thunk(self, node, input_computed, output_computed, input_registers, output_registers):
        def thunk():
            missing = []
            for k, done in enumerate(output_computed):
                if done[0]:
                    continue
                if input_computed[k][0]:
                    output_registers[k][0], done[0] = input_registers[k][0] * 2, True
                else:
                    missing.append(k)
            return missing

        thunk.lazy = True
        return thunk


def test_outputs_of_one_lazy_op_are_chosen_apart():
    """Of an op that computes its outputs as they are needed, a conditional needs the one that it chooses."""
    ran = []

    def logged(name):
        return graphc.wrap_py(lambda x: (ran.append(name), x + 1)[1], [pt.dvector], [pt.dvector], name=name)

    x, c, d = pt.dvector("x"), pt.scalar("c", dtype="bool"), pt.scalar("d", dtype="bool")
    parts = Apart()(*(logged(name)(x * i) for i, name in enumerate("abc")))
    f = graphc.function([c, d, x], graphc.ifelse(c, parts[0], graphc.ifelse(d, parts[1], parts[2])))
    for given, wanted in (((True, True), "a"), ((False, True), "b"), ((False, False), "c")):
        ran.clear()
        np.testing.assert_array_equal(f(*given, [1.0]), [2.0 * (1 + "abc".index(wanted))])
        assert ran == [wanted]
    ran.clear()
    np.testing.assert_array_equal(graphc.function([x], [parts[2], parts[0]])([1.0]), [[6], [2]])
    assert sorted(ran) == ["a", "c"]


def test_types_are_asked_where_values_are_stored():
    """`filter_inplace` for new values of shared variables, `get_size` for what traces count."""
    asked = []

    class Bag(Type):
        def filter(self, value, strict=False, allow_downcast=None):
            return list(value)

        def filter_inplace(self, value, storage, strict=False, allow_downcast=None):
            asked.append("filter_inplace")
            storage[:] = value
            return storage

        def get_shape_info(self, obj):
            return len(obj)

        def get_size(self, shape_info):
            return 100 * shape_info

    class Twice(Op):
        def make_node(self, x):
            return Apply(self, [x], [x.type()])

        def perform(self, node, inputs, output_storage):
            output_storage[0][0] = inputs[0] * 2

    from graphc.graph.shared import SharedVariable

    s = SharedVariable(Bag(), [1, 2])
    kept = s.get_value(borrow=True)
    s.set_value([3, 4, 5])
    assert s.get_value(borrow=True) is kept == [3, 4, 5] and asked == ["filter_inplace"]
    f = graphc.function([], Twice()(s))
    with f.trace() as trace:
        assert f() == [3, 4, 5, 3, 4, 5]
    assert [event.bytes for event in trace.events if "Twice" in event.name] == [600]
