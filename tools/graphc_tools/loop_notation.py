# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Graph-stage IR in the notation of recurrences, for pages: one line for what takes five in the dialect.

A state's row that iteration t computes is `h[t]`, `h[t-1]` the one before; operations that are read once
stand where they are read. Element types, axes of size 1 and casts between static shapes are left out.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import Any, NamedTuple

from graphc.ir.walk import functions
from graphc_dialects._mlir import ir

# Wider expressions get a name and a line of their own.
_WIDTH = 44
_SIGNS = {"add": ("+", 1), "sub": ("-", 1), "mul": ("*", 2)}
_INFIX = {form.format(name): sign for name, sign in _SIGNS.items() for form in ("graphc.{}", "arith.{}i")}
_INFIX |= {"graphc.true_div": ("/", 2), "arith.andi": ("and", -1)}
_INFIX |= {
    f"graphc.{name}": (sign, 0) for name, sign in (("lt", "<"), ("gt", ">"), ("le", "<="), ("ge", ">="))
}
_COMPARISONS = ("==", "!=", "<", "<=", ">", ">=")
_TRANSPARENT = frozenset(
    "tensor.cast graphc.specify_shape arith.index_cast tensor.from_elements tensor.extract".split()
)
_SILENT = {"graphc.scan_end", "func.return"}
_ATOM = 9


class Text(NamedTuple):
    """An expression and how tightly its outermost operator binds."""

    text: str
    binds: int = _ATOM

    def within(self, binds: int) -> str:
        """The text as an operand of an operator."""
        return self.text if self.binds >= binds else f"({self.text})"


def loop_notation(module: ir.Module, arguments: Sequence[str] = (), *, checks: bool = True) -> list[str]:
    """The lines of a module's `@main`.

    Args:
        module: an `ir.Module` of the graph stage.
        arguments: names of the function's arguments; by default those in their locations.
        checks: show `graphc.check` too.
    """
    function = next(f for f in functions(module) if f.attributes["sym_name"].value == "main")
    writer = _Writer(arguments, checks)
    writer.function(function)
    return writer.lines


class _Loop(NamedTuple):
    """The loop being written."""

    scan: Any
    time: str
    reverse: bool
    outer: Any


class _Writer:
    def __init__(self, arguments: Sequence[str], checks: bool) -> None:
        self.lines: list[str] = []
        self._arguments = arguments
        self._checks = checks
        self._depth = 0
        self._texts: dict[ir.Value, Text] = {}
        self._taken: set[str] = set()
        self._loop = _Loop(None, "", False, None)
        self._states: dict[tuple[ir.Operation, str], str] = {}
        # Of values that a state or an output stores: its row, and what is kept.
        self._rows: dict[ir.Value, tuple[str, str]] = {}

    def _line(self, text: str, note: str = "") -> None:
        self.lines.append("    " * self._depth + text + (f"    # {note}" if note else ""))

    # -- structure -------------------------------------------------------------------------------------------

    def function(self, op: ir.Operation) -> None:
        block = op.regions[0].blocks[0]
        names = list(self._arguments) or [_name(a.location) or "arg" for a in block.arguments]
        for argument, name in zip(block.arguments, names, strict=True):
            self._texts[argument] = Text(self._unique(name))
        shapes = [f"{self._texts[a].text}{_shape_text(a.type)}" for a in block.arguments]
        self._line(f"main({', '.join(shapes)}):")
        self._depth = 1
        self._block(block)
        returned = next(o.operation for o in block.operations if o.operation.name == "func.return")
        self._line(f"return {', '.join(self._of(x).text for x in returned.operands)}")

    def _block(self, block: ir.Block) -> None:
        for op in block.operations:
            if op.operation.name not in _SILENT:
                self._operation(op.operation)

    def _operation(self, op: ir.Operation) -> None:
        if op.name == "graphc.scan":
            self._scan(op)
        elif op.name == "graphc.check":
            if self._checks:
                self._line(f"check {self._of(op.operands[0]).text}")
        elif op.name in ("graphc.scan_carry", "graphc.scan_collect"):
            self._store(op)
        elif len(op.results) == 1:
            self._define(op, op.results[0])

    def _define(self, op: ir.Operation, result: ir.Value) -> None:
        """Gives a result its text: the expression itself where it is read once, a name otherwise."""
        text = self._expression(op)
        uses = _readers(result)
        if not uses:
            return
        row, note = self._rows.get(result, ("", ""))
        once = len(uses) == 1 and uses[0].block == op.block and len(text.text) <= _WIDTH
        atom = text.binds == _ATOM and "(" not in text.text
        if (row and len(uses) > 1) or (row and not once):
            self._line(f"{row} = {text.text}", note)
            self._texts[result] = Text(row)
        elif atom or once or _is_index(result.type):
            self._texts[result] = text
        else:
            name = self._unique(_name(op.location) or _default_name(op, text.text))
            self._line(f"{name} = {text.text}")
            self._texts[result] = Text(name)

    def _unique(self, name: str) -> str:
        stem = name.rstrip("0123456789") or name
        number = 1
        while name in self._taken:
            number += 1
            name = f"{stem}{number}"
        self._taken.add(name)
        return name

    # -- loops -----------------------------------------------------------------------------------------------

    def _scan(self, op: ir.Operation) -> None:
        block = op.regions[0].blocks[0]
        t = self._unique(_name(block.arguments[0].location) or "t")
        self._texts[block.arguments[0]] = Text(t)
        n = self._of(op.operands[0]).within(2)
        last = str(int(n) - 1) if n.isdigit() else f"{n}-1"
        reverse = op.attributes["reverse"].value
        bounds = f"{t} = {last} ... 0" if reverse else f"{t} = 0 ... {last}"
        marks = [name for name in op.attributes if name not in ("name", "reverse")]
        self._line(f'scan "{op.attributes["name"].value}", {", ".join([bounds, *marks])}:')
        self._depth += 1
        outer, self._loop = self._loop, _Loop(op, t, reverse, self._loop)
        for inner in (o.operation for o in block.operations):
            if inner.name in ("graphc.scan_carry", "graphc.scan_collect"):
                for value, row, note in self._stored(inner):
                    if _is_computed(value, block):
                        self._rows.setdefault(value, (row, note))
        self._block(block)
        end = list(block.operations)[-1].operation
        if len(end.operands):
            self._line(f"until {self._of(end.operands[0]).text}")
        self._depth -= 1
        self._taken.discard(t)
        self._loop = outer

    def _state(self, scan: ir.Operation, name: str) -> str:
        """Name of a state here: other loops and values may have taken its own."""
        if (scan, name) not in self._states:
            self._states[scan, name] = self._unique(name)
        return self._states[scan, name]

    def _stored(self, op: ir.Operation) -> list[tuple[ir.Value, str, str]]:
        """Value, row and note of each row that a declaration stores."""
        t, keep = self._loop.time, op.attributes["keep"].value
        name = self._state(self._loop.scan, op.attributes["state"].value)
        kept = {"all": "keep all", "steps": "keep the steps"}.get(keep, "")
        if not kept:
            rows = op.attributes["rows"].value
            kept = f"keep the last {rows} rows" if rows > 1 else f"keep {'the last row' if rows else 'none'}"
        if op.name == "graphc.scan_collect":
            return [(op.operands[0], f"{name}[{t}]", kept)]
        place = " in place" if "inplace" in op.attributes else ""
        note = f"from {self._of(op.operands[0]).text}{place}, {kept}"
        stored = []
        for value, write in zip(list(op.operands)[1:], op.attributes["writes"], strict=True):
            row = f"{name}[{_shifted(t, write, self._loop.reverse)}]"
            stored.append((value, row, "" if write else note))
        return stored

    def _store(self, op: ir.Operation) -> None:
        for value, row, note in self._stored(op):
            if self._of(value).text != row:
                self._line(f"{row} = {self._of(value).text}", note)

    # -- expressions -----------------------------------------------------------------------------------------

    def _of(self, value: ir.Value) -> Text:
        return self._texts[value]

    def _expression(self, op: ir.Operation) -> Text:
        operands = list(op.operands)
        if op.name in _TRANSPARENT:
            return self._of(operands[0])
        if op.name in ("arith.constant", "graphc.constant"):
            return Text(_constant(op.attributes["value"]))
        if op.name in _INFIX:
            return self._infix(op, *_INFIX[op.name])
        rule = getattr(self, f"_{op.name.partition('.')[2]}", None)
        if rule is not None:
            return rule(op)
        return self._call(op)

    def _call(self, op: ir.Operation) -> Text:
        name = op.name.partition(".")[2].removeprefix("reduce_").removesuffix("si")
        words = [self._of(x).text for x in op.operands]
        attributes = {k: _attribute(op.attributes[k]) for k in op.attributes if k != "cluster"}
        words += [f"{key}={text}" for key, text in attributes.items() if text != "false"]
        return Text(f"{name}({', '.join(words)})")

    def _infix(self, op: ir.Operation, sign: str, binds: int) -> Text:
        left, right = op.operands
        if sign == "*" and _factor(left)[1] == [0, -1] and _factor(right)[1] == [-1, 0]:
            return Text(f"outer({self._of(_factor(left)[0]).text}, {self._of(_factor(right)[0]).text})")
        a, b = self._of(left).within(binds), self._of(right).within(binds + 1)
        if sign == "+" and b.startswith("-") and b[1:].isdigit():
            sign, b = "-", b[1:]
        if sign == "+" and _is_index(op.results[0].type) and a.isdigit() and b.isdigit():
            return Text(str(int(a) + int(b)))
        tight = _is_index(op.results[0].type) and binds > 0
        return Text(f"{a}{sign}{b}" if tight else f"{a} {sign} {b}", binds)

    def _select(self, op: ir.Operation) -> Text:
        return Text(f"where({', '.join(self._of(x).text for x in op.operands)})")

    def _cmpi(self, op: ir.Operation) -> Text:
        sign = _COMPARISONS[min(op.attributes["predicate"].value, 5)]
        return Text(f"{self._of(op.operands[0]).within(1)} {sign} {self._of(op.operands[1]).within(1)}", 0)

    def _sqr(self, op: ir.Operation) -> Text:
        return Text(f"{self._of(op.operands[0]).within(4)}**2", 3)

    def _neg(self, op: ir.Operation) -> Text:
        return Text(f"-{self._of(op.operands[0]).within(3)}", 2)

    def _dim(self, op: ir.Operation) -> Text:
        axis = self._of(op.operands[1]).text
        array = self._of(op.operands[0]).within(_ATOM)
        return Text(f"len({array})" if axis == "0" else f"{array}.shape[{axis}]")

    def _scan_seq(self, op: ir.Operation) -> Text:
        return Text(f"{self._of(op.operands[0]).within(_ATOM)}[{self._of(op.operands[1]).text}]")

    def _scan_prev(self, op: ir.Operation) -> Text:
        loop = self._loop
        while loop.time != self._of(op.operands[0]).text:
            loop = loop.outer
        row = _shifted(loop.time, op.attributes["tap"].value, loop.reverse)
        return Text(f"{self._state(loop.scan, op.attributes['state'].value)}[{row}]")

    def _scan_trace(self, op: ir.Operation) -> Text:
        scan = op.operands[0].owner.operation
        return Text(f"trace({self._state(scan, op.attributes['state'].value)})")

    def _scan_steps(self, op: ir.Operation) -> Text:
        return Text("steps()")

    def _broadcast_to(self, op: ir.Operation) -> Text:
        owner = op.operands[0].owner
        if hasattr(owner, "operation") and owner.operation.name == "arith.constant":
            return self._of(op.operands[0])
        return Text(f"broadcast({', '.join(self._of(x).text for x in op.operands)})")

    def _dimshuffle(self, op: ir.Operation) -> Text:
        value, order = _factor(op.results[0])
        kept = [axis for axis in order if axis >= 0]
        text = self._of(value)
        if kept == sorted(kept):
            return text
        return Text(f"{text.within(_ATOM)}.T" if kept == [1, 0] else f"transpose({text.text}, {kept})")

    def _matmul(self, op: ir.Operation) -> Text:
        sides = []
        for number, name in enumerate(("transpose_a", "transpose_b")):
            value, order = _factor(op.operands[number])
            order = order[:-2] + order[:-3:-1] if op.attributes[name].value else order
            sides.append((value, order))
        (a, left), (b, right) = sides
        if left == [0, -1] and right == [-1, 0]:
            return Text(f"outer({self._of(a).text}, {self._of(b).text})")
        words = [
            self._of(v).within(_ATOM) + (".T" if min(order[-2:]) >= 0 and order[-2] > order[-1] else "")
            for v, order in sides
        ]
        return Text(" @ ".join(words), 2)

    def _slice(self, op: ir.Operation) -> Text:
        source = op.operands[0]
        rank = source.type.rank
        texts = [self._of(x).text for x in list(op.operands)[1:]]
        offsets, sizes, strides = texts[:rank], texts[rank : 2 * rank], texts[2 * rank :]
        parts = []
        for axis, (start, size, stride) in enumerate(zip(offsets, sizes, strides, strict=True)):
            full = start == "0" and stride == "1" and not source.type.is_dynamic_dim(axis)
            if full and size == str(source.type.shape[axis]):
                parts.append(":")
            elif size == "1":
                parts.append(start)
            elif stride == "1" and size == f"len({self._of(source).text})-{start}":
                parts.append(f"{start}:")
            else:
                parts.append(_range(start, size, stride))
        while parts and parts[-1] == ":":
            parts.pop()
        if not parts:
            return self._of(source)
        return Text(f"{self._of(source).within(_ATOM)}[{', '.join(parts)}]")


def _is_computed(value: ir.Value, block: ir.Block) -> bool:
    """True if a body computes a value, rather than reads it from somewhere."""
    if not hasattr(value.owner, "operation"):
        return False
    op = value.owner.operation
    return op.block == block and op.name not in ("graphc.scan_prev", "graphc.scan_seq")


def _readers(value: ir.Value) -> list[ir.Operation]:
    """The operations that read a value, also through dimshuffles, which are not shown."""
    readers = []
    for use in value.uses:
        op = use.owner.operation
        readers += _readers(op.results[0]) if op.name == "graphc.dimshuffle" else [op]
    return readers


def _default_name(op: ir.Operation, text: str) -> str:
    if op.name == "graphc.scan_trace":
        return f"{text[6:-1]}_trace"
    return {"graphc.matmul": "product", "graphc.slice": "part", "graphc.broadcast_to": "filled"}.get(
        op.name, "v"
    )


def _factor(value: ir.Value) -> tuple[ir.Value, list[int]]:
    """The value that dimshuffles of a value start from, and where its axes went."""
    order = list(range(value.type.rank))
    while hasattr(value.owner, "operation") and value.owner.operation.name == "graphc.dimshuffle":
        inner = list(value.owner.operation.attributes["order"])
        order = [-1 if axis < 0 else inner[axis] for axis in order]
        value = value.owner.operation.operands[0]
    return value, order


def _range(start: str, size: str, stride: str) -> str:
    if stride != "1":
        return f"{start}: +{size} :{stride}"
    return f":{size}" if start == "0" else f"{start}:{start}+{size}"


def _shifted(t: str, offset: int, reverse: bool) -> str:
    moved = -offset if reverse else offset
    return f"{t}{moved:+d}" if moved else t


def _is_index(kind: ir.Type) -> bool:
    return str(kind) in ("index", "i1", "i64")


def _shape_text(kind: ir.Type) -> str:
    text = str(kind)
    return f": {text[7:].rpartition('x')[0]}" if text.startswith("tensor<") and "x" in text[7:] else ""


def _constant(attribute: ir.Attribute) -> str:
    text = str(attribute).rpartition(" : ")[0] or str(attribute)
    text = text.removeprefix("dense<").removesuffix(">")
    try:
        return f"{float(text):g}"
    except ValueError:
        return text


def _attribute(attribute: ir.Attribute) -> str:
    text = str(attribute)
    if text.startswith("array<"):
        return f"[{text.partition(': ')[2].removesuffix('>')}]"
    return text.rpartition(" : ")[0] or text


def _name(location: ir.Location) -> str:
    """The name in a location; "" if it has none, or only that of a node."""
    found = re.search(r'loc\("([A-Za-z_]\w*)"(?:\(|\))', str(location))
    return found[1] if found and not re.fullmatch(r"n\d+", found[1]) else ""
