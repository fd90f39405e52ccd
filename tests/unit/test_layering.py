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

from graphc import hooks

pytestmark = pytest.mark.usefixtures("no_collections")
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
# Other names of modules are made without a loader, and take a microsecond.
found = set(sys.modules) - known
loaded = [m for m in found if getattr(sys.modules[m].__spec__, "loader", "") is not None]
print(*f.report.cache, *sorted(loaded))
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


@cache
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
    folders = os.pathsep.join(str(ROOT / name) for name in ("compiler", "dialects", "runtime"))
    env = {**os.environ, "PYTHONPATH": folders}
    ran = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, env=env)
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
        self.for_types: list[tuple[str, int, bool]] = []
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
        if not (isinstance(node.test, ast.Name) and node.test.id == "TYPE_CHECKING"):
            return self.generic_visit(node)
        outside, self.found = self.found, self.for_types
        for child in node.body:
            self.visit(child)
        self.found = outside
        for child in node.orelse:
            self.visit(child)

    def visit_FunctionDef(self, node: ast.FunctionDef) -> None:
        self.depth += 1
        self.generic_visit(node)
        self.depth -= 1


@cache
def visited() -> dict[str, Imports]:
    modules = {}
    for root in ROOTS:
        for path in Path(root).rglob("*.py*"):
            if path.suffix not in (".py", ".pyi"):
                continue
            parts = path.relative_to(root).with_suffix("").parts
            modules[".".join(parts[:-1] if parts[-1] == "__init__" else parts)] = path
    result = {}
    for name, path in modules.items():
        result[name] = Imports(modules)
        result[name].visit(ast.parse(path.read_text(encoding="utf-8")))
    return result


def own_imports(*, with_types: bool = False) -> dict[str, list[tuple[str, int, bool]]]:
    return {
        name: [each for each in file.found + with_types * file.for_types if each[0] != name]
        for name, file in visited().items()
    }


def test_no_file_needs_a_file_that_needs_it():
    left = {name: {imported for imported, _, _ in found} for name, found in own_imports().items()}
    while free := [name for name, needs in left.items() if not needs & left.keys()]:
        for name in free:
            del left[name]
    # What cannot be taken away lies on a circle or leads to one.
    assert not left, left


# Files in the largest circle, if imports for types count, too. It was 239.
LARGEST_CIRCLE = 6


def circles(graph: dict[str, set[str]]) -> list[set[str]]:
    """Modules that need each other, largest circles first (Kosaraju's algorithm)."""

    def reached(start: str, edges: dict[str, set[str]], seen: set[str]) -> list[str]:
        """What is reached from a module, in the order in which a walk leaves it."""
        left, stack = [], [(start, iter(edges.get(start, ())))]
        seen.add(start)
        while stack:
            new = next((each for each in stack[-1][1] if each not in seen), None)
            if new is None:
                left.append(stack.pop()[0])
            else:
                seen.add(new)
                stack.append((new, iter(edges.get(new, ()))))
        return left

    readers: dict[str, set[str]] = {}
    for name, needs in graph.items():
        for each in needs:
            readers.setdefault(each, set()).add(name)
    seen: set[str] = set()
    order = [name for start in graph if start not in seen for name in reached(start, graph, seen)]
    seen = set()
    found = [set(reached(start, readers, seen)) for start in reversed(order) if start not in seen]
    return sorted((circle for circle in found if len(circle) > 1), key=len, reverse=True)


def test_circles_of_types_are_small():
    assert circles({"a": {"b"}, "b": {"c", "d"}, "c": {"a"}, "d": set()}) == [{"a", "b", "c"}]
    graph = {name: {each for each, _, _ in found} for name, found in own_imports(with_types=True).items()}
    largest = circles(graph)[0]
    assert len(largest) <= LARGEST_CIRCLE, sorted(largest)
    assert len(largest) > LARGEST_CIRCLE - 1, f"lower the number to {len(largest)}"


# Statements in functions that import what few graphs need, or the compiler, which graphs are built without.
LATE = {
    "graphc.backends.cpu.target": 1,
    "graphc.backends.cuda.target": 2,
    "graphc.function.compiled": 2,
    "graphc.function.function": 2,
    "graphc.function.modes": 2,
    "graphc.function.shared": 1,
    "graphc.function.types": 2,
    "graphc.ir.references": 1,
    "graphc.ops.external": 1,
    "graphc.ops.fourier": 1,
    "graphc.ops.kernel": 1,
    "graphc.ops.canonical": 1,
    "graphc.tensor.accumulating": 1,
    "graphc.tensor.random.op": 1,
    "graphc_tools.opt": 4,
}
# Hooks of `graphc.hooks`, through which methods of lower layers end in functions of upper ones.
HOOKS = {
    *("debugprint", "evaluate", "function", "inspection", "loop_over_batch", "namespace", "picture", "scan"),
}


def test_late_imports_are_few():
    late: dict[str, set[int]] = {}
    for name, found in own_imports().items():
        for _, line, in_function in found:
            if in_function:
                late.setdefault(name, set()).add(line)
    assert {name: len(lines) for name, lines in sorted(late.items())} == LATE


def test_lower_layers_reach_up_through_few_hooks():
    """Late imports and uses of hooks were 51, with those of a package that found functions by name."""
    uses = 0
    for path in sources():
        if path.name == "__init__.py" and path.parent.name == "graphc":
            continue
        if "hooks" not in (text := path.read_text(encoding="utf-8")):
            continue
        nodes = list(ast.walk(ast.parse(text)))
        if not any(isinstance(n, ast.ImportFrom) and any(a.name == "hooks" for a in n.names) for n in nodes):
            continue
        for node in nodes:
            if isinstance(node, ast.Attribute) and getattr(node.value, "id", "") == "hooks":
                assert node.attr in HOOKS
                uses += 1
    assert sum(LATE.values()) + uses <= 43
    assert {name for name, value in vars(hooks).items() if isinstance(value, hooks.Hook)} == HOOKS


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
    assert {p.name for p in sources() if made.search(p.read_text(encoding="utf-8"))} == {"layouts.py"}
