# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
from __future__ import annotations

import ctypes
import io
import random
import struct

import pytest

from graphc_runtime import cpu, elf, image, loader, symbols
from graphc_runtime.errors import LoadError, SymbolError
from graphc_runtime.image import Image

IR = """
@table = internal constant [4 x double] [double 1.0, double 2.0, double 3.0, double 4.0], align 64
@counter = global i64 5
@pointer = constant ptr @counter
@zeros = global [100000 x i8] zeroinitializer, align 8192
declare double @exp(double)
define double @f(double %x, i64 %i) {
  %a = getelementptr double, ptr @table, i64 %i
  %v = load double, ptr %a
  %e = call double @exp(double %x)
  %r = fadd double %v, %e
  %g = load i64, ptr @counter
  %g1 = add i64 %g, 1
  store i64 %g1, ptr @counter
  ret double %r
}
define i64 @count() {
  %p = load volatile ptr, ptr @pointer
  %g = load i64, ptr %p
  ret i64 %g
}
define ptr @aligned() {
  ret ptr @zeros
}
"""
NEEDS = """
declare i64 @missing_function()
define i64 @f() {
  %r = call i64 @missing_function()
  ret i64 %r
}
"""


def cross(text, triple):
    import llvmlite.binding as llvm

    llvm.initialize_all_targets()
    llvm.initialize_all_asmprinters()
    module = llvm.parse_assembly(text)
    module.triple = triple
    machine = llvm.Target.from_triple(triple).create_target_machine(opt=2, reloc="pic", codemodel="default")
    return machine.emit_object(module)


@pytest.fixture(scope="module")
def code():
    from graphc.backends.cpu.object import compile_to_object

    return compile_to_object(IR)


def test_runs_code_with_data_and_external_calls(code):
    loaded = loader.load_object(code, symbols.resolve)
    function = ctypes.CFUNCTYPE(ctypes.c_double, ctypes.c_double, ctypes.c_int64)(loaded.address("f"))
    assert function(0.0, 2) == 4.0
    assert function(0.0, 3) == 5.0
    assert ctypes.CFUNCTYPE(ctypes.c_int64)(loaded.address("count"))() == 7
    assert ctypes.CFUNCTYPE(ctypes.c_void_p)(loaded.address("aligned"))() % 8192 == 0
    assert loaded.address("zeros") % 8192 == 0
    assert "f" in loaded and "exp" not in loaded


def test_unknown_symbols_are_named():
    from graphc.backends.cpu.object import compile_to_object

    code = compile_to_object(NEEDS)
    with pytest.raises(SymbolError, match="missing_function"):
        loader.load_object(code, symbols.resolve)
    loaded = loader.load_object(code, lambda name: 0x1000)
    with pytest.raises(SymbolError, match="does not define 'g'; it defines f"):
        loaded.address("g")


def test_registered_symbols_are_used():
    from graphc.backends.cpu.object import compile_to_object

    answer = ctypes.CFUNCTYPE(ctypes.c_int64)(lambda: 42)
    symbols.register("graphc_test_answer", ctypes.cast(answer, ctypes.c_void_p).value, answer)
    code = compile_to_object(NEEDS.replace("missing_function", "graphc_test_answer"))
    loaded = loader.load_object(code, symbols.resolve)
    assert ctypes.CFUNCTYPE(ctypes.c_int64)(loaded.address("f"))() == 42
    assert elf.external_symbols(code) == ["graphc_test_answer"]


CALLER = """
declare hidden i64 @callee(i64)
@shared = external hidden global i64
define i64 @caller(i64 %x) {
  %a = call i64 @callee(i64 %x)
  %b = load i64, ptr @shared
  %c = add i64 %a, %b
  ret i64 %c
}
"""
CALLEE = """
@shared = hidden global i64 100
define hidden i64 @callee(i64 %x) {
  %r = mul i64 %x, 3
  ret i64 %r
}
"""


def test_joined_objects_see_each_other():
    from graphc.backends.cpu.object import compile_to_object

    objects = [compile_to_object(CALLER), compile_to_object(CALLEE), compile_to_object(NEEDS)]
    for order in (objects, objects[::-1]):
        joined = elf.join(order)
        assert elf.external_symbols(joined) == ["missing_function"]
        loaded = loader.load_object(joined, lambda name: 0x1000)
        assert ctypes.CFUNCTYPE(ctypes.c_int64, ctypes.c_int64)(loaded.address("caller"))(5) == 115
        assert "callee" not in loaded and "shared" not in loaded
    assert elf.join(objects[:1]) == objects[0]


def test_joined_objects_of_other_machines_can_be_read():
    for triple in ("x86_64-unknown-linux-gnu", "aarch64-unknown-linux-gnu"):
        joined = elf.join([cross(CALLER, triple), cross(CALLEE, triple)])
        image = Image(elf.parse(joined), lambda name: 0x1000)
        assert len(image.relocate(0x10000)) == image.size
        assert set(image.exports(0)) == {"caller"}


def test_damaged_joined_objects_are_refused(code):
    joined = elf.join([code, code])
    with pytest.raises(LoadError, match="two joined objects define"):
        elf.parse(joined)
    caller, other = cross(CALLER, "x86_64-unknown-linux-gnu"), cross(CALLEE, "aarch64-unknown-linux-gnu")
    with pytest.raises(LoadError, match="several machines"):
        elf.parse(elf.join([caller, other]))
    for size in (8, 11, 12, 20, 40, len(joined) // 2, len(joined) - 1):
        with pytest.raises(LoadError):
            elf.parse(joined[:size])


def test_other_architecture_is_refused():
    other = "aarch64" if loader.host_machine() == elf.X86_64 else "x86_64"
    with pytest.raises(LoadError, match="ELF machine"):
        loader.load_object(cross(IR, f"{other}-unknown-linux-gnu"), symbols.resolve)


@pytest.mark.parametrize("data", [b"", b"\x7fELF", b"MZ" * 100, b"\x7fELF" + bytes(60)])
def test_not_an_object(data):
    with pytest.raises(LoadError):
        loader.load_object(data, symbols.resolve)


def test_corrupt_objects_raise_and_never_crash(code):
    """Loading (not running) a damaged object either works or raises LoadError."""
    source = random.Random(0)
    for _ in range(600):
        damaged = bytearray(code)
        for _ in range(source.randint(1, 4)):
            at = source.randrange(len(damaged))
            damaged[at] = source.choice([0, 0xFF, source.randrange(256)])
        try:
            loader.load_object(bytes(damaged), symbols.resolve)
        except LoadError:
            continue
    for end in range(0, len(code), 7):
        with pytest.raises(LoadError):
            loader.load_object(code[:end], symbols.resolve)


def place(address, size=8):
    return image.Place(bytearray(size), 0, address, "s")


def test_relocation_out_of_reach_and_unknown():
    with pytest.raises(LoadError, match="out of reach"):
        image.apply(elf.X86_64, 2, place(0), 1 << 40, 0)
    with pytest.raises(LoadError, match="relocation 200 of x86-64 for symbol 's'"):
        image.apply(elf.X86_64, 200, place(0), 0, 0)
    with pytest.raises(LoadError, match="out of reach"):
        image.apply(elf.AARCH64, 283, place(0), 1 << 30, 0)
    with pytest.raises(LoadError, match="not aligned"):
        image.apply(elf.AARCH64, 286, place(0), 0x1004, 0)


def test_absolute_and_relative_values():
    target = place(0x1000)
    image.apply(elf.X86_64, 1, target, 0x7FFF_1234_5678_9ABC, 4)
    assert struct.unpack("<Q", target.image)[0] == 0x7FFF_1234_5678_9AC0
    image.apply(elf.X86_64, 2, target, 0x800, -4)
    assert struct.unpack("<i", target.image[:4])[0] == -0x804


def sign(value, bits):
    return value - (1 << bits) if value >> bits - 1 else value


def adrp_target(word, address):
    pages = sign((word >> 5 & 0x7FFFF) << 2 | word >> 29 & 3, 21)
    return (address & ~0xFFF) + (pages << 12)


def test_aarch64_image_points_where_it_should():
    """Decodes the instructions of a relocated AArch64 image: they must form the symbols' addresses."""
    base, far = 0x7000_0000_0000, 0x1234_5678_9AB0
    parsed = elf.parse(cross(IR, "aarch64-unknown-linux-gnu"))
    image = Image(parsed, lambda name: far)
    content = image.relocate(base)
    checked = set()
    for section, entries in parsed.relocations.items():
        if section not in image.offsets:
            continue
        for entry in entries:
            at = image.offsets[section] + entry.offset
            word = struct.unpack_from("<I", content, at)[0]
            symbol = parsed.symbols[entry.symbol]
            slot = base + image.slots.get(entry.symbol, 0)
            inside = base + image.offsets.get(symbol.section, 0) + symbol.value + entry.addend
            if entry.kind in (275, 311):
                assert adrp_target(word, base + at) == (slot if entry.kind == 311 else inside) & ~0xFFF
            elif entry.kind == 312:
                assert (word >> 10 & 0xFFF) << 3 == slot & 0xFFF
            elif entry.kind == 277:
                assert word >> 10 & 0xFFF == inside & 0xFFF
            elif entry.kind == 286:
                assert (word >> 10 & 0xFFF) << 3 == inside & 0xFFF
            elif entry.kind == 283:
                stub = base + at + 4 * sign(word & 0x3FFFFFF, 26)
                assert stub == base + image.stubs[entry.symbol]
                adrp, ldr, jump = struct.unpack_from("<3I", content, stub - base)
                assert adrp_target(adrp, stub) + ((ldr >> 10 & 0xFFF) << 3) == slot
                assert (adrp & 0x9F00001F, ldr & 0xFFC003FF, jump) == (0x90000010, 0xF9400211, 0xD61F0220)
                assert struct.unpack_from("<Q", content, slot - base)[0] == far
            checked.add(entry.kind)
    assert {283, 275} <= checked and checked & {277, 286, 311}


def test_the_first_processor_is_read_alone(monkeypatch):
    """A machine of a hundred cores has as many descriptions."""
    text = "processor\t: 0\nvendor_id\t: Some\nflags\t\t: avx fma\n\nprocessor\t: 1\nflags\t\t: none\n"
    monkeypatch.setattr("builtins.open", lambda *arguments, **options: io.StringIO(text))
    cpu.first_processor.cache_clear()
    try:
        assert cpu.first_processor() == ("processor\t: 0", "vendor_id\t: Some", "flags\t\t: avx fma")
        assert cpu.host_vendor() == "Some" and cpu._field("flags", "Features").split() == ["avx", "fma"]
    finally:
        cpu.first_processor.cache_clear()
