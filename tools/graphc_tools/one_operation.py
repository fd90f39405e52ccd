# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Runs the tests of one operation, while it is being written: a few seconds, not the whole suite.

    graphc-test floor_divide

They are its cases of the op table, in every mode; its gradient against differences; its row; and lit tests of
passes that name it, or, where these are many, the single files that do. Both run side by side.
"""

from __future__ import annotations

import argparse
import difflib
import importlib
import subprocess
import sys
from functools import cache
from pathlib import Path
from typing import Any

from graphc.emit.module import emit_module
from graphc.graph.function_graph import FunctionGraph
from graphc_dialects.dialect import operation_classes

ROOT = Path(__file__).resolve().parents[2]
# What has cases by operation; `--operation` of tests/numeric/conftest.py selects them.
TESTS = (
    "tests/unit/ops/test_completeness.py",
    *(f"tests/numeric/test_{name}.py" for name in ("op_table", "op_gradients", "elementwise")),
)
# Folders of lit tests above which only files that name an operation run.
_MANY = 12


def named(text: str) -> set[str]:
    """Operations of the dialect that a text names."""
    words = "".join(c if c.isalnum() or c in "_." else " " for c in text).split()
    return {word.removeprefix("graphc.") for word in words if word.startswith("graphc.")}


@cache
def lit_files() -> dict[Path, set[str]]:
    """The lit tests, and the operations that each names."""
    files = sorted((ROOT / "tests" / "lit").rglob("*.mlir"))
    return {path: named(path.read_text(encoding="utf-8")) for path in files}


def lit_tests(operation: str) -> list[Path]:
    """Folders, or files, of lit tests that name an operation of the dialect."""
    found = [path for path, names in lit_files().items() if operation in names]
    folders = sorted({path.parent for path in found if path.parent.parent.name == "passes"})
    alone = [path for path in found if path.parent not in folders]
    return found if len(folders) > _MANY else [*folders, *alone]


def cases() -> list[Any]:
    """The cases of the op table."""
    sys.path.insert(0, str(ROOT / "tests" / "numeric"))
    for path in sorted((ROOT / "tests" / "numeric").glob("op_cases_*.py")):
        importlib.import_module(path.stem)
    found: list[Any] = importlib.import_module("op_table").CASES
    return found


def written(name: str) -> set[str]:
    """Operations of the dialect that a name stands for: its own, or those that its case is written with, less
    those that are everywhere.
    """
    if f"graphc.{name}" in operation_classes():
        return {name}
    case = next((case for case in cases() if name in (case.covers, case.covers.rpartition(".")[2])), None)
    if case is None or case.python:
        return set()
    inputs = [argument.variable(case.dtypes[-1]) for argument in case.arguments]
    text = emit_module(FunctionGraph(inputs, case.symbolic(inputs))).text
    return {found for found in named(text) if len(lit_tests(found)) <= _MANY}


def run(name: str, more: list[str]) -> int:
    """Runs the tests; returns the exit code.

    Raises:
        ValueError: nothing has this name.
    """
    options = ["-m", "pytest", "-q", "-p", "no:cacheprovider", f"--operation={name}", *TESTS, *more]
    pytest = subprocess.Popen([sys.executable, *options], cwd=ROOT)
    lit = sorted({path for operation in written(name) for path in lit_tests(operation)})
    code, output = 0, ""
    if lit:
        main = ["-c", "import sys; from lit.main import main; sys.exit(main())", "-q", "--workers", "1"]
        command = [sys.executable, *main, *map(str, lit)]
        done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True)
        code, output = done.returncode, done.stdout + done.stderr
    tested = pytest.wait()
    print(*[output] * bool(code), f"lit: {len(lit)} folders and files, exit code {code}", sep="\n")
    # Exit code 5 of pytest: there is no case, as of an operation that only passes make.
    if tested == 5 and not lit:
        known = {part for case in cases() for part in (case.covers, case.covers.rpartition(".")[2])}
        close = difflib.get_close_matches(name, sorted(known), 3)
        hint = f"is it {' or '.join(close)}?" if close else "docs/operations.md lists them all"
        raise ValueError(f"no test is of an operation {name!r}; {hint}")
    return code or (0 if tested == 5 else tested)


def main(argv: list[str] | None = None) -> int:
    """Runs the tool; returns the exit code."""
    parser = argparse.ArgumentParser(prog="graphc-test", description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("name", help="an operation: floor_divide, cumsum, linalg.cholesky")
    parser.add_argument("pytest", nargs="*", help="arguments for pytest, after --")
    given = parser.parse_args(argv)
    if not (ROOT / "tests" / "numeric").is_dir():
        print("graphc-test: error: it needs a checkout of the repository, with its tests", file=sys.stderr)
        return 2
    try:
        return run(given.name, given.pytest)
    except ValueError as error:
        print(f"graphc-test: error: {error}", file=sys.stderr)
        return 2


if __name__ == "__main__":
    sys.exit(main())
