# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Parts that all functions of the C interface share: checks of tensors and codes of errors (`graphc.h`).

A spec says what a tensor has to be: dtype, rank, bytes and alignment of an element, sizes (-1: any), and
where its pointer and its sizes go.
"""
# mypy: ignore-errors

from __future__ import annotations

from functools import cache

from graphc.native import BOOL, I64, Type, Value
from graphc.native.builtins import apart, at, cast, choose, inlined, view
from graphc.native.translate import Translator

# Numbers of graphc.h.
NULL, DTYPE, RANK, SHAPE, STRIDES, ALIGNMENT, MEMORY, CHECK, INTERNAL = range(1, 10)

TYPES = """
%tensor = type { ptr, ptr, ptr, i32, i32 }
%error = type { i32, i32, i32, i32, i64, i64, ptr }
%spec = type { i32, i32, i64, i64, ptr, i64, i64 }
%array = type { ptr, ptr, ptr, ptr, i32, i32, i32, i32 }
%function = type { i32, i32, i32, i32, ptr, ptr, ptr, ptr, ptr, ptr, ptr }
"""
# Words of these: dtype and rank share one.
_DATA, _SHAPE, _STRIDES, _KIND, _TENSOR = range(5)
_ITEM, _ALIGN, _SIZES, _SLOT, _DIM, _SPEC = range(1, 7)


@apart
def fail(error, code, tensor, axis, given, expected, message):
    """Fills in an error; returns its code."""
    numbers = view(error, "i32")
    numbers[0] = code
    numbers[1] = tensor
    numbers[2] = axis
    numbers[3] = 0
    error[2] = given
    error[3] = expected
    error[4] = message
    return code


@inlined
def failed(error, code, tensor, axis, given, expected, message):
    """As `fail`, which is one function for all numbers that are known."""
    at_axis, a, b = cast(axis, "i64"), cast(given, "i64"), cast(expected, "i64")
    return fail(error, cast(code, "i32"), cast(tensor, "i32"), at_axis, a, b, cast(message, "i64"))


def status(result, context, messages, count, error):
    """The code of an error for the status of a kernel, 0 for success."""
    if result == 0:
        return cast(0, "i32")
    if result == -1:
        return failed(error, MEMORY, -1, -1, 0, 0, 0)
    if result < 1 or result > count:
        return failed(error, INTERNAL, -1, -1, result, 0, 0)
    return failed(error, CHECK, -1, -1, context[1], context[2], messages[result - 1])


def tensors(given, first, count, specs, data, dims, exact, error):
    """Checks tensors, and keeps their pointers and sizes. With `exact` the sizes are there already."""
    for i in range(count):
        tensor, spec = given[i * _TENSOR :], specs[i * _SPEC :]
        code = check(tensor, spec, first + i, data, dims[spec[_DIM] :], exact, error)
        if code != 0:
            return code
    return cast(0, "i32")


def check(tensor, spec, number, data, sizes, exact, error):
    """Checks one tensor."""
    kind, wanted = view(tensor[_KIND:], "i32"), view(spec, "i32")
    if kind[0] != wanted[0]:
        return failed(error, DTYPE, number, -1, kind[0], wanted[0], 0)
    if kind[1] != wanted[1]:
        return failed(error, RANK, number, -1, kind[1], wanted[1], 0)
    rank, shape, elements = cast(kind[1], "i64"), at(tensor[_SHAPE], "i64"), 1
    if tensor[_SHAPE] == 0 and rank != 0:
        return failed(error, NULL, number, -1, 0, 0, 0)
    for axis in range(rank):
        have, want = shape[axis], choose(exact, sizes[axis], at(spec[_SIZES], "i64")[axis])
        if have < 0 or (want >= 0 and have != want):
            return failed(error, SHAPE, number, axis, have, want, 0)
        sizes[axis] = have
        elements *= have
    data[spec[_SLOT]] = tensor[_DATA]
    if elements == 0:
        return cast(0, "i32")
    if tensor[_DATA] == 0:
        return failed(error, NULL, number, -1, 0, 0, 0)
    off = tensor[_DATA] & (spec[_ALIGN] - 1)
    if off != 0:
        return failed(error, ALIGNMENT, number, -1, off, 0, 0)
    if tensor[_STRIDES] != 0:
        step = spec[_ITEM]
        for axis in range(rank - 1, -1, -1):
            distance = at(tensor[_STRIDES], "i64")[axis]
            if shape[axis] != 1 and distance != step:
                return failed(error, STRIDES, number, axis, distance, step, 0)
            step *= shape[axis]
    return cast(0, "i32")


def store_sizes(given, count, specs, dims):
    """Stores dtype, rank and sizes in tensors."""
    for i in range(count):
        tensor, spec = given[i * _TENSOR :], specs[i * _SPEC :]
        tensor[_KIND] = spec[0]
        if tensor[_SHAPE] != 0:
            for axis in range(cast(view(spec, "i32")[1], "i64")):
                at(tensor[_SHAPE], "i64")[axis] = dims[spec[_DIM] + axis]


@cache
def shared_ir() -> str:
    """The functions' text."""
    t = Translator(prefix="graphc_c_check", apart=False)

    def words(*names: str) -> list[Value]:
        return [Value(f"%{name}", I64.to) for name in names]

    count, error = Value("%count", I64), Value("%error", I64.to)
    first, exact = Value("%first", Type("i32")), Value("%exact", BOOL)
    checked = [*words("given"), first, count, *words("specs", "data", "dims"), exact, error]
    t.define(
        status,
        "graphc_c_status",
        [Value("%status", I64), *words("ctx", "messages"), count, error],
        "internal ",
    )
    t.define(tensors, "graphc_c_tensors", checked, "internal ")
    t.define(store_sizes, "graphc_c_sizes", [*words("given"), count, *words("specs", "dims")], "internal ")
    return t.text()
