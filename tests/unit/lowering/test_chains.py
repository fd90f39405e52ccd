# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Updates of one array that store in memory chosen before the first one compute what the graph means."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import graphc
import graphc.tensor as pt

# What the first update starts from, what is made of the last one, and what each one puts where.
BASES = {
    "argument": lambda x, z: x,
    "result": lambda x, z: pt.exp(x),
    "fill": lambda x, z: pt.full_like(x, 3.0),
    "transposed": lambda x, z: x.T,
    "joined": lambda x, z: pt.concatenate([x * 2, z]),
    "conditional": lambda x, z: graphc.ifelse(x.sum() > 0, pt.sin(x), z + x),
    "product": lambda x, z: x @ z,
}
ENDS = {
    "result": lambda y, base, z: [y],
    "twice": lambda y, base, z: [y, y],
    "base too": lambda y, base, z: [y, base],
    "part of a join": lambda y, base, z: [pt.concatenate([z, y, z])],
    "taken over": lambda y, base, z: [pt.concatenate([y * 2 + 1, z])],
    "transposed": lambda y, base, z: [y.T],
    "sum": lambda y, base, z: [y.sum(), z],
    "conditional": lambda y, base, z: [graphc.ifelse(z.sum() > 0, y, base)],
}
PLACES = [1, slice(1, 3), slice(None, None, -2), np.array([0, 2, 0])]
ELEMENTS = [
    lambda part, base, z: 2.0,
    lambda part, base, z: part * 2,
    lambda part, base, z: pt.sqr(base).sum(),
    lambda part, base, z: z[0] + pt.exp(part),
]
steps = st.lists(
    st.tuples(st.booleans(), st.sampled_from(range(len(PLACES))), st.sampled_from(range(len(ELEMENTS)))),
    min_size=2,
    max_size=5,
)


def chain(y, base, z, made):
    for is_set, place, element in made:
        # Which of several elements for one place is set last is not said.
        where = np.array([0, 2]) if is_set and place == 3 else PLACES[place]
        change = pt.set_subtensor if is_set else pt.inc_subtensor
        y = change(y[where], ELEMENTS[element](y[where], base, z))
    return y


@given(
    base=st.sampled_from(list(BASES)),
    end=st.sampled_from(list(ENDS)),
    made=steps,
    donated=st.booleans(),
    mode=st.sampled_from(["fast_run", "fast_compile"]),
)
def test_chains_of_any_form(base, end, made, donated, mode):
    x, z = pt.matrices("x", "z")
    start = BASES[base](x, z)
    outputs = ENDS[end](chain(start, start, z, made), start, z)
    rng = np.random.default_rng(0)
    values = [rng.normal(size=(3, 3)) for _ in range(2)]
    expected = graphc.function([x, z], outputs, mode="reference", on_unused_input="ignore")(*values)
    first = graphc.In(x, mutable=True, borrow=True) if donated else x
    f = graphc.function([first, z], outputs, mode=mode, on_unused_input="ignore")
    for want, have in zip(expected, f(*(value.copy() for value in values)), strict=True):
        np.testing.assert_allclose(have, want, rtol=1e-12)


@pytest.mark.parametrize("first", ["argument", "result", "fill", "conditional"])
def test_chains_in_loops(first):
    x, z = pt.matrices("x", "z")
    made = [(True, 0, 0), (False, 1, 1), (True, 2, 2)]

    def step(row, state):
        start = {
            "argument": state,
            "result": pt.tanh(state + row),
            "fill": pt.zeros_like(state),
            "conditional": graphc.ifelse(row.sum() > 0, pt.sin(state), row * state),
        }[first]
        return chain(start, row, state, made), chain(row * 2, state, row, made)

    rows, others = graphc.scan(step, sequences=[x], outputs_info=[z[0], None], return_updates=False)
    rng = np.random.default_rng(0)
    values = [rng.normal(size=(4, 3)) for _ in range(2)]
    for outputs in ([rows, others], [rows[-1], others.T], [pt.concatenate([rows, others])]):
        expected = graphc.function([x, z], outputs, mode="reference")(*values)
        for want, have in zip(expected, graphc.function([x, z], outputs)(*values), strict=True):
            np.testing.assert_allclose(have, want, rtol=1e-12)


def test_they_take_no_array_but_the_result():
    x = pt.vector("x", shape=(1000,))
    y = pt.exp(x)
    for i in range(10):
        y = pt.inc_subtensor(y[i : i + 10], 1.0)
    for outputs in (y, pt.concatenate([y, x])):
        assert graphc.function([x], outputs).memory_plan().peak < 1000


def test_shared_variables_are_updated_in_place():
    s = graphc.shared(np.arange(100.0), "s")
    y = s
    for i in range(4):
        y = pt.inc_subtensor(y[i : i + 2], 10.0**i)
    f = graphc.function([], [s.sum()], updates={s: y})
    assert f()[0] == 4950 and s.get_value()[:6].tolist() == [1, 12, 112, 1103, 1004, 5]
    assert f.memory_plan().peak < 100


def test_the_copy_of_an_argument_says_why():
    x = pt.vector("x", shape=(1000,))
    f = graphc.function([x], pt.inc_subtensor(pt.set_subtensor(x[1], 2.0)[2:], 1.0))
    (copy,) = f.memory_plan().copies
    assert copy.why == "a result must not share memory with an input"


def test_what_lies_in_merged_memory_is_copied_and_updated():
    """Other functions of the copies are computed in the memory of their operands before and after it."""
    z = pt.vector("z")
    b = pt.sin(pt.exp(z))
    updated = pt.set_subtensor(pt.set_subtensor(b[0], 1.0)[1], 2.0)
    again = pt.set_subtensor(pt.set_subtensor(pt.tanh(updated)[0], 1.0)[1], 2.0)
    outputs = [pt.exp(again).sum(), (b * 2).sum(), pt.tanh(updated).sum()]
    values = np.linspace(0.1, 1.0, 5)
    expected = graphc.function([z], outputs, mode="reference")(values)
    found = graphc.function([z], outputs, mode="fast_compile")(values)
    np.testing.assert_allclose(found, expected, rtol=1e-12)
