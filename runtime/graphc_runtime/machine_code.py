# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Object code in memory, and builtin functions made from it."""

from __future__ import annotations

import ctypes
import hashlib
import weakref
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any, NamedTuple, Self

from graphc_runtime import layout, symbols
from graphc_runtime import threads as threads  # finds the symbols of the pool
from graphc_runtime.artifact import Artifact
from graphc_runtime.cpu import missing_features
from graphc_runtime.errors import LoadError
from graphc_runtime.executable import Executable, Where
from graphc_runtime.kernel import Kernel, MachineKernel, OnError
from graphc_runtime.loader import load_object
from graphc_runtime.worker import apart

if TYPE_CHECKING:
    from graphc_runtime.thunk import Register

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


class KernelAddresses(NamedTuple):
    """Addresses of the functions of a kernel, for C code that calls it, as long as the executable lives.

    ``int64_t run(context, data, dims)``, ``int64_t shapes(context, data, dims, sizes)`` and
    ``void release(context)``, which has to follow each call; see "Code and run time" in the architecture.
    """

    run: int
    shapes: int
    release: int


class MachineCode(Executable):
    """Loaded code of an artifact that holds an ELF object.

    Attributes:
        loaded: the code.

    Raises:
        LoadError: the code does not fit this machine, or a symbol it needs is missing.
    """

    def __init__(self, artifact: Artifact) -> None:
        super().__init__(artifact)
        missing = missing_features(self.manifest.target)
        if missing:
            raise LoadError(
                f"the code needs CPU features that are not here: {', '.join(missing)}; compile it again"
            )
        # Symbols may be in modules that have to be imported.
        self.loaded = apart(load_object, artifact.code, symbols.ADDRESSES.__getitem__)

    @classmethod
    def from_bytes(cls, data: bytes) -> Self:
        """As `Executable.from_bytes`; bytes that the process has loaded are not loaded again."""
        artifact = Artifact.from_bytes(data)
        key = (cls, hashlib.sha256(data).digest())
        known = _LOADED.get(key)
        if known is None:
            known = _LOADED.setdefault(key, cls(artifact))
        assert isinstance(known, cls)
        return known

    @property
    def kernel(self) -> KernelAddresses:
        """The kernel, for C code."""
        names = ("graphc_run", "graphc_shapes", "graphc_release")
        return KernelAddresses(*map(self.loaded.address, names))

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

    def make_kernel(self, on_error: OnError) -> Kernel:
        return MachineKernel(self.loaded, on_error)

    def bind(
        self,
        cells: Sequence[Register] = (),
        fallback: Callable[..., object] | None = None,
        on_error: OnError | None = None,
        *,
        where: Where | None = None,
        name: str | None = None,
        doc: str = "",
    ) -> Callable[..., Any]:
        """A builtin function, see `Executable.bind`; a Python object in the "python" tier."""
        tier = self.tier
        if tier == "python":
            return super().bind(cells, fallback, on_error, where=where)
        native_self = self.native_self(cells, fallback, on_error, where=where)
        method = _method(name or self.manifest.signature.name, self.loaded.address(_ENTRIES[tier]), doc)
        new = ctypes.pythonapi["PyCFunction_NewEx"]
        new.restype, new.argtypes = ctypes.py_object, [ctypes.c_void_p, ctypes.py_object, ctypes.py_object]
        function: Callable[..., Any] = new(ctypes.addressof(method), native_self, None)
        return function

    def native_self(
        self,
        cells: Sequence[Register] = (),
        fallback: Callable[..., object] | None = None,
        on_error: OnError | None = None,
        *,
        where: Where | None = None,
    ) -> tuple[Any, ...]:
        handler = on_error or self.handler(where)
        return (fallback or self._python_call(cells, None, handler), handler, self.loaded, *cells)

    def vectorcall_address(self) -> int | None:
        return self.loaded.address("graphc_vectorcall") if self.tier == "struct" else None


# What unpickled functions share.
_LOADED: weakref.WeakValueDictionary[tuple[type, bytes], MachineCode] = weakref.WeakValueDictionary()


def _method(name: str, address: int, doc: str) -> _MethodDef:
    key = (name, address, doc)
    if key not in _METHODS:
        _METHODS[key] = _MethodDef(name.encode(), address, _METH_FASTCALL_KEYWORDS, doc.encode())
    return _METHODS[key]
