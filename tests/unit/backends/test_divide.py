# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Large kernels are divided into modules, which threads compile."""

from __future__ import annotations

import ctypes
import gc
import threading
from collections.abc import Sequence
from typing import Any

import numpy as np
import pytest

import graphc
import graphc.tensor as pt
from graphc.backends.contexts import new_context
from graphc.backends.cpu import generate, pipeline
from graphc.backends.cpu import object as codegen
from graphc.backends.cpu.object import compile_to_object, share
from graphc.backends.handoff import to_llvmlite
from graphc.backends.stages import Request, Stage, Vectors
from graphc.errors import CompileError
from graphc.native.parts import Piece
from graphc.passes.llvm.divide_kernel import EXPORTS, DivideKernel
from graphc.passes.run import run_pipeline
from graphc_dialects._mlir import ir, translate_module_to_llvmir
from graphc_runtime import elf, loader, symbols
from graphc_runtime.elf import JOINED

# A nest that can be moved, one that uses the workspace of another module, one that is called twice, and a
# loop that threads share.
KERNEL = """
llvm.mlir.global private constant @table(dense<[2.0, 3.0]> : tensor<2xf64>) : !llvm.array<2 x f64>
llvm.mlir.global internal @counter(0 : i64) : i64
llvm.func @sqrt(f64) -> f64
llvm.func @graphc_split_0(i64, i64, i64, i64, !llvm.ptr)
  attributes {graphc.helper = {kind = "split", number = 0 : i64, products = false}}
llvm.func @main(%0: !llvm.ptr, %1: !llvm.ptr, %2: i64) -> i64 {
  %3 = llvm.load %1 : !llvm.ptr -> f64
  %4 = llvm.mlir.constant(4.0 : f64) : f64
  %5 = llvm.mlir.constant(0 : i64) : i64
  %6 = llvm.mlir.constant(5 : i64) : i64
  %7 = llvm.mlir.constant(1 : i64) : i64
  llvm.call @graphc_part_0(%1, %2, %3, %4) : (!llvm.ptr, i64, f64, f64) -> ()
  llvm.call @graphc_part_1(%1) : (!llvm.ptr) -> ()
  llvm.call @graphc_part_2(%1) : (!llvm.ptr) -> ()
  llvm.call @graphc_part_2(%1) : (!llvm.ptr) -> ()
  llvm.call @graphc_split_0(%5, %2, %6, %7, %1) : (i64, i64, i64, i64, !llvm.ptr) -> ()
  llvm.return %5 : i64
}
llvm.func @graphc_part_0(%0: !llvm.ptr {llvm.noalias}, %1: i64, %2: f64, %3: f64)
    attributes {graphc.part, no_inline} {
  %4 = llvm.mlir.addressof @table : !llvm.ptr
  %5 = llvm.load %4 : !llvm.ptr -> f64
  %6 = llvm.fmul %5, %3 : f64
  %7 = llvm.call @sqrt(%6) : (f64) -> f64
  llvm.store %7, %0 : f64, !llvm.ptr
  llvm.return
}
llvm.func @graphc_part_1(%0: !llvm.ptr) attributes {graphc.part, no_inline} {
  %1 = llvm.mlir.addressof @counter : !llvm.ptr
  %2 = llvm.load %1 : !llvm.ptr -> i64
  llvm.store %2, %0 : i64, !llvm.ptr
  llvm.return
}
llvm.func @graphc_part_2(%0: !llvm.ptr) attributes {graphc.part, no_inline} {
  llvm.return
}
llvm.func @graphc_body_0(%0: !llvm.ptr, %1: i64, %2: i64, %3: !llvm.ptr {llvm.noalias}) -> i64 {
  %4 = llvm.getelementptr %3[1] : (!llvm.ptr) -> !llvm.ptr, i64
  llvm.store %2, %4 : i64, !llvm.ptr
  llvm.return %1 : i64
}
"""
SHARE = "define void @graphc_share(ptr, ptr, i64, i64, i64, i64) {\n  ret void\n}\n"


def divide(text: str, size: int = 5, large: int = 0) -> tuple[str, list[Piece]]:
    """The LLVM IR of a kernel and of the modules that were taken out of it."""
    with new_context(), ir.Location.unknown():
        module = ir.Module.parse(text)
        run_pipeline(module, [DivideKernel(large=large, size=size), "graphc-define-splits"])
        pieces = []
        for op in [op.operation for op in module.body.operations]:
            if op.name == "builtin.module":
                exports = frozenset(ir.StringAttr(name).value for name in op.attributes[EXPORTS])
                pieces.append(Piece(to_llvmlite(translate_module_to_llvmir(op)), exports))
                op.erase()
        return translate_module_to_llvmir(module.operation), pieces


def change(monkeypatch: pytest.MonkeyPatch, *, large: int, size: int, vectors: Vectors | None = None) -> None:
    """Other limits for compiled functions, and vectors."""
    request = Request() if vectors is None else Request(vectors=vectors)
    flag = f"graphc-divide-kernel{{large={large} size={size}}}"
    entries = [
        (flag, reason) if entry.startswith("graphc-divide-kernel") else (entry, reason)
        for entry, reason in pipeline.pipeline("fast_run", request)
    ]
    assert flag in dict(entries)
    monkeypatch.setitem(pipeline.PIPELINES, "fast_run", (Stage.of("changed", entries),))


@pytest.fixture
def everything(monkeypatch):
    """Divides all kernels, however small."""
    change(monkeypatch, large=0, size=8)


def defined(text: str, *, is_translated: bool = False) -> set[str]:
    with codegen.llvm.parsed(text if is_translated else to_llvmlite(text)) as module:
        return {function.name for function in module.functions() if not function.is_declaration}


def loaded(kernel: str, pieces: Sequence[Piece], parts: str = "") -> loader.LoadedObject:
    code = compile_to_object(kernel, pieces=pieces, inlined_text=parts)
    return loader.load_object(code, symbols.resolve)


def test_small_kernels_stay_whole():
    kernel, pieces = divide(KERNEL, large=1000)
    assert pieces == [] and "graphc_call_" not in kernel


def test_what_is_moved():
    kernel, pieces = divide(KERNEL)
    assert defined(kernel) == {"main", "graphc_part_1", "graphc_part_2"}
    moved = set().union(*(defined(piece.text) for piece in pieces))
    assert {"graphc_part_0", "graphc_body_0", "graphc_range_0"} <= moved
    exports = frozenset().union(*(piece.exports for piece in pieces))
    assert exports == {"graphc_call_graphc_part_0", "graphc_call_graphc_split_0"}
    # What is not read is not passed, constants are known where they are used.
    text = "".join(piece.text for piece in pieces)
    assert "i64 poison, double poison, double 4.000000e+00)" in text
    assert kernel.count("store ") == 3  # two words of the frame, and one in a nest that stays
    assert not any("@counter" in piece.text for piece in pieces)


def test_what_was_moved_computes_the_same():
    kernel, pieces = divide(KERNEL)
    code = loaded(kernel, pieces, SHARE)
    main = ctypes.CFUNCTYPE(ctypes.c_int64, ctypes.c_void_p, ctypes.c_void_p, ctypes.c_int64)
    found = np.zeros(2)
    assert main(code.address("main"))(None, found.ctypes.data, 77) == 0
    # The last nest that stays writes what the other module counts.
    assert found.view(np.int64).tolist() == [0, 77]


def test_values_that_do_not_fit_stay():
    wide = "vector<2xi64>"
    text = KERNEL.replace(
        "(%1, %2, %3, %4) : (!llvm.ptr, i64, f64, f64)", f"(%1, %2, %8, %4) : (!llvm.ptr, i64, {wide}, f64)"
    )
    text = text.replace("%2: f64, %3: f64)", f"%2: {wide}, %3: f64)")
    text = text.replace(
        "  llvm.call @graphc_part_0",
        f"  %8 = llvm.mlir.constant(dense<0> : {wide}) : {wide}\n  llvm.call @graphc_part_0",
    )
    kernel, pieces = divide(text)
    assert "graphc_part_0" in defined(kernel) and len(pieces) == 1


def test_modules_have_about_the_same_size():
    calls = "".join(f"  llvm.call @graphc_part_{i}(%0) : (!llvm.ptr) -> ()\n" for i in range(40))
    parts = "".join(
        f"llvm.func @graphc_part_{i}(%0: !llvm.ptr) attributes {{graphc.part}} {{\n"
        f"  %1 = llvm.mlir.constant({i} : i64) : i64\n"
        + "  llvm.store %1, %0 : i64, !llvm.ptr\n" * (i % 7 + 1)
        + "  llvm.return\n}\n"
        for i in range(40)
    )
    operations = sum(i % 7 + 2 for i in range(40))
    main = "  %1 = llvm.mlir.constant(0 : i64) : i64\n"
    text = f"llvm.func @main(%0: !llvm.ptr) -> i64 {{\n{calls}{main}  llvm.return %1 : i64\n}}\n{parts}"
    _, pieces = divide(text, size=30)
    sizes = [piece.text.count("  store ") + piece.text.count("  ret ") for piece in pieces]
    assert len(pieces) == round(operations / 30)
    assert max(sizes) < 1.3 * min(sizes)
    assert sum(len(piece.exports) for piece in pieces) == 40


def nest(lines: int, block: int = 4096) -> str:
    """A sum of the elements of an array, each `lines + 1` times, over blocks."""
    body = "".join(f"  %a{i + 1} = llvm.fadd %a{i}, %x : f64\n" for i in range(lines))
    return f"""
llvm.func @main(%n: i64, %data: !llvm.ptr, %out: !llvm.ptr) -> i64 {{
  llvm.call @graphc_part_0(%n, %data, %out) : (i64, !llvm.ptr, !llvm.ptr) -> ()
  llvm.return %n : i64
}}
llvm.func @graphc_part_0(%n: i64, %data: !llvm.ptr {{llvm.noalias}}, %out: !llvm.ptr {{llvm.noalias}})
    attributes {{graphc.part, no_inline}} {{
  %zero = llvm.mlir.constant(0 : i64) : i64
  %one = llvm.mlir.constant(1 : i64) : i64
  %width = llvm.mlir.constant({block} : i64) : i64
  %nothing = llvm.mlir.constant(0.0 : f64) : f64
  llvm.br ^blocks(%zero, %nothing : i64, f64)
^blocks(%start: i64, %sum: f64):
  %more = llvm.icmp "slt" %start, %n : i64
  llvm.cond_br %more, ^block, ^end
^block:
  %next = llvm.add %start, %width : i64
  %stop = llvm.intr.smin(%next, %n) : (i64, i64) -> i64
  llvm.br ^elements(%start, %nothing : i64, f64)
^elements(%i: i64, %part: f64):
  %some = llvm.icmp "slt" %i, %stop : i64
  llvm.cond_br %some, ^element, ^done
^element:
  %at = llvm.getelementptr %data[%i] : (!llvm.ptr, i64) -> !llvm.ptr, f64
  %x = llvm.load %at : !llvm.ptr -> f64
  %a0 = llvm.fadd %nothing, %x : f64
{body}  %last = llvm.fadd %part, %a{lines} : f64
  %j = llvm.add %i, %one : i64
  llvm.br ^elements(%j, %last : i64, f64)
^done:
  %total = llvm.fadd %sum, %part : f64
  llvm.br ^blocks(%next, %total : i64, f64)
^end:
  llvm.store %sum, %out : f64, !llvm.ptr
  llvm.return
}}
"""


@pytest.mark.parametrize(
    ("text", "outlined"), [(nest(20), True), (nest(4), True), (nest(20, block=8), False)]
)
def test_inner_loops_of_blocks_are_outlined(text, outlined):
    """Those of blocks of 4096 elements; others stay where they are."""
    lines = text.count("= llvm.fadd %a") + 1
    kernel, [piece] = divide(text)
    assert ("graphc_part_0_inner_0" in defined(piece.text)) == outlined
    if outlined:
        inner = next(line for line in piece.text.splitlines() if line.startswith("define internal double @"))
        assert "ptr noalias " in inner and "alwaysinline" in piece.text
    # Long loops are vectorised without a second copy.
    assert ("llvm.loop.interleave.count" in piece.text) == (lines >= 16)
    code = loaded(kernel, [piece])
    values, result = np.arange(10_000.0), np.zeros(1)
    function = ctypes.CFUNCTYPE(ctypes.c_int64, ctypes.c_int64, ctypes.c_void_p, ctypes.c_void_p)
    function(code.address("main"))(len(values), values.ctypes.data, result.ctypes.data)
    assert result[0] == lines * values.sum()


def test_a_divided_function_computes_the_same(monkeypatch):
    x, y = pt.dvectors("x", "y")
    a, b, outputs = x, y, []
    for i in range(60):
        total = (a * float(i + 1) + pt.tanh(b) * a - b / (1 + a * a) + a * b).sum()
        a, b = a + b * total * 1e-6, b - a * 1e-3
        outputs.append(total)
    change(monkeypatch, large=1 << 60, size=1)
    whole = graphc.function([x, y], outputs)
    change(monkeypatch, large=0, size=400)
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


@pytest.mark.parametrize("masks", [False, True])
def test_pieces_of_loops_over_elements_are_final(monkeypatch, masks):
    """LLVM's passes would find nothing to do in them."""
    x, y = pt.dvectors("x", "y")
    a, b, outputs = x, y, []
    for i in range(40):
        total = (a * float(i + 1 + masks) + b / (1 + a * a)).sum()
        a, b = a + b * total * 1e-6, b - a * 1e-3
        outputs.append(total)
    change(monkeypatch, large=0, size=400, vectors=(16, 16, masks, False))
    pieces = []
    original = codegen.compile_to_object
    monkeypatch.setattr(
        generate, "compile_to_object", lambda *a, **o: pieces.extend(o["pieces"]) or original(*a, **o)
    )
    f = graphc.function([x, y], outputs, mode="fast_run")
    assert len(pieces) > 1 and all(piece.is_final for piece in pieces)
    given = [np.linspace(0.1, 1, 13), np.linspace(1, 2, 13)]
    change(monkeypatch, large=1 << 60, size=1)
    whole = graphc.function([x, y], [*outputs, a.sum()])
    np.testing.assert_allclose(f(*given), whole(*given)[:-1], rtol=1e-9)


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


def test_values_are_stored_after_their_definition():
    text = """
llvm.func @main(%0: !llvm.ptr, %1: i64, %2: i1) -> i64 {
  llvm.cond_br %2, ^left, ^right(%1 : i64)
^left:
  %4 = llvm.load %0 : !llvm.ptr -> i64
  llvm.call @graphc_part_0(%0, %4) : (!llvm.ptr, i64) -> ()
  llvm.br ^right(%4 : i64)
^right(%7: i64):
  llvm.call @graphc_part_1(%0, %7) : (!llvm.ptr, i64) -> ()
  llvm.return %7 : i64
}
""" + "".join(
        f"llvm.func @graphc_part_{i}(%0: !llvm.ptr, %1: i64) attributes {{graphc.part}} {{\n"
        f"  %2 = llvm.mlir.constant({i} : i64) : i64\n"
        + "  llvm.store %2, %0 : i64, !llvm.ptr\n" * 20
        + "  llvm.store %1, %0 : i64, !llvm.ptr\n  llvm.return\n}\n"
        for i in range(2)
    )
    kernel, _ = divide(text, size=20)
    lines = [line.strip() for line in kernel.splitlines()]
    frame = next(i for i, line in enumerate(lines) if "= alloca [3 x i64]" in line)
    assert lines[frame + 2].startswith("store ptr %0, ptr ")
    phi = next(i for i, line in enumerate(lines) if "= phi i64" in line)
    load = next(i for i, line in enumerate(lines) if "= load i64, ptr %0" in line)
    for at in (phi, load):
        value = lines[at].split()[0]
        assert lines[at + 2].startswith(f"store i64 {value}, ptr ")


def test_equal_functions_are_compiled_once():
    """Calls name values and numbers in the frame by rows; what is the same in all calls is in the code."""
    constants = "".join(f"  %c{i} = llvm.mlir.constant({i} : i64) : i64\n" for i in (0, 2, 4, 7))
    constants += "  %f = llvm.mlir.constant(0.0 : f64) : f64\n"
    types = "(!llvm.ptr, i64, i64, f64) -> ()"
    calls = "".join(
        f"  llvm.call @graphc_part_{i}(%{i % 3}, %c{i // 2 * 2}, %c7, %f) : {types}\n" for i in range(6)
    )
    parts = "".join(
        f"llvm.func @graphc_part_{i}(%0: !llvm.ptr, %1: i64, %2: i64, %3: f64)"
        " attributes {graphc.part} {\n"
        "  %5 = llvm.getelementptr %0[%1] : (!llvm.ptr, i64) -> !llvm.ptr, i64\n"
        "  %6 = llvm.add %1, %2 : i64\n"
        + f"  llvm.store %6, %5 {{alignment = {4 << i % 2} : i64}} : i64, !llvm.ptr\n" * 20
        + "  llvm.return\n}\n"
        for i in range(6)
    )
    head = "llvm.func @main(%0: !llvm.ptr, %1: !llvm.ptr, %2: !llvm.ptr) -> i64 {\n"
    kernel, pieces = divide(f"{head}{constants}{calls}  llvm.return %c0 : i64\n}}\n{parts}", size=20)
    assert defined(kernel) == {"main"}
    moved = "".join(piece.text for piece in pieces)
    assert moved.count("define void @graphc_part_") == 2
    exports = frozenset().union(*(piece.exports for piece in pieces))
    assert exports == {"graphc_call_graphc_part_0", "graphc_call_graphc_part_1"}
    assert "i64 7, double poison)" in moved
    code = loaded(kernel, pieces)
    run = ctypes.CFUNCTYPE(ctypes.c_int64, *[ctypes.c_void_p] * 3)(code.address("main"))
    found = np.zeros((3, 6), np.int64)
    run(*(row.ctypes.data for row in found))
    expected = np.zeros((3, 6), np.int64)
    for i in range(6):
        expected[i % 3, i // 2 * 2] = i // 2 * 2 + 7
    np.testing.assert_array_equal(found, expected)


def test_equal_loops_of_many_inputs_are_compiled_once(monkeypatch):
    """What is left of them is too small to be divided, but there are many; the rest is glue."""
    inputs = [pt.dvector(f"x{i}") for i in range(120)]
    found: list[Any] = []
    original = codegen._compile
    monkeypatch.setattr(
        codegen, "_compile", lambda works, *a, **k: found.append(works) or original(works, *a, **k)
    )
    f = graphc.function(inputs, [pt.concatenate([pt.exp(x) for x in inputs])])
    kernel, *pieces = [work.piece for work in found[-1] if work.part is None]
    # Loops that cores may share have functions of their own.
    loops = set[str]().union(*(defined(piece.text, is_translated=True) for piece in pieces))
    assert len([name for name in loops if name.startswith("graphc_part")]) <= 2
    head = next(line for line in kernel.text.splitlines() if line.startswith("define internal i64 @main("))
    group = head.rpartition("#")[2].split()[0]
    assert f"attributes #{group} = {{ noinline optnone }}" in kernel.text
    values = [np.linspace(i, i + 1, i % 4) for i in range(120)]
    np.testing.assert_allclose(f(*values)[0], np.exp(np.concatenate(values)), rtol=1e-13)


CALL = "llvm.call @graphc_part_0(%0) : (!llvm.ptr) -> ()\n"


@pytest.mark.parametrize(
    ("body", "glue"),
    [
        # Code that calls each function once, however long; neither loops nor arithmetic.
        (f"{CALL}llvm.cond_br %c, ^a, ^b\n^a:\nllvm.br ^b\n^b:\n%5 = llvm.add %n, %n : i64\n", True),
        (f"{CALL}llvm.cond_br %c, ^a, ^b\n^a:\nllvm.br ^c\n^c:\nllvm.br ^a\n^b:\n", False),
        (CALL + "".join(f"%f{i} = llvm.add %n, %n : i64\n" for i in range(3)), False),
    ],
)
def test_glue(body, glue):
    part = "llvm.func @graphc_part_0(%0: !llvm.ptr) attributes {graphc.part} {\n  llvm.return\n}\n"
    text = (
        f"llvm.func @main(%0: !llvm.ptr, %n: i64, %c: i1) -> i64 {{\n{body}llvm.return %n : i64\n}}\n{part}"
    )
    kernel, pieces = divide(text, size=1)
    assert len(pieces) == 1
    assert ("optnone" in kernel) == glue


def test_bytes_do_not_depend_on_the_number_of_threads():
    kernel, pieces = divide(KERNEL)
    found = [compile_to_object(kernel, pieces=pieces, threads=threads) for threads in (1, 2, 5)]
    assert found[0][: len(JOINED)] == JOINED
    assert found[0] == found[1] == found[2]
    assert divide(KERNEL) == (kernel, pieces)


def test_the_views_show_all_modules():
    views: dict[str, str] = {}
    kernel, pieces = divide(KERNEL)
    compile_to_object(kernel, pieces=pieces, on_ir=views.__setitem__)
    for name in ("llvm", "llvm-opt", "asm"):
        assert "graphc_call_graphc_part_0" in views[name] and "main" in views[name]
    assert views["llvm"].count("define") > 7


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


def test_invalid_parts_are_errors_not_crashes():
    kernel, pieces = divide(KERNEL)
    broken = [Piece(piece.text.replace("ret void", "ret i7 0"), piece.exports) for piece in pieces]
    for _ in range(3):
        with pytest.raises(CompileError, match="not valid"):
            compile_to_object(kernel, pieces=broken)
        gc.collect()
