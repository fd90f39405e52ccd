# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Which package may know which: the import contracts of pyproject.toml, and what importing really loads."""

from __future__ import annotations

import ast
import os
import re
import subprocess
import sys
from functools import cache
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


FIRST_RESULT = """
import numpy, sys
known = set(sys.modules)
import graphc, graphc.tensor as pt
x = pt.vector("x")
f = graphc.function([x], x + 1)
assert f([1.0]).tolist() == [2.0]
print(*f.report.cache, *sorted(set(sys.modules) - known))
"""


def test_a_result_from_the_disk_cache_needs_few_modules(tmp_path, monkeypatch):
    # Each takes 0.15 to 0.5 ms of a process's start; their number does not depend on the machine.
    monkeypatch.setenv("GRAPHC_CACHE_DIR", str(tmp_path))
    (state, *_), (again, *loaded) = run(FIRST_RESULT).split(), run(FIRST_RESULT).split()
    assert (state, again) == ("miss", "hit")
    assert not {m.partition(".")[0] for m in loaded} & {*BINDINGS, "llvmlite", "scipy", "graphc_dialects"}
    assert len(loaded) <= 150, loaded
    rare = ("graphc.gradient", "graphc.scan", "graphc.passes", "graphc.tensor.reductions", "html")
    assert not [m for m in loaded if m.startswith(rare)]


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


def test_a_folder_of_the_same_name_is_told_apart(tmp_path):
    """Where an editable installation is found after it, what is imported below it says which folder it is."""
    (tmp_path / "graphc").mkdir()
    script = f"""
import importlib.machinery, sys
sys.path[:] = [{str(tmp_path)!r}, *(entry for entry in sys.path if not entry.endswith("/compiler"))]
sys.meta_path = [finder for finder in sys.meta_path if "Editable" not in str(finder)]
class Editable:
    @staticmethod
    def find_spec(name, path=None, target=None):
        if name.startswith("graphc."):
            return importlib.machinery.PathFinder.find_spec(name, [{str(ROOT / "compiler/graphc")!r}])
sys.meta_path.append(Editable)
import graphc
import graphc.tensor
"""
    ran = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True)
    assert f"has found the folder {tmp_path}/graphc, which hides the package" in ran.stderr
    assert "Rename the folder" in ran.stderr


def test_one_module_imports_the_bindings():
    allowed = ROOT / "dialects" / "graphc_dialects" / "_mlir.py"
    assert [p for p in sources() if p != allowed and imports(p) & BINDINGS] == []


class Imports(ast.NodeVisitor):
    """Imports of our own modules by one file: (module, line, whether it is in a function)."""

    def __init__(self, modules: dict[str, Path]) -> None:
        self.modules = modules
        self.found: list[tuple[str, int, bool]] = []
        self.depth = 0

    def _add(self, name: str, line: int) -> None:
        while name and name not in self.modules:
            name = name.rpartition(".")[0]
        if name:
            self.found.append((name, line, self.depth > 0))

    def visit_Import(self, node: ast.Import) -> None:
        for alias in node.names:
            self._add(alias.name, node.lineno)

    def visit_ImportFrom(self, node: ast.ImportFrom) -> None:
        for alias in node.names:
            self._add(f"{node.module}.{alias.name}", node.lineno)

    def visit_If(self, node: ast.If) -> None:
        for child in node.orelse if ast.unparse(node.test) == "TYPE_CHECKING" else ast.iter_child_nodes(node):
            self.visit(child)

    def visit_FunctionDef(self, node: ast.FunctionDef) -> None:
        self.depth += 1
        self.generic_visit(node)
        self.depth -= 1


@cache
def own_imports() -> dict[str, list[tuple[str, int, bool]]]:
    modules = {}
    for root in ROOTS:
        for path in Path(root).rglob("*.py"):
            parts = path.relative_to(root).with_suffix("").parts
            modules[".".join(parts[:-1] if parts[-1] == "__init__" else parts)] = path
    result = {}
    for name, path in modules.items():
        visitor = Imports(modules)
        visitor.visit(ast.parse(path.read_text(encoding="utf-8")))
        result[name] = [each for each in visitor.found if each[0] != name]
    return result


def test_no_file_needs_a_file_that_needs_it():
    left = {name: {imported for imported, _, _ in found} for name, found in own_imports().items()}
    while free := [name for name, needs in left.items() if not needs & left.keys()]:
        for name in free:
            del left[name]
    # What cannot be taken away lies on a circle or leads to one.
    assert not left, left


# Statements in functions that import what few graphs need, or the compiler, which graphs are built without.
LATE = {
    "graphc.backends.cpu.target": 1,
    "graphc.backends.cuda.target": 2,
    "graphc.function.compiled": 1,
    "graphc.function.io": 1,
    "graphc.function.modes": 1,
    "graphc.function.shared": 1,
    "graphc.function.types": 1,
    "graphc.ir.references": 1,
    "graphc.ops.external": 1,
    "graphc.ops.fourier": 1,
    "graphc.ops.kernel": 1,
    "graphc.ops.canonical": 1,
    "graphc.tensor.accumulating": 1,
    "graphc.tensor.random.library": 1,
    "graphc_tools.opt": 4,
}


def test_late_imports_are_few():
    late: dict[str, set[int]] = {}
    for name, found in own_imports().items():
        for _, line, in_function in found:
            if in_function:
                late.setdefault(name, set()).add(line)
    assert {name: len(lines) for name, lines in sorted(late.items())} == LATE
    assert sum(LATE.values()) <= 20


# Names that are looked up through `graphc.public`, not imported.
LOOKED_UP = 32


def test_fewer_names_are_looked_up():
    found = 0
    for path in sources():
        nodes = list(ast.walk(ast.parse(path.read_text(encoding="utf-8"))))
        packages = {
            alias.asname or alias.name
            for node in nodes
            if isinstance(node, ast.ImportFrom) and node.module == "graphc.public"
            for alias in node.names
        }
        found += sum(
            isinstance(node, ast.Attribute) and isinstance(node.value, ast.Name) and node.value.id in packages
            for node in nodes
        )
    assert found <= LOOKED_UP
    assert found > LOOKED_UP - 20, f"lower the number to {found}"


def test_the_runtime_reaches_up_nowhere():
    forbidden = {*BINDINGS, "graphc", "graphc_dialects", "graphc_tools", "llvmlite"}
    assert [p for p in sources() if "graphc_runtime" in p.parts and imports(p) & forbidden] == []


def test_every_file_names_its_licence():
    line = "# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception"
    files = [*sources(), *(ROOT / "tests").rglob("*.py"), *(ROOT / "docs").rglob("*.py")]
    assert [p for p in files if line not in p.read_text(encoding="utf-8")[:200]] == []


def test_modules_stay_small():
    assert [p for p in sources() if len(p.read_text(encoding="utf-8").splitlines()) > 800] == []


def test_the_version_is_stated_nowhere():
    """It comes from the tags of git, by way of what is installed."""
    stated = re.compile(r'^(__version__|version) = "', re.MULTILINE)
    files = [*sources(), ROOT / "pyproject.toml", ROOT / "runtime" / "pyproject.toml", ROOT / "setup.py"]
    assert [p for p in files if stated.search(p.read_text(encoding="utf-8"))] == []


def test_raw_pointers_are_made_in_one_place():
    made = re.compile(r"create\(\s*\"(memref.extract_aligned_pointer_as_index|llvm.inttoptr)")
    assert {p.name for p in sources() if made.search(p.read_text(encoding="utf-8"))} == {"pointers.py"}
