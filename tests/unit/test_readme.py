# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""What README.md and the pages of docs/ tell a reader to type works, in an empty folder, page by page.

Python blocks run in order, and those with `>>>` have to print what they show; a block with a title is a file
of that name; `sh` blocks are commands of a shell that has the files. `TASKS` are what a new user does on the
first day.
"""

from __future__ import annotations

import doctest
import os
import re
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
ALL = [*sorted(ROOT.glob("*.md")), *sorted((ROOT / "docs").rglob("*.md"))]
# Pages whose code needs another library: `make bridge` runs them in an environment that has it.
NEEDS = {"pymc.md": "pymc"}
# Commands of a shell that another file runs, or that need a network.
ELSEWHERE = {
    "README.md": "tests/unit/tools/test_wheels.py",
    "install.md": "tests/unit/tools/test_wheels.py",
    "edit-mlir.md": "`pip install` from an index",
}
BLOCK = re.compile(r"^```python\n(.*?)^```$", re.MULTILINE | re.DOTALL)
ANY_BLOCK = re.compile(r'^```(\w+)(?: title="([^"]+)")?\n(.*?)^```$', re.MULTILINE | re.DOTALL)
PAGES = [page for page in ALL if BLOCK.search(page.read_text(encoding="utf-8"))]
# What a new user does, the page that says how, and what the page's blocks have to contain.
TASKS = {
    "install with pip": ("install.md", "pip install path/to/graphc"),
    "fit a model, with standard errors": ("fit-a-model.md", "errors = np.sqrt(np.diag(covariance))"),
    "solve a differential equation in a loop": ("scan.md", "graphc.scan(runge_kutta"),
    "write an op in Python": ("custom-ops.md", "@graphc.as_op"),
    "write a native op": ("custom-ops.md", "def emit(self"),
    "ship a model to a bare environment": ("ship-a-model.md", "graphc-run model.gcx --function predict"),
    "call a model from C": ("ship-a-model.md", "main.c model.o"),
    "find a NaN": ("wrong-results.md", 'nan_guard="raise"'),
    "profile": ("profile.md", "print(f.profile)"),
    "look at a function in the explorer": ("read-the-ir.md", "graphc-view model.py:fn"),
    "run a pass by hand": ("read-the-ir.md", "graphc-opt --graphc-stabilize"),
    "run on Dask": ("run-on-a-cluster.md", "Client(cluster)"),
    "train a small network": ("neural-networks.md", "graphc.optimizers.adam(error, net"),
}


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.name)
def test_code_blocks_run(page, tmp_path, monkeypatch):
    if page.name in NEEDS:
        pytest.importorskip(NEEDS[page.name], reason="`make bridge` runs this page")
    monkeypatch.chdir(tmp_path)
    text = page.read_text(encoding="utf-8")
    names: dict[str, object] = {"__name__": "page"}
    parser = doctest.DocTestParser()
    for block in ANY_BLOCK.finditer(text):
        language, title, code = block.groups()
        line = text.count("\n", 0, block.start(3))
        if title:
            (tmp_path / title).write_text(code, encoding="utf-8")
        elif language == "sh" and page.name not in ELSEWHERE:
            run_commands(code)
        elif language != "python":
            continue
        elif ">>>" in code:
            example = parser.get_doctest(code, names, page.name, str(page), line)
            report: list[str] = []
            runner = doctest.DocTestRunner(optionflags=doctest.NORMALIZE_WHITESPACE | doctest.ELLIPSIS)
            runner.run(example, out=report.append, clear_globs=False)
            assert not runner.failures, "".join(report)
            names.update(example.globs)
        else:
            exec(compile("\n" * line + code, str(page), "exec"), names)


def run_commands(text: str) -> None:
    """Runs lines of a shell, which stops at the first that fails; commands are those of this environment."""
    if re.search(r"^cc ", text, re.MULTILINE) and shutil.which("cc") is None:
        pytest.skip("there is no C compiler (cc)")
    path = os.pathsep.join([str(Path(sys.executable).parent), os.environ.get("PATH", "")])
    roots = os.pathsep.join(str(ROOT / each) for each in ("compiler", "dialects", "runtime", "tools"))
    done = subprocess.run(
        ["bash", "-eu", "-o", "pipefail", "-c", text],
        env={**os.environ, "PATH": path, "PYTHONPATH": roots},
        capture_output=True,
        text=True,
        timeout=200,
    )
    assert done.returncode == 0, done.stdout + done.stderr
    # A comment behind `./program` is what it prints.
    for wanted in re.findall(r"^\./\w+ +# (.*)$", text, re.MULTILINE):
        assert wanted in done.stdout.splitlines()


@pytest.mark.parametrize("task", TASKS)
def test_the_first_tasks_are_on_a_page_whose_code_runs(task):
    name, code = TASKS[task]
    (page,) = (each for each in PAGES if each.name == name)
    assert any(code in block[3] for block in ANY_BLOCK.finditer(page.read_text(encoding="utf-8")))


def test_numbers_of_the_first_page_are_those_of_the_benchmarks():
    """Whoever measures anew is told which numbers to write here; the picture is told by `make docs`."""

    def cells(page: str, line: str) -> list[str]:
        text = (ROOT / "docs" / page).read_text(encoding="utf-8")
        return next(
            row.strip("| ").split(" | ") for row in text.splitlines() if row.startswith(f"| {line} |")
        )

    call = cells("benchmarks.md", "call overhead: `x + 1`, 3 elements")
    garch = cells("benchmarks.md", "GARCH(1,1), T = 500: log-likelihood and gradient")
    compiled = cells("benchmarks.md", "the same, 300 operations with gradient")
    models = cells("benchmarks_pymc.md", "times as long a call")
    file, other = (
        cells("guide/ship-a-model.md", f"hierarchical: {name}") for name in ("graphc", "AOTInductor")
    )
    page = (ROOT / "README.md").read_text(encoding="utf-8")
    pytensor, jax = (round(float(call[k]), -1) for k in (3, 4))
    seconds = [float(each) / 1e3 for each in compiled[2:5]]
    times = [float(each.split()[0]) for each in models[1:3]]
    for number in (
        f"{float(call[2]):.0f} ns | [PyTensor {pytensor:,.0f} ns, JAX {jax:,.0f} ns]",
        f"{float(garch[2]):.1f} µs | [PyTensor {float(garch[3]):.0f} µs, JAX {float(garch[4]):.0f} µs]",
        f"{seconds[0]:.2f} s | [PyTensor with numba {seconds[1]:.0f} s, JAX {seconds[2]:.1f} s]",
        f"numba takes {times[0]:.1f} times as long, JAX {times[1]:.0f} times",
        f"{file[1]}, loads in {file[2]}",
        f"AOTInductor {other[1]}, {other[2]}",
    ):
        assert number in page, number


def test_the_first_example_prints_what_is_shown(capsys):
    page = (ROOT / "README.md").read_text(encoding="utf-8")
    example = BLOCK.search(page)
    shown = re.search(r"^```text\n(.*?)^```$", page, re.MULTILINE | re.DOTALL)
    exec(example[1], {"__name__": "page"})
    assert capsys.readouterr().out == shown[1] and example[1].count("\n") <= 14


def test_the_installation_is_that_of_the_guide():
    """`tests/unit/tools/test_wheels.py` runs these commands."""
    blocks = [
        re.search(r"^```sh\n(.*?)^```$", (ROOT / page).read_text(encoding="utf-8"), re.MULTILINE | re.DOTALL)
        for page in ("README.md", "docs/guide/install.md")
    ]
    short, full = (
        [line.split("#")[0].rstrip() for line in block[1].splitlines()] for block in blocks if block
    )
    assert short and set(short) <= set(full)


def test_the_guide_shows_code():
    generated = {"scan-passes.md"}
    guide = {page.name for page in (ROOT / "docs" / "guide").glob("*.md")}
    assert guide - generated <= {page.name for page in PAGES}


@pytest.mark.parametrize("page", ALL, ids=lambda page: page.name)
def test_links_lead_somewhere(page):
    text = re.sub(
        r"^```.*?^```$|`[^`\n]*`", "", page.read_text(encoding="utf-8"), flags=re.MULTILINE | re.DOTALL
    )
    targets = re.findall(r"\]\((?!https?:|#)([^)#\s]+)", text)
    assert [t for t in targets if not (page.parent / t).exists()] == []


def test_the_settings_page_lists_every_setting():
    from graphc import config

    page = (ROOT / "docs" / "settings.md").read_text(encoding="utf-8")
    for name, variable, _, doc in config.table():
        assert f"| `{name}` | `{variable}` |" in page and doc in page, name
