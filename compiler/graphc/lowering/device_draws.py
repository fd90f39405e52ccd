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
from graphc.lowering.device_philox import State, state_after, uniform, word
from graphc.lowering.device_ziggurats import EXPONENTIAL, NORMAL, Draws, Ziggurat, real, real_constant
from graphc.lowering.nests import elementwise, position
from graphc.lowering.random import taken
from graphc.lowering.rules import ON_DEVICES
from graphc_dialects._mlir import ir
from graphc_dialects.random import GENERATORS

if TYPE_CHECKING:
    from graphc.lowering.converter import FunctionConverter

# Of a number from the ziggurat, or a uniform one, and the parameters, the draw.
Formula: TypeAlias = "Callable[..., ir.Value]"


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
    "standard_normal": (NORMAL, lambda x: x),
    "normal": (NORMAL, _affine),
    "halfnormal": (NORMAL, lambda x, loc, scale: _affine(real("math.absf", x), loc, scale)),
    "lognormal": (NORMAL, lambda x, loc, scale: real("math.exp", _affine(x, loc, scale))),
    "standard_exponential": (EXPONENTIAL, lambda x: x),
    "exponential": (EXPONENTIAL, lambda x, scale: real("arith.mulf", scale, x)),
    "lomax": (EXPONENTIAL, _share),
    "pareto": (EXPONENTIAL, _pareto),
}


def have_kernel(op: ir.Operation) -> bool:
    """Whether draws are computed from their places: some distributions in float64, of Philox."""
    distribution = ir.StringAttr(op.attributes["distribution"]).value
    words = ir.RankedTensorType(op.operands[0].type).shape[0]
    return GENERATORS[words] == "philox" and distribution in _FORMULAS


@ON_DEVICES(RANDOM)
def random(context: FunctionConverter, op: ir.Operation) -> None:
    """A nest that computes the draws, and one that computes the state after them."""
    state, parameters, sizes = taken(context, op)
    draws, following = op.results
    words = context.tensor_of(state)
    ziggurat, formula = _FORMULAS[ir.StringAttr(op.attributes["distribution"]).value]
    count = calls.product(sizes)
    numbers = None if ziggurat is None else Draws(op, ziggurat, words, count)

    def draw(given: Sequence[ir.Value]) -> ir.Value:
        place = build.const_index(0)
        for axis, size in enumerate(sizes):
            place = build.index_op("addi", build.index_op("muli", place, size), position(axis))
        if numbers is None:
            return formula(uniform(word(State(words), calls.number(place))), *given)
        return formula(numbers.number(place), *given)

    def after(given: Sequence[ir.Value]) -> ir.Value:
        used = calls.number(count) if numbers is None else numbers.taken(count)
        return state_after(State(words), calls.number(position(0)), used)

    for result, shape, inputs, body in (
        (draws, sizes, parameters, draw),
        (following, [build.const_index(state.type.shape[0])], [], after),
    ):
        start = context.destinations.start(result, build.storage_type(result.type), shape)
        context.define(result, elementwise([context.tensor_of(x) for x in inputs], start, body))
