# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""From computed values to results that belong to the caller."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from graphc.function.io import OutputForm
from graphc.graph.basic import Variable


def own_results(values: Sequence[Any], inputs: Sequence[Any]) -> list[Any]:
    """``values``, with arrays copied that are not their own: views, inputs, constants, and repeated ones."""
    taken = {id(value) for value in inputs}
    results = []
    for value in values:
        if isinstance(value, np.ndarray):
            if value.base is not None or not value.flags.writeable or id(value) in taken:
                value = np.array(value, order="C", copy=True, subok=False)
            taken.add(id(value))
        results.append(value)
    return results


def canonical(array: np.ndarray) -> np.ndarray:
    """The array in the layout that machine code takes: C-contiguous, aligned, and of no subclass."""
    if type(array) is np.ndarray and array.flags.c_contiguous and array.flags.aligned:
        return array
    return np.array(array, order="C", copy=True, subok=False)


def as_buffers(
    out: Any, form: OutputForm, outputs: Sequence[Variable], function: str
) -> list[np.ndarray | None]:
    """One buffer, or None, for each result.

    Raises:
        TypeError: ``out`` is not an array, or not one for each result, or an array has another dtype or
            cannot be written.
    """
    if isinstance(out, np.ndarray) or form.is_single:
        sequence = list(out) if isinstance(out, list | tuple) else [out]
    elif isinstance(out, list | tuple):
        sequence = list(out)
    else:
        raise TypeError(
            f"out= of {function} must be an array or a sequence of arrays, got {type(out).__name__}"
        )
    if len(sequence) != form.count:
        raise TypeError(
            f"out= of {function} needs an array or None for each of {form.count} results, got {len(sequence)}"
        )
    for i, (buffer, v) in enumerate(zip(sequence, outputs, strict=False)):
        if buffer is None:
            continue
        if not isinstance(buffer, np.ndarray):
            raise TypeError(
                f"out= of {function} for result {i} must be an array, got {type(buffer).__name__}"
            )
        if str(buffer.dtype) != getattr(v.type, "dtype", None):
            raise TypeError(
                f"out= of {function} for result {i} must be of {v.type}, got dtype {buffer.dtype}"
            )
        if not buffer.flags.writeable:
            raise TypeError(f"out= of {function} for result {i} is read-only")
    return sequence


def store_in_buffers(
    results: Sequence[Any], buffers: Sequence[np.ndarray | None], function: str
) -> list[Any]:
    """Copy results into buffers and return what the caller gets.

    Raises:
        ValueError: a buffer has another shape than its result. Nothing has been written then.
    """
    for i, (result, buffer) in enumerate(zip(results, buffers, strict=True)):
        if buffer is not None and buffer.shape != result.shape:
            raise ValueError(
                f"out= of {function} for result {i} must have shape {result.shape}, got {buffer.shape}"
            )
    stored = []
    for result, buffer in zip(results, buffers, strict=True):
        if buffer is not None:
            np.copyto(buffer, result)
        stored.append(result if buffer is None else buffer)
    return stored
