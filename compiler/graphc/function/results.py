# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""From computed values to results that belong to the caller."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from graphc.function.io import OutputForm
from graphc.graph.basic import Flags, Variables
from graphc.graph.tensor.type import TensorType
from graphc_runtime.cuda.interface import CUDA, MANAGED, has_dlpack
from graphc_runtime.marshal import is_on_device


def own_results(values: Sequence[object], inputs: Sequence[object], borrowed: Flags = ()) -> list[object]:
    """``values``, with arrays copied that are not their own: views, inputs, constants, and repeated ones.

    Args:
        values: what has been computed.
        inputs: what it has been computed from.
        borrowed: for the first values, whether they may share memory; a read-only one is copied all the same.
    """
    taken = set(map(id, inputs))
    results = []
    for i, value in enumerate(values):
        if isinstance(value, np.ndarray):
            may_share = i < len(borrowed) and borrowed[i] and value.flags.writeable
            if not may_share and (value.base is not None or id(value) in taken or not value.flags.writeable):
                value = np.array(value, order="C", copy=True, subok=False)
            taken.add(id(value))
        results.append(value)
    return results


def canonical(array: np.ndarray) -> np.ndarray:
    """The array in the layout that machine code takes: C-contiguous, aligned, and of no subclass."""
    if type(array) is np.ndarray and array.flags.c_contiguous and array.flags.aligned:
        return array
    return np.array(array, order="C", copy=True, subok=False)


class Buffers:
    """The arrays that a call was given as ``out=``.

    Args:
        out: an array, or arrays in the form of the outputs; None stands for a new array.
        form: the form of the outputs.
        outputs: the results.
        function: name for messages.
        on_device: whether the function computes on a device, and takes arrays there.

    Attributes:
        arrays: one array, or None, for each result.
        on_device: of these, those that are on a device, which the call itself writes to and checks.

    Raises:
        TypeError: ``out`` has another form than the outputs, or something in it is no array, of a subclass,
            or of another dtype.
        ValueError: an array has another number of dimensions or static shape than its result, is not
            C-contiguous, aligned or writeable, or shares memory with another one.
    """

    def __init__(
        self, out: Any, form: OutputForm, outputs: Variables, function: str, *, on_device: bool = False
    ) -> None:
        self._outputs, self._function = outputs, function
        given = form.flatten(out, f"out= of {function}")
        there = [on_device and _is_of_device(value) for value in given]
        self.arrays: list[np.ndarray | None] = [None if d else x for x, d in zip(given, there, strict=True)]
        self.on_device = [x if d else None for x, d in zip(given, there, strict=True)]
        for i, array in enumerate(self.arrays):
            if array is not None:
                self._check(i, array)
        self._check_apart()

    def store(self, results: Sequence[Any]) -> list[Any]:
        """Copies results into the arrays and returns what the caller gets.

        Raises:
            ValueError: an array has another shape than its result. Nothing has been written then.
        """
        for i, (result, array) in enumerate(zip(results, self.arrays, strict=True)):
            if array is not None and array.shape != result.shape:
                what = f"must have shape {result.shape}, got {array.shape}"
                raise ValueError(self._message(i, array, what, result.shape))
        stored = []
        for result, array in zip(results, self.arrays, strict=True):
            if array is not None:
                np.copyto(array, result)
            stored.append(result if array is None else array)
        return stored

    def _check(self, i: int, array: object) -> None:
        wanted = self._outputs[i].type
        if not isinstance(array, np.ndarray):
            raise TypeError(f"{self._name(i)} must be an array, got {type(array).__name__}")
        if not isinstance(wanted, TensorType):
            raise TypeError(f"{self._name(i)} of type {wanted} cannot be given: it is no array")
        if type(array) is not np.ndarray:
            raise TypeError(
                f"{self._name(i)} must be a plain array, got the subclass {type(array).__name__}; "
                "pass np.asarray(...) of it"
            )
        if str(array.dtype) != wanted.dtype:
            what = f"must have dtype {wanted.dtype}, got dtype {array.dtype}"
            raise TypeError(self._message(i, array, what))
        fits = array.ndim == wanted.ndim and all(
            want in (None, have) for have, want in zip(array.shape, wanted.shape, strict=True)
        )
        if not fits:
            raise ValueError(
                self._message(i, array, f"must have shape {_shape(wanted.shape)}, got {array.shape}")
            )
        if not array.flags.writeable:
            raise ValueError(self._message(i, array, "must be writeable, and is read-only"))
        if not array.flags.c_contiguous:
            strides = _c_strides(array.shape, array.itemsize)
            what = f"must be C-contiguous, with strides {strides}, got {array.strides}"
            raise ValueError(self._message(i, array, what))
        if not array.flags.aligned:
            raise ValueError(
                self._message(i, array, f"must be aligned to {array.dtype.alignment} bytes, and is not")
            )

    def _check_apart(self) -> None:
        # C-contiguous arrays share memory exactly if their bounds overlap.
        given = [(i, array) for i, array in enumerate(self.arrays) if array is not None]
        for position, (i, array) in enumerate(given):
            for j, other in given[:position]:
                if np.may_share_memory(array, other):
                    raise ValueError(
                        f"{self._name(i)} shares memory with that for result {j}; give arrays apart from "
                        "each other"
                    )

    def _name(self, i: int) -> str:
        name = self._outputs[i].name
        return f"out= of {self._function} for result {i}" + (f" {name!r}" if name else "")

    def _message(self, i: int, array: np.ndarray, what: str, shape: tuple[int, ...] | None = None) -> str:
        """The error, then all that is needed and all that was given."""
        wanted: Any = self._outputs[i].type
        needed = shape if shape is not None else wanted.shape
        item = np.dtype(wanted.dtype).itemsize
        strides = "C-contiguous" if None in needed else f"strides {_c_strides(needed, item)} (C-contiguous)"
        flags = [
            "aligned" if array.flags.aligned else "not aligned",
            "writeable" if array.flags.writeable else "read-only",
        ]
        return (
            f"{self._name(i)} {what}; needed: dtype {wanted.dtype}, shape {_shape(needed)}, {strides}, "
            f"aligned, writeable; given: dtype {array.dtype}, shape {array.shape}, strides {array.strides}, "
            f"{', '.join(flags)}"
        )


def _is_of_device(value: object) -> bool:
    """True if a value is an array of a device, of ours or of another library."""
    if is_on_device(value):
        return True
    if not isinstance(value, np.ndarray) and has_dlpack(value):
        return value.__dlpack_device__()[0] in (CUDA, MANAGED)
    return False


def _shape(shape: Sequence[int | None]) -> str:
    sizes = ["?" if size is None else str(size) for size in shape]
    return f"({sizes[0]},)" if len(sizes) == 1 else f"({', '.join(sizes)})"


def _c_strides(shape: Sequence[Any], item: int) -> tuple[int, ...]:
    strides: list[int] = []
    for size in reversed(shape):
        strides.insert(0, item)
        item *= size
    return tuple(strides)
