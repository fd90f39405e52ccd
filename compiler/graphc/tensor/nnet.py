# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Functions of neural networks, by the names Theano's ``tensor.nnet`` gave them."""

from __future__ import annotations

from typing import Any

import numpy as np

from graphc.graph.basic import Variable
from graphc.ops._pt import pt
from graphc.ops.elementwise import OPS
from graphc.tensor.basic import as_tensor_variable
from graphc.tensor.special import log_softmax, softmax

__all__ = [
    "binary_crossentropy",
    "categorical_crossentropy",
    "elu",
    "log_softmax",
    "logsoftmax",
    "relu",
    "sigmoid",
    "sigmoid_binary_crossentropy",
    "softmax",
    "softplus",
]

sigmoid, softplus = OPS["sigmoid"], OPS["softplus"]
logsoftmax = log_softmax


def relu(x: Any, alpha: Any = 0) -> Variable:
    """x where it is positive, ``alpha * x`` elsewhere."""
    x = as_tensor_variable(x)
    return pt.switch(pt.gt(x, 0), x, 0 if isinstance(alpha, int) and alpha == 0 else alpha * x)


def elu(x: Any, alpha: Any = 1) -> Variable:
    """x where it is positive, ``alpha * (exp(x) - 1)`` elsewhere."""
    x = as_tensor_variable(x)
    return pt.switch(pt.gt(x, 0), x, alpha * pt.expm1(pt.minimum(x, 0)))


def binary_crossentropy(output: Any, target: Any) -> Variable:
    """-(target * log(output) + (1 - target) * log(1 - output)), elementwise."""
    output, target = as_tensor_variable(output), as_tensor_variable(target)
    return -(target * pt.log(output) + (1 - target) * pt.log1p(-output))


def sigmoid_binary_crossentropy(output: Any, target: Any) -> Variable:
    """`binary_crossentropy` of ``sigmoid(output)``, without overflow."""
    output = as_tensor_variable(output)
    return pt.softplus(output) - target * output


def categorical_crossentropy(coding_dist: Any, true_dist: Any) -> Variable:
    """Cross entropy of distributions along the last axis.

    Args:
        coding_dist: probabilities, (n, k).
        true_dist: probabilities, (n, k), or class numbers, (n,).
    """
    coding, true = as_tensor_variable(coding_dist), as_tensor_variable(true_dist)
    if true.type.ndim == coding.type.ndim:
        return -pt.sum(true * pt.log(coding), axis=-1)
    if np.dtype(true.type.dtype).kind not in "iu" or coding.type.ndim != 2 or true.type.ndim != 1:
        raise TypeError(
            f"true_dist must be probabilities like {coding.type}, or a vector of class numbers, got "
            f"{true.type}"
        )
    return -pt.log(coding[pt.arange(true.shape[0]), true])
