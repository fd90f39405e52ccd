# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""DLPack, version 0, for arrays of the device: capsules made and read with ctypes.

The layout is that of dlpack.h (https://github.com/dmlc/dlpack): a `DLManagedTensor` with a `DLTensor` first.
"""

from __future__ import annotations

import ctypes

import numpy as np

from graphc_runtime.cuda.interface import CUDA
from graphc_runtime.record import record
from graphc_runtime.symbols import DESCRIPTORS

# NumPy's kind: DLPack's code of the type.
_KINDS = {"i": 0, "u": 1, "f": 2, "c": 5, "b": 6}
_BFLOAT16 = 4
_NAME, _USED = b"dltensor", b"used_dltensor"


@record(frozen=True)
class Tensor:
    """Place of an array of a CUDA device; strides are in elements, empty for row-major order."""

    address: int
    ordinal: int
    dtype: np.dtype
    shape: tuple[int, ...]
    strides: tuple[int, ...]


class _Tensor(ctypes.Structure):
    _fields_ = (
        ("data", ctypes.c_void_p),
        ("device", ctypes.c_int32),
        ("ordinal", ctypes.c_int32),
        ("ndim", ctypes.c_int32),
        ("code", ctypes.c_uint8),
        ("bits", ctypes.c_uint8),
        ("lanes", ctypes.c_uint16),
        ("shape", ctypes.POINTER(ctypes.c_int64)),
        ("strides", ctypes.POINTER(ctypes.c_int64)),
        ("byte_offset", ctypes.c_uint64),
    )


class _Managed(ctypes.Structure):
    _fields_ = (("tensor", _Tensor), ("context", ctypes.c_void_p), ("deleter", ctypes.c_void_p))


# They keep the GIL: what they do may drop the last reference to an object.
_DELETER = ctypes.PYFUNCTYPE(None, ctypes.c_void_p)
_DESTRUCTOR = ctypes.PYFUNCTYPE(None, ctypes.c_void_p)
_api = ctypes.pythonapi
_new = ctypes.PYFUNCTYPE(ctypes.py_object, ctypes.c_void_p, ctypes.c_char_p, ctypes.c_void_p)(
    ("PyCapsule_New", _api)
)
_valid = ctypes.PYFUNCTYPE(ctypes.c_int, ctypes.c_void_p, ctypes.c_char_p)(("PyCapsule_IsValid", _api))
_pointer = ctypes.PYFUNCTYPE(ctypes.c_void_p, ctypes.c_void_p, ctypes.c_char_p)(
    ("PyCapsule_GetPointer", _api)
)
_rename = ctypes.PYFUNCTYPE(ctypes.c_int, ctypes.py_object, ctypes.c_char_p)(("PyCapsule_SetName", _api))
# What capsules hold, by its address, until the consumer is done with it.
_lent: dict[int, tuple[_Managed, object, object]] = {}


@_DELETER
def _delete(address: int) -> None:
    _lent.pop(address, None)


@_DESTRUCTOR
def _destroy(capsule: int) -> None:
    """A capsule that nobody has used gives its array back."""
    if _valid(capsule, _NAME):
        _lent.pop(_pointer(capsule, _NAME), None)


def _code(dtype: np.dtype) -> int:
    return _BFLOAT16 if dtype.name == "bfloat16" else _KINDS[dtype.kind]


def to_capsule(tensor: Tensor, owner: object) -> object:
    """A capsule of a tensor, which keeps an object alive."""
    ndim = len(tensor.shape)
    sizes, strides = ((ctypes.c_int64 * max(ndim, 1))(*numbers) for numbers in (tensor.shape, tensor.strides))
    raw = _Tensor(
        *(tensor.address, CUDA, tensor.ordinal, ndim),
        *(_code(tensor.dtype), 8 * tensor.dtype.itemsize, 1, sizes, strides, 0),
    )
    managed = _Managed(raw, None, ctypes.cast(_delete, ctypes.c_void_p))
    address = ctypes.addressof(managed)
    _lent[address] = (managed, owner, (sizes, strides))
    return _new(address, _NAME, ctypes.cast(_destroy, ctypes.c_void_p))


class _Borrowed:
    """The loan of a capsule, given back at the end."""

    def __init__(self, managed: _Managed) -> None:
        self._managed = managed

    def __del__(self) -> None:
        if self._managed.deleter:
            _DELETER(self._managed.deleter)(ctypes.addressof(self._managed))


def read_capsule(capsule: object) -> tuple[Tensor, object]:
    """The tensor of a capsule, which is used up, and what keeps its memory alive.

    Raises:
        TypeError: its elements are not numbers of NumPy.
    """
    if not _valid(id(capsule), _NAME):
        raise TypeError("a DLPack capsule that has been used, or is none")
    managed = _Managed.from_address(_pointer(id(capsule), _NAME))
    _rename(capsule, _USED)
    owner = _Borrowed(managed)
    raw = managed.tensor
    letters = {code: letter for letter, code in _KINDS.items()}
    if raw.lanes == 1 and raw.code == _BFLOAT16 and raw.bits == 16:
        dtype = DESCRIPTORS["bfloat16"]
    elif raw.lanes != 1 or raw.code not in letters or raw.bits % 8:
        raise TypeError(f"an array of DLPack's type {raw.code} with {raw.bits} bits")
    else:
        dtype = np.dtype(f"{letters[raw.code]}{raw.bits // 8}")
    shape = tuple(raw.shape[i] for i in range(raw.ndim))
    strides = tuple(raw.strides[i] for i in range(raw.ndim)) if raw.strides else ()
    return Tensor((raw.data or 0) + raw.byte_offset, raw.ordinal, dtype, shape, strides), owner
