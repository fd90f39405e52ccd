# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Minima and roots as variables: ``graphc.tensor.optimize``, by PyTensor's names, found by SciPy.

The solution is differentiable by whatever the objective or the equations depend on (implicit function
theorem; see `graphc.ops.optimize`).
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING, Any

from graphc.graph.basic import Constant, Variable
from graphc.graph.replace import graph_replace
from graphc.graph.tensor.convert import as_tensor_variable
from graphc.graph.traversal import graph_inputs, truncated_graph_inputs
from graphc.ops.math import cast
from graphc.ops.optimize import MinimizeOp, MinimizeScalarOp, RootOp, RootScalarOp
from graphc.public import pt

if TYPE_CHECKING:
    from graphc.graph.tensor.like import TensorLike
    from graphc.graph.tensor.variable import TensorVariable

__all__ = ["minimize", "minimize_scalar", "root", "root_scalar"]

Unknowns = Variable | Sequence[Variable]
Options = Mapping[str, object] | None


def _parameters(value: Variable, x: Variable) -> list[Variable]:
    """What the value depends on besides x, computed as far as it does not depend on x."""
    found = truncated_graph_inputs([value], [x])
    return [v for v in found if v is not x and not all(isinstance(i, Constant) for i in graph_inputs([v]))]


def _solved(
    what: str, value: TensorVariable, unknowns: Unknowns, op: Callable[[Any, Sequence[Variable], Any], Any]
) -> tuple[Any, TensorVariable]:
    """The solution for one or several unknowns; several become one vector."""
    value = as_tensor_variable(value)
    if isinstance(unknowns, Variable):
        args = _parameters(value, unknowns)
        solution, success = op(unknowns, args, value)(unknowns, *args)
        return solution, success
    if not unknowns:
        raise ValueError(f"{what} takes at least one variable to solve for, got {unknowns!r}")
    packed, shapes = pt.pack(*unknowns)
    vector = packed.type.make_variable()
    parts = pt.unpack(vector, shapes)
    replace = {x: cast(part, x.type.dtype) for x, part in zip(unknowns, parts, strict=True)}
    value = graph_replace(value, {x: x.type.filter_variable(part) for x, part in replace.items()})
    args = _parameters(value, vector)
    solution, success = op(vector, args, value)(packed, *args)
    return [
        cast(s, x.type.dtype) for s, x in zip(pt.unpack(solution, shapes), unknowns, strict=True)
    ], success


def minimize(
    objective: Any,
    x: Unknowns,
    method: str = "BFGS",
    jac: bool = True,
    hess: bool = False,
    use_vectorized_jac: bool = False,
    optimizer_kwargs: Options = None,
) -> tuple[TensorVariable | list[TensorVariable], TensorVariable]:
    """A local minimum of an objective (``scipy.optimize.minimize``).

    Args:
        objective: 0-d variable.
        x: float variable that the objective depends on, of any shape, or several of them; their values are
            where the search starts.
        method: SciPy's name of the method.
        jac: give SciPy the gradient.
        hess: give SciPy the Hessian.
        use_vectorized_jac: compute Hessians as one batch instead of by what takes less memory.
        optimizer_kwargs: further arguments of SciPy's function, such as ``tol``, ``bounds`` or ``options``.

    Returns:
        The minimum (a list for several variables), of the shape and dtype of x, and a 0-d bool: whether SciPy
        reports success. Without it the first is the last point of the search.

    Raises:
        ValueError: the objective is no scalar, x no float, or one does not depend on the other.

    Examples:
        >>> x, a = pt.scalar("x"), pt.scalar("a")
        >>> at, success = pt.optimize.minimize((x - a) ** 2, x)
        >>> f = graphc.function([x, a], [at, graphc.grad(at, a)])
        >>> [round(float(v), 6) for v in f(0.0, 3.0)]
        [3.0, 1.0]
    """

    def op(x: TensorLike, args: Sequence[Variable], value: TensorLike) -> MinimizeOp:
        return MinimizeOp(
            x,
            *args,
            objective=value,
            method=method,
            jac=jac,
            hess=hess,
            use_vectorized_jac=use_vectorized_jac,
            optimizer_kwargs=optimizer_kwargs,
        )

    return _solved("minimize", objective, x, op)


def minimize_scalar(
    objective: Any, x: Variable, method: str = "brent", optimizer_kwargs: Options = None
) -> tuple[TensorVariable, TensorVariable]:
    """A local minimum of a function of one number (``scipy.optimize.minimize_scalar``).

    Args:
        objective: 0-d variable.
        x: 0-d float variable. Its value is not used: the search starts from SciPy's bracket, or from
            ``optimizer_kwargs={"bracket": ...}``.
        method: SciPy's name of the method.
        optimizer_kwargs: further arguments of SciPy's function.

    Returns:
        The minimum and a 0-d bool, as in `minimize`.

    Raises:
        ValueError: as `minimize`.

    Examples:
        >>> x, a = pt.scalar("x"), pt.scalar("a")
        >>> at, success = pt.optimize.minimize_scalar((x - a) ** 2, x)
        >>> round(float(graphc.function([x, a], at)(0.0, 3.0)), 6)
        3.0
    """

    def op(x: TensorLike, args: Sequence[Variable], value: TensorLike) -> MinimizeScalarOp:
        return MinimizeScalarOp(x, *args, objective=value, method=method, optimizer_kwargs=optimizer_kwargs)

    return _solved("minimize_scalar", objective, x, op)


def root(
    equations: Any,
    variables: Unknowns,
    method: str = "hybr",
    jac: bool = True,
    use_vectorized_jac: bool = False,
    optimizer_kwargs: Options = None,
) -> tuple[Any, TensorVariable]:
    """Where equations are zero (``scipy.optimize.root``).

    Args:
        equations: variable of the shape of ``variables``; a vector, where there are several.
        variables: float variable that the equations depend on, or several of them; their values are where the
            search starts.
        method: SciPy's name of the method.
        jac: give SciPy the Jacobian.
        use_vectorized_jac: compute it as one batch.
        optimizer_kwargs: further arguments of SciPy's function.

    Returns:
        The root (a list for several variables) and a 0-d bool, as in `minimize`.

    Raises:
        ValueError: another number of dimensions, no float, or equations that do not depend on the variables.

    Examples:
        >>> x, a = pt.vector("x", shape=(1,)), pt.scalar("a")
        >>> at, success = pt.optimize.root(x**2 - a, x)
        >>> graphc.function([x, a], at)([1.0], 4.0).round(6)
        array([2.])
    """

    def op(x: TensorLike, args: Sequence[Variable], value: TensorLike) -> RootOp:
        return RootOp(
            x,
            *args,
            equations=value,
            method=method,
            jac=jac,
            use_vectorized_jac=use_vectorized_jac,
            optimizer_kwargs=optimizer_kwargs,
        )

    return _solved("root", equations, variables, op)


def root_scalar(
    equation: Any,
    variable: Variable,
    method: str = "secant",
    jac: bool = False,
    hess: bool = False,
    optimizer_kwargs: Options = None,
) -> tuple[TensorVariable, TensorVariable]:
    """Where a function of one number is zero (``scipy.optimize.root_scalar``).

    Args:
        equation: 0-d variable.
        variable: 0-d float variable; its value is where the search starts.
        method: SciPy's name of the method.
        jac: give SciPy the first derivative.
        hess: give SciPy the second derivative, too.
        optimizer_kwargs: further arguments of SciPy's function, such as ``bracket``.

    Returns:
        The root and a 0-d bool, as in `minimize`.

    Raises:
        ValueError: as `root`, or second derivatives without first ones.

    Examples:
        >>> x, a = pt.scalar("x"), pt.scalar("a")
        >>> at, success = pt.optimize.root_scalar(x**2 - a, x)
        >>> round(float(graphc.function([x, a], at)(1.0, 4.0)), 6)
        2.0
    """

    def op(x: TensorLike, args: Sequence[Variable], value: TensorLike) -> RootScalarOp:
        return RootScalarOp(
            x, *args, equation=value, method=method, jac=jac, hess=hess, optimizer_kwargs=optimizer_kwargs
        )

    return _solved("root_scalar", equation, variable, op)
