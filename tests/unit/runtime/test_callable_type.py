# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Objects whose call goes to a C function."""

import ctypes
import gc
import math
import weakref

import pytest

from graphc_runtime import callable_type

pytestmark = pytest.mark.skipif(not callable_type.SUPPORTED, reason="needs CPython with the GIL, 64 bit")


@callable_type.enable
class Native(callable_type.NativeCallable):
    __slots__ = ("__dict__", "__weakref__", "_native_self")

    def __call__(self, *args, **kwargs):
        return "python", args, kwargs


def c_function(reply):
    """A vectorcall function that replies to the callable and its positional arguments."""
    proto = ctypes.PYFUNCTYPE(
        ctypes.py_object, ctypes.py_object, ctypes.POINTER(ctypes.py_object), ctypes.c_size_t, ctypes.c_void_p
    )

    def function(callable, args, nargsf, names):
        return reply(callable, [args[i] for i in range(nargsf & ~(1 << 63))])

    return proto(function)


def test_calls_without_an_address_use_python():
    f = Native()
    assert f(1, k=2) == ("python", (1,), {"k": 2})


def test_calls_with_an_address_use_it():
    f = Native()
    function = c_function(lambda callable, args: (callable._native_self, args))
    address = ctypes.cast(function, ctypes.c_void_p).value
    marker = object()
    assert callable_type.install(f, address, marker)
    assert f(1, 2) == (marker, [1, 2]) and f(*range(5))[1] == list(range(5))
    assert next(map(f, [3]))[1] == [3]
    assert f.__call__(1) == ("python", (1,), {})
    suspended = callable_type.suspend(f)
    assert f(1)[0] == "python"
    callable_type.resume(f, suspended)
    assert f(1) == (marker, [1])


def test_instances_are_ordinary_objects():
    f = Native()
    f.me, f.name = f, "f"
    alive = weakref.ref(f)
    del f
    gc.collect()
    assert alive() is None and math.gcd(4, 6) == 2
