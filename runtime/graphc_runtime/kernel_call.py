# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Calls kernels through ctypes: the "python" tier, and the way of all that native entries do not take."""

from __future__ import annotations

import ctypes
import sys
from collections.abc import Callable, Collection, Sequence
from typing import Any

import numpy as np

from graphc_runtime import interrupts
from graphc_runtime.commit import attempts, commit, snapshot, wait_for_turn
from graphc_runtime.loader import LoadedObject
from graphc_runtime.manifest import Signature
from graphc_runtime.marshal import canonical, check_out, is_canonical
from graphc_runtime.threads import is_alone

OnError = Callable[[int, int, int], Any]

# Foreign calls of this kind run without the GIL.
_SHAPES = ctypes.CFUNCTYPE(ctypes.c_int64, *[ctypes.c_void_p] * 4)
_RUN = ctypes.CFUNCTYPE(ctypes.c_int64, *[ctypes.c_void_p] * 3)
# This kind keeps it.
_RUN_ALONE = ctypes.PYFUNCTYPE(ctypes.c_int64, *[ctypes.c_void_p] * 3)
_RELEASE = ctypes.CFUNCTYPE(None, ctypes.c_void_p)
# References to what only a cell refers to, while they are counted; None where they are not.
_counts = getattr(sys, "getrefcount", None)
_cell = [object()]
_ALONE = None if _counts is None else _counts(_cell[0])


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
        self._run_alone = _RUN_ALONE(loaded.address("graphc_run"))
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
        for last in attempts():
            cells = self._owned_cells() if self._reuse else []
            lent = range(len(inputs)) if self._reuse and outs is None else ()
            if lent:
                # It cannot start anew.
                wait_for_turn()
            read = snapshot(self._cells)
            found = self._call(self.arrays(args, read), outs, {*lent, *cells}, bool(cells), read, last)
            if found is not _CHANGED:
                break
        return found

    def lend(self, own: Collection[int], args: Sequence[Any], *, alone: bool) -> Any:
        """A call that may compute results in the memory of the arguments `own`, and return these arrays.

        Args:
            own: positions; arrays there that are read-only, or share memory with others, stay as they are.
            args: one value for each input.
            alone: whether no other thread may run meanwhile.
        """
        return self._call(self.arrays(args), None, own, alone)

    def arrays(self, args: Sequence[Any], values: Sequence[Any] = ()) -> list[np.ndarray]:
        """The values of inputs and cells as the kernel takes them.

        Raises:
            TypeError, ValueError: one cannot be converted without loss.
        """
        inputs = self._signature.inputs
        if len(args) != len(inputs):
            names = ", ".join(spec.name or f"input {i}" for i, spec in enumerate(inputs)) or "none"
            raise TypeError(f"{self.__name__}() takes {len(inputs)} arguments ({names}), given {len(args)}")
        arrays = [
            canonical(value, spec, _name("input", i, spec.name)) for i, (value, spec) in _pairs(args, inputs)
        ]
        for i, (value, spec) in _pairs(values, self._signature.cells):
            arrays.append(canonical(value, spec, _name("shared variable", i, spec.name)))
        return arrays

    def _owned_cells(self) -> list[int]:
        """Positions of the cells that may be updated in place, because nobody else knows their values.

        Other threads must not see these values while they change: such calls keep the GIL.
        """
        first = len(self._signature.inputs)
        cells = [argument - first for argument, _ in self._signature.donated if argument >= first]
        return [first + i for i in cells if is_owner(self._cells[i])]

    def result_shapes(self, *args: Any) -> list[tuple[int, ...]]:
        """The shapes of the results for these inputs.

        Raises:
            ValueError, IndexError: a check of sizes fails.
        """
        inputs = self._signature.inputs
        arrays = [
            canonical(value, spec, _name("input", i, spec.name)) for i, (value, spec) in _pairs(args, inputs)
        ]
        context = _context()
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

    def _call(
        self,
        arrays: list[np.ndarray],
        outs: list[Any] | None,
        own: Collection[int],
        alone: bool,
        read: Sequence[Any] = (),
        last: bool = True,
    ) -> Any:
        """One call; `_CHANGED` if it has to be repeated, as another thread has replaced what `read` holds."""
        signature = self._signature
        context = _context()
        try:
            shapes = self._result_shapes(context, arrays)
            for i, out in enumerate(outs or ()):
                check_out(out, signature.outputs[i], shapes[i], f"{self.__name__}(out=), output {i}")
            given = {id(array) for array in arrays}
            results = self._results(arrays, shapes, own)
            overwrites = any(id(result) in given for result in results)
            data, dims = _pointers(arrays + results), _sizes(arrays + results)
            run = self._run
            if alone:
                run = self._run_alone
                context[interrupts.GIL_WORD] = interrupts.GIL_KEPT
            self._check(run(_at(context), _at(data), _at(dims)), context)
        finally:
            self._release(_at(context))
        outputs = results[: len(signature.outputs)]
        if outs is not None:
            for out, value in zip(outs, outputs, strict=True):
                out[...] = value
            outputs = outs
        if signature.updates:
            targets = [self._cells[update.cell] for update in signature.updates]
            new = results[len(outputs) :]
            if not commit(targets, new, self._cells, read):
                # What was overwritten cannot be read again; then the last call to end wins.
                if not (overwrites or last):
                    return _CHANGED
                commit(targets, new, (), ())
        return (
            outputs[0] if signature.returns == "single" else outputs if signature.returns == "list" else None
        )

    def _results(
        self, arrays: list[np.ndarray], shapes: list[tuple[int, ...]], own: Collection[int]
    ) -> list[np.ndarray]:
        """New arrays for the results, or those of arguments; what is lent is replaced in `arrays`."""
        signature = self._signature
        lent: dict[int, np.ndarray] = {}
        for argument, result in signature.donated:
            free = argument in own and _is_free(arrays, argument)
            lent[result] = arrays[argument] if free else arrays[argument].copy()
        for argument, result in signature.spares:
            if argument in own and arrays[argument].shape == shapes[result] and _is_free(arrays, argument):
                lent[result] = arrays[argument]
        for argument, result in signature.donated:
            arrays[argument] = lent[result]
        specs = enumerate(zip(shapes, signature.results, strict=True))
        return [lent[i] if i in lent else np.empty(shape, spec.dtype) for i, (shape, spec) in specs]

    def _result_shapes(self, context: Any, arrays: list[np.ndarray]) -> list[tuple[int, ...]]:
        results = self._signature.results
        fresh = (ctypes.c_int64 * (sum(spec.rank for spec in results) + 1))()
        if self._signature.needs_shapes:
            data, dims = _pointers(arrays), _sizes(arrays)
            self._check(self._shapes(_at(context), _at(data), _at(dims), _at(fresh)), context)
        dynamic = iter(fresh)
        return [tuple(next(dynamic) if size is None else size for size in spec.shape) for spec in results]

    def _check(self, status: int, context: Any) -> None:
        if status == interrupts.INTERRUPTED:
            interrupts.raise_kept(context)
        if status:
            given, expected = (ctypes.c_int64(context[i]).value for i in (1, 2))
            self._on_error(status, given, expected)
            raise RuntimeError("the error handler of a function did not raise")


_CHANGED = object()


def is_owner(cell: list[Any]) -> bool:
    """Whether nothing but a cell refers to its array, and nothing but the array to its memory.

    While other threads run, one of them could get the array before it is used.
    """
    if _counts is None or _counts(cell[0]) != _ALONE or type(cell[0]) is not np.ndarray or not is_alone():
        return False
    flags = cell[0].flags
    return cell[0].base is None and flags.owndata and flags.writeable


def _is_free(arrays: list[np.ndarray], position: int) -> bool:
    """Whether an array may be written to without another argument noticing."""
    array = arrays[position]
    others = arrays[:position] + arrays[position + 1 :]
    return array.flags.writeable and not any(np.may_share_memory(array, other) for other in others)


def _pairs(values: Sequence[Any], specs: Sequence[Any]) -> Any:
    return enumerate(zip(values, specs, strict=True))


def _name(what: str, index: int, name: str) -> str:
    return f"{what} {index} ({name})" if name else f"{what} {index}"


def _context() -> Any:
    """The context of a new call."""
    context = (ctypes.c_uint64 * interrupts.CONTEXT_WORDS)()
    context[interrupts.HOOKS_WORD] = interrupts.hooks()
    return context


def _at(array: Any) -> int:
    return ctypes.addressof(array)


def _pointers(arrays: list[np.ndarray]) -> Any:
    return (ctypes.c_void_p * (len(arrays) + 1))(*(array.ctypes.data for array in arrays))


def _sizes(arrays: list[np.ndarray]) -> Any:
    sizes = [size for array in arrays for size in array.shape]
    return (ctypes.c_int64 * (len(sizes) + 1))(*sizes)
