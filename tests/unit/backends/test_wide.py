# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Vectors of 64 bytes: where elementary functions are computed, on cores that do not slow down for them."""

from __future__ import annotations

import numpy as np
import pytest

import graphc
import graphc.tensor as pt
from graphc.backends.cpu.object import Machine, compile_to_object

LINUX = "x86_64-unknown-linux-gnu"
# As LLVM names what it finds.
ICE_LAKE = Machine(LINUX, "icelake-server", "+avx2,+avx512f,+avx512vbmi2,+avx512vl")
CASCADE_LAKE = Machine(LINUX, "cascadelake", "+avx2,+avx512f,+avx512vl,-avx512vbmi2")
ZEN_3 = Machine(LINUX, "znver3", "+avx2,+fma")
MASKS = "+avx512bw,+avx512dq,+avx512f,+avx512vl"


@pytest.fixture
def left_to_llvm(monkeypatch):
    """Loops are vectorised by LLVM, as on machines without masks."""
    monkeypatch.setattr(Machine, "vectors", lambda _: (0, 0, False))


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


@pytest.mark.usefixtures("left_to_llvm")
@pytest.mark.parametrize(
    ("machine", "is_wide", "expected"),
    [(ICE_LAKE, True, True), (ICE_LAKE, False, False), (CASCADE_LAKE, True, False), (ZEN_3, True, False)],
)
def test_width_of_elementary_functions(machine, is_wide, expected):
    text = assembly(llvm_ir(pt.exp), machine, is_wide)
    assert ("zmm" in text, "ymm" in text or expected) == (expected, True)


@pytest.mark.usefixtures("left_to_llvm")
def test_functions_that_are_marked_keep_to_short_vectors():
    text = llvm_ir(pt.exp)
    body = text.index("define internal i64 @graphc_body_0")
    end = text.index(" {", body)
    marked = text[:end] + ' "prefer-vector-width"="256"' + text[end:]
    assert "zmm" not in assembly(marked, ICE_LAKE, True)


def test_what_is_made_for_a_machine_says_so():
    assert ICE_LAKE.wide().features.endswith(",-prefer-256-bit") and CASCADE_LAKE.wide() is CASCADE_LAKE


def test_vectors_of_machines():
    assert Machine(LINUX, "znver5", MASKS).vectors() == (64, 64, True)
    assert Machine(LINUX, "icelake-server", f"{MASKS},+avx512vbmi2").vectors() == (32, 64, True)
    assert Machine(LINUX, "skylake-avx512", MASKS).vectors() == (32, 32, True)
    assert ZEN_3.vectors() == (32, 32, False)
    assert Machine(LINUX, "nehalem", "+sse4.2").vectors() == (0, 0, False)
    assert Machine(LINUX, "knl", "+avx2,+fma,+avx512f").vectors() == (0, 0, False)


# Types, expression, and whether all of it works on lanes.
EXPRESSIONS = {
    "short": ("dd", lambda x, y: x * 2 - y),
    "copies": ("dddd", lambda x, y, z, w: (x * y + z) * (w - x) + pt.maximum(y, z) / w),
    "long": ("ff", lambda x, y: pt.tanh(pt.exp(x) + y)),
    "mixed": ("bfl", lambda b, x, n: pt.switch(b, x, n) + pt.cast(b, "int8")),
    "bytes": ("bb", lambda x, y: ~x | y),
    "halves": ("hd", lambda x, y: pt.sqrt(abs(pt.cast(x, "int32") * y))),
    "comparisons": ("dl", lambda x, n: [(x < n) & (n >= 2), pt.sgn(x) * n]),
    "scalar": ("dD", lambda x, k: x * k + pt.floor(k)),
}
TYPES = {"d": "float64", "f": "float32", "b": "bool", "l": "int64", "h": "int16", "D": "float64"}


@pytest.mark.parametrize("name", EXPRESSIONS)
def test_vectors_are_what_llvm_makes(name, monkeypatch):
    letters, expression = EXPRESSIONS[name]
    rng = np.random.default_rng(0)
    functions = []
    for given in ((0, 0, False), (32, 32, True), (64, 64, True), (32, 32, False)):
        monkeypatch.setattr(Machine, "vectors", lambda _, given=given: given)
        inputs = [pt.TensorType(TYPES[c], () if c.isupper() else (None,))() for c in letters]
        f = graphc.function(inputs, expression(*inputs))
        assert ("masked" in f.ir_stages()["llvm"]) == given[2]
        functions.append(f)
    for size in (0, 1, 3, 7, 8, 9, 31, 64, 65, 255, 256, 263, 1000):
        values = [(100 * rng.standard_normal(() if c.isupper() else size)).astype(TYPES[c]) for c in letters]
        expected, *found = [np.asarray(f(*values)) for f in functions]
        for result in found:
            np.testing.assert_array_equal(result, expected)
