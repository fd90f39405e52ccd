# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""The source text of the cases of `op_table`: how a program calls a public function.

A case's ``call`` is a lambda of a namespace and of arguments. Its text, with names in the place of both, is a
line of a program that prints, runs and shrinks.
"""

from __future__ import annotations

import ast
import inspect
from collections.abc import Callable, Iterator, Sequence
from functools import cache
from pathlib import Path
from types import FunctionType
from typing import Any

import numpy as np
import op_cases_arrays as _arrays
import op_cases_elementwise as _elementwise
import op_cases_indexing as _indexing
import op_cases_linalg as _linalg
import op_cases_matrices as _matrices
import op_cases_nn as _nn
import op_cases_pieces as _pieces
import op_cases_reductions as _reductions
import op_cases_special as _special
from op_table import CASES, Case

# Importing them fills the table.
MODULES = (_arrays, _elementwise, _indexing, _linalg, _matrices, _nn, _pieces, _reductions, _special)
SPACES = {"": "pt", "slinalg": "pt.linalg"}


@cache
def _lambdas(path: str) -> list[ast.Lambda]:
    tree = ast.parse(Path(path).read_text(encoding="utf-8"))
    return [node for node in ast.walk(tree) if isinstance(node, ast.Lambda)]


def _source(function: FunctionType) -> ast.Lambda:
    """The lambda in its module: the one that begins where its code does."""
    code = function.__code__
    starts = {(line, column) for line, _, column, _ in code.co_positions() if line and column is not None}
    for node in _lambdas(code.co_filename):
        if node.lineno != code.co_firstlineno or len(node.args.args) != code.co_argcount:
            continue
        inner = {(n.lineno, n.col_offset) for n in ast.walk(node.body) if hasattr(n, "lineno")}
        if starts & inner:
            return node
    raise LookupError(f"no source of {function} in {code.co_filename}:{code.co_firstlineno}")


class _Substitution(ast.NodeTransformer):
    """Replaces names by expressions, and calls of ``getattr`` with a known name by attributes."""

    def __init__(self, names: dict[str, ast.expr]) -> None:
        self.names = names

    def visit_Name(self, node: ast.Name) -> ast.AST:
        return self.names.get(node.id, node)

    def visit_Call(self, node: ast.Call) -> ast.AST:
        if isinstance(node.func, ast.Name) and isinstance(self.names.get(node.func.id), ast.Lambda):
            inner = self.names[node.func.id]
            assert isinstance(inner, ast.Lambda)
            given = [self.visit(a) for a in node.args]
            binding = dict(zip((a.arg for a in inner.args.args), given, strict=True))
            return _Substitution(binding).visit(_copy(inner.body))
        self.generic_visit(node)
        if isinstance(node.func, ast.Name) and node.func.id == "getattr" and len(node.args) == 2:
            name = eval(compile(ast.Expression(node.args[1]), "", "eval"))  # our own short expressions
            return ast.copy_location(ast.Attribute(node.args[0], name, ast.Load()), node)
        starred = [a for a in node.args if isinstance(a, ast.Starred) and isinstance(a.value, ast.Tuple)]
        if starred:
            node.args = [
                part
                for a in node.args
                for part in (a.value.elts if a in starred else [a])  # type: ignore[attr-defined]
            ]
        return node


def _copy(node: ast.expr) -> ast.expr:
    return ast.parse(ast.unparse(node), mode="eval").body


def _literal(value: Any) -> ast.expr:
    if isinstance(value, FunctionType):
        return _copy(_source(value))
    text = repr(value)
    if isinstance(value, float) and not np.isfinite(value):
        text = f"np.{value}" if value == value else "np.nan"
    return ast.parse(text.replace("-inf", "-np.inf"), mode="eval").body


def text_of(case: Case, arguments: Sequence[str], space: str = "") -> str:
    """The expression that calls a case's function.

    Args:
        case: of the table.
        arguments: names of variables.
        space: the namespace; by default the case's, below ``pt``.
    """
    call = case.call
    assert isinstance(call, FunctionType)
    where = space or SPACES.get(case.where, f"pt.{case.where}")
    code = call.__code__
    defaults = dict(inspect.signature(call).parameters)
    bound = {name: p.default for name, p in defaults.items() if p.default is not inspect.Parameter.empty}
    if "function" in code.co_freevars or "op" in bound:  # called by its name
        return f"{where}.{case.covers.rpartition('.')[2]}({', '.join(arguments)})"
    source = _source(call)
    positional = [a.arg for a in source.args.args if a.arg not in bound]
    names: dict[str, ast.expr] = {name: _literal(value) for name, value in bound.items()}
    names[positional[0]] = ast.parse(where, mode="eval").body
    rest = [ast.Name(a, ast.Load()) for a in arguments]
    if source.args.vararg is not None:
        names[source.args.vararg.arg] = ast.Tuple(list(rest), ast.Load())
    else:
        names.update(zip(positional[1:], rest, strict=True))
    body = _Substitution(names).visit(_copy(source.body))
    return ast.unparse(ast.fix_missing_locations(body))


def helpers_of(case: Case, text: str) -> dict[str, Callable[..., Any]]:
    """Functions of the case's module that its text calls."""
    module = vars(inspect.getmodule(case.call))
    found: dict[str, Callable[..., Any]] = {}
    for name in _names(text):
        value = module.get(name)
        if isinstance(value, FunctionType) and value.__module__ == case.call.__module__:
            found[name] = value
            found.update(_called_by(value, module))
    return found


def _called_by(function: FunctionType, module: dict[str, Any]) -> dict[str, FunctionType]:
    names = function.__code__.co_names
    return {name: module[name] for name in names if isinstance(module.get(name), FunctionType)}


def _names(text: str) -> Iterator[str]:
    for node in ast.walk(ast.parse(text, mode="eval")):
        if isinstance(node, ast.Name):
            yield node.id


def all_cases() -> list[Case]:
    """The table."""
    return list(CASES)
