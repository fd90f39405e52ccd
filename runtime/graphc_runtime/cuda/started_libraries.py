# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""NVIDIA's libraries once they have started, for a device: handles, memory, and calls by ctypes.

One thread at a time uses a handle: work of two requests in one stream never mixes. What a request needs, be
it a plan or a description of arrays, is made when it is first asked for, and kept.
"""

from __future__ import annotations

import ctypes
import threading
from collections.abc import Callable, Iterable, Mapping, Sequence
from functools import partial
from typing import ClassVar, TypeAlias

from graphc_runtime.cuda.calls import Bound
from graphc_runtime.cuda.driver import DeviceMemoryError, DriverError
from graphc_runtime.cuda.gemm import Gemm
from graphc_runtime.cuda.libraries import (
    LETTERS,
    LIBRARIES,
    ROUTINES,
    TRANSFORMED,
    Asked,
    Request,
    find_library,
    is_enabled,
    library_of,
)
from graphc_runtime.record import record

_HANDLE, _LONG, _INT, _SIZE = ctypes.c_void_p, ctypes.c_int64, ctypes.c_int, ctypes.c_size_t
Number: TypeAlias = "ctypes.Array[ctypes.c_float] | ctypes.Array[ctypes.c_double]"
Find: TypeAlias = Callable[[str, int], "ctypes.CDLL | None"]
# Requests of which a library knows the memory.
_KEPT = 256


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
        """Arguments of `tell` before a request in a stream; the stream comes first."""
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
        return ROUTINES[asked.routine].function.format(LETTERS[asked.dtype])

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
    """Performance of an algorithm (`cudnnConvolutionFwdAlgoPerf_t` and so on)."""

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
        return ROUTINES[asked.routine].function.split()[TRANSFORMED[asked.routine][asked.dtype]]

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
