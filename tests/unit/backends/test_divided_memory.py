# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""What is left of a divided kernel finds the places of its buffers at once."""

from __future__ import annotations

import ctypes

import numpy as np
import pytest

from graphc.backends.cpu.object import compile_to_object
from graphc.library.markers import places_ir
from graphc.library.workspace import HEADER
from graphc_runtime import loader, symbols

from .test_divide import divide

PLACED = """
llvm.func @graphc_planned_buffer(i64, i64, i64)
  -> !llvm.struct<(ptr, ptr, i64, array<1 x i64>, array<1 x i64>)>
llvm.func @graphc_end(!llvm.ptr, i64)
llvm.func @main(%0: i64, %bytes: i64, %out: !llvm.ptr) -> i64 {
BUFFERS
  %z = llvm.mlir.constant(0 : i64) : i64
  llvm.return %z : i64
}
"""


def places(count: int, more: str = "") -> str:
    """A kernel that hands buffers of a workspace with a table to nests, with `more` at the first."""
    kind = "!llvm.struct<(ptr, ptr, i64, array<1 x i64>, array<1 x i64>)>"
    lines, parts = [], []
    for i in range(count):
        # The last place of the table is that of the first buffer.
        lines += [
            f"  %n{i} = llvm.mlir.constant({count - 1 - i} : i64) : i64",
            f"  %m{i} = llvm.call @graphc_planned_buffer(%0, %n{i}, %bytes) : (i64, i64, i64) -> {kind}",
            f"  %p{i} = llvm.extractvalue %m{i}[1] : {kind}",
            f"  llvm.call @graphc_part_{i}(%p{i}, %out) : (!llvm.ptr, !llvm.ptr) -> ()",
            f"  llvm.call @graphc_end(%p{i}, %bytes) : (!llvm.ptr, i64) -> ()",
        ]
        if not i:
            lines.insert(3, more)
        parts.append(
            f"llvm.func @graphc_part_{i}(%0: !llvm.ptr, %1: !llvm.ptr) attributes {{graphc.part}} {{\n"
            f"  %2 = llvm.getelementptr %1[{i}] : (!llvm.ptr) -> !llvm.ptr, i64\n"
            "  llvm.store %0, %2 : !llvm.ptr, !llvm.ptr\n  llvm.return\n}\n"
        )
    return PLACED.replace("BUFFERS", "\n".join(lines)) + "".join(parts)


def run_placed(text: str, *, poison: bool) -> tuple[list[int], np.ndarray]:
    """Where the buffers of eight bytes were, from the beginning of the memory, and what is left in it."""
    kernel, pieces = divide(text, size=4)
    made = compile_to_object(kernel, pieces=pieces, inlined_text=places_ir(poison=poison, framed=True))
    count = text.count("graphc.part}")
    memory, found = np.zeros(count, np.int64), np.zeros(count, np.int64)
    workspace = np.zeros(HEADER // 8 + count, np.int64)
    workspace[2] = memory.ctypes.data
    workspace[HEADER // 8 :] = 8 * np.arange(count)
    code = loader.load_object(made, symbols.resolve)
    kind = ctypes.CFUNCTYPE(ctypes.c_int64, ctypes.c_int64, ctypes.c_int64, ctypes.c_void_p)
    kind(code.address("main"))(workspace.ctypes.data, 8, found.ctypes.data)
    return list(found - memory.ctypes.data), memory


@pytest.mark.parametrize("poison", [False, True])
def test_buffers_of_nests_are_placed_at_once(poison):
    text = places(6)
    kernel, _ = divide(text, size=4)
    assert kernel.count("call void @graphc_place_all(") == 1
    assert "call {" not in kernel and "call void @graphc_end(" not in kernel
    found, memory = run_placed(text, poison=poison)
    assert found == [40, 32, 24, 16, 8, 0]
    # The end of a lifetime overwrites the buffer, so that tests see who reads it later.
    assert (memory == (-1 if poison else 0)).all()


def test_a_buffer_that_the_kernel_reads_is_placed_alone():
    text = places(6, "  %more = llvm.load %p0 : !llvm.ptr -> i64")
    kernel, _ = divide(text, size=4)
    assert kernel.count("call {") == 1 and kernel.count("call void @graphc_end(") == 1
    assert run_placed(text, poison=False)[0] == [40, 32, 24, 16, 8, 0]


def test_few_buffers_are_placed_one_by_one():
    kernel, _ = divide(places(3), size=4)
    assert kernel.count("call {") == 3 and "graphc_place_all" not in kernel
