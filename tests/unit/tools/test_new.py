# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Rehearsals: adding an operation, a pass or a target is done by a script in a copy of packages and tests.

The files that it takes are counted, and what was added works. `graphc-new` writes structured operations and
passes; they pass the checks as they are.
"""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from graphc_tools.new import create_op, create_pass

ROOT = Path(__file__).resolve().parents[3]
PACKAGES = ("compiler", "dialects", "runtime", "tools")
TESTS = ("lit/dialect", "lit/lit.cfg.py", "unit/dialect", "unit/ops", "unit/passes/test_completeness.py")
ALONE = ("conftest.py", "numeric/fuzzing.py", "unit/test_one_place.py")

# What a contributor writes, by file: after which text, or at the end, and what.
ELEMENTWISE = {
    "dialects/graphc_dialects/elementwise.py": (
        '_add(1, "same", "frexp_mantissa',
        '_add(1, "same", "sample_cube")\n_add(1, "same", "frexp_mantissa',
    ),
    "compiler/graphc/ops/math.py": (
        'neg = declare("neg", _unary)\n',
        'neg = declare("neg", _unary)\nsample_cube = declare("sample_cube", _unary)\n',
    ),
    "compiler/graphc/ops/table/arithmetic.py": (
        "",
        """
register(
    "sample_cube",
    lambda x: x * x * x,
    "The third power.",
    lambda b, x: b.mul(b.mul(x, x), x),
    grad=(lambda x, out, g: g * x * x * 3,),
    dtypes=lambda types: (types[0], types[0]),
    nin=1,
)
""",
    ),
}
_SAMPLE_TARGET = """
from graphc.backends.interpret.target import InterpretTarget
from graphc.backends import CompileLog, CompileOptions
from graphc_runtime.artifact import Artifact
from graphc_runtime.manifest import Signature


class SampleTarget(InterpretTarget):
    name = "sample"
    has_budget = True
    settings = {"arch": "cuda_arch"}

    def compile(self, text: str, signature: Signature, options: CompileOptions, log: CompileLog) -> Artifact:
        assert options.arch and options.memory_budget == 1000
        return super().compile(text, signature, options, log)
"""
TARGET = {
    "compiler/graphc/backends/sample/__init__.py": ("", "\n"),
    "compiler/graphc/backends/sample/target.py": ("", _SAMPLE_TARGET),
    "compiler/graphc/backends/__init__.py": (
        '    "cuda": ',
        '    "sample": "graphc.backends.sample.target:SampleTarget",\n    "cuda": ',
    ),
    "compiler/graphc/config.py": ('"cuda", "reference"', '"cuda", "sample", "reference"'),
}
TOUCHED: dict[str, list[str]] = {}


@pytest.fixture(scope="module")
def scratch(tmp_path_factory: pytest.TempPathFactory) -> Path:
    root = tmp_path_factory.mktemp("scratch")
    for name in PACKAGES:
        shutil.copytree(ROOT / name, root / name, ignore=shutil.ignore_patterns("__pycache__", "*.egg-info"))
    for name in (*TESTS, *ALONE):
        source, target = ROOT / "tests" / name, root / "tests" / name
        target.parent.mkdir(parents=True, exist_ok=True)
        if source.is_dir():
            shutil.copytree(source, target)
        elif source.exists():
            shutil.copy(source, target)
    for flag in (path for path in (ROOT / "tests" / "lit" / "passes").iterdir() if path.is_dir()):
        shutil.copytree(flag, root / "tests" / "lit" / "passes" / flag.name)
    shutil.copy(ROOT / "pyproject.toml", root)
    shutil.copytree(ROOT / "tests" / "typing", root / "tests" / "typing")
    before = contents(root)
    create_op("sample-op", "The rows of an array in reverse order.", root=root)
    TOUCHED["structured operation"] = changed(before, before := contents(root))
    create_pass("sample-pass", "graph", "Counts operations.", root=root)
    TOUCHED["pass"] = changed(before, before := contents(root))
    for what, edits in (("elementwise operation", ELEMENTWISE), ("target", TARGET)):
        for place, (old, new) in edits.items():
            path = root / place
            text = path.read_text(encoding="utf-8") if path.exists() else ""
            assert old in text, f"{place}: {old}"
            path.parent.mkdir(exist_ok=True)
            path.write_text(text.replace(old, new, 1) if old else text + new, encoding="utf-8")
        TOUCHED[what] = changed(before, before := contents(root))
    return root


def contents(root: Path) -> dict[str, bytes]:
    """The sources and tests of a copy."""
    files = (path for path in root.rglob("*") if path.suffix in (".py", ".mlir"))
    return {path.relative_to(root).as_posix(): path.read_bytes() for path in files}


def changed(before: dict[str, bytes], after: dict[str, bytes]) -> list[str]:
    """Files that are new or have changed."""
    return sorted(name for name, data in after.items() if before.get(name) != data)


def run(scratch: Path, *command: str) -> None:
    roots = os.pathsep.join(str(scratch / name) for name in PACKAGES)
    environment = {**os.environ, "PYTHONPATH": roots}
    done = subprocess.run(
        [sys.executable, "-m", *command], cwd=scratch, env=environment, capture_output=True, text=True
    )
    assert done.returncode == 0, done.stdout[-3000:] + done.stderr[-3000:]


def generated(scratch: Path) -> list[str]:
    return [str(path) for path in scratch.rglob("*sample_*.py")]


def test_lint(scratch: Path) -> None:
    assert len(generated(scratch)) == 6
    run(scratch, "ruff", "check", *generated(scratch))
    run(scratch, "ruff", "format", "--check", *generated(scratch))


def test_types(scratch: Path) -> None:
    # What `make types` found out of the files that are the same; modification times are copied, too.
    known = ROOT / ".mypy_cache"
    if known.is_dir():
        shutil.copytree(known, scratch / known.name, dirs_exist_ok=True)
    run(scratch, "mypy")


def test_each_addition_takes_few_files(scratch: Path) -> None:
    """Beside its test, and outside of its own folder."""
    sources = {what: [f for f in files if not f.startswith("tests/")] for what, files in TOUCHED.items()}
    assert len(sources["elementwise operation"]) == 3
    assert len(sources["structured operation"]) == 4
    tests = {str(Path(name).parent) for name in TOUCHED["pass"] if name.startswith("tests/")}
    assert (len(sources["pass"]), tests) == (1, {"tests/lit/passes/sample-pass"})
    assert len([name for name in sources["target"] if "/sample/" not in name]) == 2


WORKS = """
import numpy as np
import graphc
import graphc.tensor as pt

x, value = pt.dvector("x"), np.array([-1.5, 0.0, 2.0])
for mode in ("fast_run", "fast_compile", "interpret", "reference", "debug"):
    f = graphc.function([x], [pt.sample_cube(x), graphc.grad(pt.sample_cube(x).sum(), x)], mode=mode)
    for found, expected in zip(f(value), (value**3, 3 * value**2)):
        np.testing.assert_allclose(found, expected)
for dtype in ("float32", "int64", "complex128"):
    y = pt.vector(dtype=dtype)
    np.testing.assert_array_equal(graphc.function([y], pt.sample_cube(y))([1, 2]), np.array([1, 8], dtype))
total = graphc.shared(1.0)
f = graphc.function(
    [x], pt.exp(x) * total, updates={total: total + 1}, mode="sample", memory_budget=1000, donate=[x]
)
np.testing.assert_allclose([f(value), f(value)], [np.exp(value), 2 * np.exp(value)])
assert list(f.ir_stages()) and f.report.options.mode == "sample" and f.copy()(value).shape == (3,)
"""


def test_what_was_added_works(scratch: Path) -> None:
    roots = os.pathsep.join(str(scratch / name) for name in PACKAGES)
    done = subprocess.run(
        [sys.executable, "-c", WORKS], env={**os.environ, "PYTHONPATH": roots}, capture_output=True, text=True
    )
    assert done.returncode == 0, done.stderr


def test_completeness_and_its_own_tests(scratch: Path) -> None:
    tests = [f"tests/{name}" for name in ("unit/ops/test_sample_op.py", "unit/ops/test_completeness.py")]
    tests += ["tests/unit/dialect/test_completeness.py", "tests/unit/passes/test_completeness.py"]
    run(scratch, "pytest", "-q", "-x", "-p", "no:cacheprovider", *tests, "-k", "ample")
    run(
        scratch, "pytest", "-q", "-x", "-p", "no:cacheprovider", "tests/unit/test_one_place.py", "-k", "ample"
    )


@pytest.mark.parametrize(
    "path",
    ["dialect/sample_op", "dialect/sample_op_invalid"]
    + [f"passes/sample-pass/{kind}" for kind in ("basic", "invalid", "doctest")],
)
def test_lit(scratch: Path, path: str) -> None:
    file = scratch / "tests" / "lit" / f"{path}.mlir"
    line = next(x for x in file.read_text().splitlines() if "RUN: " in x).partition("RUN: ")[2]
    code = "import sys; from graphc_tools.lit_format import parse_command, run_command; "
    code += "done = run_command(parse_command(sys.argv[1])); sys.exit(0 if done[0] else done[1])"
    roots = os.pathsep.join(str(scratch / name) for name in PACKAGES)
    done = subprocess.run(
        [sys.executable, "-c", code, line.replace("%s", str(file))],
        env={**os.environ, "PYTHONPATH": roots},
        capture_output=True,
        text=True,
    )
    assert done.returncode == 0, done.stdout + done.stderr


@pytest.mark.parametrize(
    ("name", "summary", "message"),
    [
        ("Bad_Name", "Does.", "lower-case words"),
        ("fusion", "Does.", "already"),
        ("new-one", "no stop", "full stop"),
    ],
)
def test_wrong_arguments(tmp_path: Path, name: str, summary: str, message: str) -> None:
    with pytest.raises(ValueError, match=message):
        create_pass(name, "graph", summary, root=tmp_path)


def test_an_operation_that_exists(tmp_path: Path) -> None:
    with pytest.raises(ValueError, match="already"):
        create_op("take", "Takes.", root=tmp_path)
