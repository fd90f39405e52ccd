# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Vectors of 64 bytes: where elementary functions are computed, on cores that do not slow down for them."""

from __future__ import annotations

import pytest

import graphc
import graphc.tensor as pt
from graphc.backends.cpu.object import Machine, compile_to_object

LINUX = "x86_64-unknown-linux-gnu"
# As LLVM names what it finds.
ICE_LAKE = Machine(LINUX, "icelake-server", "+avx2,+avx512f,+avx512vbmi2,+avx512vl")
CASCADE_LAKE = Machine(LINUX, "cascadelake", "+avx2,+avx512f,+avx512vl,-avx512vbmi2")
ZEN_3 = Machine(LINUX, "znver3", "+avx2")


def llvm_ir(expression) -> str:
    """The kernel's module as LLVM gets it, less what enters it."""
    x = pt.dvector("x")
    f = graphc.function([x], expression(x))
    text = f.ir_stages()["llvm"]
    return text[: text.index("define ptr @graphc_entry")] + text[text.index("attributes #") :]


def assembly(text: str, machine: Machine, is_wide: bool) -> str:
    """Machine code as text."""
    found = {}
    compile_to_object(
        text,
        exports=["graphc_run", "graphc_shapes"],
        on_ir=found.__setitem__,
        machine=machine,
        is_wide=is_wide,
    )
    return found["asm"]


@pytest.mark.parametrize(
    ("machine", "is_wide", "expected"),
    [(ICE_LAKE, True, True), (ICE_LAKE, False, False), (CASCADE_LAKE, True, False), (ZEN_3, True, False)],
)
def test_width_of_elementary_functions(machine, is_wide, expected):
    text = assembly(llvm_ir(pt.exp), machine, is_wide)
    assert ("zmm" in text, "ymm" in text or expected) == (expected, True)


def test_functions_that_are_marked_keep_to_short_vectors():
    text = llvm_ir(pt.exp)
    body = text.index("define internal i64 @graphc_body_0")
    end = text.index(" {", body)
    marked = text[:end] + ' "prefer-vector-width"="256"' + text[end:]
    assert "zmm" not in assembly(marked, ICE_LAKE, True)


def test_what_is_made_for_a_machine_says_so():
    assert ICE_LAKE.wide().features.endswith(",-prefer-256-bit") and CASCADE_LAKE.wide() is CASCADE_LAKE
