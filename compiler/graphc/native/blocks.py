# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Blocks of the kernel language in SSA form: what each variable stands for where control flow meets.

A variable is a name for a value, another one after each assignment. Control flow is structured, so the values
that meet at the beginning of a block are known when it begins, but for those that come back at the end of a
loop: variables that the loop assigns get a phi at its head, which learns of these at the end, and of its type
at the first assignment. Phis that nothing reads are not written.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING, Any

from graphc.native.types import Operand, Static, Type, Value, literal, natural_type

if TYPE_CHECKING:
    from graphc.native.translate import Translator

_UNKNOWN = Type("unknown")


class Phi:
    """A value that depends on where control comes from.

    Attributes:
        name: of the variable, whose type it has.
        kinds: the types of variables.
        value: it, of a type that is not known yet.
        incoming: what it is for each block that control comes from; None if it has no value there.
        guess: the type if the variable is only read; None where that is not known either.
        is_read: whether an instruction has it as operand.
    """

    def __init__(
        self, name: str, kinds: dict[str, Type], value: Value, incoming: Iterable[tuple[str, Operand | None]]
    ) -> None:
        self.name, self.kinds, self.value = name, kinds, value
        self.incoming = [*incoming]
        self.guess: Type | None = None
        self.is_read = False

    def __str__(self) -> str:
        kind = self.kinds[self.name]
        pairs = ", ".join(f"[ {_operand(x, kind)}, %{block} ]" for block, x in self.incoming)
        return f"  {self.value.text} = phi {kind.llvm} {pairs}\n"


class Loop:
    """A loop being written.

    Attributes:
        head: the label that its iterations begin at.
        before: the block from which it is entered.
        place: of its phis among the lines.
        phis: of the variables that it assigns.
    """

    def __init__(self, head: str, before: str, place: int) -> None:
        self.head, self.before, self.place = head, before, place
        self.phis: dict[str, Phi] = {}


class Blocks:
    """The lines of one function.

    Attributes:
        names: the values of variables at this point: `Value` or `Static`.
        kinds: the types of variables that are no `Static`.
        block: the one being written; empty where control never comes.
    """

    def __init__(self, translator: Translator) -> None:
        self.translator = translator
        self.names: dict[str, Any] = {}
        self.kinds: dict[str, Type] = {}
        self.block = "entry"
        self._allocas: list[str] = []
        self._lines: list[str | Phi] = []
        self._phis: dict[str, Phi] = {}
        self._edges: dict[str, list[tuple[str, dict[str, Any]]]] = {}
        self._count = 0

    # -- lines -----------------------------------------------------------------------------------------------

    def text(self) -> str:
        """Everything written."""
        used = [phi for phi in self._phis.values() if phi.is_read]
        while used:
            for _, x in used.pop().incoming:
                phi = self._phis.get(x.text) if isinstance(x, Value) else None
                if phi is not None and not phi.is_read:
                    phi.is_read = True
                    used.append(phi)
        lines = (str(x) for x in self._lines if isinstance(x, str) or x.is_read)
        return "".join(["entry:\n", *self._allocas, *lines])

    def emit(self, text: str) -> None:
        if self.block:
            self._lines.append(f"  {text}\n")

    def assign(self, text: str, type_: Type) -> Value:
        """A new value."""
        name = self._name()
        self.emit(f"{name} = {text}")
        return Value(name, type_)

    def alloca(self, kind: str) -> str:
        """Memory on the stack, taken once when the function begins."""
        name = self._name()
        self._allocas.append(f"  {name} = alloca {kind}\n")
        return name

    def read(self, name: str) -> Any:
        """What a variable stands for here; None if there is none of this name."""
        known = self.names.get(name)
        if not isinstance(known, Value) or known.text not in self._phis:
            return known
        phi = self._phis[known.text]
        if known.type is not _UNKNOWN:
            phi.is_read = True
            return known
        kind = self.kinds.get(name, phi.guess)
        if kind is None:
            return None
        self.kinds[name], phi.is_read = kind, True
        return Value(known.text, kind)

    def _name(self) -> str:
        self._count += 1
        return f"%v{self._count}"

    # -- control flow ----------------------------------------------------------------------------------------

    def label(self) -> str:
        self._count += 1
        return f"b{self._count}"

    def jump(self, label: str) -> None:
        if self.block:
            self._leave(label)
            self.end(f"br label %{label}")

    def branch(self, condition: Value, then: str, other: str) -> None:
        if condition.text in ("true", "false"):
            self.jump(then if condition.text == "true" else other)
        elif self.block:
            self._leave(then)
            self._leave(other)
            self.end(f"br i1 {condition.text}, label %{then}, label %{other}")

    def end(self, text: str) -> None:
        """Writes the instruction that ends a block."""
        self.emit(text)
        self.block = ""

    def start(self, label: str) -> None:
        """Begins a block after all jumps to it; without any, control never comes there."""
        edges = self._edges.pop(label, [])
        if len(edges) == 1 and self._lines[-1] == f"  br label %{label}\n":
            # What was being written goes on.
            self._lines.pop()
            self.block, self.names = edges[0]
            return
        self.block = label if edges else ""
        if edges:
            self._lines.append(f"{label}:\n")
            self.names = self._met(edges)

    def either(self, label: str, values: Sequence[tuple[str, object]]) -> Any:
        """Begins a block; the value, or tuple of values, is that of the block from which control comes."""
        blocks = {block for block, _ in self._edges.get(label, ())}
        self.start(label)
        return self._either([(block, x) for block, x in values if block in blocks])

    def _either(self, values: Sequence[tuple[str, Any]]) -> Any:
        first = values[0][1]
        if isinstance(first, tuple):
            places = range(len(first))
            return tuple(self._either([(block, x[place]) for block, x in values]) for place in places)
        if all(x == first for _, x in values):
            return first
        incoming = ", ".join(f"[ {x.text}, %{block} ]" for block, x in values)
        return self.assign(f"phi {first.type.llvm} {incoming}", first.type)

    def _leave(self, label: str) -> None:
        self._edges.setdefault(label, []).append((self.block, dict(self.names)))

    def _met(self, edges: list[tuple[str, dict[str, Any]]]) -> dict[str, Any]:
        """The variables where edges meet; one that is no number is what it is on all of them."""
        first = edges[0][1]
        if all(names == first for _, names in edges[1:]):
            return first
        found = {}
        for name in dict.fromkeys(name for _, names in edges for name in names):
            incoming = [(block, names.get(name)) for block, names in edges]
            known = incoming[0][1]
            if any(x != known for _, x in incoming):
                known = self._phi(name, incoming, len(self._lines)).value
            found[name] = known
        return found

    def _phi(self, name: str, incoming: Sequence[tuple[str, Operand | None]], place: int) -> Phi:
        """A value of a variable where others meet; its type is that of the variable when it is read."""
        phi = Phi(name, self.kinds, Value(self._name(), _UNKNOWN), incoming)
        for _, x in incoming:
            before = self._phis.get(x.text) if isinstance(x, Value) else None
            phi.guess = phi.guess or (before.guess if before else None)
            phi.guess = phi.guess or (natural_type(x.value) if isinstance(x, Static) else None)
        self._phis[phi.value.text] = phi
        self._lines.insert(place, phi)
        return phi

    # -- loops -----------------------------------------------------------------------------------------------

    def start_loop(self, head: str, assigned: Iterable[str]) -> Loop:
        """Begins the head of a loop that is entered from here.

        Args:
            head: its label.
            assigned: the variables that the loop may assign.
        """
        before = self.block
        self.emit(f"br label %{head}")
        self._lines.append(f"{head}:\n")
        self.block = head
        loop = Loop(head, before, len(self._lines))
        for name in assigned:
            phi = self._phi(name, [(before, self.names.get(name))], loop.place)
            loop.phis[name], self.names[name] = phi, phi.value
        return loop

    def close_loop(self, loop: Loop) -> None:
        """Goes back to the head of a loop, and tells its phis of all that comes there."""
        self.jump(loop.head)
        for block, names in self._edges.pop(loop.head, []):
            for name, phi in loop.phis.items():
                phi.incoming.append((block, names.get(name)))


def _operand(x: Operand | None, kind: Type) -> str:
    if x is None:
        return "undef"
    return literal(x.value, kind) if isinstance(x, Static) else x.text
