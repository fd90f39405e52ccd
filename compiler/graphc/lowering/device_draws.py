# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Draws for devices: of a generator that counts, each number is computed from its place alone.

A uniform number takes one word of Philox. So all threads draw at once, the same numbers as NumPy does one
after the other. Where draws begin that take several words is found out first: normal and exponential numbers
(`device_ziggurats`), and what is made of several numbers (`device_streams`).
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, TypeAlias

import numpy as np

from graphc.ir import build
from graphc.ir.known_rows import known_splat
from graphc.ir.traits.draws import RANDOM
from graphc.lowering import calls
from graphc.lowering.device_choices import MOST_TRIALS, Row, categorical, choice
from graphc.lowering.device_counts import COUNTS
from graphc.lowering.device_formats import FLOAT
from graphc.lowering.device_formulas import OF_EXPONENTIAL, OF_NORMAL, OF_POSITIVE, OF_UNIFORM
from graphc.lowering.device_gammas import GAMMAS
from graphc.lowering.device_halves import Halves
from graphc.lowering.device_integers import Integers
from graphc.lowering.device_philox import State, state_after
from graphc.lowering.device_streams import DrawsOfSeveral
from graphc.lowering.device_uniforms import Positive, Possible, PossibleAlike, Source, Uniforms
from graphc.lowering.device_ziggurats import (
    EXPONENTIAL,
    EXPONENTIAL_FLOAT,
    NORMAL,
    NORMAL_FLOAT,
    Draws,
    Ziggurat,
)
from graphc.lowering.nests import elementwise, position
from graphc.lowering.random import taken
from graphc.lowering.rules import ON_DEVICES
from graphc_dialects._mlir import ir
from graphc_dialects.random import GENERATORS

if TYPE_CHECKING:
    from graphc.lowering.converter import FunctionConverter

# Parameters of which each draw takes an element, a draw by its number and these elements, and a word of the
# state after all draws.
Number: TypeAlias = "Callable[[ir.Value, Sequence[ir.Value]], ir.Value]"
Plan: TypeAlias = "tuple[list[ir.Value], Number, Callable[[ir.Value], ir.Value]]"

# Draws that take several words.
_SEVERAL = {**GAMMAS, **COUNTS}
# Draws of float32, of halves of words.
_FLOAT = "_f32"
_FLOATS: dict[str, Ziggurat | None] = {
    f"standard_uniform{_FLOAT}": None,
    f"standard_normal{_FLOAT}": NORMAL_FLOAT,
    f"standard_exponential{_FLOAT}": EXPONENTIAL_FLOAT,
}
# Of numbers that take a word, or as many as it takes.
_FORMULAS = {
    **OF_UNIFORM,
    **OF_POSITIVE,
    **OF_NORMAL,
    **OF_EXPONENTIAL,
    **dict.fromkeys(_FLOATS, lambda x: x),
    **{name: formula for name, (_, formula) in _SEVERAL.items()},
}
# Of a uniform number and a vector of probabilities.
_CHOICES: dict[str, Callable[[ir.Value, Row, ir.Value], ir.Value]] = {
    "categorical": categorical,
    "choice": choice,
}
# Which parameter is a probability, of draws that take no word if it is 0.
_SHARES = {"bernoulli": 0, "binomial": 1}
_INTEGERS = ("integers_64", "integers_32", "integers_16", "integers_8")


# Parameters that have to be the same for all draws.
_SAME = {**dict.fromkeys(_INTEGERS, (1,)), **{name: kind.same for name, (kind, _) in _SEVERAL.items()}}


def have_kernel(op: ir.Operation) -> bool:
    """Whether draws are computed from their places: some distributions, of Philox.

    How many words a draw takes must not depend on what differs from draw to draw, except that some take none.
    Of binomial draws it is known for a few trials.
    """
    distribution = _distribution(op)
    words = ir.RankedTensorType(op.operands[0].type).shape[0]
    if GENERATORS[words] != "philox" or distribution not in (*_FORMULAS, *_CHOICES, *_INTEGERS):
        return False
    if distribution == "binomial":
        trials = _known(op.operands[1])
        return trials is not None and 0 < trials <= MOST_TRIALS
    return all(_is_same(op.operands[1 + number]) for number in _SAME.get(distribution, ()))


def _is_same(parameter: ir.Value) -> bool:
    """Whether all draws have the same element of a parameter, as its type says."""
    return set(ir.RankedTensorType(parameter.type).shape) <= {1}


def _known(parameter: ir.Value) -> float | None:
    """The number that all elements of a parameter are, if that is known."""
    found = known_splat(parameter)
    return None if found is None else float(np.frombuffer(found[2], found[1])[0])


def _distribution(op: ir.Operation) -> str:
    return str(ir.StringAttr(op.attributes["distribution"]).value)


@ON_DEVICES(RANDOM)
def random(context: FunctionConverter, op: ir.Operation) -> None:
    """A nest that computes the draws, and one that computes the state after them."""
    state, parameters, sizes = taken(context, op)
    draws, following = op.results
    inputs, number, after = _plan(context, op, parameters, sizes)

    def draw(given: Sequence[ir.Value]) -> ir.Value:
        place = build.const_index(0)
        for axis, size in enumerate(sizes):
            place = build.index_op("addi", build.index_op("muli", place, size), position(axis))
        return number(place, given)

    for result, shape, operands, body in (
        (draws, sizes, inputs, draw),
        (
            following,
            [build.const_index(state.type.shape[0])],
            [],
            lambda _: after(calls.number(position(0))),
        ),
    ):
        start = context.destinations.start(result, build.storage_type(result.type), shape)
        context.define(result, elementwise([context.tensor_of(x) for x in operands], start, body))


def _plan(
    context: FunctionConverter, op: ir.Operation, parameters: list[ir.Value], sizes: list[ir.Value]
) -> Plan:
    words, count = context.tensor_of(op.operands[0]), calls.product(sizes)
    distribution = _distribution(op)
    if distribution in _INTEGERS:
        integers = Integers(op, words, context.tensor_of(parameters[1]), count)
        return (
            parameters[:1],
            lambda place, given: integers.number(place, given[0]),
            lambda place: integers.after(place, count),
        )
    source = _source(context, op, parameters, sizes, count)

    def after(place: ir.Value) -> ir.Value:
        if distribution in _FLOATS:
            return Halves(words).after(place, source.taken(count))
        return state_after(State(words), place, source.taken(count))

    choose = _CHOICES.get(distribution)
    if choose is None:
        formula = _FORMULAS[distribution]
        return parameters, lambda place, given: formula(source.number(place), *given), after
    chosen = choose

    def number(place: ir.Value, given: Sequence[ir.Value]) -> ir.Value:
        row = _row(context.tensor_of(parameters[0]))
        return chosen(source.number(place), row, context.sizes_of(parameters[0])[-1])

    return [], number, after


def _source(
    context: FunctionConverter,
    op: ir.Operation,
    parameters: list[ir.Value],
    sizes: list[ir.Value],
    count: ir.Value,
) -> Source:
    """The numbers that draws are made of."""
    words, distribution = context.tensor_of(op.operands[0]), _distribution(op)
    if distribution in _SHARES:
        share = context.tensor_of(parameters[_SHARES[distribution]])
        if _is_same(share):
            return PossibleAlike(words, _row(share, 0))
        return Possible(op, words, share, sizes)
    if distribution in OF_POSITIVE:
        return Positive(op, words, count)
    if distribution in OF_NORMAL or distribution in OF_EXPONENTIAL:
        return Draws(op, NORMAL if distribution in OF_NORMAL else EXPONENTIAL, words, count)
    if distribution in _FLOATS:
        ziggurat = _FLOATS[distribution]
        return Uniforms(words, FLOAT) if ziggurat is None else Draws(op, ziggurat, words, count)
    if distribution in _SEVERAL:
        kind = _SEVERAL[distribution][0]
        given = [_row(context.tensor_of(parameters[number]), 0) for number in kind.same]
        average = kind.words_of([_known(op.operands[1 + number]) for number in kind.same])
        return DrawsOfSeveral(op, kind, words, count, lambda: [each() for each in given], average)
    return Uniforms(words)


def _row(tensor: ir.Value, rank: int = 1) -> Row:
    """The probabilities of the draw at hand; dimensions of size 1 serve all."""
    kind = ir.RankedTensorType(tensor.type)
    lead = list(kind.shape)[: kind.rank - rank]
    indices = [build.const_index(0) if size == 1 else position(axis) for axis, size in enumerate(lead)]
    return lambda *place: (
        build.create("tensor.extract", [kind.element_type], [tensor, *indices, *place]).result
    )
