# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Expressions whose derivative is taken of an equal expression that neither overflows nor cancels.

The compiler computes ``log(sum(exp(x)))`` without overflow, but the chain rule goes through ``exp(x)`` and
its sum, which may be 0 or infinite. So reverse and forward mode pass such expressions as a whole: from the
logarithm (or quotient) to what is exponentiated, and nothing goes through what lies between. Other readers of
what lies between contribute their own terms.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Sequence, Set

import numpy as np

from graphc.gradient.control import ZeroGrad
from graphc.graph.basic import Apply, Constant, Variable
from graphc.graph.tensor.convert import constant
from graphc.graph.type import Type
from graphc.ops.dimshuffle import DimShuffle
from graphc.ops.elementwise import OPS, Elementwise, pulled
from graphc.ops.math import exp, log, log_ndtr, neg
from graphc.ops.matrices import Matmul
from graphc.ops.reduce import LogSoftmax, Reduce, Softmax, with_axes
from graphc.ops.stable import WHOLE
from graphc.ops.stable import Stable as Rules
from graphc_runtime.record import record


@record()
class Stable:
    """The stable form of a node's output.

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


def stable_form(node: Apply, kept: Set[Variable]) -> Stable | None:
    """A stable expression for the output of ``node``, if it is known to be one of the unstable ones.

    Args:
        node: an application.
        kept: variables that derivatives have to be passed through, or end at.
    """
    product = isinstance(node.op, Reduce) and node.op.kind == "prod"
    name = "prod" if product else _name(node)
    rule = _RULES.get(name) if name else None
    if rule is None or node.outputs[0].type.kind != "f":
        return None
    found = sum_of_exp(node.inputs[0]) if name == "log" else None
    if found is not None:
        free = not found.shifted and kept.isdisjoint(found.between)
        return Stable(None, [found.x], found.between, found) if free else None
    graph = _Graph()
    form = rule(graph, node)
    if form is None or not form.roots or not kept.isdisjoint(form.between):
        return None
    if not graph.made.isdisjoint(form.roots):
        return None
    return form if form.value is not None and _agree(form.value.type, node.outputs[0].type) else None


def _agree(one: Type, other: Type) -> bool:
    """True if two types differ at most in what they say of sizes that do not broadcast."""
    units = ([size == 1 for size in type_.shape] for type_ in (one, other))
    return bool(one.dtype == other.dtype) and next(units) == next(units)


def sum_pullback(sums: ExpSum, g: Variable) -> Variable:
    """The cotangent of x from that of the logarithm of a sum of exponentials: its softmax."""
    for view in sums.views:
        (moved,) = view.op.pullback(view.inputs, view.outputs, [g])
        assert moved is not None
        g = moved
    share = Softmax(sums.axes, guarded=True)(sums.x)
    term = pulled(with_axes(g, sums.axes, sums.x.type.ndim), lambda g: g * share)
    assert term is not None
    return term


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
    """Operands of the elementwise function that made ``v``, if one did."""
    return v.owner.inputs if v.owner is not None and _name(v.owner) == name else None


class _Graph:
    """The algebra of variables; see `graphc.ops.stable`.

    Attributes:
        made: variables that the rules have made. None is a root: derivatives go on from variables of the
            graph, and nobody passes on what a new one gets.
    """

    def __init__(self) -> None:
        self.made: set[Variable] = set()

    def _new(self, v: Variable) -> Variable:
        self.made.add(v)
        return v

    def made_by(self, v: Variable) -> tuple[str, Sequence[Variable]]:
        node = v.owner
        if node is None or v.type.dtype not in _FLOATS:
            return "", ()
        op = node.op
        if isinstance(op, Elementwise):
            if op.name == "cast" and node.inputs[0].type.dtype not in _FLOATS:
                return "", ()
            return op.name, node.inputs
        if isinstance(op, Reduce):
            return op.kind, node.inputs
        if isinstance(op, Softmax):
            return "softmax", node.inputs
        if isinstance(op, (ZeroGrad, Matmul)):
            return "fixed" if isinstance(op, ZeroGrad) else "dot", node.inputs
        return ("select", node.inputs[: op.selects]) if op.selects else ("", ())

    def array(self, v: Variable) -> np.ndarray | None:
        return v.data if isinstance(v, Constant) and v.type.dtype in _FLOATS else None

    def number(self, v: Variable) -> float | None:
        while v.owner is not None and (v.owner.op.selects == 1 or _name(v.owner) == "second"):
            v = v.owner.inputs[_name(v.owner) == "second"]
        if not isinstance(v, Constant) or v.data.size == 0 or v.data.dtype.kind not in "iuf":
            return None
        first = v.data.flat[0]
        return float(first) if np.all(v.data == first) else None

    def shape(self, v: Variable) -> Sequence[int]:
        return [-1 if size is None else size for size in v.type.shape]

    def apply(self, name: str, *operands: Variable) -> Variable:
        return self._new(OPS[name](*operands))

    def scalar(self, number: float, like: Variable) -> Variable:
        return constant(np.full([1] * like.type.ndim, number, like.type.dtype))

    def negative(self, x: Variable) -> Variable:
        return self._new(neg(x))

    def literal(self, array: np.ndarray, like: Variable) -> Variable:
        return constant(array, dtype=like.type.dtype)

    def again(self, v: Variable, operands: Sequence[Variable]) -> Variable:
        assert v.owner is not None
        return self._new(v.owner.op(*operands, *v.owner.inputs[len(operands) :]))

    def axes(self, v: Variable) -> Sequence[int]:
        return _reduction(v).axes

    def are_apart(self, v: Variable, w: Variable) -> bool:
        return False  # derivatives ask about one node at a time, and this takes a walk

    def reduced(self, v: Variable, kind: str, x: Variable) -> Variable:
        return self._new(Reduce(kind, _reduction(v).axes, allow_empty=kind == "max")(x))

    def largest(self, x: Variable, axis: int) -> Variable:
        axes = (x.type.ndim + axis,)
        return self._new(with_axes(Reduce("max", axes, allow_empty=True)(x), axes, x.type.ndim))

    def spread(self, v: Variable, total: Variable) -> Variable:
        ndim = v.owner.inputs[0].type.ndim if v.owner is not None else 0
        return self._new(with_axes(total, _reduction(v).axes, ndim))

    def log_sum_exp(self, v: Variable, x: Variable) -> Variable:
        return self._new(log(_reduction(v)(exp(x))))

    def log_softmax(self, v: Variable) -> Variable:
        assert v.owner is not None and isinstance(v.owner.op, Softmax)
        return self._new(LogSoftmax(v.owner.op.axes)(v.owner.inputs[0]))

    def log_erfc(self, x: Variable) -> Variable:
        return self._new(log_ndtr(-math.sqrt(2) * x) + math.log(2))

    def fixed(self, v: Variable) -> Variable:
        return ZeroGrad()(v)

    def placed_after(self, v: Variable) -> None: ...

    def placed(self, before: object) -> None: ...

    def largest_exponent(self, v: Variable) -> float:
        return float(np.log(np.finfo(v.type.dtype).max)) - 1


def _reduction(v: Variable) -> Reduce:
    assert v.owner is not None and isinstance(v.owner.op, Reduce)
    return v.owner.op


_FLOATS = frozenset(("float16", "float32", "float64"))


# -- rules by operation ------------------------------------------------------------------------------------


def _logarithm(graph: _Graph, node: Apply) -> Stable | None:
    found = Rules(graph).logarithm(_name(node) or "", node.inputs[0])
    return found and _stable(*found[:3])


def _inverse(graph: _Graph, node: Apply) -> Stable | None:
    found = Rules(graph, derived=True).inverse(node.outputs[0])
    return found and _stable(*found[:3])


def _power(graph: _Graph, node: Apply) -> Stable | None:
    rules = Rules(graph, derived=True)
    form = rules.power(node.outputs[0])
    if form is None:
        length = rules.root(node.outputs[0])
        return length and _stable(*length[:3])
    return _stable(exp(form.log), form.roots, [v for v in form.between if v is not node.outputs[0]])


def _multiplied(graph: _Graph, node: Apply) -> Stable | None:
    for a, b in zip(node.inputs, node.inputs[::-1], strict=True):
        # exp(x) / sum(exp(x)), or exp(x) times w / sum(exp(x)).
        over = node.inputs if _name(node) == "true_div" else _operands(b, "true_div") or [a, a]
        found, x = sum_of_exp(over[1]), _operands(a, "exp")
        if x and found and found.x is x[0] and found.keeps_axes and not found.shifted:
            share = Softmax(found.axes, guarded=True)(found.x)
            value = share if over is node.inputs else over[0] * share
            roots = [found.x] if over is node.inputs else [over[0], found.x]
            return _stable(value, roots, [a, b, *found.between])
    made = Rules(graph, derived=True).product(node.outputs[0])
    return None if made is None else _stable(made.value, made.roots, made.between, node.outputs[0])


def _stable(
    value: Variable, roots: Iterable[Variable], between: Iterable[Variable], itself: Variable | None = None
) -> Stable:
    distinct = dict.fromkeys(v for v in roots if not isinstance(v, Constant) and v.type.dtype in _FLOATS)
    return Stable(value, list(distinct), [v for v in dict.fromkeys(between) if v is not itself])


_RULES: dict[str, Callable[[_Graph, Apply], Stable | None]] = {
    **dict.fromkeys(("log", "log1p", "log2", "log10", "log1mexp"), _logarithm),
    **dict.fromkeys(WHOLE, _inverse),
    **dict.fromkeys(("pow", "sqr", "sqrt", "prod"), _power),
    **dict.fromkeys(("mul", "true_div", "reciprocal"), _multiplied),
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
    total, views = v, []
    while total.owner is not None and isinstance(total.owner.op, DimShuffle):
        views.append(total.owner)
        total = total.owner.inputs[0]
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
    return ExpSum(x[0], axes, views, between, Rules(_Graph()).is_shifted(x[0]), put_back)
