# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Large kernels are divided into modules, which threads compile."""

from __future__ import annotations

import ctypes
import gc
import re
import threading

import numpy as np
import pytest

import graphc
import graphc.tensor as pt
from graphc.backends.cpu import divide as division
from graphc.backends.cpu import object as codegen
from graphc.backends.cpu.divide import Piece, divide
from graphc.backends.cpu.frames import is_glue
from graphc.backends.cpu.inner_loops import outline
from graphc.backends.cpu.object import compile_to_object
from graphc.backends.cpu.share import share
from graphc.errors import CompileError
from graphc_runtime import elf, loader, symbols
from graphc_runtime.elf import JOINED

# A nest that can be moved, one that uses the workspace of another module, one that is called twice, and a
# helper with a constant.
KERNEL = """
@table = private constant [2 x double] [double 2.0, double 3.0]
@counter = internal global i64 0
declare i64 @graphc_tick(ptr)
declare double @llvm.sqrt.f64(double)
define i64 @main(ptr %0, ptr %1, i64 %2) {
  %4 = load double, ptr %1, align 8
  call void @graphc_part_0(ptr %1, i64 %2, double %4, double 4.000000e+00)
  call void @graphc_part_1(ptr %1)
  call void @graphc_part_2(ptr %1)
  call void @graphc_part_2(ptr %1)
  call void @graphc_split_0(i64 0, i64 %2, i64 5, i64 1, ptr %1)
  ret i64 0
}
define void @graphc_part_0(ptr noalias %0, i64 %1, double %2, double %3) #0 {
  %5 = call double @helper(double %3)
  store double %5, ptr %0, align 8
  ret void
}
define void @graphc_part_1(ptr %0) #0 {
  %2 = call i64 @graphc_tick(ptr %0)
  ret void
}
define void @graphc_part_2(ptr %0) #0 {
  %2 = load i64, ptr @counter, align 8
  ret void
}
define internal void @graphc_split_0(i64 %lower, i64 %upper, i64 %cost, i64 %align, ptr %c0) alwaysinline {
  %status = call i64 @graphc_body_0(i64 %lower, i64 %upper, ptr %c0)
  ret void
}
define i64 @graphc_body_0(i64 %0, i64 %1, ptr noalias %2) {
  store i64 %1, ptr %2, align 8
  ret i64 0
}
define internal double @helper(double %0) {
  %2 = load double, ptr @table, align 8
  %3 = fmul double %2, %0
  ret double %3
}
attributes #0 = { noinline }
"""


@pytest.fixture
def everything(monkeypatch):
    """Divides all kernels, however small."""
    monkeypatch.setattr(division, "LARGE", 0)
    monkeypatch.setattr(division, "MODULE_SIZE", 400)


def defined(piece: Piece) -> set[str]:
    return set(re.findall(r"^define [^\n]*?@(\w+)\(", piece.text, re.MULTILINE))


def test_small_kernels_stay_whole():
    assert divide(KERNEL) == [Piece(KERNEL)]


def test_what_is_moved(everything):
    kernel, *others = divide(KERNEL, ["define i64 @graphc_tick(ptr %context) {\n  ret i64 0\n}\n"])
    assert defined(kernel) == {"main", "graphc_part_1", "graphc_part_2", "helper"}
    moved = set().union(*map(defined, others))
    assert {"graphc_part_0", "helper", "graphc_split_0", "graphc_body_0"} <= moved
    exports = frozenset().union(*(piece.exports for piece in others))
    assert exports == {"graphc_call_graphc_part_0", "graphc_call_graphc_split_0"}
    # What is not read is not passed, constants are known where they are used.
    text = "".join(piece.text for piece in others)
    assert "@graphc_part_0(ptr %a0, i64 poison, double poison, double 4.000000e+00)" in text
    assert kernel.text.count("store ") == 2
    assert not any("@counter" in piece.text for piece in others)


def test_unusual_text_stays_whole(everything):
    assert len(divide(KERNEL.replace("@helper", '@"a helper"'))) == 1
    assert len(divide(KERNEL.replace("double %4, double 4.0", "<2 x i64> %4, double 4.0"))) == 2


def test_modules_have_about_the_same_size(monkeypatch):
    monkeypatch.setattr(division, "LARGE", 0)
    monkeypatch.setattr(division, "MODULE_SIZE", 2000)
    calls = "".join(f"  call void @graphc_part_{i}(ptr %0)\n" for i in range(40))
    parts = "".join(
        f"define void @graphc_part_{i}(ptr %0) {{\n"
        + f"  store i64 1{i:02}, ptr %0\n" * (i % 7 + 1)
        + "  ret void\n}\n"
        for i in range(40)
    )
    _, *others = divide(f"define i64 @main(ptr %0) {{\n{calls}  ret i64 0\n}}\n{parts}")
    sizes = [len(piece.text) for piece in others]
    assert len(others) == round(len(parts) / 2000)
    assert max(sizes) < 1.2 * min(sizes)
    assert sum(len(piece.exports) for piece in others) == 40


def nest(lines: int, block: int = 4096) -> str:
    """A sum of the elements of an array, each `lines + 1` times, over blocks."""
    last = 18 + lines
    body = "".join(f"  %{i} = fadd double %{i - 1}, %17\n" for i in range(18, last))
    return f"""define void @graphc_part_0(i64 %0, ptr noalias %1, ptr noalias %2) noinline {{
  br label %4

4:                                                ; preds = %{last + 2}, %3
  %5 = phi i64 [ %9, %{last + 2} ], [ 0, %3 ]
  %6 = phi double [ %{last + 3}, %{last + 2} ], [ 0.000000e+00, %3 ]
  %7 = icmp slt i64 %5, %0
  br i1 %7, label %8, label %{last + 4}

8:                                                ; preds = %4
  %9 = add i64 %5, {block}
  %10 = call i64 @llvm.smin.i64(i64 %9, i64 %0)
  br label %11

11:                                               ; preds = %15, %8
  %12 = phi i64 [ %{last + 1}, %15 ], [ %5, %8 ]
  %13 = phi double [ %{last}, %15 ], [ 0.000000e+00, %8 ]
  %14 = icmp slt i64 %12, %10
  br i1 %14, label %15, label %{last + 2}

15:                                               ; preds = %11
  %16 = getelementptr inbounds nuw double, ptr %1, i64 %12
  %17 = load double, ptr %16, align 8
{body}  %{last} = fadd double %13, %{last - 1}
  %{last + 1} = add i64 %12, 1
  br label %11

{last + 2}:                                               ; preds = %11
  %{last + 3} = fadd double %6, %13
  br label %4

{last + 4}:                                               ; preds = %4
  store double %6, ptr %2, align 8
  ret void
}}
"""


def test_inner_loops_of_blocks_are_outlined():
    found = outline("graphc_part_0", nest(20))
    assert found is not None
    inner, outer = re.findall(r"^define .*?^\}\n", found, re.MULTILINE | re.DOTALL)
    assert "call double @graphc_part_0_inner_0(" in outer and "alwaysinline" in outer.partition("\n")[0]
    assert "ptr noalias %v1" in inner and "noinline" in inner.partition("\n")[0]
    run = (
        "define void @run(i64 %n, ptr %x, ptr %r) {\n"
        "  call void @graphc_part_0(i64 %n, ptr %x, ptr %r)\n  ret void\n}\n"
    )
    values, result = np.arange(10_000.0), np.zeros(1)
    for text in (found, nest(20)):
        module = f"{text}{run}declare i64 @llvm.smin.i64(i64, i64)\n"
        loaded = loader.load_object(compile_to_object(module), symbols.resolve)
        function = ctypes.CFUNCTYPE(None, ctypes.c_int64, ctypes.c_void_p, ctypes.c_void_p)
        function(loaded.address("run"))(len(values), values.ctypes.data, result.ctypes.data)
        assert result[0] == 21 * values.sum()
        result[0] = 0


def test_short_and_other_inner_loops_stay():
    assert outline("graphc_part_0", nest(4)) is None
    assert outline("graphc_part_0", nest(20, block=8)) is None


def test_a_divided_function_computes_the_same(monkeypatch):
    x, y = pt.dvectors("x", "y")
    a, b, outputs = x, y, []
    for i in range(60):
        total = (a * float(i + 1) + pt.tanh(b) * a - b / (1 + a * a) + a * b).sum()
        a, b = a + b * total * 1e-6, b - a * 1e-3
        outputs.append(total)
    monkeypatch.setattr(division, "LARGE", 1 << 60)
    whole = graphc.function([x, y], outputs)
    monkeypatch.setattr(division, "LARGE", 0)
    monkeypatch.setattr(division, "MODULE_SIZE", 20_000)
    sizes = []
    original = elf.join
    monkeypatch.setattr(elf, "join", lambda objects: sizes.append(len(objects)) or original(objects))
    z = pt.dvector("z")
    divided = graphc.function([x, y, z], [*outputs, z.sum()])
    assert sizes and sizes[0] > 1
    rng = np.random.default_rng(0)
    for length in (0, 1, 7, 5000):
        values = [rng.standard_normal(length) * 0.1 for _ in range(2)]
        np.testing.assert_allclose(divided(*values, np.zeros(length))[:-1], whole(*values), rtol=1e-9)


def test_values_are_in_the_frame_on_all_paths(everything):
    """Calls in branches: what is first needed in one of them may be needed in the other, or after both."""
    x, y, z = pt.vectors("x", "y", "z")
    c = pt.scalar("c")
    first = graphc.ifelse(c > 0, pt.exp(x * 2) + z, pt.tanh(y) * z)
    second = graphc.ifelse(c > 1, pt.exp(first) + x, pt.sin(first) * y)
    function = graphc.function([x, y, z, c], [first, second, pt.cos(x) + y])
    rng = np.random.default_rng(0)
    a, b, d = (rng.standard_normal(500).astype(x.dtype) for _ in range(3))
    for number in (-1.0, 0.5, 2.0):
        one = np.exp(a * 2) + d if number > 0 else np.tanh(b) * d
        two = np.exp(one) + a if number > 1 else np.sin(one) * b
        for result, expected in zip(function(a, b, d, number), (one, two, np.cos(a) + b), strict=True):
            np.testing.assert_allclose(result, expected, rtol=1e-10)


def test_values_are_stored_after_their_definition(everything):
    text = """
define i64 @main(ptr %0, i64 %1, i1 %2) {
  br i1 %2, label %3, label %5

3:                                                ; preds = %0
  %4 = load i64, ptr %0, align 8
  call void @graphc_part_0(ptr %0, i64 %4)
  br label %5

5:                                                ; preds = %3, %0
  %6 = phi i64 [ 7, %3 ], [ %1, %0 ]
  %7 = phi i64 [ 8, %3 ], [ %1, %0 ]
  call void @graphc_part_1(ptr %0, i64 %7)
  ret i64 %6
}
""" + "".join(
        f"define void @graphc_part_{i}(ptr %0, i64 %1) {{\n"
        + f"  store i64 {i}, ptr %0\n" * 20
        + "  store i64 %1, ptr %0\n  ret void\n}\n"
        for i in range(2)
    )
    kernel, *_ = divide(text)
    lines = [line.strip() for line in kernel.text.splitlines()]
    frame = lines.index("%graphc.frame = alloca [3 x i64]")
    assert lines[frame + 1 : frame + 3] == [
        "%graphc.slot.0 = getelementptr i64, ptr %graphc.frame, i64 0",
        "store ptr %0, ptr %graphc.slot.0",
    ]
    assert (
        lines.index("store i64 %4, ptr %graphc.slot.1") == lines.index("%4 = load i64, ptr %0, align 8") + 2
    )
    # No phi may stand after a store.
    assert (
        lines.index("store i64 %7, ptr %graphc.slot.2")
        == lines.index("%7 = phi i64 [ 8, %3 ], [ %1, %0 ]") + 2
    )


def test_equal_functions_are_compiled_once(everything):
    """Calls name values and numbers in the frame by rows; what is the same in all calls is in the code."""
    calls = "".join(
        f"  call void @graphc_part_{i}(ptr %{i % 3}, i64 {i // 2 * 2}, i64 7, double 0.0)\n" for i in range(6)
    )
    parts = "".join(
        f"define void @graphc_part_{i}(ptr %0, i64 %1, i64 %2, double %3) {{\n"
        f"  %5 = getelementptr i64, ptr %0, i64 %1\n  %6 = add i64 %1, %2\n"
        + f"  store i64 %6, ptr %5, align {4 << i % 2}\n" * 20
        + "  ret void\n}\n"
        for i in range(6)
    )
    text = f"define i64 @main(ptr %0, ptr %1, ptr %2) {{\n{calls}  ret i64 0\n}}\n{parts}"
    kernel, *others = divide(text)
    assert defined(kernel) == {"main"}
    moved = "".join(piece.text for piece in others)
    assert moved.count("define void @graphc_part_") == 2
    exports = frozenset().union(*(piece.exports for piece in others))
    assert exports == {"graphc_call_graphc_part_0", "graphc_call_graphc_part_1"}
    assert "i64 %a1, i64 7, double poison)" in moved
    loaded = loader.load_object(compile_to_object(text), symbols.resolve)
    run = ctypes.CFUNCTYPE(ctypes.c_int64, *[ctypes.c_void_p] * 3)(loaded.address("main"))
    found = np.zeros((3, 6), np.int64)
    run(*(row.ctypes.data for row in found))
    expected = np.zeros((3, 6), np.int64)
    for i in range(6):
        expected[i % 3, i // 2 * 2] = i // 2 * 2 + 7
    np.testing.assert_array_equal(found, expected)


def test_equal_loops_of_many_inputs_are_compiled_once(monkeypatch):
    """What is left of them is too small to be divided, but there are many; the rest is glue."""
    inputs = [pt.dvector(f"x{i}") for i in range(120)]
    found = []
    monkeypatch.setattr(codegen, "divide", lambda *texts: found.append(divide(*texts)) or found[-1])
    f = graphc.function(inputs, [pt.concatenate([pt.exp(x) for x in inputs])])
    kernel, loops = found[-1]
    # Loops that cores may share have functions of their own.
    assert len([name for name in defined(loops) if name.startswith("graphc_part")]) <= 2
    assert re.search(r"^define [^\n]*@main\([^\n]* optnone noinline \{", kernel.text, re.MULTILINE)
    values = [np.linspace(i, i + 1, i % 4) for i in range(120)]
    np.testing.assert_allclose(f(*values)[0], np.exp(np.concatenate(values)), rtol=1e-13)


def test_glue():
    """Code that calls each function once, however long; neither loops nor arithmetic."""
    call = "  call void @graphc_call_graphc_part_0(ptr %graphc.frame)\n"
    branch = "  br i1 %2, label %3, label %4\n\n3:  ; preds = %1\n  br label %4\n\n4:  ; preds = %3\n"
    assert is_glue(call + branch + call + "  %5 = add i64 %0, 1\n")
    assert not is_glue(call + branch + "  br label %3\n")
    assert not is_glue(call + "  %5 = fadd double %0, %1\n" * 3)


def test_bytes_do_not_depend_on_the_number_of_threads(everything):
    found = []
    for threads in (1, 2, 5):
        with graphc.config.change_flags(threads=threads):
            found.append(compile_to_object(KERNEL))
    assert found[0][: len(JOINED)] == JOINED
    assert found[0] == found[1] == found[2]


def test_the_views_show_all_modules(everything):
    views: dict[str, str] = {}
    compile_to_object(KERNEL, on_ir=views.__setitem__)
    for name in ("llvm", "llvm-opt", "asm"):
        assert "graphc_call_graphc_part_0" in views[name] and "main" in views[name]
    assert views["llvm"].count("define") > 8


def test_threads_share_work_in_order():
    seen = set()
    barrier = threading.Barrier(2, timeout=60)

    def square(number: int) -> int:
        if number < 2:
            barrier.wait()
        seen.add(threading.get_ident())
        return number * number

    assert share(square, range(20), 4) == [i * i for i in range(20)]
    assert len(seen) >= 2
    assert share(square, [3], 4) == [9]


def test_errors_of_threads_are_raised():
    def fail(number: int) -> int:
        if number == 3:
            raise ValueError("three")
        return number

    for threads in (1, 3):
        with pytest.raises(ValueError, match="three"):
            share(fail, range(10), threads)


def test_invalid_parts_are_errors_not_crashes(everything):
    for _ in range(3):
        with pytest.raises(CompileError, match="not valid"):
            compile_to_object(KERNEL.replace("store double %5, ptr %0", "store double %5, ptr %77"))
        gc.collect()
