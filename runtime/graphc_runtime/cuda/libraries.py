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
import threading
from collections.abc import Callable, Iterable, Mapping, Sequence
from functools import cached_property, lru_cache, partial
from pathlib import Path
from typing import ClassVar, TypeAlias

from graphc_runtime.cuda.calls import Bound
from graphc_runtime.cuda.driver import DeviceMemoryError, DriverError
from graphc_runtime.cuda.gemm import Gemm
from graphc_runtime.errors import ArtifactError
from graphc_runtime.record import record

_HANDLE, _LONG, _INT, _SIZE = ctypes.c_void_p, ctypes.c_int64, ctypes.c_int, ctypes.c_size_t
Number: TypeAlias = "ctypes.Array[ctypes.c_float] | ctypes.Array[ctypes.c_double]"
Find: TypeAlias = Callable[[str, int], "ctypes.CDLL | None"]


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
        """How to do without it."""
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
    """Whether libraries may be used, by variable of the environment; read when first asked."""

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
_LETTERS = {"float32": "S", "float64": "D"}
_TRANSFORMED = {
    **{name: {"complex64": 0, "complex128": 1} for name in ("irfft", "fft")},
    "rfft": {"float32": 0, "float64": 1},
}
_MOST = (1 << 31) - 1
# Requests of which a library knows the memory.
_KEPT = 256


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
        if self.dtype not in _TRANSFORMED.get(self.routine, _LETTERS) or len(sizes) != len(wanted):
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


# -- of a device --------------------------------------------------------------------------------------------


@record(frozen=True)
class Device:
    """A device as libraries need it.

    Attributes:
        allocate: gives memory of so many bytes, in the order of a stream.
        arch: of the device, whose context is current.
        main: the stream that functions share.
    """

    allocate: Callable[[int, int], int]
    arch: str
    main: int


class Started:
    """A library that has started, for one device.

    There is one handle, which one thread uses at a time: work of two requests in one stream never mixes.

    Args:
        name: of `LIBRARIES`.
        code: the library.
        place: the device.

    Raises:
        DriverError: it does not start, or is too old.
    """

    # Functions that make the handle and give it a stream, and one that says what a status means.
    create: ClassVar[str]
    enter: ClassVar[str]
    text: ClassVar[str] = ""
    failed_allocation: ClassVar[int] = 2
    # Meanings of statuses, of libraries without such a function.
    texts: ClassVar[Mapping[int, str]] = {}

    def __init__(self, name: str, code: ctypes.CDLL, place: Device) -> None:
        self.library, self.code, self.place = LIBRARIES[name], code, place
        self.lock = threading.Lock()
        self._current: tuple[int, ...] | None = None
        self._rooms: dict[Request, int] = {}
        self._numbers = {value: {dtype: _number(dtype, value) for dtype in _KINDS} for value in (1.0, 0.0)}
        try:
            self.find()
        except AttributeError as error:
            raise DriverError(
                f"{self.library.title} has to be one of CUDA 12 or newer ({error}); {self.library.without}"
            ) from None
        self.handle = self.start()

    def start(self) -> ctypes.c_void_p:
        """The handle.

        Raises:
            DriverError: the library does not start.
        """
        handle = _HANDLE()
        status = int(self._create(ctypes.byref(handle)))
        if status:
            raise self.error(self.create, status, f"; {self.library.without}")
        return handle

    def find(self) -> None:
        """Looks for functions.

        Raises:
            AttributeError: one is not there.
        """
        self._create, self._set_stream = self.code[self.create], self.code[self.enter]
        self._set_stream.argtypes = (_HANDLE, _HANDLE)
        if self.text:
            self._text = self.code[self.text]
            self._text.restype = ctypes.c_char_p

    def ask(self, asked: Asked, addresses: Sequence[int], stream: int, *, captured: bool) -> None:
        """Asks for something; see `Driver.ask`.

        Args:
            asked, addresses, stream: as there.
            captured: whether what the stream is asked for is written down.

        Raises:
            DriverError: the library refuses.
        """
        state = self.state(stream, captured=captured)
        call = self.call(asked, [ctypes.c_uint64(address) for address in addresses])
        with self.lock:
            status = self._enter(state) or call()
        if status:
            raise self.failure(asked, status)

    def bound(self, asked: Asked, addresses: Sequence[ctypes.c_uint64], stream: int) -> Bound:
        """As `ask`, to be called again and again; addresses are read at each call."""
        state, call = self.state(stream, captured=False), self.call(asked, addresses)

        def ask() -> int:
            with self.lock:
                return self._enter(state) or call()

        return ask

    def state(self, stream: int, *, captured: bool) -> tuple[int, ...]:
        """What the handle is told before a request in a stream; the stream comes first."""
        return (stream,)

    def tell(self, state: tuple[int, ...]) -> int:
        """Tells the handle; gives a status."""
        return int(self._set_stream(self.handle, state[0]))

    def _enter(self, state: tuple[int, ...]) -> int:
        """Makes the library work in a stream; gives a status. The lock is held."""
        if self._current == state:
            return 0
        self._current = None
        status = self.tell(state)
        if not status:
            self._current = state
        return status

    def memory(self, asked: Asked) -> int:
        """Bytes for intermediate results of a request.

        Raises:
            DriverError: the library refuses it.
        """
        if isinstance(asked, Gemm) or not ROUTINES[asked.routine].asks:
            return 0
        return self._room(asked) * _KINDS[asked.dtype]

    def _room(self, asked: Request) -> int:
        """Elements of memory of a request."""
        room = self._rooms.get(asked)
        if room is not None:
            return room
        routine, named, found = ROUTINES[asked.routine], asked.named, _INT()
        arguments: list[object] = [
            self.handle if word == "handle" else _INT(named[word]) if word in named else _HANDLE()
            for word in routine.asks.split()
        ]
        name = self._function(asked) + "_bufferSize"
        with self.lock:
            status = int(self.code[name](*arguments, ctypes.byref(found)))
        if status:
            raise self.error(name, status, f" for {asked}")
        if len(self._rooms) >= _KEPT:
            self._rooms.clear()
        self._rooms[asked] = found.value
        return found.value

    def _function(self, asked: Request) -> str:
        return ROUTINES[asked.routine].function.format(_LETTERS[asked.dtype])

    def call(self, asked: Asked, addresses: Sequence[ctypes.c_uint64]) -> Bound:
        """The function of the library with all its arguments; memory for it comes after the arrays."""
        assert isinstance(asked, Request)
        routine, named = ROUTINES[asked.routine], asked.named
        arrays = iter(addresses)
        found: list[object] = []
        for word, size in routine.words:
            if size:
                found.append(next(arrays))
            elif word == "handle":
                found.append(self.handle)
            elif word == "memory":
                found.append(addresses[len(routine.arrays)] if self.memory(asked) else _HANDLE())
            elif word == "room":
                found.append(_INT(self._room(asked)))
            elif word == "one":
                found.append(ctypes.byref(self._numbers[1.0][asked.dtype]))
            elif word == "none":
                found.append(_HANDLE())
            else:
                found.append(_INT(named[word]))
        return partial(self.code[self._function(asked)], *found)

    def failure(self, asked: Asked, status: int) -> DriverError:
        """The error of a request."""
        if isinstance(asked, Gemm):
            name = "cublasGemmEx" if asked.count == 1 else "cublasGemmStridedBatchedEx"
        else:
            name = self._function(asked)
        return self.error(name, status, f" for {asked}")

    def error(self, name: str, status: int, more: str) -> DriverError:
        """The error of a function."""
        text = self.texts.get(status, "unknown")
        if self.text:
            text = (self._text(status) or b"unknown").decode(errors="replace")
        kind = DeviceMemoryError if status == self.failed_allocation else DriverError
        shown = name.removesuffix("_v2")
        return kind(f"{text} ({shown}, status {status}){more}", status, shown)


class Cusolver(Started):
    """cuSOLVER, for dense matrices."""

    create, enter = "cusolverDnCreate", "cusolverDnSetStream"
    texts: ClassVar[Mapping[int, str]] = {
        1: "not initialised",
        2: "the resource allocation failed",
        3: "an invalid value",
        4: "an absent device architectural feature",
        6: "the execution failed",
        7: "an internal error",
        9: "not supported",
    }


# Names of cuBLAS's interface (library_types.h, cublas_api.h): dtypes, ways to add up, and others.
_DTYPES = {"float32": 0, "float64": 1, "float16": 2, "complex64": 4, "complex128": 5}
_KINDS = {"float32": 4, "float64": 8, "float16": 2, "complex64": 8, "complex128": 16}
_COMPUTE_32F, _COMPUTE_64F, _COMPUTE_32F_FAST_TF32 = 68, 70, 77
_DEFAULT = -1
# What NVIDIA recommends: on devices from sm_90 on, and on others.
_WORKSPACE, _SMALL_WORKSPACE = 32 << 20, 4 << 20


class Cublas(Started):
    """cuBLAS.

    Each stream has memory for intermediate results, so that equal products give equal bits. What is captured
    gets that of the main stream, in which graphs are launched.
    """

    create, enter, text = "cublasCreate_v2", "cublasSetStream_v2", "cublasGetStatusString"
    failed_allocation = 3

    def __init__(self, name: str, code: ctypes.CDLL, place: Device) -> None:
        self._nbytes = _WORKSPACE if int(place.arch.removeprefix("sm_")) >= 90 else _SMALL_WORKSPACE
        self._workspaces: dict[int, int] = {}
        super().__init__(name, code, place)
        self._workspace(place.main)

    def find(self) -> None:
        super().find()
        # Without types of arguments, objects of ctypes are passed as they are.
        self._one, self._many = (
            self.code[name] for name in ("cublasGemmEx_64", "cublasGemmStridedBatchedEx_64")
        )
        self._set_workspace = self.code["cublasSetWorkspace_v2"]
        self._set_workspace.argtypes = (_HANDLE, _HANDLE, _SIZE)

    def state(self, stream: int, *, captured: bool) -> tuple[int, ...]:
        return stream, self._workspace(self.place.main if captured else stream)

    def tell(self, state: tuple[int, ...]) -> int:
        stream, workspace = state
        # A stream comes with other memory, so that it is said first.
        return super().tell((stream,)) or int(self._set_workspace(self.handle, workspace, self._nbytes))

    def _workspace(self, stream: int) -> int:
        """Memory for intermediate results of a stream."""
        found = self._workspaces.get(stream)
        if found is not None:
            return found
        with self.lock:
            if stream not in self._workspaces:
                try:
                    self._workspaces[stream] = self.place.allocate(self._nbytes, stream)
                except DeviceMemoryError as error:
                    text = f"{error}\n  for intermediate results of cuBLAS; {self.library.without}"
                    raise DeviceMemoryError(text, error.code, error.call) from None
            return self._workspaces[stream]

    def call(self, asked: Asked, addresses: Sequence[ctypes.c_uint64]) -> Bound:
        if not isinstance(asked, Gemm):
            return super().call(asked, addresses)
        gemm, (a, b, c) = asked, addresses
        kind, sums = (_INT(_DTYPES[name]) for name in (gemm.factors, gemm.sums))
        # What the product is multiplied by, and what C is multiplied by before.
        one = ctypes.byref(self._numbers[1.0][gemm.sums])
        before = one if gemm.adds else ctypes.byref(self._numbers[0.0][gemm.sums])
        wide = gemm.sums in ("float64", "complex128")
        way = _COMPUTE_64F if wide else _COMPUTE_32F_FAST_TF32 if gemm.short else _COMPUTE_32F
        sizes, leading = map(_LONG, gemm.sizes), list(map(_LONG, gemm.leading))
        head = [self.handle, *map(_INT, gemm.transposed), *sizes, one]
        tail = [_INT(way), _INT(_DEFAULT)]
        if gemm.count == 1:
            sides = (a, kind, leading[0], b, kind, leading[1], before, c, sums, leading[2])
            return partial(self._one, *head, *sides, *tail)
        apart = list(map(ctypes.c_longlong, gemm.apart))
        left, right = (a, kind, leading[0], apart[0]), (b, kind, leading[1], apart[1])
        result = (c, sums, leading[2], apart[2], _LONG(gemm.count))
        return partial(self._many, *head, *left, *right, before, *result, *tail)


def _number(dtype: str, value: float) -> Number:
    """A number as libraries read it: of halves sums are float32, complex numbers are pairs."""
    if dtype in ("float64", "complex128"):
        return (ctypes.c_double * 2)(value, 0.0)
    return (ctypes.c_float * 2)(value, 0.0)


# Names of cuDNN's interface: numbers, order of axes, cross-correlation, ways to multiply, a deterministic
# algorithm, and the one that each direction has.
_NUMBERS, _ROWS_FIRST, _CORRELATION = {"float32": 0, "float64": 1}, 0, 1
_ANY_MATH, _FULL_MATH, _IS_DETERMINISTIC, _USUAL = 0, 3, 1, 1
_ALGORITHMS = 8
# The most memory that an algorithm may take.
_MOST_MEMORY = 1 << 30


class _Found(ctypes.Structure):
    """What is known of an algorithm (`cudnnConvolutionFwdAlgoPerf_t` and so on)."""

    _fields_ = (
        ("algorithm", _INT),
        ("status", _INT),
        ("time", ctypes.c_float),
        ("memory", _SIZE),
        ("determinism", _INT),
        ("math", _INT),
        ("reserved", _INT * 3),
    )


@record(frozen=True, eq=False)
class _Convolution:
    """A convolution as cuDNN knows it.

    Attributes:
        forms: of its arrays, in order.
        way: strides, padding and so on.
        algorithm: which of the library's.
        nbytes: memory that it takes.
    """

    forms: tuple[ctypes.c_void_p, ...]
    way: ctypes.c_void_p
    algorithm: int
    nbytes: int


class Cudnn(Started):
    """cuDNN, of which convolutions are asked for by their older interface.

    The library's heuristics choose an algorithm by sizes alone, of those that are deterministic.
    """

    create, enter, text = "cudnnCreate", "cudnnSetStream", "cudnnGetErrorString"
    failed_allocation = -1

    def __init__(self, name: str, code: ctypes.CDLL, place: Device) -> None:
        self._known: dict[Request, _Convolution] = {}
        super().__init__(name, code, place)

    def find(self) -> None:
        super().find()
        for routine in ("Forward", "BackwardData", "BackwardFilter"):
            self.code[f"cudnnConvolution{routine}"]

    def memory(self, asked: Asked) -> int:
        assert isinstance(asked, Request)
        return self._convolution(asked).nbytes

    def call(self, asked: Asked, addresses: Sequence[ctypes.c_uint64]) -> Bound:
        assert isinstance(asked, Request)
        known = self._convolution(asked)
        one, zero = (ctypes.byref(self._numbers[x][asked.dtype]) for x in (1.0, 0.0))
        (a, b, c), memory = addresses[:3], addresses[3] if known.nbytes else _HANDLE()
        sides = (known.forms[0], a, known.forms[1], b, known.way, _INT(known.algorithm))
        result = (memory, _SIZE(known.nbytes), zero, known.forms[2], c)
        return partial(self.code[self._function(asked)], self.handle, one, *sides, *result)

    def _function(self, asked: Request) -> str:
        return f"cudnnConvolution{ROUTINES[asked.routine].function}"

    def _convolution(self, asked: Request) -> _Convolution:
        known = self._known.get(asked)
        if known is None:
            with self.lock:
                known = self._known[asked] = self._made(asked)
        return known

    def _made(self, asked: Request) -> _Convolution:
        """A convolution with its algorithm."""
        named, kind = asked.named, _NUMBERS[asked.dtype]
        images = tuple(named[name] for name in "nchw")
        filters, results = (tuple(named[name] for name in names) for names in ("odpq", "nors"))
        forms = {
            "x": self._form(asked, "Tensor", _ROWS_FIRST, kind, *images),
            "f": self._form(asked, "Filter", kind, _ROWS_FIRST, *filters),
            "y": self._form(asked, "Tensor", _ROWS_FIRST, kind, *results),
        }
        way = self._new(asked, "Convolution")
        steps = [named[f"{what}_{axis}"] for what in ("pad", "stride", "dilation") for axis in "hw"]
        self._do(asked, "cudnnSetConvolution2dDescriptor", way, *steps, _CORRELATION, kind)
        self._do(asked, "cudnnSetConvolutionGroupCount", way, named["groups"])
        full = asked.dtype == "float32" and not named["short"]
        self._do(asked, "cudnnSetConvolutionMathType", way, _FULL_MATH if full else _ANY_MATH)
        a, b, c = (forms[name] for name, size in ROUTINES[asked.routine].words if size)
        direction = ROUTINES[asked.routine].function
        count, found = _INT(), (_Found * _ALGORITHMS)()
        sides = self.handle, a, b, way, c
        choose = f"cudnnGetConvolution{direction}Algorithm_v7"
        self._do(asked, choose, *sides, _ALGORITHMS, ctypes.byref(count), found)
        fine = [x for x in found[: count.value] if not x.status and x.determinism == _IS_DETERMINISTIC]
        for algorithm in (*(x.algorithm for x in fine), _USUAL):
            nbytes = _SIZE()
            size = self.code[f"cudnnGetConvolution{direction}WorkspaceSize"]
            status = int(size(*sides, algorithm, ctypes.byref(nbytes)))
            if not status and nbytes.value <= _MOST_MEMORY:
                return _Convolution((a, b, c), way, algorithm, nbytes.value)
        raise self.error(f"cudnnGetConvolution{direction}WorkspaceSize", status, f" for {asked}")

    def _form(self, asked: Request, what: str, *numbers: int) -> ctypes.c_void_p:
        made = self._new(asked, what)
        self._do(asked, f"cudnnSet{what}4dDescriptor", made, *numbers)
        return made

    def _new(self, asked: Request, what: str) -> ctypes.c_void_p:
        made = _HANDLE()
        self._do(asked, f"cudnnCreate{what}Descriptor", ctypes.byref(made))
        return made

    def _do(self, asked: Request, name: str, *arguments: object) -> None:
        status = int(self.code[name](*arguments))
        if status:
            raise self.error(name, status, f" for {asked}")


class Cufft(Started):
    """cuFFT, whose handles are plans of transforms."""

    texts: ClassVar[Mapping[int, str]] = {
        1: "an invalid plan",
        2: "the resource allocation failed",
        4: "an invalid value",
        5: "an internal error",
        6: "the execution failed",
        7: "the setup failed",
        8: "an invalid size",
        16: "not supported",
    }
    _TYPES: ClassVar[Mapping[str, int]] = {
        "R2C": 0x2A,
        "C2R": 0x2C,
        "C2C": 0x29,
        "D2Z": 0x6A,
        "Z2D": 0x6C,
        "Z2Z": 0x69,
    }

    def __init__(self, name: str, code: ctypes.CDLL, place: Device) -> None:
        self._plans: dict[Request, tuple[ctypes.c_int, int]] = {}
        self._stream = 0
        super().__init__(name, code, place)

    def find(self) -> None:
        self._set_stream = self.code["cufftSetStream"]
        self._set_stream.argtypes = (_INT, _HANDLE)
        self._set_area = self.code["cufftSetWorkArea"]

    def start(self) -> ctypes.c_void_p:
        return _HANDLE()

    def tell(self, state: tuple[int, ...]) -> int:
        (self._stream,) = state
        return 0

    def memory(self, asked: Asked) -> int:
        assert isinstance(asked, Request)
        return self._plan(asked)[1]

    def call(self, asked: Asked, addresses: Sequence[ctypes.c_uint64]) -> Bound:
        assert isinstance(asked, Request)
        plan, nbytes = self._plan(asked)
        x, y = addresses[:2]
        arguments: list[object] = [plan, x, y]
        if asked.routine == "fft":
            arguments.append(_INT(1 if asked.named["inverse"] else -1))
        transform = partial(self.code[self._function(asked)], *arguments)
        area = partial(self._set_area, plan, addresses[2] if nbytes else _HANDLE())

        def ask() -> int:
            # Plans have streams of their own.
            return int(self._set_stream(plan, self._stream) or area() or transform())

        return ask

    def _kind(self, asked: Request) -> str:
        return ROUTINES[asked.routine].function.split()[_TRANSFORMED[asked.routine][asked.dtype]]

    def _function(self, asked: Request) -> str:
        return f"cufftExec{self._kind(asked)}"

    def _plan(self, asked: Request) -> tuple[ctypes.c_int, int]:
        """The plan of transforms, and bytes for intermediate results."""
        known = self._plans.get(asked)
        if known is None:
            with self.lock:
                known = self._plans[asked] = self._made(asked)
        return known

    def _made(self, asked: Request) -> tuple[ctypes.c_int, int]:
        named, plan, nbytes = asked.named, _INT(), _SIZE()
        n, rows = named["n"], named["rows"]
        apart = named.get("k", n)
        sides = [n, apart] if asked.routine == "rfft" else [apart, n]
        # Distance of the numbers of a transform, and of transforms.
        places = [(rows, 1) if named.get("columns") else (1, side) for side in sides]
        size = (ctypes.c_longlong * 1)(n)
        inner = [
            (ctypes.byref((ctypes.c_longlong * 1)(side)), *map(ctypes.c_longlong, place))
            for side, place in zip(sides, places, strict=True)
        ]
        kind, count = _INT(self._TYPES[self._kind(asked)]), ctypes.c_longlong(rows)
        steps: list[tuple[str, list[object]]] = [
            ("cufftCreate", [ctypes.byref(plan)]),
            ("cufftSetAutoAllocation", [plan, _INT(0)]),
            (
                "cufftMakePlanMany64",
                [plan, _INT(1), size, *inner[0], *inner[1], kind, count, ctypes.byref(nbytes)],
            ),
        ]
        for name, arguments in steps:
            status = int(self.code[name](*arguments))
            if status:
                raise self.error(name, status, f" for {asked}")
        return plan, nbytes.value


_STARTERS: dict[str, Callable[[str, ctypes.CDLL, Device], Started]] = {
    "cufft": Cufft,
    "cublas": Cublas,
    "cusolver": Cusolver,
    "cudnn": Cudnn,
}


class Libraries:
    """The libraries of a device, each started when it is first wanted.

    Args:
        find: gives a library by its name, for a version of the driver.
    """

    def __init__(self, find: Find = find_library) -> None:
        self._find, self._starting = find, threading.Lock()
        self._started: dict[str, Started] = {}

    def start(self, names: Iterable[str], version: int, place: Device) -> frozenset[str]:
        """Readies libraries; see `Driver.start_libraries`.

        Raises:
            DriverError: one is there and does not start.
        """
        found = set()
        with self._starting:
            for name in names:
                if not is_enabled(name):
                    continue
                if name not in self._started:
                    code = self._find(name, version)
                    if code is None:
                        continue
                    self._started[name] = _STARTERS[name](name, code, place)
                found.add(name)
        return frozenset(found)

    def of(self, asked: Asked) -> Started:
        """The library for a request.

        Raises:
            DriverError: it has not been started.
        """
        name = library_of(asked)
        if name not in self._started:
            raise DriverError(f"{LIBRARIES[name].title} is asked for {asked}, but has not been started")
        return self._started[name]
