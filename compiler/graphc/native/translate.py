# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""The kernel language: a small part of Python, translated to LLVM IR.

Kernels work on single arrays given by pointers: `a[i]`, `a[k:]` (the pointer moved by k), numbers, `for` over
`range`, `while`, `if`, and calls of routines of the same kind and of C functions, with `*` before a tuple of
arguments. A variable has the type of its first value. What is known when translating (attributes of the
operation, types) is computed then, and a branch on it is decided then; a tuple of floats with an index that
is not known is a constant array. Integers are signed 64-bit unless loaded from arrays of others.
"""

from __future__ import annotations

import ast
import builtins as python
import inspect
import linecache
import textwrap
from collections import Counter
from collections.abc import Sequence
from functools import cache
from typing import Any, NoReturn

from graphc.native import BOOL, I64, Operand, Routine, Static, Type, Value, builtins, literal
from graphc.native.expressions import Expressions
from graphc_runtime.record import record


class KernelError(TypeError):
    """A kernel is not written in the kernel language."""


@cache
def _tree_of(function: Routine) -> ast.FunctionDef:
    """The definition of a function; its first line has the number 1.

    Only its own lines are parsed, up to the last that has code: files are long, and this is part of the time
    of compiling.
    """
    code = function.__code__
    first = code.co_firstlineno
    lines = linecache.getlines(code.co_filename)[first - 1 : max(x[1] or 0 for x in code.co_positions())]
    try:
        (found,) = ast.parse(textwrap.dedent("".join(lines))).body
    except (SyntaxError, ValueError):
        # Written where files cannot be read, such as in a notebook, or with lines at its end that never run.
        (found,) = ast.parse(textwrap.dedent(inspect.getsource(function))).body
    assert isinstance(found, ast.FunctionDef)
    return found


@cache
def _assigned_in(loop: ast.For | ast.While) -> tuple[str, ...]:
    """The variables that a loop may assign, in order of appearance."""
    nodes = [*ast.walk(loop)]
    return (*dict.fromkeys(x.id for x in nodes if isinstance(x, ast.Name) and isinstance(x.ctx, ast.Store)),)


class _Scope:
    """A function whose statements are being translated.

    Attributes:
        function: it.
        tree: its definition.
        done: where control goes when it returns; empty if it leaves the function that is written.
        returned: the blocks from which it does, and the values.
        result: the type of these.
        loops: for those around a statement, where `continue` and `break` go.
    """

    def __init__(self, function: Routine, done: str = "") -> None:
        self.function, self.tree, self.done = function, _tree_of(function), done
        self.returned: list[tuple[str, Any]] = []
        self.result: Type | None = None
        self.loops: list[tuple[str, str]] = []


class Function(Expressions):
    """One function being translated."""

    def __init__(self, translator: Translator, function: Routine, arguments: Sequence[Operand]) -> None:
        super().__init__(translator)
        self._enter(_Scope(function), arguments)

    def translate(self) -> tuple[str, Type | None]:
        """The text of the body, and the type of the result."""
        self._block(self._scope.tree.body)
        if self.block:
            self.end("ret void" if self._scope.result is None else "unreachable")
        return self.text(), self._scope.result

    def _enter(self, scope: _Scope, arguments: Sequence[Operand]) -> None:
        self._scope = scope
        code = scope.function.__code__
        names = code.co_varnames[: code.co_argcount + code.co_kwonlyargcount]
        if len(names) != len(arguments):
            raise KernelError(
                f"{scope.function.__name__} takes {', '.join(names)}; given {len(arguments)} arguments"
            )
        for name, value in zip(names, arguments, strict=True):
            if isinstance(value, Static):
                self.names[name] = value
            else:
                self._assign(name, value)

    def inlined(self, function: Routine, arguments: Sequence[Operand]) -> Any:
        """Results of a routine whose statements are written in place of its call."""
        outer = self._scope, self.names, self.kinds
        self.names, self.kinds = {}, {}
        scope = _Scope(function, self.label())
        self._enter(scope, arguments)
        self._block(scope.tree.body)
        if self.block and not scope.returned:
            result = Static(None)
        elif self.block:
            (_, result) = scope.returned[0]
        else:
            result = self.either(scope.done, scope.returned)
        self._scope, self.names, self.kinds = outer
        return result

    def lookup(self, name: str) -> Any:
        """Meaning of a name that is no variable: something of the kernel's module, or a builtin."""
        scope = self._scope.function.__globals__
        if name in scope:
            return scope[name]
        return getattr(builtins, name, None) or getattr(python, name, None)

    def fail(self, node: Any, message: str) -> NoReturn:
        """Raises with the place in the kernel."""
        function = self._scope.function
        line = function.__code__.co_firstlineno + node.lineno - 1
        raise KernelError(f"{function.__module__}:{line}: {message}")

    # -- statements ------------------------------------------------------------------------------------------

    def _block(self, statements: Sequence[ast.stmt]) -> None:
        """Translates statements up to where control does not come: what follows is not looked at, so that
        it need not make sense for the types at hand.
        """
        for statement in statements:
            if not self.block:
                return
            method = getattr(self, f"_do_{type(statement).__name__.lower()}", None)
            if method is None:
                self.fail(statement, f"{type(statement).__name__} is not part of the kernel language")
            method(statement)

    def _do_expr(self, node: ast.Expr) -> None:
        if not isinstance(node.value, ast.Constant):
            self.expression(node.value)

    def _do_pass(self, node: ast.Pass) -> None:
        pass

    def _do_assign(self, node: Any) -> None:
        (target,) = node.targets
        if isinstance(target, ast.Tuple):
            values = self.expression(node.value)
            for part, value in zip(target.elts, values, strict=True):
                self._store(part, value)
        else:
            self._store(target, self.expression(node.value))

    def _do_augassign(self, node: ast.AugAssign) -> None:
        # Where it is read, the target is what it is anywhere else: the context is not looked at.
        value = ast.copy_location(ast.BinOp(node.target, node.op, node.value), node)
        self._store(node.target, self.expression(value))

    def _store(self, target: ast.expr, value: Operand) -> None:
        if isinstance(target, ast.Name):
            self._assign(target.id, value, target)
            return
        if not isinstance(target, ast.Subscript):
            self.fail(target, "only variables and elements of arrays can be assigned to")
        pointer = self.value(self.expression(target.value), target)
        number = self.convert(value, pointer.type.element, target)
        self.store(number, self.address(pointer, self.expression(target.slice), target))

    def _assign(self, name: str, value: Any, node: ast.AST | None = None) -> None:
        number = value.value if isinstance(value, Static) else 0
        if isinstance(value, tuple) or not isinstance(number, bool | int | float | complex):
            self.names[name] = value
            return
        if name not in self.kinds:
            self.kinds[name] = self.value(value, node).type
        self.names[name] = self.convert(value, self.kinds[name], node)

    def _do_return(self, node: ast.Return) -> None:
        scope = self._scope
        given = Static(None) if node.value is None else self.expression(node.value)
        if scope.done:
            if scope.returned or node is not scope.tree.body[-1]:
                given = self._converted_result(given, node)
            scope.returned.append((self.block, given))
            if len(scope.returned) > 1 or node is not scope.tree.body[-1]:
                self.names = {}
                self.jump(scope.done)
        elif node.value is None:
            self.end("ret void")
        else:
            value = self._converted_result(given, node)
            self.end(f"ret {value.type.llvm} {value.text}")

    def _converted_result(self, given: Operand, node: ast.Return) -> Any:
        if isinstance(given, tuple):
            return tuple(self.value(x, node) for x in given)
        if isinstance(given, Static) and given.value is None:
            return given
        value = self.value(given, node)
        self._scope.result = self._scope.result or value.type
        return self.convert(value, self._scope.result, node)

    def _do_if(self, node: ast.If) -> None:
        then, other, after = self.label(), self.label(), self.label()
        self.branch_on(node.test, then, other if node.orelse else after)
        for label, statements in ((then, node.body), (other, node.orelse)):
            if statements:
                self.start(label)
                self._block(statements)
                self.jump(after)
        self.start(after)

    def _do_while(self, node: ast.While) -> None:
        head, body, after = self.label(), self.label(), self.label()
        loop = self.start_loop(head, _assigned_in(node))
        self.branch_on(node.test, body, after)
        self.start(body)
        self._body(node, head, after)
        self.close_loop(loop)
        self.start(after)

    def _body(self, node: ast.For | ast.While, following: str, after: str) -> None:
        self._scope.loops.append((following, after))
        self._block(node.body)
        self._scope.loops.pop()
        self.jump(following)

    def _do_for(self, node: Any) -> None:
        call = node.iter
        kind = getattr(call.func, "id", None) if isinstance(call, ast.Call) else None
        if kind not in ("range", "unrolled"):
            self.fail(node, "for goes over range(...) or unrolled(...)")
        bounds = [self.expression(x) for x in call.args]
        if kind == "unrolled":
            self._unroll(node, *bounds)
            return
        first, last = (bounds[0], bounds[1]) if len(bounds) > 1 else (Static(0), bounds[0])
        step = bounds[2] if len(bounds) > 2 else Static(1)
        if not isinstance(step, Static):
            self.fail(node, "the step of a range must be known when translating")
        head, body, following, after = (self.label() for _ in range(4))
        end = self.convert(last, I64, node)
        # A counter of its own, so that assignments to the variable do not change the number of iterations.
        self._assign(head, self.convert(first, I64, node))
        loop = self.start_loop(head, (head, *_assigned_in(node)))
        now = self.read(head)
        comparison = "slt" if step.value > 0 else "sgt"
        self.branch(self.assign(f"icmp {comparison} i64 {now.text}, {end.text}", BOOL), body, after)
        self.start(body)
        self._assign(node.target.id, now, node)
        self._body(node, following, after)
        self.start(following)
        self.names[head] = self.assign(f"add nsw i64 {now.text}, {step.value}", I64)
        self.close_loop(loop)
        self.start(after)
        self.names.pop(head, None)

    def _unroll(self, node: Any, count: Static) -> None:
        if not isinstance(count, Static):
            self.fail(node, "the number of iterations must be known when translating")
        after = self.label()
        for i in range(count.value):
            following = self.label()
            self.names[node.target.id] = Static(i)
            self._body(node, following, after)
            self.start(following)
            if not self.block:
                break
        self.jump(after)
        self.start(after)

    def _do_break(self, node: ast.Break) -> None:
        self.jump(self._scope.loops[-1][1])

    def _do_continue(self, node: ast.Continue) -> None:
        self.jump(self._scope.loops[-1][0])


class Translator:
    """Translates kernels and the routines that they call, each once for each combination of types.

    Args:
        letter: the BLAS letter that replaces ``?`` in symbols.
        flags: fast-math flags of float arithmetic, such as ``"reassoc contract"``.
        pure: attributes of functions that have no pointers, and so touch no memory.
        prefix: the beginning of the symbols of routines.
        register: bytes of the vector registers of the target.
        apart: whether arguments point at memory that nothing else points at.

    Attributes:
        declarations: of what the definitions call.
        called: the C functions among it.
    """

    def __init__(
        self,
        letter: str = "d",
        flags: str = "",
        *,
        pure: str = "nounwind",
        prefix: str = "graphc_routine",
        register: int = 16,
        apart: bool = True,
    ) -> None:
        self.letter, self.register = letter, register
        self._pointer = "ptr noalias" if apart else "ptr"
        self.flags = f" {flags}" if flags else ""
        self.declarations: set[str] = set()
        self.called: set[str] = set()
        self._pure, self._prefix = pure, prefix
        self._definitions: list[_Definition] = []
        self._tables: list[str] = []
        self._routines: dict[object, tuple[str, Type | None]] = {}
        self._calls: Counter[str] = Counter()

    def define(
        self,
        function: Routine,
        symbol: str,
        arguments: Sequence[Operand],
        linkage: str = "",
        attributes: str = "",
    ) -> Type | None:
        """Adds the definition of a function for arguments of these types; returns its result type."""
        body = Function(self, function, arguments)
        parameters = ", ".join(
            f"{self._pointer if x.type.pointer else x.type.llvm} {x.text}"
            for x in arguments
            if isinstance(x, Value)
        )
        text, result = body.translate()
        kind = "void" if result is None else result.llvm
        head = f"define {linkage}{kind} @{symbol}({parameters})"
        has_pointers = any(isinstance(x, Value) and x.type.pointer for x in arguments)
        given = f"{attributes} {'nounwind' if has_pointers else self._pure}".lstrip()
        how = getattr(function, "attributes", "")
        self._definitions.append(_Definition(symbol, head, given, text, how))
        self._routines[_key(function, arguments)] = symbol, result
        return result

    def routine(self, function: Routine, arguments: Sequence[Operand]) -> tuple[str, Type | None]:
        """Symbol and result type of a routine for arguments of these types."""
        key = _key(function, arguments)
        if key not in self._routines:
            symbol = f"{self._prefix}.{function.__name__}.{len(self._routines)}"
            formal = [Value(f"%p{i}", x.type) if isinstance(x, Value) else x for i, x in enumerate(arguments)]
            self._routines[key] = symbol, None
            self.define(function, symbol, formal, "internal ")
        symbol, result = self._routines[key]
        self._calls[symbol] += 1
        return symbol, result

    def table(self, values: tuple[float, ...], kind: Type) -> str:
        """Symbol of a constant array."""
        key = ("table", kind, repr(values))
        if key not in self._routines:
            symbol = f"{self._prefix}.table.{len(self._routines)}"
            elements = ", ".join(f"{kind.llvm} {literal(x, kind)}" for x in values)
            self._tables.append(
                f"@{symbol} = private unnamed_addr constant [{len(values)} x {kind.llvm}] [{elements}]\n"
            )
            self._routines[key] = symbol, None
        return self._routines[key][0]

    def definitions(self) -> str:
        """Everything that was defined."""
        return "".join([*self._tables, *(x.text(self._calls[x.symbol]) for x in self._definitions)])

    def text(self) -> str:
        """Everything that was defined, and what it needs."""
        return "".join([self.definitions(), *(f"{line}\n" for line in sorted(self.declarations))])


def _key(function: Routine, arguments: Sequence[Operand]) -> object:
    """The key that tells routines apart."""
    kinds = (x.type if isinstance(x, Value) else ("static", type(x.value), x.value) for x in arguments)
    return function, tuple(kinds)


@record(frozen=True)
class _Definition:
    """A translated function.

    Attributes:
        symbol: its name.
        head: of the definition, up to the attributes.
        attributes: those that do not depend on its callers.
        body: of the definition, without braces.
        how: it is made, if that was said.
    """

    symbol: str
    head: str
    attributes: str
    body: str
    how: str

    def text(self, calls: int) -> str:
        """The definition. With a single call it is copied there at once, and not optimised before, too."""
        copied = calls == 1 and "noinline" not in self.attributes
        how = self.how or ("alwaysinline" if copied else "")
        return f"{' '.join(filter(None, (self.head, how, self.attributes)))} {{\n{self.body}}}\n"
