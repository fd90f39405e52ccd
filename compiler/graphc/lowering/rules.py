# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""The lowering of operations that are not loops over elements, as traits, and what it asks of a conversion.

Rules, builders of loops, and the rooms of memory and scans know a `Conversion`; none of them knows
`graphc.lowering.converter`, which imports them all.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Collection, Mapping, Set
from contextlib import AbstractContextManager, nullcontext
from dataclasses import field
from typing import TYPE_CHECKING

from graphc.ir import build
from graphc.ir.kinds import static_shape
from graphc.ir.traits import SIZES, Marker, Trait, broadcast_sizes
from graphc.ir.views import INLINED
from graphc_dialects._mlir import ir
from graphc_runtime.record import record

if TYPE_CHECKING:
    from graphc.lowering.memory.destinations import Chains, Destinations
    from graphc.lowering.scalar_builder import Scalar


@record()
class UpdatedState:
    """A state of a scan that has one buffer for all iterations.

    Attributes:
        first: the value that the body reads: the version that an iteration begins with.
        updates: the operations of the body that make the next version, in order: updates, and scans.
        results: what each of them makes: a tensor of the type of the state's row.
        around: the state of the loop around whose memory it has, or None.
        memory: a memref with the version that has been reached, once the lowering has chosen it.
    """

    first: ir.Value
    updates: list[ir.Operation] = field(default_factory=list)
    results: list[ir.Value] = field(default_factory=list)
    around: UpdatedState | None = None
    memory: ir.Value | None = None


class Conversion(ABC):
    """The conversion of one function, as rules see it: new tensors, scalars and sizes of old values.

    Attributes:
        destinations: the places where values are wanted.
        chains: the chains of updates.
        outputs: the caller's buffers, one for each result.
        filled: the positions of those that somebody has promised to fill.
        device: whether the result is for a device.
        donated: the arguments in whose memory values are to be computed.
        claimed: values that, or a view of which, are results that are to be computed in an argument's memory.
        apart: traces whose rows are stored where the rows are that the scan computes them from.
        arguments: the positions of results whose buffers are donated arguments.
        states: those that have one buffer for all iterations, by the scan's first result and their name.
        updates: the states that updates make versions of, by the results of these.
        is_ending: whether all but the results has been computed.
    """

    destinations: Destinations
    chains: Chains
    outputs: list[ir.Value]
    device: bool
    donated: Mapping[ir.Value, ir.Value]
    claimed: Set[ir.Value]
    apart: Set[ir.Value]
    arguments: Collection[int]
    states: Mapping[tuple[ir.Value, str], UpdatedState]
    updates: Mapping[ir.Value, UpdatedState]

    def __init__(self, function: ir.Operation) -> None:
        self.is_ending = False
        self.filled: set[int] = set()
        self._entry = function.regions[0].blocks[0]
        self._values: dict[ir.Value, ir.Value] = {}
        self._scalars: dict[ir.Value, Scalar] = {}
        self._sizes: dict[ir.Value, list[ir.Value]] = {}
        self._members: dict[int, list[ir.Operation]] = {}
        self._member_sets: dict[int, frozenset[ir.Operation]] = {}
        # Blocks of the new function by the old ones they stand for.
        self._blocks: dict[ir.Block, ir.Block] = {}

    # -- what is known of values -----------------------------------------------------------------------------

    def is_materialised(self, value: ir.Value) -> bool:
        """True if a value is a new tensor already."""
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

    def index_of(self, value: ir.Value) -> ir.Value:
        """The new value of an index, which is always there before its readers."""
        return self._values[value]

    def sizes_of(self, value: ir.Value) -> list[ir.Value]:
        """Index values of a value's dimensions, without computing the value."""
        if value not in self._sizes:
            with self._at_definition(value):
                self._sizes[value] = self._find_sizes(value)
        return self._sizes[value]

    @abstractmethod
    def _materialise(self, value: ir.Value) -> None:
        """Defines a value that is no tensor yet as one, at the current insertion point."""

    def _at_definition(self, value: ir.Value) -> AbstractContextManager[object]:
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
        number = op.attributes.get("cluster")
        return [op] if number is None else self._members[ir.IntegerAttr(number).value]

    def in_loop(self) -> bool:
        """True if what is being converted is the body of a loop."""
        return bool(ir.InsertionPoint.current.block != self._blocks[self._entry])

    def define(self, value: ir.Value, new: ir.Value) -> None:
        """Says which new tensor or index stands for a value."""
        self._values[value] = new

    def define_scalar(self, value: ir.Value, scalar: Scalar) -> None:
        """Says that a one-element value is an SSA scalar."""
        self._scalars[value] = scalar

    def define_sizes(self, value: ir.Value, sizes: list[ir.Value]) -> None:
        """Says what the sizes of a value are."""
        self._sizes[value] = sizes

    def enter_block(self, old: ir.Block, new: ir.Block) -> None:
        """Says which block stands for an old one."""
        self._blocks[old] = new

    def _find_sizes(self, value: ir.Value) -> list[ir.Value]:
        shape = static_shape(value)
        if value in self._values:
            return build.dims(self._values[value])
        op = value.owner
        known = [size for size in shape if size is not None]
        if len(known) == len(shape):
            return [build.const_index(size) for size in known]
        rule = SIZES.get(op.name)
        equal = broadcast_sizes(op) if rule is None else rule(op)
        return [
            build.const_index(size) if size is not None else self._size(*sizes[0])
            for size, sizes in zip(shape, equal, strict=True)
        ]

    def _size(self, x: ir.Value, axis: int) -> ir.Value:
        return self.index_of(x) if axis < 0 else self.sizes_of(x)[axis]

    # -- memory ----------------------------------------------------------------------------------------------

    @abstractmethod
    def lent(self, value: ir.Value) -> ir.Value | None:
        """The tensor of the argument in whose memory a value is to be computed, or None.

        What another array holds is put there at the end. Something may need it in memory of its own before
        that, when the argument still has readers.
        """

    @abstractmethod
    def free_output(self, value: ir.Value) -> int | None:
        """The position of a result that is this value and that nobody has promised to fill, or None."""

    # -- loops and regions -----------------------------------------------------------------------------------

    @abstractmethod
    def convert_block(self, old: ir.Block, new: ir.Block) -> None:
        """Converts the operations of a block at the current insertion point, which is in `new`."""

    @abstractmethod
    def row_sizes(self, scan: ir.Operation, name: str) -> list[ir.Value]:
        """Sizes of the rows of an output of a scan, as index values."""


# A rule takes the conversion of the function and the graph-stage operation, creates the replacement at the
# current insertion point and defines the result with `context.define`.
Rule = Callable[[Conversion, ir.Operation], None]
LOWERING: Trait[Rule] = Trait("graphc.lowering")

# What takes the place of these for devices, which have kernels of their own for whole operations.
ON_DEVICES: Trait[Rule] = Trait("graphc.lowering")

# They are computed in whatever memory they are given (`context.destinations.start`).
STARTS_ANYWHERE = Marker("graphc.lowering")


def lowers(*names: str, starts_anywhere: bool = False) -> Callable[[Rule], Rule]:
    """A decorator that registers the lowering of operations, such as `"graphc.put"`."""
    if starts_anywhere:
        STARTS_ANYWHERE(*names)
    return LOWERING(*names)
