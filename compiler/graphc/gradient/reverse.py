# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Reverse mode: `grad` of a scalar cost and `pullback` (vector-Jacobian product).

Each op contributes `Op.pullback`. Between ops a cotangent is a variable, or None for zero; the cotangent of a
float or complex variable has its dtype, that of an integer variable is a float. Cotangents of integer outputs
are not passed on, because a function with integer values is constant almost everywhere; a cast of an integer
to float does pass its cotangent, so the gradient with respect to an integer variable is that of the function
continued to the reals.

`subgraph_grad` differentiates a graph piece by piece.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping, Sequence
from typing import TYPE_CHECKING, Any, Literal, TypeAlias, overload

from graphc.errors import NullTypeGradError, checks_keywords
from graphc.gradient.accumulate import Cotangents
from graphc.gradient.connectivity import Paths, check_choice, input_message, report_disconnected
from graphc.graph.basic import Constant, Variable, reads_of, remember
from graphc.graph.pytree import flatten, is_tree
from graphc.graph.replace import rebuild
from graphc.graph.tensor.convert import as_tensor_variable
from graphc.graph.traversal import graph_inputs
from graphc.graph.undefined import disconnected_type, is_disconnected, is_discrete, is_null, kind_of
from graphc.ops.derivatives import conjugate, gradient_dtype, match_dtype, one_like, total, zeros_like
from graphc.ops.math import cast, tensor_copy

if TYPE_CHECKING:
    from _typeshed import DataclassInstance

    from graphc.graph.tensor.variable import TensorVariable


# A variable, or a container of variables.
Wrt: TypeAlias = "Variable | Sequence[object] | Mapping[str, object] | DataclassInstance"
_FIX = "pass disconnected_inputs='ignore' (or 'warn') to get zeros"
_POLICIES = ("raise", "warn", "ignore")
_RETURNS = ("zero", "none", "disconnected")


def _as_constants(consider_constant: Iterable[Variable] | None) -> Collection[Variable]:
    if consider_constant is None:
        return ()
    if isinstance(consider_constant, Variable) or not isinstance(consider_constant, Iterable):
        raise TypeError(f"consider_constant must be a list of variables, got {consider_constant!r}")
    constants = list(consider_constant)
    for v in constants:
        if not isinstance(v, Variable):
            raise TypeError(f"consider_constant must hold variables, got {v!r} of type {type(v).__name__}")
    return constants


def _check_wrt(wrt: Sequence[Variable], caller: str) -> list[Variable]:
    for i, x in enumerate(wrt):
        if not isinstance(x, Variable):
            raise TypeError(
                f"{caller}: element {i} of wrt must be a variable, got {x!r} of type {type(x).__name__}"
            )
    return list(wrt)


def _gradients(
    seeds: Mapping[Variable, Variable],
    known: Mapping[Variable, Variable],
    wrt: list[Variable],
    consider_constant: Iterable[Variable] | None,
    disconnected_inputs: str,
    return_disconnected: str,
    null_gradients: str = "raise",
    label: str | None = None,
) -> list[Variable | None]:
    """Gradients of the function whose outputs have the cotangents ``seeds``; ``known`` are not computed but
    used.
    """
    check_choice("disconnected_inputs", disconnected_inputs, _POLICIES)
    return_disconnected = check_choice("return_disconnected", return_disconnected, _RETURNS)
    check_choice("null_gradients", null_gradients, ("raise", "return"))
    constants = _as_constants(consider_constant)
    places: dict[Variable, Variable] = {
        x: x.type.make_variable(x.name) for x in wrt if isinstance(x, Constant)
    }
    if places:
        # Ops skip constants: differentiate with respect to a root in the constant's place.
        memo: dict[Variable, Variable] = dict(places)
        rebuild([*seeds, *known], memo, copy_nodes=False, strict=True)
        seeds, known = ({memo.get(v, v): g for v, g in given.items()} for given in (seeds, known))
        moved: Any = [[memo.get(v, v) for v in variables] for variables in (wrt, constants)]
        policies: Any = (disconnected_inputs, return_disconnected, null_gradients, label)
        found = _gradients(seeds, known, *moved, *policies)
        back = {place: x for x, place in places.items()}
        return [g if g is None else rebuild([g], dict(back), copy_nodes=False, strict=True)[0] for g in found]
    inner: Any = [{v: _inward(v, g) for v, g in given.items()} for given in (seeds, known)]
    cotangents = Cotangents(Paths([*seeds, *known], wrt, constants), inner[0], inner[1], label=label)
    cotangents.run()
    result: list[Variable | None] = []
    for x in wrt:
        if x not in cotangents.reached:
            report_disconnected(input_message(x), disconnected_inputs, _FIX)
            result.append(_placeholder(x, return_disconnected))
            continue
        g = cotangents.of(x)
        if is_null(g):
            if null_gradients == "raise":
                raise NullTypeGradError(f"the gradient with respect to {x} is undefined: {g.type.why_null}")
            result.append(g)
            continue
        result.append(as_written(zeros_like(x) if g is None else conjugate(g), *seeds, *known))
    return result


def as_written(g: Variable, *sources: Variable) -> Variable:
    """A derivative that remembers what was differentiated: of ``3 * x`` nothing else is left of x."""
    if isinstance(g, Constant):
        g = g.clone()
    elif g.owner is None:
        # A root of the graph itself must not remember; any other one is what a user's rule has returned.
        if not kind_of(g) or g not in set(graph_inputs(sources)):
            return g
        g = tensor_copy(g)
    return g if reads_of(g) else remember(g, *sources)


def _inward(v: Variable, g: Variable) -> Variable:
    """A given gradient as the drivers use it: without the conjugation of the public convention, in the dtype
    of ``v``.
    """
    return match_dtype(v, conjugate(g)) if kind_of(g) else g


def _placeholder(x: Variable, kind: str) -> Variable | None:
    if kind == "none":
        return None
    return as_written(zeros_like(x), x) if kind == "zero" else disconnected_type()


def _listed(wrt: object) -> list[Variable]:
    """The variables in ``wrt``: one, a list of them, or a tree."""
    if isinstance(wrt, Sequence) and not any(map(is_tree, wrt)):
        return list(wrt)
    return flatten(wrt)[0]


def _like(wrt: Wrt, values: list[Variable | None]) -> Any:
    """``values`` in the container that ``wrt`` came in."""
    if isinstance(wrt, Sequence) and not is_tree(wrt):
        return values
    return flatten(wrt)[1].build(values) if is_tree(wrt) else values[0]


def _given(wrt: Wrt | None) -> Wrt:
    if wrt is None:
        raise TypeError("grad needs the variables to differentiate by, as in grad(cost, x)")
    return wrt


def _check_cost(cost: Variable) -> None:
    if not isinstance(cost, Variable):
        if callable(cost):
            raise TypeError(
                f"grad needs a variable as cost, got the function {getattr(cost, '__name__', cost)}; call it "
                "on variables, as in graphc.jit(lambda w, x: graphc.value_and_grad(loss(w, x), w))"
            )
        raise TypeError(f"grad needs a variable as cost, got {cost!r} of type {type(cost).__name__}")
    if is_null(cost):
        raise ValueError(f"cannot differentiate an undefined cost: {cost.type.why_null}")
    if getattr(cost.type, "ndim", None) != 0:
        raise TypeError(
            f"grad needs a scalar (0-d) cost, got {cost} of type {cost.type}; reduce it, for example with "
            ".sum(), or use jacobian or pullback"
        )
    if kind_of(cost) == "c":
        raise TypeError(
            f"grad needs a real cost, got {cost} of type {cost.type}; take its real part or its abs"
        )


@overload
def grad(
    cost: Variable | None,
    wrt: TensorVariable,
    consider_constant: Iterable[Variable] | None = None,
    disconnected_inputs: str = "raise",
    add_names: bool = True,
    known_grads: Mapping[Variable, Variable] | None = None,
    return_disconnected: Literal["zero"] = "zero",
    null_gradients: str = "raise",
) -> TensorVariable: ...
@overload
def grad(
    cost: Variable | None,
    wrt: list[TensorVariable] | tuple[TensorVariable, ...],
    consider_constant: Iterable[Variable] | None = None,
    disconnected_inputs: str = "raise",
    add_names: bool = True,
    known_grads: Mapping[Variable, Variable] | None = None,
    return_disconnected: Literal["zero"] = "zero",
    null_gradients: str = "raise",
) -> list[TensorVariable]: ...
@overload
def grad(
    cost: Variable | None,
    wrt: Wrt,
    consider_constant: Iterable[Variable] | None = None,
    disconnected_inputs: str = "raise",
    add_names: bool = True,
    known_grads: Mapping[Variable, Variable] | None = None,
    return_disconnected: str = "zero",
    null_gradients: str = "raise",
) -> Any: ...
@checks_keywords
def grad(
    cost: Variable | None,
    wrt: Wrt | None = None,
    consider_constant: Iterable[Variable] | None = None,
    disconnected_inputs: str = "raise",
    add_names: bool = True,
    known_grads: Mapping[Variable, Variable] | None = None,
    return_disconnected: str = "zero",
    null_gradients: str = "raise",
) -> Any:
    """Symbolic gradient of a scalar cost.

    Args:
        cost: real 0-d variable; may be None when ``known_grads`` is given.
        wrt: variable to differentiate with respect to, or a list, tuple, dict or dataclass of variables,
            nested as you like; they may be inner variables of the graph.
        consider_constant: variables that no gradient is passed through.
        disconnected_inputs: ``"raise"``, ``"warn"`` or ``"ignore"`` when the cost does not depend on a
            ``wrt``.
        add_names: name the results ``(dcost/dx)`` where cost and variable have names.
        known_grads: gradients of some variables, used instead of what would be computed for them; nothing
            is passed on below one that is a `disconnected_type`.
        return_disconnected: ``"zero"``, ``"none"`` or ``"disconnected"``: what stands for the gradient of a
            ``wrt`` without influence.
        null_gradients: ``"raise"``, or ``"return"`` to get a variable of `NullType` where a gradient is
            undefined.

    Returns:
        A variable, or variables in the form of ``wrt``. Each has the shape of its ``wrt`` and its dtype, or
        ``floatX`` for integers. Through operations with integer values (``argmax``, comparisons, ``round``,
        ``i * i`` of an integer) gradients are zero, as in PyTensor; ``i * 1.5`` and casts pass theirs on to
        ``i``. For complex ``z = a + ib`` a gradient is ``dL/da + i dL/db``.

    Raises:
        TypeError: the cost is not a real scalar, or a rule returned something wrong.
        DisconnectedInputError: a ``wrt`` has no influence on the cost.
        NullTypeGradError: a gradient is undefined.

    Source: reverse accumulation, semantics of PyTensor's ``grad``.

    Examples:
        >>> x = pt.vector("x")
        >>> graphc.grad((x**2).sum(), x).eval({x: [1.0, 3.0]})
        array([2., 6.])
    """
    if cost is None and known_grads is None:
        raise ValueError("grad needs a cost or known_grads; both are None")
    seeds: dict[Variable, Variable] = {}
    if cost is not None:
        _check_cost(cost)
        seeds[cost] = one_like(cost)
    known = {v: _known_grad(v, g) for v, g in (known_grads or {}).items()}
    unconnected = [v for v, g in known.items() if is_disconnected(g)]
    for v in unconnected:
        seeds.pop(v, None)
        del known[v]
    if unconnected:
        consider_constant = [*_as_constants(consider_constant), *unconnected]
    wrt_list = _check_wrt(_listed(_given(wrt)), "grad")
    label = cost.name if add_names and cost is not None else None
    result = _gradients(
        seeds,
        known,
        wrt_list,
        consider_constant,
        disconnected_inputs,
        return_disconnected,
        null_gradients,
        label,
    )
    return _like(_given(wrt), result)


@checks_keywords
def value_and_grad(
    cost: Variable,
    wrt: Wrt | None = None,
    consider_constant: Iterable[Variable] | None = None,
    disconnected_inputs: str = "raise",
) -> tuple[Variable, Any]:
    """A scalar cost and its gradient, to be computed together.

    As `grad`, it takes variables and gives variables. Inside a function that `graphc.jit` compiles the
    arguments are variables, so that it is written there as JAX's function of this name is written outside.

    Args:
        cost: real 0-d variable.
        wrt: variable, or a list, tuple, dict or dataclass of variables, nested as you like.
        consider_constant, disconnected_inputs: as in `grad`.

    Returns:
        The cost, and for each variable a gradient of its shape, in the form of ``wrt``.

    Raises:
        TypeError: the cost is not a real scalar; of a function the message says how to write it.
        DisconnectedInputError: a ``wrt`` has no influence on the cost.

    Examples:
        >>> x = pt.vector("x")
        >>> f = graphc.function([x], graphc.value_and_grad((x**2).sum(), x))
        >>> f([1.0, 3.0])
        (array(10.), array([2., 6.]))
    """
    _check_cost(cost)
    return cost, grad(cost, _given(wrt), consider_constant, disconnected_inputs)


def _known_grad(v: Variable, g: Variable) -> Variable:
    if not isinstance(g, Variable):
        raise TypeError(f"known_grads[{v}] must be a variable, got {g!r} of type {type(g).__name__}")
    if is_discrete(g):
        raise TypeError(f"known_grads[{v}] must have a floating-point type, got {g.type}; cast it")
    return g


def pullback(
    f: Variable | Sequence[Variable],
    wrt: Variable | Sequence[Variable],
    eval_points: Variable | Sequence[Variable] | None = None,
    consider_constant: Iterable[Variable] | None = None,
    disconnected_inputs: str = "raise",
    return_disconnected: str = "zero",
    *,
    cotangents: Variable | Sequence[Variable] | None = None,
) -> Any:
    """Vector-Jacobian product: the cotangents of ``wrt`` from those of ``f``.

    Args:
        f: variable or list of variables.
        wrt: variable or list of variables.
        eval_points: one cotangent for each ``f``, of its shape; ``cotangents`` is another name for it.
        consider_constant, disconnected_inputs, return_disconnected: as in `grad`.

    Returns:
        ``sum_i eval_points[i] * d f[i] / d wrt[j]`` for each ``wrt``, in the container that ``wrt`` came in.

    Raises:
        ValueError: the numbers of ``f`` and ``eval_points`` differ, or their ranks.
        DisconnectedInputError: a ``wrt`` has no influence on ``f``.

    Examples:
        >>> x = pt.vector("x")
        >>> graphc.pullback(x**2, x, pt.constant([1.0, 1.0])).eval({x: [1.0, 3.0]})
        array([2., 6.])
    """
    points = one_of(eval_points, cotangents, "pullback", "eval_points", "cotangents")
    f_list = list(f) if isinstance(f, Sequence) else [f]
    point_list = list(points) if isinstance(points, list | tuple) else [points]
    if len(f_list) != len(point_list):
        raise ValueError(
            f"pullback needs one cotangent for each f: got {len(f_list)} f and {len(point_list)} cotangents"
        )
    seeds: dict[Variable, Variable] = {}
    for i, (y, g) in enumerate(zip(f_list, point_list, strict=True)):
        if not isinstance(y, Variable):
            raise TypeError(
                f"pullback: element {i} of f must be a variable, got {y!r} of type {type(y).__name__}"
            )
        g = g if isinstance(g, Variable) else as_tensor_variable(g)
        g = cast(g, gradient_dtype(y)) if is_discrete(g) else g
        check_ranks(y, g, f"cotangent {i} of pullback")
        seeds[y] = seeds[y] + g if y in seeds else g
    wrt_list = _check_wrt(wrt if isinstance(wrt, Sequence) else [wrt], "pullback")
    return _like(
        wrt, _gradients(seeds, {}, wrt_list, consider_constant, disconnected_inputs, return_disconnected)
    )


def check_ranks(x: Variable, g: Variable, what: str) -> None:
    """Refuse a derivative whose rank is not that of the variable it belongs to."""
    ndim, g_ndim = getattr(x.type, "ndim", None), getattr(g.type, "ndim", None)
    if ndim is not None and g_ndim is not None and ndim != g_ndim:
        raise ValueError(f"{what} must have {ndim} dimensions as {x} of type {x.type} has, got type {g.type}")


def one_of(a: Any, b: Any, caller: str, name_a: str, name_b: str) -> Any:
    if (a is None) == (b is None):
        raise TypeError(f"{caller} needs {name_a} (or {name_b}, another name for it), and not both")
    return a if a is not None else b


def Lop(
    f: Variable | Sequence[Variable],
    wrt: Variable | Sequence[Variable],
    eval_points: Variable | Sequence[Variable],
    consider_constant: Iterable[Variable] | None = None,
    disconnected_inputs: str = "raise",
    return_disconnected: str = "zero",
) -> Any:
    """Theano's name for `pullback`.

    Examples:
        >>> x = pt.vector("x")
        >>> graphc.Lop(x**2, x, pt.constant([1.0, 1.0])).eval({x: [1.0, 3.0]})
        array([2., 6.])
    """
    return pullback(f, wrt, eval_points, consider_constant, disconnected_inputs, return_disconnected)


def subgraph_grad(
    wrt: Sequence[Variable],
    end: Sequence[Variable],
    start: Mapping[Variable, Variable] | None = None,
    cost: Variable | None = None,
    details: bool = False,
) -> Any:
    """Gradients of a part of a graph, from a cost or known gradients back to the variables ``end``.

    Args:
        wrt: variables whose gradients are wanted now.
        end: variables where this part stops; with their gradients they are the next call's ``start``.
        start: variables and their gradients, as the previous part ended:
            ``dict(zip(end, gradients))``.
        cost: scalar to differentiate in addition.
        details: also return what came from ``start`` and from ``cost`` alone.

    Returns:
        Lists of the gradients with respect to ``wrt`` and to ``end``; with ``details`` followed by those
        with respect to ``wrt`` from ``start`` and from ``cost`` alone (None for the one that is not given).
        Disconnected ones are zero.

    Raises:
        ValueError: neither ``start`` nor ``cost`` is given.
        TypeError: ``wrt`` or ``end`` is no list, or ``start`` no mapping.

    Source: PyTensor's ``subgraph_grad``.

    Examples:
        >>> x, w = pt.scalar("x"), pt.scalar("w")
        >>> h = x * w
        >>> next_grad, last = graphc.gradient.subgraph_grad([w], [h], cost=h**2)
        >>> float(next_grad[0].eval({x: 2.0, w: 3.0}))
        24.0
    """
    if start is None and cost is None:
        raise ValueError("subgraph_grad needs start, cost, or both")
    for name, value in (("wrt", wrt), ("end", end)):
        if not isinstance(value, list | tuple):
            raise TypeError(f"subgraph_grad: {name} must be a list of variables, got {value!r:.80}")
    if start is not None and not isinstance(start, Mapping):
        raise TypeError(f"subgraph_grad: start must map variables to gradients, got {start!r:.80}")
    wrt, end = list(wrt), list(end)
    targets = wrt + end
    options: dict[str, Any] = {"consider_constant": end, "disconnected_inputs": "ignore"}
    from_start = grad(None, targets, known_grads=start, **options) if start is not None else None
    from_cost = grad(cost, targets, **options) if cost is not None else None
    parts = [part for part in (from_start, from_cost) if part is not None]
    sums = [total(terms) for terms in zip(*parts, strict=True)]
    count = len(wrt)
    result = (sums[:count], sums[count:])
    if not details:
        return result
    return (*result, *(None if part is None else part[:count] for part in (from_start, from_cost)))
