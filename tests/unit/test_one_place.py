# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""One operation, one place: how many source files name each structured operation."""

from __future__ import annotations

import ast
import re
from functools import cache
from pathlib import Path

import pytest

from graphc_dialects.dialect import operation_classes
from graphc_dialects.elementwise import ELEMENTWISE
from graphc_dialects.signatures import SIGNATURES

pytestmark = pytest.mark.usefixtures("no_collections")
ROOT = Path(__file__).resolve().parents[2]
FULL = re.compile(r"(?<![\w.])graphc\.([a-z_0-9]+)\b(?!\.)")
OPERATIONS = frozenset(name.removeprefix("graphc.") for name in operation_classes())
# Below the front end a bare name is an operation's, too.
BARE = ("dialects", "compiler/graphc/ir", "compiler/graphc/lowering", "compiler/graphc/passes")

# A new operation changes four files: its dialect class, its graph operation, its traits and its lowering. An
# operation that is not listed may have no more; the numbers of the others may only become smaller.
NEW = 4
KNOWN = {
    "broadcast_to": 5,
    "check": 9,
    "constant": 6,
    "join": 6,
    "matmul": 6,
    "reduce_sum": 5,
    "reshape": 5,
    "scan": 11,
    "scan_prev": 6,
    "scan_seq": 5,
    "scan_steps": 5,
    "scan_trace": 5,
    "specify_shape": 5,
    "write": 6,
}


def words_of(path: Path) -> tuple[set[str], set[str], set[str]]:
    """Names of operations in a file's string literals, docstrings left out: those with the dialect, wherever
    they stand, and those without it, in literals of such names alone (others are sentences); and identifiers,
    imports included.
    """
    nodes = list(ast.walk(ast.parse(path.read_text(encoding="utf-8"))))
    documentation = {id(node.value) for node in nodes if isinstance(node, ast.Expr)}
    full: set[str] = set()
    bare: set[str] = set()
    names: set[str] = set()
    for node in nodes:
        if isinstance(node, ast.Constant) and isinstance(node.value, str) and id(node) not in documentation:
            full.update(FULL.findall(node.value))
            if OPERATIONS.issuperset(words := node.value.split()):
                bare.update(words)
        elif isinstance(node, ast.Name):
            names.add(node.id)
        elif isinstance(node, ast.Attribute):
            names.add(node.attr)
        elif isinstance(node, ast.ImportFrom):
            names.update(alias.name for alias in node.names)
    return full, bare, names


@cache
def words() -> dict[str, tuple[set[str], set[str], set[str]]]:
    files = (path for root in ("compiler", "dialects") for path in (ROOT / root).rglob("*.py"))
    return {path.relative_to(ROOT).as_posix(): words_of(path) for path in files}


def files_that_know(name: str) -> list[str]:
    class_name = operation_classes()[f"graphc.{name}"].__name__
    found = []
    for place, (full, bare, identifiers) in words().items():
        if name in full or (name in bare and place.startswith(BARE)) or class_name in identifiers:
            found.append(place)
    return sorted(found)


STRUCTURED = sorted(
    name
    for name in (full.removeprefix("graphc.") for full in operation_classes())
    if name not in ELEMENTWISE and name not in SIGNATURES
)


@pytest.mark.parametrize("name", STRUCTURED)
def test_few_files_know_an_operation(name):
    found = files_that_know(name)
    assert len(found) <= KNOWN.get(name, NEW), found
    assert len(found) == KNOWN[name] if name in KNOWN else True, "fewer files know it: lower the number"


# Files that name bfloat16: the places of a dtype that NumPy does not have. They were 30.
DTYPE = 12


def test_few_files_know_a_dtype():
    """Operations say whether they take elements as they are stored, and name no dtype."""
    sources = (
        path for root in ("compiler", "dialects", "runtime", "tools") for path in (ROOT / root).rglob("*.py")
    )
    found = [p for p in sources if re.search(r"\bbfloat16|\bbf16\b", p.read_text(encoding="utf-8"))]
    assert len(found) <= DTYPE, found
    assert len(found) == DTYPE, "fewer files know it: lower the number"
