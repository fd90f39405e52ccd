# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""A compiled function in memory, and Python callables made from it."""

from __future__ import annotations

import ctypes
from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

import numpy as np

from graphc_runtime import layout, symbols
from graphc_runtime import threads as threads  # finds the symbols of the pool
from graphc_runtime.artifact import Artifact
from graphc_runtime.cpu import missing_features
from graphc_runtime.errors import LoadError, Origin, status_error
from graphc_runtime.kernel_call import KernelCall, OnError
from graphc_runtime.loader import load_object
from graphc_runtime.manifest import Signature
from graphc_runtime.worker import apart

Where = Callable[[str], Origin]

_METH_FASTCALL_KEYWORDS = 0x82
_ENTRIES = {"struct": "graphc_entry", "buffer": "graphc_entry_buffer"}


class _MethodDef(ctypes.Structure):
    _fields_ = [
        ("name", ctypes.c_char_p),
        ("function", ctypes.c_void_p),
        ("flags", ctypes.c_int),
        ("doc", ctypes.c_char_p),
    ]


# CPython reads a function's PyMethodDef when it frees the function, so none is ever freed; equal ones are
# shared.
_METHODS: dict[tuple[str, int, str], _MethodDef] = {}


class Kernel(NamedTuple):
    """Addresses of the functions of a kernel, for C code that calls it, as long as the executable lives.

    ``int64_t run(context, data, dims)``, ``int64_t shapes(context, data, dims, sizes)`` and
    ``void release(context)``, which has to follow each call; see "Code and run time" in the architecture.
    """

    run: int
    shapes: int
    release: int


class Executable:
    """Loaded code of an artifact. Pickles as the artifact's bytes; many threads may call what it binds.

    Args:
        artifact: manifest and object.

    Raises:
        LoadError: the code does not fit this machine, or a symbol it needs is missing.
    """

    def __init__(self, artifact: Artifact) -> None:
        self.artifact = artifact
        self.manifest = artifact.manifest
        missing = missing_features(self.manifest.target)
        if missing:
            raise LoadError(
                f"the code needs CPU features that are not here: {', '.join(missing)}; compile it again"
            )
        # Symbols may be in modules that have to be imported.
        self._loaded = apart(load_object, artifact.code, symbols.resolve)

    @classmethod
    def from_bytes(cls, data: bytes) -> Executable:
        """Loads `Artifact.to_bytes`.

        Raises:
            ArtifactError: damaged bytes.
            LoadError: the code cannot run here.
        """
        return cls(Artifact.from_bytes(data))

    def __reduce__(self) -> tuple[Any, ...]:
        return Executable.from_bytes, (self.artifact.to_bytes(),)

    def __deepcopy__(self, memo: dict[int, Any]) -> Executable:
        """Itself: code does not change."""
        return self

    @property
    def tier(self) -> str:
        """Kind of entry that `bind` uses: the best that process and object both have."""
        best = layout.tier()
        if best == "struct" and self.manifest.tuple_items != layout.tuple_items():
            best = "buffer"
        for tier in layout.TIERS[layout.TIERS.index(best) : -1]:
            if tier in self.manifest.entries:
                return tier
        return "python"

    def bind(
        self,
        cells: Sequence[list[Any]] = (),
        fallback: Callable[..., Any] | None = None,
        on_error: OnError | None = None,
        *,
        where: Where | None = None,
        name: str | None = None,
        doc: str = "",
    ) -> Callable[..., Any]:
        """A callable `f(*inputs, out=None)`.

        Args:
            cells: one-element lists, one for each cell of the manifest. A call reads them when it begins;
                updates replace the items after everything else has succeeded.
            fallback: takes the arguments of calls that are out of the ordinary (other types, layouts,
                keywords); without it they are converted by `graphc_runtime.marshal`.
            on_error: called with (status, given, expected) when a check fails; raises. Without it, the
                manifest's message is raised.
            where: gives what is known of a node of the graph, for errors.
            name: name of the callable.
            doc: its docstring.

        Returns:
            A builtin function, or a Python object in the "python" tier. With `out=` (an array, or a
            tuple or list of them), results go there; after a failed call their content is undefined.

        Raises:
            TypeError: the cells do not fit the manifest.
        """
        name = name or self.manifest.signature.name
        tier = self.tier
        if tier == "python":
            return self._kernel_call(cells, fallback, on_error, where)
        native_self = self.native_self(cells, fallback, on_error, where=where)
        method = _method(name, self._loaded.address(_ENTRIES[tier]), doc)
        new = ctypes.pythonapi["PyCFunction_NewEx"]
        new.restype, new.argtypes = ctypes.py_object, [ctypes.c_void_p, ctypes.py_object, ctypes.py_object]
        function: Callable[..., Any] = new(ctypes.addressof(method), native_self, None)
        return function

    def native_self(
        self,
        cells: Sequence[list[Any]] = (),
        fallback: Callable[..., Any] | None = None,
        on_error: OnError | None = None,
        *,
        where: Where | None = None,
    ) -> tuple[Any, ...]:
        """The tuple that native entries work with; it keeps the code alive. Arguments as in `bind`."""
        call = self._kernel_call(cells, None, on_error, where)
        handler = on_error or self._handler(where)
        return (fallback or call, handler, self._loaded, *cells)

    def kernel_call(self, signature: Signature, *, where: Where | None = None) -> KernelCall:
        """A Python callable for another form of call of the same kernels.

        Args:
            signature: the same arguments and results as the manifest's, in the same order; none of them cells
                or updates.
            where: gives what is known of a node of the graph, for errors.
        """
        return KernelCall(self._loaded, signature, (), self._handler(where), reuse=False)

    @property
    def kernel(self) -> Kernel:
        """The kernel, for C code."""
        names = ("graphc_run", "graphc_shapes", "graphc_release")
        return Kernel(*map(self._loaded.address, names))

    def arguments(self, inputs: Sequence[Any], cells: Sequence[Any]) -> list[np.ndarray]:
        """Values of inputs and cells as arrays that the kernel takes.

        Raises:
            TypeError, ValueError: one cannot be converted without loss.
        """
        signature = self.manifest.signature
        return KernelCall(self._loaded, signature, (), self._handler(None)).arrays(inputs, cells)

    def vectorcall_address(self) -> int | None:
        """Address for `callable_type.install` with `native_self`; None if the tier is not "struct"."""
        return self._loaded.address("graphc_vectorcall") if self.tier == "struct" else None

    def _kernel_call(
        self,
        cells: Sequence[list[Any]],
        fallback: Callable[..., Any] | None,
        on_error: OnError | None,
        where: Where | None,
    ) -> KernelCall:
        expected = len(self.manifest.signature.cells)
        if len(cells) != expected or not all(type(cell) is list and len(cell) == 1 for cell in cells):
            raise TypeError(
                f"expected {expected} cells, each a list of one array; given {len(cells)}: {cells!r:.200}"
            )
        handler = on_error or self._handler(where)
        return KernelCall(self._loaded, self.manifest.signature, tuple(cells), handler, fallback)

    def _handler(self, where: Where | None) -> OnError:
        sites = self.manifest.sites

        def raise_status(status: int, given: int, expected: int) -> None:
            raise status_error(sites, status, given, expected, where)

        return raise_status


def _method(name: str, address: int, doc: str) -> _MethodDef:
    key = (name, address, doc)
    if key not in _METHODS:
        _METHODS[key] = _MethodDef(name.encode(), address, _METH_FASTCALL_KEYWORDS, doc.encode())
    return _METHODS[key]
