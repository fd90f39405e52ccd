# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Emission of conditionals: what stands in which region, and that exactly what is needed is computed."""

from __future__ import annotations

import itertools
import random
import re
import sys
from typing import Any

import numpy as np
import pytest

import graphc
import graphc.tensor as pt
from graphc import grad, ifelse
from graphc.backends.contexts import shared_context
from graphc.backends.interpret import interpreter
from graphc.emit import conditionals, emit_module
from graphc.emit.conditionals import DEEPEST, obstacle
from graphc.emit.emitter import Emitter
from graphc.errors import CompileError
from graphc.graph.demand import MAX_PRODUCTS
from graphc.graph.function_graph import FunctionGraph
from graphc.graph.reference import ReferenceExecutor
from graphc.ops.elementwise import Elementwise
from graphc_dialects._mlir import ir

X, Y, S = pt.dvector("x"), pt.dvector("y"), pt.dscalar("s")
A, B = pt.scalar("a", dtype="bool"), pt.scalar("b", dtype="bool")


def emitted(inputs: list[Any], outputs: list[Any]) -> str:
    """The verified module, without locations and types."""
    text = emit_module(FunctionGraph(inputs, outputs)).text
    with shared_context():
        assert ir.Module.parse(text).operation.verify()
    return text


def shape_of(text: str) -> list[str]:
    """The operations, with the regions of conditionals in brackets."""
    found = []
    for line in text.splitlines():
        opening = '"scf.if"' in line
        name = re.search(r'"(?:graphc|scf)\.(\w+)"', line)
        if opening:
            found.append("if[")
        elif line.strip().startswith("}, {"):
            found.append("][")
        elif line.strip().startswith("}) : (i1)"):
            found.append("]")
        elif name and name[1] != "yield":
            found.append(name[1])
    return found


def test_nodes_of_a_branch_stand_in_its_region():
    y = ifelse(A, pt.exp(X).sum(), -X.prod())
    text = emitted([X, A], [pt.sin(X) + y])
    assert shape_of(text)[:9] == [
        "sin",
        "if[",
        "exp",
        "reduce_sum",
        "][",
        "reduce_prod",
        "neg",
        "]",
        "dimshuffle",
    ]


def test_conditionals_of_one_condition_share_one():
    y = ifelse(A, pt.exp(X), X) + ifelse(A, pt.sin(X), pt.cos(X))
    assert shape_of(emitted([X, A], [y])) == ["if[", "exp", "sin", "][", "cos", "]", "add"]
    # One that reads the other's result finds the chosen value in its region.
    first = ifelse(A, pt.exp(X), X)
    y = ifelse(A, pt.sin(first), pt.cos(first))
    text = emitted([X, A], [y])
    assert shape_of(text) == ["if[", "exp", "sin", "][", "cos", "]"] and '"graphc.cos"(%arg0)' in text


def test_what_depends_on_a_conditional_splits_the_next():
    shared = pt.exp(X)
    total = ifelse(A, shared, X).sum()
    text = emitted([X, A], [total, ifelse(A, shared * total, X)])
    # exp is computed once, and handed to the second region as a result.
    expected = ["if[", "exp", "][", "]", "reduce_sum", "if[", "dimshuffle", "mul", "][", "]"]
    assert shape_of(text) == expected and "-> (tensor<?xf64>, tensor<?xf64>)" in text


def test_a_gradient_uses_what_the_forward_region_computed():
    y = ifelse(A, pt.exp(X).sum(), S)
    # All that depends on the side alone is in one region.
    assert shape_of(emitted([X, S, A], [y, grad(pt.sin(y), X)])).count("if[") == 1
    text = emitted([X, S, A], [y, *grad(pt.exp(y), [X, S])])
    names = shape_of(text)
    assert names.count("exp") == 2 and names.count("if[") == 2
    assert "tensor.empty(" in text and "-> (tensor<f64>, tensor<?xf64>)" in text
    # For its sizes alone nothing is kept.
    z = ifelse(A, pt.sin(pt.exp(X)).sum(), S)
    text = emitted([X, S, A], [z, *grad(pt.exp(z), [X, S])])
    assert shape_of(text).count("if[") == 2 and "-> (tensor<f64>, tensor<?xf64>)" in text


def test_equal_sides_and_known_conditions():
    y = ifelse(A, ifelse(A, pt.exp(X), pt.sin(X)), ifelse(A, X, pt.cos(X)))
    assert shape_of(emitted([X, A], [y])) == ["if[", "exp", "][", "cos", "]"]


def test_disjunctions():
    shared = pt.exp(X)
    y = ifelse(A, shared + 1, X) + ifelse(B, X, shared * 2)
    text = emitted([X, A, B], [y])
    assert shape_of(text) == [
        "if[",
        "exp",
        "][",
        "]",
        "if[",
        "add",
        "][",
        "]",
        "if[",
        "][",
        "mul",
        "]",
        "add",
    ]
    assert "arith.ori" in text and "arith.xori" in text


def test_a_condition_that_only_a_side_computes():
    inner = X.sum() > 0
    shared = pt.exp(X)
    y = ifelse(A, shared, ifelse(inner, shared * 2, X))
    text = emitted([X, A], [y])
    assert "dense<false>" in text and shape_of(text).count("exp") == 1


def test_static_shapes_and_dtypes():
    a, b = pt.tensor("a", shape=(2, 3), dtype="uint8"), pt.tensor("b", shape=(2, 5), dtype="float32")
    text = emitted([a, b, A], [ifelse(A, a, b)])
    assert "tensor.cast" in text and "-> (tensor<2x?xf32>)" in text
    value = pt.tensor("v", shape=(2,)) + 1
    y = ifelse(A, value, pt.zeros((2,)))
    text = emitted([value.owner.inputs[0], A], [y, ifelse(A, value * y.sum(), y)])
    assert obstacle(FunctionGraph([value.owner.inputs[0], A], [y])) is None


def test_locations_are_those_of_the_nodes():
    y = ifelse(A, pt.exp(X), X)
    module = emit_module(FunctionGraph([X, A], [y]))
    (number,) = [i for i, node in enumerate(module.nodes) if node is y.owner]
    assert re.search(rf"\}}\) : \(i1\) -> \(tensor<\?xf64>\) loc\(#n{number}\)", module.text)
    assert f'"{__file__}":{y.owner.location.line}:0' in module.text


def test_in_the_body_of_a_scan():
    states = graphc.scan(
        lambda x, h: ifelse(x > 0, pt.exp(h) + x, h), [X], [pt.constant(0.5)], return_updates=False
    )
    text = emitted([X], [states])
    body = shape_of(text)
    assert "if[" in body and body.index("scan") < body.index("if[") < body.index("scan_carry")


def test_a_choice_alone():
    node = ifelse(A, [X, S], [-X, S])[0].owner
    e = Emitter([node])
    for i, v in enumerate(node.inputs):
        e.values[v] = f"%arg{i}"
    e.node(node)
    assert (
        '"scf.yield"(%arg1, %arg4)' in "\n".join(e.lines) and len({e.operand(v) for v in node.outputs}) == 2
    )


def test_obstacles():
    conditions = [pt.scalar(f"c{i}", dtype="bool") for i in range(MAX_PRODUCTS + 1)]

    def reason(y: Any, *inputs: Any) -> str | None:
        return obstacle(FunctionGraph([X, S, A, B, *inputs], [y]))

    shared, many = pt.exp(X), X
    for c in conditions:
        many = many + ifelse(c, shared, X)
    assert "too many combinations" in str(reason(many, *conditions))
    with pytest.raises(CompileError, match=r"such as IfElse.*test_conditionals.*compiled: .*too many"):
        emit_module(FunctionGraph([X, *conditions], [many]))
    # exp(x) is needed to know whether it is needed.
    value = pt.exp(X)
    first = ifelse(A, value, X)
    late = ifelse(first.sum() > 0, value, X)
    assert "condition that depends on it" in str(reason(late))


def _nested(depth: int, derivative: bool) -> FunctionGraph:
    """Conditionals in the else-branch, the then-branch, and the condition of others, in turn."""
    tests, y = [X.sum()], pt.exp(X)
    for i in range(depth - 1):
        tests.append(pt.cos(tests[-1]) + i)
    for i, test in reversed(list(enumerate(tests))):
        sides = (pt.sin(X + i), y) if i % 3 else (y, X * i)
        y = ifelse(test > i - 2 + i % 2, *sides) if i % 5 else ifelse(test < i + 9, *sides[::-1])
    return FunctionGraph([X], [grad(y.sum(), X) if derivative else y])


@pytest.mark.parametrize("derivative", [False, True])
def test_any_depth(derivative):
    """Regions nest to a bound, and the work is proportional to the depth; it is counted."""
    calls, steps = {}, {}
    for depth in (10, 100, 1000):
        graph = _nested(depth, derivative)
        count = itertools.count()
        sys.setprofile(lambda *_, count=count: next(count))
        try:
            text = emit_module(graph).text
        finally:
            sys.setprofile(None)
        calls[depth], steps[depth] = next(count), text.count(" = ")
        level = deepest = 0
        for word in shape_of(text):
            level += (word == "if[") - (word == "]")
            deepest = max(deepest, level)
        assert deepest <= DEEPEST + 2
        if derivative and depth > 100:
            continue
        values = [np.array([0.3, -0.2])]
        with shared_context():
            parsed = ir.Module.parse(text)
            assert parsed.operation.verify()
            (found,) = interpreter.run_function(parsed, values)
        np.testing.assert_allclose(found, ReferenceExecutor(graph).run_all(values)[graph.outputs[0]])
    assert calls[1000] < 11 * calls[100] and steps[1000] < 11 * steps[100]


@pytest.mark.parametrize("seed", range(40))
@pytest.mark.parametrize("deepest", [DEEPEST, 1, 2])
def test_random_graphs_run_what_lazy_evaluation_runs(seed, deepest, monkeypatch):
    """Values are those of the reference, and exactly the nodes that it computes are run."""
    monkeypatch.setattr(conditionals, "DEEPEST", deepest)
    rng = random.Random(seed)
    graph = _random_graph(rng)
    why = obstacle(graph)
    if why is not None:
        assert "depends on it" in why or "known in time" in why
        return
    module = emit_module(graph)
    names = {f"n{i}": node for i, node in enumerate(module.nodes)}
    ran: set[Any] = set()
    original = interpreter._Frame._execute

    def execute(self: Any, op: Any) -> None:
        if op.name.startswith("graphc.") and op.name != "graphc.check":
            ran.add(names.get(str(op.location).split('"')[1]))
        original(self, op)

    monkeypatch.setattr(interpreter._Frame, "_execute", execute)
    with shared_context():
        parsed = ir.Module.parse(module.text)
        assert parsed.operation.verify()
        for bits in itertools.product((False, True), repeat=3):
            values = [np.array([0.3, -1.2]), np.array([2.0, 0.7]), *map(np.array, bits)]
            known = ReferenceExecutor(graph).run_all(values)
            ran.clear()
            for v, got in zip(graph.outputs, interpreter.run_function(parsed, values), strict=True):
                np.testing.assert_allclose(got, known[v])
            elementwise = [node for node in graph.nodes if isinstance(node.op, Elementwise)]
            assert {n for n in elementwise if n in ran} == {n for n in elementwise if n.outputs[0] in known}


def _random_graph(rng: random.Random) -> FunctionGraph:
    conditions = [pt.scalar(name, dtype="bool") for name in "abc"]
    tests, pool = list(conditions), [X, Y]
    for _ in range(rng.randint(3, 30)):
        p, q, kind = rng.choice(pool), rng.choice(pool), rng.random()
        if kind < 0.4:
            pool.append(ifelse(rng.choice(tests), p, q))
        elif kind < 0.5:
            pool += ifelse(rng.choice(tests), [p, q], [rng.choice(pool), rng.choice(pool)])
        elif kind < 0.7:
            pool.append(pt.sin(p))
        elif kind < 0.93:
            pool.append(p + q if kind < 0.85 else p * q * 0.1)
        else:
            tests.append(p.sum() > q.sum())
    outputs = [pool[-1]]
    if rng.random() < 0.6:
        outputs += grad((pool[-1] ** 2).sum(), [X, Y], disconnected_inputs="ignore")
    return FunctionGraph([X, Y, *conditions], outputs)
