# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Programs as artifacts: exported and loaded, and through the C interface."""

from __future__ import annotations

import ctypes
import tempfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
from checked import Checked, Finding, arguments

import graphc
import graphc.tensor as pt
import graphc_runtime
from graphc.errors import CompileError
from graphc_runtime import symbols
from graphc_runtime.loader import load_object
from graphc_runtime.marshal import canonical
from graphc_runtime.symbols import DTYPES


def by_artifact(c: Checked) -> Iterator[Finding]:
    """A file, read in the same process."""
    f = _exportable(c)
    if f is None:
        return

    def run() -> list[Any]:
        with tempfile.TemporaryDirectory() as folder:
            path = graphc.export({"f": f}, Path(folder, "f.gcx"))
            module = graphc_runtime.load(path)
            results = module.f(*_given(c))
            return [*results, *(module.state[_state(c, f, old)] for old, _ in c.program.updates)]

    yield from c.compare("artifact", run)


def by_c(c: Checked) -> Iterator[Finding]:
    """The C function, with just the workspace that it asks for, if it can tell."""
    f = _exportable(c)
    if f is None:
        return
    from graphc.artifacts.c_module import c_module
    from graphc.artifacts.export import StateNames
    from graphc.artifacts.source import sources
    from graphc.backends.cpu.object import this_machine

    given = sources({"f": f})
    try:
        made = c_module(given, StateNames(given).of_cells, this_machine())
    except CompileError as error:
        if "C program does not have" in str(error):
            return
        raise
    code = load_object(made.code, _resolve)
    interface, source = made.interfaces["f"], given[0]

    def run() -> list[Any]:
        inputs = [canonical(x, m.spec, m.name) for x, m in zip(_given(c), interface.inputs, strict=False)]
        inputs += [member.initial for member in interface.inputs[len(inputs) :]]
        results = call(code, "f", inputs, [member.spec for member in interface.outputs])
        count = len(source.signature.outputs)
        targets = [update.cell for update in source.signature.updates]
        containers = [source.cells[cell].container for cell in targets]
        found = results[:count]
        for old, _ in c.program.updates:
            container = c.built.variables[old].container
            found.append(results[count + next(i for i, x in enumerate(containers) if x is container)])
        return found

    yield from c.compare("c", run)


class Tensor(ctypes.Structure):
    """`graphc_tensor` of graphc.h."""

    _fields_ = [
        ("data", ctypes.c_void_p),
        ("shape", ctypes.POINTER(ctypes.c_int64)),
        ("strides", ctypes.POINTER(ctypes.c_int64)),
        ("dtype", ctypes.c_int32),
        ("rank", ctypes.c_int32),
    ]


class Error(ctypes.Structure):
    """`graphc_error` of graphc.h."""

    _fields_ = [
        *((name, ctypes.c_int32) for name in ("code", "tensor", "axis", "reserved")),
        *((name, ctypes.c_int64) for name in ("given", "expected")),
        ("message", ctypes.c_char_p),
    ]


def call(code: Any, name: str, inputs: list[np.ndarray], specs: list[Any]) -> list[np.ndarray]:
    """Calls a C function: asks for shapes and workspace first.

    Raises:
        ValueError: a check of the model failed.
    """
    error, kept = Error(), []

    def tensors(arrays: list[Any], ranks: list[int]) -> Any:
        made = (Tensor * max(len(arrays), 1))()
        for i, (array, rank) in enumerate(zip(arrays, ranks, strict=True)):
            sizes = (ctypes.c_int64 * max(rank, 1))(*(() if array is None else array.shape))
            kept.append(sizes)
            made[i].shape = sizes
            if array is not None:
                made[i].data, made[i].dtype = array.ctypes.data, DTYPES.index(array.dtype.name)
                made[i].rank = array.ndim
        return made

    def function(symbol: str, result: Any, count: int) -> Any:
        return ctypes.CFUNCTYPE(result, *[ctypes.c_void_p] * count)(code.address(symbol))

    def require(status: int) -> None:
        if status:
            text = (error.message or b"").decode()
            text = text.replace("{given}", str(error.given)).replace("{expected}", str(error.expected))
            kind = MemoryError if status == 7 else ValueError if status == 8 else RuntimeError
            raise kind(f"{text or 'code'} {status}: tensor {error.tensor} axis {error.axis}")

    given = tensors(inputs, [x.ndim for x in inputs])
    shapes = tensors([None] * len(specs), [spec.rank for spec in specs])
    size = function(f"{name}_workspace", ctypes.c_int64, 2)(given, ctypes.byref(error))
    memory = ctypes.create_string_buffer(size + 1 if size >= 0 else 1 << 24)
    workspace = (ctypes.c_uint64 * 3)(ctypes.addressof(memory), len(memory) - 1, 0)
    require(function(f"{name}_shapes", ctypes.c_int32, 4)(workspace, given, shapes, ctypes.byref(error)))
    outputs = [
        np.full([shapes[i].shape[axis] for axis in range(spec.rank)], 1, spec.dtype)
        for i, spec in enumerate(specs)
    ]
    results = tensors(outputs, [spec.rank for spec in specs])
    require(function(name, ctypes.c_int32, 4)(workspace, given, results, ctypes.byref(error)))
    return outputs


def _exportable(c: Checked) -> Any:
    """The compiled function; None where it needs Python."""
    for x in c.program.inputs:
        if x.shared:
            c.built.variables[x.name].set_value(x.value.copy())
    f = c.function("fast_run")
    native = hasattr(f.executor, "executable") and not f.report.fallbacks
    return f if native and f.executor.executable is not None else None


def _given(c: Checked) -> list[Any]:
    generators = np.random.Generator
    return [pt.random.state_of(x) if isinstance(x, generators) else x for x in arguments(c.program)]


def _state(c: Checked, f: Any, old: str) -> str:
    """The name of a shared variable in the artifact of a function."""
    from graphc.artifacts.export import StateNames
    from graphc.artifacts.source import sources

    names = StateNames(sources({"f": f}))
    return names.variables[names.number(c.built.variables[old])][2]


def _resolve(symbol: str) -> int:
    """A function of a library that C programs link with, as this process has it."""
    for name in (symbol, f"blas_{symbol[:-1]}", f"lapack_{symbol[:-1]}", f"npyrandom_{symbol}"):
        address = symbols.optional(name)
        if address is not None:
            return address
    return symbols.resolve(symbol)
