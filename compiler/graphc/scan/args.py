# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""`ScanArgs`: one application of a scan, by role: parse it, edit it, build it again."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace
from typing import TYPE_CHECKING, Any

from graphc.graph.basic import Apply, Variable
from graphc.graph.replace import rebuild
from graphc.graph.traversal import variable_depends_on
from graphc.scan.op import Scan
from graphc.scan.pytensor_names import FieldNames
from graphc.scan.spec import Invariant, Output, RoleName, ScanSpec, Sequence, State, Untraced
from graphc_runtime.record import record

if TYPE_CHECKING:
    from graphc.graph.tensor.variable import TensorVariable


@record(frozen=True, eq=False)
class Entry:
    """A role with its variables; each kind uses those it has.

    Attributes:
        spec: name, taps and writes.
        outer_in: what the scan is given: a tensor of rows, initial rows, a value.
        inner_in: what an iteration reads, in the order of the taps.
        inner_out: what an iteration computes, in the order of the writes.
        outer_out: what the scan returns for it; None in an entry that was added.
    """

    spec: Any
    outer_in: Any = None
    inner_in: tuple[Any, ...] = ()
    inner_out: tuple[Any, ...] = ()
    outer_out: Any = None

    @property
    def name(self) -> str:
        """Name of the role."""
        return str(self.spec.name)

    @property
    def role(self) -> RoleName:
        """Kind of the role, in Theano's words."""
        return self.spec.role

    @property
    def taps(self) -> tuple[int, ...]:
        """Offsets that are read; ``(0,)`` for what is read as it is, none for outputs."""
        if isinstance(self.spec, Output):
            return ()
        return tuple(getattr(self.spec, "taps", (-1,) if isinstance(self.spec, Untraced) else (0,)))

    def __repr__(self) -> str:
        return f"{self.role}({self.name}, taps={list(self.taps)})"


# The groups of a spec.
_KINDS = {
    "sequences": Sequence,
    "states": State,
    "outputs": Output,
    "untraced": Untraced,
    "invariants": Invariant,
}


class ScanArgs(FieldNames):
    """The parts of a scan; changes take effect in the node that `rebuild` makes.

    Args:
        node: an application of `Scan`.

    Attributes:
        n_steps: outer variable of the number of steps.
        condition: the inner condition of a while scan, or None.
        options: arguments of `Scan` besides roles and inner graph: ``name``, ``reverse``, ...

    Raises:
        TypeError: the node is of another op.

    Examples:
        >>> x = pt.vector("x")
        >>> h = graphc.scan(lambda v, h: h + v, [x], [pt.constant(0.0)], return_updates=False, name="sum")
        >>> arguments = graphc.scan.ScanArgs(h.owner.inputs[0].owner)
        >>> type(arguments).__name__
        'ScanArgs'
    """

    def __init__(self, node: Apply) -> None:
        op = node.op
        if not isinstance(op, Scan):
            raise TypeError(f"ScanArgs needs an application of Scan, got one of {op}")
        self.n_steps: Variable = node.inputs[0]
        self.options: dict[str, Any] = {
            key: getattr(op, key)
            for key in ("name", "reverse", "truncate_gradient", "checkpoint_every", "unroll", "progress")
        }
        spec = op.spec
        self.condition: Variable | None = op.inner_outputs[-1] if spec.is_while else None
        outer_in = dict(zip(spec.outer_input_names(), node.inputs, strict=True))
        outer_out = dict(zip(spec.outer_output_names(), node.outputs, strict=True))
        inner_in = _by_name(spec.inner_input_names(), op.inner_inputs)
        inner_out = _by_name(spec.inner_output_names(), op.inner_outputs)
        self._steps_taken = outer_out.get("n_steps")
        self._entries: list[Entry] = []
        roles: tuple[Any, ...] = (
            *spec.sequences,
            *spec.states,
            *spec.outputs,
            *spec.untraced,
            *spec.invariants,
        )
        for role in roles:
            reads, computes = not isinstance(role, Output), isinstance(role, State | Output | Untraced)
            self._entries.append(
                Entry(
                    role,
                    outer_in[role.name] if reads else None,
                    inner_in[role.name] if reads else (),
                    inner_out[role.name] if computes else (),
                    outer_out[role.name] if computes else None,
                )
            )

    @classmethod
    def from_node(cls, node: Apply, clone: bool = False) -> ScanArgs:
        """PyTensor's name for the constructor; variables are those of the node, whatever ``clone`` says."""
        return cls(node)

    # -- looking ---------------------------------------------------------------------------------------------

    @property
    def entries(self) -> tuple[Entry, ...]:
        """All roles."""
        return tuple(self._entries)

    def of_role(self, role: RoleName) -> tuple[Entry, ...]:
        """The entries of one kind."""
        return tuple(entry for entry in self._entries if entry.role == role)

    sequences = property(lambda self: self.of_role("sequence"), doc="Tensors read row by row.")
    sit_sot = property(lambda self: self.of_role("sit-sot"), doc="States that read their last row.")
    mit_sot = property(lambda self: self.of_role("mit-sot"), doc="States that read other rows.")
    mit_mot = property(lambda self: self.of_role("mit-mot"), doc="States that write several rows.")
    nit_sot = property(lambda self: self.of_role("nit-sot"), doc="Outputs that no iteration reads.")
    untraced = property(lambda self: self.of_role("untraced"), doc="States of which the last value is kept.")
    non_sequences = property(lambda self: self.of_role("non-sequence"), doc="What all iterations share.")

    def __getitem__(self, name: str) -> Entry:
        """The entry of a name; a sequence and an output may share one, then what is read comes first."""
        for entry in self._entries:
            if entry.name == name:
                return entry
        raise KeyError(
            f"the scan has no role named {name!r}; it has {', '.join(e.name for e in self._entries)}"
        )

    def __contains__(self, name: str) -> bool:
        return any(entry.name == name for entry in self._entries)

    def entry_of(self, variable: Variable) -> Entry | None:
        """The entry that an outer or inner variable belongs to."""
        for entry in self._entries:
            if any(
                variable is v for v in (entry.outer_in, entry.outer_out, *entry.inner_in, *entry.inner_out)
            ):
                return entry
        return None

    def dependents(self, entry: Entry) -> tuple[Entry, ...]:
        """Entries whose computation in an iteration reads ``entry``."""
        if not entry.inner_in:
            return ()
        return tuple(
            e for e in self._entries if any(variable_depends_on(v, entry.inner_in) for v in e.inner_out)
        )

    # -- editing ---------------------------------------------------------------------------------------------

    def remove(self, *entries: Entry) -> None:
        """Remove roles. The iteration must not read them any more when the scan is rebuilt."""
        gone = set(map(id, entries))
        self._entries = [entry for entry in self._entries if id(entry) not in gone]

    def add_sequence(self, name: str, x: TensorVariable, taps: Iterable[int] = (0,)) -> Entry:
        """Adds a tensor to read; use its ``inner_in`` in what an iteration computes."""
        spec = Sequence(self.unique(name), tuple(taps))
        row = x.type.clone(shape=x.type.shape[1:])
        return self._add(Entry(spec, x, tuple(row.make_variable(spec.name) for _ in spec.taps)))

    def add_state(
        self, name: str, initial: TensorVariable, taps: Iterable[int] = (-1,), writes: Iterable[int] = (0,)
    ) -> Entry:
        """Adds a state from its initial rows; set what it computes with `replace`."""
        spec = State(self.unique(name), tuple(taps), tuple(writes))
        row = initial.type.clone(shape=initial.type.shape[1:])
        return self._add(Entry(spec, initial, tuple(row.make_variable(spec.name) for _ in spec.taps)))

    def add_output(self, name: str, value: TensorVariable) -> Entry:
        """Adds an output, an expression of inner variables."""
        return self._add(Entry(Output(self.unique(name)), inner_out=(value,)))

    def add_untraced(self, name: str, initial: TensorVariable) -> Entry:
        """Adds a state of which only the last value is kept; set what it computes with `replace`."""
        spec = Untraced(self.unique(name))
        return self._add(Entry(spec, initial, (initial.type.make_variable(spec.name),)))

    def add_non_sequence(self, name: str, value: TensorVariable) -> Entry:
        """Adds a value that all iterations read."""
        spec = Invariant(self.unique(name))
        return self._add(Entry(spec, value, (value.type.make_variable(spec.name),)))

    def replace(self, entry: Entry, **changes: Any) -> Entry:
        """Replace parts of an entry: ``outer_in``, ``inner_in``, ``inner_out``, or ``spec`` fields such as
        name and taps.

        Returns:
            The new entry.
        """
        fields = {
            key: changes.pop(key) for key in ("outer_in", "inner_in", "inner_out", "spec") if key in changes
        }
        if changes:
            fields["spec"] = replace(fields.get("spec", entry.spec), **changes)
        for key in ("inner_in", "inner_out"):
            if isinstance(fields.get(key), Variable):
                fields[key] = (fields[key],)
        new = replace(entry, **fields)
        position = next(i for i, each in enumerate(self._entries) if each is entry)
        self._entries[position] = new
        return new

    def substitute(self, replacements: dict[Variable, Variable]) -> None:
        """Replace inner variables in everything that an iteration computes."""
        memo = dict(replacements)
        for i, entry in enumerate(self._entries):
            new = rebuild(list(entry.inner_out), memo, copy_nodes=False, strict=False)
            self._entries[i] = replace(entry, inner_out=tuple(new))
        if self.condition is not None:
            (self.condition,) = rebuild([self.condition], memo, copy_nodes=False, strict=False)

    def unique(self, name: str) -> str:
        """``name``, or with a number, so that no role has it."""
        return self.spec.with_unique(name)

    def _add(self, entry: Entry) -> Entry:
        self._entries.append(entry)
        return entry

    # -- building --------------------------------------------------------------------------------------------

    @property
    def spec(self) -> ScanSpec:
        """The roles."""
        groups: dict[str, Any] = {
            name: tuple(entry.spec for entry in self._kind(kind)) for name, kind in _KINDS.items()
        }
        return ScanSpec(**groups, is_while=self.condition is not None)

    def _kind(self, kind: type) -> list[Entry]:
        return [entry for entry in self._entries if isinstance(entry.spec, kind)]

    def rebuild(self) -> Apply:
        """A new node of the roles as they are now.

        Raises:
            ValueError: a state has no value to compute.
            MissingInputError: an iteration reads something that was removed.
        """
        sequences, states, outputs, untraced, invariants = map(self._kind, _KINDS.values())
        reading = [*sequences, *states, *untraced, *invariants]
        computing = [*states, *outputs, *untraced]
        for entry in computing:
            wanted = len(getattr(entry.spec, "writes", (0,)))
            if len(entry.inner_out) != wanted:
                raise ValueError(
                    f"{entry} must compute {wanted} values, but has {len(entry.inner_out)}; set them with "
                    "replace(entry, inner_out=...)"
                )
        inner_outputs = [v for entry in computing for v in entry.inner_out]
        if self.condition is not None:
            inner_outputs.append(self.condition)
        inner_inputs = [v for entry in reading for v in entry.inner_in]
        op = Scan(self.spec, inner_inputs, inner_outputs, **self.options)
        return op.make_node(self.n_steps, *(entry.outer_in for entry in reading))

    def replacements(self, node: Apply) -> dict[Variable, Variable]:
        """For each output of the parsed node that is still there, that of the same name of a rebuilt node."""
        op: Any = node.op
        new = dict(zip(op.spec.outer_output_names(), node.outputs, strict=True))
        found = {e.outer_out: new[e.name] for e in self._entries if e.outer_out is not None}
        if self._steps_taken is not None and "n_steps" in new:
            found[self._steps_taken] = new["n_steps"]
        return found


def _by_name(names: Iterable[tuple[str, int]], variables: Iterable[Variable]) -> dict[str, tuple[Any, ...]]:
    found: dict[str, tuple[object, ...]] = {}
    for (name, _), v in zip(names, variables, strict=True):
        found[name] = (*found.get(name, ()), v)
    return found


def roles(scan: Scan | Apply) -> dict[str, RoleName]:
    """The kind of each role of a scan, by name.

    A name that is both read and computed without being a state counts as what is computed.

    Examples:
        >>> x = pt.vector("x")
        >>> h = graphc.scan(lambda v, h: h + v, [x], [pt.constant(0.0)], return_updates=False)
        >>> loop = h.owner.inputs[0].owner
        >>> type(graphc.scan.roles(loop.op)).__name__
        'dict'
    """
    op = scan.op if isinstance(scan, Apply) else scan
    if not isinstance(op, Scan):
        raise TypeError(f"roles needs a Scan or an application of one, got {op}")
    spec = op.spec
    found: tuple[Any, ...] = (*spec.sequences, *spec.invariants, *spec.states, *spec.untraced, *spec.outputs)
    return {role.name: role.role for role in found}
