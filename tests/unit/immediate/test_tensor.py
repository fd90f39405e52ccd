# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Tensors as Python objects, their operators and indexing."""

from __future__ import annotations

import copy
import pickle

import numpy as np
import pytest

import graphc
from graphc.graph.tensor.variable import TensorOperators
from graphc.immediate import Tensor

BINARY = {
    "add": lambda a, b: a + b,
    "sub": lambda a, b: a - b,
    "mul": lambda a, b: a * b,
    "div": lambda a, b: a / b,
    "floordiv": lambda a, b: a // b,
    "mod": lambda a, b: a % b,
    "lt": lambda a, b: a < b,
    "ge": lambda a, b: a >= b,
    "eq": lambda a, b: a == b,
    "ne": lambda a, b: a != b,
}


def same(result, expected):
    assert type(result) is Tensor
    np.testing.assert_allclose(np.asarray(result), expected, rtol=1e-12)
    assert result.dtype == np.asarray(expected).dtype.name and tuple(result.shape) == np.shape(expected)


@pytest.mark.parametrize("name", BINARY)
def test_operators_follow_numpy(gt, name):
    f = BINARY[name]
    a, b = np.array([3.0, -2.0, 5.5]), np.array([2.0, 4.0, 5.5])
    x, y = gt.numpy_to_tensor(a), gt.numpy_to_tensor(b)
    for _ in range(2):  # the second time goes straight to the executable
        same(f(x, y), f(a, b))
        same(f(x, 2), f(a, 2))
        same(f(7.5, x), f(7.5, a))
    same(f(a, y), f(a, b))
    same(f(x, b[:1]), f(a, b[:1]))
    i = np.array([[1], [5]], np.int8)
    same(f(gt.numpy_to_tensor(i), 3), f(i, 3))
    same(f(gt.numpy_to_tensor(i), x), f(i, a))


def test_numbers_promote_as_python_numbers_do(gt):
    x = gt.numpy_to_tensor(np.ones(3, np.float32))
    assert [(x * 2.5).dtype, (x + 1).dtype, (x * np.float64(2)).dtype] == ["float32", "float32", "float64"]
    i = gt.numpy_to_tensor(np.ones(3, np.uint8))
    assert [(i + 1).dtype, (i * 2.0).dtype, (i / 2).dtype] == ["uint8", "float64", "float64"]
    assert (i < 300).tolist() == [True] * 3
    with pytest.raises(OverflowError, match=r"300.*uint8"):
        np.asarray(i + 300)


def test_sizes_promote_as_symbolic_sizes_do(env):
    x = env.numpy_to_tensor(np.ones(4, np.float32))
    symbolic = graphc.tensor.vector("x", dtype="float32")
    assert (x.sum() / x.shape[0]).dtype == (symbolic.sum() / symbolic.shape[0]).dtype == "float64"


def test_unary_operators_and_powers(gt):
    a = np.array([[1.5, -2.0], [0.25, 4.0]])
    x = gt.numpy_to_tensor(a)
    for result, expected in [(-x, -a), (abs(x), abs(a)), (x**2, a**2), (x @ x, a @ a), (2**x, 2**a)]:
        same(result, expected)
    quotient, rest = divmod(x, 2.0)
    same(quotient, a // 2.0), same(rest, a % 2.0)
    m = gt.as_tensor([True, False])
    for result, expected in [(~m, [False, True]), (m & True, [True, False]), (m | m, [True, False])]:
        same(result, np.array(expected))
    i = gt.as_tensor([1, 6])
    same(i << 2, np.array([4, 24])), same(i >> 1, np.array([0, 3])), same(i ^ 5, np.array([4, 3]))


def test_conversions_to_python(gt):
    x = gt.as_tensor([1.0, 2.0, 3.0])
    assert float(x[0]) == 1.0 and int(x[2]) == 3 and complex(x[1]) == 2 + 0j and x[1].item() == 2.0
    assert len(x) == 3 and [float(v) for v in x] == [1.0, 2.0, 3.0] == x.tolist()
    assert 2.0 in x and 5.0 not in x
    assert ["a", "b", "c"][gt.as_tensor(1)] == "b"
    assert x[0] == 1 and x[0] != 2 and bool(x[0] > 0)
    assert x != None  # noqa: E711
    assert f"{x[1]:.2f}" == "2.00"
    n = 0
    while gt.as_tensor(n) < 4:
        n += 1
    assert n == 4
    with pytest.raises(ValueError, match="ambiguous"):
        bool(x > 1)
    with pytest.raises(TypeError):
        ["a"][x]
    with pytest.raises(TypeError, match="cannot iterate over a tensor of 0 dimensions"):
        iter(x[0])


def test_printing(gt):
    assert repr(gt.as_tensor([1.0, 2.0])) == "Tensor([1., 2.], dtype=float64)"
    assert str(gt.as_tensor([[1, 2], [3, 4]])) == "[[1 2]\n [3 4]]"


def test_shape_is_a_tuple_that_computes(env):
    x = env.zeros((2, 3))
    assert x.shape == (2, 3) and isinstance(x.shape, tuple) and repr(x.shape) == "(2, 3)"
    assert x.shape + (1,) == (2, 3, 1) and (1,) + x.shape == (1, 2, 3)  # noqa: RUF005
    assert (x.shape * 2).tolist() == [4, 6] and int(x.shape.prod()) == 6 and (x.shape - 1).tolist() == [1, 2]
    assert x.shape.as_tensor().dtype == "int64" and x.size == 6 and x.ndim == 2 and x.nbytes == 48
    assert x.type.shape == (2, 3) and x.broadcastable == (False, False)
    rows, columns = x.shape
    assert env.ones((rows, columns)).shape == (2, 3) and list(range(rows)) == [0, 1]


INDICES = [
    np.s_[1],
    np.s_[-1],
    np.s_[1:, None],
    np.s_[..., 0],
    np.s_[::-1, 1:3],
    np.s_[:, ::2],
    np.s_[[0, 2]],
    np.s_[[2, 0], [1, 1]],
    np.s_[None, 2, -2],
]


@pytest.mark.parametrize("index", INDICES, ids=str)
def test_indexing_follows_numpy(gt, index):
    a = np.arange(12.0).reshape(3, 4)
    x = gt.numpy_to_tensor(a)
    same(x[index], a[index])
    changed, increased = a.copy(), a.copy()
    changed[index] = 100
    increased[index] += 0.5
    same(x[index].set(100), changed)
    same(x[index].inc(0.5), increased)
    same(x, a)


def test_indexing_by_tensors_and_masks(gt):
    a = np.arange(12.0).reshape(3, 4)
    x = gt.numpy_to_tensor(a)
    same(x[gt.as_tensor([2, 0])], a[[2, 0]])
    same(x[gt.as_tensor(1) :, gt.as_tensor(0)], a[1:, 0])
    same(x[x > 5], a[a > 5])
    same(x[x[:, 0] > 3], a[a[:, 0] > 3])
    same(x[x > 5].set(0), np.where(a > 5, 0, a))
    same(x[a > 5], a[a > 5])
    with pytest.raises(IndexError):
        np.asarray(x[5])
    with pytest.raises(IndexError, match="3 indices"):
        x[0, 0, 0]
    with pytest.raises(TypeError, match="an indexed tensor"):
        gt.set_subtensor(x, 1.0)


def test_positions_share_an_executable():
    env = graphc.immediate.Environment()
    x = env.as_tensor(np.arange(5.0))
    assert [float(v) for v in x] == [0, 1, 2, 3, 4]
    assert x[1:3].tolist() == [1, 2] and x[2:5].tolist() == [2, 3, 4]
    assert env.cache_info().size == 2


def test_setting_keeps_no_chain_of_tensors(env):
    x = env.as_tensor(np.arange(6.0))
    y = x[1:][1:][1:]
    assert not hasattr(y._view[0], "_view")
    same(y.set(0), np.array([2.0, 0, 0, 0]))


def test_every_method_of_symbolic_tensors_exists():
    missing = [name for name in vars(TensorOperators) if not hasattr(Tensor, name)]
    assert missing == []


def test_methods(gt):
    a = np.arange(12.0).reshape(3, 4)
    x = gt.numpy_to_tensor(a)
    for result, expected in [
        (x.sum(axis=0), a.sum(axis=0)),
        (x.mean(), a.mean()),
        (x.max(axis=1, keepdims=True), a.max(axis=1, keepdims=True)),
        (x.argmin(axis=0), a.argmin(axis=0)),
        (x.T, a.T),
        (x.reshape(2, -1), a.reshape(2, -1)),
        (x.reshape((4, 3)), a.reshape(4, 3)),
        (x.dimshuffle(1, "x", 0), a.T[:, None]),
        (x.flatten(), a.ravel()),
        (x.astype("int32"), a.astype("int32")),
        (x.dot(x.T), a @ a.T),
        (x.clip(2, 5), a.clip(2, 5)),
        (x.norm(2), np.sqrt((a**2).sum())),
        (x.swapaxes(0, 1), a.swapaxes(0, 1)),
        (x[:1].squeeze(), a[0]),
        (x.exp().log(), a),
    ]:
        same(result, expected)


def test_index_arrays_of_size_1_broadcast(gt):
    x = gt.as_tensor(np.arange(12.0).reshape(3, 4))
    two, one, column = gt.as_tensor([0, 1]), gt.as_tensor([2]), gt.as_tensor([[0], [1]])
    for _ in range(2):  # the second time the executable is known
        assert x[two, one].tolist() == [2.0, 6.0] and x[one, two].tolist() == [8.0, 9.0]
        assert x[column, two].tolist() == [[0.0, 1.0], [4.0, 5.0]]
        assert x[two, one].set(-1.0)[0].tolist() == [0.0, 1.0, -1.0, 3.0]
        with pytest.raises(IndexError):
            np.asarray(x[two, gt.as_tensor([0, 1, 2])])
        with pytest.raises(IndexError):
            np.asarray(x[two, gt.as_tensor([9])])


def test_broadcasting_sizes_of_1(gt):
    a = np.arange(6.0).reshape(2, 3)
    x = gt.numpy_to_tensor(a)
    for _ in range(3):
        same(x - x.mean(axis=1, keepdims=True), a - a.mean(axis=1, keepdims=True))
        same(x * x[:1], a * a[:1])
        same(x[:, :1] + gt.as_tensor([[1.0, 2.0]]), a[:, :1] + [[1.0, 2.0]])
        same(gt.zeros((2, 1)) + x, a)
    same(x + x, a + a)


def test_shared_tensors(env):
    w = env.shared(np.ones(3), name="w")
    assert w.name == "w" and w.get_value().tolist() == [1, 1, 1]
    w.set_value([2.0, 3.0, 4.0])
    same(w * 2, np.array([4.0, 6.0, 8.0]))
    w.set_value(w * 2)
    assert w.get_value().tolist() == [4, 6, 8] and w.eval().flags.writeable
    assert not w.get_value(borrow=True).flags.writeable
    with pytest.raises(TypeError, match="wrong number of dimensions"):
        w.set_value(1.0)


def test_copies_and_pickles(gt):
    x = gt.as_tensor([1.0, 2.0]) * 2
    assert copy.copy(x).tolist() == copy.deepcopy(x).tolist() == [2, 4]
    with gt:
        again = pickle.loads(pickle.dumps(x))
    assert again.env is gt and again.tolist() == [2, 4]


def test_tensors_are_made_by_environments():
    with pytest.raises(TypeError, match="made by an environment"):
        Tensor()


def test_numbers_of_unsupported_types_are_refused(env):
    x = env.as_tensor([1.0])
    with pytest.raises(TypeError, match="unsupported operand"):
        x + "a"
    with pytest.raises(TypeError, match="cannot make a tensor"):
        env.as_tensor(["a"])


@pytest.mark.parametrize("dtype", ["float32", "int8"])
def test_sizes_have_the_cast_that_sizes_of_graphs_have(dtype):
    env = graphc.immediate.Environment()
    x = env.numpy_to_tensor(np.ones((3, 2), "float32"))
    size = x.shape[0].astype(dtype)
    assert size == 3 and size.dtype == dtype
    assert (x / size).dtype == np.result_type("float32", dtype)
