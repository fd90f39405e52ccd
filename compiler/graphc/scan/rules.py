# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Derivatives and batches of loops, which are loops."""

from __future__ import annotations

from typing import TYPE_CHECKING

from graphc.errors import VectorizeError
from graphc.graph.basic import Apply, Flags, Variable, Variables
from graphc.graph.tensor.type import TensorType
from graphc.graph.traversal import ancestors, toposort
from graphc.ops.batching import batch_graph
from graphc.ops.math import cast
from graphc.ops.shape import known_size
from graphc.ops.shaping import repeat, swapaxes
from graphc.scan.gradient.forward import ScanBuilder, pushforward
from graphc.scan.gradient.reverse import pullback
from graphc.scan.op import Rules, Scan

if TYPE_CHECKING:
    from graphc.graph.tensor.variable import TensorVariable


def batch(op: Scan, node: Apply, inputs: Variables, batched: Flags, size: TensorVariable) -> list[Variable]:
    """The outputs of one loop whose rows have a leading batch axis, for what depends on the batch.

    Args:
        op: a `Scan`.
        node: its application without the batch.
        inputs: the outer inputs; batched ones have one more leading axis.
        batched: which of them.
        size: size of the batch.

    Raises:
        VectorizeError: the number of steps, or the condition that ends the loop, differs within the batch,
            or a value that is no tensor depends on the batch.
    """
    return _Batch(op, inputs, batched, size).build()


class _Batch:
    """Builds the loop."""

    def __init__(self, op: Scan, inputs: Variables, batched: Flags, size: Variable | int) -> None:
        self.op, self.spec, self.size = op, op.spec, size
        names = self.spec.outer_input_names()
        self.inputs: dict[str, Variable] = dict(zip(names, inputs, strict=True))
        self.given = {name for name, is_batched in zip(names, batched, strict=True) if is_batched}
        if "n_steps" in self.given:
            raise VectorizeError(f"{op} cannot run a batch of numbers of steps")
        self.inner = dict(zip(self.spec.inner_input_names(), op.inner_inputs, strict=True))
        self.rows = dict(zip(self.spec.inner_output_names(), op.inner_outputs, strict=True))
        self.batched = set(self.given)
        self.computed: set[str] = set()
        # The body reads the size of the batch too, where it is known at run time only.
        self.inner_size = size
        if isinstance(size, Variable):
            known = known_size(size)
            self.inner_size = TensorType("int64", ()).make_variable("batch_size") if known is None else known
        self._spread()

    def _spread(self) -> None:
        """Find what depends on the batch: states through their updates, in any number of iterations."""
        carried = {role.name for role in (*self.spec.states, *self.spec.untraced)}
        while True:
            dependent = {x for (name, _), x in self.inner.items() if name in self.batched}
            for node in toposort(self.op.inner_outputs, blockers=set(self.op.inner_inputs)):
                if any(x in dependent for x in node.inputs):
                    dependent.update(node.outputs)
            self.computed = {name for (name, _), y in self.rows.items() if y in dependent}
            more = (self.computed & carried) - self.batched
            if not more:
                break
            self.batched |= more
        if "until" in self.computed:
            raise VectorizeError(f"the condition that ends {self.op} depends on the batch")
        self.computed |= self.batched & carried

    def build(self) -> list[Variable]:
        """The outer outputs, batched where they depend on the batch."""
        places: dict[Variable, Variable] = {
            x: self._place(x) for (name, _), x in self.inner.items() if name in self.batched
        }
        rows = self._batched_rows(places)
        read = {key: places.get(x, x) for key, x in self.inner.items()}
        builder = ScanBuilder()
        for sequence in self.spec.sequences:
            taps = {tap: read[sequence.name, tap] for tap in sequence.taps}
            builder.sequence(sequence.name, self._stacked(sequence.name), taps)
        for state in self.spec.states:
            taps = {tap: read[state.name, tap] for tap in state.taps}
            writes = {write: rows[state.name, write] for write in state.writes}
            builder.state(state.name, self._stacked(state.name), taps, writes)
        names = {role.name: builder.output(role.name, rows[role.name, 0]) for role in self.spec.outputs}
        for role in self.spec.untraced:
            builder.untraced(role.name, self._value(role.name), read[role.name, 0], rows[role.name, 0])
        for constant in self.spec.invariants:
            builder.invariant(constant.name, self.inputs[constant.name], read[constant.name, 0])
        if self.spec.is_while:
            builder.until(rows["until", 0])
        if isinstance(self.inner_size, Variable) and self.inner_size in set(ancestors(builder.results)):
            builder.invariant("batch_size", cast(self.size, "int64"), self.inner_size)
        op = self.op
        options = {key: getattr(op, key) for key in ("name", "reverse", "unroll", "truncate_gradient")}
        found = builder.build(self.inputs["n_steps"], checkpoint_every=op.checkpoint_every, **options)
        traced = {role.name for role in (*self.spec.states, *self.spec.outputs)}
        result = []
        for name in self.spec.outer_output_names():
            value = found[names.get(name, name)]
            if name in self.computed and name in traced:
                value = swapaxes(value, 0, 1)
            result.append(value)
        return result

    def _place(self, x: Variable) -> Variable:
        """A root for a batched inner input."""
        if not isinstance(x.type, TensorType):
            raise VectorizeError(f"{x} of {self.op}, of type {x.type}, cannot be batched")
        static = self.inner_size if isinstance(self.inner_size, int) else None
        return TensorType(x.type.dtype, (static, *x.type.shape)).make_variable(x.name)

    def _batched_rows(self, places: dict[Variable, Variable]) -> dict[tuple[str, int], Variable]:
        """The inner outputs; all writes of a state are batched when one is."""
        keys = [key for key in self.rows if key[0] in self.computed]
        rows = dict(self.rows)
        rows.update(
            zip(keys, batch_graph([self.rows[key] for key in keys], places, self.inner_size), strict=True)
        )
        return rows

    def _value(self, name: str) -> Variable:
        """The first value of an untraced state."""
        value = self.inputs[name]
        return repeat(value, self.size) if name in self.batched and name not in self.given else value

    def _stacked(self, name: str) -> Variable:
        """Rows of a sequence or initial rows, the batch axis second."""
        value = self.inputs[name]
        if name in self.given:
            return swapaxes(value, 0, 1)
        if name in self.batched:
            return swapaxes(repeat(value, self.size), 0, 1)
        return value


Scan.rules = Rules(pullback, pushforward, batch)
