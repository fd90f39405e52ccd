# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Minima and roots as variables: ``graphc.tensor.optimize``, by PyTensor's names, found by SciPy.

An op holds the graph of an objective or of equations F(x, theta) and calls SciPy with it compiled. Where
``F(x*(theta), theta) = 0`` (F is the gradient of an objective), the solution has the derivative
``dx* = -(dF/dx)^-1 dF/dtheta dtheta``, so a cotangent g of x* becomes the cotangent of F
``-(dF/dx)^-T g``: one linear system, and no Jacobian by parameters.

Source: PyTensor's ``pytensor.tensor.optimize``.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING, Any, ClassVar

import numpy as np

from graphc import hooks
from graphc.gradient import grad, io_connection_pattern, jacobian
from graphc.graph.basic import Apply, Constant, Maybe, Variable, Variables
from graphc.graph.op import Op
from graphc.graph.replace import clone_replace, clone_with_inputs, graph_replace
from graphc.graph.tensor.convert import as_tensor_variable
from graphc.graph.tensor.type import TensorType
from graphc.graph.traversal import ancestors, graph_inputs, truncated_graph_inputs
from graphc.graph.undefined import DisconnectedType
from graphc.ops.create import zeros_like
from graphc.ops.math import cast, neg
from graphc.ops.shape import sizes_of
from graphc.tensor.dims import pack, unpack
from graphc.tensor.linalg.solving import solve

if TYPE_CHECKING:
    from graphc.graph.tensor import TensorLike
    from graphc.graph.tensor.variable import TensorVariable
    from graphc_runtime.thunk import Register

__all__ = ["minimize", "minimize_scalar", "root", "root_scalar"]


class _Evaluation:
    """Values of the inner graph by name at the last point asked for, as SciPy wants them.

    SciPy asks for value and derivatives one after the other; the compiled function gives all at once.
    """

    def __init__(
        self,
        function: Callable[..., Sequence[np.ndarray]],
        names: Sequence[str],
        x0: np.ndarray,
        args: Sequence[np.ndarray],
    ):
        self._function, self._names, self._args = function, names, args
        self._shape, self._dtype = x0.shape, x0.dtype
        self._point: np.ndarray | None = None
        self._values: dict[str, np.ndarray] = {}

    def at(self, x: np.ndarray) -> dict[str, np.ndarray]:
        # SciPy's arrays are float64, and some solvers change theirs between calls.
        point = np.array(x, self._dtype).reshape(self._shape)
        if self._point is None or not np.array_equal(point, self._point):
            self._values = dict(zip(self._names, self._function(point, *self._args), strict=True))
            self._point = point
        return self._values

    def number(self, name: str) -> Callable[[np.ndarray], float]:
        return lambda x: float(self.at(x)[name])

    def vector(self, name: str) -> Callable[[np.ndarray], np.ndarray]:
        return lambda x: np.ravel(self.at(x)[name])

    def square(self, name: str) -> Callable[[np.ndarray], np.ndarray]:
        def matrix(x: np.ndarray) -> np.ndarray:
            n = np.size(x)
            return np.reshape(self.at(x)[name], (n, n))

        return matrix


def _jacobian(value: TensorVariable, x: Variable, vectorized: bool | None) -> Variable:
    """Derivatives of an array by one of the same rank, those of 0-d ones 0-d, else with the value flat."""
    return grad(value, x) if x.type.ndim == 0 else jacobian(value.ravel(), x, vectorize=vectorized)


class Solver(Op):
    """Base of the ops: inputs are the start x and the parameters, outputs the solution and a 0-d bool.

    Args:
        x: float variable of the inner graph that is solved for; an input of the node gives the start.
        args: the other variables that the inner graph reads.
        value: objective (0-d), or equations (of the shape of x).
        method: name of SciPy's method.
        optimizer_kwargs: further arguments of SciPy's function.
        jac, hess: SciPy is given first, or second, derivatives.
        use_vectorized_jac: Jacobians are computed in one pass over a batch.

    Raises:
        ValueError: x or the value have another dtype or rank than the op takes, or the value does not depend
            on x.
    """

    takes_as_stored = False

    # An op is what it solves: its own copy of a graph.
    __props__ = ("inner",)
    absent: ClassVar[dict[str, str]] = {
        "batch": "SciPy searches for one solution at a time",
        "emit": "SciPy searches; the objective is compiled",
        "pushforward": "the pullback, which solves one system, is transposed",
    }
    ranks: ClassVar[tuple[int, ...] | None] = None
    minimizes: ClassVar[bool]

    def __init__(
        self,
        x: Variable,
        args: Sequence[Variable],
        value: Any,
        method: str,
        optimizer_kwargs: Mapping[str, object] | None = None,
        jac: bool = False,
        hess: bool = False,
        use_vectorized_jac: bool = False,
    ) -> None:
        self._check(x, value)
        self.vectorized = True if use_vectorized_jac else None
        (self.inner_x, *self.inner_args), (found,) = clone_with_inputs([x, *args], [value])
        named = {"value": found, **self._derivatives(found, self.inner_x, jac, hess)}
        self.names, self.inner_outputs = tuple(named), list(named.values())
        self.inner = (*self.inner_inputs, *self.inner_outputs)
        self.method = method
        self.optimizer_kwargs: dict[str, Any] = dict(optimizer_kwargs or {})
        self._function: Callable[..., list[np.ndarray]] | None = None
        self._equations: Any = None

    def _derivatives(self, value: Any, x: Any, jac: bool, hess: bool) -> dict[str, Variable]:
        """Further outputs for SciPy, by its names of them."""
        return {}

    def _check(self, x: Variable, value: Variable) -> None:
        what = type(self).__name__
        if not isinstance(x.type, TensorType) or x.type.kind != "f":
            raise ValueError(f"{what}: what is solved for must be a float tensor, got {x} of type {x.type}")
        if self.ranks is not None and x.type.ndim not in self.ranks:
            allowed = " or ".join(map(str, self.ranks))
            raise ValueError(f"{what}: {x} must have {allowed} dimensions, got type {x.type}")
        rank = 0 if self.minimizes else x.type.ndim
        if not isinstance(value.type, TensorType) or value.type.ndim != rank:
            noun = (
                "objective must be a scalar" if self.minimizes else f"equations must have {rank} dimensions"
            )
            raise ValueError(f"{what}: the {noun}, got {value} of type {value.type}")
        if x not in set(ancestors([value])):
            noun = "objective does" if self.minimizes else "equations do"
            raise ValueError(f"{what}: the {noun} not depend on {x}; build {value} from it")

    @property
    def inner_inputs(self) -> list[Variable]:  # type: ignore[override]
        """The inner graph's inputs, the one that is solved for first."""
        return [self.inner_x, *self.inner_args]

    @property
    def equations(self) -> TensorVariable:
        """Expressions that are zero at the solution: the equations, or the gradient of the objective."""
        if self._equations is None:
            value = self.inner_outputs[0]
            self._equations = grad(value, self.inner_x) if self.minimizes else value
        return self._equations

    def make_node(self, *inputs: TensorLike) -> Apply:
        if len(inputs) != len(self.inner_inputs):
            raise ValueError(f"{self} takes {len(self.inner_inputs)} inputs, got {len(inputs)}")
        given = [inner.type.filter_variable(x) for inner, x in zip(self.inner_inputs, inputs, strict=True)]
        return Apply(self, given, [given[0].type.make_variable(), TensorType("bool", ()).make_variable()])

    def make_thunk(self, *arguments: Any) -> Any:
        self._compiled()
        return super().make_thunk(*arguments)

    def _compiled(self) -> Callable[..., list[np.ndarray]]:
        if self._function is None:
            inputs, outputs = clone_with_inputs(self.inner_inputs, self.inner_outputs)
            self._function = hooks.function()(inputs, outputs, on_unused_input="ignore")
        return self._function

    def perform(self, node: Apply, inputs: Sequence[np.ndarray], output_storage: Sequence[Register]) -> None:
        x0, *args = inputs
        evaluation = _Evaluation(self._compiled(), self.names, x0, args)
        solution, success = self.solve(evaluation, x0)
        output_storage[0][0] = np.asarray(solution).reshape(x0.shape).astype(x0.dtype)
        output_storage[1][0] = np.asarray(bool(success))

    def solve(self, evaluation: _Evaluation, x0: np.ndarray) -> tuple[np.ndarray | float, bool]:
        """The solution and whether SciPy takes it for one."""
        raise NotImplementedError

    def connection_pattern(self, node: Apply) -> list[list[bool]]:
        # What is only added to an objective does not move its minimum.
        return [[bool(c), False] for (c,) in io_connection_pattern(self.inner_inputs, [self.equations])]

    def pullback(self, inputs: Variables, outputs: Variables, cotangents: Maybe) -> list[Variable | None]:
        x, *args = inputs
        g = cotangents[0]
        if g is None or isinstance(g.type, DisconnectedType):
            return [None] * len(inputs)
        equations, inner_x = self.equations, self.inner_x
        there = dict(zip(self.inner_inputs, [outputs[0], *args], strict=True))
        cotangent = equations.type.make_variable()
        gradients = grad(
            None,
            self.inner_args,
            known_grads={equations: cotangent},
            disconnected_inputs="ignore",
            return_disconnected="none",
            null_gradients="return",
        )
        slope: TensorVariable = clone_replace(
            _jacobian(equations, inner_x, self.vectorized), there, rebuild_strict=False
        )
        weight: TensorVariable = neg(g)
        if inner_x.type.ndim == 0:
            weight = weight / slope
        else:
            n = weight.size
            weight = solve(slope.reshape((n, n)).T, weight.ravel(), b_ndim=1)
            weight = weight.reshape(sizes_of(outputs[0]))
        replace = {**there, cotangent: cotangent.type.filter_variable(cast(weight, cotangent.type.dtype))}
        at = [k for k, gradient in enumerate(gradients) if gradient is not None]
        found = clone_replace([gradients[k] for k in at], replace, rebuild_strict=False)
        result: list[Variable | None] = [None] * len(gradients)
        for k, gradient in zip(at, found, strict=True):
            result[k] = gradient
        return [zeros_like(x), *result]

    def __getstate__(self) -> dict[str, object]:
        return {**self.__dict__, "_function": None, "_equations": None}

    def __str__(self) -> str:
        wanted = ", ".join([f"method={self.method}", *(name for name in self.names[1:])])
        return f"{type(self).__name__}({wanted})"


class MinimizeScalarOp(Solver):
    """The minimum of a function of one number (``scipy.optimize.minimize_scalar``); arguments as `Solver`."""

    ranks = (0,)
    minimizes = True

    def solve(self, evaluation: _Evaluation, x0: np.ndarray) -> tuple[np.ndarray | float, bool]:
        from scipy import optimize

        value = evaluation.number("value")
        found = optimize.minimize_scalar(value, method=self.method, **self.optimizer_kwargs)
        return found.x, found.success


class MinimizeOp(Solver):
    """A minimum of a function of an array (``scipy.optimize.minimize``), with the derivatives asked for."""

    minimizes = True

    def _derivatives(self, value: Any, x: Any, jac: bool, hess: bool) -> dict[str, Variable]:
        if not (jac or hess):
            return {}
        slope = grad(value, x)
        found: dict[str, Variable] = {"jac": slope} if jac else {}
        return {**found, "hess": _jacobian(slope, x, self.vectorized)} if hess else found

    def solve(self, evaluation: _Evaluation, x0: np.ndarray) -> tuple[np.ndarray | float, bool]:
        from scipy import optimize

        kinds: dict[str, Callable[[str], object]] = {"jac": evaluation.vector, "hess": evaluation.square}
        options: dict[str, Any] = {name: kinds[name](name) for name in self.names[1:]}
        options.update(self.optimizer_kwargs)
        value = evaluation.number("value")
        found = optimize.minimize(value, np.ravel(x0), method=self.method, **options)
        return found.x, found.success


class RootScalarOp(Solver):
    """A root of a function of one number (``scipy.optimize.root_scalar``)."""

    ranks = (0,)
    minimizes = False

    def _derivatives(self, value: Any, x: Any, jac: bool, hess: bool) -> dict[str, Variable]:
        if hess and not jac:
            raise ValueError(
                "RootScalarOp: hess=True needs jac=True, since no method takes second derivatives alone"
            )
        first: dict[str, Variable] = {"fprime": grad(value, x)} if jac else {}
        return {**first, "fprime2": grad(first["fprime"], x)} if hess else first

    def solve(self, evaluation: _Evaluation, x0: np.ndarray) -> tuple[np.ndarray | float, bool]:
        from scipy import optimize

        options: dict[str, Any] = {name: evaluation.number(name) for name in self.names[1:]}
        options.update({"x0": float(x0), **self.optimizer_kwargs})
        found = optimize.root_scalar(evaluation.number("value"), method=self.method, **options)
        return found.root, found.converged


class RootOp(Solver):
    """A root of as many equations as there are unknowns (``scipy.optimize.root``)."""

    minimizes = False

    def _derivatives(self, value: Any, x: Any, jac: bool, hess: bool) -> dict[str, Variable]:
        return {"jac": _jacobian(value, x, self.vectorized)} if jac else {}

    def solve(self, evaluation: _Evaluation, x0: np.ndarray) -> tuple[np.ndarray | float, bool]:
        from scipy import optimize

        options: dict[str, Any] = {"jac": evaluation.square("jac")} if "jac" in self.names else {}
        options.update(self.optimizer_kwargs)
        found = optimize.root(evaluation.vector("value"), np.ravel(x0), method=self.method, **options)
        return found.x, found.success


Unknowns = Variable | Sequence[Variable]
Options = Mapping[str, object] | None


def _parameters(value: Variable, x: Variable) -> list[Variable]:
    """Variables on which the value depends besides x, computed as far as they do not depend on x."""
    found = truncated_graph_inputs([value], [x])
    return [v for v in found if v is not x and not all(isinstance(i, Constant) for i in graph_inputs([v]))]


def _solved(
    what: str, op: type[Solver], value: Any, unknowns: Unknowns, *options: Any
) -> tuple[Any, TensorVariable]:
    """The solution for one or several unknowns; several become one vector."""
    value = as_tensor_variable(value)
    if isinstance(unknowns, Variable):
        args = _parameters(value, unknowns)
        solution, success = op(unknowns, args, value, *options)(unknowns, *args)
        return solution, success
    if not unknowns:
        raise ValueError(f"{what} takes at least one variable to solve for, got {unknowns!r}")
    packed, shapes = pack(*unknowns)
    vector = packed.type.make_variable()
    parts = unpack(vector, shapes)
    replace = {x: cast(part, x.type.dtype) for x, part in zip(unknowns, parts, strict=True)}
    value = graph_replace(value, {x: x.type.filter_variable(part) for x, part in replace.items()})
    args = _parameters(value, vector)
    solution, success = op(vector, args, value, *options)(packed, *args)
    return [cast(s, x.type.dtype) for s, x in zip(unpack(solution, shapes), unknowns, strict=True)], success


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
    return _solved(
        "minimize", MinimizeOp, objective, x, method, optimizer_kwargs, jac, hess, use_vectorized_jac
    )


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
    return _solved("minimize_scalar", MinimizeScalarOp, objective, x, method, optimizer_kwargs)


def root(
    equations: Any,
    variables: Unknowns,
    method: str = "hybr",
    jac: bool = True,
    use_vectorized_jac: bool = False,
    optimizer_kwargs: Options = None,
) -> tuple[Any, TensorVariable]:
    """Root of equations (``scipy.optimize.root``).

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
    return _solved(
        "root", RootOp, equations, variables, method, optimizer_kwargs, jac, False, use_vectorized_jac
    )


def root_scalar(
    equation: Any,
    variable: Variable,
    method: str = "secant",
    jac: bool = False,
    hess: bool = False,
    optimizer_kwargs: Options = None,
) -> tuple[TensorVariable, TensorVariable]:
    """Root of a function of one number (``scipy.optimize.root_scalar``).

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
    return _solved("root_scalar", RootScalarOp, equation, variable, method, optimizer_kwargs, jac, hess)
