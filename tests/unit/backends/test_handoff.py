# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Literals keep their bits on the way from the newer LLVM's text to llvmlite's."""

from __future__ import annotations

import ctypes
import math
import struct

import llvmlite.binding as llvm
import numpy as np
import pytest

from graphc.backends.contexts import new_context
from graphc.backends.cpu.object import compile_to_object, this_machine
from graphc.backends.handoff import to_llvmlite
from graphc_dialects._mlir import ir, translate_module_to_llvmir
from graphc_runtime import symbols
from graphc_runtime.loader import load_object

UNSIGNED = {"double": "uint64", "float": "uint32", "half": "uint16"}
FLOATING = {"double": "float64", "float": "float32", "half": "float16"}
SPECIAL = {
    "double": {"+inf": 0x7FF << 52, "-inf": 0xFFF << 52, "+qnan": 0x7FF8 << 48, "-qnan": 0xFFF8 << 48},
    "float": {"+inf": 0x7F800000, "-inf": 0xFF800000, "+qnan": 0x7FC00000, "-qnan": 0xFFC00000},
    "half": {"+inf": 0x7C00, "-inf": 0xFC00, "+qnan": 0x7E00, "-qnan": 0xFE00},
}
# A payload keeps the quiet bit apart: nan(0x..) sets it, snan(0x..) does not.
SPECIAL["double"] |= {"+nan(0x123)": 0x7FF8000000000123, "-snan(0x123)": 0xFFF0000000000123}
SPECIAL["float"] |= {"+nan(0x123)": 0x7FC00123, "-snan(0x123)": 0xFF800123}
SPECIAL["half"] |= {"+nan(0x12)": 0x7E12, "-snan(0x12)": 0xFC12}
LITERALS = [(kind, text, bits) for kind, table in SPECIAL.items() for text, bits in table.items()]


def stored(kind: str, literal: str, form: str = "  store {kind} {literal}, ptr %p") -> int:
    """The bits of what a compiled function stores."""
    body = form.format(kind=kind, literal=literal)
    text = f"define void @graphc_run(ptr %p, i1 %c) {{\nbegin:\n{body}\n  ret void\n}}\n"
    loaded = load_object(compile_to_object(to_llvmlite(text), opt_level=0), symbols.resolve)
    result = np.zeros(4, UNSIGNED[kind])
    call = ctypes.CFUNCTYPE(None, ctypes.c_void_p, ctypes.c_bool)(loaded.address("graphc_run"))
    call(result.ctypes.data, True)
    return int(result[0])


@pytest.mark.parametrize(("kind", "text", "bits"), LITERALS)
def test_special_values(kind, text, bits):
    assert stored(kind, text) == bits


@pytest.mark.parametrize("kind", UNSIGNED)
@pytest.mark.parametrize("value", [0.1, -2.5, 1 / 3, 1e-7, 65504.0, 5.960464e-08])
def test_hexadecimal_bits_and_decimals(kind, value):
    number = np.asarray(value, FLOATING[kind])
    bits = int(number.view(UNSIGNED[kind]))
    assert stored(kind, f"f0x{bits:0{number.nbytes * 2}X}") == bits
    digits = {"double": 17, "float": 8, "half": 6}[kind]
    assert stored(kind, f"{float(number):.{digits}e}") == bits


@pytest.mark.parametrize("kind", ["float", "half"])
def test_every_exponent(kind):
    """Signed zeros, subnormals and both ends of the range, in one constant array."""
    exponents, shift, sign = (255, 23, 31) if kind == "float" else (31, 10, 15)
    patterns = [s << sign | e << shift | low for s in (0, 1) for e in range(exponents) for low in (0, 1)]
    width = 8 if kind == "float" else 4
    elements = ", ".join(f"{kind} f0x{p:0{width}X}" for p in patterns)
    count = len(patterns)
    text = f"""
@table = private constant [{count} x {kind}] [{elements}]
define void @graphc_run(ptr %p) {{
  call void @llvm.memcpy.p0.p0.i64(ptr %p, ptr @table, i64 {count * width // 2}, i1 false)
  ret void
}}
declare void @llvm.memcpy.p0.p0.i64(ptr, ptr, i64, i1)
"""
    loaded = load_object(compile_to_object(to_llvmlite(text), opt_level=0), symbols.resolve)
    result = np.zeros(count, UNSIGNED[kind])
    ctypes.CFUNCTYPE(None, ctypes.c_void_p)(loaded.address("graphc_run"))(result.ctypes.data)
    assert result.tolist() == patterns


FORMS = {
    "store": "  store {kind} {literal}, ptr %p",
    "select": "  %v = select i1 %c, {kind} {literal}, {kind} 1.000000e+00\n  store {kind} %v, ptr %p",
    "select, second": "  %v = select i1 %c, {kind} {literal}, {kind} -inf\n  store {kind} %v, ptr %p",
    "phi": ("  br label %next\nnext:\n  %v = phi {kind} [ {literal}, %begin ]\n  store {kind} %v, ptr %p"),
    "splat": "  store <2 x {kind}> splat ({kind} {literal}), ptr %p",
    "vector": "  store <2 x {kind}> <{kind} {literal}, {kind} 2.000000e+00>, ptr %p",
    "array": "  store [2 x {kind}] [{kind} {literal}, {kind} 2.000000e+00], ptr %p",
    "struct": "  store {{ {kind}, double }} {{ {kind} {literal}, double 1.000000e-01 }}, ptr %p",
    "insertvalue": (
        "  %v = insertvalue {{ {kind}, {kind} }} undef, {kind} {literal}, 0\n"
        "  %x = extractvalue {{ {kind}, {kind} }} %v, 0\n  store {kind} %x, ptr %p"
    ),
    "after another type": ("  %u = fptrunc double 1.000000e-01 to float\n  store {kind} {literal}, ptr %p"),
    "after a name": "  %half.double = add i64 1, 2\n  store {kind} {literal}, ptr %p",
}


@pytest.mark.parametrize("form", FORMS)
@pytest.mark.parametrize(
    ("kind", "literal"), [("half", "9.997550e-02"), ("float", "+qnan"), ("double", "-inf")]
)
def test_positions(form, kind, literal):
    want = stored(kind, literal)
    assert stored(kind, literal, FORMS[form]) == want != 0


@pytest.mark.parametrize("kind", UNSIGNED)
def test_operands_of_arithmetic_calls_and_comparisons(kind):
    one = {"half": "3C00", "float": "3F800000", "double": "3FF0000000000000"}[kind]
    text = f"""
define {kind} @called({kind} %x, double %y, {kind} %z) {{
  %a = fadd {kind} %x, 1.000000e-01
  %b = fmul contract {kind} %a, f0x{one}
  %c = fcmp olt {kind} %b, +inf
  %d = select i1 %c, {kind} %b, {kind} %z
  ret {kind} %d
}}
define {kind} @graphc_run() {{
  %r = call {kind} @called({kind} -2.500000e-01, double 1.000000e-01, {kind} +qnan)
  ret {kind} %r
}}
"""
    this_machine()
    llvm.parse_assembly(to_llvmlite(text)).verify()


def test_globals_and_metadata():
    text = "@g = global double +inf\n@h = constant [2 x float] [float -qnan, float 1.000000e-01]\n"
    text += '@s = constant [5 x i8] c"+inf\\00"\n'
    text += "define void @f() {\n  ret void, !x !0\n}\n!0 = !{float 2.500000e+00, double 1.000000e-01}\n"
    this_machine()
    module = llvm.parse_assembly(to_llvmlite(text))
    module.verify()
    assert 'c"+inf\\00"' in str(module)


def test_attributes_and_kernels():
    text = "define i64 @main(ptr %x) {\n  %a = call i64 @llvm.smax.i64(i64 1, i64 2)\n  ret i64 %a\n}\n"
    text += "declare i64 @llvm.smax.i64(i64, i64) #0\n"
    text += "attributes #0 = { nocallback nocreateundeforpoison nounwind }\n"
    out = to_llvmlite(text)
    assert "nocreateundeforpoison" not in out and "define internal i64 @main(" in out
    this_machine()
    llvm.parse_assembly(out).verify()


def test_decimal_of_a_float_rounds_once():
    """The decimal is the shortest that names a float; read as a double and then rounded it is the same."""
    for value in np.random.default_rng(0).normal(size=50).astype("float32"):
        bits = struct.unpack("<I", struct.pack("<f", value))[0]
        text = to_llvmlite(f"  store float {float(value):.9e}, ptr %p")
        literal = int(text.split("float ")[1].split(",")[0], 16)
        assert struct.unpack("<d", struct.pack("<Q", literal))[0] == float(value) and math.isfinite(bits)


def test_the_bindings_print_what_the_hand_over_reads():
    """Another spelling is to be added there, and one that is printed no more is to go."""
    values = {
        "f64": (
            "0.1",
            "0.3333333333333333",
            "0x7FF0000000000000",
            "0xFFF8000000000000",
            "0x7FF8000000000123",
        ),
        "f32": ("0.1", "0x7F800000", "0xFFC00000", "0x7FC00123"),
        "f16": ("0.1", "0x7C00", "0xFE00", "0x7E12"),
    }
    functions = [
        f"llvm.func @{kind}{number}() -> {kind} {{\n"
        f"  %0 = llvm.mlir.constant({value} : {kind}) : {kind}\n  llvm.return %0 : {kind}\n}}"
        for kind, texts in values.items()
        for number, value in enumerate(texts)
    ]
    main = "llvm.func @main(%x: f64) -> i64 {\n  %0 = llvm.intr.sqrt(%x) : (f64) -> f64\n"
    main += "  %1 = llvm.mlir.constant(0 : i64) : i64\n  llvm.return %1 : i64\n}"
    with new_context(), ir.Location.unknown():
        text = translate_module_to_llvmir(ir.Module.parse("\n".join([*functions, main])).operation)
    printed = [line.removeprefix("  ret ") for line in text.splitlines() if line.startswith("  ret ")]
    assert printed == [
        *("double 1.000000e-01", "double f0x3FD5555555555555"),
        *("double +inf", "double -qnan", "double +nan(0x123)"),
        *("float 1.000000e-01", "float +inf", "float -qnan", "float +nan(0x123)"),
        *("half 9.997550e-02", "half +inf", "half -qnan", "half +nan(0x12)"),
        "i64 0",
    ]
    assert "define i64 @main(double %0) {" in text
    assert " nocreateundeforpoison " in text


def test_masked_accesses_have_their_alignment_as_an_operand():
    """The form of every version; an attribute in its place ends the process of one before LLVM 22."""
    name = "@llvm.masked.{}.v4f64.p0"
    text = f"""define void @f(ptr %p, <4 x i1> %m) {{
  %1 = call <4 x double> {name.format("load")}(ptr align 8 %p, <4 x i1> %m, <4 x double> splat (double 1.0))
  call void {name.format("store")}(<4 x double> splat (double 2.0), ptr align 8 %p, <4 x i1> %m)
  call void {name.format("store")}(<4 x double> %1, ptr align 16 %p, <4 x i1> %m)
  ret void
}}
declare <4 x double> {name.format("load")}(ptr captures(none), <4 x i1>, <4 x double>)
declare void {name.format("store")}(<4 x double>, ptr captures(none), <4 x i1>)
"""
    given = to_llvmlite(text)
    assert given.count("ptr %p, i32 8, <4 x i1> %m") == 2 and given.count("ptr %p, i32 16, <4 x i1> %m") == 1
    assert given.count("ptr, i32, <4 x i1>") == 2 and "align" not in given
    llvm.parse_assembly(given).verify()


def test_begins_of_lifetimes_have_a_size():
    """The form of every version; the newer one ends the process of one before LLVM 22."""
    name = "@llvm.lifetime.start.p0"
    text = f"""define void @f() {{
  %1 = alloca double, i64 1, align 64
  call void {name}(ptr %1)
  ret void
}}
declare void {name}(ptr captures(none))
"""
    given = to_llvmlite(text)
    assert f"call void {name}(i64 -1, ptr %1)" in given and f"declare void {name}(i64 immarg, ptr)" in given
    llvm.parse_assembly(given).verify()
