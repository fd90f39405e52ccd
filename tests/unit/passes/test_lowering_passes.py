# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""What the passes from clusters to the kernel ABI promise, checked on IR and on compiled code."""

from __future__ import annotations

import re

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from pipelines import OPTIONAL, compile_text, interpret, with_options, without

from graphc.backends.cpu.pipeline import FAST_RUN
from graphc.passes.run import run_pipeline
from graphc_dialects._mlir import ir
from graphc_tools.legality import check

from ._semantics import assert_close, context, function
from .test_graph_pipeline import programs

M = "tensor<?x?xf64>"
VARIANTS = {
    "all": FAST_RUN,
    **{f"without {flag}": without(flag) for flag in OPTIONAL},
    "gemm": with_options("graphc-matmul-to-blas", "threshold=0"),
}


def until(text: str, last: str, pipeline=FAST_RUN) -> str:
    """The IR after a prefix of a pipeline, which ends with `last`."""
    with context(), ir.Location.unknown():
        module = ir.Module.parse(text)
        position = [entry[0] for entry in pipeline].index(last)
        run_pipeline(module, pipeline[: position + 1], verify_each=True, check=check)
        return str(module)


@pytest.mark.fuzz
@settings(deadline=None)
@given(
    text=programs(),
    variant=st.sampled_from(list(VARIANTS)),
    rows=st.integers(1, 3),
    seed=st.integers(0, 2**16),
)
def test_compiled_code_computes_what_the_module_means(text, variant, rows, seed):
    rng = np.random.default_rng(seed)
    # Products of the program need square matrices.
    values = [rng.normal(size=(rows, rows)).round(2) for _ in range(2)]
    expected = interpret(text, values)
    for want, have in zip(expected, compile_text(text, VARIANTS[variant])(*values), strict=True):
        assert_close(want, have, 1e-6, text)


def reduction(name: str, source: str, axis: int, result: str) -> str:
    axes = f"axes = array<i64: {axis}>"
    return f'  {result} = "graphc.reduce_{name}"({source}) {{{axes}}} : ({M}) -> tensor<?xf64>'


def test_several_reductions_share_one_sweep():
    body = [reduction("sum", "%x", 1, "%a"), reduction("max", "%x", 1, "%b")]
    text = function(f"%x: {M}", "\n".join(body), "%a : tensor<?xf64>; %b : tensor<?xf64>")
    assert until(text, "graphc-convert-to-linalg").count("linalg.generic") == 1
    both = [body[0], reduction("max", "%x", 0, "%b")]
    text = function(f"%x: {M}", "\n".join(both), "%a : tensor<?xf64>; %b : tensor<?xf64>")
    assert until(text, "graphc-convert-to-linalg").count("linalg.generic") == 2


def test_max_inputs_bounds_a_cluster():
    names = [f"%x{i}" for i in range(6)]
    # Divisions: cheaper operations would be computed again instead of being stored.
    lines = [f'  %s1 = "graphc.true_div"(%x0, %x1) : ({M}, {M}) -> {M}']
    lines += [f'  %s{i} = "graphc.true_div"(%s{i - 1}, %x{i}) : ({M}, {M}) -> {M}' for i in range(2, 6)]
    text = function(", ".join(f"{name}: {M}" for name in names), "\n".join(lines), f"%s5 : {M}")
    for most, clusters in ((16, 1), (6, 1), (3, 3), (2, 5)):
        with context(), ir.Location.unknown():
            module = ir.Module.parse(text)
            run_pipeline(module, [f"graphc-fusion{{max-inputs={most}}}"])
            assert len(set(re.findall(r"cluster = (\d+)", str(module)))) == clusters, most


def test_results_go_straight_to_the_callers_memory():
    text = function(f"%x: {M}", f'  %y = "graphc.exp"(%x) : ({M}) -> {M}', f"%y : {M}")
    ir_text = until(text, "graphc-linalg-to-loops")
    assert "memref.alloc" not in ir_text and "memref.copy" not in ir_text


def test_softmax_visits_each_row_once():
    text = function(
        f"%x: {M}", f'  %y = "graphc.softmax"(%x) {{axes = array<i64: 1>}} : ({M}) -> {M}', f"%y : {M}"
    )
    fused = until(text, "graphc-loop-fusion")
    plain = until(text, "canonicalize,cse,loop-invariant-code-motion")
    outer = re.compile(r"^    scf\.for", re.MULTILINE)
    assert len(outer.findall(fused)) == 1 < len(outer.findall(plain))


LOOPS = """
func.func @main(%a: memref<?x?xf64>, %b: memref<?x?xf64>, %c: memref<?x?xf64>, %n: index) {{
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  scf.for %i = %c0 to %n step %c1 {{
    scf.for %j = %c0 to %n step %c1 {{
      %v = memref.load %a[%i, %j] : memref<?x?xf64>
      memref.store %v, %b[{first}] : memref<?x?xf64>
    }}
  }}
  {between}
  scf.for %i = %c0 to {bound} step %c1 {{
    scf.for %j = %c0 to %n step %c1 {{
      %v = memref.load %{read}[{second}] : memref<?x?xf64>
      memref.store %v, %{write}[%i, %j] : memref<?x?xf64>
    }}
  }}
  return
}}
"""


@pytest.mark.parametrize(
    ("change", "fused"),
    [
        ({}, True),
        ({"second": "%j, %i"}, False),
        ({"first": "%j, %i"}, False),
        ({"first": "%j, %i", "second": "%j, %i"}, True),
        ({"second": "%i, %c0"}, True),
        ({"second": "%c0, %j"}, False),
        ({"read": "a", "second": "%j, %i"}, True),  # nothing that is written is shared
        ({"write": "a", "second": "%i, %j"}, True),
        ({"write": "a", "read": "c", "first": "%i, %j"}, True),
        ({"bound": "%c1"}, False),
        ({"between": "func.call @f() : () -> ()"}, False),
    ],
)
def test_which_loops_are_fused(change, fused):
    slots = {
        "first": "%i, %j",
        "second": "%i, %j",
        "read": "b",
        "write": "c",
        "bound": "%n",
        "between": "",
        **change,
    }
    text = LOOPS.format(**slots) + "func.func private @f()\n"
    with context(), ir.Location.unknown():
        module = ir.Module.parse(text)
        run_pipeline(module, ["graphc-loop-fusion"], verify_each=True)
        assert str(module).count("scf.for") == (3 if fused else 4)


# The first nest makes a row that the last one reads; the nest between them is varied. Both arrays that are
# made on the way belong to one iteration alone.
BETWEEN = """
func.func @main(%a: memref<?x{size}xf64>, %b: memref<?x{size}xf64>, %n: index, %m: index) {{
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %t = memref.alloc(%n{sizes}) : memref<?x{size}xf64>
  %u = memref.alloc(%n) : memref<?xf64>
  scf.for %i = %c0 to %n step %c1 {{
    scf.for %j = %c0 to %m step %c1 {{
      %v = memref.load %a[%i, %j] : memref<?x{size}xf64>
      memref.store %v, %t[%i, %j] : memref<?x{size}xf64>
    }}
    %w = memref.load %t[%i, %c0] : memref<?x{size}xf64>
    memref.store %w, %u[%i] : memref<?xf64>
  }}
  scf.for %i = %c0 to %m step %c1 {{
    {between}
  }}
  scf.for %i = %c0 to %n step %c1 {{
    %w = memref.load %u[{row}] : memref<?xf64>
    scf.for %j = %c0 to %m step %c1 {{
      %v = memref.load %t[%i, %j] : memref<?x{size}xf64>
      %s = arith.addf %v, %w : f64
      memref.store %s, %b[%i, %j] : memref<?x{size}xf64>
    }}
  }}
  {after}
  return
}}
"""


@pytest.mark.parametrize(
    ("change", "outermost", "rows"),
    [
        ({}, 2, 2),
        ({"between": "%v = memref.load %b[%c0, %i] : memref<?x9xf64>"}, 2, 2),
        ({"between": "%v = memref.load %t[%c0, %i] : memref<?x9xf64>"}, 3, 0),  # reads what is made
        ({"between": "memref.store %z, %a[%c0, %i] : memref<?x9xf64>"}, 3, 0),  # writes what is read
        ({"row": "%c0"}, 3, 0),
        ({"after": "%v = memref.load %t[%c0, %c0] : memref<?x9xf64>"}, 2, 1),
        ({"after": "memref.dealloc %t : memref<?x9xf64>"}, 2, 1),
        ({"size": "?", "sizes": ", %m"}, 2, 1),  # no place on the stack
        ({"size": "2049"}, 2, 1),
    ],
)
def test_a_nest_moves_past_others_and_keeps_one_row_of_what_it_alone_accesses(change, outermost, rows):
    slots = {"size": "9", "sizes": "", "row": "%i", "between": "", "after": "", **change}
    if "%z" in slots["between"]:
        slots["between"] = "%z = arith.constant 1.0 : f64\n    " + slots["between"]
    with context(), ir.Location.unknown():
        module = ir.Module.parse(BETWEEN.format(**slots))
        run_pipeline(module, ["graphc-loop-fusion"], verify_each=True)
        text = str(module)
    assert len(re.findall(r"^    scf\.for", text, re.MULTILINE)) == outermost
    assert text.count("memref.alloca") == text.count("graphc.row") == rows
    assert text.count("memref.alloc(") == 2 - rows


PRODUCT = '  %y = "graphc.matmul"(%a, %b) {{transpose_a = {0}, transpose_b = {1}}} : ({2}, {3}) -> {4}'


def product(ta: bool, tb: bool, a: str, b: str, c: str) -> str:
    body = PRODUCT.format(str(ta).lower(), str(tb).lower(), f"tensor<{a}>", f"tensor<{b}>", f"tensor<{c}>")
    return function(f"%a: tensor<{a}>, %b: tensor<{b}>", body, f"%y : tensor<{c}>")


@pytest.mark.parametrize(
    ("size", "element", "call"),
    [
        ("16", "f64", "block_16_16_16_nn"),
        ("17", "f64", "gemm"),
        ("17", "f32", "gemm"),
        ("16", "complex<f32>", None),
        ("17", "complex<f32>", "gemm"),
        ("16", "i64", None),
        ("17", "i64", None),
        ("17", "f16", None),
        ("?", "f64", "gemm"),
    ],
)
def test_what_a_product_becomes(size, element, call):
    matrix = f"{size}x{size}x{element}"
    ir_text = until(product(False, False, matrix, matrix, matrix), "graphc-matmul-to-blas")
    assert re.findall(r"call @graphc_[sdcz](\w+)", ir_text) == ([] if call is None else [call])
    assert ("linalg.generic" in ir_text) == (call is None) == ("linalg.fill" in ir_text)


@pytest.mark.parametrize("ta", [False, True])
@pytest.mark.parametrize("tb", [False, True])
@pytest.mark.parametrize("element", ["f32", "f64", "complex<f64>", "i32"])
def test_products_by_blas_and_by_loops(ta, tb, element):
    """Sizes on both sides of the threshold, empty ones, and batches, with one compiled function each."""
    rng = np.random.default_rng(0)
    dtype = {"f32": "float32", "f64": "float64", "complex<f64>": "complex128", "i32": "int32"}[element]
    for batch in ((), (3,)):
        shape = "?x" * (len(batch) + 2) + element
        run = compile_text(product(ta, tb, shape, shape, shape), FAST_RUN)
        for m, n, k in [(2, 3, 4), (17, 19, 23), (0, 3, 2), (3, 0, 2), (3, 2, 0), (40, 1, 300)]:
            a = rng.integers(-4, 5, (*batch, *((k, m) if ta else (m, k)))).astype(dtype)
            b = rng.integers(-4, 5, (*batch, *((n, k) if tb else (k, n)))).astype(dtype)
            want = (np.swapaxes(a, -1, -2) if ta else a) @ (np.swapaxes(b, -1, -2) if tb else b)
            np.testing.assert_array_equal(run(a, b)[0], want)


def test_checks_become_early_returns_with_sites():
    body = f'  %y = "graphc.add"(%a, %b) : ({M}, {M}) -> {M} loc("n3")'
    with context(), ir.Location.unknown():
        module = ir.Module.parse(function(f"%a: {M}, %b: {M}", body, f"%y : {M}"))
        run_pipeline(module, FAST_RUN)
        sites = [
            {name: site[name].value for name in ("error", "node")}
            for site in module.operation.attributes["graphc.sites"]
        ]
        text = str(module)
    assert sites and all(site == {"error": "ValueError", "node": "n3"} for site in sites)
    assert "graphc.check" not in text
    run = compile_text(function(f"%a: {M}, %b: {M}", body, f"%y : {M}"), FAST_RUN)
    with pytest.raises(ValueError, match="3"):
        run(np.zeros((2, 3)), np.zeros((2, 2)))
    assert run(np.ones((2, 3)), np.ones((2, 3)))[0].tolist() == [[2.0] * 3] * 2


def test_temporaries_come_from_the_workspace():
    body = [
        f'  %t = "graphc.matmul"(%x, %x) {{transpose_a = false, transpose_b = true}} : ({M}, {M}) -> {M}',
        f'  %y = "graphc.matmul"(%t, %x) {{transpose_a = false, transpose_b = false}} : ({M}, {M}) -> {M}',
    ]
    text = until(function(f"%x: {M}", "\n".join(body), f"%y : {M}"), "graphc-arena-allocation")
    assert text.count("llvm.call @graphc_workspace_0") == 1 and "graphc_alloc" not in text
    assert "@malloc(" not in re.sub(r"llvm.func @malloc.*", "", text) and "call @free" not in text


def test_temporaries_without_a_plan_come_from_the_arena():
    body = f'  %t = "graphc.matmul"(%x, %x) {{transpose_a = false, transpose_b = true}} : ({M}, {M}) -> {M}'
    entries = [entry for entry in FAST_RUN if not entry[0].startswith("graphc-plan-memory")]
    body += (
        f'\n  %y = "graphc.matmul"(%t, %x) {{transpose_a = false, transpose_b = false}} : ({M}, {M}) -> {M}'
    )
    with context(), ir.Location.unknown():
        module = ir.Module.parse(function(f"%x: {M}", body, f"%y : {M}"))
        run_pipeline(module, entries)
        text = str(module)
    assert text.count("llvm.call @graphc_alloc") == 1 and "graphc_workspace" not in text
    assert "@malloc(" not in re.sub(r"llvm.func @malloc.*", "", text) and "call @free" not in text


SIZES = """
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %c2 = arith.constant 2 : index
  %c4 = arith.constant 4 : index
  %zero = arith.constant dense<0.0> : tensor<f64>
  %n = tensor.dim %x, %c1 : tensor<4x?xf64>
  %b = "graphc.broadcast_to"(%zero, %c4, %n) : (tensor<f64>, index, index) -> tensor<4x?xf64>
  %m = tensor.dim %b, %c1 : tensor<4x?xf64>
  %u = "graphc.slice"(%x, %c0, %c0, %c2, %n, %c1, %c1) :
    (tensor<4x?xf64>, index, index, index, index, index, index) -> tensor<2x?xf64>
  %y = "graphc.update_slice"(%b, %u, %c0, %c0, %c2, %m, %c1, %c1) {accumulate = true} :
    (tensor<4x?xf64>, tensor<2x?xf64>, index, index, index, index, index, index) -> tensor<4x?xf64>
  %k = tensor.dim %y, %c1 : tensor<4x?xf64>
  %v = "graphc.slice"(%y, %c0, %c0, %c2, %k, %c1, %c1) :
    (tensor<4x?xf64>, index, index, index, index, index, index) -> tensor<2x?xf64>
  %w = "graphc.broadcast_to"(%v, %c2, %n) : (tensor<2x?xf64>, index, index) -> tensor<2x?xf64>
  %p = "graphc.put"(%b, %w, %i) {axis = 0 : i64, accumulate = true} :
    (tensor<4x?xf64>, tensor<2x?xf64>, tensor<2xi64>) -> tensor<4x?xf64>
  %z = "graphc.add"(%y, %p) : (tensor<4x?xf64>, tensor<4x?xf64>) -> tensor<4x?xf64>
"""


def test_sizes_first_asked_for_in_a_loop_are_visible_after_it():
    """The copy of `%v` asks for a size of `%y` in the body of its loop, and the sum asks for it again."""
    text = function("%x: tensor<4x?xf64>, %i: tensor<2xi64>", SIZES, "%z : tensor<4x?xf64>")
    values = [np.arange(12.0).reshape(4, 3), np.array([0, 3])]
    (want,) = interpret(text, values)
    for variant in ("all", "without graphc-shape-simplification"):
        until(text, "graphc-convert-to-linalg", VARIANTS[variant])
        np.testing.assert_allclose(compile_text(text, VARIANTS[variant])(*values)[0], want)
