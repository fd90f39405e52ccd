# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Modules in a short form: an operation a line, types where values are defined and nowhere else.

    // graphc short form
    func @main(%x: f64[?]) -> f64[] {
      %0 = exp(%x): f64[?]
      %1 = reduce_sum(%0, axes=[0]): f64[]
      return(%1)
    }

It is the generic form without what a reader can look up: the types of operands, quotes, the prefix of our
dialect. So it has every operation of every dialect, and `short_reader.to_mlir` gives the module back.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

from graphc_dialects._mlir import ir
from graphc_tools.short_reader import HEADER, SHORT_NAMES

if TYPE_CHECKING:
    from collections.abc import Iterator

_WORD = re.compile(r"[A-Za-z_][\w.$]*")
_INTEGERS = re.compile(r"\[(-?\d+(, -?\d+)*)?\]")
_NUMBER = re.compile(r"-?\d+\.\d+(e[+-]\d+)?")
_NODE = re.compile(r"n\d+")


def short_form(module: ir.Module, *, locations: bool = False) -> str:
    """A module as text.

    Args:
        module: of any stage.
        locations: write where operations and arguments come from.

    Example:
        >>> from graphc_dialects._mlir import ir
        >>> from graphc_dialects.dialect import new_context
        >>> text = 'func.func @f(%x: tensor<3xf64>) -> tensor<3xf64> { return %x : tensor<3xf64> }'
        >>> print(short_form(ir.Module.parse(text, context=new_context())), end="")
        // graphc short form
        func @f(%arg0: f64[3]) -> f64[3] {
          return(%arg0)
        }
    """
    writer = _Writer(locations)
    top = module.operation
    operations = [op.operation for op in top.regions[0].blocks[0].operations]
    # A text of one module is that module, not one around it.
    if len(top.attributes) or [op.name for op in operations] == ["builtin.module"]:
        operations = [top]
    for op in operations:
        writer.operation(op, 0)
    return "\n".join([HEADER, *writer.lines]) + "\n"


class _Writer:
    def __init__(self, locations: bool) -> None:
        self.lines: list[str] = []
        self._locations = locations
        self._names: dict[ir.Value, str] = {}
        self._taken: set[str] = set()
        self._counts: dict[str, int] = {}
        self._types: dict[ir.Type, str] = {}

    def operation(self, op: ir.Operation, depth: int) -> None:
        """Appends the lines of an operation."""
        indent = "  " * depth
        if _is_function(op):
            self._open(f"{indent}{self._function(op)}", op.regions[0], depth, entry=False)
            return
        names = [self._name(result, "") for result in op.results]
        head = f"{', '.join(names)} = " if names else ""
        literal = _literal(op)
        line = f"{indent}{head}{literal or self._call(op)}"
        if names:
            line += f": {', '.join(self._type(result.type) for result in op.results)}"
        line += self._place(op.location)
        if not len(op.regions):
            self.lines.append(line)
        for number, region in enumerate(op.regions):
            self._open(self.lines.pop() if number else line, region, depth, entry=True)

    def _open(self, line: str, region: ir.Region, depth: int, *, entry: bool) -> None:
        """Appends a line, and a region in braces after it."""
        blocks = list(region.blocks)
        self.lines.append(f"{line} {{" if blocks else f"{line} {{}}")
        labels = {block: f"^bb{number}" for number, block in enumerate(blocks)}
        for block, label in labels.items():
            bare = block == blocks[0] and len(block.operations) and not (entry and len(block.arguments))
            if not bare:
                self.lines.append(f"{'  ' * depth}{label}{self._arguments(block)}:")
            for inner in block.operations:
                self.operation(inner.operation, depth + 1)
                if len(inner.operation.successors):
                    self.lines[-1] = _with_labels(self.lines[-1], [labels[b] for b in inner.successors])
        if blocks:
            self.lines.append(f"{'  ' * depth}}}")

    def _function(self, op: ir.Operation) -> str:
        kind = ir.TypeAttr(op.attributes["function_type"]).value
        results = [self._type(result) for result in ir.FunctionType(kind).results]
        block = op.regions[0].blocks[0]
        symbol = str(ir.FlatSymbolRefAttr.get(ir.StringAttr(op.attributes["sym_name"]).value, op.context))
        rest = [item for item in self._attributes(op) if not item.startswith(("sym_name=", "function_type="))]
        text = f"func {symbol}{self._arguments(block) or '()'}"
        if rest:
            text += f" with({', '.join(rest)})"
        if results:
            text += " -> " + (results[0] if len(results) == 1 else f"({', '.join(results)})")
        return text + self._place(op.location)

    def _arguments(self, block: ir.Block) -> str:
        texts = [
            f"{self._name(argument, 'arg')}: {self._type(argument.type)}{self._place(argument.location)}"
            for argument in block.arguments
        ]
        return f"({', '.join(texts)})" if texts else ""

    def _call(self, op: ir.Operation) -> str:
        dialect, _, name = op.name.partition(".")
        name = name if dialect == "graphc" else SHORT_NAMES.get(op.name, op.name)
        operands = [self._names.get(value) or self._name(value, "") for value in op.operands]
        # Labels come where the block is written that has them.
        labels = "[]" if len(op.successors) else ""
        return f"{name}({', '.join([*operands, *self._attributes(op)])}){labels}"

    def _attributes(self, op: ir.Operation) -> Iterator[str]:
        for name, attribute in sorted((name, op.attributes[name]) for name in op.attributes):
            word = name if _WORD.fullmatch(name) else f'"{name}"'
            text = _attribute(attribute)
            yield f"{word}={text}" if text else word

    def _type(self, kind: ir.Type) -> str:
        if kind not in self._types:
            self._types[kind] = _type(str(kind))
        return self._types[kind]

    def _name(self, value: ir.Value, stem: str) -> str:
        """The name of a value, made from its location where that has one and otherwise a number."""
        if value in self._names:
            return self._names[value]
        name = _named(value)
        if not name or name in self._taken:
            number = self._counts.get(stem, 0)
            while (name := f"{stem}{number}") in self._taken:
                number += 1
            self._counts[stem] = number + 1
        self._taken.add(name)
        self._names[value] = f"%{name}"
        return self._names[value]

    def _place(self, location: ir.Location) -> str:
        return f" {location}" if self._locations else ""


def _with_labels(line: str, labels: list[str]) -> str:
    """A line of an operation with successors, which has empty brackets for them."""
    before, _, after = line.rpartition(")[]")
    return f"{before})[{', '.join(labels)}]{after}"


def _is_function(op: ir.Operation) -> bool:
    """True if an operation can be written as a function: it has a body that takes its arguments."""
    if op.name != "func.func" or not len(op.regions[0].blocks):
        return False
    kind = ir.FunctionType(ir.TypeAttr(op.attributes["function_type"]).value)
    return [argument.type for argument in op.regions[0].blocks[0].arguments] == list(kind.inputs)


def _literal(op: ir.Operation) -> str:
    """A constant as its value, where the type of its result says the rest; nothing for other operations."""
    if op.name != "arith.constant" or len(op.attributes) != 1:
        return ""
    attribute, kind = op.attributes["value"], op.results[0].type
    text, suffix = str(attribute), f" : {kind}"
    plain = text.removesuffix(suffix)
    if text == plain and text not in ("true", "false"):
        return ""
    if plain.startswith("dense<") and not plain.startswith(('dense<"', "dense<[", "dense<>")):
        plain = plain[6:-1]  # one value for all elements
    return _number(plain)


def _number(text: str) -> str:
    """A number without digits that say nothing, as long as it is the same number."""
    if not _NUMBER.fullmatch(text):
        return text
    short = repr(float(text))
    if "e" in short:
        mantissa, _, exponent = short.partition("e")
        short = f"{mantissa if '.' in mantissa else mantissa + '.0'}e{exponent}"
    return short


def _attribute(attribute: ir.Attribute) -> str:
    """The text of an attribute; nothing for one that says only that it is there."""
    text = str(attribute)
    if text == "unit":
        return ""
    if text.startswith("array<i64"):
        return f"[{text[9:-1].removeprefix(': ')}]"
    if _INTEGERS.fullmatch(text):
        return f"#{text}"  # of attributes, which look the same
    for suffix in (" : i64", " : f64"):
        if text.endswith(suffix) and '"' not in text and "<" not in text:
            return _number(text.removesuffix(suffix))
    return text


def _type(text: str) -> str:
    """`f64[?,3]` for `tensor<?x3xf64>`; other types are as they are."""
    found = re.fullmatch(r"tensor<((?:(?:\d+|\?)x)*)([a-z]\w*|complex<\w+>)>", text)
    return f"{found[2]}[{found[1].rstrip('x').replace('x', ',')}]" if found else text


def _named(value: ir.Value) -> str:
    """The name in a value's location, such as a variable's; nothing for names of nodes."""
    location = value.location if isinstance(value.owner, ir.Block) else value.owner.location
    if not isinstance(location, ir.NameLoc):
        return ""
    name = str(location.name_str)
    return name if re.fullmatch(r"[A-Za-z_]\w*", name) and not _NODE.fullmatch(name) else ""
