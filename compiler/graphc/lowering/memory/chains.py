# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Updates of one array, one after the other, as writes into memory.

A tensor that is handed on from update to update makes bufferization compare each write with all reads of the
same memory, and look for what was written before each of them: time n cubed for n updates. Nobody else reads
what is between two updates, so memory is chosen before the first one: where the last result is wanted, else
new memory. Each update stores there, and the result is what is there after the last one.
"""

from __future__ import annotations

from dataclasses import field
from typing import TYPE_CHECKING

from graphc.ir import build
from graphc.ir.kinds import static_shape
from graphc.ir.ownership import updates_in_place
from graphc.ir.views import INLINED, REPEATS, UPDATES
from graphc.ir.walk import is_used_once
from graphc.lowering.generic import GenericBuilder, is_one_element
from graphc.lowering.memory.destination import Destination
from graphc.lowering.memory.destinations import is_empty, starts_anywhere
from graphc.lowering.scans.buffers import allocate, read, writable, write, write_apart
from graphc_dialects._mlir import ir
from graphc_runtime.record import record

if TYPE_CHECKING:
    from graphc.lowering.rules import Conversion


@record()
class _Chain:
    """Updates, each of the result of the one before, which has no other reader.

    Attributes:
        updates: the operations in order.
        memory: a memref with the elements so far, once it has been chosen.
        is_lent: whether what takes over the result's memory is computed there, too.
    """

    updates: list[ir.Operation] = field(default_factory=list)
    memory: ir.Value | None = None
    is_lent: bool = False

    @property
    def base(self) -> ir.Value:
        """The value from which the first update starts."""
        return self.updates[0].operands[0]

    @property
    def result(self) -> ir.Value:
        """The result of the last update."""
        return self.updates[-1].results[0]


class Chains:
    """The chains of updates in one function.

    Args:
        context: the function conversion.
    """

    def __init__(self, context: Conversion) -> None:
        self._context = context
        self._by_update: dict[ir.Operation, _Chain] = {}
        self._by_base: dict[ir.Value, _Chain] = {}

    def enter(self, block: ir.Block) -> None:
        """Takes note of the chains in an old block, before it is converted."""
        found: dict[ir.Operation, _Chain] = {}
        for op in (view.operation for view in block.operations):
            planned = self._context.state_of_update(op) if op.name in UPDATES else None
            if op.name in UPDATES and planned is None and not is_empty(op.results[0]):
                chain = _continued(op, found) or _Chain()
                chain.updates.append(op)
                found[op] = chain
        for op, chain in found.items():
            if len(chain.updates) > 1:
                self._by_update[op] = chain
                if updates_in_place(chain.updates[0]):
                    self._by_base[chain.base] = chain

    def place(self, value: ir.Value) -> tuple[Destination, ir.Value] | None:
        """Place for the value that a chain of updates takes over, as described and as a memref, or None."""
        chain = self._by_base.get(value)
        if chain is None or not starts_anywhere(value.owner) or self._context.lent(value) is not None:
            return None
        destination, chain.memory = self._choose(chain)
        return destination, chain.memory

    def memory(self, op: ir.Operation) -> ir.Value | None:
        """The memory in which an update of a chain stores, with the older elements; None if it is in none."""
        state = self._context.state_of_update(op)
        if state is not None:
            return state.memory
        chain = self._by_update.get(op)
        if chain is not None and chain.memory is None:
            chain.memory = self._start(chain)
        return None if chain is None else chain.memory

    def finish(self, op: ir.Operation) -> None:
        """Says that an update has stored; defines the result of the last one."""
        result, state = op.results[0], self._context.state_of_update(op)
        if state is not None and state.memory is not None:
            self._context.define(result, read(state.memory, build.storage_type(result.type)))
            return
        chain = self._by_update[op]
        if result != chain.result:
            self._context.define_sizes(result, self._context.sizes_of(chain.base))
        elif chain.memory is not None:
            kind = build.storage_type(result.type)
            is_lent = chain.is_lent
            value = build.cast(writable(chain.memory), kind) if is_lent else read(chain.memory, kind)
            self._context.define(result, value)

    def _choose(self, chain: _Chain) -> tuple[Destination, ir.Value]:
        """Memory for a chain, as described and as a memref."""
        sizes = self._context.sizes_of(chain.base)
        found = self._context.destinations.claim(chain.result, sizes=sizes)
        if found is None:
            lent = self._context.destinations.lend(chain.result)
            if lent is not None:
                chain.is_lent = True
                return lent
            found = Destination.whole(allocate(build.storage_type(chain.base.type), sizes), sizes)
        # A copy of an argument into a result is known as such where the result is not seen as a part.
        is_plain = found.is_whole and found.base.type == _plain(build.storage_type(chain.base.type))
        return found, found.base if is_plain else found.memref(static_shape(chain.base))

    def _start(self, chain: _Chain) -> ir.Value:
        base, first = chain.base, chain.updates[0]
        if updates_in_place(first) or self._context.is_lent_to(first.results[0], base):
            return _memory_of(self._context.tensor_of(base))
        shape, sizes = static_shape(base), self._context.sizes_of(base)
        lent = self._context.lent(first.results[0])
        memory = self._choose(chain)[1] if lent is None else _memory_of(lent)
        if is_fill(base) and not self._context.is_materialised(base):
            write(GenericBuilder(self._context, shape, sizes, []).copy(base), memory)
        else:
            # The base has other readers: it must not be computed in memory that changes.
            write_apart(self._context.tensor_of(base), memory)
        return memory


def _continued(op: ir.Operation, found: dict[ir.Operation, _Chain]) -> _Chain | None:
    """The chain whose last update's result an update takes over, or None."""
    older = op.operands[0]
    if isinstance(older.owner, ir.Block) or older.type != op.results[0].type or not is_used_once(older):
        return None
    return found.get(older.owner.operation)


def is_fill(value: ir.Value) -> bool:
    """True if a value repeats one element; in a loop that no canonicalization takes for a copy."""
    owner = value.owner
    if isinstance(owner, ir.Block) or owner.name not in REPEATS or owner.name not in INLINED:
        return False
    return is_one_element(owner.operands[0]) and not is_one_element(value)


def _memory_of(tensor: ir.Value) -> ir.Value:
    """The memory of a tensor that nobody else reads, to be written to."""
    return build.create("bufferization.to_buffer", [_plain(tensor.type)], [tensor]).result


def _plain(kind: ir.Type) -> ir.Type:
    """The memref of a tensor's type whose elements lie side by side."""
    return ir.MemRefType.get(kind.shape, kind.element_type)
