# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""The lines of the benchmark compute what NumPy computes, and the page has them; nothing here is timed."""

from __future__ import annotations

import importlib
import shutil
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

BENCH = str(Path(__file__).resolve().parents[1] / "bench")


@pytest.fixture(scope="module")
def bench():
    """The benchmark's modules, which import each other by their plain names."""
    before = set(sys.modules)
    sys.path.insert(0, BENCH)
    try:
        import tables
        import worker

        yield worker, tables
    finally:
        sys.path.remove(BENCH)
        for name in set(sys.modules) - before:
            if str(getattr(sys.modules[name], "__file__", "")).startswith(BENCH):
                del sys.modules[name]


LOOPS = [
    "recurrence", "recurrence_last", "recurrence_gradient", "rnn16", "rnn16_gradient", "garch", "newton",
    "kalman", "kalman_gradient", "hmm", "eager_add", "lazy_chain", "normal",
    "batched_cholesky", "batched_solve",
    "batched_matmul",
]  # fmt: skip


@pytest.mark.parametrize("name", LOOPS)
def test_loops_agree_with_numpy(bench, name):
    answer = bench[0].Worker("graphc").answer({"case": name, "seconds": 0.0})
    assert set(answer) == {"best"}, answer


def test_a_wrong_derivative_is_an_error(bench):
    import derivatives
    import libraries
    import scan_lines

    case = next(case for case in scan_lines.CASES if case.name == "garch")
    statement, names = libraries.load("graphc").build(case)
    value, gradient = eval(statement, names)
    reference, arguments = libraries.Numpy().m, list(case.inputs())
    derivatives.check(case, reference, arguments, [value, gradient])
    with pytest.raises(AssertionError, match="along a direction"):
        derivatives.check(case, reference, arguments, [value, gradient * [1, 1, 1.0001]])
    with pytest.raises(AssertionError, match="Not equal"):
        derivatives.check(case, reference, arguments, [value + 0.1, gradient])


def test_memory_of_a_call_is_seen():
    # In a process of its own: measuring changes how it allocates from then on.
    code = "import memory, numpy; print(memory.extra(lambda: numpy.ones(2_500_000)[:10].copy()))"
    done = subprocess.run([sys.executable, "-c", code], cwd=BENCH, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    if done.stdout.strip() == "None":
        pytest.skip("this system does not tell the memory of a process")
    assert abs(int(done.stdout) - 20_000_000) < 1_000_000


def test_loops_have_a_table_with_memory(bench):
    tables = bench[1]
    machine = dict.fromkeys(("processor", "cores", "system", "python", "mlir", "llvm", "date"), "?")
    answers = {"graphc": {"best": 1e-5, "memory": 3}, "jax": {"best": 3e-5, "memory": 2_000_000}}
    result = {
        "machine": machine,
        "versions": {"graphc": "1", "jax": "2"},
        "steady": {"recurrence": answers, "exp": {"graphc": {"best": 2e-3}, "jax": {"best": 1e-3}}},
        "cold": {"scan_long": {"graphc": {"long": 0.2, "memory": 60_000_000}}},
    }
    result["lines"] = tables.lines(result)
    page = tables.page(result)
    row = next(line for line in page.splitlines() if "all kept" in line)
    assert row.split(" | ")[-7:] == ["<0.3", "-", "2.0", "-", "-", "jax", "met |"]
    assert "Missed: `exp(x) * y + 1`, 1e6 float64; `h = 0.9*h + x`, 100,000,000 steps" in page


def test_models_and_the_switch_have_tables(bench):
    tables = bench[1]
    machine = dict.fromkeys(("processor", "cores", "system", "python", "mlir", "llvm", "date"), "?")
    answers = {"graphc": {"best": 1e-3, "memory": 5_000_000}, "pytensor": {"best": 2e-3, "memory": 9_000_000}}
    joins = {"title": "join of 8", "on": 1e-6, "off": 1.5e-6, "allocating": 2e-6, "saved": 0.5, "goal": 0.45}
    result = {
        "machine": machine,
        "versions": {"graphc": "1", "pytensor": "2"},
        "steady": {"perceptron": answers},
        "switch": [joins, {**joins, "title": "join of 4", "saved": 0.1}, {"error": "no"}],
    }
    result["lines"] = tables.lines(result)
    page = tables.page(result)
    row = next(line for line in page.splitlines() if line.startswith("| perceptron"))
    assert row.split(" | ")[-2:] == ["pytensor; pytensor's MB / 2", "**missed** |"]
    answers["graphc"]["memory"] = 4_000_000
    assert next(iter(tables.lines(result)))["met"]
    assert "| join of 8 | 1 | 1.5 | 2 | 50% | 45% | met |" in page
    assert "saved of the join of 4." in page and "- switch: no" in page


def test_the_perceptron_agrees_with_numpy(bench):
    worker = bench[0].Worker("graphc")
    answer = worker.answer({"case": "perceptron", "seconds": 0.0})
    assert set(answer) == {"best"}, answer
    # Three products of 512 x 256 x 256 a layer, of which the first layer needs two.
    counted = worker.answer({"case": "perceptron", "took": 1.0})["roofline"]
    products = (3 * 8 - 1) * 2 * 512 * 256 * 256
    assert products < counted["flops"] < 1.01 * products and counted["functions"] == 7 * 512 * 256
    assert counted["bytes"] > 10_000_000 and counted["least"] > 0


def test_the_perceptron_with_a_budget_keeps_to_it(bench):
    libraries = importlib.import_module("libraries")
    case = next(case for case in importlib.import_module("all_cases").CASES if case.budget)
    f = libraries.Graphc().build(case)[1]["f"]
    assert f.memory_plan().peak <= 3_650_000 < 9_000_000 and f.memory_plan().recomputed


def test_the_limit_has_a_table(bench):
    tables = bench[1]
    machine = dict.fromkeys(("processor", "cores", "system", "python", "mlir", "llvm", "date"), "?")
    counts = {"flops": None, "functions": 7, "bytes": 24_000_000, "least": 5e-4, "machine": "fast"}
    result = {"machine": machine, "versions": {"graphc": "1"}}
    result["steady"] = {"exp": {"graphc": {"best": 1e-3, "roofline": counts}}}
    result["lines"] = tables.lines(result)
    page = tables.page(result)
    assert "| `exp(x) * y + 1`, 1e6 float64 | ? | 7 | 24,000,000 | 500 | 1000 | 50% |" in page
    case = next(case for case in bench[0].CASES if case.name == "exp")
    assert "; ? flops, 24,000,000 bytes, 50% of the limit" in tables.progress(case, result["steady"]["exp"])


def test_what_is_written_in_c_agrees_with_numpy(bench):
    if shutil.which("cc") is None:
        pytest.skip("there is no C compiler")
    worker = bench[0].Worker("c")
    for name in worker.library.functions:
        answer = worker.answer({"case": name, "seconds": 0.0})
        assert set(answer) == {"best"}, (name, answer)
    # Denormal numbers stay what they are, for all that runs in this thread later.
    small = np.array([1e-320])
    assert (small + 0).tobytes() == small.tobytes()


def test_parts_have_every_line_once_and_add_up(bench, tmp_path):
    import argparse
    import json

    import run
    from all_cases import CASES

    assert [*run.chosen(["arrays"], []), *run.chosen(["loops"], [])] == sorted(
        CASES, key=lambda case: case.section != "other"
    )
    assert [case.name for case in run.chosen(["loops"], ["exp"])] == ["exp"]
    machine = dict.fromkeys(("processor", "cores", "system", "python", "mlir", "llvm", "date"), "?")
    arguments = argparse.Namespace(
        quick=False, only=[], part=["arrays"], json=tmp_path / "bench.json", page=tmp_path / "page.md"
    )
    row = {"graphc": {"best": 1e-6}}
    for part, key, found in (
        ("arrays", "steady", {"exp": row}),
        ("loops", "steady", {"hmm": row}),
        ("fresh", "cold", {"first_call": {"graphc": {"first": 0.04}}}),
    ):
        assert not arguments.page.exists()
        arguments.part = [part]
        measured = {"machine": machine, "versions": {"graphc": "1"}, "steady": {}} | {key: found}
        assert run._write(measured, arguments, [part]) == 0
    page = arguments.page.read_text()
    assert (
        "`exp(x) * y + 1`" in page and "hidden Markov" in page and "compile and first call of `x + 1`" in page
    )
    # What another version measured does not stay.
    run._write({"machine": machine, "versions": {"graphc": "2"}, "steady": {}}, arguments, ["loops"])
    assert json.loads(arguments.json.read_text())["parts"] == ["loops"]
