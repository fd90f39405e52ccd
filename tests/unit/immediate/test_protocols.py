# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""NumPy's protocols, DLPack and buffers."""

from __future__ import annotations

import gc
import io

import numpy as np
import pytest

from graphc.immediate import Tensor

A = np.array([[1.0, -2.0, 3.0], [0.5, 4.0, -6.0]])


def test_arrays_share_memory_and_are_read_only(gt):
    x = gt.numpy_to_tensor(A)
    view = np.asarray(x)
    assert view is not A and not view.flags.writeable and np.shares_memory(view, np.asarray(x))
    assert np.array(x).flags.writeable and np.asarray(x, dtype="float32").dtype == "float32"
    with pytest.raises(ValueError, match=r"without a copy|avoid copy"):
        np.asarray(x, dtype="float32", copy=False)
    assert x.__array__(copy=True).flags.writeable


@pytest.mark.parametrize(
    "f",
    [
        np.exp,
        np.abs,
        np.negative,
        lambda x: np.add(x, A),
        lambda x: np.multiply(A, x),
        lambda x: A - x,
        lambda x: np.float64(2) / x,
        lambda x: np.add.reduce(x),
        lambda x: np.maximum.reduce(x, axis=1),
        lambda x: np.concatenate([x, A], axis=1),
        lambda x: np.stack([x, x]),
        lambda x: np.sum(x, axis=0),
        lambda x: np.mean(x, axis=1, keepdims=True),
        lambda x: np.transpose(x),
        lambda x: np.where(x > 0, x, 0.0),
        lambda x: np.reshape(x, (3, 2)),
        lambda x: np.zeros_like(x),
        lambda x: np.dot(x, A.T),
        lambda x: np.argmax(x, axis=0),
        lambda x: np.clip(x, -1, 1),
        lambda x: np.amax(x),
        lambda x: np.add.accumulate(x),
        lambda x: np.split(x, 3, axis=1)[1],
        lambda x: np.round(x, 1),
    ],
)
def test_numpy_functions_run_in_the_environment(gt, f):
    result = f(gt.numpy_to_tensor(A))
    assert type(result) is Tensor and result.env is gt
    np.testing.assert_allclose(np.asarray(result), f(A))


def test_questions_about_arrays_are_numpys(gt):
    x = gt.numpy_to_tensor(A)
    assert np.shape(x) == (2, 3) and np.ndim(x) == 2 and np.allclose(x, A) and np.array_equal(x, A)
    np.testing.assert_array_equal(x, A)


def test_what_has_no_counterpart_is_an_error(env):
    x = env.numpy_to_tensor(A)
    with pytest.raises(TypeError, match=r"np.real_if_close has no counterpart.*np.asarray"):
        np.real_if_close(x)
    with pytest.raises(TypeError, match=r"np.isnat has no counterpart"):
        np.isnat(x)
    with pytest.raises(TypeError, match=r"np.hypot.at has no counterpart"):
        np.hypot.at(x, 0, 1.0)
    with pytest.raises(TypeError, match=r"np.hypot.accumulate has no counterpart"):
        np.hypot.accumulate(x)


def test_dlpack_both_ways(gt):
    x = gt.numpy_to_tensor(A) * 1
    assert x.__dlpack_device__() == (1, 0)
    view = np.from_dlpack(x)
    assert np.shares_memory(view, np.asarray(x)) and not view.flags.writeable and (view == A).all()
    assert x.__dlpack__() is not None  # consumers that do not know DLPack 1.0 get a copy
    for version in (None, (0, 0)):  # unless they ask for none, which says that they will not write
        assert x.__dlpack__(max_version=version, copy=False) is not None
        assert x.__dlpack__(max_version=version, copy=True, dl_device=(1, 0)) is not None
    array = A.copy()
    y = gt.from_dlpack(array)
    assert np.shares_memory(np.asarray(y), array) and (y + x).tolist() == (2 * A).tolist()
    assert gt.from_dlpack(x).tolist() == A.tolist()


def test_buffers(env):
    x = env.numpy_to_tensor(A)
    view = memoryview(x)
    assert view.shape == (2, 3) and view.readonly and view.tolist() == A.tolist()
    assert bytes(x) == A.tobytes() and bytearray(env.as_tensor([True])) == b"\x01"
    kept = memoryview(env.exp(x))
    gc.collect()
    np.testing.assert_allclose(kept, np.exp(A))
    with pytest.raises((BufferError, SystemError, TypeError)):
        io.BytesIO(b"12345678").readinto(x)
    with pytest.raises(BufferError, match="read-only"):
        x.__buffer__(1)


@pytest.mark.parametrize("dtype", ["bool", "int8", "uint64", "float16", "float32", "complex64", "complex128"])
def test_dtypes_and_layouts(env, dtype):
    base = np.arange(24).reshape(4, 6).astype(dtype)
    swapped = base.astype(base.dtype.newbyteorder())
    for a in (base[::2, ::-1], base.T, base[:0], base[1, 2], base[2:3], swapped):
        for copy in (True, False):
            x = env.numpy_to_tensor(a, copy=copy)
            assert x.dtype == dtype and tuple(x.shape) == a.shape
            np.testing.assert_array_equal(np.asarray(x), a)
            np.testing.assert_array_equal(np.asarray(env.eq(x, a)), np.ones(a.shape, bool))
