# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""What a type checker knows of a user's program: `make types` checks it, tests/unit/test_types.py runs it."""

from __future__ import annotations

from typing import assert_type

import numpy as np

import graphc
import graphc.tensor as pt
from graphc.function.types import Function
from graphc.graph.tensor.variable import TensorSharedVariable
from graphc.ifelse import ifelse
from graphc.immediate import Environment, Tensor
from graphc.raise_op import Assert
from graphc.tensor import TensorVariable
from graphc.tensor.basic import as_tensor_variable
from graphc.tensor.linalg import *  # noqa: F403
from graphc.tensor.math import exp
from graphc.tensor.nlinalg import det
from graphc.tensor.nn import *  # noqa: F403
from graphc.tensor.random.utils import RandomStream
from graphc.tensor.slinalg import cholesky
from graphc.tensor.special import *  # noqa: F403
from graphc.tensor.type import TensorType

x = pt.vector("x")
a = pt.dmatrix("a")
assert_type(x, TensorVariable)
assert_type(a, TensorVariable)
assert_type(pt.tensor("t", dtype="float32", shape=(None, 3)), TensorVariable)
assert_type(pt.scalars("u", "v"), list[TensorVariable])

# Operators and methods.
for value in (x + 1, 2 * x, -x, x**2, a @ x, x[0], x[1:], x > 0, x.sum(), x.T, x.reshape((-1, 1)), abs(x)):
    assert_type(value, TensorVariable)

# Values.
given = {x: np.ones(3)}
assert_type(x.eval(given), np.ndarray)
assert_type((x + pt.constant(1.0)).eval({x: [1.0, 2.0]}), np.ndarray)
assert_type(x.sum().eval({"x": [1.0, 2.0]}, mode="fast_compile"), np.ndarray)
assert_type(graphc.shared(np.zeros(3)).eval(), np.ndarray)

# Functions: elementwise ones, which take operands by name, their other names, and those of shapes.
assert_type(pt.exp(x), TensorVariable)
assert_type(pt.clip(x, min=0, max=1), TensorVariable)
assert_type(pt.power(x, 2), TensorVariable)
assert_type(pt.where(x > 0, x, 0), TensorVariable)
assert_type(pt.where(x > 0), tuple[TensorVariable, ...])
assert_type(pt.sum(x, axis=0), TensorVariable)
assert_type(pt.mean(x), TensorVariable)
assert_type(pt.concatenate([x, x]), TensorVariable)
assert_type(pt.zeros((2, 3)), TensorVariable)
assert_type(pt.arange(3), TensorVariable)
assert_type(pt.dot(a, x), TensorVariable)

# Namespaces.
assert_type(pt.linalg.solve(a, x), TensorVariable)
assert_type(pt.special.gammaln(x), TensorVariable)
assert_type(pt.nn.relu(x), TensorVariable)
assert_type(pt.fft.fft(x), TensorVariable)
assert_type(pt.random.normal(0, 1, size=3), TensorVariable)

# PyTensor's modules.
assert_type(det(a), TensorVariable)
assert_type(cholesky(a), TensorVariable)
assert_type(exp(as_tensor_variable(x)), TensorVariable)
assert_type(RandomStream(1).normal(0, 1), TensorVariable)
assert_type(TensorType("float64", shape=(None,))("t"), TensorVariable)
assert_type(ifelse(x.sum() > 0, x, -x), TensorVariable)
assert_type(Assert("negative"), Assert)

# Names that a star imports.
assert_type(solve(a, x), TensorVariable)  # noqa: F405
assert_type(inv(a), TensorVariable)  # noqa: F405
assert_type(matmul(a, a), TensorVariable)  # noqa: F405
assert_type(block_diag(a, a), TensorVariable)  # noqa: F405
assert_type(relu(x), TensorVariable)  # noqa: F405
assert_type(softmax(x), TensorVariable)  # noqa: F405
assert_type(gammaln(x), TensorVariable)  # noqa: F405

# The array API standard, and functions of distributions.
assert_type(graphc.array_api.exp(x), TensorVariable)
assert_type(graphc.array_api.zeros((2, 3)), TensorVariable)
assert_type(pt.huber(1.0, x), TensorVariable)
assert_type(graphc.as_symbolic(x), TensorVariable)

# Derivatives, loops, functions.
cost = pt.sum(pt.exp(x))
assert_type(graphc.grad(cost, x), TensorVariable)
assert_type(graphc.grad(cost, [x]), list[TensorVariable])
assert_type(graphc.jacobian(x**2, x), TensorVariable)
assert_type(graphc.function([x], cost), Function[TensorVariable])
assert_type(graphc.function([x], cost)([1.0]), np.ndarray)
assert_type(graphc.function([x], [cost, x])([1.0]), list[np.ndarray])
assert_type(graphc.function([x], (cost, x))([1.0]), tuple[np.ndarray, ...])
assert_type(graphc.function([x], {"cost": cost})(x=[1.0]), dict[str, np.ndarray])
assert_type(graphc.shared(np.zeros(3), name="s"), TensorSharedVariable)
rows = graphc.scan(lambda v: v * 2, outputs_info=x, n_steps=3, return_updates=False)
assert_type(rows, TensorVariable | list[TensorVariable])

# Immediate mode: operators, methods and functions of values.
env = Environment()
v, square = env.as_tensor([1.0, 2.0]), env.eye(2)
for result in (
    v + 1,
    2 * v,
    -v,
    v**2,
    square @ v,
    v[0],
    v > 0,
    v == 1,
    v.sum(),
    v.T,
    v.reshape((-1, 1)),
    abs(v),
):
    assert_type(result, Tensor)
assert_type(v.nonzero(), tuple[Tensor, ...])
assert_type(env.exp(v), Tensor)
assert_type(env.linalg.det(square), Tensor)
assert_type(env.linalg.eigh(square), tuple[Tensor, Tensor])
assert_type(env.linalg.svd(square), list[Tensor])
assert_type(env.linalg.svd(square, compute_uv=False), Tensor)
assert_type(env.special.gammaln(v), Tensor)
assert_type(env.nn.relu(v), Tensor)
assert_type(env.random.normal(0, 1, size=3), Tensor)
assert_type(env.where(v > 1, v, 0), Tensor)
assert_type(env.where(v > 1), tuple[Tensor, ...])
assert_type(env.split(v, [1, 1], 2), list[Tensor])
assert_type(env.divmod(v, 2), tuple[Tensor, Tensor])
assert_type(env.linspace(0, 1, 3), Tensor)
assert_type(env.linspace(0, 1, 3, retstep=True), tuple[Tensor, Tensor])
assert_type(env.pi, float)
