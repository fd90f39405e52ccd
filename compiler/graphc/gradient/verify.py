# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""`verify_grad`: compare symbolic gradients with finite differences."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from graphc import hooks
from graphc.gradient.reverse import grad
from graphc.graph.basic import Variable
from graphc.graph.tensor.convert import as_tensor_variable
from graphc.graph.tensor.type import TensorType
from graphc.ops.math import imag, real

# Steps near the cube root of the precision, which balances truncation and rounding of a central difference.
_STEPS = {"float16": 5e-2, "float32": 5e-3, "float64": 1e-5}
_TOLERANCES = {"float16": 5e-2, "float32": 1e-2, "float64": 1e-4}


class GradientError(Exception):
    """A symbolic gradient and finite differences disagree.

    Attributes:
        arg: position of the argument. index: index of the worst element in it. analytic, numeric: its two
            values.
        abs_err, rel_err, abs_tol, rel_tol: its errors and what was allowed.

    Examples:
        >>> def step(x):
        ...     return graphc.gradient.grad_scale(x**2, 3.0)  # which is not its gradient
        >>> try:
        ...     graphc.gradient.verify_grad(step, [np.array(2.0)], rng=np.random.default_rng(0))
        ... except graphc.gradient.GradientError as error:
        ...     print(error.arg, error.index)
        0 ()
    """

    def __init__(
        self,
        arg: int,
        index: tuple[int, ...],
        shape: tuple[int, ...],
        analytic: complex,
        numeric: complex,
        errors: tuple[float, float],
        tolerances: tuple[float, float],
    ) -> None:
        self.arg, self.index, self.analytic, self.numeric = arg, index, analytic, numeric
        (self.abs_err, self.rel_err), (self.abs_tol, self.rel_tol) = errors, tolerances
        place = f"element {list(index)} of argument {arg}" if index else f"argument {arg}"
        super().__init__(
            f"gradient of {place} (shape {shape}) is {analytic:.8g}, finite differences give {numeric:.8g}: "
            f"absolute error {self.abs_err:.3g} (allowed {self.abs_tol:.3g}), "
            f"relative error {self.rel_err:.3g} (allowed {self.rel_tol:.3g})"
        )


def numeric_grad(
    f: Callable[..., np.ndarray | float],
    pt: Sequence[np.ndarray],
    eps: float | None = None,
    project: Callable | None = None,
) -> list[np.ndarray]:
    """Central differences of a scalar function.

    Args:
        f: takes arrays like ``pt``, returns a scalar (or something that ``project`` makes one).
        pt: where.
        eps: step; by default it depends on the least precise dtype.
        project: applied to the results of ``f`` before the difference is taken.

    Returns:
        One float64 array for each argument.

    Examples:
        >>> g = graphc.gradient.numeric_grad(lambda x: (x**2).sum(), [np.array([1.0, 3.0])])
        >>> g[0].round(4)
        array([2., 6.])
    """
    project = project or float
    base = [np.array(p) for p in pt]
    step = max(_STEPS[str(p.dtype)] for p in base) if eps is None else eps
    gradients = []
    for i, p in enumerate(base):
        g = np.zeros(p.shape, np.float64)
        for index in np.ndindex(*p.shape):
            ends, places = [], []
            for sign in (1.0, -1.0):
                moved = [q.copy() for q in base]
                moved[i][index] += sign * step
                # Rounding moves the point: the distance is what was stored, not what was asked for.
                places.append(float(moved[i][index]))
                ends.append(project(f(*moved)))
            g[index] = (ends[0] - ends[1]) / (places[0] - places[1])
        gradients.append(g)
    return gradients


def _projection(values: Sequence[np.ndarray], weights: Sequence[np.ndarray]) -> float:
    """Weighted sum of all elements in float64; real and imaginary parts have weights of their own."""
    result = 0.0
    for value, weight in zip(values, weights, strict=True):
        value = np.asarray(value)
        result += float(np.sum(value.real * weight[0], dtype=np.float64))
        if np.iscomplexobj(value):
            result += float(np.sum(value.imag * weight[1], dtype=np.float64))
    return result


def _worst(
    analytic: Sequence[np.ndarray], numeric: Sequence[np.ndarray], tolerances: tuple[float, float]
) -> GradientError | None:
    """The largest violation of both tolerances."""
    worst, error = 1.0, None
    for arg, (a, b) in enumerate(zip(analytic, numeric, strict=True)):
        a = np.asarray(a)
        if a.shape != b.shape:
            raise ValueError(
                f"the gradient of argument {arg} has shape {a.shape}, the argument has shape {b.shape}"
            )
        if not a.size:
            continue
        abs_err = np.abs(a.astype(np.result_type(a.dtype, np.float64)) - b)
        rel_err = abs_err / np.maximum(np.abs(a) + np.abs(b), 1e-8)
        badness = np.minimum(abs_err / tolerances[0], rel_err / tolerances[1])
        badness = np.where(np.isfinite(badness), badness, np.inf)
        place = np.unravel_index(int(np.argmax(badness)), badness.shape)
        if badness[place] > worst:
            worst = float(badness[place])
            index = tuple(int(k) for k in place)
            errors = (float(abs_err[place]), float(rel_err[place]))
            error = GradientError(arg, index, b.shape, a[place], b[place], errors, tolerances)
    return error


def _check_points(pt: Sequence[np.ndarray]) -> list[np.ndarray]:
    if not isinstance(pt, list | tuple):
        raise TypeError(f"verify_grad needs a list or tuple of arrays as pt, got {type(pt).__name__}")
    points = [np.array(p) for p in pt]
    for i, p in enumerate(points):
        if str(p.dtype) not in _STEPS:
            raise TypeError(f"verify_grad needs real floating-point inputs, input {i} has dtype {p.dtype}")
    return points


def verify_grad(
    fun: Callable[..., Variable],
    pt: Sequence[np.ndarray],
    n_tests: int = 2,
    rng: np.random.Generator | np.random.RandomState | None = None,
    eps: float | None = None,
    out_type: str | None = None,
    abs_tol: float | None = None,
    rel_tol: float | None = None,
    mode: str | None = None,
    cast_to_output_type: bool = False,
    no_debug_ref: bool = True,
) -> None:
    """Compare the gradient of a random projection of ``fun`` with central differences.

    Args:
        fun: takes variables, returns a variable or a list of them; for instance an op.
        pt: float arrays, one for each argument.
        n_tests: number of random projections.
        rng: source of the projections; a fixed seed by default.
        eps: step of the differences; by default 1e-5 for float64, 5e-3 for float32, 5e-2 for float16.
        out_type: dtype the outputs must have, checked when given.
        abs_tol, rel_tol: an element is wrong when it exceeds both; by default 1e-4, 1e-2, 5e-2 by dtype.
        mode: mode of the compiled functions.
        cast_to_output_type: draw projections in the dtype of float32 outputs instead of float64.
        no_debug_ref: evaluate the differences outside debug mode even when ``mode`` is ``"debug"``.

    Raises:
        GradientError: an element is wrong; the worst one is named.
        TypeError: ``pt`` holds something other than float arrays.

    Examples:
        >>> graphc.verify_grad(lambda x: (x**2).sum(), [np.array([1.0, 3.0])])
    """
    points = _check_points(pt)
    tolerance = max(_TOLERANCES[str(p.dtype)] for p in points)
    tolerances = (tolerance if abs_tol is None else abs_tol, tolerance if rel_tol is None else rel_tol)
    rng = np.random.default_rng(0) if rng is None else rng
    draw = rng.random if isinstance(rng, np.random.Generator) else rng.random_sample

    inputs = [as_tensor_variable(p).type(f"input {i}") for i, p in enumerate(points)]
    if not callable(fun) or isinstance(fun, Variable):
        raise TypeError(
            f"verify_grad takes a function of variables, got {fun!r:.80} of type {type(fun).__name__}"
        )
    made = fun(*inputs)
    outputs: list[Variable] = list(made) if isinstance(made, list | tuple) else [made]
    for i, y in enumerate(outputs):
        if out_type is not None and y.type.dtype != out_type:
            raise TypeError(f"output {i} of the function has dtype {y.type.dtype}, out_type says {out_type}")
    options: dict[str, str | bool] = {"on_unused_input": "ignore", "allow_input_downcast": True}
    value_mode = None if mode == "debug" and no_debug_ref else mode
    value_fn = hooks.function()(inputs, outputs, mode=value_mode, **options)
    shapes = [np.shape(value) for value in value_fn(*points)]

    # Weights stay away from zero, where a wrong gradient could hide.
    weights = [
        [TensorType(_weight_dtype(y, cast_to_output_type), s).make_variable() for _ in range(2)]
        for y, s in zip(outputs, shapes, strict=True)
    ]
    cost: Any = sum(_symbolic_projection(y, w) for y, w in zip(outputs, weights, strict=True))
    flat = [w for pair in weights for w in pair]
    grad_fn = hooks.function()(
        [*inputs, *flat], grad(cost, inputs, disconnected_inputs="ignore"), mode=mode, **options
    )
    for _ in range(n_tests):
        drawn = [
            [(draw(s) + 0.5).astype(w.type.dtype) for w in pair]
            for pair, s in zip(weights, shapes, strict=True)
        ]
        analytic = grad_fn(*points, *[w for pair in drawn for w in pair])
        numeric = numeric_grad(value_fn, points, eps, lambda values, drawn=drawn: _projection(values, drawn))
        error = _worst(analytic, numeric, tolerances)
        if error is not None:
            raise error


def _weight_dtype(y: Variable, cast_to_output_type: bool) -> str:
    return "float32" if cast_to_output_type and y.type.dtype == "float32" else "float64"


def _symbolic_projection(y: Variable, weights: Sequence[Variable]) -> Variable:
    if np.dtype(y.type.dtype).kind != "c":
        return (y * weights[0]).sum()
    return (real(y) * weights[0]).sum() + (imag(y) * weights[1]).sum()
