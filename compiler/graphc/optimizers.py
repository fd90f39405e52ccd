# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Optimisers: update rules for shared variables, and L-BFGS through SciPy.

A rule gives a dict of updates for ``graphc.function(inputs, loss, updates=...)``. What it keeps between steps
(momenta, the number of steps) are shared variables of its own, which are among the dict's keys.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING, NamedTuple, TypeAlias

import numpy as np

import graphc.tensor as pt
from graphc.errors import checks_keywords
from graphc.function.function import function
from graphc.function.shared import shared
from graphc.gradient.reverse import grad
from graphc.graph.basic import Variable
from graphc.graph.pytree import flatten
from graphc.graph.replace import graph_replace
from graphc.graph.shared import SharedVariable

if TYPE_CHECKING:
    from _typeshed import DataclassInstance

    from graphc.graph.tensor.variable import TensorVariable

__all__ = ["LbfgsResult", "adam", "adamw", "lbfgs", "sgd"]

# A shared variable, or a container of shared variables.
Parameters: TypeAlias = "SharedVariable | Sequence[object] | Mapping[str, object] | DataclassInstance"
# A loss, or the gradients of one in the form of the parameters.
Slopes: TypeAlias = "Variable | Sequence[object] | Mapping[str, object] | DataclassInstance"
Rate: TypeAlias = "float | Variable"
Updates: TypeAlias = dict[SharedVariable, Variable]


@checks_keywords
def sgd(
    loss: Slopes,
    params: Parameters,
    learning_rate: Rate = 0.01,
    momentum: float = 0.0,
    nesterov: bool = False,
) -> Updates:
    """Gradient descent with momentum: ``v = momentum * v - rate * g``, ``p = p + v``.

    Args:
        loss: real 0-d variable; or gradients, in the form of ``params``, to clip or scale them first.
        params: shared variable, or a list, tuple, dict or dataclass of them, nested as you like.
        learning_rate: number or 0-d variable, for example a shared variable that a schedule sets.
        momentum: part of the last step that is taken again, in [0, 1).
        nesterov: take the gradient's step from where the momentum leads: ``p + momentum * v - rate * g``.

    Returns:
        New values of parameters and velocities, for ``graphc.function(..., updates=...)``.

    Raises:
        TypeError: a parameter is no shared variable of a floating-point type.
        ValueError: ``momentum`` is not in [0, 1), or ``nesterov`` has no momentum.

    Source: Sutskever et al., On the importance of initialization and momentum in deep learning, 2013.

    Examples:
        >>> w = graphc.shared(np.array([1.0, -2.0]), name="w")
        >>> train = graphc.function([], updates=graphc.optimizers.sgd((w**2).sum(), w, 0.25))
        >>> train(), w.get_value()
        (None, array([ 0.5, -1. ]))
    """
    _check_part("momentum", momentum)
    if nesterov and not momentum:
        raise ValueError("nesterov=True needs a momentum above 0")
    updates: Updates = {}
    for p, g in _pairs(loss, params):
        step = -_like(learning_rate, p) * g
        if momentum:
            v = _zeros(p, "velocity")
            velocity = momentum * v + step
            updates[v] = velocity
            step = momentum * velocity + step if nesterov else velocity
        updates[p] = _cast(p + step, p)
    return updates


@checks_keywords
def adam(
    loss: Slopes,
    params: Parameters,
    learning_rate: Rate = 0.001,
    beta1: float = 0.9,
    beta2: float = 0.999,
    epsilon: float = 1e-8,
) -> Updates:
    """Adam: steps in units of the gradient's running mean over the root of its running mean square.

    Args:
        loss, params, learning_rate: as in `sgd`.
        beta1, beta2: what remains of the two means in each step, in [0, 1).
        epsilon: added to the root.

    Returns:
        New values of parameters, means and the number of steps, for ``graphc.function(..., updates=...)``.

    Raises:
        TypeError: a parameter is no shared variable of a floating-point type.
        ValueError: ``beta1`` or ``beta2`` is not in [0, 1).

    Source: Kingma and Ba, Adam: a method for stochastic optimization, 2015, algorithm 1.

    Examples:
        >>> w = graphc.shared(np.array([1.0, -2.0]), name="w")
        >>> train = graphc.function([], updates=graphc.optimizers.adam((w**2).sum(), w, 0.1))
        >>> train(), w.get_value().round(3)
        (None, array([ 0.9, -1.9]))
    """
    return adamw(loss, params, learning_rate, beta1, beta2, epsilon, weight_decay=0.0)


@checks_keywords
def adamw(
    loss: Slopes,
    params: Parameters,
    learning_rate: Rate = 0.001,
    beta1: float = 0.9,
    beta2: float = 0.999,
    epsilon: float = 1e-8,
    weight_decay: float = 0.01,
) -> Updates:
    """Adam with weights that decay by ``learning_rate * weight_decay`` in each step, apart from the gradient.

    Args:
        loss, params, learning_rate, beta1, beta2, epsilon: as in `adam`.
        weight_decay: rate of decay, relative to the learning rate.

    Returns:
        As `adam`.

    Raises:
        TypeError, ValueError: as `adam`.

    Source: Loshchilov and Hutter, Decoupled weight decay regularization, 2019, algorithm 2.

    Examples:
        >>> w = graphc.shared(np.array([1.0, -2.0]), name="w")
        >>> updates = graphc.optimizers.adamw((w**2).sum(), w, 0.1, weight_decay=0.1)
        >>> graphc.function([], updates=updates)(), w.get_value().round(3)
        (None, array([ 0.89, -1.88]))
    """
    _check_part("beta1", beta1)
    _check_part("beta2", beta2)
    t = shared(np.zeros((), "int64"), name="steps")
    count = t + 1
    updates: Updates = {t: count}
    for p, g in _pairs(loss, params):
        m, v = _zeros(p, "mean"), _zeros(p, "mean_square")
        mean, square = beta1 * m + (1 - beta1) * g, beta2 * v + (1 - beta2) * g**2
        n = pt.cast(count, p.type.dtype)
        rate = _like(learning_rate, p)
        step = rate * (mean / (1 - beta1**n)) / (pt.sqrt(square / (1 - beta2**n)) + epsilon)
        kept = p * (1 - rate * weight_decay) if weight_decay else p
        updates.update({m: _cast(mean, m), v: _cast(square, v), p: _cast(kept - step, p)})
    return updates


class LbfgsResult(NamedTuple):
    """The outcome of `lbfgs`.

    Attributes:
        loss: its value at the end.
        gradient_norm: largest absolute element of its gradient there.
        iterations: number of steps.
        success: whether it has converged.
        message: SciPy's reason for the end.

    Example:
        >>> graphc.optimizers.LbfgsResult(0.5, 1e-9, 3, True, "converged").iterations
        3
    """

    loss: float
    gradient_norm: float
    iterations: int
    success: bool
    message: str


@checks_keywords
def lbfgs(
    loss: Variable,
    params: Parameters,
    inputs: Mapping[Variable, object] | None = None,
    *,
    max_iterations: int = 1000,
    tolerance: float = 1e-6,
    history: int = 10,
    callback: Callable[[float], object] | None = None,
) -> LbfgsResult:
    """Minimises a loss by L-BFGS and leaves the minimum in the shared variables.

    The loss and its gradient by all parameters, packed into one vector, are one compiled function; SciPy's
    L-BFGS-B calls it.

    Args:
        loss: real 0-d variable of the parameters, other shared variables and ``inputs``.
        params: as in `sgd`.
        inputs: values of the other inputs of the loss.
        max_iterations: the most steps.
        tolerance: largest absolute element of the gradient at which it ends.
        history: number of steps that the Hessian is approximated from.
        callback: is given the loss after each step.

    Returns:
        The loss at the end, and whether it has converged.

    Raises:
        TypeError: a parameter is no shared variable of a floating-point type.
        MissingInputError: the loss needs an input that is not in ``inputs``.
        ImportError: SciPy is not installed.

    Source: Byrd, Lu, Nocedal and Zhu, A limited memory algorithm for bound constrained optimization, 1995.

    Examples:
        >>> w = graphc.shared(np.zeros(2), name="w")
        >>> found = graphc.optimizers.lbfgs(((w - np.array([1.0, 2.0])) ** 2).sum(), w)
        >>> found.success, w.get_value().round(6)
        (True, array([1., 2.]))
    """
    from scipy.optimize import minimize

    variables = _shared_variables(params)
    values = [np.asarray(p.get_value()) for p in variables]
    point = pt.vector("parameters", dtype="float64", shape=(sum(value.size for value in values),))
    replace: dict[Variable, Variable] = {}
    start = 0
    for p, value in zip(variables, values, strict=True):
        part = point[start : start + value.size].reshape(value.shape)
        replace[p], start = pt.cast(part, p.type.dtype), start + value.size
    (cost,) = graph_replace([loss], replace)
    given = dict(inputs or {})
    outputs = [pt.cast(cost, "float64"), grad(cost, point)]
    f = function([point, *given], outputs, name="lbfgs", on_unused_input="ignore")
    others = list(given.values())

    def evaluated(x: np.ndarray) -> tuple[float, np.ndarray]:
        value, slope = f(x, *others)
        return float(value), slope

    found = minimize(
        evaluated,
        np.concatenate([value.ravel().astype("float64") for value in values]),
        jac=True,
        method="L-BFGS-B",
        callback=None
        if callback is None
        else (lambda intermediate_result: callback(intermediate_result.fun)),
        options={"maxiter": max_iterations, "gtol": tolerance, "ftol": 0.0, "maxcor": history},
    )
    start = 0
    for p, value in zip(variables, values, strict=True):
        p.set_value(found.x[start : start + value.size].reshape(value.shape).astype(value.dtype))
        start += value.size
    largest = float(np.abs(found.jac).max(initial=0.0))
    return LbfgsResult(float(found.fun), largest, int(found.nit), bool(found.success), str(found.message))


def _shared_variables(params: Parameters) -> list[SharedVariable]:
    leaves, form = flatten(params)
    for leaf, path in zip(leaves, form.paths("params"), strict=True):
        kind = getattr(getattr(leaf, "type", None), "dtype", "")
        if not isinstance(leaf, SharedVariable) or not kind.startswith("float"):
            what = f"type {leaf.type}" if isinstance(leaf, Variable) else f"type {type(leaf).__name__}"
            raise TypeError(
                f"{path} must be a shared variable of floats, got {leaf!r:.60} of {what}; make it with "
                "graphc.shared(np.zeros(...))"
            )
    return leaves


def _pairs(loss: Slopes, params: Parameters) -> list[tuple[SharedVariable, Variable]]:
    """Each parameter with its gradient."""
    variables = _shared_variables(params)
    if isinstance(loss, Variable) and getattr(loss.type, "ndim", None) == 0:
        slopes: list[Variable] = grad(loss, variables)
        return list(zip(variables, slopes, strict=True))
    found = flatten(params)[1].leaves_of(loss, "the gradients")
    for p, g in zip(variables, found, strict=True):
        if not isinstance(g, Variable):
            raise TypeError(
                "the first argument is a scalar loss, or gradients; got "
                f"{g!r:.60} of type {type(g).__name__} for {p}"
            )
    return [(p, g) for p, g in zip(variables, found, strict=True) if isinstance(g, Variable)]


def _zeros(p: SharedVariable, what: str) -> SharedVariable:
    value = p.get_value(borrow=True)
    return shared(
        np.zeros(np.shape(value), p.type.dtype), name=f"{p.name or 'parameter'}_{what}", shape=p.type.shape
    )


def _like(rate: Rate, p: SharedVariable) -> Variable:
    """A rate in the dtype of a parameter."""
    return pt.cast(rate, p.type.dtype)


def _cast(value: Variable, p: SharedVariable) -> TensorVariable:
    return pt.cast(value, p.type.dtype)


def _check_part(name: str, value: float) -> None:
    if not 0 <= value < 1:
        raise ValueError(f"{name} must be in [0, 1), got {value}")
