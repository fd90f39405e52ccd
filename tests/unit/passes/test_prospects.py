# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Bounds on logarithms that are found before any is made miss none, and leave most of them unmade."""

from __future__ import annotations

import random
from functools import cache

import pytest

import graphc.tensor as pt
from graphc.backends.stages import STABLE, entries, request_of
from graphc.emit import emit_module
from graphc.graph.function_graph import FunctionGraph
from graphc.ir.rewrite import Rewriter
from graphc.ops.algebra import CLEAN, GAINS, KNOWN, POSITIVE, Prospects
from graphc.ops.logarithms import _RULES
from graphc.ops.stable import Stable
from graphc.passes.run import run_pipeline
from graphc_dialects._mlir import ir

from ._semantics import context

_ONE = (
    *(pt.exp, pt.exp2, pt.sigmoid, pt.erfc, pt.cosh, pt.softplus, pt.expm1, pt.sinh, pt.log, pt.log1p),
    *(pt.tanh, pt.erf, pt.sin, pt.arctan, pt.neg, pt.sqr, pt.sqrt, abs, pt.reciprocal, pt.i0),
    *(lambda x: 1 - x, lambda x: 1 + x, lambda x: x**3, lambda x: 2**x, lambda x: 0.5 * x, lambda x: x - 2),
    *(lambda x: x[::-1], lambda x: x.sum() + x, lambda x: x.max() * x, lambda x: pt.exp(-x * x)),
)
_TWO = (
    *(pt.add, pt.sub, pt.mul, pt.true_div, pt.maximum, pt.minimum),
    *(lambda x, y: pt.switch(x > y, x, y), lambda x, y: x / (1 + y * y), lambda x, y: x * y.sum()),
    *(lambda x, y: pt.set_subtensor(x[:2], y[:2]), lambda x, y: pt.exp(x) / (pt.exp(x) + pt.exp(y))),
)


def stabilised(inputs, outputs) -> None:
    text = emit_module(FunctionGraph(inputs, outputs)).text
    with context(), ir.Location.unknown():
        run_pipeline(ir.Module.parse(text), entries([STABLE], request_of(text)))


def grown(seed: int, size: int = 40):
    """A product of functions of functions, by chance."""
    rng, pool = random.Random(seed), pt.dvectors("x", "y", "z")
    inputs = list(pool)
    pool = list(pool)
    while len(pool) < size:
        x, y = rng.choices(pool[-12:], k=2)
        pool.append(rng.choice(_ONE)(x) if rng.random() < 0.6 else rng.choice(_TWO)(x, y))
    return inputs, [pool[-1] * pool[-2] / pool[-3], pt.log(pool[-4])]


def test_each_rule_has_a_bound():
    assert set(_RULES) <= KNOWN


@pytest.mark.parametrize("seed", range(60))
def test_a_bound_misses_no_form(seed, monkeypatch):
    """All forms are made here, and compared with the bounds by which they are left out elsewhere."""
    bound, find, missed = Prospects.prospect, Stable._form, []

    def found(rules, v):
        form, known = find(rules, v), bound(rules, v)
        if form is not None:
            wanted = GAINS if form.gained and not (form.plain and form.shifted) else 0
            wanted |= POSITIVE if form.sure else 0
            wanted |= CLEAN if form.sure and not form.plain else 0
            if wanted & ~known or not known:
                missed.append((rules.algebra.made_by(v)[0], wanted, known))
        return form

    monkeypatch.setattr(Stable, "_form", found)
    monkeypatch.setattr(Prospects, "prospect", lambda rules, v: ~0)
    stabilised(*grown(seed))
    assert not missed


@cache
def made(size: int) -> tuple[int, int]:
    """Operations that are made for a graph in whose products nothing is gained, and bounds that are found."""
    counts = [0, 0]
    create, find = Rewriter.create, Prospects._prospect

    def creating(rewriter, name, *arguments, **attributes):
        counts[0] += name != "tensor.cast"
        return create(rewriter, name, *arguments, **attributes)

    def finding(rules, *arguments):
        counts[1] += 1
        return find(rules, *arguments)

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(Rewriter, "create", creating)
        patch.setattr(Prospects, "_prospect", finding)
        y, *others = inputs = pt.dvectors("x", "y", "z")
        for i in range(size):
            y = (pt.exp(others[i % 2] * 3.0) * y - others[0]) / (1.0 + pt.tanh(y) * pt.tanh(y))
        stabilised(list(inputs), [y])
    return counts[0], counts[1]


def test_what_gains_nothing_makes_nothing():
    """But for constants and squares; and no bound is found twice."""
    sizes = (20, 40, 80)
    assert all(made(size)[0] <= 4 * size for size in sizes)
    assert all(made(size)[1] <= 12 * size for size in sizes)
