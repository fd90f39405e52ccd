# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Kernels compiled, and compared with what they do as Python."""

from __future__ import annotations

import ctypes

import llvmlite.binding as llvm
import numpy as np

from graphc.backends.cpu.object import this_machine
from graphc.native import I64, Static, Value, type_of_dtype
from graphc.native.translate import Translator

_KEEP = []


def compiled(function, *arguments, register=16, **attributes):
    """A ctypes function of a kernel; arrays are passed as pointers, ints as i64."""
    translator = Translator(register=register)
    formal = []
    for i, x in enumerate(arguments):
        kind = type_of_dtype(x.dtype).to if isinstance(x, np.ndarray) else I64
        formal.append(Value(f"%a{i}", kind))
    result = translator.define(function, "kernel", [*formal, *map(Static, attributes.values())])
    this_machine()
    module = llvm.parse_assembly(translator.text())
    module.verify()
    engine = llvm.create_mcjit_compiler(
        module, llvm.Target.from_default_triple().create_target_machine(opt=2)
    )
    engine.finalize_object()
    _KEEP.append(engine)
    types = [ctypes.c_void_p if isinstance(x, np.ndarray) else ctypes.c_int64 for x in arguments]
    results = {"i64": ctypes.c_int64, "f64": ctypes.c_double, "bool": ctypes.c_bool}
    return ctypes.CFUNCTYPE(None if result is None else results[result.name], *types)(
        engine.get_function_address("kernel")
    )


def both(function, *arguments, register=16, **attributes):
    """Runs a kernel compiled and as Python on copies; returns both results after comparing the arrays."""
    f = compiled(function, *arguments, register=register, **attributes)
    ours = [x.copy() if isinstance(x, np.ndarray) else x for x in arguments]
    theirs = [x.copy() if isinstance(x, np.ndarray) else x for x in arguments]
    got = f(*(x.ctypes.data if isinstance(x, np.ndarray) else x for x in ours))
    with np.errstate(all="ignore"):
        expected = function(*theirs, **attributes)
    for a, b in zip(ours, theirs, strict=True):
        np.testing.assert_array_equal(a, b)
    return got, expected
