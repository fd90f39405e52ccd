# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Libraries by ctypes: against functions with the types of NVIDIA's headers, which compute by NumPy."""

from __future__ import annotations

import ctypes
import gc
import importlib.util
from functools import partial
from pathlib import Path
from types import SimpleNamespace

import numpy as np
import pytest

from graphc.config import config
from graphc_runtime.cuda import libraries, started_libraries
from graphc_runtime.cuda import schedule as sc
from graphc_runtime.cuda.array import upload
from graphc_runtime.cuda.asks import AskLibrary, Place
from graphc_runtime.cuda.calls import LibraryCalls
from graphc_runtime.cuda.cuda_driver import CudaDriver
from graphc_runtime.cuda.driver import DeviceMemoryError, DriverError
from graphc_runtime.cuda.libraries import Request
from graphc_runtime.errors import ArtifactError
from graphc_tools.gpu import simulated_libraries

# Arguments after the handle, of cusolverDn.h and cublas_v2.h: i int, p pointer, s pointer to a number. Names
# are ours, in the order of the header; `work` is memory and `room` its elements.
HEADERS = {
    "cusolverDn{}potrf": "upper:i n:i a:p lda:i work:p room:i info:p",
    "cusolverDn{}getrf": "m:i n:i a:p lda:i work:p pivots:p info:p",
    "cusolverDn{}getrs": "across:i n:i k:i a:p lda:i pivots:p b:p ldb:i info:p",
    "cusolverDn{}syevd": "vectors:i upper:i n:i a:p lda:i values:p work:p room:i info:p",
    "cusolverDn{}geqrf": "m:i n:i a:p lda:i tau:p work:p room:i info:p",
    "cusolverDn{}orgqr": "m:i n:i k:i a:p lda:i tau:p work:p room:i info:p",
    "cusolverDn{}gesvd": "left:i right:i m:i n:i a:p lda:i values:p u:p ldu:i v:p ldv:i work:p "
    "room:i none:p info:p",
    "cublas{}trsv_v2": "upper:i across:i unit:i n:i a:p lda:i x:p step:i",
    "cublas{}trsm_v2": "right:i upper:i across:i unit:i m:i n:i one:s a:p lda:i b:p ldb:i",
}
SIZES = {
    "cusolverDn{}potrf": "upper:i n:i a:p lda:i",
    "cusolverDn{}getrf": "m:i n:i a:p lda:i",
    "cusolverDn{}syevd": "vectors:i upper:i n:i a:p lda:i values:p",
    "cusolverDn{}geqrf": "m:i n:i a:p lda:i",
    "cusolverDn{}orgqr": "m:i n:i k:i a:p lda:i tau:p",
    "cusolverDn{}gesvd": "m:i n:i",
}
KINDS = {
    "i": ctypes.c_int,
    "p": ctypes.c_void_p,
    "s": ctypes.c_void_p,
    "z": ctypes.c_size_t,
    "l": ctypes.c_longlong,
}
# Of cudnn_ops.h, cudnn_cnn.h and cufft.h, all arguments: l a long long, z a size.
FORMS = {
    "cudnnSetTensor4dDescriptor": "piiiiii",
    "cudnnSetFilter4dDescriptor": "piiiiii",
    "cudnnSetConvolution2dDescriptor": "piiiiiiii",
    "cudnnSetConvolutionGroupCount": "pi",
    "cudnnSetConvolutionMathType": "pi",
}
CONVOLUTION = "pspppppipzspp"
CHOICE, SIZE = "pppppipp", "pppppip"
PLAN = "iipplipllillp"
EXECUTE = {"R2C": "ipp", "C2R": "ipp", "C2C": "ippi", "D2Z": "ipp", "Z2D": "ipp", "Z2Z": "ippi"}
STREAM = 4711


class FakeLibrary:
    """Functions by name, as of an opened library; arrays are memory of the host."""

    def __init__(self):
        self.calls, self.status, self._made = [], {}, {}
        self.stream = None
        self.forms, self.plans, self.algorithms = {}, {}, []
        self._convolutions()
        self._transforms()
        for routine, found in libraries.ROUTINES.items():
            if found.function not in HEADERS:
                continue
            for letter, dtype in (("S", "float32"), ("D", "float64")):
                name = found.function.format(letter)
                self._function(name, HEADERS[found.function], partial(self._compute, name, routine, dtype))
                if found.asks:
                    types = SIZES[found.function]
                    size = partial(self._size, name, routine, dtype, types)
                    self._function(f"{name}_bufferSize", f"{types} found:p", size)
        for name in ("cusolverDnCreate", "cublasCreate_v2", "cudnnCreate"):
            self._made[name] = ctypes.CFUNCTYPE(ctypes.c_int, ctypes.c_void_p)(partial(self._create, name))
        for name in ("cusolverDnSetStream", "cublasSetStream_v2", "cudnnSetStream"):
            kind = ctypes.CFUNCTYPE(ctypes.c_int, ctypes.c_void_p, ctypes.c_void_p)
            self._made[name] = kind(self._set_stream)
        three = ctypes.CFUNCTYPE(ctypes.c_int, ctypes.c_void_p, ctypes.c_void_p, ctypes.c_size_t)
        self._made["cublasSetWorkspace_v2"] = three(lambda handle, memory, size: 0)
        self._text = ctypes.create_string_buffer(b"bad")
        text = ctypes.CFUNCTYPE(ctypes.c_void_p, ctypes.c_int)(lambda status: ctypes.addressof(self._text))
        self._made["cudnnGetErrorString"] = self._made["cublasGetStatusString"] = text
        self._made["cublasGemmEx_64"] = self._made["cublasGemmStridedBatchedEx_64"] = three(lambda *a: 0)

    def __getitem__(self, name):
        # Functions of ctypes that are asked for by number or name are new objects, without types.
        try:
            made = self._made[name]
        except KeyError:
            raise AttributeError(name) from None
        return ctypes.CFUNCTYPE(made.restype)(ctypes.cast(made, ctypes.c_void_p).value)

    def _function(self, name, types, does):
        words = [word.split(":") for word in types.split()]
        kind = ctypes.CFUNCTYPE(ctypes.c_int, ctypes.c_void_p, *(KINDS[k] for _, k in words))
        self._made[name] = kind(
            lambda handle, *given: does(handle, dict(zip([w for w, _ in words], given, strict=True)))
        )

    def _add(self, name, types, does):
        self._made[name] = ctypes.CFUNCTYPE(ctypes.c_int, *(KINDS[letter] for letter in types))(does)

    def _convolutions(self):
        def new(place):
            ctypes.c_void_p.from_address(place).value = 1000 + len(self.forms)
            self.forms[1000 + len(self.forms)] = []
            return 0

        def say(form, *numbers):
            self.forms[form] += numbers
            return 0

        for kind in ("Tensor", "Filter", "Convolution"):
            self._add(f"cudnnCreate{kind}Descriptor", "p", new)
        for name, types in FORMS.items():
            self._add(name, types, say)
        for direction in ("Forward", "BackwardData", "BackwardFilter"):
            self._add(f"cudnnConvolution{direction}", CONVOLUTION, partial(self._convolve, direction))
            self._add(f"cudnnGetConvolution{direction}Algorithm_v7", CHOICE, self._choose)
            self._add(f"cudnnGetConvolution{direction}WorkspaceSize", SIZE, self._room)

    def _choose(self, handle, a, b, way, c, most, count, found):
        # Two that do not do, of which one gives other bits in each run.
        entry = np.dtype([("i", "i4", 2), ("t", "f4"), ("_", "i4"), ("z", "i8"), ("r", "i4", 5), ("e", "i4")])
        entries = np.zeros(3, entry)
        entries["i"] = [(0, 0), (7, 9), (5, 0)]
        entries["r"][:, 0] = [0, 1, 1]
        assert handle == 99 and most >= 3 and entry.itemsize == 48
        ctypes.memmove(found, entries.ctypes.data, entries.nbytes)
        ctypes.c_int.from_address(count).value = 3
        return 0

    def _room(self, handle, a, b, way, c, algorithm, place):
        ctypes.c_size_t.from_address(place).value = 333
        return self.status.pop("room", 0)

    def _convolve(self, direction, handle, alpha, fa, a, fb, b, way, algorithm, memory, room, beta, fc, c):
        assert handle == 99 and room == 333 and memory
        ctypes.memset(memory, 0x7F, room)
        # Of images and results the order is said first, of filters the dtype.
        x, f, y = {"Forward": (fa, fb, fc), "BackwardData": (fc, fa, fb), "BackwardFilter": (fa, fc, fb)}[
            direction
        ]
        (order, kind, *images), (same, rows, *filters), (_, also, *results) = (
            self.forms[i] for i in (x, f, y)
        )
        *steps, mode, inner, groups, math = self.forms[way]
        assert order == rows == 0 and kind == same == also == inner and mode == 1
        number = (ctypes.c_float, ctypes.c_double)[kind]
        assert number.from_address(alpha).value == 1.0 and number.from_address(beta).value == 0.0
        self.calls.append((direction, self.stream, algorithm, math))
        named = dict(zip("nchw", images, strict=True)) | dict(zip("odpq", filters, strict=True))
        assert results[:2] == [named["n"], named["o"]]
        named |= dict(zip("rs", results[2:], strict=True)) | {"groups": groups}
        steps = iter(steps)
        for what in ("pad", "stride", "dilation"):
            named |= {f"{what}_h": next(steps), f"{what}_w": next(steps)}
        arrays = []
        for form, at in ((fa, a), (fb, b), (fc, c)):
            count = int(np.prod(self.forms[form][2:]))
            arrays.append(np.ctypeslib.as_array((number * count).from_address(at)))
        name = {"Forward": "conv2d", "BackwardData": "conv2d_input", "BackwardFilter": "conv2d_filters"}[
            direction
        ]
        simulated_libraries.ROUTINES[name](named, *arrays)
        return self.status.pop(direction, 0)

    def _transforms(self):
        def new(place):
            ctypes.c_int.from_address(place).value = len(self.plans)
            self.plans[len(self.plans)] = {}
            return 0

        def plan(number, rank, n, inner, apart, between, outer, out_apart, out_between, kind, count, room):
            first, last = (ctypes.c_longlong.from_address(at).value for at in (inner, outer))
            n = ctypes.c_longlong.from_address(n).value
            sides = (first, apart, between), (last, out_apart, out_between)
            assert rank == 1 and self.plans[number] == {"automatic": 0}
            self.plans[number] |= {"n": n, "sides": sides, "kind": kind, "count": count}
            ctypes.c_size_t.from_address(room).value = 44
            return self.status.pop("plan", 0)

        self._add("cufftCreate", "p", new)
        for name, key, types in (
            ("cufftSetAutoAllocation", "automatic", "ii"),
            ("cufftSetStream", "stream", "ip"),
            ("cufftSetWorkArea", "area", "ip"),
        ):
            self._add(
                name, types, lambda number, value, key=key: self.plans[number].update({key: value}) or 0
            )
        self._add("cufftMakePlanMany64", "iippllpllilp", plan)
        for kind, types in EXECUTE.items():
            self._add(f"cufftExec{kind}", types, partial(self._transform, kind))

    def _transform(self, name, number, x, y, direction=None):
        plan = self.plans[number]
        assert plan["area"] and plan["stream"]
        ctypes.memset(plan["area"], 0x7F, 44)
        kinds = {"R2C": 0x2A, "C2R": 0x2C, "C2C": 0x29, "D2Z": 0x6A, "Z2D": 0x6C, "Z2Z": 0x69}
        assert plan["kind"] == kinds[name]
        n, count, half = plan["n"], plan["count"], plan["n"] // 2 + 1
        wide = {"R": 4, "C": 8, "D": 8, "Z": 16}
        real, whole = ("f4", "c8") if name in ("R2C", "C2R", "C2C") else ("f8", "c16")
        lengths = [
            half if side in "CZ" and "R" in name + "R" * ("D" in name) else n for side in (name[0], name[2])
        ]
        arrays = []
        for at, side, length in zip((x, y), (name[0], name[2]), lengths, strict=True):
            dtype = np.dtype(real if side in "RD" else whole)
            assert dtype.itemsize == wide[side]
            raw = (ctypes.c_char * (count * length * dtype.itemsize)).from_address(at)
            arrays.append(np.frombuffer(raw, dtype))
        across = plan["sides"][0][1] != 1
        steps = [(count, 1) if across else (1, length) for length in lengths]
        assert [side[1:] for side in plan["sides"]] == steps
        self.calls.append((name, plan["stream"]))
        named = {"rows": count, "n": n, "k": half, "columns": across, "inverse": direction == 1}
        routine = "fft" if direction else "rfft" if name[0] in "RD" else "irfft"
        simulated_libraries.ROUTINES[routine](named, *arrays)
        return self.status.pop(name, 0)

    def _create(self, name, place):
        ctypes.c_void_p.from_address(place).value = 99
        return self.status.pop(name, 0)

    def _set_stream(self, handle, stream):
        self.stream = stream
        return 0

    def _request(self, routine, dtype, given):
        # Sizes that the function is not given.
        known = dict(given)
        known.setdefault("order", known.get("n"))
        known.setdefault("k", min(known.get("m", 0), known.get("n", 0)))
        known.setdefault("wide", known.get("m") if known.get("left") == ord("A") else known.get("n"))
        return Request(routine, dtype, tuple(known[name] for name in libraries.ROUTINES[routine].numbers))

    def _size(self, name, routine, dtype, types, handle, given):
        place = given.pop("found")
        assert handle == 99 and not any(given[w.split(":")[0]] for w in types.split() if w.endswith(":p"))
        ctypes.c_int.from_address(place).value = 2 * given["n"] + 17
        return self.status.pop(f"{name}_bufferSize", 0)

    def _compute(self, name, routine, dtype, handle, given):
        assert handle == 99 and given.get("none") is None
        asked = self._request(routine, dtype, given)
        self.calls.append((name, self.stream, asked))
        number = ctypes.c_double if dtype == "float64" else ctypes.c_float
        if "one" in given:
            assert number.from_address(given["one"]).value == 1.0
        if "room" in given:
            assert given["room"] == 2 * given["n"] + 17
        if "work" in given:
            nbytes = (2 * given["n"] + 17) * ctypes.sizeof(number)
            ctypes.memset(given["work"], 0x7F, nbytes)
        arrays = []
        named = asked.named
        for word, size in libraries.ROUTINES[routine].words:
            if size:
                count = int(np.prod([int(x) if x.isdigit() else named[x] for x in size.split("*")]))
                kind = ctypes.c_int if word in ("info", "pivots") else number
                arrays.append(np.ctypeslib.as_array((kind * count).from_address(given[word])))
        simulated_libraries.ROUTINES[routine](named, *arrays)
        return self.status.pop(name, 0)


@pytest.fixture
def fake():
    return FakeLibrary()


@pytest.fixture
def driver(library, fake, monkeypatch):
    monkeypatch.setattr(started_libraries, "_WORKSPACE", 4096)
    made = CudaDriver(0, LibraryCalls(library), lambda name, version: fake)
    assert made.start_libraries(libraries.LIBRARIES) == set(libraries.LIBRARIES)
    yield made
    gc.collect()


def ask(driver, routine, dtype, numbers, *arrays):
    """Asks once directly and once prepared; gives the arrays of both."""
    asked = Request(routine, dtype, numbers)
    asked.check([array.size for array in arrays])
    found = []
    for way in ("direct", "prepared"):
        given = [upload(driver, array, driver.main_stream) for array in arrays]
        addresses = [array.address for array in given]
        nbytes = driver.library_memory(asked)
        if nbytes:
            addresses.append(driver.allocate(nbytes, driver.main_stream))
        if way == "direct":
            driver.ask(asked, addresses, driver.main_stream)
        else:
            step = AskLibrary(sc.Ask(routine, (), (), 0), asked, tuple(map(Place, range(len(addresses)))))
            driver.prepare([step], len(addresses), driver.main_stream)(addresses)
        found.append([array.get() for array in given])
    for one, other in zip(*found, strict=True):
        np.testing.assert_array_equal(one, other)
    return found[0]


@pytest.fixture(params=["float32", "float64"])
def dtype(request):
    return request.param


def normal(dtype, *shape):
    return np.random.default_rng(0).normal(size=shape).astype(dtype)


def infos(dtype="int32", n=1):
    return np.full(n, -7, dtype)


def test_factors(driver, fake, dtype):
    a = normal(dtype, 5, 5)
    whole = a @ a.T + np.eye(5, dtype=dtype)
    for upper in (0, 1):
        factor, info = ask(driver, "potrf", dtype, (upper, 5, 5), whole, infos())
        assert info[0] == 0
        # Of rows, which are columns to the library, the other triangle.
        half = np.tril(factor) if upper else np.triu(factor)
        np.testing.assert_allclose(half @ half.T if upper else half.T @ half, whole, rtol=1e-5)
    assert ask(driver, "potrf", dtype, (1, 5, 5), -whole, infos())[1][0] > 0
    assert {call[1] for call in fake.calls} == {driver.main_stream}


def test_systems(driver, dtype):
    a, b = normal(dtype, 5, 5), normal(dtype, 3, 5)
    factor, pivots, info = ask(driver, "getrf", dtype, (5, 5, 5), a, infos(n=5), infos())
    assert info[0] == 0
    for across in (0, 1):
        x = ask(driver, "getrs", dtype, (across, 5, 3, 5, 5), factor, pivots, b, infos())[2]
        matrix = a if across else a.T
        np.testing.assert_allclose(matrix @ x.T, b.T, rtol=1e-3, atol=1e-4)
    a[:] = 0
    assert ask(driver, "getrf", dtype, (5, 5, 5), a, infos(n=5), infos())[2][0] == 1


def test_triangular_systems(driver, dtype):
    a, b = normal(dtype, 4, 4) + 4 * np.eye(4, dtype=dtype), normal(dtype, 4, 3)
    for upper in (0, 1):
        for across in (0, 1):
            for unit in (0, 1):
                x = ask(driver, "trsm", dtype, (1, upper, across, unit, 3, 4, 4, 3, 4), a, b)[1]
                half = np.tril(a) if upper else np.triu(a)
                if unit:
                    np.fill_diagonal(half, 1)
                np.testing.assert_allclose((half.T if across else half) @ x, b, rtol=1e-3, atol=1e-4)
                # From the left.
                y = ask(driver, "trsv", dtype, (upper, 1 - across, unit, 4, 4, 1), a, b[:, 0].copy())[1]
                np.testing.assert_allclose(y, x[:, 0], rtol=1e-3, atol=1e-4)


def test_eigenvalues(driver, dtype):
    a = normal(dtype, 5, 5)
    whole = a + a.T
    vectors, values, _ = ask(driver, "syevd", dtype, (1, 0, 5, 5), whole, normal(dtype, 5), infos())
    np.testing.assert_allclose((vectors.T * values) @ vectors, whole, rtol=1e-3, atol=1e-4)


def test_orthogonal_factors(driver, dtype):
    a = normal(dtype, 3, 5)
    factor, tau, _ = ask(driver, "geqrf", dtype, (5, 3, 5, 3), a, normal(dtype, 3), infos())
    q, _, _ = ask(driver, "orgqr", dtype, (5, 3, 3, 5), factor, tau, infos())
    np.testing.assert_allclose(q.T @ np.tril(factor[:, :3]).T, a.T, rtol=1e-3, atol=1e-4)


def test_singular_values(driver, dtype):
    a = normal(dtype, 3, 5)
    left, right = ord("S"), ord("S")
    numbers = (left, right, 5, 3, 5, 5, 3, 3)
    _, values, u, v, _ = ask(
        driver,
        "gesvd",
        dtype,
        numbers,
        a,
        normal(dtype, 3),
        normal(dtype, 3, 5),
        normal(dtype, 3, 3),
        infos(),
    )
    np.testing.assert_allclose((u.T * values) @ v.T, a.T, rtol=1e-3, atol=1e-4)


@pytest.mark.parametrize(
    ("pads", "strides", "dilations"), [((1, 0), (1, 1), (1, 1)), ((2, 1), (2, 1), (1, 2))]
)
@pytest.mark.parametrize(("groups", "short"), [(1, 0), (2, 1)])
def test_convolutions(driver, fake, dtype, pads, strides, dilations, groups, short):
    n, c, h, w, o, p, q = 2, 4, 7, 6, 6, 3, 2
    r, s = (
        (size + 2 * pad - (k - 1) * dilation - 1) // stride + 1
        for size, k, pad, stride, dilation in zip((h, w), (p, q), pads, strides, dilations, strict=True)
    )
    d = c // groups
    numbers = (n, c, h, w, o, d, p, q, r, s, *pads, *strides, *dilations, groups, short)
    x, f, y = normal(dtype, n, c, h, w), normal(dtype, o, d, p, q), normal(dtype, n, o, r, s)
    found = ask(driver, "conv2d", dtype, numbers, x, f, y * 0)[2]
    back = ask(driver, "conv2d_input", dtype, numbers, f, y, x * 0)[2]
    filters = ask(driver, "conv2d_filters", dtype, numbers, x, y, f * 0)[2]
    # The second and the third one are the adjoints of the first.
    whole = np.vdot(found, y)
    np.testing.assert_allclose([np.vdot(back, x), np.vdot(filters, f)], [whole, whole], rtol=1e-3)
    # A deterministic algorithm; all digits of float32 unless it may be rounded.
    math = 3 if dtype == "float32" and not short else 0
    assert {call[1:] for call in fake.calls} == {(driver.main_stream, 5, math)}


def test_transforms(driver, fake, dtype):
    wide = "complex64" if dtype == "float32" else "complex128"
    x = normal(dtype, 3, 8)
    half = ask(driver, "rfft", dtype, (3, 8, 5), x, np.zeros((3, 5), wide))[1]
    np.testing.assert_allclose(half, np.fft.rfft(x), rtol=1e-4, atol=1e-5)
    back = ask(driver, "irfft", wide, (3, 8, 5), half, np.zeros((3, 8), dtype))[1]
    np.testing.assert_allclose(back, x * 8, rtol=1e-4, atol=1e-4)
    z = (x + 1j * x[::-1]).astype(wide)
    for inverse, numpy in ((0, np.fft.fft), (1, np.fft.ifft)):
        for columns in (0, 1):
            sizes = (8, 3) if columns else (3, 8)
            found = ask(driver, "fft", wide, (*sizes, columns, inverse), z, np.zeros_like(z))[1]
            n = 3 if columns else 8
            expected = numpy(z, axis=0 if columns else 1) * (n if inverse else 1)
            np.testing.assert_allclose(found, expected, rtol=1e-4, atol=1e-4)
    assert {call[1] for call in fake.calls} == {driver.main_stream}


def test_errors_of_convolutions_and_transforms(driver, fake):
    numbers = (1, 1, 3, 3, 1, 1, 1, 1, 3, 3, 0, 0, 1, 1, 1, 1, 1, 0)
    fake.status["room"] = 3000
    ask(driver, "conv2d", "float32", numbers, *np.ones((2, 1, 9), "f4"), np.zeros(9, "f4"))
    # The first algorithm did not do, and the one that each direction has was taken.
    assert {call[2] for call in fake.calls} == {1}
    fake.status["Forward"] = 3000
    with pytest.raises(
        DriverError, match=r"bad .cudnnConvolutionForward, status 3000. for conv2d of float32"
    ):
        ask(driver, "conv2d", "float32", numbers, *np.ones((2, 1, 9), "f4"), np.zeros(9, "f4"))
    fake.status["plan"] = 5
    with pytest.raises(DriverError, match=r"an internal error .cufftMakePlanMany64, status 5. for rfft"):
        driver.library_memory(Request("rfft", "float32", (3, 8, 5)))


def test_numbers_and_arrays_that_do_not_go_together():
    for numbers, sizes in (
        ((1, 5, 5), (24, 1)),
        ((1, 5, 5), (25,)),
        ((1, -5, 5), (25, 1)),
        ((1, 2**31, 5), (25, 1)),
    ):
        with pytest.raises(ArtifactError, match="the schedule"):
            Request("potrf", "float32", numbers).check(sizes)
    with pytest.raises(ArtifactError, match="the schedule"):
        Request("potrf", "float16", (1, 5, 5)).check((25, 1))


def test_errors_name_the_function_and_the_request(driver, fake):
    asked = Request("potrf", "float64", (1, 3, 3))
    array = upload(driver, np.eye(3), driver.main_stream)
    info = upload(driver, infos(), driver.main_stream)
    memory = driver.allocate(driver.library_memory(asked), driver.main_stream)
    for status, kind in ((2, DeviceMemoryError), (7, DriverError)):
        fake.status["cusolverDnDpotrf"] = status
        with pytest.raises(
            kind, match=rf"cusolverDnDpotrf, status {status}. for potrf of float64, upper 1, n 3"
        ):
            driver.ask(asked, [array.address, info.address, memory], driver.main_stream)
    fake.status["cusolverDnDgetrf_bufferSize"] = 3
    with pytest.raises(DriverError, match=r"an invalid value .cusolverDnDgetrf_bufferSize"):
        driver.library_memory(Request("getrf", "float64", (3, 3, 3)))


def test_libraries_that_do_not_start(library, fake, monkeypatch):
    monkeypatch.setattr(started_libraries, "_WORKSPACE", 4096)
    driver = CudaDriver(0, LibraryCalls(library), lambda name, version: fake if name == "cusolver" else None)
    fake.status["cusolverDnCreate"] = 1
    with pytest.raises(DriverError, match=r"not initialised .cusolverDnCreate[^$]*GRAPHC_CUDA_LIBRARIES=0"):
        driver.start_libraries(["cusolver"])
    with pytest.raises(DriverError, match=r"cuSOLVER is asked for potrf .* has not been started"):
        driver.library_memory(Request("potrf", "float64", (1, 3, 3)))
    with config.change_flags(cuda_libraries=False):
        assert not driver.start_libraries(["cusolver"])
    assert driver.start_libraries(["cublas", "cusolver"]) == {"cusolver"}
    old = CudaDriver(0, LibraryCalls(library), lambda name, version: ctypes.CDLL(library))
    with pytest.raises(DriverError, match=r"cuSOLVER has to be one of CUDA 12 or newer"):
        old.start_libraries(["cusolver"])


@pytest.mark.parametrize(
    ("name", "place", "needed", "version"),
    [
        ("cusolver", "cu13/lib/libcusolver.so.12", "cu13/lib/libcublas.so.13", 13010),
        ("cusolver", "cusolver/lib/libcusolver.so.11", "nvjitlink/lib/libnvJitLink.so.12", 12090),
        ("cufft", "cu13/lib/libcufft.so.12", "", 13000),
        ("cufft", "cufft/lib/libcufft.so.11", "", 13000),
        ("cudnn", "cudnn/lib/libcudnn.so.9", "cu13/lib/libcublasLt.so.13", 13000),
    ],
)
def test_where_they_are_looked_for(name, place, needed, version, tmp_path, monkeypatch):
    package = SimpleNamespace(submodule_search_locations=[str(tmp_path)])
    monkeypatch.setattr(importlib.util, "find_spec", lambda name: package if name == "nvidia" else None)
    opened = []

    def load(name):
        opened.append(str(name))
        if not Path(name).is_file():
            raise OSError(f"{name}: cannot open shared object file")
        return name

    monkeypatch.setattr(libraries.ctypes, "CDLL", load)
    find = partial(libraries.find_library.__wrapped__, name)
    assert find(version) is None and find(11080) is None
    del opened[:]
    for file in filter(None, (place, needed)):
        path = tmp_path / file
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(b"")
    assert find(version) == str(tmp_path / place)
    # What it needs is loaded first, so that its names are known.
    assert opened[-1] == str(tmp_path / place) and (not needed or str(tmp_path / needed) in opened)
