# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Draws for devices: of a generator that counts, each number is computed from its place alone.

Philox encrypts a counter of 256 bits to four words; a uniform number takes one word. So all threads draw at
once, the same numbers as NumPy does one after the other. Source: J. Salmon et al., "Parallel random numbers:
as easy as 1, 2, 3" (2011).
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING

from graphc.ir import build
from graphc.ir.traits.draws import RANDOM
from graphc.library.random.generators import PHILOX_MULTIPLIERS, PHILOX_ROUNDS, PHILOX_STEPS
from graphc.lowering import calls
from graphc.lowering.rules import ON_DEVICES
from graphc_dialects._mlir import ir
from graphc_dialects.random import GENERATORS

if TYPE_CHECKING:
    from graphc.lowering.converter import FunctionConverter

# Places in the state (`graphc_runtime.generators`): four words of the counter, two of the key, four that have
# been made, and how many of these are used up.
_KEY, _MADE, _USED = 4, 6, 10
_BLOCK = 4
_UNIT = 2.0**-53
_EQUAL, _LESS, _NOT_MORE = 0, 6, 7


def have_kernel(op: ir.Operation) -> bool:
    """Whether draws are computed from their places: uniform numbers in float64, of Philox."""
    distribution = ir.StringAttr(op.attributes["distribution"]).value
    words = ir.RankedTensorType(op.operands[0].type).shape[0]
    return GENERATORS[words] == "philox" and distribution in ("standard_uniform", "uniform")


@ON_DEVICES(RANDOM)
def random(context: FunctionConverter, op: ir.Operation) -> None:
    """A nest that computes the draws, and one that computes the state after them."""
    state, *rest = op.operands
    count = len(list(op.attributes["cores"]))
    parameters, wanted = rest[:count], rest[count:]
    draws, following = op.results
    sizes = [
        build.const_index(known) if known >= 0 else context.index_of(size)
        for known, size in zip(draws.type.shape, wanted, strict=True)
    ]
    context.define_sizes(draws, sizes)
    words = context.tensor_of(state)

    def draw(indices: list[ir.Value], given: Sequence[ir.Value]) -> ir.Value:
        place = build.const_index(0)
        for index, size in zip(indices, sizes, strict=True):
            place = build.index_op("addi", build.index_op("muli", place, size), index)
        number = _uniform(_word(_State(words), calls.number(place)))
        for name, x in zip(("arith.mulf", "arith.addf"), given[::-1], strict=True) if given else ():
            number = build.create(name, [x.type], [x, number]).result
        return number

    def after(indices: list[ir.Value], given: Sequence[ir.Value]) -> ir.Value:
        return _after(_State(words), calls.number(indices[0]), calls.number(calls.product(sizes)))

    context.define(draws, _nest(context, draws, sizes, parameters, draw))
    length = [build.const_index(state.type.shape[0])]
    context.define(following, _nest(context, following, length, [], after))


def _nest(
    context: FunctionConverter,
    value: ir.Value,
    sizes: list[ir.Value],
    operands: list[ir.Value],
    body: Callable[[list[ir.Value], Sequence[ir.Value]], ir.Value],
) -> ir.Value:
    """An elementwise nest over a new tensor; operands are repeated along dimensions in which they are 1."""
    target = context.destinations.start(value, build.storage_type(value.type), sizes)
    rank, inputs = len(sizes), [context.tensor_of(x) for x in operands]
    maps = [
        [
            ir.AffineExpr.get_constant(0) if size == 1 else ir.AffineExpr.get_dim(axis)
            for axis, size in enumerate(ir.RankedTensorType(x.type).shape)
        ]
        for x in inputs
    ]
    affine = [*(ir.AffineMap.get(rank, 0, each) for each in maps), ir.AffineMap.get_identity(rank)]
    parallel = ir.Attribute.parse("#linalg.iterator_type<parallel>")
    generic = ir.Operation.create(
        "linalg.generic",
        results=[target.type],
        operands=[*inputs, target],
        attributes={
            "indexing_maps": ir.ArrayAttr.get([ir.AffineMapAttr.get(each) for each in affine]),
            "iterator_types": ir.ArrayAttr.get([parallel] * rank),
            "operandSegmentSizes": ir.DenseI32ArrayAttr.get([len(inputs), 1]),
        },
        regions=1,
    )
    elements = [ir.RankedTensorType(x.type).element_type for x in (*inputs, target)]
    block = ir.Block.create_at_start(generic.regions[0], elements)
    with ir.InsertionPoint(block):
        dims = [ir.IntegerAttr.get(_i64(), axis) for axis in range(rank)]
        indices = [build.create("linalg.index", [build.index_type()], [], dim=dim).result for dim in dims]
        build.create("linalg.yield", [], [body(indices, list(block.arguments)[:-1])])
    return generic.results[0]


# -- words of 64 bits ----------------------------------------------------------------------------------------


def _i64() -> ir.Type:
    return ir.IntegerType.get_signless(64)


def _number(value: int) -> ir.Value:
    signed = value - (1 << 64) if value >= 1 << 63 else value
    return build.create("arith.constant", [_i64()], [], value=ir.IntegerAttr.get(_i64(), signed)).result


def _of(name: str, x: ir.Value, y: ir.Value | int) -> ir.Value:
    return build.create(f"arith.{name}", [_i64()], [x, _number(y) if isinstance(y, int) else y]).result


def _compare(predicate: int, x: ir.Value, y: ir.Value | int) -> ir.Value:
    other = _number(y) if isinstance(y, int) else y
    attribute = ir.IntegerAttr.get(_i64(), predicate)
    bit = ir.IntegerType.get_signless(1)
    return build.create("arith.cmpi", [bit], [x, other], predicate=attribute).result


class _State:
    """The words of a state, read in the body of a nest."""

    def __init__(self, words: ir.Value) -> None:
        self._words = words
        self.counter = [self.read(_number(i)) for i in range(_KEY)]
        self.key = [self.read(_number(i)) for i in range(_KEY, _MADE)]
        self.used = self.read(_number(_USED))
        self.left = _of("subi", _number(_BLOCK), self.used)

    def read(self, place: ir.Value) -> ir.Value:
        """One word."""
        index = build.create("arith.index_cast", [build.index_type()], [place]).result
        return build.create("tensor.extract", [_i64()], [self._words, index]).result

    def block(self, steps: ir.Value) -> tuple[list[ir.Value], list[ir.Value]]:
        """The counter some steps further, and the four words that it stands for."""
        counter, carry = [], steps
        for word in self.counter:
            total = _of("addi", word, carry)
            # A sum has wrapped around if it is less than what was added.
            carry = build.create("arith.extui", [_i64()], [_compare(_LESS, total, carry)]).result
            counter.append(total)
        words, key = counter, self.key
        for number in range(PHILOX_ROUNDS):
            if number:
                key = [_of("addi", k, step) for k, step in zip(key, PHILOX_STEPS, strict=True)]
            words = _round(words, key)
        return counter, words


def _round(words: list[ir.Value], key: list[ir.Value]) -> list[ir.Value]:
    (low0, high0), (low1, high1) = (
        build.create("arith.mului_extended", [_i64(), _i64()], [word, _number(factor)]).results
        for word, factor in zip((words[0], words[2]), PHILOX_MULTIPLIERS, strict=True)
    )
    first = _of("xori", _of("xori", high1, words[1]), key[0])
    third = _of("xori", _of("xori", high0, words[3]), key[1])
    return [first, low1, third, low0]


def _chosen(words: list[ir.Value], number: ir.Value) -> ir.Value:
    found = words[0]
    for i, word in enumerate(words[1:], 1):
        found = build.select(_compare(_EQUAL, number, i), word, found)
    return found


def _word(state: _State, place: ir.Value) -> ir.Value:
    """The word of a draw: one of those that have been made, or of a block further on."""
    is_made = _compare(_LESS, place, state.left)
    further = _of("subi", place, state.left)
    _, words = state.block(_of("addi", _of("shrui", further, 2), 1))
    made = build.select(is_made, _of("addi", state.used, place), _number(0))
    return build.select(
        is_made, state.read(_of("addi", made, _MADE)), _chosen(words, _of("andi", further, _BLOCK - 1))
    )


def _after(state: _State, place: ir.Value, count: ir.Value) -> ir.Value:
    """A word of the state after some draws."""
    suffice = _compare(_NOT_MORE, count, state.left)
    further = _of("subi", count, state.left)
    blocks = _of("shrui", _of("addi", further, _BLOCK - 1), 2)
    counter, words = state.block(build.select(suffice, _number(0), blocks))
    used = _of("addi", _of("andi", _of("subi", further, 1), _BLOCK - 1), 1)
    kept = state.read(place)
    found = build.select(_compare(_LESS, place, _KEY), _chosen(counter, place), kept)
    is_made = build.create(
        "arith.andi",
        [suffice.type],
        [_compare(_LESS, _of("subi", place, _MADE), _BLOCK), _compare(_LESS, state.left, count)],
    ).result
    found = build.select(is_made, _chosen(words, _of("subi", place, _MADE)), found)
    used = build.select(suffice, _of("addi", state.used, count), used)
    return build.select(_compare(_EQUAL, place, _USED), used, found)


def _uniform(word: ir.Value) -> ir.Value:
    """A number in [0, 1) of the upper 53 bits."""
    f64 = ir.F64Type.get()
    number = build.create("arith.sitofp", [f64], [_of("shrui", word, 11)]).result
    unit = build.create("arith.constant", [f64], [], value=ir.FloatAttr.get(f64, _UNIT)).result
    return build.create("arith.mulf", [f64], [number, unit]).result
