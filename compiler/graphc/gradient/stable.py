# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Expressions whose derivative is taken of an equal expression that neither overflows nor cancels.

The compiler computes ``log(sum(exp(x)))`` without overflow, but the chain rule goes through ``exp(x)`` and
its sum, which may be 0 or infinite. So reverse and forward mode pass such expressions as a whole: from the
logarithm (or quotient) to what is exponentiated, and nothing goes through what lies between. Other readers of
what lies between contribute their own terms.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Set
from dataclasses import field

import numpy as np

from graphc.gradient.control import ZeroGrad
from graphc.graph.basic import Apply, Constant, Variable
from graphc.ops.dimshuffle import DimShuffle
from graphc.ops.elementwise import Elementwise
from graphc.ops.reduce import Reduce
from graphc.ops.shape import Shape_i
from graphc.ops.softmax import LogSoftmax, Softmax
from graphc.public import pt
from graphc_runtime.record import record

# Patterns are small; larger expressions are differentiated as they are.
_MAX_NODES = 24


@record()
class Stable:
    """What stands for a node's output.

    Attributes:
        value: an expression equal to the output; None for the logarithm of ``sums``.
        roots: variables that ``value`` is computed from.
        between: variables that the node reads and ``value`` does not: nothing is passed through them.
        sums: a sum of exponentials, whose only root is what is exponentiated.
    """

    value: Variable | None
    roots: list[Variable]
    between: list[Variable]
    sums: ExpSum | None = None


@record()
class _Search:
    """What was met while taking an expression apart."""

    roots: list[Variable] = field(default_factory=list)
    between: list[Variable] = field(default_factory=list)
    exponentials: int = 0

    def root(self, v: Variable) -> Variable:
        if not isinstance(v, Constant) and v not in self.roots:
            self.roots.append(v)
        return v


def stable_form(node: Apply, kept: Set[Variable]) -> Stable | None:
    """A stable expression for the output of ``node``, if it is known to be one of the unstable ones.

    Args:
        node: an application.
        kept: variables that derivatives have to be passed through, or end at.
    """
    name = _name(node)
    rule = _RULES.get(name) if name else None
    if rule is None or node.outputs[0].type.numpy_dtype.kind != "f":
        return None
    found = sum_of_exp(node.inputs[0]) if name == "log" else None
    if found is not None:
        free = not found.shifted and kept.isdisjoint(found.between)
        return Stable(None, [found.x], found.between, found) if free else None
    search = _Search()
    value = rule(search, node)
    if value is None or not search.roots or not kept.isdisjoint(search.between):
        return None
    return Stable(value, search.roots, search.between) if value.type == node.outputs[0].type else None


def sum_pullback(sums: ExpSum, g: Variable) -> Variable:
    """The cotangent of x from that of the logarithm of a sum of exponentials: its softmax."""
    for view in sums.views:
        (moved,) = view.op.pullback(view.inputs, view.outputs, [g])
        assert moved is not None
        g = moved
    ndim = sums.x.type.ndim
    kept = iter(range(ndim))
    spread = pt.dimshuffle(g, tuple("x" if axis in sums.axes else next(kept) for axis in range(ndim)))
    return spread * Softmax(sums.axes, guarded=True)(sums.x)


def sum_pushforward(sums: ExpSum, t: Variable) -> Variable:
    """The tangent of the logarithm of a sum of exponentials from that of x."""
    result: Variable = Reduce("sum", sums.axes)(Softmax(sums.axes, guarded=True)(sums.x) * t)
    for view in reversed(sums.views):
        result = view.op(result)
    return result


# -- taking expressions apart ------------------------------------------------------------------------------


def _name(node: Apply | None) -> str | None:
    return node.op.name if node is not None and isinstance(node.op, Elementwise) else None


def _operands(v: Variable, name: str) -> list[Variable] | None:
    """What an elementwise function was applied to, if that made ``v``."""
    return v.owner.inputs if v.owner is not None and _name(v.owner) == name else None


def _through_views(v: Variable) -> tuple[Variable, list[Apply]]:
    """What ``v`` is a rearrangement of, and how, innermost last."""
    views = []
    while v.owner is not None and isinstance(v.owner.op, DimShuffle):
        views.append(v.owner)
        v = v.owner.inputs[0]
    return v, views


def _is_one(v: Variable) -> bool:
    """Whether ``v`` is the number 1: an array of ones that broadcasts is a factor of the result's size."""
    return isinstance(v, Constant) and v.data.size == 1 and bool(v.data == 1)


def _is_positive(v: Variable) -> bool:
    return (
        isinstance(v, Constant) and v.data.size > 0 and bool(np.all(v.data >= 0) and np.all(v.data < np.inf))
    )


def _is_size(v: Variable) -> bool:
    """Whether ``v`` is a size of an array, or a product of sizes, as a mean divides by."""
    if v.owner is None:
        return False
    if isinstance(v.owner.op, Shape_i):
        return True
    moved = isinstance(v.owner.op, DimShuffle) or _name(v.owner) in ("cast", "mul")
    return moved and all(_is_size(x) for x in v.owner.inputs)


def _is_shifted(x: Variable) -> bool:
    """Whether a maximum has been subtracted from ``x``: its exponentials do not overflow."""
    parts = _operands(x, "sub")
    if parts is None:
        return False
    m = parts[1]
    while m.owner is not None:
        if isinstance(m.owner.op, Reduce):
            return m.owner.op.kind == "max"
        guard = _name(m.owner) == "switch"
        if not (guard or isinstance(m.owner.op, DimShuffle | ZeroGrad)):
            return False
        # Of a guarded maximum one side is a constant.
        m = next((v for v in m.owner.inputs[guard:] if not isinstance(v, Constant)), m.owner.inputs[0])
    return False


# -- logarithms of positive expressions --------------------------------------------------------------------


def _log_of(search: _Search, v: Variable) -> Variable | None:
    """The logarithm of an expression of exponentials, without these; None where it is anything else."""
    if len(search.between) > _MAX_NODES:
        return None
    if isinstance(v, Constant):
        return _log_constant(v) if _is_positive(v) else None
    if v.owner is None:
        return None
    if _is_size(v):
        return pt.log(v)
    search.between.append(v)
    op, inputs = v.owner.op, v.owner.inputs
    if isinstance(op, Elementwise):
        rule = _LOGS.get(op.name)
        return None if rule is None else rule(search, *inputs)
    if isinstance(op, DimShuffle):
        x = _log_of(search, inputs[0])
        return None if x is None else op(x)
    if isinstance(op, Reduce) and op.kind == "sum":
        x = _log_of(search, inputs[0])
        return None if x is None else pt.log(op(pt.exp(x)))
    if isinstance(op, Softmax):
        search.exponentials += 1
        return LogSoftmax(op.axes)(search.root(inputs[0]))
    return None


def _log_constant(v: Constant) -> Variable:
    with np.errstate(divide="ignore"):
        return pt.constant(np.log(v.data), dtype=v.type.dtype)


def _log_exp(search: _Search, x: Variable) -> Variable:
    search.exponentials += 1
    return search.root(x)


def _log_sigmoid(search: _Search, x: Variable) -> Variable:
    search.exponentials += 1
    return -pt.softplus(-search.root(x))


def _log_expm1(search: _Search, x: Variable) -> Variable:
    search.exponentials += 1
    return x + pt.log1mexp(-search.root(x))


def _log_erfc(x: Variable) -> Variable:
    return pt.log_ndtr(-math.sqrt(2) * x) + math.log(2)


def _both(
    search: _Search, a: Variable, b: Variable, combine: Callable[[Variable, Variable], Variable]
) -> Variable | None:
    x = _log_of(search, a)
    if x is None:
        return None
    y = _log_of(search, b)
    return None if y is None else combine(x, y)


def _log_sum(search: _Search, a: Variable, b: Variable) -> Variable | None:
    for one, other in ((a, b), (b, a)):
        if _is_one(one):
            return _log_one_plus(search, other)
    return _both(search, a, b, pt.logaddexp)


def _log_one_plus(search: _Search, v: Variable) -> Variable | None:
    inside = _operands(v, "erf")
    if inside is not None:
        search.between.append(v)
        return _log_erfc(-_log_exp(search, inside[0]))
    x = _log_of(search, v)
    return None if x is None else pt.softplus(x)


def _log_difference(search: _Search, a: Variable, b: Variable) -> Variable | None:
    """Of 1 - exp(x), 1 - sigmoid(x), 1 - erf(x), exp(x) - 1."""
    if _is_one(a):
        return _log_one_minus(search, b)
    x = _operands(a, "exp")
    if x is None or not _is_one(b):
        return None
    search.between.append(a)
    return _log_expm1(search, x[0])


def _log_one_minus(search: _Search, b: Variable) -> Variable | None:
    for name, log in (("exp", pt.log1mexp), ("sigmoid", lambda x: -pt.softplus(x)), ("erf", _log_erfc)):
        x = _operands(b, name)
        if x is not None:
            search.between.append(b)
            search.exponentials += 1
            return log(search.root(x[0]))
    return None


def _log_negative(search: _Search, a: Variable) -> Variable | None:
    """Of -expm1(x)."""
    x = _operands(a, "expm1")
    if x is None:
        return None
    search.between.append(a)
    search.exponentials += 1
    return pt.log1mexp(search.root(x[0]))


_LOGS: dict[str, Callable[..., Variable | None]] = {
    "exp": _log_exp,
    "sigmoid": _log_sigmoid,
    "expm1": _log_expm1,
    "add": _log_sum,
    "sub": _log_difference,
    "neg": _log_negative,
    "erfc": lambda search, x: _log_erfc(_log_exp(search, x)),
    "mul": lambda search, a, b: _both(search, a, b, lambda x, y: x + y),
    "true_div": lambda search, a, b: _both(search, a, b, lambda x, y: x - y),
}


# -- rules by operation ------------------------------------------------------------------------------------


def _log(search: _Search, node: Apply) -> Variable | None:
    value = _log_of(search, node.inputs[0])
    return value if search.exponentials else None


def _log1p(search: _Search, node: Apply) -> Variable | None:
    (v,) = node.inputs
    negated = _operands(v, "neg")
    if negated is not None:
        search.between.append(v)
        return _log_one_minus(search, negated[0])
    value = _log_one_plus(search, v)
    return value if search.exponentials else None


def _quotient(search: _Search, node: Apply) -> Variable | None:
    """exp(x) / sum(exp(x)), exp(x) / (1 + exp(x)), 1 / (1 + exp(x))."""
    a, b = node.inputs
    found = sum_of_exp(b)
    x = _operands(a, "exp")
    if found is not None and x is not None and found.x is x[0] and found.keeps_axes and not found.shifted:
        search.between += [a, *found.between]
        return Softmax(found.axes, guarded=True)(search.root(found.x))
    below = _operands(b, "add")
    if below is None:
        return None
    one, other = below if _is_one(below[0]) else reversed(below)
    y = _operands(other, "exp")
    if y is None or not _is_one(one):
        return None
    search.between += [b, other]
    if _is_one(a):
        return pt.sigmoid(-search.root(y[0]))
    if x is None or x[0] is not y[0]:
        return None
    search.between.append(a)
    return pt.sigmoid(search.root(y[0]))


def _product(search: _Search, node: Apply) -> Variable | None:
    """exp(x) * (w / sum(exp(x)))."""
    for a, b in (node.inputs, node.inputs[::-1]):
        x, quotient = _operands(a, "exp"), _operands(b, "true_div")
        if quotient is None or x is None:
            continue
        found = sum_of_exp(quotient[1])
        if found is not None and found.x is x[0] and found.keeps_axes and not found.shifted:
            search.between += [a, b, *found.between]
            return search.root(quotient[0]) * Softmax(found.axes, guarded=True)(search.root(found.x))
    return None


_RULES: dict[str, Callable[[_Search, Apply], Variable | None]] = {
    "log": _log,
    "log1p": _log1p,
    "true_div": _quotient,
    "mul": _product,
}


# -- the sum of exponentials -------------------------------------------------------------------------------


@record()
class ExpSum:
    """``sum(exp(x), axes)``, possibly with rearranged axes.

    Attributes:
        x, axes: what is exponentiated and summed.
        views: the rearrangements, innermost last.
        between: the variables from the sum to the exponential.
        shifted: a maximum has been subtracted from x.
        keeps_axes: the only rearrangement puts the axes back, of size 1.
    """

    x: Variable
    axes: tuple[int, ...]
    views: list[Apply]
    between: list[Variable]
    shifted: bool
    keeps_axes: bool


def sum_of_exp(v: Variable) -> ExpSum | None:
    """The parts of a sum of exponentials."""
    total, views = _through_views(v)
    if total.owner is None or not isinstance(total.owner.op, Reduce) or total.owner.op.kind != "sum":
        return None
    e = total.owner.inputs[0]
    x = _operands(e, "exp")
    if x is None:
        return None
    axes, ndim = total.owner.op.axes, x[0].type.ndim
    kept = iter(range(ndim))
    order = tuple("x" if axis in axes else next(kept) for axis in range(ndim))
    put_back = [getattr(view.op, "new_order", None) for view in views] == ([order] if axes else [])
    between = [*(view.outputs[0] for view in views), total, e]
    return ExpSum(x[0], axes, views, between, _is_shifted(x[0]), put_back)
