# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Which variables of a kernel need memory while it is translated, and which are just names of values."""

from __future__ import annotations

import ast
from collections import Counter
from collections.abc import Iterator, Sequence
from typing import Any


def fixed_names(tree: Any) -> frozenset[str]:
    """Names of a function that are assigned in one place, which comes before all that reads them.

    They stand for values of LLVM's, which need no place on the stack: most names do, and the text is a good
    deal shorter without these places.

    Args:
        tree: the definition of the function.
    """
    parameters = [x.arg for x in (*tree.args.args, *tree.args.kwonlyargs)]
    nodes = [node for node in ast.walk(tree) if isinstance(node, ast.Name)]
    written = Counter([*parameters, *(x.id for x in nodes if isinstance(x.ctx, ast.Store))])
    read = Counter(x.id for x in nodes if isinstance(x.ctx, ast.Load))
    after = Counter({name: read[name] for name in parameters})
    for names, statements in _assignments(tree.body):
        reads = _names_in(statements, ast.Load)
        after.update({name: reads[name] for name in names})
    return frozenset(name for name, times in written.items() if times == 1 and after[name] == read[name])


def _assignments(statements: Sequence[ast.stmt]) -> Iterator[tuple[set[str], Sequence[Any]]]:
    """Names that statements assign, and the statements that certainly run after each of these."""
    for place, statement in enumerate(statements):
        if isinstance(statement, ast.Assign):
            yield set(_names_in(statement.targets, ast.Store)), statements[place + 1 :]
        if isinstance(statement, ast.For):
            yield {statement.target.id}, statement.body  # type: ignore[attr-defined]
        for block in ("body", "orelse"):
            yield from _assignments(getattr(statement, block, ()))


def _names_in(trees: Sequence[ast.AST], context: type) -> Counter[str]:
    nodes = (node for tree in trees for node in ast.walk(tree))
    return Counter(x.id for x in nodes if isinstance(x, ast.Name) and isinstance(x.ctx, context))
