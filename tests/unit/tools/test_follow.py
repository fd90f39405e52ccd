# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Files, functions, classes and commands that the pages on the architecture name are there."""

from __future__ import annotations

import ast
import os
import re
import shlex
import subprocess
import sys
from functools import cache
from pathlib import Path

import pytest

from graphc.passes import discover
from graphc_tools import one_operation

ROOT = Path(__file__).resolve().parents[3]
PAGE = ROOT / "docs" / "architecture" / "follow.md"
# `folder/file.py`, `folder/file.py:name`, `folder/file.py:Class.name`, `folder/folder`.
NAMED = re.compile(r"`((?:compiler|dialects|runtime|tools|tests)/[\w/]+(?:\.py)?)(?::([\w.]+))?(?: -[^`]*)?`")


def definitions(path: Path) -> set[str]:
    """Functions, classes, methods and variables of a module."""
    found: set[str] = set()
    body = ast.parse(path.read_text(encoding="utf-8")).body
    # What is for type checkers stands below a condition.
    for node in [*body, *(each for test in body if isinstance(test, ast.If) for each in test.body)]:
        if isinstance(node, ast.FunctionDef | ast.ClassDef):
            found.add(node.name)
        if isinstance(node, ast.ClassDef):
            found |= {f"{node.name}.{each.name}" for each in node.body if isinstance(each, ast.FunctionDef)}
        targets = node.targets if isinstance(node, ast.Assign) else [getattr(node, "target", None)]
        found |= {target.id for target in targets if isinstance(target, ast.Name)}
    return found


NAMES = sorted(set(NAMED.findall(PAGE.read_text(encoding="utf-8"))))


def test_the_page_names_files():
    assert len(NAMES) > 40


@pytest.mark.parametrize(("path", "name"), NAMES)
def test_what_is_named_is_there(path, name):
    assert (ROOT / path).exists(), path
    if name:
        assert name in definitions(ROOT / path), f"{path} has no {name}"


PAGES = sorted(PAGE.parent.glob("*.md"))
TOPS = ("compiler", "dialects", "runtime", "tools", "tests", "docs")
FILES = [
    path.relative_to(ROOT).as_posix()
    for top in TOPS
    for path in (ROOT / top).rglob("*")
    if path.is_file() and "__pycache__" not in path.parts
]
FOLDERS = {folder.as_posix() for file in FILES for folder in Path(file).parents}
# What other programs are called, and names of theirs.
FOREIGN = {"OpView", "libnpyrandom.a", "ptxas"}


def at(path: str) -> list[str]:
    """Files of which a path is the end, from any folder on: `passes/run.py`."""
    return [file for file in FILES if f"/{file}".endswith(f"/{path}")]


@cache
def words() -> set[str]:
    """Every word of the sources."""
    found: set[str] = set()
    for file in FILES:
        if (
            file.endswith((".py", ".pyi", ".js", ".h"))
            and not file.startswith("docs/")
            and not file.endswith("test_follow.py")
        ):
            found.update(re.findall(r"\w+", (ROOT / file).read_text(encoding="utf-8")))
    return found


@cache
def commands() -> tuple[set[str], set[str]]:
    """Targets of make; scripts and flags of passes."""
    targets = re.findall(r"^([\w-]+):", (ROOT / "Makefile").read_text(encoding="utf-8"), re.MULTILINE)
    scripts = re.findall(
        r"^(graphc-\w+) = ", (ROOT / "pyproject.toml").read_text(encoding="utf-8"), re.MULTILINE
    )
    return set(targets), {*scripts, *discover()}


def is_there(span: str) -> bool:
    """True if what a page sets in code exists, if it is a file, a folder, a name or a command of ours."""
    if span in FOREIGN:
        return True
    named = re.fullmatch(r"([\w./-]+\.(?:py|md|h|html|js|css|mlir))(?::([\w.]+))?", span)
    if named is not None:
        found = at(named[1])
        return any(named[2] is None or named[2] in definitions(ROOT / file) for file in found)
    if re.fullmatch(r"[\w-]+(/[\w-]+)+/?", span):
        return any(f"/{folder}".endswith(f"/{span.rstrip('/')}") for folder in FOLDERS)
    targets, flags = commands()
    if span.startswith("make "):
        return span.split()[1] in targets
    if span.startswith("python -m graphc_tools."):
        return bool(at(f"graphc_tools/{span.rpartition('.')[2]}.py"))
    if re.match(r"graphc-[a-z]", span):
        return span.split()[0] in flags
    if re.fullmatch(r"[\w.]+(\(.*\))?", span):
        return all(word in words() for word in re.findall(r"\w+", span.partition("(")[0]))
    return True


def test_there_are_six_short_pages():
    assert len(PAGES) == 6
    assert {page.stem: n for page in PAGES if (n := len(page.read_text("utf-8").splitlines())) > 120} == {}


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.stem)
def test_what_a_page_sets_in_code_is_there(page):
    prose = re.sub(r"^```.*?^```", "", page.read_text(encoding="utf-8"), flags=re.DOTALL | re.MULTILINE)
    spans = set(re.findall(r"`([^`\n]+)`", prose))
    assert len(spans) > 40
    assert [span for span in sorted(spans) if not is_there(span)] == []


@pytest.mark.parametrize(
    "span", ["scan/nothing.py", "scan/op.py:Nothing", "NoSuchClass", "make nothing", "no/such"]
)
def test_what_is_not_there_is_found(span):
    assert not is_there(span)


def passed(command: list[str]) -> tuple[int, str]:
    """How many tests a command runs, all of which pass, and its output."""
    done = subprocess.run(
        [sys.executable, "-m", *command], cwd=ROOT, capture_output=True, text=True, env=os.environ
    )
    assert done.returncode == 0, done.stdout + done.stderr
    found = re.search(r"(\d+) passed", done.stdout)
    assert found is not None, done.stdout
    return int(found[1]), done.stdout


def test_the_commands_for_one_operation_select_its_cases():
    """Of the page, as they stand there; groups of cases keep only those of the operation."""
    page = PAGE.read_text(encoding="utf-8")
    (command,) = re.findall(r"`(pytest tests/numeric[^`]*)`", page)
    count, _ = passed([*shlex.split(command), "-q", "-p", "no:cacheprovider"])
    assert 3 <= count <= 20
    (name,) = re.findall(r"`graphc-test (\w+)`", page)
    count, _ = passed(["graphc_tools.one_operation", name])
    assert 5 <= count <= 20


def test_lit_tests_of_one_operation():
    """Of the passes that name it, or that name what a function is written with; of many, the files."""
    lit = ROOT / "tests" / "lit"
    assert lit / "passes" / "linear-systems" in one_operation.lit_tests("cholesky")
    assert {path.suffix for path in one_operation.lit_tests("exp")} == {".mlir"}
    assert "cumulative" in one_operation.written("cumsum") and one_operation.written("exp") == {"exp"}


def test_an_operation_that_is_not_there(capsys, monkeypatch):
    monkeypatch.setattr(one_operation, "TESTS", ("tests/numeric/test_op_gradients.py",))
    assert one_operation.main(["cumsums"]) == 2
    assert "no test is of an operation 'cumsums'; is it cumsum" in capsys.readouterr().err
