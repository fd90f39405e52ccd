# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Operations that change the gradient but not the value."""

from __future__ import annotations

import numpy as np
import pytest

import graphc
import graphc.tensor as pt
from graphc.errors import DisconnectedInputError, NullTypeGradError
from graphc.gradient import (
    disconnected_grad,
    grad,
    grad_clip,
    grad_scale,
    hessian_vector_product,
    pushforward,
    undefined_grad,
    zero_grad,
)


def run(inputs, outputs, *values):
    return graphc.function(inputs, outputs, mode="reference", on_unused_input="ignore")(*values)


@pytest.mark.parametrize("f", [zero_grad, disconnected_grad, undefined_grad, lambda x: grad_clip(x, -1, 1)])
def test_values_are_unchanged(f):
    x = pt.dvector("x")
    np.testing.assert_array_equal(run([x], f(x), [1.0, 5.0]), [1.0, 5.0])


def test_zero_and_disconnected():
    x = pt.dvector("x")
    np.testing.assert_allclose(run([x], grad((x * zero_grad(x)).sum(), x), [1.0, 5.0]), [1.0, 5.0])
    np.testing.assert_allclose(run([x], grad((x * disconnected_grad(x)).sum(), x), [1.0, 5.0]), [1.0, 5.0])
    np.testing.assert_allclose(run([x], grad(zero_grad(x).sum(), x), [1.0, 5.0]), [0.0, 0.0])
    with pytest.raises(DisconnectedInputError):
        grad(disconnected_grad(x).sum(), x)
    assert graphc.consider_constant(x).type == x.type


def test_undefined():
    x = pt.dvector("x")
    with pytest.raises(NullTypeGradError, match="undefined_grad"):
        grad((x * undefined_grad(x)).sum(), x)
    with pytest.raises(NullTypeGradError, match="undefined_grad"):
        pushforward(undefined_grad(x), x, x)


def test_clip_and_scale():
    x = pt.dvector("x")
    cost = (10 * grad_clip(x, -1, 1)).sum() + grad_scale(x, -1.0).sum()
    np.testing.assert_allclose(run([x], grad(cost, x), [3.0]), [0.0])
    with pytest.raises(ValueError, match="lower_bound <= upper_bound"):
        grad_clip(x, 1, -1)


def test_hessian_vector_product():
    x, p = pt.dvector("x"), pt.dvector("p")
    cost = (100 * (x[1:] - x[:-1] ** 2) ** 2 + (1 - x[:-1]) ** 2).sum()
    from scipy.optimize import rosen_hess_prod

    xv, pv = np.array([1.3, 0.7, 0.8, 1.9]), np.array([0.1, -1.0, 0.4, 2.0])
    np.testing.assert_allclose(
        run([x, p], hessian_vector_product(cost, x, p), xv, pv), rosen_hess_prod(xv, pv)
    )
    with pytest.raises(ValueError, match="one p for each wrt"):
        hessian_vector_product(cost, x, [p, p])
