# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Converts one graph-stage function to linalg on tensors.

Slices of what is in memory, without a copy.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Set
from contextlib import nullcontext
from functools import cached_property
from typing import TYPE_CHECKING, Any

from graphc.ir import build
from graphc.ir.kinds import REDUCTIONS, static_shape
from graphc.ir.scan_view import scans
from graphc.ir.traits.interfaces import SIZES, broadcast_sizes
from graphc.ir.views import INLINED, MOVES_AXES, TAKES_PART, TAKES_ROW
from graphc.ir.walk import signature_of, symbol_of
from graphc.lowering.generic import GenericBuilder, ScalarWork, is_one_element
from graphc.lowering.memory.chains import Chains
from graphc.lowering.memory.destinations import Destinations
from graphc.lowering.memory.donation import Donations
from graphc.lowering.memory.units import SCHEDULED, Units
from graphc.lowering.returns import FIRST_RESULT, emit_return
from graphc.lowering.rules import LOWERING, ON_DEVICES, Rule
from graphc.lowering.scalars.builder import Scalar
from graphc.lowering.scans.buffers import row_of, writable
from graphc.lowering.scans.scan import declared_sizes
from graphc.lowering.scans.updated_states import UpdatedStates
from graphc.lowering.structural import reshape
from graphc.lowering.unit_axes import unit_dimshuffle
from graphc_dialects._mlir import ir

if TYPE_CHECKING:
    from collections.abc import Sequence


def slice_in_place(context: FunctionConverter, op: ir.Operation) -> ir.Value | None:
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
    dynamic = [size for size, static in zip(sizes, known, strict=True) if static < 0]
    starts = [build.constant_value(offset) for offset in offsets]
    if not all(
        whole < 0 or start == 0 or (start is not None and size >= 0 and start + size <= whole)
        for whole, start, size in zip(ir.RankedTensorType(x.type).shape, starts, known, strict=True)
    ):
        return None  # upstream refuses parts that begin at the end of an axis, although they may be empty
    moving = [offset for offset, start in zip(offsets, starts, strict=True) if start is None]
    return build.create(
        "tensor.extract_slice",
        [ir.RankedTensorType.get(known, result.element_type)],
        [source, *moving, *dynamic],
        static_offsets=build.index_array([build.DYNAMIC if start is None else start for start in starts]),
        static_sizes=build.index_array([build.DYNAMIC if size < 0 else size for size in known]),
        static_strides=build.index_array([1] * rank),
        operandSegmentSizes=ir.DenseI32ArrayAttr.get([1, len(moving), len(dynamic), 0]),
    ).result


class FunctionConverter:
    """The state of one conversion.

    Args:
        old: the graph-stage `func.func`; the new one is created right before it.
        donations: the arguments in whose memory results are computed.
        device: whether the result is for a device.
        results: whether the new function says which arguments are results.

    Attributes:
        is_ending: whether all but the results has been computed.
    """

    def __init__(
        self, old: ir.Operation, donations: Donations, *, device: bool = False, results: bool = False
    ) -> None:
        self._old, self._device, self._names_results = old, device, results
        self.donations = donations
        self.is_ending = False
        self._values: dict[ir.Value, ir.Value] = {}
        self._scalars: dict[ir.Value, Scalar] = {}
        self._sizes: dict[ir.Value, list[ir.Value]] = {}
        self._members: dict[int, list[ir.Operation]] = {}
        self._member_sets: dict[int, frozenset[ir.Operation]] = {}
        # Blocks of the new function by the old ones they stand for.
        self._blocks: dict[ir.Block, ir.Block] = {}
        self._in_place: set[int] = set()
        self._entry = old.regions[0].blocks[0]
        self.destinations = Destinations(self)
        self.chains = Chains(self)

    # -- what builders ask -----------------------------------------------------------------------------------

    def is_materialised(self, value: ir.Value) -> bool:
        return value in self._values

    def has_tensor(self, value: ir.Value) -> bool:
        """True if a value is in memory in any case."""
        return self.is_materialised(value) or value.owner.name not in INLINED

    def scalar_of(self, value: ir.Value) -> Scalar | None:
        """The SSA scalar of a one-element value that never was a tensor."""
        return self._scalars.get(value)

    def tensor_of(self, value: ir.Value) -> ir.Value:
        """The new tensor of a value; a view is copied into one on first demand."""
        if value not in self._values:
            with self._at_definition(value):
                self._materialise(value)
        return self._values[value]

    def index_of(self, value: Any) -> ir.Value:
        return self._values[value]

    def sizes_of(self, value: ir.Value) -> list[ir.Value]:
        """Index values of a value's dimensions, without computing the value."""
        if value not in self._sizes:
            with self._at_definition(value):
                self._sizes[value] = self._find_sizes(value)
        return self._sizes[value]

    def _at_definition(self, value: ir.Value) -> Any:
        """The insertion point in the block that defines a value: what is remembered must be visible to all
        that follows there, also when the body of a loop asks first.
        """
        owner = value.owner
        block = self._blocks[owner if isinstance(owner, ir.Block) else owner.operation.block]
        point = ir.InsertionPoint.current
        if point.block == block:
            return nullcontext()
        op = point.block.owner.operation
        while op.block != block:
            op = op.parent.operation
        return ir.InsertionPoint(op)

    def is_computed_here(self, value: ir.Value) -> bool:
        """True if the block that is being converted defines a value."""
        owner = value.owner
        block = owner if isinstance(owner, ir.Block) else owner.operation.block
        return bool(self._blocks[block] == ir.InsertionPoint.current.block)

    def is_last_use(self, value: ir.Value, members: Set[ir.Operation]) -> bool:
        """True if only a value's own cluster and these operations read it: its buffer is then free."""
        owner = value.owner
        if isinstance(owner, ir.Block) or "cluster" not in owner.attributes:
            return False
        if not members or next(iter(members)).block != owner.operation.block:
            return False
        number = ir.IntegerAttr(owner.attributes["cluster"]).value
        others = [op for op in (use.owner.operation for use in value.uses) if op not in members]
        if others and number not in self._member_sets:
            self._member_sets[number] = frozenset(self._members[number])
        return not others or self._member_sets[number].issuperset(others)

    def fused_with(self, op: ir.Operation) -> list[ir.Operation]:
        """The operations of an operation's cluster, itself included."""
        if "cluster" not in op.attributes:
            return [op]
        return self._members[ir.IntegerAttr(op.attributes["cluster"]).value]

    def in_loop(self) -> bool:
        """True if what is being converted is the body of a loop."""
        return bool(ir.InsertionPoint.current.block != self._blocks[self._old.regions[0].blocks[0]])

    def define(self, value: ir.Value, new: ir.Value) -> None:
        self._values[value] = new

    def define_scalar(self, value: ir.Value, scalar: Scalar) -> None:
        """Says that a one-element value is an SSA scalar."""
        self._scalars[value] = scalar

    def define_sizes(self, value: ir.Value, sizes: list[ir.Value]) -> None:
        """Says what the sizes of a value are."""
        self._sizes[value] = sizes

    def row_sizes(self, scan: ir.Operation, name: str) -> list[ir.Value]:
        """Sizes of the rows of an output of a scan."""
        return [self.index_of(size) for size in self._row_sizes[scan.results[0]][name]]

    def lent(self, value: ir.Value) -> ir.Value | None:
        """The tensor of the argument in whose memory a value is to be computed, or None.

        What another array holds is put there at the end. Something may need it in memory of its own before
        that, when the argument still has readers.
        """
        argument = self.donations.lent.get(value)
        if argument is None or (value.owner.name in INLINED and not self.is_ending):
            return None
        tensor, kind = self._values[argument], build.storage_type(value.type)
        return tensor if tensor.type == kind else reshape(tensor, kind, self.sizes_of(value))

    def is_lent_to(self, value: ir.Value, argument: ir.Value) -> bool:
        """True if a value is to be computed in an argument's memory."""
        lent = self.donations.lent.get(value)
        return lent is not None and bool(lent == argument)

    def is_wanted_in_argument(self, value: ir.Value) -> bool:
        """True if a value, or a view of it, is a result that is to be computed in an argument's memory."""
        return value in self.donations.claimed

    def is_stored_apart(self, trace: ir.Value) -> bool:
        """True if rows of a trace are stored where the rows are that the scan computes them from."""
        return trace in self.donations.apart

    def free_output(self, value: ir.Value) -> int | None:
        """The position of a result that is this value and that nobody has promised to fill, or None."""
        found = self._results_of.get(value, ()) if self.outputs else ()
        return next((position for position in found if position not in self._in_place), None)

    @cached_property
    def _results_of(self) -> dict[ir.Value, list[int]]:
        """The positions of the results that each value is."""
        found: dict[Any, list[int]] = {}
        terminator = self._old.regions[0].blocks[0].operations[-1]
        for position, result in enumerate(terminator.operands):
            found.setdefault(result, []).append(position)
        return found

    def output(self, position: int) -> ir.Value:
        """The caller's buffer of a result."""
        return self.outputs[position]

    def is_filled(self, position: int) -> bool:
        """True if somebody has promised to fill the buffer of a result."""
        return position in self._in_place

    def fill_output(self, position: int) -> None:
        """Promises that the buffer of a result will be filled."""
        self._in_place.add(position)

    # -- conversion ------------------------------------------------------------------------------------------

    def run(self) -> None:
        """Creates the converted function and erases the old one."""
        name = symbol_of(self._old)
        old_type = signature_of(self._old)
        inputs = [self._argument_type(t) for t in old_type.inputs]
        returns_tensors = all(isinstance(t.maybe_downcast(), ir.RankedTensorType) for t in old_type.results)
        lent = self.donations.pairs
        for argument in lent:
            inputs[argument] = self._buffer_type(old_type.inputs[argument])
        waiting = self.donations.waiting
        self._in_place.update(lent[argument] for argument in lent if argument not in waiting)
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
        self.updated = UpdatedStates(self._old, self._row_sizes)
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
        for argument, position in sorted(self.donations.pairs.items(), key=lambda pair: pair[1]):
            self.outputs.insert(position, new[argument])

    def enter_block(self, old: ir.Block, new: ir.Block) -> None:
        """Says which block stands for an old one."""
        self._blocks[old] = new

    def convert_block(self, old: ir.Block, new: ir.Block) -> None:
        """Converts the operations of a block at the current insertion point, which is in `new`."""
        self.enter_block(old, new)
        self.destinations.enter(old)
        self.chains.enter(old)
        extra = {
            scan: [size for row in sizes.values() for size in row] for scan, sizes in self._row_sizes.items()
        }
        after = self.donations.after if old == self._entry else self.updated.after(old)
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
                emit_return(self, op)
            elif (rule := self._rule(op.name)) is not None:
                rule(self, op)
            elif op.name not in INLINED:
                self._clone(op)
            self.destinations.finish(placed)

    def _rule(self, name: str) -> Rule | None:
        return (ON_DEVICES.get(name) if self._device else None) or LOWERING.get(name)

    def _clone(self, op: ir.Operation) -> None:
        """An upstream operation (index arithmetic, tensor.dim, ...) on converted operands."""
        operands = [self.tensor_of(x) for x in op.operands]
        results = [self._argument_type(r.type) for r in op.results]
        attributes = {name: op.attributes[name] for name in op.attributes}
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
            self.define(output, build.cast(tensor, build.storage_type(output.type)))

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

    def _find_sizes(self, value: ir.Value) -> list[ir.Value]:
        shape: Any = static_shape(value)
        if value in self._values:
            return build.dims(self._values[value])
        op = value.owner
        if all(size is not None for size in shape):
            return [build.const_index(size) for size in shape]
        rule = SIZES.get(op.name)
        equal = broadcast_sizes(op) if rule is None else rule(op)
        return [
            build.const_index(known) if known is not None else self._size(*sizes[0])
            for known, sizes in zip(shape, equal, strict=True)
        ]

    def _size(self, x: ir.Value, axis: int) -> ir.Value:
        return self.index_of(x) if axis < 0 else self.sizes_of(x)[axis]


def _argument_attributes(type_: ir.Type) -> ir.Attribute:
    """Facts for bufferization: the arrays that callers pass must not be written to."""
    if not isinstance(type_.maybe_downcast(), ir.RankedTensorType):
        return ir.DictAttr.get({})
    return ir.DictAttr.get({"bufferization.writable": ir.BoolAttr.get(False)})
