# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""The interpreter as a mode: loops, branches, updates, draws and errors are those of compiled code."""

from __future__ import annotations

import pickle

import numpy as np
import pytest

import graphc
import graphc.tensor as pt
from graphc.backends import CompileOptions, Resources
from graphc.backends.interpret.interpreter import UPSTREAM, is_known, run_function
from graphc.backends.interpret.target import InterpretTarget
from graphc_dialects._mlir import ir
from graphc_dialects.dialect import new_context, operation_classes

A = np.arange(12.0).reshape(3, 4) / 7

# Operations of the dialect that only stand after bufferization.
BUFFER_STAGE = {"graphc.address"}


def test_every_operation_of_the_dialect_has_a_meaning():
    unknown = {name for name in operation_classes() if not is_known(name)}
    assert unknown == BUFFER_STAGE


def test_other_operations_are_refused_with_their_place():
    text = "func.func @main(%x: f64) -> f64 {\n  %0 = math.sin %x : f64\n  return %0 : f64\n}"
    with new_context(), ir.Location.unknown(), pytest.raises(NotImplementedError, match=r"2:.*math\.sin"):
        run_function(ir.Module.parse(text), [1.0])


def run_integers(op, types, *values):
    """What an operation on integers computes."""
    names = [f"%x{i}" for i in range(len(values))]
    arguments = ", ".join(f"{name}: {types[0]}" for name in names)
    line = f'  %r = "{op}"({", ".join(names)}) : ({", ".join([types[0]] * len(values))}) -> {types[1]}'
    text = f"func.func @main({arguments}) -> {types[1]} {{\n{line}\n  return %r : {types[1]}\n}}"
    with new_context(), ir.Location.unknown():
        return run_function(ir.Module.parse(text), values)[0]


@pytest.mark.parametrize(
    ("op", "types", "values", "result"),
    [
        ("arith.divsi", ("i64", "i64"), (-7, 2), -3),
        ("arith.remsi", ("i64", "i64"), (-7, 2), -1),
        ("arith.floordivsi", ("i64", "i64"), (-7, 2), -4),
        ("arith.ceildivsi", ("i64", "i64"), (7, 2), 4),
        ("arith.divui", ("i8", "i8"), (-1, 2), 127),
        ("arith.shrui", ("i8", "i8"), (-1, 4), 15),
        ("arith.shrsi", ("i8", "i8"), (-128, 4), -8),
        ("arith.shli", ("i8", "i8"), (1, 7), -128),
        ("arith.addi", ("i8", "i8"), (127, 1), -128),
        ("arith.muli", ("i64", "i64"), (1 << 62, 4), 0),
        ("arith.maxui", ("i8", "i8"), (-1, 1), -1),
        ("arith.extui", ("i8", "i64"), (-1,), 255),
        ("arith.extsi", ("i1", "i64"), (True,), -1),
        ("arith.extui", ("i1", "i64"), (True,), 1),
        ("arith.trunci", ("i64", "i8"), (384,), -128),
        ("arith.xori", ("i1", "i1"), (True, True), False),
    ],
)
def test_integers_have_a_width(op, types, values, result):
    assert op in UPSTREAM
    found = run_integers(op, types, *values)
    assert found == result and type(found) is type(result)


def both(inputs, outputs, *values, **options):
    """Results of the interpreter, which must be those of compiled code."""
    modes = ("interpret", "fast_run")
    found = [graphc.function(inputs, outputs, mode=mode, **options)(*values) for mode in modes]
    for a, b in zip(*found, strict=True):
        assert a.dtype == b.dtype and a.shape == b.shape
        np.testing.assert_allclose(a, b, rtol=1e-13)
    return found[0]


def test_nothing_is_compiled(python):
    """Not even loaded."""
    code = """
import sys
import numpy as np
import graphc, graphc.tensor as pt
graphc.config.cache_dir = ""
x = pt.dmatrix("x")
f = graphc.function([x], [pt.softmax(x, axis=1), pt.linalg.cholesky(x @ x.T)], mode="interpret")
print(np.round(f(np.eye(2))[1].sum(), 6), "llvmlite" in sys.modules)
print([name for name, _ in f.report.passes if name.startswith("graphc-")][-1], *f.ir_stages(), sep=", ")
print(f.report.fast_call, f.machine_code())
"""
    value, stages, calls = python(code).splitlines()
    assert value == "2.0 False" and calls == "False None"
    assert stages == "graphc-wide-sums, graph, graph (optimised)"


def test_loops_branches_and_kernels():
    x, n = pt.dvector("x"), pt.lscalar("n")
    rows, last = graphc.scan(
        lambda row, before: (pt.tanh(before * row + 0.5), before + row),
        sequences=x,
        outputs_info=[x[0], None],
        return_updates=False,
    )
    powers = graphc.scan(lambda a: a * 1.5, outputs_info=x[1], n_steps=n, return_updates=False)
    chosen = graphc.ifelse(x.sum() > 1, pt.sort(x)[::-1], x * 0)
    both([x, n], [rows, last[-1], powers, chosen, pt.fft.rfft(x).real], A.ravel(), 5)
    both([x, n], [rows, last[-1], powers, chosen, pt.fft.rfft(x).real], -A.ravel(), 5)


def test_updates_random_numbers_and_layouts():
    counts = []
    for mode in ("interpret", "fast_run"):
        rng = graphc.shared(np.random.default_rng(3), name="rng")
        count = graphc.shared(np.zeros(4), name="count")
        x = pt.dmatrix("x")
        next_rng, draws = pt.random.normal(0, 1, size=(3, 4), rng=rng, return_next_rng=True)
        f = graphc.function([x], x + draws, updates={rng: next_rng, count: count + x.sum(axis=0)}, mode=mode)
        counts.append([f(A), f(A[::-1]), f(np.asfortranarray(A)), f(A.tolist()), count.get_value()])
    for a, b in zip(*counts, strict=True):
        np.testing.assert_allclose(a, b, rtol=1e-14)


def test_results_go_where_they_are_wanted():
    x = pt.dvector("x")
    f = graphc.function([x], [x * 2.0, x], mode="interpret", donate=[x])
    out = [np.empty(3), None]
    results = f(np.arange(3.0), out=out)
    assert results[0] is out[0] and out[0].tolist() == [0, 2, 4]
    given = np.arange(3.0)
    _, same = f(given)
    assert given.tolist() == [0, 1, 2] and not np.shares_memory(same, given)
    assert any("the interpreter overwrites nothing" in line for line in f.report.donations)


def test_errors_name_the_users_line():
    x, i = pt.dvector("x"), pt.lvector("i")
    for mode in ("interpret", "fast_run"):
        f = graphc.function([x, i], x[i] + 1.0, mode=mode)
        with pytest.raises(IndexError, match=r"test_interpret\.py") as caught:
            f(np.ones(2), np.array([1, 7]))
        assert "7" in str(caught.value)


def test_ops_in_python_stay_in_python():
    class Doubled(graphc.Op):
        def make_node(self, x):
            return graphc.Apply(self, [x], [x.type()])

        def perform(self, node, inputs, output_storage):
            output_storage[0][0] = 2 * inputs[0]

    x = pt.dvector("x")
    f = graphc.function([x], pt.exp(Doubled()(x + 1.0)), mode="interpret")
    np.testing.assert_allclose(f([0.0]), np.exp([2.0]))
    assert f.report.segments == 2 and len(f.report.fallbacks) == 1


def test_pickles_and_the_disk_cache(cache_dir):
    x = pt.dvector("x")
    f = graphc.function([x], pt.exp(x), mode="interpret")
    again = graphc.function([x], pt.exp(x), mode="interpret")
    assert (f.report.cache, again.report.cache) == (["miss"], ["hit"])
    for g in (again, pickle.loads(pickle.dumps(f))):
        np.testing.assert_array_equal(g(A[0]), f(A[0]))


def test_the_pipeline_ends_where_loops_begin():
    target = InterpretTarget(Resources())
    passes = target.pipeline("graphc.scan", CompileOptions("interpret"))
    assert "graphc-scan-save-mem" in passes and passes[-1] == "graphc-wide-sums"
