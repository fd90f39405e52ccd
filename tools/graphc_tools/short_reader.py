# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Reads the short form: gives the module in MLIR's generic form, with a location for each operation."""

from __future__ import annotations

import re
from dataclasses import dataclass, field

HEADER = "// graphc short form"
# Operations of other dialects that need no prefix; `func` is written as a function.
SHORT_NAMES = {"func.return": "return"}
_LONG_NAMES = {short: long for long, short in SHORT_NAMES.items()}
_OPEN, _CLOSE = "([{<", ")]}>"
_TENSOR = re.compile(r"([a-z]\w*|complex<\w+>)\[([\d?,\s]*)\]")
_INTEGERS = re.compile(r"\[\s*(-?\d+(\s*,\s*-?\d+)*)?\s*\]")
_TOKENS = {
    "value": re.compile(r"%[\w$.-]+"),
    "label": re.compile(r"\^[\w$.-]+"),
    "symbol": re.compile(r'@(?:[A-Za-z_][\w$.]*|"(?:[^"\\]|\\.)*")'),
    "name": re.compile(r'[A-Za-z_][\w.$]*|"(?:[^"\\]|\\.)*"'),
}
_BLANK = re.compile(r"(?:\s|//[^\n]*)+")
_STRING = re.compile(r'"(?:[^"\\]|\\.)*"')


class ShortFormError(Exception):
    """A text is no short form.

    Attributes:
        line, column: where, from 1.
    """

    def __init__(self, message: str, line: int, column: int) -> None:
        super().__init__(message)
        self.line, self.column = line, column


def is_short(source: str) -> bool:
    """True if a text says in its first line that it is in the short form."""
    return source.lstrip().startswith(HEADER)


def to_mlir(source: str) -> str:
    """The module of a short form, in MLIR's generic form.

    Raises:
        ShortFormError: the text is malformed, or uses a value that it does not define.

    Example:
        >>> print(to_mlir("%x = 2.0: f64[3]"), end="")
        %x = "arith.constant"() {value = dense<2.0> : tensor<3xf64>} : () -> (tensor<3xf64>) loc("-":1:1)
    """
    reader = _Reader(source)
    scope = _Scope()
    operations = []
    while not reader.at_end():
        operations.append(reader.operation(scope))
    return "\n".join(op.text(reader) for op in operations) + "\n"


class _Scope:
    """The values of a region, by name; regions see those around them."""

    def __init__(self, outer: _Scope | None = None) -> None:
        self._types: dict[str, str] = {}
        self._outer = outer

    def define(self, name: str, kind: str) -> bool:
        """Adds a value; false if there is one of that name."""
        fresh = name not in self._types
        self._types.setdefault(name, kind)
        return fresh

    def type_of(self, name: str) -> str | None:
        """The type of a value that can be seen here."""
        scope: _Scope | None = self
        while scope is not None:
            if name in scope._types:
                return scope._types[name]
            scope = scope._outer
        return None


@dataclass
class _Block:
    label: str
    arguments: list[tuple[str, str, str]]
    operations: list[_Operation] = field(default_factory=list)

    def text(self, reader: _Reader) -> str:
        shown = ", ".join(f"{name}: {kind} {place}" for name, kind, place in self.arguments)
        head = f"{self.label}({shown}):" if shown else f"{self.label}:"
        return "\n".join([head, *(op.text(reader) for op in self.operations)])


@dataclass
class _Operation:
    """An operation; its text is made when all values of the text are known."""

    name: str
    scope: _Scope
    location: str
    results: list[str] = field(default_factory=list)
    types: list[str] = field(default_factory=list)
    operands: list[tuple[str, int]] = field(default_factory=list)
    attributes: list[str] = field(default_factory=list)
    labels: list[str] = field(default_factory=list)
    regions: list[list[_Block]] = field(default_factory=list)

    def text(self, reader: _Reader) -> str:
        """The operation in the generic form."""
        kinds = []
        for name, place in self.operands:
            kind = self.scope.type_of(name)
            if kind is None:
                raise reader.error(f"no value {name} is defined here", place)
            kinds.append(kind)
        head = f"{', '.join(self.results)} = " if self.results else ""
        labels = f"[{', '.join(self.labels)}]" if self.labels else ""
        regions = [
            "{\n" + "\n".join(block.text(reader) for block in blocks) + "\n}" for blocks in self.regions
        ]
        inside = f" ({', '.join(regions)})" if regions else ""
        attributes = f" {{{', '.join(self.attributes)}}}" if self.attributes else ""
        signature = f"({', '.join(kinds)}) -> ({', '.join(self.types)})"
        operands = ", ".join(name for name, _ in self.operands)
        call = f'"{self.name}"({operands}){labels}{inside}{attributes}'
        return f"{head}{call} : {signature} {self.location}"


class _Reader:
    """A text and a place in it."""

    def __init__(self, text: str) -> None:
        self._text = text
        self._at = 0

    def error(self, message: str, place: int | None = None) -> ShortFormError:
        """The error for a place, by default where the reader is."""
        line, column = self._position(self._at if place is None else place)
        return ShortFormError(message, line, column)

    def _position(self, place: int) -> tuple[int, int]:
        before = self._text[:place]
        return before.count("\n") + 1, place - (before.rfind("\n") + 1) + 1

    def _skip(self) -> None:
        if found := _BLANK.match(self._text, self._at):
            self._at = found.end()

    def at_end(self) -> bool:
        """True if only blanks and comments are left."""
        self._skip()
        return self._at >= len(self._text)

    def _next_is(self, mark: str) -> bool:
        self._skip()
        return self._text.startswith(mark, self._at)

    def _take(self, mark: str) -> bool:
        if self._next_is(mark):
            self._at += len(mark)
            return True
        return False

    def _expect(self, mark: str, where: str) -> None:
        if not self._take(mark):
            given = self._text[self._at : self._at + 1] or "the end"
            raise self.error(f"expected '{mark}' {where}, got '{given}'")

    def _token(self, kind: str, where: str) -> str:
        self._skip()
        found = _TOKENS[kind].match(self._text, self._at)
        if found is None:
            given = self._text[self._at : self._at + 1] or "the end"
            raise self.error(f"expected a {kind} {where}, got '{given}'")
        self._at = found.end()
        return found[0]

    def _balanced(self, ends: str, where: str) -> str:
        """The text up to the first of some characters that is in no brackets, string or comment."""
        self._skip()
        start = piece = self._at
        opened, pieces = list[int](), list[str]()
        while self._at < len(self._text):
            char = self._text[self._at]
            if char == '"':
                self._at = self._end_of_string()
            elif self._text.startswith("//", self._at):
                pieces.append(self._text[piece : self._at])
                end = self._text.find("\n", self._at)
                self._at = piece = end if end >= 0 else len(self._text)
            elif not opened and (char in ends or self._text.startswith(" loc(", self._at)):
                break
            elif self._text.startswith(("->", ">=", "<="), self._at):
                self._at += 2
            else:
                self._bracket(char, opened, where)
                self._at += 1
        if opened:
            raise self.error(f"'{self._text[opened[-1]]}' is not closed {where}", opened[-1])
        text = "".join([*pieces, self._text[piece : self._at]]).strip()
        if not text:
            raise self.error(f"something is missing {where}", start)
        return text

    def _end_of_string(self) -> int:
        found = _STRING.match(self._text, self._at)
        if found is None:
            raise self.error("this string has no end")
        return found.end()

    def _bracket(self, char: str, opened: list[int], where: str) -> None:
        """Keeps the places of brackets that are open."""
        if char in _OPEN:
            opened.append(self._at)
        elif char in _CLOSE:
            if not opened:
                raise self.error(f"'{char}' closes nothing {where}")
            place = opened.pop()
            if _OPEN.index(self._text[place]) != _CLOSE.index(char):
                raise self.error(f"'{self._text[place]}' is not closed {where}", place)

    def _type(self, ends: str) -> str:
        text = self._balanced(ends, "in a type")
        found = _TENSOR.fullmatch(text)
        if found is None:
            return text
        sizes = [size.strip() for size in found[2].split(",")] if found[2].strip() else []
        return f"tensor<{''.join(f'{size}x' for size in sizes)}{found[1]}>"

    def _location(self, place: int) -> str:
        """The location that is written next; else that of a place in this text."""
        if self._next_is("loc("):
            self._at += 3
            start = self._at
            self._at += 1
            self._balanced(")", "in a location")
            self._at += 1
            return f"loc{self._text[start : self._at]}"
        line, column = self._position(place)
        return f'loc("-":{line}:{column})'

    # -- structure -------------------------------------------------------------------------------------------

    def operation(self, scope: _Scope) -> _Operation:
        """Reads an operation."""
        self._skip()
        start = self._at
        results: list[str] = []
        if self._next_is("%"):
            results.append(self._token("value", "before '='"))
            while self._take(","):
                results.append(self._token("value", "before '='"))
            self._expect("=", "after the results")
        self._skip()
        name = re.compile(r"[A-Za-z_][\w.$]*(?=\s*[(@])|func(?=\s)").match(self._text, self._at)
        if name is None and results:
            return self._constant(scope, results, start)
        if name is None:
            raise self.error("expected an operation: name(operands, attributes): types of results")
        self._at = name.end()
        if name[0] == "func":
            return self._function(scope, start)
        long = _LONG_NAMES.get(name[0]) or (name[0] if "." in name[0] else f"graphc.{name[0]}")
        op = _Operation(long, scope, "", results)
        self._parenthesis(op)
        if self._take("["):
            while not self._take("]"):
                op.labels.append(self._token("label", "in the list of blocks"))
                self._take(",")
        self._results(op, start)
        while self._next_is("{"):
            op.regions.append(self._region(_Scope(scope), []))
        return op

    def _constant(self, scope: _Scope, results: list[str], start: int) -> _Operation:
        value = self._balanced(":\n", "after '='")
        op = _Operation("arith.constant", scope, "", results)
        self._results(op, start)
        kind = op.types[0]
        shaped = kind.startswith(("tensor<", "vector<")) and not value.startswith("dense")
        text = f"dense<{value}>" if shaped else value
        op.attributes = [f"value = {text}" if text in ("true", "false") else f"value = {text} : {kind}"]
        return op

    def _results(self, op: _Operation, start: int) -> None:
        """Reads the types of results and a location, and defines the results."""
        if self._text[self._at : self._at + 1] == ":" or (op.results and self._next_is(":")):
            self._at += 1
            op.types.append(self._type(",{\n"))
            while self._take(","):
                op.types.append(self._type(",{\n"))
        if len(op.types) != len(op.results):
            counts = f"{len(op.results)} results and {len(op.types)} types"
            raise self.error(f"{op.name} has {counts}; write ': type, type' after the operation", start)
        op.location = self._location(start)
        for name, kind in zip(op.results, op.types, strict=True):
            if not op.scope.define(name, kind):
                raise self.error(f"{name} is defined twice", start)

    def _parenthesis(self, op: _Operation) -> None:
        self._expect("(", f"after {op.name}")
        while not self._take(")"):
            self._skip()
            place = self._at
            if self._next_is("%"):
                op.operands.append((self._token("value", "here"), place))
            else:
                op.attributes.append(self._attribute(op.name))
            if not self._take(",") and not self._next_is(")"):
                raise self.error(f"expected ',' or ')' in {op.name}(...)")

    def _attribute(self, owner: str) -> str:
        name = self._token("name", f"of an attribute of {owner}")
        if not self._take("="):
            return name
        if self._take("#["):
            self._at -= 1
            return f"{name} = {self._balanced(',)', f'in {name}')}"
        text = self._balanced(",)", f"in {name}")
        if found := _INTEGERS.fullmatch(text):
            text = f"array<i64: {found[1]}>" if found[1] else "array<i64>"
        return f"{name} = {text}"

    def _function(self, scope: _Scope, start: int) -> _Operation:
        symbol = self._token("symbol", "after func")
        inner = _Scope(scope)
        arguments = self._arguments(inner)
        op = _Operation("func.func", scope, "")
        if self._take("with"):
            self._parenthesis(op)
        results: list[str] = []
        if self._take("->"):
            if self._take("("):
                while not self._take(")"):
                    results.append(self._type(",)"))
                    self._take(",")
            else:
                results.append(self._type("{\n"))
        kinds = ", ".join(kind for _, kind, _ in arguments)
        name = symbol[1:] if symbol.startswith('@"') else f'"{symbol[1:]}"'
        op.attributes += [f"sym_name = {name}", f"function_type = ({kinds}) -> ({', '.join(results)})"]
        op.location = self._location(start)
        op.regions.append(self._region(inner, arguments))
        return op

    def _arguments(self, scope: _Scope) -> list[tuple[str, str, str]]:
        found: list[tuple[str, str, str]] = []
        self._expect("(", "before arguments")
        while not self._take(")"):
            self._skip()
            place = self._at
            name = self._token("value", "as an argument")
            self._expect(":", f"after {name}")
            kind = self._type(",)")
            if not scope.define(name, kind):
                raise self.error(f"{name} is defined twice", place)
            found.append((name, kind, self._location(place)))
            if not self._take(",") and not self._next_is(")"):
                raise self.error("expected ',' or ')' after an argument")
        return found

    def _region(self, scope: _Scope, arguments: list[tuple[str, str, str]]) -> list[_Block]:
        self._expect("{", "before a region")
        blocks: list[_Block] = []
        while not self._take("}"):
            if self.at_end():
                raise self.error("a region has no '}'")
            if self._next_is("^"):
                label = self._token("label", "of a block")
                inner = self._arguments(scope) if self._next_is("(") else []
                self._expect(":", f"after {label}")
                blocks.append(_Block(label, inner or (arguments if not blocks else [])))
                continue
            if not blocks:
                blocks.append(_Block("^bb0", arguments))
            blocks[-1].operations.append(self.operation(scope))
        return blocks
