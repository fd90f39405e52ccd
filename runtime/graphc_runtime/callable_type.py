# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""``NativeCallable``: base class of Python objects whose call goes straight to machine code.

A call of an instance of a Python class looks up ``__call__`` and packs the arguments into a tuple and a dict,
which costs 30 ns by position and over 80 ns by keyword. CPython's vectorcall protocol (PEP 590) avoids both:
an instance carries the address of a C function. Here that address is a field of a base class made with
``PyType_FromSpec``, and may be empty: then the call goes to the class's Python ``__call__``. The same goes
for interpreters that `SUPPORTED` does not trust.

Layout of an instance of a class that inherits from `NativeCallable` and names one slot first,
``_native_self``:

    16  address of ``PyObject *vectorcall(PyObject *callable, PyObject **args, size_t nargsf, PyObject
    *kwnames)`` 24  ``_native_self``, the object that machine code works with (may be NULL)
"""

from __future__ import annotations

import ctypes
import struct
import sys
from typing import TYPE_CHECKING, Any

ADDRESS_OFFSET = 16
SELF_OFFSET = 24

_TYPE_FLAGS_OFFSET = 168
_BASETYPE, _HAVE_VECTORCALL, _HAVE_VERSION_TAG = 1 << 10, 1 << 11, 1 << 18
_SLOT_CALL, _SLOT_MEMBERS = 50, 72
_MEMBER_SSIZE, _READONLY = 19, 1


class _Member(ctypes.Structure):
    _fields_ = [
        ("name", ctypes.c_char_p),
        ("type", ctypes.c_int),
        ("offset", ctypes.c_ssize_t),
        ("flags", ctypes.c_int),
        ("doc", ctypes.c_char_p),
    ]


class _Slot(ctypes.Structure):
    _fields_ = [("slot", ctypes.c_int), ("function", ctypes.c_void_p)]


class _Spec(ctypes.Structure):
    _fields_ = [
        ("name", ctypes.c_char_p),
        ("basicsize", ctypes.c_int),
        ("itemsize", ctypes.c_int),
        ("flags", ctypes.c_uint),
        ("slots", ctypes.POINTER(_Slot)),
    ]


def _make_base() -> tuple[type, list[Any]]:
    """The base class, and the C structures that must outlive it."""
    members = (_Member * 2)(_Member(b"__vectorcalloffset__", _MEMBER_SSIZE, ADDRESS_OFFSET, _READONLY, None))
    call = ctypes.cast(ctypes.pythonapi.PyVectorcall_Call, ctypes.c_void_p).value
    slots = (_Slot * 3)(_Slot(_SLOT_MEMBERS, ctypes.addressof(members)), _Slot(_SLOT_CALL, call))
    flags = _BASETYPE | _HAVE_VECTORCALL | _HAVE_VERSION_TAG
    spec = _Spec(b"graphc_runtime.callable_type.NativeCallable", SELF_OFFSET, 0, flags, slots)
    make = ctypes.pythonapi.PyType_FromSpec
    make.restype, make.argtypes = ctypes.py_object, [ctypes.c_void_p]
    return make(ctypes.addressof(spec)), [members, slots, spec]


def _trusted_interpreter() -> bool:
    """True if the object layout is the one that was tried: CPython with the GIL, 64 bit."""
    return (
        sys.implementation.name == "cpython"
        and struct.calcsize("P") == 8
        and "t" not in sys.abiflags  # with the GIL
        and not hasattr(sys, "getobjects")  # without lists of all objects
    )


def _probe(base: type) -> bool:
    """Check on a class and an instance that every field lies where this module takes it to be."""
    cls = type(
        "Probe",
        (base,),
        {"__slots__": ("_native_self", "__dict__", "__weakref__"), "__call__": lambda self: 1},
    )
    instance, marker = cls(), object()
    instance._native_self = marker
    return (
        base.__basicsize__ == SELF_OFFSET
        and ctypes.c_ulong.from_address(id(cls) + _TYPE_FLAGS_OFFSET).value == cls.__flags__
        and ctypes.c_void_p.from_address(id(instance) + ADDRESS_OFFSET).value is None
        and ctypes.c_void_p.from_address(id(instance) + SELF_OFFSET).value == id(marker)
    )


SUPPORTED = False
if TYPE_CHECKING:

    class NativeCallable:
        """A class of objects that have the address of their call."""

        _native_self: object

        def __call__(self, /, *args: Any, **kwargs: Any) -> Any: ...

else:
    NativeCallable = object
    if _trusted_interpreter():
        _base, _keep = _make_base()
        if _probe(_base):
            NativeCallable, SUPPORTED = _base, True


def enable(cls: type) -> type:
    """Class decorator: let calls of instances use their address field; a class that inherits must be
    decorated anew.

    CPython clears the flag on a class that defines ``__call__``, since the two could disagree. Here they must
    not: ``__call__`` is the slow way to the same result.
    """
    if SUPPORTED:
        ctypes.c_ulong.from_address(id(cls) + _TYPE_FLAGS_OFFSET).value |= _HAVE_VECTORCALL
    return cls


def install(instance: Any, address: int, native_self: Any) -> bool:
    """Make calls of ``instance`` go to machine code.

    Args:
        instance: of a class decorated with `enable`.
        address: a vectorcall function that stays valid while ``native_self`` lives.
        native_self: what it finds at `SELF_OFFSET` of the callable.

    Returns:
        False when this interpreter does not allow it; calls then go to ``__call__`` as before.
    """
    if not SUPPORTED:
        return False
    instance._native_self = native_self
    ctypes.c_void_p.from_address(id(instance) + ADDRESS_OFFSET).value = address
    return True


def suspend(instance: object) -> int | None:
    """Make calls of ``instance`` go to ``__call__`` until `resume`; calls that have begun go on.

    Returns:
        The address to resume with, None if calls go to ``__call__`` anyway.
    """
    if not SUPPORTED:
        return None
    field = ctypes.c_void_p.from_address(id(instance) + ADDRESS_OFFSET)
    address = field.value
    # The tuple stays where it is: another thread may be running the code that it keeps alive.
    field.value = None
    return address


def resume(instance: object, address: int | None) -> None:
    """Undo `suspend`."""
    if address is not None:
        ctypes.c_void_p.from_address(id(instance) + ADDRESS_OFFSET).value = address
