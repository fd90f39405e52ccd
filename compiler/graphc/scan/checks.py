# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""What must fit when a scan is applied to variables."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from graphc.graph.basic import Variable
from graphc.graph.location import describe
from graphc.graph.tensor.convert import as_tensor_variable
from graphc.graph.tensor.type import TensorType
from graphc.ops.shaping import specify_shape
from graphc.ops.sizes import known_size

if TYPE_CHECKING:
    from graphc.graph.op import Op
    from graphc.graph.tensor.variable import TensorVariable
    from graphc.scan.op import Scan
    from graphc.scan.spec import Role, State


def check_inputs(op: Any, inputs: Sequence[TensorVariable]) -> list[Variable]:
    """The outer inputs of a scan as variables of fitting types.

    Sizes of rows that the inner graph knows and the input does not are demanded of the input.

    Raises:
        TypeError: an input has another dtype, rank or static size than the inner graph expects; the message
            names the role, both types and the fix.
        ValueError: a number of steps that is known to be negative, or too large for a sequence; too few or
            too many initial rows.
    """
    spec = op.spec
    inner_in = dict(zip(spec.inner_input_names(), op.inner_inputs, strict=True))
    inner_out = dict(zip(spec.inner_output_names(), op.inner_outputs, strict=True))
    values = dict(zip(spec.outer_input_names(), inputs, strict=True))
    n_steps = _steps(op, values["n_steps"])
    result = [n_steps]
    for sequence in spec.sequences:
        row = inner_in[sequence.name, sequence.taps[0]].type
        result.append(_rows(op, sequence, values[sequence.name], row))
        _check_length(op, sequence, result[-1], n_steps)
    for state in spec.states:
        row = inner_in[state.name, state.taps[0]].type
        initial = _rows(op, state, values[state.name], row)
        _check_window(op, state, initial)
        for write in state.writes:
            _check_next(op, state, initial, inner_out[state.name, write])
        result.append(initial)
    others = (*spec.untraced, *spec.invariants)
    return result + [_value(op, role, values[role.name], inner_in[role.name, 0].type) for role in others]


def _steps(op: Scan, n_steps: TensorVariable) -> Variable:
    v = as_tensor_variable(n_steps)
    if v.type.ndim or v.type.numpy_dtype.kind not in "iu":
        raise TypeError(f"n_steps of {op} must be an integer scalar, got {v} of type {v.type}")
    known = known_size(v)
    if known is not None and known < 0:
        raise ValueError(f"n_steps of {op} must be at least 0, got {known}")
    return v if v.type.dtype == "int64" else v.astype("int64")


def _rows(op: Any, role: Any, value: Variable, row: TensorType) -> Variable:
    """A stack of rows of a type."""
    v = as_tensor_variable(value)
    fits = v.type.dtype == row.dtype and v.type.ndim == row.ndim + 1
    fits = fits and all(
        a is None or b is None or a == b for a, b in zip(v.type.shape[1:], row.shape, strict=True)
    )
    if not fits:
        wanted = TensorType(row.dtype, (None, *row.shape))
        raise TypeError(
            f"the {role.role} '{role.name}' of {op} must be a stack of rows of type {row} ({wanted}), got "
            f"{v} of type "
            f"{v.type}{describe(v.location)}"
        )
    return specify_shape(v, (None, *row.shape))


def _check_length(op: Op, sequence: Any, x: Variable, n_steps: Variable) -> None:
    steps, rows = known_size(n_steps), x.type.shape[0]
    if steps is None or rows is None or steps <= rows - sequence.taps[-1] or steps == 0:
        return
    raise ValueError(
        f"{op} runs {steps} steps, but the sequence '{sequence.name}' of type "
        f"{x.type}{describe(x.location)} has rows "
        f"for {max(rows - sequence.taps[-1], 0)} only. Give fewer steps, or leave n_steps out"
    )


def _check_window(op: Scan, state: State, initial: Variable) -> None:
    rows = initial.type.shape[0]
    if rows is not None and rows != state.window:
        raise ValueError(
            f"the state '{state.name}' of {op} needs {state.window} initial rows, got {initial} of type "
            f"{initial.type}{describe(initial.location)}"
        )


def _check_next(op: Scan, state: State, initial: Variable, new: Variable) -> None:
    old, row = initial.type, new.type
    fits = isinstance(row, TensorType) and row.dtype == old.dtype and row.ndim == old.ndim - 1
    fits = fits and all(
        a is None or b is None or a == b for a, b in zip(old.shape[1:], row.shape, strict=True)
    )
    if not fits:
        expected = TensorType(old.dtype, old.shape[1:])
        raise TypeError(
            f"the state '{state.name}' of {op} starts as {expected}, but the function returns {row} for it"
            f"{describe(new.location)}. Give an initial value of the returned type, or cast what is returned "
            f"(for example .astype('{old.dtype}'))"
        )


def _value(op: Scan, role: Role, value: TensorVariable, type_: Any) -> Variable:
    try:
        return type_.filter_variable(value)
    except TypeError:
        given = value.type if isinstance(value, Variable) else type(value).__name__
        raise TypeError(
            f"the {role.role} '{role.name}' of {op} must be of type {type_}, got {value} of type {given}"
            f"{describe(getattr(value, 'location', None))}"
        ) from None
