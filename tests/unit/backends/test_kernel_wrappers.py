# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""The wrappers give a kernel each array as MLIR's expanded memref: pointers, offset, sizes, strides."""

from __future__ import annotations

import ctypes

import numpy as np
import pytest

from graphc.backends.cpu.generate import kernel_wrappers
from graphc.backends.cpu.object import compile_to_object
from graphc_runtime import symbols
from graphc_runtime.loader import load_object


def recorder(name: str, shapes, trailing: int = 0) -> str:
    """A kernel that writes all its arguments, as integers, to the memory at its context."""
    kinds = [k for shape in shapes for k in ("ptr", "ptr", *["i64"] * (1 + 2 * len(shape)))]
    kinds += ["ptr"] * trailing
    parameters = ", ".join(["ptr %c", *(f"{kind} %x{i}" for i, kind in enumerate(kinds))])
    lines = [f"define internal i64 @{name}({parameters}) {{"]
    for i, kind in enumerate(kinds):
        if kind == "ptr":
            lines.append(f"  %y{i} = ptrtoint ptr %x{i} to i64")
        lines.append(f"  %z{i} = getelementptr i64, ptr %c, i64 {i}")
        lines.append(f"  store i64 {'%y' if kind == 'ptr' else '%x'}{i}, ptr %z{i}")
    return "\n".join([*lines, "  ret i64 77", "}", ""])


def call(text: str, symbol: str, data, dims, *rest: int) -> list[int]:
    loaded = load_object(compile_to_object(text, opt_level=1), symbols.resolve)
    record = np.full(100, -5, "int64")
    pointers, sizes = np.array(data, "int64"), np.array(dims, "int64")
    types = [ctypes.c_void_p] * (3 + len(rest))
    function = ctypes.CFUNCTYPE(ctypes.c_int64, *types)(loaded.address(symbol))
    status = function(record.ctypes.data, pointers.ctypes.data, sizes.ctypes.data, *rest)
    assert status == 77
    return record[record != -5].tolist()


def test_sizes_and_strides():
    inputs, outputs = [(None, 3, None), ()], [(2, None)]
    text = recorder("main", [*inputs, *outputs]) + kernel_wrappers(inputs, outputs, has_shapes=False)
    # Static sizes count, whatever `dims` says: 99 is ignored.
    got = call(text, "graphc_run", [1000, 2000, 3000], [5, 99, 7, 99, 4])
    assert got == [1000, 1000, 0, 5, 3, 7, 21, 7, 1, 2000, 2000, 0, 3000, 3000, 0, 2, 4, 4, 1]


def test_unused_arguments_keep_their_places():
    inputs, unused, outputs = [(None,)], [(None, 2), ()], [(None,)]
    text = recorder("main", [*inputs, *outputs])
    text += kernel_wrappers(inputs, outputs, has_shapes=False, unused=unused)
    got = call(text, "graphc_run", [1000, 2000, 3000, 4000], [5, 6, 2, 8])
    assert got == [1000, 1000, 0, 5, 1, 4000, 4000, 0, 8, 1]


@pytest.mark.parametrize("dynamic", [True, False])
def test_shapes(dynamic):
    inputs, outputs = [(None, 2)], [(None,) if dynamic else (3,)]
    text = recorder("main", [*inputs, *outputs]) + recorder("shapes", inputs, trailing=int(dynamic))
    text += kernel_wrappers(inputs, outputs, has_shapes=True)
    got = call(text, "graphc_shapes", [1000], [5, 2], 4000)
    assert got == [1000, 1000, 0, 5, 2, 2, 1, *([4000] if dynamic else [])]


def test_no_shapes_and_no_arguments():
    text = "define internal i64 @main(ptr %c) {\n  ret i64 77\n}\n" + kernel_wrappers(
        [], [], has_shapes=False
    )
    assert call(text, "graphc_run", [], []) == []
    loaded = load_object(compile_to_object(text, opt_level=1), symbols.resolve)
    shapes = ctypes.CFUNCTYPE(ctypes.c_int64, *[ctypes.c_void_p] * 4)(loaded.address("graphc_shapes"))
    assert shapes(0, 0, 0, 0) == 0
