# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""One operation, one place: how many source files name each structured operation."""

from __future__ import annotations

import ast
from functools import cache
from pathlib import Path

import pytest

from graphc_dialects.dialect import operation_classes
from graphc_dialects.elementwise import ELEMENTWISE
from graphc_dialects.signatures import SIGNATURES

ROOT = Path(__file__).resolve().parents[2]
# Below the front end a bare name is an operation's, too.
BARE = ("dialects", "compiler/graphc/ir", "compiler/graphc/lowering", "compiler/graphc/passes")

# A new operation changes four files: its dialect class, its graph operation, its traits and its lowering. An
# operation that is not listed may have no more; the numbers of the others may only become smaller.
NEW = 4
KNOWN = {
    "broadcast_to": 5,
    "check": 9,
    "constant": 9,
    "iota": 6,
    "join": 6,
    "matmul": 8,
    "put": 5,
    "reduce_sum": 7,
    "reshape": 6,
    "scan": 13,
    "scan_prev": 6,
    "scan_seq": 5,
    "scan_steps": 5,
    "scan_trace": 5,
    "specify_shape": 5,
    "write": 6,
    "write_join": 5,
}


def strings(path: Path) -> set[str]:
    """Words of a file's string literals, docstrings left out."""
    tree = ast.parse(path.read_text(encoding="utf-8"))
    documentation = {id(node.value) for node in ast.walk(tree) if isinstance(node, ast.Expr)}
    found: set[str] = set()
    for node in ast.walk(tree):
        if isinstance(node, ast.Constant) and isinstance(node.value, str) and id(node) not in documentation:
            found.update(node.value.split())
    return found


def names(path: Path) -> set[str]:
    """Identifiers of a file, imports included."""
    tree = ast.parse(path.read_text(encoding="utf-8"))
    found = {node.id for node in ast.walk(tree) if isinstance(node, ast.Name)}
    found |= {node.attr for node in ast.walk(tree) if isinstance(node, ast.Attribute)}
    imports = (node for node in ast.walk(tree) if isinstance(node, ast.ImportFrom))
    return found | {alias.name for node in imports for alias in node.names}


@cache
def words() -> dict[Path, tuple[set[str], set[str]]]:
    files = (path for root in ("compiler", "dialects") for path in (ROOT / root).rglob("*.py"))
    return {path: (strings(path), names(path)) for path in files}


def files_that_know(name: str) -> list[str]:
    class_name = operation_classes()[f"graphc.{name}"].__name__
    found = []
    for path, (literals, identifiers) in words().items():
        place = path.relative_to(ROOT).as_posix()
        bare = name in literals and place.startswith(BARE)
        if bare or f"graphc.{name}" in literals or class_name in identifiers:
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
