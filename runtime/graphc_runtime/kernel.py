# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Kernels: machine code that is called through ctypes, or whatever else a target makes of a graph.

Machine code exports ``i64 graphc_shapes(ptr ctx, ptr data, ptr dims, ptr out_dims)`` and ``i64 graphc_run(ptr
ctx, ptr data, ptr dims)``. ``data`` are pointers, ``dims`` all their sizes flattened, in the order inputs,
cells, outputs, updates; `graphc_shapes` sees the first two and writes the dynamic sizes of results one after
the other. ``ctx`` points at ``{ptr arena_head, i64 given, i64 expected}`` and the words of
`graphc_runtime.interrupts`. Arrays are C-contiguous and aligned. Status 0 is success, k + 1 check k of the
manifest, -1 no memory, -2 damage that poisoned code found, -3 an exception of a signal handler.
``graphc_release(ctx)`` frees the arena.
"""

from __future__ import annotations

import ctypes
from abc import ABC, abstractmethod
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from graphc_runtime import interrupts
from graphc_runtime.loader import LoadedObject
from graphc_runtime.manifest import Signature

OnError = Callable[[int, int, int], Any]
Shape = tuple[int, ...]

# Foreign calls of this kind run without the GIL.
_SHAPES = ctypes.CFUNCTYPE(ctypes.c_int64, *[ctypes.c_void_p] * 4)
_RUN = ctypes.CFUNCTYPE(ctypes.c_int64, *[ctypes.c_void_p] * 3)
# This kind keeps it.
_RUN_ALONE = ctypes.PYFUNCTYPE(ctypes.c_int64, *[ctypes.c_void_p] * 3)
_RELEASE = ctypes.CFUNCTYPE(None, ctypes.c_void_p)


class Run(ABC):
    """One run of a kernel: the shapes of the results first, then the results, into arrays that are given."""

    @abstractmethod
    def shapes(self, arguments: Sequence[np.ndarray], signature: Signature) -> list[Shape]:
        """The shapes of the results.

        Raises:
            ValueError, IndexError, ...: a check fails.
        """

    @abstractmethod
    def compute(self, arguments: Sequence[np.ndarray], results: Sequence[np.ndarray], *, alone: bool) -> None:
        """Writes the results; a result may be an argument that the signature donates to it.

        Args:
            arguments: as the signature has them.
            results: arrays of the shapes that `shapes` gave.
            alone: whether no other thread may run meanwhile.

        Raises:
            ValueError, IndexError, ...: a check fails.
        """

    @abstractmethod
    def release(self) -> None:
        """Ends the run, whatever became of it."""


class Kernel(ABC):
    """The code that `Run` runs; any number of threads may have runs of it."""

    @abstractmethod
    def begin(self) -> Run:
        """A new run."""


class MachineKernel(Kernel):
    """The kernels of an object.

    Args:
        loaded: object code.
        on_error: called with status, given and expected when a kernel fails; raises.
    """

    def __init__(self, loaded: LoadedObject, on_error: OnError) -> None:
        self.on_error = on_error
        self._loaded = loaded  # keeps the code alive
        self.shapes = _SHAPES(loaded.address("graphc_shapes"))
        self.run = _RUN(loaded.address("graphc_run"))
        self.run_alone = _RUN_ALONE(loaded.address("graphc_run"))
        self.release = _RELEASE(loaded.address("graphc_release"))

    def begin(self) -> Run:
        return _MachineRun(self)


class _MachineRun(Run):
    def __init__(self, kernel: MachineKernel) -> None:
        self._kernel = kernel
        self._context = (ctypes.c_uint64 * interrupts.CONTEXT_WORDS)()
        self._context[interrupts.HOOKS_WORD] = interrupts.hooks()

    def shapes(self, arguments: Sequence[np.ndarray], signature: Signature) -> list[Shape]:
        results = signature.results
        fresh = (ctypes.c_int64 * (sum(spec.rank for spec in results) + 1))()
        if signature.needs_shapes:
            data, dims = _pointers(arguments), _sizes(arguments)
            self._check(self._kernel.shapes(_at(self._context), _at(data), _at(dims), _at(fresh)))
        dynamic = iter(fresh)
        return [tuple(next(dynamic) if size is None else size for size in spec.shape) for spec in results]

    def compute(self, arguments: Sequence[np.ndarray], results: Sequence[np.ndarray], *, alone: bool) -> None:
        arrays = [*arguments, *results]
        data, dims = _pointers(arrays), _sizes(arrays)
        run = self._kernel.run
        if alone:
            run = self._kernel.run_alone
            self._context[interrupts.GIL_WORD] = interrupts.GIL_KEPT
        self._check(run(_at(self._context), _at(data), _at(dims)))

    def release(self) -> None:
        self._kernel.release(_at(self._context))

    def _check(self, status: int) -> None:
        if status == interrupts.INTERRUPTED:
            interrupts.raise_kept(self._context)
        if status:
            given, expected = (ctypes.c_int64(self._context[i]).value for i in (1, 2))
            self._kernel.on_error(status, given, expected)
            raise RuntimeError("the error handler of a function did not raise")


def _at(array: Any) -> int:
    return ctypes.addressof(array)


def _pointers(arrays: Sequence[np.ndarray]) -> Any:
    return (ctypes.c_void_p * (len(arrays) + 1))(*(array.ctypes.data for array in arrays))


def _sizes(arrays: Sequence[np.ndarray]) -> Any:
    sizes = [size for array in arrays for size in array.shape]
    return (ctypes.c_int64 * (len(sizes) + 1))(*sizes)
