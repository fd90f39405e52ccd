# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Draws for devices: of a generator that counts, each number is computed from its place alone.

A uniform number takes one word of Philox. So all threads draw at once, the same numbers as NumPy does one
after the other. Where normal and exponential numbers begin is found out first (`device_ziggurats`).
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, TypeAlias

from graphc.ir import build
from graphc.ir.traits.draws import RANDOM
from graphc.lowering import calls
from graphc.lowering.device_choices import Row, bernoulli, categorical, choice
from graphc.lowering.device_integers import Integers
from graphc.lowering.device_philox import State, state_after, uniform, word
from graphc.lowering.device_ziggurats import EXPONENTIAL, NORMAL, Draws, Ziggurat
from graphc.lowering.nests import elementwise, position
from graphc.lowering.random import taken
from graphc.lowering.real_numbers import is_less, real, real_constant
from graphc.lowering.rules import ON_DEVICES
from graphc_dialects._mlir import ir
from graphc_dialects.random import GENERATORS

if TYPE_CHECKING:
    from graphc.lowering.converter import FunctionConverter

# Of a number from the ziggurat, or a uniform one, and the parameters, the draw.
Formula: TypeAlias = "Callable[..., ir.Value]"
# Parameters of which each draw takes an element, a draw by its number and these elements, and a word of the
# state after all draws.
Number: TypeAlias = "Callable[[ir.Value, Sequence[ir.Value]], ir.Value]"
Plan: TypeAlias = "tuple[list[ir.Value], Number, Callable[[ir.Value], ir.Value]]"


def _affine(x: ir.Value, loc: ir.Value, scale: ir.Value) -> ir.Value:
    """loc + scale * x, rounded twice, as NumPy does."""
    return real("arith.addf", loc, real("arith.mulf", scale, x))


def _uniform(x: ir.Value, *given: ir.Value) -> ir.Value:
    """Of what is given the first one is the lower bound, and the other one the extent."""
    return _affine(x, *given) if given else x


def _share(x: ir.Value, shape: ir.Value) -> ir.Value:
    return real("math.expm1", real("arith.divf", x, shape))


def _pareto(x: ir.Value, shape: ir.Value, scale: ir.Value) -> ir.Value:
    return real("arith.mulf", scale, real("arith.addf", real_constant(1.0), _share(x, shape)))


def _truncated(x: ir.Value, bound: ir.Value, loc: ir.Value, scale: ir.Value) -> ir.Value:
    share = real("math.expm1", real("arith.negf", bound))
    log = real("math.log1p", real("arith.mulf", x, share))
    return _affine(real("arith.negf", log), loc, scale)


# By the distribution: of what (None: uniform numbers), and how.
_FORMULAS: dict[str, tuple[Ziggurat | None, Formula]] = {
    "standard_uniform": (None, _uniform),
    "uniform": (None, _uniform),
    "truncexpon": (None, _truncated),
    "bernoulli": (None, bernoulli),
    "standard_normal": (NORMAL, lambda x: x),
    "normal": (NORMAL, _affine),
    "halfnormal": (NORMAL, lambda x, loc, scale: _affine(real("math.absf", x), loc, scale)),
    "lognormal": (NORMAL, lambda x, loc, scale: real("math.exp", _affine(x, loc, scale))),
    "standard_exponential": (EXPONENTIAL, lambda x: x),
    "exponential": (EXPONENTIAL, lambda x, scale: real("arith.mulf", scale, x)),
    "lomax": (EXPONENTIAL, _share),
    "pareto": (EXPONENTIAL, _pareto),
}
# Of a uniform number and a vector of probabilities.
_CHOICES: dict[str, Callable[[ir.Value, Row, ir.Value], ir.Value]] = {
    "categorical": categorical,
    "choice": choice,
}


_INTEGERS = "integers_64"


def have_kernel(op: ir.Operation) -> bool:
    """Whether draws are computed from their places: some distributions in float64, of Philox.

    A bit whose probability is 0 takes no word, and how often an attempt gives no integer depends on how many
    there are to choose from; so that has to be the same for all draws.
    """
    distribution = _distribution(op)
    words = ir.RankedTensorType(op.operands[0].type).shape[0]
    if GENERATORS[words] != "philox" or distribution not in (*_FORMULAS, *_CHOICES, _INTEGERS):
        return False
    same = {"bernoulli": 1, _INTEGERS: 2}.get(distribution)
    return same is None or set(op.operands[same].type.shape) <= {1}


def _distribution(op: ir.Operation) -> str:
    return str(ir.StringAttr(op.attributes["distribution"]).value)


@ON_DEVICES(RANDOM)
def random(context: FunctionConverter, op: ir.Operation) -> None:
    """A nest that computes the draws, and one that computes the state after them."""
    state, parameters, sizes = taken(context, op)
    draws, following = op.results
    count = calls.product(sizes)
    inputs, number, after = _plan(context, op, parameters, count)

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


def _plan(context: FunctionConverter, op: ir.Operation, parameters: list[ir.Value], count: ir.Value) -> Plan:
    words = context.tensor_of(op.operands[0])
    distribution = _distribution(op)
    if distribution == _INTEGERS:
        integers = Integers(op, words, context.tensor_of(parameters[1]), count)
        return (
            parameters[:1],
            lambda place, given: integers.number(place, given[0]),
            lambda place: integers.after(place, count),
        )
    ziggurat, formula = _FORMULAS.get(distribution, (None, _uniform))
    if ziggurat is not None:
        numbers = Draws(op, ziggurat, words, count)
        return (
            parameters,
            lambda place, given: formula(numbers.number(place), *given),
            lambda place: state_after(State(words), place, numbers.taken(count)),
        )
    choose = _CHOICES.get(distribution)

    def number(place: ir.Value, given: Sequence[ir.Value]) -> ir.Value:
        u = uniform(word(State(words), calls.number(place)))
        if choose is None:
            return formula(u, *given)
        return choose(u, _row(context.tensor_of(parameters[0])), context.sizes_of(parameters[0])[-1])

    def after(place: ir.Value) -> ir.Value:
        used = calls.number(count)
        if distribution == "bernoulli":
            some = is_less(real_constant(0.0), _row(context.tensor_of(parameters[0]), 0)())
            used = build.select(some, used, build.const_i64(0))
        return state_after(State(words), place, used)

    return [] if choose is not None else parameters, number, after


def _row(tensor: ir.Value, rank: int = 1) -> Row:
    """The probabilities of the draw at hand; dimensions of size 1 serve all."""
    kind = ir.RankedTensorType(tensor.type)
    lead = list(kind.shape)[: kind.rank - rank]
    indices = [build.const_index(0) if size == 1 else position(axis) for axis, size in enumerate(lead)]
    return lambda *place: (
        build.create("tensor.extract", [kind.element_type], [tensor, *indices, *place]).result
    )
