# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""The kernel language: a small part of Python, translated to LLVM IR.

Kernels work on single arrays given by pointers: `a[i]`, `a[k:]` (the pointer moved by k), numbers, `for` over
`range`, `while`, `if`, and calls of routines of the same kind and of C functions. A variable has the type of
its first value. What is known when translating (attributes of the operation, types) is computed then, and a
branch on it is decided then; a tuple of floats with an index that is not known is a constant array. Integers
are signed 64-bit unless loaded from arrays of others.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence

from graphc.native.statements import Function
from graphc.native.types import Operand, Routine, Type, Value, literal
from graphc_runtime.record import record


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
    """What tells routines apart."""
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
