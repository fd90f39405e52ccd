# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Results of mode "cuda" in arrays that the caller gives."""

from __future__ import annotations

import gc
import re

import numpy as np
import pytest
from simulation import device_for

import graphc
import graphc.tensor as pt
import graphc_runtime
from graphc_runtime.cuda.array import DeviceArray, upload
from graphc_tools.gpu.simulated import SimulatedDriver

A = np.arange(3, dtype="float32")
x = pt.vector("x", dtype="float32")


class Foreign:
    """An array of another library, in the memory of ours."""

    def __init__(self, array, *, readonly=False, stream=None):
        self.__cuda_array_interface__ = {
            **array.__cuda_array_interface__,
            "data": (array.address, readonly),
            "stream": stream,
        }
        self.kept = array


@pytest.fixture
def made(monkeypatch):
    """Makes a function with a device; an array there of zeros, or of a value."""

    def make(inputs, outputs, **options):
        f = graphc.function(inputs, outputs, mode="cuda", **options)
        driver = device_for(monkeypatch, f)

        def there(value):
            return upload(driver, np.asarray(value, "float32"), driver.main_stream)

        return f, driver, there

    return make


def test_kernels_write_to_arrays_of_the_device(made):
    f, driver, there = made([x], [x + 1, x * 2])
    a, out = there(A), there(0 * A)
    before = set(driver.live)
    driver.transfers.clear()
    y, z = f(a, out=[out, None])
    assert y is out and isinstance(z, DeviceArray)
    assert not driver.transfers  # not even a copy within the device
    assert set(driver.live) == before | {z.address}
    np.testing.assert_array_equal(out.get(), A + 1)
    np.testing.assert_array_equal(z.get(), A * 2)


def test_repeated_calls_allocate_nothing_and_are_replayed(made):
    row = pt.special.softmax(x) + pt.sort(x) * pt.cumsum(x).sum()
    f, driver, there = made([x], row)
    a, out = there(A), there(0 * A)
    wanted = graphc.function([x], row)(A)
    for _ in range(4):
        assert f(a, out=out) is out
        np.testing.assert_allclose(out.get(), wanted, rtol=1e-5)
    assert driver.captured == 1 and driver.replayed == 3
    gc.collect()
    assert set(driver.live) == {a.address, out.address}


def test_what_overlaps_an_input_gets_a_copy(made):
    f, driver, there = made([x], x[::-1] + 1)
    a = there(A)
    assert f(a, out=a) is a
    np.testing.assert_array_equal(a.get(), A[::-1] + 1)
    kinds = [transfer.kind for transfer in driver.transfers]
    assert kinds == ["upload", "copy", "download"]


def test_arrays_of_other_libraries_are_given_back(made):
    f, driver, there = made([x], x + 1)
    theirs = driver.new_stream()
    for stream in (None, 1, theirs):
        inner = there(0 * A)
        out = Foreign(inner, stream=stream)
        assert f(A, out=out) is out
        if stream is not None:
            # Their stream waits for ours: reading in it needs no other wait.
            found = np.empty(3, np.float32)
            if stream == theirs:
                driver.download(found, inner.address, theirs)
                np.testing.assert_array_equal(found, A + 1)
        np.testing.assert_array_equal(inner.get(), A + 1)


def test_shared_variables_and_out(made):
    w = graphc.shared(A, "w")
    f, _, there = made([x], x + w, updates={w: w * 2})
    out = there(0 * A)
    for k in range(3):
        assert f(A, out=out) is out
        np.testing.assert_array_equal(out.get(), A + A * 2**k)
    inside = w.get_value(return_internal_type=True)
    with_old = f(A, out=inside)  # what is read is not overwritten before
    np.testing.assert_array_equal(with_old.get(), A + A * 8)
    np.testing.assert_array_equal(w.get_value(), A * 16)


def test_a_trace_passes_arrays_on(made):
    f, _, there = made([x], [x + 1, x * 2])
    out = there(0 * A)
    with f.trace() as trace:
        assert f(A, out=[out, None])[0] is out
    assert "1 call" in str(trace)
    np.testing.assert_array_equal(out.get(), A + 1)


def test_sizes_that_depend_on_values(made):
    f, driver, there = made([x], pt.exp(x[x > 0]))
    out = there([0, 0])
    driver.transfers.clear()
    assert f(A, out=out) is out
    np.testing.assert_allclose(out.get(), np.exp(A[1:]), rtol=1e-6)
    with pytest.raises(ValueError, match=r"must have shape \(1,\), got \(2,\)"):
        f(A - 1, out=out)
    np.testing.assert_allclose(out.get(), np.exp(A[1:]), rtol=1e-6)  # nothing has been written


def test_forms_of_outputs(made):
    f, _, there = made([x], {"a": x + 1, "b": [x * 2, x.sum()]})
    out = {"a": there(0 * A), "b": [np.zeros(3, np.float32), None]}
    found = f(A, out=out)
    assert found["a"] is out["a"] and found["b"][0] is out["b"][0]
    np.testing.assert_array_equal(found["a"].get(), A + 1)
    np.testing.assert_array_equal(out["b"][0], A * 2)
    assert float(found["b"][1]) == 3


def test_what_does_not_fit_is_refused(made):
    named = x + 1
    named.name = "y"
    f, driver, there = made([x], [named, x * 2])
    good = there(0 * A)
    wide = there(np.zeros((3, 2)))
    long = there(np.zeros(6))
    elsewhere = upload(SimulatedDriver(), A, 17)
    known = there(A)
    known.known = A
    for wrong, error, message in (
        (
            upload(driver, np.arange(3.0), driver.main_stream),
            TypeError,
            "must have dtype float32, got dtype float64",
        ),
        (wide, ValueError, "must have shape (?,), got (3, 2)"),
        (there(np.zeros(4)), ValueError, "must have shape (3,), got (4,)"),
        (
            DeviceArray(long.memory, "float32", (3,), (2,)),
            ValueError,
            "must be C-contiguous, got strides (8,)",
        ),
        (elsewhere, TypeError, "is an array of cuda:0, expected one of cuda:0"),
        (Foreign(good, readonly=True), ValueError, "must be writeable, and is read-only"),
        (known, ValueError, "must be writeable"),
        ([1, 2, 3], TypeError, "must be an array, got list"),
        (A[::2], ValueError, "must be C-contiguous"),
        (np.zeros(4, np.float32), ValueError, "must have shape (3,), got (4,)"),
    ):
        with pytest.raises(error, match=re.escape(message)) as caught:
            f(A, out=[wrong, None])
        assert re.match(r"out= of \S+ for result 0 'y' ", str(caught.value)), caught.value
    pair = [DeviceArray(long.memory, "float32", (3,), offset=k) for k in (0, 2)]
    with pytest.raises(ValueError, match=r"for result 1 shares memory with out= of .* for result 0"):
        f(A, out=pair)
    cpu = graphc.function([x], x + 1)
    with pytest.raises(TypeError, match="must be an array, got DeviceArray"):
        cpu(A, out=good)
    gc.collect()
    np.testing.assert_array_equal(good.get(), 0 * A)


def test_files_take_them_too(made, tmp_path):
    f, _, there = made([x], [x + 1])
    path = graphc.export({"f": f}, tmp_path / "f.gcx", targets=["cuda"])
    model = graphc_runtime.load(path, target="cuda")
    out = there(0 * A)
    found = model.f(A, out=[out])
    assert found[0] is out
    np.testing.assert_array_equal(out.get(), A + 1)
