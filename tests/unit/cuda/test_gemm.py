# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Products as a library takes them: all layouts, against NumPy, and what is left to kernels."""

from __future__ import annotations

import ctypes
import gc
import random

import numpy as np
import pytest

from graphc_runtime.cuda import gemm, started_libraries
from graphc_runtime.cuda.array import DeviceArray, Memory
from graphc_runtime.cuda.calls import LibraryCalls
from graphc_runtime.cuda.cuda_driver import CudaDriver
from graphc_runtime.cuda.gemm import Gemm, axes_of, gemm_of
from graphc_runtime.errors import ArtifactError
from graphc_tools.gpu.memory import BoundsError, LaunchError, UninitialisedError
from graphc_tools.gpu.simulated import SimulatedDriver

KINDS = sorted(gemm.KINDS)
_TOLERANCE = {"float32": 1e-5, "complex64": 1e-5, "float64": 1e-13, "complex128": 1e-13}


@pytest.fixture(params=["simulated", "cublas"])
def driver(request, monkeypatch):
    """A device with a library."""
    monkeypatch.setattr(gemm, "LEAST", 1)
    if request.param == "simulated":
        made = SimulatedDriver(library=True)
    else:
        monkeypatch.setattr(started_libraries, "_WORKSPACE", 4096)
        blas = ctypes.CDLL(request.getfixturevalue("blas"))
        made = CudaDriver(0, LibraryCalls(request.getfixturevalue("library")), lambda name, version: blas)
    assert made.start_libraries(["cublas"])
    yield made
    gc.collect()


class Operand:
    """An array somewhere in memory, with strides of its own; what lies between is NaN."""

    def __init__(self, driver, source, letters, sizes, dtype):
        self.shape = tuple(sizes[letter] for letter in letters)
        order = sorted(range(len(letters)), key=lambda place: (letters[place] in "ijk", source.random()))
        strides, step = [0] * len(letters), 1
        for place in reversed(order):
            strides[place] = step
            # Rows, columns and matrices may be farther apart than they are long.
            step = step * self.shape[place] + source.choice([0, 0, 3]) * (step > 1)
        self.strides, self.offset = tuple(strides), source.choice([0, 0, 5])
        self.host = np.full(self.offset + step + 7, np.nan, dtype)
        values = np.random.default_rng(source.randrange(99)).integers(-4, 5, self.shape)
        if np.dtype(dtype).kind == "c":
            values = values + 1j * values[::-1]
        self.view[...] = values
        self.memory = Memory(driver, self.host.nbytes, driver.main_stream)
        driver.upload(self.memory.address, self.host, driver.main_stream)
        self.array = DeviceArray(self.memory, dtype, self.shape, self.strides, self.offset)

    @property
    def view(self):
        size = self.host.itemsize
        part = self.host[self.offset :]
        return np.lib.stride_tricks.as_strided(part, self.shape, [size * s for s in self.strides])

    def clear(self, driver):
        """NaN there, which counts as zeros here."""
        driver.upload(self.memory.address, np.full_like(self.host, np.nan), driver.main_stream)
        self.view[...] = 0

    def found(self, driver):
        """What is in memory now, all of it."""
        raw = np.empty_like(self.host)
        driver.download(raw, self.memory.address, driver.main_stream)
        return raw


@pytest.mark.parametrize("kind", KINDS, ids=" to ".join)
@pytest.mark.parametrize("form", ["ik,kj->ij", "hik,hkj->hij", "ik,hkj->hij", "ghik,gkj->ghij", "ki,jk->ji"])
def test_all_layouts_give_what_numpy_does(driver, form, kind):
    source, taken = random.Random(form), 0
    for _ in range(24):
        sizes = {letter: source.choice([1, 2, 3, 5]) for letter in "ghijk"}
        parts = axes_of(form)
        operands = [
            Operand(driver, source, part, sizes, dtype)
            for part, dtype in zip(parts, (kind[0], kind[0], kind[1]), strict=True)
        ]
        adds = source.random() < 0.5
        asked = gemm_of(parts, [operand.array for operand in operands], short=False, adds=adds)
        if asked is None:
            continue
        taken += 1
        a, b, c = operands
        if not adds:
            c.clear(driver)
        c.view[...] += np.einsum(form, a.view.astype(kind[1]), b.view.astype(kind[1]))
        call, (first, second, third) = asked
        matrices = first.address, second.address, third.address
        driver.ask(call, matrices, driver.main_stream)
        np.testing.assert_allclose(c.found(driver), c.host, rtol=_TOLERANCE[kind[1]])
    assert taken == 24 if "h" not in form else taken >= 8


def lay(shape, strides=None, offset=0, dtype="float32", nbytes=1 << 12):
    memory = Memory(SimulatedDriver(), nbytes, 1, 1 << 20, object())
    return DeviceArray(memory, dtype, shape, strides, offset)


@pytest.mark.parametrize(
    ("form", "left", "right", "target"),
    [
        ("ik,kj->ij", lay((4, 3), (6, 2)), lay((3, 5)), lay((4, 5))),  # every other column
        ("ik,kj->ij", lay((4, 3), (-3, 1), 9), lay((3, 5)), lay((4, 5))),  # backwards
        ("ik,kj->ij", lay((4, 3), (0, 1)), lay((3, 5)), lay((4, 5))),  # a row, repeated
        ("ik,kj->ij", lay((4, 3)), lay((3, 5)), lay((4, 5), (10, 2))),
        ("hik,hkj->hij", lay((2, 4, 3), (-12, 3, 1), 12), lay((2, 3, 5)), lay((2, 4, 5))),
        ("ghik,ghkj->ghij", lay((2, 2, 4, 3), (12, 36, 3, 1)), lay((2, 2, 3, 5)), lay((2, 2, 4, 5))),
        ("ik,kj->ij", lay((4, 3), dtype="int32"), lay((3, 5), dtype="int32"), lay((4, 5), dtype="int32")),
        (
            "ik,kj->ij",
            lay((4, 3), dtype="float16"),
            lay((3, 5), dtype="float16"),
            lay((4, 5), dtype="float16"),
        ),
        ("ik,kj->ij", lay((4, 3), dtype="float16"), lay((3, 5)), lay((4, 5))),
        ("ik,kj->ij", lay((4, 0)), lay((0, 5)), lay((4, 5))),
        ("ik,kj->ij", lay((0, 3)), lay((3, 5)), lay((0, 5))),
        ("ik,kj->ij", lay((4, 3)), lay((3, 0)), lay((4, 0))),
    ],
)
def test_what_the_library_does_not_take_is_left_to_kernels(monkeypatch, form, left, right, target):
    monkeypatch.setattr(gemm, "LEAST", 1)
    assert gemm_of(axes_of(form), (left, right, target), short=False, adds=True) is None


def test_small_products_are_left_to_kernels():
    def asked(n):
        arrays = [
            lay((n, 128), nbytes=1 << 30),
            lay((128, 128), nbytes=1 << 30),
            lay((n, 128), nbytes=1 << 30),
        ]
        return gemm_of(axes_of("ik,kj->ij"), arrays, short=False, adds=True)

    assert asked(127) is None
    assert asked(128) is not None


@pytest.mark.parametrize(
    ("left", "message"),
    [
        (lay((4, 3, 1)), "shape .4, 3, 1. with axes 'ik'"),
        (lay((4, 2)), "with 2 and 3 of the axis 'k'"),
        (lay((4, 3), nbytes=44), "from 0 on in 44 bytes"),
        (lay((4, 3), offset=1, nbytes=48), "from 1 on in 48 bytes"),
        (lay((4, 3), (1 << 40, 1)), "strides .1099511627776, 1."),
    ],
)
def test_changed_files_multiply_no_other_memory(monkeypatch, left, message):
    monkeypatch.setattr(gemm, "LEAST", 1)
    with pytest.raises(ArtifactError, match=message):
        gemm_of(axes_of("ik,kj->ij"), (left, lay((3, 5)), lay((4, 5))), short=False, adds=True)


@pytest.mark.parametrize(
    "form",
    [
        *("", "ik", "ik,kj", "ik,kj->", "ik,kj->i", "ij,kj->ij", "ikj,kj->ij", "iik,kj->ij", "Ik,kj->Ij"),
        *("hik,kj->ij", "ik,kj->ijk", "ik,kj,->ij", "ik,kj->ij->", "ik,k1->i1", "i k,kj->ij"),
    ],
)
def test_forms_that_are_none(form):
    with pytest.raises(ValueError, match="no form of a product"):
        axes_of(form)


def test_axes_of_which_only_the_first_index_is_used(monkeypatch):
    monkeypatch.setattr(gemm, "LEAST", 1)
    arrays = lay((7, 4, 3), (12, 3, 1)), lay((3, 5)), lay((4, 5))
    call, _ = gemm_of(axes_of(".ik,kj->ij"), arrays, short=False, adds=True)
    assert call == Gemm("float32", "float32", (5, 4, 3), (False, False), (5, 3, 5))


def test_only_factors_of_float32_are_rounded(monkeypatch):
    monkeypatch.setattr(gemm, "LEAST", 1)
    for dtype in ("float32", "float64"):
        arrays = [lay(shape, dtype=dtype) for shape in ((4, 3), (3, 5), (4, 5))]
        call, _ = gemm_of(axes_of("ik,kj->ij"), arrays, short=True, adds=True)
        assert call.short == (dtype == "float32")


GOOD = Gemm("float32", "float32", (4, 3, 2), (False, False), (4, 2, 4))


@pytest.mark.parametrize(
    ("changes", "error", "message"),
    [
        ({"sums": "float64"}, LaunchError, "multiplies no float32 to float64"),
        ({"sizes": (0, 3, 2)}, LaunchError, "without elements"),
        ({"leading": (3, 2, 4)}, LaunchError, "columns of A have 4 elements and are 3 apart"),
        ({"transposed": (False, True)}, LaunchError, "columns of B have 3 elements and are 2 apart"),
        ({"count": 2}, LaunchError, "are .0, 0, 0. apart"),
        ({"count": 2, "apart": (0, 0, 1)}, LaunchError, "shares memory"),
        ({"count": 9, "apart": (0, 0, 12)}, BoundsError, "C of a product ends at byte"),
        ({"sizes": (4, 3, 20), "leading": (4, 20, 4)}, BoundsError, "A of a product ends at byte"),
    ],
)
def test_the_simulated_library_refuses(changes, error, message):
    driver = SimulatedDriver(library=True, poison=False)
    driver.start_libraries(["cublas"])
    a, b, c = (driver.allocate(256, driver.main_stream) for _ in range(3))
    call = Gemm(**{**vars(GOOD), **changes})
    with pytest.raises(error, match=message):
        driver.ask(call, (a, b, c), driver.main_stream)
        driver.synchronise(driver.main_stream)


def test_the_simulated_library_looks_at_memory():
    driver = SimulatedDriver(library=True)
    stream = driver.main_stream
    with pytest.raises(RuntimeError, match="not been started"):
        driver.ask(GOOD, (0, 0, 0), stream)
    assert driver.start_libraries(["cublas"]) and not SimulatedDriver().start_libraries(["cublas"])
    a, b, c = (driver.allocate(48, stream) for _ in range(3))
    driver.upload(a, np.ones(12, np.float32), stream)
    driver.upload(b, np.ones(12, np.float32), stream)
    driver.ask(GOOD, (a, b, c), stream)
    with pytest.raises(UninitialisedError, match="not all of which has been written"):
        driver.synchronise(stream)
    # A product that is not added does not read it.
    driver.ask(Gemm(**{**vars(GOOD), "adds": False}), (a, b, c), stream)
    driver.synchronise(stream)
    driver.upload(c, np.zeros(12, np.float32), stream)
    with pytest.raises(LaunchError, match="where nothing lives"):
        driver.ask(GOOD, (a, b, 4096), stream)
    driver.ask(GOOD, (a, b, b), stream)
    with pytest.raises(LaunchError, match="shares memory"):
        driver.synchronise(stream)
    other = Gemm("float32", "float32", (2, 3, 2), (False, False), (2, 2, 2))
    driver.begin_capture(stream)
    driver.ask(GOOD, (a, b, c), stream)
    with pytest.raises(RuntimeError, match="captured before it was asked for"):
        driver.ask(other, (a, b, c), stream)


def test_factors_are_rounded_to_10_bits():
    driver = SimulatedDriver(library=True)
    stream = driver.main_stream
    driver.start_libraries(["cublas"])
    found = {}
    for short in (False, True):
        addresses = [driver.allocate(4, stream) for _ in range(3)]
        for address, value in zip(addresses, (1 + 2.0**-12, 1.0, 0.0), strict=True):
            driver.upload(address, np.full(1, value, np.float32), stream)
        call = Gemm("float32", "float32", (1, 1, 1), (False, False), (1, 1, 1), short=short)
        driver.ask(call, tuple(addresses), stream)
        raw = np.empty(1, np.float32)
        driver.download(raw, addresses[2], stream)
        found[short] = float(raw[0])
    assert found == {False: 1 + 2.0**-12, True: 1.0}
