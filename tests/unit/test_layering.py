# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Which package may know which: the import contracts of pyproject.toml, and what importing really loads."""

from __future__ import annotations

import ast
import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
ROOTS = [str(ROOT / name) for name in ("compiler", "dialects", "runtime", "tools")]
BINDINGS = {"torch_mlir", "mlir"}


def run(code: str, paths: list[str] | None = None) -> str:
    """The output of a fresh interpreter that sees these source roots."""
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join(ROOTS if paths is None else paths)}
    done = subprocess.run([sys.executable, "-c", code], env=environment, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    return done.stdout


def test_import_contracts_hold():
    lint = [sys.executable, "-c", "from importlinter.cli import lint_imports_command; lint_imports_command()"]
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join(ROOTS), "NO_COLOR": "1"}
    done = subprocess.run(
        [*lint, "--no-cache"], cwd=ROOT, env=environment, capture_output=True, encoding="utf-8"
    )
    assert done.returncode == 0, done.stdout + done.stderr


@pytest.mark.parametrize("statement", ["import graphc", "import graphc.tensor as pt; pt.vector('x') + 1"])
def test_graphs_are_built_without_a_compiler(statement):
    code = f"import sys; {statement}; print(*sorted({{m.partition('.')[0] for m in sys.modules}}))"
    loaded = set(run(code).split())
    assert not loaded & {*BINDINGS, "llvmlite", "scipy", "graphc_dialects", "graphc_tools"}


def test_importing_graphc_alone_is_small():
    # Import time itself is a line of the benchmark; the number of modules does not depend on the machine.
    code = "import numpy, sys; n = len(sys.modules); import graphc; print(len(sys.modules) - n)"
    assert int(run(code)) < 40


def test_the_runtime_imports_where_nothing_else_is_installed():
    code = "import sys, graphc_runtime; print(*sorted({m.partition('.')[0] for m in sys.modules}))"
    loaded = set(run(code, [str(ROOT / "runtime")]).split())
    assert not loaded & {*BINDINGS, "graphc", "graphc_dialects", "graphc_tools", "llvmlite"}


def imports(path: Path) -> set[str]:
    """Every top-level package that a file imports, wherever in the file."""
    found = set()
    for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
        if isinstance(node, ast.Import):
            found |= {alias.name.partition(".")[0] for alias in node.names}
        elif isinstance(node, ast.ImportFrom) and node.level == 0:
            found.add((node.module or "").partition(".")[0])
    return found


def sources() -> list[Path]:
    return sorted(path for root in ROOTS for path in Path(root).rglob("*.py"))


def test_one_module_imports_the_bindings():
    allowed = ROOT / "dialects" / "graphc_dialects" / "_mlir.py"
    assert [p for p in sources() if p != allowed and imports(p) & BINDINGS] == []


def test_the_runtime_reaches_up_nowhere():
    forbidden = {*BINDINGS, "graphc", "graphc_dialects", "graphc_tools", "llvmlite"}
    assert [p for p in sources() if "graphc_runtime" in p.parts and imports(p) & forbidden] == []


def test_every_file_names_its_licence():
    line = "# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception"
    files = [*sources(), *(ROOT / "tests").rglob("*.py"), *(ROOT / "docs").rglob("*.py")]
    assert [p for p in files if line not in p.read_text(encoding="utf-8")[:200]] == []


def test_modules_stay_small():
    assert [p for p in sources() if len(p.read_text(encoding="utf-8").splitlines()) > 400] == []


def test_the_version_is_stated_once():
    stated = re.search(
        r'^version = "(.*)"$', (ROOT / "pyproject.toml").read_text(encoding="utf-8"), re.MULTILINE
    )
    assert stated and stated[1] == run("import graphc; print(graphc.__version__)").strip()


def test_raw_pointers_are_made_in_one_place():
    made = re.compile(r"create\(\s*\"(memref.extract_aligned_pointer_as_index|llvm.inttoptr)")
    assert {p.name for p in sources() if made.search(p.read_text(encoding="utf-8"))} == {"pointers.py"}
