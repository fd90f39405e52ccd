# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""The namespace of an environment, its errors and resources, and code that runs in both modes."""

from __future__ import annotations

import gc
import threading
from itertools import permutations
from types import ModuleType

import numpy as np
import pytest

import graphc
import graphc.tensor as pt
from graphc.immediate import Environment, OpWrapper, Tensor, current
from graphc.immediate.namespace import LOOPS


def network(gt, x, w, b):
    """Layers, softmax and a loss, as users write them."""
    h = gt.tanh(gt.dot(x, w) + b)
    h = gt.concatenate([h, h**2], axis=1)
    p = gt.special.softmax(h, axis=-1)
    return -gt.mean(gt.log(p[gt.arange(x.shape[0]), gt.argmax(p, axis=1)]))


def statistics(gt, x):
    """Composites, sizes and indexing."""
    centred = x - x.mean(axis=0, keepdims=True)
    cov = gt.dot(centred.T, centred) / (x.shape[0] - 1)
    half = gt.zeros((x.shape[1], 2))[0].set(gt.ones(2))
    return gt.stack([cov.sum(), gt.where(cov > 0, cov, 0).max(), half.sum(), gt.clip(x, -1, 0.5).std()])


def loop(gt, x):
    """A scan that reads a tensor from around it."""
    scale = x[0] + 1.0
    total = gt.scan(
        lambda row, s: s + gt.tanh(row * scale),
        sequences=x,
        outputs_info=gt.zeros_like(x[0]),
        return_updates=False,
    )
    return total[-1]


def sizes(gt, x):
    """Creation by sizes."""
    n, d = x.shape[0], x.shape[1]
    return gt.arange(n).sum() + gt.eye(d).sum() + gt.full((n, d), 0.5).sum() + gt.reshape(x, (d, n)).sum()


class Symbolic:
    """``graphc.tensor`` with the loops, as an environment has them."""

    scan = staticmethod(graphc.scan)

    def __getattr__(self, name):
        return getattr(pt, name)


X, W, B = np.linspace(-2, 2, 12).reshape(4, 3), np.linspace(-1, 1, 6).reshape(3, 2), np.array([0.1, -0.2])
PROGRAMS = [(network, (X, W, B)), (statistics, (X,)), (loop, (X,)), (sizes, (X,))]


@pytest.mark.parametrize(("program", "values"), PROGRAMS, ids=lambda x: getattr(x, "__name__", ""))
def test_unchanged_code_runs_in_both_modes(gt, program, values):
    variables = [pt.TensorType("float64", (None,) * v.ndim)() for v in values]
    compiled = graphc.function(variables, program(Symbolic(), *variables), mode="reference")(*values)
    tensors = [gt.numpy_to_tensor(v) for v in values]
    for _ in range(2):
        result = program(gt, *tensors)
        np.testing.assert_allclose(np.asarray(result), compiled, rtol=1e-12)
        assert result.dtype == compiled.dtype.name


def test_every_public_name_is_mirrored(env):
    same = {"until", "transfer", "register_transfer", "is_weak_scalar"}
    for name in dir(pt):
        value = getattr(pt, name)
        is_foreign = isinstance(value, ModuleType) and not value.__name__.startswith("graphc.tensor")
        if name.startswith("_") or is_foreign:
            continue
        mirrored = getattr(env, name)
        assert name in dir(env)
        is_ours = getattr(value, "__module__", "").startswith("graphc")
        if callable(value) and not isinstance(value, type) and is_ours and name not in same:
            assert callable(mirrored) and mirrored is not value, name


def test_nested_namespaces_and_missing_names(env):
    assert isinstance(env.special.softmax, OpWrapper) and env.nn is not None and "softmax" in dir(env.special)
    np.testing.assert_allclose(np.asarray(env.nnet.relu(env.as_tensor([-1.0, 2.0]))), [0, 2])
    for space in (env, env.special):
        with pytest.raises(AttributeError, match="no_such_function"):
            getattr(space, "no_such_" + "function")
    assert env.pi == np.pi and env.newaxis is None and env.TensorType is pt.TensorType


def test_constructors_say_what_to_do(env):
    for name in ("vector", "matrix", "scalar", "tensor", "fmatrices"):
        with pytest.raises(TypeError, match=rf"{name}\(\) makes a symbolic input.*as_tensor"):
            getattr(env, name)("x")


def test_symbolic_arguments_build_graphs(env):
    x, t = pt.vector("x"), env.as_tensor([1.0, 2.0])
    results = [env.exp(x) + t, t * x, x - t, env.concatenate([x, t]), t[env.argmax(x) :]]
    assert all(isinstance(y, pt.TensorVariable) for y in results)
    values = graphc.function([x], results, mode="reference")(np.array([0.0, 1.0]))
    np.testing.assert_allclose(values[0], np.exp([0.0, 1.0]) + np.array([1, 2]))
    np.testing.assert_allclose(values[3], [0, 1, 1, 2])


def test_as_tensor_and_constant(env):
    x = env.as_tensor([1.0, 2.0], name="x")
    assert x.name == "x" and env.as_tensor(x) is x and env.as_tensor(x, ndim=2).shape == (1, 2)
    assert env.constant(3).dtype == "int64" and env.as_tensor(1.5).dtype == "float64"
    assert env.as_tensor([x, x * 2]).tolist() == [[1, 2], [2, 4]]
    assert env.as_tensor([1, 2], dtype="float32").dtype == "float32"
    assert env.get_underlying_scalar_constant_value(x[0]) == 1
    array = np.ones(3)
    shared, copied = env.numpy_to_tensor(array, copy=False), env.numpy_to_tensor(array)
    array[0] = 5
    assert shared.tolist() == [5, 1, 1] and copied.tolist() == [1, 1, 1]


def test_functions_as_arguments(gt):
    x, w = gt.as_tensor([1.0, 2.0, 3.0]), gt.as_tensor(10.0)
    assert gt.map(lambda v: v * w, x, return_updates=False).tolist() == [10, 20, 30]
    w = gt.as_tensor(2.0)  # what a function reads may change
    assert gt.map(lambda v: v * w, x, return_updates=False).tolist() == [2, 4, 6]
    big = np.arange(40.0)
    for offset in (0.0, 1.0):
        data = big + offset
        found = gt.map(lambda v, data=data: gt.sum(data) * v, x, return_updates=False)
        assert found.tolist() == [data.sum() * k for k in (1, 2, 3)]
    zero = gt.as_tensor(0.0)
    nested = gt.scan(
        lambda v, s: s + gt.reduce(lambda u, r: r + u * v, x, zero, return_updates=False),
        x,
        zero,
        return_updates=False,
    )
    assert nested.tolist() == [6, 18, 36]
    assert gt.scan(lambda v: gt.exp(gt.as_tensor(0.0)) + v, x, return_updates=False).tolist() == [2, 3, 4]


def test_loops_of_one_form_share_an_executable():
    env = Environment()
    for k in range(3):
        env.map(
            lambda v, k=k: v * env.as_tensor(float(k)), env.as_tensor(np.ones(k + 2)), return_updates=False
        )
    assert env.cache_info().misses == 1 and env.cache_info().hits == 2


def test_mixing_environments_names_both(env):
    other = Environment(name="the other one")
    x, y = env.as_tensor([1.0]), other.as_tensor([1.0])
    for mix in (lambda: x + y, lambda: env.exp(y), lambda: env.concatenate([x, y]), lambda: x[0].set(y[0]),
                lambda: env.map(lambda v: v + y[0], x)[0], lambda: np.add(x, y)):  # fmt: skip
        with pytest.raises(TypeError, match=r"two environments meet.*(the other one|shared by)"):
            mix()
    assert (x + env.numpy_to_tensor(np.asarray(y))).tolist() == [2]


def test_with_makes_an_environment_the_current_one():
    a, b, found = Environment(), Environment(), []
    with a:
        assert current() is a
        with b:
            assert current() is b
        assert current() is a
        thread = threading.Thread(target=lambda: found.append(current()))
        thread.start(), thread.join()
    assert found[0] is current() and found[0] not in (a, b)


def test_options_are_checked():
    with pytest.raises(ValueError, match="no target 'tpu'"):
        Environment("tpu")
    with pytest.raises(ValueError, match="cache_size"):
        Environment(cache_size=0)
    with pytest.raises(ValueError, match="queue_size"):
        Environment(queue_size=0)
    assert "lazy" in repr(Environment(lazy=True))


@pytest.mark.parametrize("mode", ["reference", "fast_compile"])
def test_modes_agree(env, mode):
    other = Environment(mode=mode)
    results = [np.asarray(network(each, *map(each.numpy_to_tensor, (X, W, B)))) for each in (env, other)]
    np.testing.assert_allclose(*results, rtol=1e-12)


def test_memory_goes_back_to_zero(gt):
    gt.flush()
    gc.collect()
    before = gt.live_bytes
    x = gt.numpy_to_tensor(np.ones(1000))
    assert gt.live_bytes == before + 8000
    y = x + 1
    alias = x[:]
    assert (np.asarray(y) == 2).all() and alias.shape == (1000,)
    assert gt.live_bytes == before + 24000
    view = np.asarray(y)
    del x, alias
    with gt.tape() as tape:
        z = (y * y).sum()
    tape.gradient(z, y)
    del y, z, tape
    assert view[0] == 2
    # From Python 3.12 on the buffer that a view looks at keeps its tensor (PEP 688).
    del view
    gc.collect()
    assert gt.live_bytes == before


def test_threads_share_an_environment(gt):
    errors = []

    def work(k):
        try:
            a = np.arange(k + 2.0)
            for i in range(60):
                x = gt.numpy_to_tensor(a)
                y = gt.exp(x) * 2 + x.sum()
                if i % 20 == 0:
                    y = y + gt.map(lambda v: v * 0.0, x, return_updates=False)
                np.testing.assert_allclose(np.asarray(y), np.exp(a) * 2 + a.sum())
                if i % 10 == 0:
                    with gt.tape() as t:
                        loss = (x * x).sum()
                    np.testing.assert_allclose(np.asarray(t.gradient(loss, x)), 2 * a)
        except BaseException as error:
            errors.append(error)

    threads = [threading.Thread(target=work, args=(k,)) for k in range(6)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert errors == []


def test_full_tracing_lists_operations():
    env = Environment(full_tracing=True)
    x = env.numpy_to_tensor(np.ones((2, 3)))
    for _ in range(2):
        env.exp(x) + x
    log = env.trace()
    assert [event.name for event in log] == ["exp", "add"] * 2
    assert log[1].inputs == ("float64[2, 3]",) * 2 and log[0].bytes == 48 and log.seconds > 0
    assert "exp" in str(log) and "float64[2, 3]" in str(log)
    log.clear()
    assert len(env.trace()) == 0
    lazy = Environment(lazy=True, full_tracing=True)
    np.asarray(lazy.exp(lazy.as_tensor([1.0])) + 1)
    assert [event.operations for event in lazy.trace()] == [2]
    with pytest.raises(ValueError, match="full_tracing=True"):
        Environment().trace()


def test_results_that_are_no_tensors_pass_through(env):
    assert env.is_weak_scalar(2.0) and type(env.ones_like(env.as_tensor(1.0))) is Tensor


def test_names_that_are_not_called_like_functions_of_tensors(gt):
    """Grids are indexed, interpolation gives a function, and what sizes decide has as many results."""
    x, y = gt.numpy_to_tensor(np.arange(6.0).reshape(3, 2)), gt.numpy_to_tensor(np.arange(3.0))
    assert np.array_equal(np.asarray(gt.mgrid[0:3, 1:2:3j]), np.mgrid[0:3, 1:2:3j])
    assert np.array_equal(np.asarray(gt.ogrid[2:5]), np.ogrid[2:5])
    assert np.asarray(gt.interpolate1d(y, 2 * y)(y[:2] + 0.5)).tolist() == [1.0, 3.0]
    counts, edges = gt.histogramdd(x, 2)
    assert np.array_equal(np.asarray(counts), np.histogramdd(np.asarray(x), 2)[0]) and len(edges) == 2
    assert [np.asarray(v).tolist() for v in gt.unstack(x, axis=1)] == [[0.0, 2.0, 4.0], [1.0, 3.0, 5.0]]
    for name, row in {"mul": [0.0, 3.0], "max": [3.0, 3.0], "min": [0.0, 1.0]}.items():
        changed = getattr(gt, f"{name}_subtensor")(x[0], 3.0)
        assert np.asarray(changed).tolist() == [row, [2.0, 3.0], [4.0, 5.0]]
    with pytest.raises(TypeError, match="slices such as"):
        gt.mgrid[0, 1:2]


def test_functions_by_name_and_equal_attributes():
    """`op_factory` runs what a name stands for; a list of axes and a tuple are one entry of the cache."""
    env = Environment(name="by name")
    a = env.as_tensor(np.arange(6.0).reshape(2, 3))
    np.testing.assert_array_equal(env.op_factory("matmul", a, a.T), np.asarray(a) @ np.asarray(a).T)
    assert float(env.op_factory("sum", a, axis=None)) == 15
    assert env.op_factory("linalg.norm", a).ndim == 0
    assert env.reduce_sum(a, axis=0).tolist() == [3, 5, 7] and float(env.op_factory("reduce_max", a)) == 5
    with pytest.raises(AttributeError, match="no function 'nothing'"):
        env.op_factory("nothing", a)
    env.cache_clear()
    totals = [env.sum(a, axis=axis) for axis in ([0, 1], (0, 1), [0, 1])]
    turned = [env.transpose(a, axes) for axes in ((1, 0), [1, 0])]
    assert {float(total) for total in totals} == {15} and turned[0].shape == turned[1].shape
    assert env.cache_info().size == 2


def test_the_class_of_the_factory_runs_functions_by_name(env):
    """`OpFactory(name, ...)` is a call in the environment of its tensors, whichever input is one."""
    a = env.as_tensor(np.arange(6.0).reshape(2, 3))
    factory = graphc.immediate.OpFactory
    np.testing.assert_array_equal(factory("matmul", np.ones((1, 2)), a), [[3, 5, 7]])
    assert factory("sum", a, axis=0)._kind.env is env and isinstance(env.op_factory, factory)
    with pytest.raises(TypeError, match="none of them is a"):
        factory("exp", np.ones(3))
    with pytest.raises(AttributeError, match="no function 'nothing'"):
        factory("nothing", a)


@pytest.mark.parametrize("dtype", [None, "float32"])
def test_draws_and_convolutions_by_the_names_of_tensorflow(env, dtype):
    first = env.random_uniform((2, 3), -1, 3, dtype=dtype, seed=4, name="draws")
    assert first.shape == (2, 3) and first.name == "draws" and first.dtype == (dtype or "float64")
    assert np.array_equal(first, env.random_uniform([2, 3], -1, 3, dtype=dtype, seed=4))
    wanted = env.random.uniform(-1, 3, size=(2, 3), rng=env.random.default_rng(4), dtype=dtype or "float64")
    assert np.array_equal(first, wanted)
    assert not np.array_equal(env.random_normal((5,)), env.random_normal((5,)))
    images, filters = env.ones((1, 1, 4, 4)), env.ones((1, 1, 2, 2))
    assert env.nn.conv2d(images, filters, name="features").shape == (1, 1, 3, 3)
    assert pt.nn.conv2d(pt.ones((1, 1, 4, 4)), pt.ones((1, 1, 2, 2)), name="features").name == "features"


def test_options_that_are_set_later_hold_from_then_on():
    """Also for calls that went straight to their executables; what was queued runs under the old ones."""
    env = graphc.immediate.Environment()
    x = env.as_tensor([1.0, 2.0])

    def call():
        return env.exp(x) + x

    for _ in range(3):
        call()  # connected
    env.lazy = True
    assert len(env._queue) == 0
    waiting = call()
    assert len(env._queue) == 2
    env.lazy = False
    assert len(env._queue) == 0
    env.full_tracing = True
    call()
    assert [event.name for event in env.trace()] == ["exp", "add"] and env.full_tracing
    env.full_tracing = False
    with pytest.raises(ValueError, match="does not trace"):
        env.trace()
    env.mode = "reference"
    again = call()
    assert env.mode == "reference" and env.cache_info().size == 2
    np.testing.assert_allclose(again, np.exp(x.numpy()) + x.numpy())
    np.testing.assert_allclose(waiting, again)
    env.cache_size = 1
    assert env.cache_info().size == 1 and env.cache_size == 1
    call()
    env.lazy, env.queue_size = True, 3
    for _ in range(4):
        waiting = call()
    assert len(env._queue) <= 3 and env.queue_size == 3
    np.testing.assert_allclose(waiting, again)


@pytest.mark.parametrize("name", ["target", "record", "lazzy", "exp", "seed"])
def test_what_is_no_option_cannot_be_set(name):
    env = graphc.immediate.Environment()
    with pytest.raises(AttributeError, match="can be changed are lazy, full_tracing"):
        setattr(env, name, 1)
    for option, value in (("cache_size", 0), ("queue_size", 0), ("mode", "quick")):
        with pytest.raises(ValueError, match=option if option != "mode" else "quick"):
            setattr(env, option, value)
            env.exp(env.ones(2))


def test_loops_are_those_of_graphc():
    assert {"scan", *(name for name, module in graphc._NAMES.items() if module == "graphc.scan")} == LOOPS
    assert all(callable(getattr(Environment(), name)) for name in LOOPS)


@pytest.mark.parametrize(
    ("name", "operands"),
    [
        ("switch", {"cond": np.array([True, False]), "ift": 1, "iff": 2.5}),
        ("switch", {"cond": True, "ift": np.array([1, 2], "int8"), "iff": 2.5}),
        ("ldexp", {"x": np.array([1.5, 2.5], "float32"), "n": 2}),
        ("ldexp", {"x": 1.5, "n": np.array([1, 2], "int16")}),
        ("polygamma", {"n": 1, "x": np.array([1.5, 2.5])}),
        ("clip", {"x": np.array([1, 5], "int8"), "min": 2, "max": 3}),
    ],
)
def test_operands_by_keyword_in_any_order(name, operands):
    """Each is computed in its own dtype, whether numbers come before arrays or not."""
    function = getattr(Environment(), name)
    expected = function(*operands.values())
    for order in permutations(operands.items()):
        found = function(**dict(order))
        assert found.dtype == expected.dtype
        np.testing.assert_array_equal(found.numpy(), expected.numpy())
    first, *others = operands.items()
    np.testing.assert_array_equal(function(first[1], **dict(others[::-1])).numpy(), expected.numpy())
