# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Recordings as graphs, and gradients of what ran."""

from __future__ import annotations

import threading

import numpy as np
import pytest

import graphc
from graphc.errors import DisconnectedInputError
from graphc.immediate import Environment


def test_gradients_agree_with_graphs(gt):
    a, w = np.linspace(-1, 1, 6).reshape(3, 2), np.array([0.5, -1.5])
    x, v = gt.numpy_to_tensor(a), gt.numpy_to_tensor(w)
    with gt.tape() as tape:
        h = gt.tanh(gt.dot(x, v)) * 2.5
        if h[0] > -10:
            h = h[1:] ** 2
        loss = h.sum()
    found = tape.gradient(loss, {"x": x, "v": v})
    sx, sv = graphc.tensor.matrix(), graphc.tensor.vector()
    cost = ((graphc.tensor.tanh(graphc.tensor.dot(sx, sv)) * 2.5)[1:] ** 2).sum()
    expected = graphc.function([sx, sv], graphc.grad(cost, [sx, sv]), mode="reference")(a, w)
    np.testing.assert_allclose(np.asarray(found["x"]), expected[0])
    np.testing.assert_allclose(np.asarray(found["v"]), expected[1])


def test_training_compiles_the_gradient_once():
    env = Environment()
    x, y = env.as_tensor([[1.0, 2.0], [3.0, 4.0], [0.0, 1.0]]), env.as_tensor([5.0, 11.0, 2.0])
    w = env.as_tensor([0.0, 0.0])
    for step in range(40):
        if step == 2:
            misses = env.cache_info().misses
        with env.tape() as tape:
            loss = ((env.dot(x, w) - y) ** 2).mean()
        w = w - (0.05 + step * 1e-3) * tape.gradient(loss, w)
    assert env.cache_info().misses == misses and float(loss) < 0.1


def test_a_tape_is_used_once_unless_it_persists(gt):
    x = gt.as_tensor([1.0, 2.0])
    with gt.tape() as tape:
        y = (x * x).sum()
    assert tape.gradient(y, x).tolist() == [2, 4]
    with pytest.raises(ValueError, match="persistent=True"):
        tape.gradient(y, x)
    with gt.tape(persistent=True) as tape:
        y = x * x
        z = y.sum() * 3.0
    assert tape.gradient(z, [x])[0].tolist() == [6, 12] and tape.gradient(z, (y, x))[0].tolist() == [3, 3]
    assert tape.gradient(y, x).tolist() == [2, 4]
    assert tape.gradient(y, x, output_gradients=[1.0, 10.0]).tolist() == [2, 40]


def test_watching(gt):
    x, w, other = gt.as_tensor(2.0), gt.as_tensor(3.0), gt.as_tensor(1.0)
    with gt.tape(persistent=True, watch_all=False) as tape:
        tape.watch(w)
        gt.exp(other)
        y = x * w * w
    assert float(tape.gradient(y, w)) == 12 and len(tape.steps) == 2
    with gt.tape(persistent=True) as tape:
        tape.watch(other)
        with tape.stop_recording():
            factor = gt.exp(x) * 0 + 5
        y = factor * x
    assert float(tape.gradient(y, x)) == 5
    with pytest.raises(DisconnectedInputError):
        tape.gradient(y, other)
    assert float(tape.gradient(y, other, disconnected_inputs="ignore")) == 0
    with pytest.raises(TypeError, match="watches tensors"):
        tape.watch(1.0)


def test_higher_derivatives(gt):
    x = gt.as_tensor(2.0)
    with gt.tape() as outer:
        with gt.tape() as inner:
            y = x**3
        first = inner.gradient(y, x)
    assert float(first) == 12 and float(outer.gradient(first, x)) == 12


def test_gradients_through_loops(gt):
    x, w = gt.as_tensor([1.0, 2.0, 3.0]), gt.as_tensor(0.5)
    with gt.tape() as tape:
        y = gt.scan(
            lambda v, s: s * w + v, sequences=x, outputs_info=gt.as_tensor(0.0), return_updates=False
        )[-1]
    gx, gw = tape.gradient(y, [x, w])
    np.testing.assert_allclose(np.asarray(gx), [0.25, 0.5, 1.0])
    np.testing.assert_allclose(float(gw), 2 * 0.5 * 1 + 2)


def test_mistakes_are_explained(gt):
    x = gt.as_tensor([1.0, 2.0])
    y = (x * x).sum()
    with gt.tape(persistent=True) as tape:
        x * 2
    with pytest.raises(ValueError, match="not computed while the tape recorded"):
        tape.gradient(y, x)
    with pytest.raises(TypeError, match="gradients are of tensors"):
        tape.gradient(y, [1.0])
    with pytest.raises(TypeError, match=r"with env.tape\(\) as t"):
        gt.grad(y, x)


def test_recordings_become_functions(gt):
    a, b = gt.as_tensor([1.0, 2.0]), gt.as_tensor([10.0, 20.0])
    with gt.record() as recording:
        y = gt.exp(a) * 2.0 + b
        z = y.sum()
        y - 1
    graph = recording.graph([y, z])
    f = graph.function()
    np.testing.assert_allclose(f(*graph.values)[0], np.asarray(y))
    np.testing.assert_allclose(f([0.0, 0.0, 0.0], [1.0, 2.0, 3.0])[1], 12)
    g = graphc.function([graph.inputs[0]], graph.outputs[1], givens={graph.inputs[1]: np.zeros(2)})
    assert g([0.0, 0.0]) == 4
    only_a = gt.graph([z], inputs=[a])
    assert len(only_a.inputs) == 1 and only_a.function()([0.0, 0.0])[0] == 34
    assert len(gt.graph().outputs) == 2
    cut = recording.graph([z], inputs=[y])
    assert cut.function()([1.0, 2.0])[0] == 3
    with pytest.raises(ValueError, match="output 0 of the graph was not computed"):
        recording.graph([a])
    assert "3 operations" in repr(Environment().record()).replace("0", "3")


def test_an_environment_may_record_everything():
    env = Environment(record=True, mode="reference")
    with pytest.raises(ValueError, match=r"with env.record\(\)"):
        Environment().graph()
    x = env.as_tensor([1.0, 2.0])
    y = x * x + 1
    assert env.graph([y]).function(mode="reference")([3.0])[0].tolist() == [10]


def test_recordings_see_their_own_thread(env):
    x = env.as_tensor([1.0])
    with env.record() as recording:
        thread = threading.Thread(target=lambda: x * 2)
        thread.start(), thread.join()
        x + 1
    assert [step.executable.name for step in recording.steps] == ["add"]
