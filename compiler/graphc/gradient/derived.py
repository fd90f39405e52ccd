# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Jacobian, Hessian and Hessian-vector product.

A Jacobian is one pullback through the graph, batched over the rows: the cotangent is an identity matrix and
every op of
the pullback gets one more leading axis (`graphc.transforms.vectorize`). The graph does not grow with the
number of rows, and that number may be known at run time only. Where an op has no batching rule, the rows are
unrolled, which needs a static number of them.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING, Any, TypedDict, overload

from graphc import hooks
from graphc.errors import VectorizeError
from graphc.gradient.connectivity import as_given
from graphc.gradient.reverse import as_written, grad, pullback
from graphc.graph.basic import Variable
from graphc.graph.undefined import kind_of
from graphc.ops.batching import batch_graph
from graphc.ops.create import arange, eye
from graphc.ops.derivatives import gradient_dtype, total
from graphc.ops.join import stack
from graphc.ops.shaping import reshape

if TYPE_CHECKING:
    from graphc.graph.tensor.variable import TensorVariable

_UNROLL_LIMIT = 256


class GradOptions(TypedDict):
    """Options that gradients of rows share; see `grad`."""

    consider_constant: Iterable[Variable] | None
    disconnected_inputs: str


def _static_size(x: Variable) -> int | None:
    size = 1
    for dim in x.type.shape:
        if dim is None:
            return None
        size *= dim
    return size


def _rows_batched(flat: Variable, wrt: list[Variable], options: GradOptions) -> list[Variable]:
    """Jacobian of a vector, one pullback batched over the rows; shape ``(rows, *w.shape)``."""
    row = flat.type.clone(dtype=gradient_dtype(flat)).make_variable()
    pulled = pullback(flat, wrt, row, **options)
    rows = flat.shape[0] if flat.type.shape[0] is None else flat.type.shape[0]
    return batch_graph(pulled, {row: eye(rows, dtype=row.type.dtype)}, rows)


def _rows_unrolled(flat: Variable, wrt: list[Variable], rows: int, options: GradOptions) -> list[Variable]:
    """As `_rows_batched`, one gradient for each row."""
    # Only the first row may complain about a disconnected wrt: the others would repeat it.
    gradients = [grad(flat[0], wrt, **options)]
    options = GradOptions({**options, "disconnected_inputs": "ignore"})
    gradients += [grad(flat[i], wrt, **options) for i in range(1, rows)]
    return [stack(list(column)) for column in zip(*gradients, strict=True)]


def _rows_looped(flat: Variable, wrt: list[Variable], options: GradOptions) -> list[Variable]:
    """As `_rows_batched`, one gradient in a loop over the rows, whose number is known when it runs."""

    def row(i: Variable) -> list[Variable]:
        return grad(flat[i], wrt, **options)

    return hooks.scan()(row, sequences=arange(flat.shape[0]), return_updates=False, return_list=True)


@overload
def jacobian(
    expression: Variable,
    wrt: Variable,
    consider_constant: Iterable[Variable] | None = None,
    disconnected_inputs: str = "raise",
    vectorize: bool | None = None,
) -> TensorVariable: ...
@overload
def jacobian(
    expression: Variable,
    wrt: Sequence[Variable],
    consider_constant: Iterable[Variable] | None = None,
    disconnected_inputs: str = "raise",
    vectorize: bool | None = None,
) -> list[TensorVariable]: ...
def jacobian(
    expression: Variable,
    wrt: Variable | Sequence[Variable],
    consider_constant: Iterable[Variable] | None = None,
    disconnected_inputs: str = "raise",
    vectorize: bool | None = None,
) -> Any:
    """The matrix of all partial derivatives.

    Args:
        expression: real variable of any rank.
        wrt: variable or list of variables.
        consider_constant, disconnected_inputs: as in `grad`.
        vectorize: True batches one pullback over the rows, False builds one gradient for each row, in a loop
            if their number is not static; None does the first and falls back to the second.

    Returns:
        For each ``wrt`` a variable of shape ``(*expression.shape, *wrt.shape)``, in the container that
        ``wrt`` came in.

    Raises:
        TypeError: ``expression`` is no variable, or is complex.
        VectorizeError: an op of the pullback has no batching rule, and the rows cannot be unrolled.

    Examples:
        >>> x = pt.vector("x")
        >>> graphc.jacobian(x**2, x).eval({x: [1.0, 3.0]})
        array([[2., 0.],
               [0., 6.]])
    """
    if not isinstance(expression, Variable):
        raise TypeError(
            f"jacobian needs a variable as expression, got {expression!r} of type {type(expression).__name__}"
        )
    if kind_of(expression) == "c":
        raise TypeError(
            f"jacobian needs a real expression, got type {expression.type}; take its real and imag apart"
        )
    wrt_list: list[Variable] = list(wrt) if isinstance(wrt, Sequence) else [wrt]
    options: GradOptions = {
        "consider_constant": consider_constant,
        "disconnected_inputs": disconnected_inputs,
    }
    if expression.type.ndim == 0:
        found = grad(expression, wrt_list, **options)
    else:
        flat = expression if expression.type.ndim == 1 else reshape(expression, (-1,), ndim=1)
        found = _jacobian_rows(flat, wrt_list, _static_size(expression), vectorize, options)
        if expression.type.ndim > 1:
            shape = _sizes(expression)
            found = [reshape(m, (*shape, *_sizes(w))) for m, w in zip(found, wrt_list, strict=True)]
    return as_given([as_written(m, expression, w) for m, w in zip(found, wrt_list, strict=True)], wrt)


def _sizes(x: Variable) -> list[Variable | int]:
    return [x.shape[i] if dim is None else dim for i, dim in enumerate(x.type.shape)]


def _jacobian_rows(
    flat: Variable, wrt: list[Variable], rows: int | None, vectorize: bool | None, options: GradOptions
) -> list[Variable]:
    if vectorize is not False:
        try:
            return _rows_batched(flat, wrt, options)
        except VectorizeError as error:
            if vectorize:
                raise VectorizeError(
                    f"jacobian of {flat} of type {flat.type}: {error}; without vectorize=True, rows that "
                    "cannot be batched are computed one by one"
                ) from error
    if not rows or rows > _UNROLL_LIMIT:
        return _rows_looped(flat, wrt, options)
    return _rows_unrolled(flat, wrt, rows, options)


@overload
def hessian(
    cost: Variable,
    wrt: Variable,
    consider_constant: Iterable[Variable] | None = None,
    disconnected_inputs: str = "raise",
) -> TensorVariable: ...
@overload
def hessian(
    cost: Variable,
    wrt: Sequence[Variable],
    consider_constant: Iterable[Variable] | None = None,
    disconnected_inputs: str = "raise",
) -> list[TensorVariable]: ...
def hessian(
    cost: Variable,
    wrt: Variable | Sequence[Variable],
    consider_constant: Iterable[Variable] | None = None,
    disconnected_inputs: str = "raise",
) -> Any:
    """The matrix of second derivatives of a scalar cost with respect to a vector.

    Args:
        cost: 0-d variable.
        wrt: 1-d variable, or a list of them; each gets its own block of the diagonal.
        consider_constant, disconnected_inputs: as in `grad`.

    Returns:
        For each ``wrt`` a matrix of shape ``(n, n)``, in the container that ``wrt`` came in. Zeros when the
        gradient does not depend on ``wrt``.

    Raises:
        TypeError: an argument is no variable.
        ValueError: ``cost`` is not 0-d, or a ``wrt`` is not 1-d.

    Examples:
        >>> x = pt.vector("x")
        >>> graphc.hessian((x**3).sum(), x).eval({x: [1.0, 3.0]})
        array([[ 6.,  0.],
               [ 0., 18.]])
    """
    if not isinstance(cost, Variable):
        raise TypeError(f"hessian needs a variable as cost, got {cost!r} of type {type(cost).__name__}")
    if cost.type.ndim != 0:
        raise ValueError(f"hessian needs a scalar (0-d) cost, got {cost} of type {cost.type}")
    wrt_list: list[Variable] = list(wrt) if isinstance(wrt, Sequence) else [wrt]
    result = []
    for x in wrt_list:
        if not isinstance(x, Variable):
            raise TypeError(f"hessian needs variables in wrt, got {x!r} of type {type(x).__name__}")
        if x.type.ndim != 1:
            raise ValueError(
                f"hessian needs vectors (1-d) in wrt, got {x} of type {x.type}; "
                "use jacobian(grad(cost, x), x)"
            )
        first = grad(cost, x, consider_constant, disconnected_inputs)
        # A linear cost has a gradient that does not depend on x: that is a zero matrix, not an error.
        result.append(jacobian(first, x, consider_constant, "ignore"))
    return as_given(result, wrt)


def hessian_vector_product(
    cost: Variable, wrt: Variable | Sequence[Variable], p: Variable | Sequence[Variable], **grad_kwargs: Any
) -> Any:
    """The Hessian of a scalar cost times a vector, without building the Hessian.

    Args:
        cost: 0-d variable.
        wrt: variable or list of variables of any rank.
        p: one direction for each ``wrt``, of its shape.
        grad_kwargs: arguments of `grad`.

    Returns:
        For each ``wrt`` a variable of its shape: the derivative of ``sum_j grad_j . p_j``.

    Raises:
        ValueError: the numbers of ``wrt`` and ``p`` differ.

    Examples:
        >>> x = pt.vector("x")
        >>> product = graphc.gradient.hessian_vector_product((x**3).sum(), [x], [pt.constant([1.0, 0.0])])
        >>> product[0].eval({x: [2.0, 3.0]})
        array([12.,  0.])
    """
    wrt_list: list[Variable] = list(wrt) if isinstance(wrt, Sequence) else [wrt]
    p_list = list(p) if isinstance(p, Sequence) else [p]
    if len(wrt_list) != len(p_list):
        raise ValueError(
            f"hessian_vector_product needs one p for each wrt: got {len(wrt_list)} wrt and {len(p_list)} p"
        )
    first = grad(cost, wrt_list, **grad_kwargs)
    projected = total([(g * q).sum() for g, q in zip(first, p_list, strict=True)])
    result = grad(projected, wrt_list, **{**grad_kwargs, "disconnected_inputs": "ignore"})
    return as_given(result, wrt)
