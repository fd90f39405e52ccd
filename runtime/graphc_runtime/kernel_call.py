# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Calls kernels through ctypes: the "python" tier, and the way of all that native entries do not take."""

from __future__ import annotations

import ctypes
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from graphc_runtime.loader import LoadedObject
from graphc_runtime.manifest import Signature
from graphc_runtime.marshal import canonical, check_out, is_canonical

OnError = Callable[[int, int, int], Any]

# Foreign calls of this kind run without the GIL.
_SHAPES = ctypes.CFUNCTYPE(ctypes.c_int64, *[ctypes.c_void_p] * 4)
_RUN = ctypes.CFUNCTYPE(ctypes.c_int64, *[ctypes.c_void_p] * 3)
_RELEASE = ctypes.CFUNCTYPE(None, ctypes.c_void_p)


class KernelCall:
    """A compiled function without native entry; the same results, errors and updates, only slower.

    Args:
        loaded: object code.
        signature: arguments and results.
        cells: one-element lists.
        on_error: called with status, given and expected when a kernel fails; raises.
        fallback: takes calls whose arguments are not canonical; without it they are converted here.
        reuse: whether donated inputs may be overwritten; otherwise the kernel gets copies of them.
    """

    def __init__(
        self,
        loaded: LoadedObject,
        signature: Signature,
        cells: Sequence[list[Any]],
        on_error: OnError,
        fallback: Callable[..., Any] | None = None,
        *,
        reuse: bool = True,
    ) -> None:
        self._reuse = reuse
        self._loaded, self._signature, self._cells = loaded, signature, cells
        self._on_error, self._fallback = on_error, fallback
        self._shapes = _SHAPES(loaded.address("graphc_shapes"))
        self._run = _RUN(loaded.address("graphc_run"))
        self._release = _RELEASE(loaded.address("graphc_release"))
        self.__name__ = signature.name

    def __call__(self, *args: Any, **keywords: Any) -> Any:
        """Calls the function; see `graphc_runtime.executable.Executable.bind`."""
        inputs = self._signature.inputs
        if self._fallback is not None:
            fine = len(args) == len(inputs) and not set(keywords) - {"out"}
            if not fine or not all(map(is_canonical, args, inputs)):
                return self._fallback(*args, **keywords)
        outs = self._outs(keywords)
        if len(args) != len(inputs):
            names = ", ".join(spec.name or f"input {i}" for i, spec in enumerate(inputs)) or "none"
            raise TypeError(f"{self.__name__}() takes {len(inputs)} arguments ({names}), given {len(args)}")
        arrays = [
            canonical(value, spec, _name("input", i, spec.name)) for i, (value, spec) in _pairs(args, inputs)
        ]
        values = [cell[0] for cell in self._cells]
        for i, (value, spec) in _pairs(values, self._signature.cells):
            arrays.append(canonical(value, spec, _name("shared variable", i, spec.name)))
        return self._call(arrays, outs)

    def result_shapes(self, *args: Any) -> list[tuple[int, ...]]:
        """The shapes of the results for these inputs.

        Raises:
            ValueError, IndexError: a check of sizes fails.
        """
        inputs = self._signature.inputs
        arrays = [
            canonical(value, spec, _name("input", i, spec.name)) for i, (value, spec) in _pairs(args, inputs)
        ]
        context = (ctypes.c_uint64 * 3)()
        try:
            return self._result_shapes(context, arrays)
        finally:
            self._release(_at(context))

    def _outs(self, keywords: dict[str, Any]) -> list[Any] | None:
        count = len(self._signature.outputs)
        unknown = sorted(set(keywords) - ({"out"} if count else set()))
        if unknown:
            raise TypeError(f"{self.__name__}() got an unexpected keyword argument {unknown[0]!r}")
        out = keywords.get("out")
        if out is None:
            return None
        if self._signature.returns == "single":
            return [out]
        if not isinstance(out, tuple | list) or len(out) != count:
            given = len(out) if isinstance(out, tuple | list) else type(out).__name__
            raise TypeError(
                f"{self.__name__}(out=): expected a tuple or list of {count} arrays, given {given}"
            )
        return list(out)

    def _call(self, arrays: list[np.ndarray], outs: list[Any] | None) -> Any:
        signature = self._signature
        context = (ctypes.c_uint64 * 3)()
        try:
            shapes = self._result_shapes(context, arrays)
            for i, out in enumerate(outs or ()):
                check_out(out, signature.outputs[i], shapes[i], f"{self.__name__}(out=), output {i}")
            results = [
                np.empty(shape, spec.dtype) for shape, spec in zip(shapes, signature.results, strict=True)
            ]
            for argument, result in signature.donated:
                results[result] = arrays[argument] = self._lend(arrays, argument, outs is None)
            data, dims = _pointers(arrays + results), _sizes(arrays + results)
            self._check(self._run(_at(context), _at(data), _at(dims)), context)
        finally:
            self._release(_at(context))
        outputs = results[: len(signature.outputs)]
        if outs is not None:
            for out, value in zip(outs, outputs, strict=True):
                out[...] = value
            outputs = outs
        for update, value in zip(signature.updates, results[len(outputs) :], strict=True):
            self._cells[update.cell][0] = value
        return (
            outputs[0] if signature.returns == "single" else outputs if signature.returns == "list" else None
        )

    def _lend(self, arrays: list[np.ndarray], position: int, alone: bool) -> np.ndarray:
        """Memory that holds a donated argument and may be overwritten: its own, or a copy."""
        array = arrays[position]
        others = arrays[:position] + arrays[position + 1 :]
        free = self._reuse and alone and position < len(self._signature.inputs) and array.flags.writeable
        if free and not any(np.may_share_memory(array, other) for other in others):
            return array
        return array.copy()

    def _result_shapes(self, context: Any, arrays: list[np.ndarray]) -> list[tuple[int, ...]]:
        results = self._signature.results
        fresh = (ctypes.c_int64 * (sum(spec.rank for spec in results) + 1))()
        if self._signature.needs_shapes:
            data, dims = _pointers(arrays), _sizes(arrays)
            self._check(self._shapes(_at(context), _at(data), _at(dims), _at(fresh)), context)
        dynamic = iter(fresh)
        return [tuple(next(dynamic) if size is None else size for size in spec.shape) for spec in results]

    def _check(self, status: int, context: Any) -> None:
        if status:
            given, expected = (ctypes.c_int64(context[i]).value for i in (1, 2))
            self._on_error(status, given, expected)
            raise RuntimeError("the error handler of a function did not raise")


def _pairs(values: Sequence[Any], specs: Sequence[Any]) -> Any:
    return enumerate(zip(values, specs, strict=True))


def _name(what: str, index: int, name: str) -> str:
    return f"{what} {index} ({name})" if name else f"{what} {index}"


def _at(array: Any) -> int:
    return ctypes.addressof(array)


def _pointers(arrays: list[np.ndarray]) -> Any:
    return (ctypes.c_void_p * (len(arrays) + 1))(*(array.ctypes.data for array in arrays))


def _sizes(arrays: list[np.ndarray]) -> Any:
    sizes = [size for array in arrays for size in array.shape]
    return (ctypes.c_int64 * (len(sizes) + 1))(*sizes)
