# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Cross entropies and one-hot vectors."""

from __future__ import annotations

from typing import TYPE_CHECKING

from graphc.config import config
from graphc.graph.basic import Variable
from graphc.graph.tensor.convert import as_tensor_variable, operand
from graphc.ops.checks import as_count, required
from graphc.ops.create import arange
from graphc.ops.dimshuffle import normalize_axis
from graphc.ops.math import abs as abs_
from graphc.ops.math import cast, eq, le, log, log1p, minimum, mod, softplus, switch
from graphc.ops.reduce import sum as sum_
from graphc.ops.shape import size_of
from graphc.ops.shaping import dimshuffle, expand_dims, moveaxis, reshape
from graphc.tensor.special import log_softmax

if TYPE_CHECKING:
    from graphc.graph.tensor import DTypeLike, TensorLike
    from graphc.graph.tensor.variable import TensorVariable

__all__ = [
    "binary_crossentropy", "categorical_crossentropy", "huber_loss", "one_hot", "sigmoid_binary_crossentropy",
    "softmax_cross_entropy",
]  # fmt: skip


def one_hot(
    x: TensorLike, num_classes: TensorLike, dtype: DTypeLike | None = None, axis: int = -1
) -> TensorVariable:
    """1 at the positions that class numbers name, 0 elsewhere.

    Args:
        x: integers; a number that is no class gives zeros.
        num_classes: size of the new axis, symbolic or not.
        dtype: of the result; ``config.floatX`` by default.
        axis: where the new axis is.

    Raises:
        TypeError: ``x`` has no integers.

    Examples:
        >>> pt.nn.one_hot([0, 2], 3).eval()
        array([[1., 0., 0.],
               [0., 0., 1.]])
    """
    x = operand(x, "one_hot takes class numbers, which are integers", kinds="iu", error=TypeError)
    where = normalize_axis(axis, x.type.ndim + 1, "one_hot")
    classes = arange(as_count(num_classes, "one_hot"), dtype="int64")
    classes = dimshuffle(classes, tuple(0 if i == where else "x" for i in range(x.type.ndim + 1)))
    return cast(eq(expand_dims(cast(x, "int64"), where), classes), dtype or config.floatX)


def to_one_hot(y: TensorLike, nb_class: TensorLike, dtype: DTypeLike | None = None) -> TensorVariable:
    """A matrix with a row for each class number: 1 in its column, 0 elsewhere (config.floatX by default).

    Class numbers are indices: negative ones count from the last class, what is no class raises an IndexError.

    Examples:
        >>> pt.to_one_hot([0, 2], 3).eval()
        array([[1., 0., 0.],
               [0., 0., 1.]])
    """
    count = as_count(nb_class, "to_one_hot")
    message = "to_one_hot: class numbers must be indices of the classes"
    y = required(as_tensor_variable(y), lambda y: (y >= -count) & (y < count), message, IndexError)
    return one_hot(mod(y, count), count, dtype=dtype)


def binary_crossentropy(output: TensorLike, target: TensorLike) -> TensorVariable:
    """-(target * log(output) + (1 - target) * log(1 - output)), elementwise.

    Examples:
        >>> pt.nn.binary_crossentropy([0.5], [1.0]).round(6).eval()
        array([0.693147])
    """
    output, target = as_tensor_variable(output), as_tensor_variable(target)
    return -(target * log(output) + (1 - target) * log1p(-output))


def sigmoid_binary_crossentropy(output: TensorLike, target: TensorLike) -> TensorVariable:
    """`binary_crossentropy` of ``sigmoid(output)``, without overflow.

    Examples:
        >>> pt.nn.sigmoid_binary_crossentropy([0.0], [1.0]).round(6).eval()
        array([0.693147])
    """
    output = as_tensor_variable(output)
    return softplus(output) - target * output


def _chosen(scores: Variable, classes: Variable) -> TensorVariable:
    """The elements of the last axis at class numbers, which have one axis less."""
    count = size_of(scores, scores.type.ndim - 1)
    rows = reshape(scores, (-1, count))
    picked = rows[arange(size_of(rows, 0)), reshape(classes, (-1,))]
    return reshape(picked, [size_of(classes, i) for i in range(classes.type.ndim)])


def _is_classes(scores: TensorVariable, target: TensorVariable, what: str) -> bool:
    """True if the target has class numbers, and not a distribution."""
    if target.type.ndim == scores.type.ndim:
        return False
    if target.type.kind not in "iu" or target.type.ndim != scores.type.ndim - 1:
        raise TypeError(
            f"{what}: the target must be probabilities like {scores.type}, or class numbers of one dimension "
            f"less, got {target.type}"
        )
    return True


def categorical_crossentropy(coding_dist: TensorLike, true_dist: TensorLike) -> TensorVariable:
    """Cross entropy of distributions along the last axis.

    Args:
        coding_dist: probabilities, (..., k).
        true_dist: probabilities, (..., k), or class numbers, (...).

    Raises:
        TypeError: neither of these.

    Examples:
        >>> pt.nn.categorical_crossentropy(np.array([[0.5, 0.5]]), np.array([1])).round(6).eval()
        array([0.693147])
    """
    coding, true = as_tensor_variable(coding_dist), as_tensor_variable(true_dist)
    if _is_classes(coding, true, "categorical_crossentropy"):
        return -log(_chosen(coding, true))
    return -sum_(true * log(coding), axis=-1)


def softmax_cross_entropy(logits: TensorLike, target: TensorLike, axis: int = -1) -> TensorVariable:
    """`categorical_crossentropy` of ``softmax(logits)``, without overflow and without the softmax.

    Args:
        logits: scores; the classes are along ``axis``.
        target: probabilities of the same shape, or class numbers, without the axis.
        axis: axis of the classes.

    Raises:
        TypeError: the target is neither of these.

    Examples:
        >>> pt.nn.softmax_cross_entropy(np.zeros((1, 2)), np.array([0])).round(6).eval()
        array([0.693147])
    """
    logits, target = as_tensor_variable(logits), as_tensor_variable(target)
    axis = normalize_axis(axis, logits.type.ndim, "softmax_cross_entropy")
    if not _is_classes(logits, target, "softmax_cross_entropy"):
        return -sum_(target * log_softmax(logits, axis), axis=axis)
    return -_chosen(log_softmax(moveaxis(logits, axis, -1), -1), target)


def huber_loss(prediction: TensorLike, target: TensorLike, delta: TensorLike = 1.0) -> TensorVariable:
    """Half the squared error where it is below ``delta``, linear beyond it.

    Examples:
        >>> pt.nn.huber_loss([0.0, 0.0], [0.5, 3.0]).eval()
        array([0.125, 2.5  ])
    """
    error = as_tensor_variable(prediction) - as_tensor_variable(target)
    size = abs_(error)
    near = minimum(size, delta)
    # The error itself, because the square of a magnitude has no curvature at 0.
    inside = switch(le(size, near), error, near)
    return 0.5 * inside * inside + delta * (size - near)
