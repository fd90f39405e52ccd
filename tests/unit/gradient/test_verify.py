# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""`verify_grad`."""

from __future__ import annotations

import numpy as np
import pytest

import graphc.tensor as pt
from graphc.gradient import GradientError, verify_grad

from ._faulty import Faulty


def test_verify_grad_accepts_right_rules():
    rng = np.random.default_rng(0)
    verify_grad(
        lambda x, y: pt.tanh(x) * y, [rng.normal(size=(2, 3)), rng.normal(size=(2, 3))], mode="reference"
    )
    verify_grad(pt.exp, [rng.normal(size=3).astype("float32")], mode="reference")
    verify_grad(lambda x: [x.sum(), pt.sin(x)], [rng.normal(size=3)], mode="reference")
    verify_grad(lambda x: pt.exp(1j * x), [rng.normal(size=3)], mode="reference")


def test_verify_grad_names_the_worst_element():
    def rule(op, x, g):
        return [g[0] * pt.as_tensor_variable(np.array([2.0, 2.0, 7.0]))]

    with pytest.raises(GradientError, match=r"element \[2\] of argument 0") as caught:
        verify_grad(Faulty(rule), [np.ones(3)], mode="reference")
    assert caught.value.index == (2,)
    assert caught.value.rel_err > 0.1


def test_verify_grad_refuses_integers():
    with pytest.raises(TypeError, match="input 0 has dtype int64"):
        verify_grad(pt.exp, [np.arange(3)])
    with pytest.raises(TypeError, match="list or tuple"):
        verify_grad(pt.exp, np.ones(3))
