# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Reverse mode through conditionals: only what is computed is differentiated.

A cotangent has a *guard*, the demand of what it was pulled back from (`graphc.graph.demand`): outside of it
there is no such cotangent, not even zeros. Under a guard an `IfElse` passes the cotangents of its outputs on
as they are, to the values of one side where the condition has this side, and to those of the other side where
not. A variable that is needed in more cases than one of its terms gets ``ifelse(condition, term by the one
side, term by the other side)``, with zeros where a side has no term. So the backward graph of a branch is
needed only where the branch is, and what a branch that is not chosen would make of a value (a division by
zero, say) is not computed and not multiplied by zero.

Where the demand is unknown, cotangents are valid everywhere, which costs time and brings back ``0 * inf``.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from graphc.graph.basic import Apply, Variable
from graphc.graph.demand import Demand, Demands, Literal, is_conditional
from graphc.ops.derivatives import match_dtype, total, zeros_like
from graphc.ops.ifelse import select
from graphc.ops.shaping import specify_shape

Term = tuple[Variable, Demand]


class Branches:
    """Guards of cotangents, and their sums.

    Args:
        nodes: the nodes of the graph that is differentiated, each after those it needs.
        outputs: variables that are given a cotangent.
    """

    def __init__(self, nodes: Sequence[Apply], outputs: Iterable[Variable]) -> None:
        self._demands = Demands(nodes, outputs)
        self.always = self._demands.always

    def guard(self, v: Variable) -> Demand:
        """The place at which the node that computes a variable's cotangent asks for it."""
        demand = self._demands.of(v)
        return self.always if demand.unknown else demand

    def term_guards(self, node: Apply) -> list[Demand]:
        """For each input, where the term that a node contributes to it is valid."""
        if not is_conditional(node):
            demand = self._demands.of_node(node)
            return [self.always if demand.unknown else demand] * len(node.inputs)
        condition = node.inputs[0]
        guards = [self.guard(y) for y in node.outputs]
        return [
            self._demands.never,
            *(self._demands.where(guard, condition, side) for side in (True, False) for guard in guards),
        ]

    def total(self, v: Variable, terms: Sequence[Term], within: Demand) -> Variable | None:
        """The sum of a variable's terms, valid where ``within`` holds; None for zero."""
        tree = _Cases()
        for term, guard in terms:
            if guard.never:
                continue
            if guard is within or guard.always:
                tree.plain.append(term)
                continue
            paths = _remaining(guard, within)
            if len(paths) == 1:
                tree.insert(_as(v, term), paths[0])
            else:
                tree.plain.append(_chain(v, _as(v, term), paths))
        return tree.build(v)


def _remaining(guard: Demand, within: Demand) -> list[tuple[Literal, ...]]:
    """The literals of each product that ``within`` does not imply."""
    if within.always or len(within.products) > 1:
        # Every product is tested from the outside in, so that nothing depends on which one holds.
        return list(guard.literals)
    (outer,) = within.products
    found = []
    for product in guard.products:
        literals: list[Literal] = []
        each = product
        while each is not outer and each.parent is not None and each.literal is not None:
            literals.append(each.literal)
            each = each.parent
        if each is not outer:
            literals = [literal for literal in literals if literal not in outer.set]
        found.append(tuple(reversed(literals)))
    return found


def _as(v: Variable, term: Variable) -> Variable:
    """A term in the dtype and with the static shape of the variable it belongs to."""
    term = match_dtype(v, term)
    shape, given = getattr(v.type, "shape", None), getattr(term.type, "shape", None)
    if shape is None or given is None or len(shape) != len(given):
        return term
    if all(m is None or m == n for m, n in zip(shape, given, strict=True)):
        return term
    return specify_shape(term, shape)


def _chain(v: Variable, term: Variable, paths: Sequence[Sequence[Literal]]) -> Variable:
    """A term that is valid where all literals of one of the paths hold, zeros elsewhere."""
    result = zeros_like(v)
    for path in reversed(paths):
        chosen = term
        for condition, side in reversed(path):
            chosen = _choice(condition, chosen, result) if side else _choice(condition, result, chosen)
        result = chosen
    return result


def _choice(condition: Variable, a: Variable, b: Variable) -> Variable:
    return select(condition, a, b)


class _Cases:
    """Terms by the conditions they are valid under.

    Attributes:
        plain: terms without a further condition.
        cases: for each condition, the cases where it holds and where not.
    """

    def __init__(self) -> None:
        self.plain: list[Variable] = []
        self.cases: dict[Variable, tuple[_Cases, _Cases]] = {}

    def insert(self, term: Variable, path: Sequence[Literal]) -> None:
        """Adds a term that is valid where all literals hold."""
        place = self
        for condition, side in path:
            pair = place.cases.setdefault(condition, (_Cases(), _Cases()))
            place = pair[not side]
        place.plain.append(term)

    def build(self, v: Variable) -> Variable | None:
        """The sum, None for zero."""
        order = [self]
        for each in order:
            order += [case for pair in each.cases.values() for case in pair]
        built: dict[_Cases, Variable | None] = {}
        for each in reversed(order):
            terms = list(each.plain)
            for condition, pair in each.cases.items():
                sides = [built[case] for case in pair]
                if any(side is not None for side in sides):
                    # Only a side that is not there makes zeros, and only in its own branch.
                    a, b = (zeros_like(v) if side is None else side for side in sides)
                    terms.append(_choice(condition, a, b))
            built[each] = total(terms)
        return built[self]
