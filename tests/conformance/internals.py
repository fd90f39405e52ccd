# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Leaves out the statements of a test that look at PyTensor's internals, so that the rest of it runs.

A statement is about internals if it reads one of the attributes of ``scope.toml`` (``f.maker.fgraph``), or a
name that was assigned from one; in ``tests/tensor`` also an ``assert`` that reads the node of a result
(``z.owner.op``); and an ``assert`` with, or under an ``if`` about, a name that has one of the words of the
file of rules in it (``overwrite_a``). Asserts and calls like this are removed. What an assignment would have
given becomes an `Internal`: who uses it in a statement that stays is out of scope. So is a test of which
nothing is left that asserts, checks or expects anything.
"""

from __future__ import annotations

import ast
import sys
from collections.abc import Sequence
from dataclasses import dataclass, replace
from importlib.abc import MetaPathFinder
from importlib.machinery import ModuleSpec, PathFinder, SourceFileLoader
from pathlib import Path
from types import CodeType, ModuleType
from typing import Any

from _pytest.assertion.rewrite import rewrite_asserts
from absent import AbsentNameError

# Calls of functions with these parts in their names hold a result against something.
CHECKS = ("assert", "check", "expect", "raises", "test", "verify", "warns")

# In tests of rewrites: attributes of nodes and graphs, and functions that read graphs.
NODES = frozenset("op owner apply_nodes toposort tag clients variable variables dprint".split())
NODES |= {"has_blockwise", "assert_structure"}
READERS = frozenset("ancestors apply_ancestors debugprint pprint io_toposort vars_between".split())
# The attributes that tests are said to read: of what was left out, and, where nothing else is left, of
# nothing. A file of rules needs a reason for each (`outcomes.Scope.read` asks for them).
MADE, NOTHING = ATTRIBUTES = ("maker", "nothing_else_is_left")


def _use(self: Internal, *args: Any, **kwargs: Any) -> Any:
    raise AbsentNameError(f"attribute {MADE}")


def _attribute(self: Internal, name: str) -> Any:
    raise AbsentNameError(f"attribute {name if name == NOTHING else MADE}")


class Internal:
    """What a statement about internals would have given. Any use of it puts the test out of scope."""

    __bool__ = __call__ = __contains__ = __eq__ = __getitem__ = __iter__ = __len__ = __ne__ = _use
    __getattr__ = _attribute
    __hash__ = object.__hash__


@dataclass(frozen=True)
class About:
    """What makes a statement one about internals: attributes that it reads, words in names of an assert."""

    attributes: frozenset[str] = frozenset()
    words: tuple[str, ...] = ()

    def has_word(self, node: ast.AST) -> bool:
        names = (part.id for part in ast.walk(node) if isinstance(part, ast.Name))
        return any(word in name for name in names for word in self.words)


def _names(target: ast.expr) -> list[str]:
    return [node.id for node in ast.walk(target) if isinstance(node, ast.Name)]


def _reads_node(node: ast.AST) -> bool:
    """Whether an expression reads ``x.owner.<anything>``."""
    parts = (part for part in ast.walk(node) if isinstance(part, ast.Attribute))
    return any(isinstance(part.value, ast.Attribute) and part.value.attr == "owner" for part in parts)


def _checks(body: Sequence[ast.stmt]) -> bool:
    """Whether statements hold anything against anything."""
    for statement in body:
        for node in ast.walk(statement):
            if isinstance(node, ast.Assert | ast.Raise):
                return True
            name = ast.unparse(node.func).rpartition(".")[2] if isinstance(node, ast.Call) else ""
            if any(part in name for part in CHECKS):
                return True
    return False


class _Function:
    """Goes through the statements of one function, in order."""

    def __init__(self, about: About, nodes: bool, known: frozenset[str] = frozenset()) -> None:
        self.about = about
        self.nodes = nodes
        self.internal: set[str] = set(known)
        self.left_out = False

    def _is_internal(self, node: ast.AST | None) -> bool:
        if node is None:
            return False
        for part in ast.walk(node):
            if isinstance(part, ast.Attribute) and part.attr in self.about.attributes:
                return True
            if isinstance(part, ast.Name) and isinstance(part.ctx, ast.Load) and part.id in self.internal:
                return True
        return False

    def block(self, body: list[ast.stmt]) -> list[ast.stmt]:
        kept = [new for statement in body for new in self._statement(statement)]
        return kept

    def _statement(self, statement: ast.stmt) -> list[ast.stmt]:
        match statement:
            case ast.FunctionDef():
                inner = _function(statement, self.about, self.nodes, frozenset(self.internal))
                returned = [part.value for part in ast.walk(inner) if isinstance(part, ast.Return)]
                if any(value and ast.unparse(value) == "__internal__()" for value in returned):
                    self.internal.add(statement.name)
                return [inner]
            case ast.Assert():
                gone = self._is_internal(statement) or (self.nodes and _reads_node(statement.test))
                return self._without([statement], gone or self.about.has_word(statement))
            case ast.Expr():
                return self._without([statement], self._is_internal(statement))
            case ast.Assign():
                return self._assignment(statement)
            case ast.Return(value=value) if self._is_internal(value):
                return [ast.copy_location(ast.Return(_marker()), statement)]
            case ast.For() | ast.With() | ast.If() | ast.While() | ast.Try():
                return self._compound(statement)
        return [statement]

    def _without(self, statements: list[ast.stmt], gone: bool) -> list[ast.stmt]:
        self.left_out |= gone
        return [] if gone else statements

    def _assignment(self, statement: ast.Assign) -> list[ast.stmt]:
        names = [name for target in statement.targets for name in _names(target)]
        if not self._is_internal(statement.value):
            plain = [target.id for target in statement.targets if isinstance(target, ast.Name)]
            self.internal -= set(plain)
            return [statement]
        self.left_out = True
        self.internal |= set(names)
        targets: list[ast.expr] = [ast.Name(name, ast.Store()) for name in names]
        return [ast.copy_location(ast.Assign(targets, _marker()), statement)] if targets else []

    def _compound(self, statement: ast.stmt) -> list[ast.stmt]:
        if isinstance(statement, ast.If) and self.about.has_word(statement.test):
            asserted = [part for part in statement.body if isinstance(part, ast.Assert)]
            self.left_out |= bool(asserted)
            statement.body = [part for part in statement.body if part not in asserted] or [ast.Pass()]
        looped = isinstance(statement, ast.For) and self._is_internal(statement.iter)
        if isinstance(statement, ast.For) and looped:
            self.internal |= set(_names(statement.target))
        left_out, self.left_out = self.left_out, False
        for field in ("body", "orelse", "finalbody"):
            if getattr(statement, field, None):
                setattr(statement, field, self.block(getattr(statement, field)))
        for handler in getattr(statement, "handlers", ()):
            handler.body = self.block(handler.body) or [ast.Pass()]
        emptied, self.left_out = self.left_out, self.left_out or left_out
        if statement.body:  # type: ignore[attr-defined]
            return [statement]
        if emptied and not getattr(statement, "orelse", None):
            return []
        statement.body = [ast.Pass()]  # type: ignore[attr-defined]
        return [statement]


def _marker() -> ast.expr:
    return ast.Call(ast.Name("__internal__", ast.Load()), [], [])


def _function(
    function: ast.FunctionDef, about: About, nodes: bool, known: frozenset[str] = frozenset()
) -> ast.FunctionDef:
    state = _Function(about, nodes, known)
    function.body = state.block(function.body) or [ast.Pass()]
    if state.left_out and function.name.startswith("test") and not _checks(function.body):
        nothing = ast.Attribute(_marker(), NOTHING, ast.Load())
        function.body = [ast.copy_location(ast.Expr(nothing), function)]
    return function


class _PublicValues(ast.NodeTransformer):
    """``x.container.storage[0]``, where PyTensor keeps the value of a shared variable, is its value without a
    copy.
    """

    def visit_Subscript(self, node: ast.Subscript) -> ast.expr:
        self.generic_visit(node)
        match node:
            case ast.Subscript(
                ast.Attribute(ast.Attribute(variable, "container"), "storage"), ast.Constant(0), ast.Load()
            ):
                get = ast.Attribute(variable, "get_value", ast.Load())
                options = [
                    ast.keyword(name, ast.Constant(True)) for name in ("borrow", "return_internal_type")
                ]
                return ast.copy_location(ast.Call(get, [], options), node)
        return node


class _SameValues(ast.NodeTransformer):
    """``assert rewritten == x``, and with ``is``, ask for equal values where both are variables."""

    def visit_Assert(self, node: ast.Assert) -> ast.Assert:
        match node.test:
            case ast.Compare(left, [ast.Eq() | ast.Is()], [right]):
                same = ast.Name("__same_value__", ast.Load())
                node.test = ast.copy_location(ast.Call(same, [left, right], []), node)
        return node


def _of_rewrites(path: str) -> bool:
    """Whether a file's tests are about rewrites."""
    return "/rewriting/" in Path(path).as_posix() or "/assumptions/" in Path(path).as_posix()


def leave_out(tree: ast.Module, about: About, nodes: bool, rewrites: bool = False) -> ast.Module:
    """Change the functions of a module.

    Args:
        tree: the module.
        about: what makes a statement one about internals.
        nodes: also asserts about the nodes of results.
        rewrites: also what reads nodes and graphs.
    """
    tree = _PublicValues().visit(tree)
    readers = READERS if rewrites else frozenset()
    about = replace(about, attributes=about.attributes | NODES) if rewrites else about
    for holder in ast.walk(tree):
        if isinstance(holder, ast.Module | ast.ClassDef):
            holder.body = [
                _function(part, about, nodes, readers) if isinstance(part, ast.FunctionDef) else part
                for part in holder.body
            ]
    return ast.fix_missing_locations(tree)


class _Loader(SourceFileLoader):
    about = About()
    nodes: Sequence[str] = ()
    rewrites: Any = None

    def get_code(self, fullname: str) -> CodeType:
        source = self.get_data(self.path)
        nodes = any(part in Path(self.path).as_posix() for part in self.nodes)
        of_rewrites = self.rewrites is not None and _of_rewrites(self.path)
        tree = leave_out(ast.parse(source), self.about, nodes, of_rewrites)
        if of_rewrites:
            tree = ast.fix_missing_locations(_SameValues().visit(tree))
        rewrite_asserts(tree, source, self.path)
        return compile(tree, self.path, "exec", dont_inherit=True)

    def exec_module(self, module: ModuleType) -> None:
        module.__dict__.update(__internal__=Internal, __same_value__=None)
        super().exec_module(module)
        if self.rewrites is not None:
            names: dict[str, Any] = {}
            if _of_rewrites(self.path):
                names = self.rewrites.IN_REWRITING
            elif module.__name__ == "tests.unittest_tools":
                names = self.rewrites.IN_HELPERS
            module.__dict__.update({name: names[name] for name in names.keys() & vars(module)})


class _Finder(MetaPathFinder):
    """Finds the modules of the suite."""

    def find_spec(
        self, fullname: str, path: Sequence[str] | None, target: ModuleType | None = None
    ) -> ModuleSpec | None:
        if fullname.partition(".")[0] != "tests":
            return None
        spec = PathFinder.find_spec(fullname, path, target)
        if spec is not None and type(spec.loader) is SourceFileLoader:
            spec.loader = _Loader(fullname, spec.loader.path)
        return spec


def install(
    attributes: Sequence[str],
    nodes: Sequence[str],
    words: Sequence[str] = (),
    rewrites: Any = None,
) -> None:
    """Change the suite's modules as they are imported.

    Args:
        attributes: names of attributes that are internals.
        nodes: parts of paths of files in which nodes of results are internals, too.
        words: parts of names that asserts about internals have in them.
        rewrites: the module with what tests of rewrites get for what they import.
    """
    _Loader.rewrites = rewrites
    _Loader.about, _Loader.nodes = About(frozenset(attributes), tuple(words)), tuple(nodes)
    sys.meta_path.insert(0, _Finder())
