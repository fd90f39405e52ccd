# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""How products of vectors and matrices are lowered: where they are computed, and from what layouts."""

from __future__ import annotations

import ctypes
from types import SimpleNamespace

import numpy as np
import pytest

import graphc
import graphc.tensor as gt
from graphc.backends import CompileLog, CompileOptions
from graphc.backends.cpu.lower import lower
from graphc.backends.cpu.object import compile_to_object, this_machine
from graphc.backends.cpu.pipeline import FAST_RUN
from graphc.backends.handoff import to_llvmlite
from graphc.emit import emit_module
from graphc.graph.function_graph import FunctionGraph
from graphc.ir.helpers import declared
from graphc.library.products import product_parts
from graphc.lowering.scans.buffers import unit_dimshuffle
from graphc.passes.run import run_pipeline
from graphc_dialects._mlir import ir, translate_module_to_llvmir
from graphc_dialects.dialect import new_context
from graphc_runtime import symbols
from graphc_runtime.loader import load_object


def stages(inputs, outputs):
    log = CompileLog(stages=[])
    lower(emit_module(FunctionGraph(inputs, outputs)).text, CompileOptions("fast_run"), log)
    return dict(log.stages)


@pytest.mark.parametrize("order", ["row", "column", "row of the transpose"])
def test_vectors_are_computed_in_their_destination(order):
    x, w = gt.vector("x"), gt.matrix("w")
    y = {"row": gt.dot(x, w), "column": gt.dot(w, x), "row of the transpose": gt.dot(x, w.T)}[order]
    text = stages([x, w], [y])["buffer"]
    assert text.count("call @graphc_dgemm") == 1
    for name in ("memref.alloc", "memref.copy", "linalg.fill", "scf.for"):
        assert name not in text


MAPS = {"row": ("(j, k) -> (k)", "(j, k) -> (k, j)"), "column": ("(j, k) -> (j, k)", "(j, k) -> (k)")}
ROWS = """
#a = affine_map<{a}>
#b = affine_map<{b}>
#c = affine_map<(j, k) -> (j)>
func.func @main(%x: memref<?x?xf64>, %w: memref<?x?xf64>, %y: memref<?x?xf64>) {{
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %zero = arith.constant 0.0 : f64
  %n = memref.dim %x, %c{time} : memref<?x?xf64>
  %k = memref.dim %x, %c{other} : memref<?x?xf64>
  %m = memref.dim %y, %c1 : memref<?x?xf64>
  scf.for %t = %c0 to %n step %c1 {{
    %r = memref.subview %x[{offsets}] [{sizes}] [1, 1]
        : memref<?x?xf64> to memref<?xf64, strided<[{stride}], offset: ?>>
    %s = memref.subview %y[%t, 0] [1, %m] [1, 1] : memref<?x?xf64> to memref<?xf64, strided<[1], offset: ?>>
    linalg.fill ins(%zero : f64) outs(%s : memref<?xf64, strided<[1], offset: ?>>)
    linalg.generic {{indexing_maps = [#a, #b, #c], iterator_types = ["parallel", "reduction"]}}
        ins({ins}) outs(%s : memref<?xf64, strided<[1], offset: ?>>)
        attrs = {{graphc.matmul = array<i1: false, false>}} {{
    ^bb0(%p: f64, %q: f64, %o: f64):
      %0 = arith.mulf %p, %q : f64
      %1 = arith.addf %o, %0 : f64
      linalg.yield %1 : f64
    }}
  }}
  return
}}
func.func @shapes() {{
  return
}}
"""


def rows_program(form: str, by_column: bool) -> str:
    """y[t] = x[t] @ w or w @ x[t]; with `by_column`, x[:, t] instead of x[t], which is not contiguous."""
    stride = "?" if by_column else "1"
    vector = f"memref<?xf64, strided<[{stride}], offset: ?>>"
    names = ("%r", "%w") if form == "row" else ("%w", "%r")
    types = [vector if name == "%r" else "memref<?x?xf64>" for name in names]
    return ROWS.format(
        a=MAPS[form][0],
        b=MAPS[form][1],
        ins=f"{', '.join(names)} : {', '.join(types)}",
        stride=stride,
        offsets="0, %t" if by_column else "%t, 0",
        sizes="%k, 1" if by_column else "1, %k",
        time=int(by_column),
        other=int(not by_column),
    )


def compiled(text: str):
    """The machine code of a module of the buffer stage, as a function of three matrices."""
    names = [name for name, _ in FAST_RUN]
    with new_context(), ir.Location.unknown():
        module = ir.Module.parse(text)
        run_pipeline(module, FAST_RUN[names.index("graphc-matmul-to-blas") :], verify_each=True)
        helpers = declared(module).values()
        llvm_ir = to_llvmlite(translate_module_to_llvmir(module.operation))
    llvm_ir = llvm_ir.replace("define internal i64 @main", "define i64 @graphc_run")
    parts = product_parts(helpers, this_machine().features)
    code = load_object(compile_to_object(llvm_ir, parts=parts), symbols.resolve)

    def run(*arrays: np.ndarray) -> None:
        arguments = [0]
        for array in arrays:
            arguments += [array.ctypes.data] * 2 + [0, *array.shape, array.shape[1], 1]
        function = ctypes.CFUNCTYPE(ctypes.c_int64, *[ctypes.c_int64] * len(arguments))
        assert function(code.address("graphc_run"))(*arguments) == 0

    return run


@pytest.mark.parametrize("form", ["row", "column"])
@pytest.mark.parametrize("by_column", [False, True])
def test_parts_of_larger_arrays_in_a_loop(form, by_column):
    run = compiled(rows_program(form, by_column))
    rng = np.random.default_rng(0)
    for steps, k, m in ((0, 3, 3), (4, 1, 5), (3, 6, 1), (5, 17, 9), (2, 700, 400)):
        x = rng.normal(size=(k, steps) if by_column else (steps, k))
        w = rng.normal(size=(k, m) if form == "row" else (m, k))
        y = np.full((steps, m), np.nan)
        run(np.ascontiguousarray(x), w, y)
        rows = x.T if by_column else x
        np.testing.assert_allclose(y, rows @ (w if form == "row" else w.T), rtol=1e-9, atol=1e-9)


@pytest.mark.parametrize(
    ("shape", "order", "result", "views"),
    [
        ([-1], [-1, 0], [1, -1], 1),
        ([-1], [0, -1, -1], [-1, 1, 1], 1),
        ([-1, 1], [0], [-1], 1),
        ([1, -1, 1, 3], [1, 3], [-1, 3], 1),
        ([1, 4], [1, -1], [4, 1], 2),
        ([], [-1, -1], [1, 1], 1),
        ([1, 1], [], [], 1),
        ([1, 1], [-1], [1], 2),
        ([-1, 5], [0, 1], [-1, 5], 0),
        ([-1, 5], [1, 0], None, 0),
    ],
)
def test_axes_of_size_one_need_no_copy(shape, order, result, views):
    def ranked(sizes):
        return f"tensor<{''.join(f'{size}x' if size >= 0 else '?x' for size in sizes)}f64>"

    attribute = f"array<i64{':' if order else ''} {', '.join(map(str, order))}>"
    wanted = ranked(result if result is not None else [shape[axis] for axis in order])
    text = f"""func.func @f(%x: {ranked(shape)}) -> {wanted} {{
  %y = "graphc.dimshuffle"(%x) {{order = {attribute}}} : ({ranked(shape)}) -> {wanted}
  return %y : {wanted}
}}"""
    with new_context(), ir.Location.unknown():
        module = ir.Module.parse(text)
        block = module.body.operations[0].regions[0].blocks[0]
        op, end = (operation.operation for operation in block.operations)
        with ir.InsertionPoint(end):
            new = unit_dimshuffle(SimpleNamespace(tensor_of=lambda value: value), op)
        assert (new is None) == (result is None)
        if new is not None:
            op.results[0].replace_all_uses_with(new)
            op.erase()
            module.operation.verify()
            text = str(module)
            assert text.count("tensor.expand_shape") + text.count("tensor.collapse_shape") == views


def test_a_recurrence_reads_its_matrix_wherever_that_is():
    """Before a loop of many steps a matrix that begins inside of a line is copied; sums are the same."""
    w, x = gt.tensor("w", dtype="float64", shape=(16, 16)), gt.tensor("x", dtype="float64", shape=(None, 16))
    h = graphc.scan(
        lambda row, h, w: gt.tanh(gt.dot(h, w) + row),
        sequences=x, outputs_info=gt.zeros(16), non_sequences=w, return_updates=False,
    )  # fmt: skip
    f = graphc.function([x, w], [h, graphc.grad((h**2).sum(), w)])
    rng = np.random.default_rng(0)
    matrix, memory = rng.normal(size=(16, 16)) / 4, np.empty(16 * 16 + 16)
    first = -memory.ctypes.data // 8 % 8
    for steps in (0, 5, 40):
        rows = rng.normal(size=(steps, 16))
        results = []
        for at in (first, first + 2, first + 5):
            place = memory[at : at + 256].reshape(16, 16)
            place[...] = matrix
            results.append(f(rows, place))
            np.testing.assert_array_equal(place, matrix)
        state, want = np.zeros(16), []
        for row in rows:
            state = np.tanh(state @ matrix + row)
            want.append(state)
        np.testing.assert_allclose(results[0][0], np.reshape(want, (steps, 16)), rtol=1e-12, atol=1e-12)
        for other in results[1:]:
            for one, two in zip(results[0], other, strict=True):
                np.testing.assert_array_equal(one, two)
