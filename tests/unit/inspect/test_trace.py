# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""``f.trace()``: what ran, in which order, at which line, and what it made."""

import json

import numpy as np
import pytest

import graphc
import graphc.tensor as pt
from graphc.graph import Apply, Op
from graphc.ops.ifelse import ifelse

A = np.array([1.0, 2.0])


class Plus(Op):
    __props__ = ()

    def make_node(self, x):
        return Apply(self, [x], [x.type()])

    def perform(self, node, inputs, output_storage):
        if inputs[0].size and inputs[0].flat[0] > 100:
            raise ValueError("large")
        output_storage[0][0] = inputs[0] + 1.0


def test_a_mixed_graph():
    x = pt.dvector("x")
    f = graphc.function([x], [Plus()(x * 2.0 + 1.0).sum(), x], name="model")
    with f.trace() as trace:
        for _ in range(2):
            assert f(A)[0] == 10
        copy = f.copy()
    assert f(A)[0] == 10 and copy(A)[0] == 10
    assert len(trace.calls) == 2 and trace.calls[0].name == "model"
    assert [event.native for event in trace.events] == [True, False, True] * 2
    assert [event.order for event in trace.events] == list(range(6))
    assert [event.thunk for event in trace.events] == [0, 1, 2] * 2
    first, python, last = trace.events[:3]
    assert python.op == "Plus" and "test_trace.py" in python.line and python.bytes == 16
    assert "mul" in first.op and first.bytes == 16 and last.bytes == 8
    assert all(event.duration > 0 for event in trace.events)
    starts = [event.start for event in trace.events]
    assert starts == sorted(starts) and starts[0] >= trace.calls[0].start
    text = str(trace)
    assert text.startswith("trace of model: 2 calls") and "Plus" in text and "test_trace.py" in text
    assert len(text.splitlines()) == 5


def test_a_native_function_is_one_event_a_call():
    x = pt.dvector("x")
    state = graphc.shared(np.zeros(2), "state")
    f = graphc.function([x], x * 2.0 + state, updates={state: state + x})
    with f.trace() as trace:
        assert f(A).tolist() == [2.0, 4.0]
        assert f(x=[1, 2]).tolist() == [3.0, 6.0]
    assert f(A).tolist() == [4.0, 8.0] and state.get_value().tolist() == [3.0, 6.0]
    assert len(trace.events) == 2 and trace.events[0].native and trace.events[0].bytes == 32
    assert {"mul", "add"} <= set(trace.events[0].ops)
    nested = graphc.function([x], {"a": x * 2.0, "b": (x + 1.0,)})
    with nested.trace() as trace:
        assert nested(A)["b"][0].tolist() == [2.0, 3.0]
    assert len(trace.events) == 1


def test_donated_inputs_are_left_alone():
    x = pt.dvector("x")
    f = graphc.function([graphc.In(x, mutable=True)], x * 2.0)
    given = A.copy()
    with f.trace():
        assert f(given).tolist() == [2.0, 4.0]
    assert given.tolist() == A.tolist()


@pytest.mark.parametrize("kind", ["fast_run", "reference", "debug"])
def test_op_by_op(kind):
    x = pt.dvector("x")
    f = graphc.function([x], Plus()(pt.exp(x) * 2.0) + pt.exp(x + 1.0), mode=kind)
    with f.trace(per_op=True) as trace:
        result = f(A)
    np.testing.assert_allclose(result, f(A))
    ops = [event.op for event in trace.events]
    assert sorted(ops) == ["Plus", "add", "add", "exp", "exp", "mul"]
    assert {event.native for event in trace.events if event.op != "Plus"} == {kind != "reference"}
    assert len({event.thunk for event in trace.events}) == 6


def test_errors_of_single_ops_name_their_own_lines():
    x = pt.dvector("x")
    first = x[3]
    second = (x + 1.0)[3]
    for output, line in ((first, first.owner.location.line), (second, second.owner.location.line)):
        f = graphc.function([x], output)
        with f.trace(per_op=True), pytest.raises(IndexError, match=f"test_trace.py:{line} "):
            f(A)


def test_lazy_thunks_say_what_they_ask_for():
    c, x = pt.bscalar("c"), pt.dvector("x")
    f = graphc.function([c, x], ifelse(c, Plus()(x), x * 2.0))
    with f.trace() as trace:
        f(np.int8(1), A)
    asked = [event.asked for event in trace.events if event.op == "IfElse"]
    assert asked == [(0,), (1,), ()]
    assert [event.op for event in trace.events if not event.asked][-1] == "IfElse"
    assert not any("mul" in event.op for event in trace.events)


def test_iterations_of_loops():
    x = pt.dvector("x")
    y = graphc.scan(lambda v: Plus()(v) * 2.0, sequences=[x], name="loop", return_updates=False)
    f = graphc.function([x], y)
    with f.trace() as trace:
        assert f(A).tolist() == [4.0, 6.0]
    inner = [event for event in trace.events if event.iterations]
    assert [event.iterations[0].number for event in inner if event.op == "Plus"] == [0, 1]
    assert "loop" in inner[0].iterations[0].loop
    assert "in Scan{loop, for}: Plus" in str(trace)


def test_failures_are_recorded():
    x = pt.dvector("x")
    f = graphc.function([x], Plus()(x * 1.0))
    with f.trace() as trace, pytest.raises(ValueError, match="large"):
        f(A * 1000)
    assert trace.events[-1].error == "ValueError" and "raised ValueError" in str(trace)
    assert len(trace.calls) == 1 and f(A).tolist() == [2.0, 3.0]


def test_chrome_format(tmp_path):
    x = pt.dvector("x")
    f = graphc.function([x], Plus()(x * 1.0), name="model")
    trace = f.trace()
    assert str(trace) == "trace of nothing: 0 calls in 0.0 us, 0 runs of thunks, 0.0 us in them"
    with trace:
        f(A)
    with trace:
        f(A)
    path = tmp_path / "trace.json"
    trace.save(path)
    data = json.loads(path.read_text())
    events = data["traceEvents"]
    assert [event["cat"] for event in events] == ["call"] * 2 + ["native", "python"] * 2
    assert all(event["ph"] == "X" and event["dur"] >= 0 for event in events)
    call, inner = events[0], events[2]
    assert call["ts"] <= inner["ts"] and inner["ts"] + inner["dur"] <= call["ts"] + call["dur"] + 1e-6
    assert "test_trace.py" in inner["args"]["line"] and inner["args"]["bytes"] == 16


def test_a_choice_of_outputs_is_traced_too():
    x = pt.dvector("x")
    f = graphc.function([x], [Plus()(x), x * 2.0])
    with f.trace() as trace:
        f(A, outputs_wanted=[0])
        f(A)
        f(A, outputs_wanted=[0])
    assert [event.op for event in trace.events].count("Plus") == 3 and len(trace.calls) == 3
    f(A, outputs_wanted=[0])
    assert len(trace.calls) == 3


def test_one_trace_at_a_time():
    x = pt.dvector("x")
    f = graphc.function([x], x * 2.0, name="f")
    with f.trace(), pytest.raises(RuntimeError, match="another trace of f is open"), f.trace():
        pass
    with f.trace() as trace:
        f(A)
    assert len(trace.events) == 1
