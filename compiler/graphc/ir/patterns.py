# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Rewrite rules of elementwise operations in one line: `Line("add zero", x + 0, x, of="iufc")`.

Patterns are Python expressions of the variables `x`, `y` and of operations by their dialect's name
(`op.exp(x)`, `op.true_div(x, y)`); names and numbers of operands are checked when a line is written. A number
stands for a constant with that number in all places. Operands of operations that commute are tried in both
orders. Where a pattern drops a constant, what stays must have the result's shape.

Source: the tables of tinygrad's `PatternMatcher`.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import field
from typing import Any, TypeAlias

import numpy as np

from graphc.ir.rewrite import Rewriter, Rule, RuleTable, tensor_type
from graphc.ir.views import SELECTED
from graphc_dialects._mlir import ir
from graphc_dialects.elementwise import ELEMENTWISE
from graphc_runtime.record import record


def registrar(table: RuleTable) -> Callable[..., Callable[[Rule], Rule]]:
    """A decorator `@rule("add", "sub")` that appends a rule for these graphc operations to the table."""

    def rule(*names: str) -> Callable[[Rule], Rule]:
        def register(function: Rule) -> Rule:
            for name in names:
                table.setdefault(name if "." in name else f"graphc.{name}", []).append(function)
            return function

        return register

    return rule


def kind(rewriter: Rewriter, value: ir.Value) -> str:
    """NumPy kind of a tensor's dtype: b, i, u, f or c."""
    return rewriter.dtype(value).kind


def is_unit(value: ir.Value) -> bool:
    """True if every dimension is statically 1, so that the value broadcasts against anything."""
    return all(size == 1 for size in value.type.shape)


def unit_splat(rewriter: Rewriter, value: ir.Value) -> Any:
    """The number that a constant of unit shape holds, else None."""
    number = rewriter.splat(value)
    return number if number is not None and is_unit(value) else None


def split_constant(rewriter: Rewriter, op: ir.Operation) -> tuple[Any, Any] | None:
    """(other operand, number) of a binary operation with a constant of unit shape on one side."""
    x, y = op.operands
    number = unit_splat(rewriter, y)
    if number is not None:
        return x, number
    number = unit_splat(rewriter, x)
    return None if number is None else (y, number)


def broadcast_type(values: Sequence[ir.Value]) -> ir.RankedTensorType:
    """The type of an elementwise operation of tensors of one rank, with the last one's dtype."""
    shapes = zip(*(list(value.type.shape) for value in values), strict=True)
    # A known size says more than one that is not known, and 1 broadcasts.
    shape = [max(sizes, key=lambda size: (size != 1, size)) for sizes in shapes]
    return tensor_type(shape, values[-1].type.element_type)


def is_normal(number: Any) -> bool:
    """True if a number is finite and, for floats, neither zero nor subnormal."""
    if number.dtype.kind in "biu":
        return True
    if number.dtype.kind == "c" or not np.isfinite(number):
        return False
    return bool(abs(number) >= np.finfo(number.dtype).tiny)


def negated(rewriter: Rewriter, value: ir.Value) -> ir.Value:
    """`-value`, removing a negation instead where there is one."""
    inner = rewriter.operand_of(value, "graphc.neg")
    return inner if inner is not None else rewriter.create("graphc.neg", [value], value.type)


def unary(rewriter: Rewriter, name: str, value: Any) -> ir.Value:
    """An elementwise operation that keeps the type."""
    return rewriter.create(f"graphc.{name}", [value], value.type)


def guarded(rewriter: Rewriter, x: ir.Value, bound: float, value: ir.Value) -> ir.Value:
    """`value where x >= bound else nan`."""
    condition = tensor_type(x.type.shape, ir.IntegerType.get_signless(1))
    inside = rewriter.create("graphc.ge", [x, rewriter.scalar_like(bound, x)], condition)
    return rewriter.create("graphc.switch", [inside, value, rewriter.scalar_like(np.nan, x)], value.type)


_COMMUTE = frozenset("add mul maximum minimum and or logical_and logical_or xor eq ne".split())
_INFIX = {"add": "+", "sub": "-", "mul": "*", "true_div": "/", "floor_div": "//", "mod": "%"}


class Term:
    """A part of a pattern; see the module."""

    def __add__(self, other: Operand) -> Applied:
        return Applied("add", (self, other))

    def __radd__(self, other: Operand) -> Applied:
        return Applied("add", (other, self))

    def __sub__(self, other: Operand) -> Applied:
        return Applied("sub", (self, other))

    def __rsub__(self, other: Operand) -> Applied:
        return Applied("sub", (other, self))

    def __mul__(self, other: Operand) -> Applied:
        return Applied("mul", (self, other))

    def __rmul__(self, other: Operand) -> Applied:
        return Applied("mul", (other, self))

    def __truediv__(self, other: Operand) -> Applied:
        return Applied("true_div", (self, other))

    def __rtruediv__(self, other: Operand) -> Applied:
        return Applied("true_div", (other, self))

    def __neg__(self) -> Applied:
        return Applied("neg", (self,))


Operand: TypeAlias = Term | int


@record(frozen=True)
class Variable(Term):
    """Any value; where it stands again, the same one."""

    name: str

    def __str__(self) -> str:
        return self.name


@record(frozen=True)
class Applied(Term):
    """An operation of terms.

    Raises:
        TypeError: the dialect has no elementwise operation of the name with so many operands.
    """

    name: str
    terms: tuple[Operand, ...]
    full_name: str = field(init=False, compare=False)
    orders: Sequence[Sequence[tuple[int, int]]] = field(init=False, compare=False)

    def __post_init__(self) -> None:
        if self.name not in ELEMENTWISE:
            raise TypeError(f"the dialect has no elementwise operation graphc.{self.name}")
        arity, _ = ELEMENTWISE[self.name]
        if arity != len(self.terms):
            raise TypeError(f"graphc.{self.name} takes {arity} operands, the pattern has {len(self.terms)}")
        # What may not match is tried before what always does.
        order = sorted(range(len(self.terms)), key=lambda k: isinstance(self.terms[k], Variable))
        orders = [[(k, k) for k in order]]
        if self.name in _COMMUTE:
            orders.append([(k, 1 - k) for k in order])
        object.__setattr__(self, "full_name", f"graphc.{self.name}")
        object.__setattr__(self, "orders", orders)

    def __str__(self) -> str:
        texts = [f"({t})" if isinstance(t, Applied) and t.name in _INFIX else str(t) for t in self.terms]
        if self.name == "neg":
            return f"-{texts[0]}"
        if self.name in _INFIX:
            return f" {_INFIX[self.name]} ".join(texts)
        return f"{self.name}({', '.join(map(str, self.terms))})"


class _Operations:
    """Operations of the dialect by their names; `and`, `or` and `not` with an underscore."""

    def __getattr__(self, name: str) -> _Operation:
        return _Operation(name.rstrip("_"))


@record(frozen=True)
class _Operation:
    name: str

    def __call__(self, *terms: Operand) -> Applied:
        return Applied(self.name, terms)


op = _Operations()
x, y = Variable("x"), Variable("y")


@record(frozen=True)
class Line:
    """One rule.

    Attributes:
        name: of the rule, in its statistics.
        before, after: what is replaced, and by what; a number is an array of it.
        of: NumPy kinds of the last operand's dtype for which it holds.
    """

    name: str
    before: Applied
    after: Operand
    of: str = "f"


@record()
class _Match:
    """Values for which the variables of a pattern stand.

    Attributes:
        bound: values of variables, by name.
        wide: constants that have more elements than what stays of the operation that they are operands of;
            None where there may be none.
        views: whether functions are found behind what moves or selects elements.
    """

    bound: dict[str, ir.Value]
    wide: list[ir.Value] | None
    views: bool


def _matches(rw: Rewriter, term: Operand, value: ir.Value, match: _Match) -> bool:
    if isinstance(term, Variable):
        return match.bound.setdefault(term.name, value) == value
    if isinstance(term, Applied):
        made = rw.defs.get(value)
        if made is None:
            return False
        if made.name != term.full_name:
            if not match.views or len(term.terms) > 1 or made.name not in SELECTED:
                return False
            x = rw.moved_operand(value, term.full_name)
            return x is not None and _matches_operands(rw, term, made, [x], match)
        return _matches_operands(rw, term, made, list(made.operands), match)
    number = rw.splat(value)
    return number is not None and bool(number == term)


def _matches_operands(
    rw: Rewriter, term: Applied, made: ir.Operation, operands: list[ir.Value], match: _Match
) -> bool:
    terms = term.terms
    for order in term.orders:
        trial = _Match(dict(match.bound), None if match.wide is None else list(match.wide), match.views)
        for k, place in order:
            if not _matches(rw, terms[k], operands[place], trial):
                break
        else:
            numbers = {place for k, place in order if isinstance(terms[k], int)}
            kept = [v for place, v in enumerate(operands) if place not in numbers]
            if numbers and not all(rw.can_replace(made, value) for value in kept):
                if trial.wide is None:
                    continue
                trial.wide += [operands[place] for place in numbers]
            match.bound.update(trial.bound)
            match.wide = trial.wide
            return True
    return False


def _built(rw: Rewriter, term: Operand, bound: dict[str, ir.Value], result: ir.Value) -> ir.Value:
    if isinstance(term, Variable):
        return bound[term.name]
    if isinstance(term, int):
        return rw.full_like(term, result)
    assert isinstance(term, Applied)
    values = [
        rw.scalar_like(operand, result) if isinstance(operand, int) else _built(rw, operand, bound, result)
        for operand in term.terms
    ]
    if term.name == "neg":
        return negated(rw, values[0])
    return rw.create(term.full_name, values, broadcast_type(values))


def rules(lines: Sequence[Line], views: bool = False) -> RuleTable:
    """Lines as rules of a rewriter, one for each name and operation.

    Args:
        lines: the rules.
        views: whether functions in them are found behind what moves or selects elements. Constants with more
            elements than what stays are kept then, for their shape.
    """
    groups: dict[tuple[str, str], list[Line]] = {}
    for line in lines:
        groups.setdefault((line.before.full_name, line.name), []).append(line)
    table: RuleTable = {}
    for (operation, name), group in groups.items():
        table.setdefault(operation, []).append(_rule(name, group, views))
    return table


def _rule(name: str, lines: Sequence[Line], views: bool) -> Rule:
    tried = [
        (line, frozenset(term.full_name for term in line.before.terms if isinstance(term, Applied)))
        for line in lines
    ]

    def rule(rw: Rewriter, op: ir.Operation) -> ir.Value | None:
        operands, makers = rw.operands(op)
        if views and not makers.isdisjoint(SELECTED):
            makers = makers | {rw.behind_views(value) for value in operands}
        for line, needed in tried:
            if not needed <= makers:
                continue
            match = _Match({}, [] if views and isinstance(line.after, Applied) else None, views)
            if not _matches_operands(rw, line.before, op, operands, match):
                continue
            if kind(rw, operands[-1]) in line.of:
                result = op.results[0]
                value = _built(rw, line.after, match.bound, result)
                for constant in match.wide or ():
                    value = rw.create("graphc.second", [constant, value], broadcast_type([constant, value]))
                if value.type.element_type == result.type.element_type:
                    return value
        return None

    rule.__name__ = name.replace(" ", "_")
    return rule


def described(lines: Sequence[Line]) -> Iterator[str]:
    """A row of a table for each rule: what is replaced, by what, and for which arrays."""
    kinds = {"b": "bool", "iu": "integers", "i": "signed integers", "f": "floats", "c": "complex"}
    for line in lines:
        left, numbers = line.of, []
        for letters, text in kinds.items():
            if set(letters) <= set(left):
                numbers.append(text)
                left = left.translate(dict.fromkeys(map(ord, letters)))
        yield f"| `{line.before}` | `{line.after}` | {', '.join(numbers)} |"
