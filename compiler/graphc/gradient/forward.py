# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Forward mode: `pushforward` (Jacobian-vector product).

Each op contributes `Op.pushforward`, which by default is derived from its `pullback`. Between ops a tangent
is a variable or None for zero; integer variables have no tangents.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from graphc.errors import NullTypeGradError
from graphc.gradient.accumulate import Cotangents
from graphc.gradient.connectivity import Paths, as_given, check_choice, report_disconnected
from graphc.gradient.reverse import as_written, check_ranks, one_of
from graphc.gradient.stable import stable_form, sum_pushforward
from graphc.gradient.transposed import call_pushforward, transpose_pullback
from graphc.graph.basic import Apply, Variable, describe
from graphc.graph.tensor.convert import as_tensor_variable
from graphc.graph.undefined import disconnected_type, is_disconnected, is_discrete, is_null
from graphc.ops.derivatives import match_dtype, zeros_like

_FIX = "pass disconnected_outputs='ignore' (or 'warn') to get zeros"


def tangents_of(
    f: Sequence[Variable], wrt: Sequence[Variable], points: Sequence[Variable]
) -> tuple[dict[Variable, Variable | None], set[Variable]]:
    """Tangents of ``f``, of other variables below it, and the set of those that depend on ``wrt``."""
    tangents: dict[Variable, Variable | None] = {}
    for x, point in zip(wrt, points, strict=True):
        point = match_dtype(x, point)
        seen = tangents.get(x)
        tangents[x] = point if seen is None else seen + point
    given = set(tangents)
    paths = Paths(f, wrt, blockers=given)
    if any(node.op.together and not paths.depends.isdisjoint(node.outputs) for node in paths.nodes):
        return _pulled_twice(f, wrt, points)
    for node in paths.nodes:
        if not any(y in paths.depends for y in node.outputs):
            continue
        inputs = [tangents.get(x) for x in node.inputs]
        if all(t is None for t in inputs):
            continue
        found = _stable_tangent(node, paths, tangents) or call_pushforward(node, inputs)
        for y, t in zip(node.outputs, found, strict=True):
            if y in given or y not in paths.depends or t is None or is_discrete(y) or is_disconnected(t):
                continue
            if is_null(t):
                raise NullTypeGradError(f"the tangent of {y} is undefined: {t.type.why_null}")
            tangents[y] = match_dtype(y, t)
    return tangents, paths.depends


def _stable_tangent(
    node: Apply, paths: Paths, tangents: dict[Variable, Variable | None]
) -> list[Variable | None] | None:
    """The tangent of an unstable expression that ends with ``node``; None if it is no such."""
    form = stable_form(node, paths.ends)
    if form is None:
        return None
    active = [(root, t) for root in form.roots if (t := tangents.get(root)) is not None]
    if not active:
        return None
    if form.sums is not None:
        return [sum_pushforward(form.sums, active[0][1])]
    assert form.value is not None
    found, _ = tangents_of([form.value], *(list(side) for side in zip(*active, strict=True)))
    return [found.get(form.value)]


def pushforward(
    f: Variable | Sequence[Variable],
    wrt: Variable | Sequence[Variable],
    eval_points: Variable | Sequence[Variable] | None = None,
    disconnected_outputs: str = "raise",
    return_disconnected: str = "zero",
    use_op_pushforward: bool = True,
    *,
    tangents: Variable | Sequence[Variable] | None = None,
) -> Any:
    """Jacobian-vector product: the tangents of ``f`` from those of ``wrt``.

    Args:
        f: variable or list of variables.
        wrt: variable or list of variables.
        eval_points: one tangent for each ``wrt``, of its shape; ``tangents`` is another name for it.
        disconnected_outputs: ``"raise"``, ``"warn"`` or ``"ignore"`` when an ``f`` depends on no ``wrt``.
        return_disconnected: ``"zero"``, ``"none"`` or ``"disconnected"``: what stands for such a tangent.
        use_op_pushforward: go through the graph once with `Op.pushforward`; False pulls back twice through
            the whole graph instead, which uses no rule but `Op.pullback`.

    Returns:
        ``sum_j d f[i] / d wrt[j] * eval_points[j]`` for each ``f``, in the container that ``f`` came in.

    Raises:
        ValueError: the numbers of ``wrt`` and ``eval_points`` differ, or their ranks.
        DisconnectedInputError: an ``f`` depends on no ``wrt``.
        NullTypeGradError: a derivative is undefined.

    Source: forward accumulation, semantics of PyTensor's ``pushforward``; deriving it from pullbacks is from
    J. Townsend, "A new trick for calculating Jacobian vector products", 2017.

    Examples:
        >>> x = pt.vector("x")
        >>> graphc.pushforward(x**2, x, pt.constant([1.0, 0.0])).eval({x: [1.0, 3.0]})
        array([2., 0.])
    """
    check_choice("disconnected_outputs", disconnected_outputs, ("raise", "warn", "ignore"))
    kind = check_choice("return_disconnected", return_disconnected, ("zero", "none", "disconnected"))
    points = one_of(eval_points, tangents, "pushforward", "eval_points", "tangents")
    wrt_list = list(wrt) if isinstance(wrt, Sequence) else [wrt]
    point_list = list(points) if isinstance(points, list | tuple) else [points]
    if len(wrt_list) != len(point_list):
        raise ValueError(
            "pushforward needs one tangent for each wrt: "
            f"got {len(wrt_list)} wrt and {len(point_list)} tangents"
        )
    point_list = [t if isinstance(t, Variable) else as_tensor_variable(t) for t in point_list]
    for i, (x, t) in enumerate(zip(wrt_list, point_list, strict=True)):
        check_ranks(x, t, f"tangent {i} of pushforward")
    f_list = list(f) if isinstance(f, Sequence) else [f]
    if use_op_pushforward:
        found, depends = tangents_of(f_list, wrt_list, point_list)
    else:
        found, depends = _pulled_twice(f_list, wrt_list, point_list)
    result: list[Variable | None] = []
    for y in f_list:
        if y in depends and not is_discrete(y):
            t = found.get(y)
            result.append(as_written(zeros_like(y) if t is None else t, y))
            continue
        report_disconnected(
            f"pushforward was asked for the tangent of {y} of type {y.type}{describe(y.location)}, "
            "which depends on none of the variables in wrt, or only through integers",
            disconnected_outputs,
            _FIX,
        )
        result.append(
            {"zero": zeros_like, "none": lambda _: None, "disconnected": lambda _: disconnected_type()}[kind](
                y
            )
        )
    return as_given(result, f)


def _pulled_twice(
    f: Sequence[Variable], wrt: Sequence[Variable], points: Sequence[Variable]
) -> tuple[dict[Variable, Variable | None], set[Variable]]:
    """As `tangents_of`, from two pullbacks through the whole graph."""
    paths = Paths(f, wrt)
    places = {
        y: y.type.make_variable() for y in dict.fromkeys(f) if y in paths.depends and not is_discrete(y)
    }
    cotangents = Cotangents(paths, places)
    cotangents.run()
    pulled = [cotangents.of(x) if x in cotangents.reached else None for x in wrt]
    for x, term in zip(wrt, pulled, strict=True):
        if is_null(term):
            raise NullTypeGradError(f"the derivative with respect to {x} is undefined: {term.type.why_null}")
    found = transpose_pullback(list(places.values()), pulled, points, list(places))
    return dict(zip(places, found, strict=True)), paths.depends


def Rop(
    f: Variable | Sequence[Variable],
    wrt: Variable | Sequence[Variable],
    eval_points: Variable | Sequence[Variable],
    disconnected_outputs: str = "raise",
    return_disconnected: str = "zero",
    use_op_rop_implementation: bool = True,
) -> Any:
    """Theano's name for `pushforward`.

    Examples:
        >>> x = pt.vector("x")
        >>> graphc.Rop(x**2, x, pt.constant([1.0, 0.0])).eval({x: [1.0, 3.0]})
        array([2., 0.])
    """
    return pushforward(
        f, wrt, eval_points, disconnected_outputs, return_disconnected, use_op_rop_implementation
    )
