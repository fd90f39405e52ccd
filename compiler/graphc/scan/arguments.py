# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""The arguments of `graphc.scan`, in the forms in which users give them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any, TypeAlias

import numpy as np

from graphc.graph.basic import Variable, describe
from graphc.graph.tensor.convert import as_tensor_variable, operand
from graphc.ops.shape import known_size
from graphc_runtime.record import record

if TYPE_CHECKING:
    from graphc.graph.tensor import TensorLike
    from graphc.graph.tensor.variable import TensorVariable

# Rows to go through, or values to start from: one or several, each alone or in a dict beside its taps.
Given: TypeAlias = "TensorLike | Mapping[str, Any] | Sequence[TensorLike | Mapping[str, Any] | None] | None"


@record(frozen=True)
class SequenceArgument:
    """A sequence and the taps, in the user's order."""

    variable: TensorVariable
    taps: tuple[int, ...]


@record(frozen=True)
class OutputArgument:
    """Known facts about an output beforehand: None as `initial` for one that no iteration reads."""

    initial: Any = None
    taps: tuple[int, ...] = ()


def listed(value: Any) -> list[Any]:
    """None as an empty list, a single value as a list of one."""
    if value is None:
        return []
    return list(value) if isinstance(value, list | tuple) else [value]


def as_sequences(value: Given) -> list[SequenceArgument]:
    """The argument ``sequences``.

    Raises:
        TypeError: no tensor, or one without rows.
        ValueError: unknown keys.
    """
    found = []
    for position, each in enumerate(listed(value)):
        what = f"sequences[{position}]"
        taps: tuple[int, ...] = (0,)
        if isinstance(each, Mapping):
            _check_keys(each, {"input", "taps"}, what)
            if each.get("input") is None:
                raise ValueError(f"{what} has no 'input': give dict(input=x, taps=[...])")
            if each.get("taps") is not None:
                taps = _as_taps(each["taps"], what)
            each = each["input"]
        variable = as_tensor_variable(each)
        if variable.type.ndim == 0:
            raise TypeError(
                f"{what} is {variable} of type {variable.type}{describe(variable.location)}, which has no "
                "rows to go through; give a tensor of at least one dimension, or pass it in non_sequences"
            )
        found.append(SequenceArgument(variable, taps))
    return found


def as_outputs(value: Given) -> list[OutputArgument] | None:
    """The argument ``outputs_info``; None when it says nothing.

    Raises:
        ValueError: unknown keys, taps that are no negative numbers or come without an initial value.
    """
    given = listed(value)
    return [_as_output(each, f"outputs_info[{i}]") for i, each in enumerate(given)] if given else None


def _as_output(each: TensorLike | Mapping[str, Any] | None, what: str) -> OutputArgument:
    taps: tuple[int, ...] = (-1,)
    if isinstance(each, Mapping):
        # PyTensor's "inplace" is accepted; compiled code decides that itself.
        _check_keys(each, {"initial", "taps", "inplace"}, what)
        if each.get("taps") is not None:
            taps = _as_taps(each["taps"], what)
            if each.get("initial") is None:
                raise ValueError(
                    f"{what} reads earlier rows (taps {list(taps)}) but has no 'initial' to start from: give "
                    f"dict(initial=x, taps={list(taps)}) where x has {-min(taps)} rows, oldest first"
                )
        each = each.get("initial")
    if each is None:
        return OutputArgument()
    if max(taps) >= 0:
        raise ValueError(
            f"{what} has taps {list(taps)}, but an iteration can read earlier rows of an output only: taps "
            "must be below 0"
        )
    if len(set(taps)) < len(taps):
        raise ValueError(f"{what} has a tap twice: {list(taps)}")
    return OutputArgument(each if isinstance(each, Variable) else as_tensor_variable(each), taps)


def _as_taps(taps: Sequence[int], what: str) -> tuple[int, ...]:
    given = [taps] if isinstance(taps, int | np.integer) else taps
    try:
        found = tuple(each.__index__() for each in given)
    except (TypeError, AttributeError):
        raise TypeError(f"the taps of {what} must be a list of integers, got {taps!r}") from None
    if not found:
        raise ValueError(f"{what} has an empty list of taps; leave taps out for the default")
    return found


def _check_keys(given: Mapping[str, Any], known: set[str], what: str) -> None:
    unknown = sorted(map(str, set(given) - known))
    if unknown:
        raise ValueError(f"{what} has unknown keys {unknown}; it takes {sorted(known)}")


def as_steps(value: TensorLike, what: str) -> TensorVariable:
    """A number of iterations as a 0-d integer.

    Raises:
        TypeError: no integer scalar.
        ValueError: known to be negative.
    """
    v = operand(value, f"n_steps of {what} must be an integer scalar", 0, 0, "iu", TypeError)
    known = known_size(v)
    if known is not None and known < 0:
        raise ValueError(
            f"n_steps of {what} must be at least 0, got {known}; go_backwards=True reads sequences from the "
            "end"
        )
    return v if v.type.dtype == "int64" else v.astype("int64")
