# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""`graphc.graph.demand`: when nodes are needed."""

from __future__ import annotations

import itertools
import random
from typing import Any

import pytest

import graphc.tensor as pt
from graphc import Variable, ifelse
from graphc.graph.demand import MAX_PRODUCTS, Demand, Demands, is_conditional, sides
from graphc.graph.traversal import toposort


def bools(names: str) -> list[Any]:
    return [pt.scalar(name, dtype="bool") for name in names]


def demands(*outputs: Variable) -> Demands:
    return Demands(list(toposort(outputs)), outputs)


def text(demand: Demand) -> set[str]:
    """Each product as sorted text, negated literals with a minus."""
    return {" ".join(sorted(f"{'' if side else '-'}{c}" for c, side in p)) for p in demand.literals}


A, B, C = bools("abc")
X = pt.dvector("x")


def test_a_branch_is_needed_where_its_side_is_chosen():
    then, other = pt.exp(X), pt.sin(X)
    y = ifelse(A, then, other)
    found = demands(y)
    assert found.of(y).always and found.of(X).always and found.of(A).always
    assert text(found.of(then)) == {"a"} and text(found.of_node(other.owner)) == {"-a"}
    assert repr(found.of(then)) == "Demand(a)"


def test_what_both_sides_need_is_needed_where_the_conditional_is():
    shared = pt.exp(X)
    inner = ifelse(B, shared + 1, shared + 2)
    found = demands(ifelse(A, inner, X))
    assert text(found.of(shared)) == {"a"} and text(found.of(inner)) == {"a"} and text(found.of(B)) == {"a"}


def test_an_output_is_always_needed():
    then = pt.exp(X)
    assert demands(ifelse(A, then, X), then).of(then).always


def test_several_conditionals_of_one_condition():
    shared = pt.exp(X)
    y = ifelse(A, shared + 1, X) + ifelse(A, shared * 2, X)
    assert text(demands(y).of(shared)) == {"a"}


def test_disjunctions():
    shared = pt.exp(X)
    y = ifelse(A, shared, X) + ifelse(B, X, shared)
    assert text(demands(y).of(shared)) == {"a", "-b"}
    # A contained product goes.
    z = ifelse(A, shared, X) + ifelse(A, ifelse(B, shared + 1, X), X)
    assert text(demands(z).of(shared)) == {"a"}


def test_conditions_that_may_not_be_computed_are_not_looked_at():
    shared = pt.exp(X)
    inner_condition = pt.sin(X).sum() > 0
    inner_condition.name = "i"
    y = ifelse(A, shared, ifelse(inner_condition, shared, X))
    found = demands(y)
    # Not {a, i}: i is needed, and so computed, only where a does not hold.
    assert text(found.of(shared)) == {"a", "-a i"} and text(found.of(inner_condition)) == {"-a"}


def test_the_order_of_nesting_does_not_matter():
    shared = pt.exp(X)
    y = ifelse(A, ifelse(B, shared, X), X) + ifelse(B, ifelse(A, shared + 1, X), X)
    found = demands(y)
    assert text(found.of(shared)) == {"a b"}
    # All four products of two conditions make one that is always needed.
    pieces = [ifelse(A, ifelse(B, shared, X), ifelse(B, X, shared)), ifelse(B, X, ifelse(A, shared, X))]
    pieces.append(ifelse(B, ifelse(A, X, shared), X))
    assert demands(sum(pieces[1:], pieces[0])).of(shared).always


def test_a_side_that_cannot_be_is_never_needed():
    never = pt.exp(X)
    found = demands(ifelse(A, ifelse(A, X, never), X))
    assert found.of(never).never and repr(found.of(never)) == "Demand(never)"


def test_outputs_of_a_conditional_are_needed_for_themselves():
    first, second = pt.exp(X), pt.sin(X)
    y, z = ifelse(A, [first, second], [X, X])
    found = demands(y, ifelse(B, z, X))
    assert text(found.of(first)) == {"a"} and text(found.of(second)) == {"a b"}
    unused = demands(y)
    assert unused.of(second).never and text(unused.of_node(y.owner)) == {""}


def test_too_many_products_are_unknown():
    shared = pt.exp(X)
    conditions = [pt.scalar(f"c{i}", dtype="bool") for i in range(MAX_PRODUCTS + 1)]
    parts = [ifelse(c, shared, X) for c in conditions]
    few, many = sum(parts[1:-1], parts[0]), sum(parts[1:], parts[0])
    assert len(demands(few).of(shared).products) == MAX_PRODUCTS
    found = demands(many)
    assert found.of(shared).unknown and not found.of(shared).always and not found.of(shared).never
    assert repr(found.of(shared)) == "Demand(unknown)"
    # What is also needed always is known to be.
    assert demands(many, shared).of(shared).always


@pytest.mark.parametrize("form", ["chain", "ladder", "both"])
def test_a_thousand_conditionals(form):
    """Products have up to a thousand literals here; the time does not grow with their sum."""
    conditions = [pt.scalar(f"c{i}", dtype="bool") for i in range(1000)]
    y = x = pt.dscalar("x")
    for c in conditions:
        if form == "chain":
            y = ifelse(c, y + 1, y * 2)
        else:
            y = ifelse(c, x + 1, y) if form == "ladder" else ifelse(c, y, pt.sin(x))
    found = demands(y)
    assert found.of(x).always
    assert all(not found.of(v).unknown for node in toposort([y]) for v in node.outputs)


def _truth(demand: Demand, values: dict[Any, bool]) -> bool:
    return any(all(values[c] == side for c, side in product) for product in demand.literals)


@pytest.mark.parametrize("seed", range(20))
def test_random_graphs_against_lazy_evaluation(seed):
    """A node's formula is true exactly where a lazy evaluation reaches the node."""
    rng = random.Random(seed)
    conditions = bools("abcd")
    pool: list[Any] = [X, pt.dvector("y")]
    for _ in range(30):
        p, q = rng.choice(pool), rng.choice(pool)
        chosen = rng.random()
        if chosen < 0.4:
            pool.append(ifelse(rng.choice(conditions), p, q))
        elif chosen < 0.5:
            pool += ifelse(rng.choice(conditions), [p, q], [q, rng.choice(pool)])
        else:
            pool.append(p + q if chosen < 0.75 else pt.sin(p))
    output = pool[-1]
    found = demands(output)
    variables = [v for node in toposort([output]) for v in node.outputs]
    for sides_ in itertools.product((False, True), repeat=4):
        values = dict(zip(conditions, sides_, strict=True))
        reached = _reach(output, values)
        for v in variables:
            assert found.of(v).unknown or _truth(found.of(v), values) == (v in reached), v


def _reach(output: Variable, values: dict[Any, bool]) -> set[Variable]:
    reached: set[Variable] = set()
    stack = [output]
    while stack:
        v = stack.pop()
        if v in reached:
            continue
        reached.add(v)
        node = v.owner
        if node is None:
            continue
        if is_conditional(node):
            assert v.index is not None
            stack.append(sides(node, v.index)[0 if values[node.inputs[0]] else 1])
        else:
            reached.update(node.outputs)
            stack += node.inputs
    return reached
