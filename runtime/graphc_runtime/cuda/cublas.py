# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Matrix products by cuBLAS, where it is installed: found, and asked by ctypes.

It is NVIDIA's package `nvidia-cublas-cu12` or `nvidia-cublas`, or where the system looks for libraries.
"""

from __future__ import annotations

import ctypes
import importlib.util
import sys
import threading
from collections.abc import Callable, Sequence
from functools import lru_cache, partial
from pathlib import Path

from graphc_runtime.cuda.calls import Bound
from graphc_runtime.cuda.driver import DeviceMemoryError, DriverError
from graphc_runtime.cuda.gemm import Gemm

# Versions that have functions for sizes of 64 bits, newest first, and folders in packages of NVIDIA.
_VERSIONS = (13, 12)
_FOLDERS = {13: ("cu13/lib", "cu13/bin/x86_64"), 12: ("cublas/lib", "cublas/bin")}
_HANDLE, _LONG, _INT = ctypes.c_void_p, ctypes.c_int64, ctypes.c_int
# Names of the library's interface (library_types.h, cublas_api.h): dtypes, ways to add up, and others.
_DTYPES = {"float32": 0, "float64": 1, "float16": 2, "complex64": 4, "complex128": 5}
_COMPUTE_32F, _COMPUTE_64F, _COMPUTE_32F_FAST_TF32 = 68, 70, 77
_ALLOC_FAILED, _DEFAULT = 3, -1
_NAMES = {
    "cublasCreate_v2": (ctypes.POINTER(_HANDLE),),
    "cublasSetStream_v2": (_HANDLE, _HANDLE),
    "cublasSetWorkspace_v2": (_HANDLE, _HANDLE, ctypes.c_size_t),
}
# What NVIDIA recommends: on devices from sm_90 on, and on others.
_WORKSPACE, _SMALL_WORKSPACE = 32 << 20, 4 << 20
_WITHOUT = "GRAPHC_CUBLAS=0 does without it"


@lru_cache
def find_library(version: int) -> ctypes.CDLL | None:
    """The newest one that is installed and not newer than the driver; None if there is none.

    Args:
        version: of the driver, such as 12040.

    Raises:
        DriverError: it is there, but does not load.
    """
    for major in _VERSIONS:
        if version < major * 1000:
            continue
        name = f"cublas64_{major}.dll" if sys.platform == "win32" else f"libcublas.so.{major}"
        for folder in _folders(major):
            if (folder / name).is_file():
                return _loaded(folder, name)
        try:
            return ctypes.CDLL(name)
        except OSError:
            continue
    return None


def _folders(major: int) -> list[Path]:
    found = importlib.util.find_spec("nvidia")
    roots = [] if found is None else list(found.submodule_search_locations or ())
    return [Path(root, folder) for root in roots for folder in _FOLDERS[major]]


def _loaded(folder: Path, name: str) -> ctypes.CDLL:
    try:
        # It looks for this one by name.
        other = folder / name.replace("cublas", "cublasLt", 1)
        if other.is_file():
            ctypes.CDLL(str(other))
        return ctypes.CDLL(str(folder / name))
    except OSError as error:
        raise DriverError(f"cuBLAS is at {folder / name}, but does not load: {error}; {_WITHOUT}") from None


class Cublas:
    """The library, for one device.

    There is one handle, which one thread uses at a time: work of two products in one stream never mixes. Each
    stream has memory for intermediate results, so that equal products give equal bits. What is captured gets
    that of the main stream, in which graphs are launched.

    Args:
        library: of cuBLAS.
        allocate: gives memory of so many bytes, in the order of a stream.
        arch: of the device, whose context is current.
        main: the stream that functions share.

    Raises:
        DriverError: it does not start, or is too old.
    """

    def __init__(
        self, library: ctypes.CDLL, allocate: Callable[[int, int], int], arch: str, main: int
    ) -> None:
        self._library, self._allocate, self._main = library, allocate, main
        self._nbytes = _WORKSPACE if int(arch.removeprefix("sm_")) >= 90 else _SMALL_WORKSPACE
        self._lock = threading.Lock()
        self._workspaces: dict[int, int] = {}
        self._current: tuple[int, int] | None = None
        self._ones, self._zeros = ({name: _number(name, x) for name in _DTYPES} for x in (1.0, 0.0))
        try:
            self._one, self._many = (
                # Without types of arguments, objects of ctypes are passed as they are.
                library[name]
                for name in ("cublasGemmEx_64", "cublasGemmStridedBatchedEx_64")
            )
            for name, types in _NAMES.items():
                library[name]
                getattr(library, name).argtypes = types
            library.cublasGetStatusString.restype = ctypes.c_char_p
        except AttributeError as error:
            raise DriverError(f"cuBLAS has to be of version 12 or newer ({error}); {_WITHOUT}") from None
        handle = _HANDLE()
        status = int(library.cublasCreate_v2(ctypes.byref(handle)))
        if status:
            raise self._error("cublasCreate", status, f"; {_WITHOUT}")
        self._handle = handle
        self._workspace(main)

    def multiply(self, gemm: Gemm, matrices: Sequence[int], stream: int, *, captured: bool = False) -> None:
        """Asks for a product; see `Driver.multiply`.

        Args:
            gemm, matrices, stream: as there.
            captured: whether what the stream is asked for is written down.

        Raises:
            DriverError: the library refuses.
        """
        workspace = self._workspace(self._main if captured else stream)
        a, b, c = map(ctypes.c_uint64, matrices)
        call = self._call(gemm, a, b, c)
        with self._lock:
            status = self._enter(stream, workspace) or call()
        if status:
            raise self.failure(gemm, status)

    def bound(
        self, gemm: Gemm, matrices: tuple[ctypes.c_uint64, ctypes.c_uint64, ctypes.c_uint64], stream: int
    ) -> Bound:
        """As `multiply`, to be called again and again; addresses are read at each call."""
        workspace, call = self._workspace(stream), self._call(gemm, *matrices)

        def ask() -> int:
            with self._lock:
                return self._enter(stream, workspace) or call()

        return ask

    def failure(self, gemm: Gemm, status: int) -> DriverError:
        """The error of a product."""
        name = "cublasGemmEx" if gemm.count == 1 else "cublasGemmStridedBatchedEx"
        return self._error(name, status, f" for {gemm}")

    def _workspace(self, stream: int) -> int:
        """Memory for intermediate results of a stream."""
        found = self._workspaces.get(stream)
        if found is not None:
            return found
        with self._lock:
            if stream not in self._workspaces:
                try:
                    self._workspaces[stream] = self._allocate(self._nbytes, stream)
                except DeviceMemoryError as error:
                    text = f"{error}\n  for intermediate results of cuBLAS; {_WITHOUT}"
                    raise DeviceMemoryError(text, error.code, error.call) from None
            return self._workspaces[stream]

    def _enter(self, stream: int, workspace: int) -> int:
        """Makes the library work in a stream; gives a status. The lock is held."""
        if self._current == (stream, workspace):
            return 0
        self._current = None
        # A stream comes with other memory, so that it is said first.
        status = int(self._library.cublasSetStream_v2(self._handle, stream))
        status = status or int(self._library.cublasSetWorkspace_v2(self._handle, workspace, self._nbytes))
        if not status:
            self._current = stream, workspace
        return status

    def _call(self, gemm: Gemm, a: ctypes.c_uint64, b: ctypes.c_uint64, c: ctypes.c_uint64) -> Bound:
        """The function of the library with all its arguments."""
        kind, sums = (_INT(_DTYPES[name]) for name in (gemm.factors, gemm.sums))
        # What the product is multiplied by, and what C is multiplied by before.
        one = ctypes.byref(self._ones[gemm.sums])
        before = one if gemm.adds else ctypes.byref(self._zeros[gemm.sums])
        wide = gemm.sums in ("float64", "complex128")
        way = _COMPUTE_64F if wide else _COMPUTE_32F_FAST_TF32 if gemm.short else _COMPUTE_32F
        sizes, leading = map(_LONG, gemm.sizes), list(map(_LONG, gemm.leading))
        head = [self._handle, *map(_INT, gemm.transposed), *sizes, one]
        tail = [_INT(way), _INT(_DEFAULT)]
        if gemm.count == 1:
            sides = (a, kind, leading[0], b, kind, leading[1], before, c, sums, leading[2])
            return partial(self._one, *head, *sides, *tail)
        apart = list(map(ctypes.c_longlong, gemm.apart))
        left, right = (a, kind, leading[0], apart[0]), (b, kind, leading[1], apart[1])
        result = (c, sums, leading[2], apart[2], _LONG(gemm.count))
        return partial(self._many, *head, *left, *right, before, *result, *tail)

    def _error(self, name: str, status: int, more: str) -> DriverError:
        text = self._library.cublasGetStatusString(status) or b"unknown"
        kind = DeviceMemoryError if status == _ALLOC_FAILED else DriverError
        return kind(f"{text.decode(errors='replace')} ({name}, status {status}){more}", status, name)


def _number(name: str, value: float) -> ctypes.Array[ctypes.c_float] | ctypes.Array[ctypes.c_double]:
    """A number as the library reads it: of halves sums are float32, complex numbers are pairs."""
    if name in ("float64", "complex128"):
        return (ctypes.c_double * 2)(value, 0.0)
    return (ctypes.c_float * 2)(value, 0.0)
