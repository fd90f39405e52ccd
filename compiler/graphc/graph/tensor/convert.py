# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Making tensor variables out of Python and NumPy values."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from graphc.config import config
from graphc.errors import AsTensorError, TensorOverflowError, TensorRankError
from graphc.graph.basic import Apply, Constant, Variable, capture, describe
from graphc.graph.tensor.type import TensorType, parse_dtype
from graphc.graph.tensor.variable import TensorConstant, TensorVariable
from graphc.graph.type import register_transfer, transfer
from graphc_runtime.marshal import demand_numbers
from graphc_runtime.symbols import DTYPES

if TYPE_CHECKING:
    from graphc.graph.tensor import DTypeLike, TensorLike
    from graphc_runtime.thunk import Register

__all__ = [
    "as_tensor", "as_tensor_variable", "constant", "get_underlying_scalar_constant_value", "is_weak_scalar",
    "register_transfer", "transfer",
]  # fmt: skip


def is_weak_scalar(x: object) -> bool:
    """True if ``x`` is a Python number, whose dtype gives way to that of an array it meets (NEP 50).

    Examples:
        >>> pt.is_weak_scalar(2.0), pt.is_weak_scalar(np.array(2.0))
        (True, False)
    """
    return type(x) in (bool, int, float, complex)


def constant(
    x: TensorLike, name: str | None = None, ndim: int | None = None, dtype: DTypeLike | None = None
) -> TensorConstant:
    """A constant tensor.

    Args:
        x: array-like, or a constant; Python floats and empty lists become ``config.floatX``, other Python
            numbers what NumPy makes of them.
        name: a name for people.
        ndim: number of dimensions it must have; missing ones are added first, leading 1s of a constant are
            dropped.
        dtype: dtype to convert to.

    Raises:
        AsTensorError: ``x`` is no array of a supported dtype; also an OverflowError for numbers beyond it.
        NotImplementedError: ``x`` is a masked array.
        TypeError: ``x`` has a unit.

    Examples:
        >>> pt.constant([1.5, 2.5]).eval()
        array([1.5, 2.5])
    """
    if isinstance(x, TensorConstant):
        if name is None and dtype is None and ndim in (None, x.type.ndim):
            return x
        x = _stripped(x.data, ndim)
    demand_numbers(x)
    if dtype is None and (type(x) is float or (type(x) in (list, tuple) and not x)):
        dtype = config.floatX
    try:
        data = np.asarray(x, dtype=None if dtype is None else parse_dtype(dtype))
    except (TypeError, ValueError, OverflowError) as error:
        kind = TensorOverflowError if isinstance(error, OverflowError) else AsTensorError
        raise kind(f"cannot make a tensor of {x!r:.80} of type {type(x).__name__}: {error}") from None
    if isinstance(x, str | bytes):
        raise AsTensorError(
            f"expected a number, an array or a variable, got {x!r:.80} of type {type(x).__name__}"
        )
    if data.dtype.name not in DTYPES:
        symbols = data.dtype == object and any(isinstance(each, Variable) for each in data.flat)
        hint = "; NumPy's arrays cannot hold variables: use graphc.tensor.stack([...])" if symbols else ""
        raise AsTensorError(
            f"cannot make a tensor of {x!r:.80}: NumPy gives it dtype {data.dtype}, "
            f"tensors hold one of {', '.join(DTYPES)}{hint}"
        )
    if ndim is not None:
        data = _with_ndim(data, ndim)
    if not data.dtype.isnative:
        data = data.astype(data.dtype.newbyteorder("="))
    result = TensorConstant(TensorType(data.dtype.name, data.shape), data, name)
    result._location = capture()
    return result


def _stripped(data: np.ndarray, ndim: int | None) -> np.ndarray:
    surplus = 0 if ndim is None else data.ndim - ndim
    return (
        data.reshape(data.shape[surplus:]) if surplus > 0 and data.shape[:surplus] == (1,) * surplus else data
    )


def _with_ndim(data: np.ndarray, ndim: int) -> np.ndarray:
    if data.ndim > ndim:
        raise TensorRankError(f"expected at most {ndim} dimensions, got an array of shape {data.shape}")
    return data.reshape((1,) * (ndim - data.ndim) + data.shape)


def has_variable(x: object) -> bool:
    """True if nested lists hold a variable."""
    if isinstance(x, list | tuple):
        return any(has_variable(item) for item in x)
    return isinstance(x, Variable | Apply)


def as_tensor_variable(
    x: Any, name: str | None = None, ndim: int | None = None, dtype: DTypeLike | None = None
) -> TensorVariable:
    """``x`` as a tensor variable; a variable is returned as it is.

    Args:
        x: a tensor variable, an Apply with one output, array-like, or nested lists that may hold variables,
            which are stacked.
        name: name of a new constant.
        ndim: number of dimensions the result must have; missing ones become leading ones, leading 1s are
            dropped.
        dtype: dtype of the result; variables of another one are cast.

    Raises:
        AsTensorError: ``x`` cannot be seen as a tensor.

    Examples:
        >>> graphc.as_symbolic([1, 2]).eval()
        array([1, 2])
    """
    if isinstance(x, Apply):
        if x.op.default_output is None and len(x.outputs) != 1:
            raise AsTensorError(
                f"{x.op} has {len(x.outputs)} outputs and no default_output; take one of them"
            )
        x = x.default_output()
    convert = getattr(type(x), "__as_tensor_variable__", None)
    if convert is not None:
        x = convert(x)
    if not isinstance(x, Variable) and has_variable(x):
        items = [as_tensor_variable(item) for item in x]
        known = [item.data for item in items if isinstance(item, Constant)]
        if len(known) == len(items):
            return constant(np.stack(known), name, ndim, dtype)
        x = TensorVariable._functions["stack"](items)
    if not isinstance(x, Variable):
        return constant(x, name, ndim, dtype)
    if not isinstance(x.type, TensorType):
        if isinstance(x, Constant):
            return constant(x.data, name, ndim, dtype)
        is_sparse = hasattr(x, "toarray")
        hint = (
            f"; {x}.toarray() is dense, and graphc.sparse has functions of sparse matrices"
            if is_sparse
            else ""
        )
        raise AsTensorError(f"expected a tensor variable, got {x} of type {x.type}{hint}")
    if dtype is not None and x.type.dtype != parse_dtype(dtype):
        return _variable_with_ndim(TensorVariable._functions["cast"](x, parse_dtype(dtype)), ndim)
    return _variable_with_ndim(x, ndim)


def operand(
    x: Any,
    takes: str,
    least: int = 0,
    most: int = 64,
    kinds: str = "biufc",
    error: type[Exception] = ValueError,
) -> TensorVariable:
    """``x`` as a tensor variable of the rank and the kind of dtype that a function takes.

    Args:
        x: what `as_tensor_variable` takes.
        takes: the function and what it takes, as messages begin.
        least, most: numbers of dimensions between which it has its own.
        kinds: letters of the kinds of NumPy's dtypes.
        error: what is raised where it has others.
    """
    variable = as_tensor_variable(x)
    if not least <= variable.type.ndim <= most or variable.type.kind not in kinds:
        raise error(f"{takes}, got {variable}{describe(variable.location)} of type {variable.type}")
    return variable


def _variable_with_ndim(x: Any, ndim: int | None) -> TensorVariable:
    if ndim is None or x.type.ndim == ndim:
        return x
    surplus = x.type.ndim - ndim
    if surplus < 0:
        return x.dimshuffle(("x",) * -surplus + tuple(range(x.type.ndim)))
    if not all(x.type.broadcastable[:surplus]):
        raise TensorRankError(f"expected at most {ndim} dimensions, got {x} of {x.type}")
    return x.dimshuffle(tuple(range(surplus, x.type.ndim)))


as_tensor = as_tensor_variable


def get_underlying_scalar_constant_value(x: Any, only_process_constants: bool = False) -> np.ndarray:
    """The value of a scalar known before the graph runs: a number, a 0-d array, or a constant of equal
    elements.

    Args:
        x: a value or a variable.
        only_process_constants: do not compute anything from constants.

    Raises:
        NotScalarConstantError: the value depends on inputs, or is not a single number.

    Examples:
        >>> int(pt.get_underlying_scalar_constant_value(pt.constant(3)))
        3
    """
    if not isinstance(x, Variable):
        if np.ndim(x) == 0 and x is not None:
            return np.asarray(x)
    elif isinstance(x, TensorConstant):
        if x.unique_value is not None:
            return np.asarray(x.unique_value)
    elif x.owner is not None and not only_process_constants:
        kept = _KEPT.get(type(x.owner.op).__name__) if str(x.owner.op) != "second" else 1
        if kept is not None:
            if type(x.owner.op).__name__ in _CHECKED:
                _check_conditions(x)
            return get_underlying_scalar_constant_value(x.owner.inputs[kept])
        element = x.owner.op.element(x.owner, 0) if x.type.shape == (1,) else None
        if element is not None:
            return get_underlying_scalar_constant_value(element)
        inputs = _constant_inputs(x)
        if inputs is not None:
            cells: list[Register] = [[None] for _ in x.owner.outputs]
            x.owner.op.perform(x.owner, inputs, cells)
            return get_underlying_scalar_constant_value(constant(cells[x.index or 0][0]))
    raise NotScalarConstantError(f"{x} is not a scalar whose value is known before the graph is run")


# Ops whose result has the elements of an input.
_KEPT = {"BroadcastTo": 0, "DimShuffle": 0, "Assert": 0, "CheckAndRaise": 0, "Required": 0}
# Those that raise instead where a condition, one of their other inputs, does not hold.
_CHECKED = ("Assert", "CheckAndRaise", "Required")


def _check_conditions(x: Variable) -> None:
    assert x.owner is not None
    for condition in x.owner.inputs[1:]:
        if not get_underlying_scalar_constant_value(condition):
            raise NotScalarConstantError(f"{x} raises when the graph is run: {condition} does not hold")


def _constant_inputs(x: Variable) -> list[np.ndarray] | None:
    """The values of a node's inputs where these are constants, or scalars computed from some."""
    assert x.owner is not None
    if not type(x.owner.op).__module__.startswith("graphc.ops."):
        return None  # an op of a user may do more than compute
    values: list[np.ndarray] = []
    for v in x.owner.inputs:
        if isinstance(v, Constant):
            values.append(v.data)
        elif v.owner is None or not isinstance(v.type, TensorType) or v.type.ndim:
            return None
        else:
            try:
                values.append(get_underlying_scalar_constant_value(v))
            except NotScalarConstantError:
                return None
    return values


class NotScalarConstantError(AsTensorError):
    """A scalar's value is not known before the graph is run."""
