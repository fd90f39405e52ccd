# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""NVIDIA's libraries, where they are installed: found, started once a device, and asked by ctypes.

`LIBRARIES` says where each is, `ROUTINES` what it is asked for: a function, its arguments by name, and how
many elements of each array it touches. Matrices have their columns one after the other in memory, so that an
array in row-major order is its transpose to them. Who asks has chosen sides and triangles accordingly; no
matrix is turned round here. A library is an optional package of NVIDIA's, `nvidia-cublas-cu12` or
`nvidia-cublas` and so on, or where the system looks for libraries.

Equal requests give equal bits: of several algorithms a deterministic one is taken, by sizes alone.
"""

from __future__ import annotations

import ctypes
import importlib.util
import math
import os
import sys
from collections.abc import Mapping, Sequence
from functools import cached_property, lru_cache
from pathlib import Path
from typing import ClassVar, TypeAlias

from graphc_runtime.cuda.driver import DriverError
from graphc_runtime.cuda.gemm import Gemm
from graphc_runtime.errors import ArtifactError
from graphc_runtime.record import record

# -- which there are ----------------------------------------------------------------------------------------


@record(frozen=True)
class Library:
    """A library.

    Attributes:
        title: as errors name it.
        versions: its own, by that of CUDA, newest first.
        needs: what it looks for by name, in folders of NVIDIA's packages, with their versions.
        setting: the environment variable without which it is used.
    """

    title: str
    versions: Mapping[int, int]
    needs: Mapping[str, Mapping[int, int]]
    setting: str = "GRAPHC_CUDA_LIBRARIES"

    @property
    def without(self) -> str:
        """Advice for doing without it."""
        return f"{self.setting}=0 does without it"


_SAME = {13: 13, 12: 12}
_BLAS = {"cublasLt": _SAME, "cublas": _SAME}
LIBRARIES = {
    "cublas": Library("cuBLAS", _SAME, {"cublasLt": _SAME}, "GRAPHC_CUBLAS"),
    "cusolver": Library(
        "cuSOLVER", {13: 12, 12: 11}, {"nvJitLink": _SAME, "cusparse": {13: 12, 12: 12}, **_BLAS}
    ),
    "cufft": Library("cuFFT", {13: 12, 12: 11}, {}),
    "cudnn": Library("cuDNN", {13: 9, 12: 9}, {"nvrtc": _SAME, **_BLAS}),
}
# Packages whose files are in folders of other names.
_FOLDERS = {"cublasLt": "cublas", "nvJitLink": "nvjitlink", "nvrtc": "cuda_nvrtc"}


class _Settings:
    """Switches of libraries, by variable of the environment; read when first asked."""

    are_used: ClassVar[dict[str, bool]] = {}


def is_enabled(name: str) -> bool:
    """True if a library may be used.

    Raises:
        ValueError: its variable of the environment is neither yes nor no.
    """
    setting = LIBRARIES[name].setting
    if setting not in _Settings.are_used:
        given = (os.environ.get(setting) or "1").lower()
        if given not in ("0", "1", "false", "true"):
            raise ValueError(f"{setting} is {given!r}; expected one of 0, 1, false, true")
        _Settings.are_used[setting] = given in ("1", "true")
    return _Settings.are_used[setting]


def enable(setting: str, is_used: bool) -> None:
    """Says whether libraries with a setting may be used, by functions that have not been called yet."""
    _Settings.are_used[setting] = is_used


@lru_cache
def find_library(name: str, version: int) -> ctypes.CDLL | None:
    """The newest one that is installed and not newer than the driver; None if there is none.

    Args:
        name: of `LIBRARIES`.
        version: of the driver, such as 12040.

    Raises:
        DriverError: it is there, but does not load.
    """
    library = LIBRARIES[name]
    for cuda, own in library.versions.items():
        if version < cuda * 1000:
            continue
        path = _place(name, cuda, own)
        if path is not None:
            return _loaded(library, path, cuda)
        try:
            return ctypes.CDLL(_file(name, own))
        except OSError:
            continue
    return None


def _file(name: str, version: int) -> str:
    return f"{name}64_{version}.dll" if sys.platform == "win32" else f"lib{name}.so.{version}"


def _place(name: str, cuda: int, version: int) -> Path | None:
    """Path of a library in a package for a version of CUDA."""
    found = importlib.util.find_spec("nvidia")
    own = _FOLDERS.get(name, name)
    folders = [f"{own}/lib", f"{own}/bin"]
    if cuda >= 13:
        # One folder for all but cuDNN, whose versions are others.
        folders = ["cu13/lib", "cu13/bin/x86_64", *(folders if name == "cudnn" else ())]
    for root in [] if found is None else list(found.submodule_search_locations or ()):
        for folder in folders:
            path = Path(root, folder, _file(name, version))
            if path.is_file():
                return path
    return None


def _loaded(library: Library, path: Path, cuda: int) -> ctypes.CDLL:
    try:
        for other, versions in library.needs.items():
            needed = _place(other, cuda, versions[cuda])
            if needed is not None:
                ctypes.CDLL(str(needed))
        return ctypes.CDLL(str(path))
    except OSError as error:
        raise DriverError(
            f"{library.title} is at {path}, but does not load: {error}; {library.without}"
        ) from None


# -- what they are asked for --------------------------------------------------------------------------------


@record(frozen=True)
class Routine:
    """A function of a library.

    Words of `takes` are its arguments: `handle`; numbers; arrays as `name:size`, the size being a product of
    numbers; `memory` for intermediate results, and `room`, its elements; `one` and `none`, pointers to 1 and
    to nothing. Numbers after a bar are for sizes alone. Requests have numbers and arrays in that order.

    Attributes:
        library: of `LIBRARIES`.
        function: its name; "{}" stands for the letter of the dtype.
        takes: its arguments.
        asks: those of the function that gives the elements of memory, whose name ends in "_bufferSize" and
            which is given no arrays; a pointer comes last. Empty if it needs no memory.
        captured: whether it may be asked for while a stream is captured.
    """

    library: str
    function: str
    takes: str
    asks: str = ""
    captured: bool = False

    @cached_property
    def words(self) -> tuple[tuple[str, str], ...]:
        """Arguments: name and size; the latter is empty for what is no array."""
        words = self.takes.partition("|")[0].split()
        return tuple((name, size) for name, _, size in (word.partition(":") for word in words))

    @cached_property
    def numbers(self) -> tuple[str, ...]:
        """Names of its numbers."""
        given = [name for name, size in self.words if not size and name not in _NO_NUMBERS]
        return (*given, *self.takes.partition("|")[2].split())

    @cached_property
    def arrays(self) -> tuple[str, ...]:
        """Sizes of its arrays."""
        return tuple(size for _, size in self.words if size)


_NO_NUMBERS = frozenset(("handle", "memory", "room", "one", "none"))
ROUTINES = {
    # Factors of a symmetric positive definite matrix, in one of its triangles.
    "potrf": Routine(
        "cusolver",
        "cusolverDn{}potrf",
        "handle upper n a:lda*n lda memory room info:1",
        asks="handle upper n a lda",
    ),
    # LU factors with row exchanges, in place.
    "getrf": Routine(
        "cusolver",
        "cusolverDn{}getrf",
        "handle m n a:lda*n lda memory pivots:n info:1",
        asks="handle m n a lda",
    ),
    # Solutions by LU factors, in place of the right sides.
    "getrs": Routine(
        "cusolver", "cusolverDn{}getrs", "handle across n k a:lda*n lda pivots:n b:ldb*k ldb info:1"
    ),
    # Solutions of triangular systems, in place of the right sides; `order` is the matrix's.
    "trsm": Routine(
        "cublas",
        "cublas{}trsm_v2",
        "handle right upper across unit m n one a:lda*order lda b:ldb*n ldb | order",
        captured=True,
    ),
    # The same of one right side, whose numbers are `step` apart.
    "trsv": Routine(
        "cublas",
        "cublas{}trsv_v2",
        "handle upper across unit n a:lda*n lda x:step*n step",
        captured=True,
    ),
    # Eigenvalues, ascending, and with `vectors` the eigenvectors of a symmetric matrix, in its place.
    "syevd": Routine(
        "cusolver",
        "cusolverDn{}syevd",
        "handle vectors upper n a:lda*n lda values:n memory room info:1",
        asks="handle vectors upper n a lda values",
    ),
    # Reflectors of a QR decomposition, in place, and their factors; `k` is the smaller side.
    "geqrf": Routine(
        "cusolver",
        "cusolverDn{}geqrf",
        "handle m n a:lda*n lda tau:k memory room info:1 | k",
        asks="handle m n a lda",
    ),
    # The first `n` columns of the orthogonal factor, in place of its `k` reflectors.
    "orgqr": Routine(
        "cusolver",
        "cusolverDn{}orgqr",
        "handle m n k a:lda*n lda tau:k memory room info:1",
        asks="handle m n k a lda tau",
    ),
    # Singular values and vectors of a matrix with no more columns than rows; its own place is lost.
    "gesvd": Routine(
        "cusolver",
        "cusolverDn{}gesvd",
        "handle left right m n a:lda*n lda values:n u:ldu*wide ldu v:ldv*n ldv memory room none info:1"
        " | wide",
        asks="handle m n",
    ),
}
_SIZES = "n c h w o d p q r s pad_h pad_w stride_h stride_w dilation_h dilation_w groups short"
# Cross-correlations of images (n, c, h, w) and filters (o, d, p, q), and their adjoints; with `short` factors
# of float32 may be rounded to 10 bits.
ROUTINES |= {
    "conv2d": Routine("cudnn", "Forward", f"x:n*c*h*w f:o*d*p*q y:n*o*r*s | {_SIZES}"),
    "conv2d_input": Routine("cudnn", "BackwardData", f"f:o*d*p*q y:n*o*r*s x:n*c*h*w | {_SIZES}"),
    "conv2d_filters": Routine("cudnn", "BackwardFilter", f"x:n*c*h*w y:n*o*r*s f:o*d*p*q | {_SIZES}"),
}
# Transforms of rows, and with `columns` of the columns of a matrix, which are not divided by their size.
ROUTINES |= {
    "rfft": Routine("cufft", "R2C D2Z", "x:rows*n y:rows*k | rows n k"),
    "irfft": Routine("cufft", "C2R Z2D", "x:rows*k y:rows*n | rows n k"),
    "fft": Routine("cufft", "C2C Z2Z", "x:rows*n y:rows*n | rows n columns inverse"),
}
LETTERS = {"float32": "S", "float64": "D"}
TRANSFORMED = {
    **{name: {"complex64": 0, "complex128": 1} for name in ("irfft", "fft")},
    "rfft": {"float32": 0, "float64": 1},
}
_MOST = (1 << 31) - 1


@record(frozen=True)
class Request:
    """One call of a routine, less addresses.

    Attributes:
        routine: of `ROUTINES`.
        dtype: of the numbers that it computes with.
        numbers: in the order of the routine.
    """

    routine: str
    dtype: str
    numbers: tuple[int, ...]

    @property
    def named(self) -> dict[str, int]:
        """The numbers by name."""
        return dict(zip(ROUTINES[self.routine].numbers, self.numbers, strict=True))

    def __str__(self) -> str:
        return f"{self.routine} of {self.dtype}, " + ", ".join(f"{k} {v}" for k, v in self.named.items())

    def check(self, sizes: Sequence[int]) -> None:
        """Looks whether arrays with so many elements are large enough.

        Raises:
            ArtifactError: they are not, or a number is out of range.
        """
        wanted = ROUTINES[self.routine].arrays
        if self.dtype not in TRANSFORMED.get(self.routine, LETTERS) or len(sizes) != len(wanted):
            raise ArtifactError(f"the schedule asks a library for {self} of {len(sizes)} arrays")
        if not all(0 <= number <= _MOST for number in self.numbers):
            raise ArtifactError(f"the schedule asks a library for {self}; numbers have 31 bits")
        named = self.named
        for size, product in zip(sizes, wanted, strict=True):
            least = math.prod(int(x) if x.isdigit() else named[x] for x in product.split("*"))
            if size < least:
                raise ArtifactError(
                    f"the schedule gives a library {size} elements where {least} are touched: {self}"
                )


Asked: TypeAlias = "Gemm | Request"


def library_of(asked: Asked) -> str:
    """The library that computes a request."""
    return "cublas" if isinstance(asked, Gemm) else ROUTINES[asked.routine].library


def can_be_captured(asked: Asked) -> bool:
    """True if a request may be written down while a stream is captured."""
    return isinstance(asked, Gemm) or ROUTINES[asked.routine].captured
