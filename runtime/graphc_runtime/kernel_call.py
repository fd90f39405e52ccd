# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Calls kernels from Python: the "python" tier, and the way of all that native entries do not take."""

from __future__ import annotations

import sys
from collections.abc import Callable, Collection, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from graphc_runtime.commit import attempts, commit, snapshot
from graphc_runtime.kernel import Kernel, Shape
from graphc_runtime.manifest import Signature
from graphc_runtime.marshal import canonical, check_out, is_canonical
from graphc_runtime.threads import is_alone

if TYPE_CHECKING:
    from graphc_runtime.manifest import ArraySpec

# References to what only a cell refers to, while they are counted; None where they are not.
_counts = getattr(sys, "getrefcount", None)
_cell = [object()]
_ALONE = None if _counts is None else _counts(_cell[0])


class KernelCall:
    """A compiled function without native entry; the same results, errors and updates, only slower.

    Args:
        kernel: what computes.
        signature: arguments and results.
        cells: one-element lists.
        fallback: takes calls whose arguments are not canonical; without it they are converted here.
        reuse: whether donated inputs may be overwritten; otherwise the kernel gets copies of them.
    """

    def __init__(
        self,
        kernel: Kernel,
        signature: Signature,
        cells: Sequence[list[Any]] = (),
        fallback: Callable[..., Any] | None = None,
        *,
        reuse: bool = True,
    ) -> None:
        self._reuse = reuse
        self._kernel, self._signature, self._cells = kernel, signature, cells
        self._fallback = fallback
        self.__name__ = signature.name

    def __call__(self, *args: Any, **keywords: Any) -> Any:
        """Calls the function; see `graphc_runtime.executable.Executable.bind`."""
        inputs = self._signature.inputs
        if self._fallback is not None:
            fine = len(args) == len(inputs) and not set(keywords) - {"out"}
            if not fine or not all(map(is_canonical, args, inputs)):
                return self._fallback(*args, **keywords)
        outs = self._outs(keywords)
        for last in attempts(once=self._reuse and len(self._signature.updates) > 0):
            cells = self._owned_cells() if self._reuse else []
            lent = range(len(inputs)) if self._reuse and outs is None else ()
            read = snapshot(self._cells)
            found = self._call(self.arrays(args, read), outs, {*lent, *cells}, bool(cells), read, last)
            if found is not _CHANGED:
                break
        return found

    def lend(self, own: Collection[int], args: Sequence[np.ndarray], *, alone: bool) -> list[np.ndarray]:
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

    def result_shapes(self, *args: np.ndarray) -> list[Shape]:
        """The shapes of the results for these inputs.

        Raises:
            ValueError, IndexError: a check of sizes fails.
        """
        inputs = self._signature.inputs
        arrays = [
            canonical(value, spec, _name("input", i, spec.name)) for i, (value, spec) in _pairs(args, inputs)
        ]
        run = self._kernel.begin()
        try:
            return run.shapes(arrays, self._signature)
        finally:
            run.release()

    def _outs(self, keywords: dict[str, object]) -> list[Any] | None:
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
        run = self._kernel.begin()
        try:
            shapes = run.shapes(arrays, signature)
            for i, out in enumerate(outs or ()):
                check_out(out, signature.outputs[i], shapes[i], f"{self.__name__}(out=), output {i}")
            given = {id(array) for array in arrays}
            results = self._results(arrays, shapes, own)
            overwrites = any(id(result) in given for result in results)
            run.compute(arrays, results, alone=alone)
        finally:
            run.release()
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
        self, arrays: list[np.ndarray], shapes: list[Shape], own: Collection[int]
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


_CHANGED = object()


def is_owner(cell: list[np.ndarray]) -> bool:
    """True if nothing but a cell refers to its array, and nothing but the array to its memory.

    While other threads run, one of them could get the array before it is used.
    """
    if _counts is None or _counts(cell[0]) != _ALONE or type(cell[0]) is not np.ndarray or not is_alone():
        return False
    flags = cell[0].flags
    return cell[0].base is None and flags.owndata and flags.writeable


def _is_free(arrays: list[np.ndarray], position: int) -> bool:
    """True if an array may be written to without another argument noticing."""
    array = arrays[position]
    others = arrays[:position] + arrays[position + 1 :]
    return array.flags.writeable and not any(np.may_share_memory(array, other) for other in others)


def _pairs(values: Sequence[Any], specs: Sequence[ArraySpec]) -> Any:
    return enumerate(zip(values, specs, strict=True))


def _name(what: str, index: int, name: str) -> str:
    return f"{what} {index} ({name})" if name else f"{what} {index}"
