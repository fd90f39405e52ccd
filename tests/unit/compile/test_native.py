# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Native executables: reports, stages of the IR, every operation in one object, threads."""

from __future__ import annotations

import threading

import numpy as np
import pytest

import graphc
import graphc.tensor as pt
from graphc.backends import CompileOptions
from graphc.errors import CompileError
from graphc.function.call_form import plain_form
from graphc.function.compiled import compile_graph
from graphc.function.report import CompileReport
from graphc.graph.function_graph import FunctionGraph

A = np.arange(12.0).reshape(3, 4) / 7


def native(inputs, outputs, mode="fast_run"):
    graph, options = FunctionGraph(inputs, outputs), CompileOptions(mode)
    report = CompileReport(name="f", mode=mode, options=options)
    return compile_graph(graph, plain_form(graph, "f"), options, report), report


STAGES = ["graph", "graph (optimised)", "tensor", "buffer", "llvm"]


@pytest.mark.parametrize("mode", ["fast_run", "fast_compile"])
def test_ir_stages(mode):
    x = pt.dmatrix("x")
    executable, _ = native([x], [pt.softmax(x, axis=1), (x @ x.T).sum()], mode)
    stages = executable.ir_stages()
    names = [name for name, _ in stages]
    assert names[:4] == STAGES[:4] and len(names) > 5 and len(stages) == len({*map(id, stages)})
    text = dict(reversed(stages))
    assert "graphc.softmax" in text["graph"] and "graphc.softmax" not in text["graph (optimised)"]
    assert "linalg.generic" in text["tensor"] and "graphc." not in text["tensor"].replace(
        "graphc.check", ""
    ).replace("graphc.matmul", "")
    assert "scf.for" in text["buffer"] and "tensor<" not in text["buffer"]
    assert "llvm.func @main" in dict(stages[:5])["llvm"]
    assert "define" in text["llvm-opt"] and "graphc_run" in text["asm"]
    np.testing.assert_allclose(executable.run([A])[1], (A @ A.T).sum())


def test_report():
    graphc_cache, graphc.config.cache_dir = graphc.config.cache_dir, ""
    try:
        x = pt.dvector("x")
        f = graphc.function([x], pt.exp(x) + 1.0, name="reported")
    finally:
        graphc.config.cache_dir = graphc_cache
    report = f.report
    assert report.name == "reported" and report.mode == "fast_run" and report.cache == ["off"]
    assert report.native_nodes == report.nodes == len(f.fgraph.nodes) and report.segments == 1
    wanted = {"graph", "load compiler", "emit", "parse", "passes", "translate", "code generation", "link"}
    assert wanted <= set(report.phases) and all(seconds >= 0 for seconds in report.phases.values())
    assert report.total == pytest.approx(sum(report.phases.values()))
    names = [name for name, _ in report.passes]
    assert names.index("graphc-fusion") < names.index("graphc-kernel-abi")
    assert sum(seconds for _, seconds in report.passes) <= report.phases["passes"]
    assert "reported: mode fast_run" in str(report) and "code generation" in str(report)


def test_every_call_runs_the_same_code():
    x = pt.dvector("x")
    executable, report = native([x], [x * 3.0])
    assert len(report.cache) == report.segments == 1
    function, single = executable.call()
    assert single
    np.testing.assert_allclose(function(A[0]), A[0] * 3.0)
    for value in (A[0], A[:, 1], A[0][::-1], A[0].astype("float32"), [1, 2]):
        np.testing.assert_allclose(executable.run([value])[0], np.asarray(value) * 3.0)


def test_errors_of_the_compiler_are_compile_errors():
    from graphc.backends.cpu.lower import lower

    with pytest.raises(CompileError, match="please report"):
        lower("func.func @main() { return %undefined : f64 }", CompileOptions("fast_run"))
    broken = "func.func @main(%x: tensor<2xf64>) -> tensor<3xf64> {\n"
    broken += '  %0 = "graphc.exp"(%x) : (tensor<2xf64>) -> tensor<3xf64>\n  return %0 : tensor<3xf64>\n}'
    with pytest.raises(CompileError, match=r"graphc\.exp"):
        lower(broken, CompileOptions("fast_run"))


def functions(count):
    """Graphs that differ from each other, with what they compute for A."""
    x = pt.dmatrix("x")
    for i in range(count):
        axis = i % 2
        y = pt.tanh(x * (i + 1.0)).sum(axis=axis) + pt.log1p(x).max(axis=axis) - float(i)
        yield x, y, np.tanh(A * (i + 1.0)).sum(axis) + np.log1p(A).max(axis) - i


def test_threads_compile_at_once(monkeypatch):
    monkeypatch.setattr(graphc.config, "cache_dir", "")
    work = list(functions(12))
    errors = []
    start = threading.Barrier(4)

    def compile_some(number):
        try:
            start.wait()
            for x, y, want in work[number::4]:
                for mode in ("fast_run", "fast_compile"):
                    f = graphc.function([x], y, mode=mode)
                    np.testing.assert_allclose(f(A), want, rtol=1e-12)
        except BaseException as error:
            errors.append(error)

    threads = [threading.Thread(target=compile_some, args=(number,)) for number in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(120)
    assert not errors and not any(thread.is_alive() for thread in threads)


def test_threads_share_the_first_compilation(python):
    """Four threads load the compiler at once, in a fresh process."""
    code = """
import threading
import numpy as np
import graphc, graphc.tensor as pt
graphc.config.cache_dir = ""
results = {}
def work(i):
    x = pt.dvector("x")
    f = graphc.function([x], pt.exp(x * (i + 1.0)))
    results[i] = np.allclose(f(np.ones(3)), np.exp(i + 1.0))
threads = [threading.Thread(target=work, args=(i,)) for i in range(4)]
[t.start() for t in threads]
[t.join(100) for t in threads]
print(len(results), all(results.values()))
"""
    assert python(code) == "4 True"
