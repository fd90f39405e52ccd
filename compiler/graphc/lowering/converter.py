# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Converts one graph-stage function to linalg on tensors.

Results go to the memory that callers give for them.
"""

from __future__ import annotations

from collections import Counter
from functools import cached_property
from typing import TYPE_CHECKING, Any

from graphc.ir import build
from graphc.ir.kinds import REDUCTIONS, static_shape
from graphc.ir.scan_view import scans
from graphc.ir.views import INLINED, MOVES_AXES, TAKES_PART, TAKES_ROW
from graphc.ir.walk import named_attributes, signature_of, symbol_of
from graphc.lowering.generic import GenericBuilder, ScalarWork, is_one_element
from graphc.lowering.memory.destinations import Chains, Destinations
from graphc.lowering.memory.donation import Donations
from graphc.lowering.memory.layouts import view_of
from graphc.lowering.memory.units import SCHEDULED, Units
from graphc.lowering.rules import LOWERING, ON_DEVICES, Conversion, Rule
from graphc.lowering.scalar_builder import ScalarBuilder
from graphc.lowering.scans.buffers import row_of, unit_dimshuffle, writable, write, write_apart
from graphc.lowering.scans.scan import declared_sizes
from graphc.lowering.scans.updated_states import UpdatedStates
from graphc.lowering.structural import reshape
from graphc_dialects._mlir import ir

if TYPE_CHECKING:
    from collections.abc import Sequence


# Attribute of functions: the position of the first argument that is the memory of a result.
FIRST_RESULT = "graphc.first_result"


def emit_return(context: Conversion, donations: Donations, op: ir.Operation) -> None:
    """Puts results into their buffers, where they are not there already; those of `@shapes` are returned.

    Args:
        context: the function conversion.
        donations: the arguments in whose memory results are computed.
        op: the `func.return`.
    """
    results = list(op.operands)
    if not context.outputs:
        build.create("func.return", [], [context.tensor_of(x) for x in results])
        return
    # A result must be in its buffer before one made from it, as both may share memory until then.
    order: dict[ir.Value, int] = {
        value: i for i, other in enumerate(op.block.operations) for value in other.operation.results
    }
    lent = donations.pairs.values()
    pairs = [
        pair
        for i, pair in enumerate(zip(results, context.outputs, strict=True))
        if i not in context.filled and i not in lent
    ]
    for value, buffer in sorted(pairs, key=lambda pair: order.get(pair[0], -1)):
        scalar = context.scalar_of(value)
        if scalar is None:
            write(context.tensor_of(value), buffer)
            continue
        buffer[[0] * ir.MemRefType(buffer.type).rank] = ScalarBuilder(ir).stored(scalar)
    _return_lent(context, donations, results)
    build.create("func.return", [], [])


def _return_lent(context: Conversion, donations: Donations, results: list[ir.Value]) -> None:
    """Puts results into donated arguments, after their last reader; nothing is left to do as a rule.

    A copy instead of `materialize_in_destination`: that one would hand out the argument's memory for
    everything that becomes the result, without a look at who reads it.
    """
    context.is_ending = True
    for value in donations.lent:
        if value.owner.name in INLINED and not context.is_materialised(value):
            # As a loop: a part of another array would have to be copied twice.
            builder = GenericBuilder(context, static_shape(value), context.sizes_of(value), [])
            context.define(value, builder.copy(value))
    for argument, position in donations.pairs.items():
        is_there = argument in donations.waiting and position in context.filled
        if is_there or donations.is_itself(argument, results[position]):
            continue
        buffer, tensor = context.outputs[position], context.tensor_of(results[position])
        write_apart(tensor, buffer)


def slice_in_place(context: Conversion, op: ir.Operation) -> ir.Value | None:
    """The tensor of a `graphc.slice` with steps of 1 as a part of its source.

    Args:
        context: the function conversion.
        op: the slice.

    Returns:
        None if elements are skipped or reversed, or if the source is not in memory anyway.
    """
    x, *bounds = op.operands
    rank = ir.RankedTensorType(x.type).rank
    if not rank or not context.has_tensor(x) or context.scalar_of(x) is not None:
        return None
    if 0 in list(x.type.shape) or 0 in list(op.results[0].type.shape):
        return None  # upstream refuses parts of what has no elements
    offsets, sizes, strides = (
        [context.index_of(v) for v in bounds[start : start + rank]] for start in (0, rank, 2 * rank)
    )
    if any(build.constant_value(stride) != 1 for stride in strides):
        return None
    source = context.tensor_of(x)
    result = build.storage_type(op.results[0].type)
    known = list(result.shape)
    starts = [build.constant_value(offset) for offset in offsets]
    if not all(
        whole < 0 or start == 0 or (start is not None and size >= 0 and start + size <= whole)
        for whole, start, size in zip(ir.RankedTensorType(x.type).shape, starts, known, strict=True)
    ):
        return None  # upstream refuses parts that begin at the end of an axis, although they may be empty
    given = [offset if start is None else start for offset, start in zip(offsets, starts, strict=True)]
    wanted = [size if static < 0 else static for size, static in zip(sizes, known, strict=True)]
    kind = ir.RankedTensorType.get(known, result.element_type)
    return view_of("tensor.extract_slice", kind, source, given, wanted)


class FunctionConverter(Conversion):
    """The state of one conversion.

    Args:
        old: the graph-stage `func.func`; the new one is created right before it.
        donations: the arguments in whose memory results are computed.
        device: whether the result is for a device.
        results: whether the new function says which arguments are results.
    """

    def __init__(
        self, old: ir.Operation, donations: Donations, *, device: bool = False, results: bool = False
    ) -> None:
        super().__init__(old)
        self._old, self.device, self._names_results = old, device, results
        self._donations, self.donated = donations, donations.lent
        self.claimed, self.apart = donations.claimed, donations.apart
        self.arguments = donations.pairs.values()
        self.destinations = Destinations(self)
        self.chains = Chains(self)

    # -- what builders ask -----------------------------------------------------------------------------------

    def row_sizes(self, scan: ir.Operation, name: str) -> list[ir.Value]:
        return [self.index_of(size) for size in self._row_sizes[scan.results[0]][name]]

    def lent(self, value: ir.Value) -> ir.Value | None:
        argument = self._donations.lent.get(value)
        if argument is None or (value.owner.name in INLINED and not self.is_ending):
            return None
        tensor, kind = self._values[argument], build.storage_type(value.type)
        return tensor if tensor.type == kind else reshape(tensor, kind, self.sizes_of(value))

    def free_output(self, value: ir.Value) -> int | None:
        found = self._results_of.get(value, ()) if self.outputs else ()
        return next((position for position in found if position not in self.filled), None)

    @cached_property
    def _results_of(self) -> dict[ir.Value, list[int]]:
        """The positions of the results that each value is."""
        found: dict[Any, list[int]] = {}
        terminator = self._old.regions[0].blocks[0].operations[-1]
        for position, result in enumerate(terminator.operands):
            found.setdefault(result, []).append(position)
        return found

    # -- conversion ------------------------------------------------------------------------------------------

    def run(self) -> None:
        """Creates the converted function and erases the old one."""
        name = symbol_of(self._old)
        old_type = signature_of(self._old)
        inputs = [self._argument_type(t) for t in old_type.inputs]
        returns_tensors = all(isinstance(t.maybe_downcast(), ir.RankedTensorType) for t in old_type.results)
        lent = self._donations.pairs
        for argument in lent:
            inputs[argument] = self._buffer_type(old_type.inputs[argument])
        waiting = self._donations.waiting
        self.filled.update(lent[argument] for argument in lent if argument not in waiting)
        outputs = [
            self._buffer_type(t)
            for position, t in enumerate(old_type.results if returns_tensors else ())
            if position not in lent.values()
        ]
        results = [] if returns_tensors else list(old_type.results)
        function_type = ir.FunctionType.get([*inputs, *outputs], results)
        with ir.InsertionPoint(self._old), self._old.location:
            new = ir.Operation.create(
                "func.func",
                attributes={
                    "sym_name": ir.StringAttr.get(name + "__converted"),
                    "function_type": ir.TypeAttr.get(function_type),
                    "arg_attrs": ir.ArrayAttr.get([_argument_attributes(t) for t in function_type.inputs]),
                },
                regions=1,
            )
        if self._names_results and outputs:
            new.attributes[FIRST_RESULT] = ir.IntegerAttr.get(build.index_type(), len(inputs))
        arguments = list(self._old.regions[0].blocks[0].arguments)
        block = ir.Block.create_at_start(
            new.regions[0],
            [*inputs, *outputs],
            [*[a.location for a in arguments], *[self._old.location] * len(outputs)],
        )
        old_block = self._entry
        self._name_arguments(arguments, list(block.arguments))
        self._row_sizes: dict[ir.Value, dict[str, list[ir.Value]]] = {
            op.results[0]: declared_sizes(op) for op in scans(self._old)
        }
        self._updated = UpdatedStates(self._row_sizes)
        self.states, self.updates = self._updated.states, self._updated.updates
        with ir.InsertionPoint(block):
            for position in lent:
                self._values[arguments[position]] = writable(block.arguments[position])
            self.convert_block(old_block, block)
        self._old.operation.erase()
        new.attributes["sym_name"] = ir.StringAttr.get(name)

    def _name_arguments(self, old: Sequence[ir.Value], new: list[ir.Value]) -> None:
        """Says what arguments and buffers of results are; a donated argument is the buffer of its result."""
        self._values.update(zip(old, new[: len(old)], strict=True))
        self.outputs = new[len(old) :]
        for argument, position in sorted(self._donations.pairs.items(), key=lambda pair: pair[1]):
            self.outputs.insert(position, new[argument])

    def convert_block(self, old: ir.Block, new: ir.Block) -> None:
        self.enter_block(old, new)
        self.destinations.enter(old)
        self.chains.enter(old)
        extra = {
            scan: [size for row in sizes.values() for size in row] for scan, sizes in self._row_sizes.items()
        }
        after = self._donations.after if old == self._entry else self._updated.after(old)
        units = Units(old, extra, after)
        self._members.update(units.clusters)
        is_ordered = old != self._entry or SCHEDULED in self._old.attributes
        results = None if is_ordered else list(old.operations[-1].operands)
        order = units.order(results)
        self.destinations.refuse_rows(units.checked_late)
        for members in order:
            self._emit(members)

    def _argument_type(self, old: ir.Type) -> ir.Type:
        return build.storage_type(old) if isinstance(old.maybe_downcast(), ir.RankedTensorType) else old

    def _buffer_type(self, old: ir.Type) -> ir.Type:
        tensor = build.storage_type(old)
        return ir.MemRefType.get(tensor.shape, tensor.element_type)

    def _emit(self, members: list[ir.Operation]) -> None:
        op = members[-1]
        with op.location:
            placed = self.destinations.begin(members)
            if Units.is_loop(op):
                self._emit_cluster(members)
            elif op.name == "func.return":
                emit_return(self, self._donations, op)
            elif (rule := self._rule(op.name)) is not None:
                rule(self, op)
            elif op.name not in INLINED:
                self._clone(op)
            self.destinations.finish(placed)

    def _rule(self, name: str) -> Rule | None:
        return (ON_DEVICES.get(name) if self.device else None) or LOWERING.get(name)

    def _clone(self, op: ir.Operation) -> None:
        """An upstream operation (index arithmetic, tensor.dim, ...) on converted operands."""
        operands = [self.tensor_of(x) for x in op.operands]
        results = [self._argument_type(r.type) for r in op.results]
        attributes = named_attributes(op)
        new = build.create(op.name, results, operands, **attributes)
        for result, value in zip(op.results, new.results, strict=True):
            self.define(result, value)

    # -- clusters and views ----------------------------------------------------------------------------------

    def _emit_cluster(self, members: list[ir.Operation]) -> None:
        if self._is_scalar_work(members):
            ScalarWork(self, members).define()
            return
        shape, sizes = self._domain(members)
        read = Counter(x for op in members for x in op.operands)
        outputs = [result for op in members for result in op.results if len(list(result.uses)) > read[result]]
        tensors = GenericBuilder(self, shape, sizes, members).build(outputs)
        for output, tensor in zip(outputs, tensors, strict=True):
            kind = build.storage_type(output.type)
            self.define(output, tensor if tensor.type == kind else build.cast(tensor, kind))

    def _is_scalar_work(self, members: list[ir.Operation]) -> bool:
        """True if members of a loop's body compute one element each; straight code then needs no memory."""
        if members[0].block == self._old.regions[0].blocks[0]:
            return False
        return all(op.name not in REDUCTIONS and is_one_element(op.results[0]) for op in members)

    def _domain(self, members: list[ir.Operation]) -> tuple[tuple[int | None, ...], list[ir.Value]]:
        spaces = [op.operands[0] if op.name in REDUCTIONS else op.results[0] for op in members]
        columns = zip(*map(static_shape, spaces), strict=True)
        known = tuple(next((s for s in column if s is not None), None) for column in columns)
        for op in members:
            if op.name not in REDUCTIONS:
                for result in op.results:
                    self.sizes_of(result)
        sizes = self.sizes_of(spaces[0])
        return known, [
            build.const_index(size) if size is not None else value
            for size, value in zip(known, sizes, strict=True)
        ]

    def _materialise(self, value: ir.Value) -> None:
        """Copies a view (or a reordered read of one) into a tensor of its own."""
        scalar = self._scalars.get(value)
        if scalar is not None:
            self.define(value, ScalarWork(self, []).as_tensor(scalar, value.type))
            return
        if value.owner.name in TAKES_ROW and self.has_tensor(value.owner.operands[0]):
            self.define(value, row_of(self, value.owner))
            return
        if value.owner.name in TAKES_PART:
            part = slice_in_place(self, value.owner)
            if part is not None:
                self.define(value, part)
                return
        if value.owner.name in MOVES_AXES:
            renamed = unit_dimshuffle(self, value.owner)
            if renamed is not None:
                self.define(value, renamed)
                return
        sizes = self.sizes_of(value)
        builder = GenericBuilder(self, static_shape(value), sizes, [])
        self.define(value, builder.copy(value))


def _argument_attributes(type_: ir.Type) -> ir.Attribute:
    """Facts for bufferization: the arrays that callers pass must not be written to."""
    if not isinstance(type_.maybe_downcast(), ir.RankedTensorType):
        return ir.DictAttr.get({})
    return ir.DictAttr.get({"bufferization.writable": ir.BoolAttr.get(False)})
