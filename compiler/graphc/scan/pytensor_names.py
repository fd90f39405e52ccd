# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Loops under PyTensor's names: groups of positions, for code that was written for its ``Scan``.

graphc knows the parts of a loop by name (`graphc.scan.spec`); PyTensor by their places in four lists, in
groups of one role each: sequences, mit-mots, mit-sots, sit-sots, untraced states, nit-sots, non-sequences.
The groups here are derived from the names, in the order of the lists of graphc, in which states of all kinds
stand as the user gave them. Two things differ: a sequence that is read at several taps is one outer input,
and nit-sots have no outer input, for which the number of steps stands, as PyTensor passes it.

Source: PyTensor's ``ScanMethodsMixin``, ``ScanInfo`` and ``ScanArgs``; ``ScanUtils`` of Theano.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from itertools import chain
from typing import TYPE_CHECKING, TypeVar

from graphc.graph.basic import Variable
from graphc.scan.mappings import Mapping, mappings
from graphc.scan.spec import RoleName, ScanSpec, State
from graphc_runtime.record import record

if TYPE_CHECKING:
    from graphc.scan.args import Entry

Item = TypeVar("Item")
Slices = tuple[tuple[int, ...], ...]


@record(frozen=True)
class ScanInfo:
    """Numbers of a loop's variables by role, and the taps at which they are read and written.

    Taps of mit-mots count from the oldest row, those of other states back from the row of the iteration. The
    lengths of the four lists are those of graphc's loop: see above for where PyTensor's are longer.
    """

    n_seqs: int
    mit_mot_in_slices: Slices
    mit_mot_out_slices: Slices
    mit_sot_in_slices: Slices
    sit_sot_in_slices: Slices
    n_nit_sot: int
    n_untraced_sit_sot: int
    n_non_seqs: int
    as_while: bool
    n_outer_inputs: int
    n_inner_inputs: int
    n_outer_outputs: int
    n_inner_outputs: int

    n_mit_mot = property(lambda self: len(self.mit_mot_in_slices), doc="States that write several rows.")
    n_mit_mot_outs = property(lambda self: sum(map(len, self.mit_mot_out_slices)), doc="What they write.")
    n_mit_sot = property(lambda self: len(self.mit_sot_in_slices), doc="States that read older rows.")
    n_sit_sot = property(lambda self: len(self.sit_sot_in_slices), doc="States that read their last row.")
    n_shared_outs = property(lambda self: self.n_untraced_sit_sot, doc="An older name.")

    @property
    def tap_array(self) -> Slices:
        """The taps at which states are read."""
        return self.mit_mot_in_slices + self.mit_sot_in_slices + self.sit_sot_in_slices


def info_of(spec: ScanSpec) -> ScanInfo:
    """PyTensor's description of a loop with these roles."""
    states: dict[str, list[State]] = {"mit-mot": [], "mit-sot": [], "sit-sot": []}
    for state in spec.states:
        states[state.role].append(state)
    return ScanInfo(
        n_seqs=sum(len(sequence.taps) for sequence in spec.sequences),
        mit_mot_in_slices=tuple(tuple(t + s.window for t in s.taps) for s in states["mit-mot"]),
        mit_mot_out_slices=tuple(tuple(w + s.window for w in s.writes) for s in states["mit-mot"]),
        mit_sot_in_slices=tuple(s.taps for s in states["mit-sot"]),
        sit_sot_in_slices=tuple(s.taps for s in states["sit-sot"]),
        n_nit_sot=len(spec.outputs),
        n_untraced_sit_sot=len(spec.untraced),
        n_non_seqs=len(spec.invariants),
        as_while=spec.is_while,
        n_outer_inputs=len(spec.outer_input_names()),
        n_inner_inputs=sum(1 for _ in spec.inner_input_names()),
        n_outer_outputs=len(spec.outer_output_names()),
        n_inner_outputs=sum(1 for _ in spec.inner_output_names()),
    )


def places(spec: ScanSpec, side: str, role: RoleName) -> list[list[int]]:
    """For each variable of a role its places in one of the four lists, see `graphc.scan.mappings`."""
    reads = (*spec.sequences, *spec.states, *spec.untraced, *spec.invariants)
    computes = (*spec.states, *spec.outputs, *spec.untraced)
    listed = {
        "outer_inp": spec.outer_input_names(),
        "inner_inp": [name for name, _ in spec.inner_input_names()],
        "inner_out": [name for name, _ in spec.inner_output_names()],
        "outer_out": spec.outer_output_names(),
    }[side]
    wanted = [entry.name for entry in (reads if side.endswith("inp") else computes) if entry.role == role]
    found: dict[str, list[int]] = {name: [] for name in wanted}
    for place, name in enumerate(listed):
        # The number of steps, and the condition, are no role's.
        outside = (side == "outer_inp" and not place) or (
            spec.is_while and side.endswith("out") and place == len(listed) - 1
        )
        if name in found and not outside:
            found[name].append(place)
    return list(found.values())


def _flat(side: str, role: RoleName) -> Callable[[ScanMethods, Sequence[Item]], list[Item]]:
    def pick(self: ScanMethods, variables: Sequence[Item]) -> list[Item]:
        return [variables[place] for group in places(self.spec, side, role) for place in group]

    pick.__doc__ = f"Those of a list of {_SIDES[side]} that are of {role} variables."
    return pick


def _untraced(side: str) -> Callable[..., list[Variable] | list[tuple[int, Variable]]]:
    def pick(
        self: ScanMethods, variables: Sequence[Variable], with_idx: bool = False
    ) -> list[Variable] | list[tuple[int, Variable]]:
        found = [place for group in places(self.spec, side, "untraced") for place in group]
        if with_idx:
            return [(place, variables[place]) for place in found]
        return [variables[place] for place in found]

    pick.__doc__ = f"Those of a list of {_SIDES[side]} that are of untraced states; `with_idx` with places."
    return pick


def _grouped(side: str, role: RoleName) -> Callable[[ScanMethods, Sequence[Item]], list[list[Item]]]:
    def pick(self: ScanMethods, variables: Sequence[Item]) -> list[list[Item]]:
        return [[variables[place] for place in group] for group in places(self.spec, side, role)]

    pick.__doc__ = f"Those of a list of {_SIDES[side]} that are of {role} variables, a list for each."
    return pick


_SIDES = {
    "outer_inp": "outer inputs",
    "inner_inp": "inner inputs",
    "inner_out": "inner outputs",
    "outer_out": "outer outputs",
}


class ScanMethods:
    """Methods of `Scan` that pick the variables of one role from one of the four lists."""

    spec: ScanSpec

    inner_seqs, outer_seqs = _flat("inner_inp", "sequence"), _flat("outer_inp", "sequence")
    inner_mitmot, outer_mitmot = _flat("inner_inp", "mit-mot"), _flat("outer_inp", "mit-mot")
    inner_mitsot, outer_mitsot = _flat("inner_inp", "mit-sot"), _flat("outer_inp", "mit-sot")
    inner_sitsot, outer_sitsot = _flat("inner_inp", "sit-sot"), _flat("outer_inp", "sit-sot")
    inner_non_seqs, outer_non_seqs = _flat("inner_inp", "non-sequence"), _flat("outer_inp", "non-sequence")
    inner_untraced_sit_sot = inner_shared = _untraced("inner_inp")
    outer_untraced_sit_sot = outer_shared = _untraced("outer_inp")

    inner_mitmot_outs, outer_mitmot_outs = _flat("inner_out", "mit-mot"), _flat("outer_out", "mit-mot")
    inner_mitsot_outs, outer_mitsot_outs = _flat("inner_out", "mit-sot"), _flat("outer_out", "mit-sot")
    inner_sitsot_outs, outer_sitsot_outs = _flat("inner_out", "sit-sot"), _flat("outer_out", "sit-sot")
    inner_nitsot_outs, outer_nitsot_outs = _flat("inner_out", "nit-sot"), _flat("outer_out", "nit-sot")
    inner_untraced_sit_sot_outs = inner_shared_outs = _untraced("inner_out")
    outer_untraced_sit_sot_outs = outer_shared_outs = _untraced("outer_out")

    inner_mitmot_grouped = _grouped("inner_inp", "mit-mot")
    inner_mitsot_grouped = _grouped("inner_inp", "mit-sot")
    inner_mitmot_outs_grouped = _grouped("inner_out", "mit-mot")

    @property
    def info(self) -> ScanInfo:
        """Numbers of variables by role, and their taps."""
        return info_of(self.spec)

    def outer_nitsot(self, list_inputs: Sequence[Item]) -> list[Item]:
        """For each output how many rows it has: the number of steps."""
        return [list_inputs[0]] * len(self.spec.outputs)

    def oldest_inner_mitsot(self, list_inputs: Sequence[Item]) -> list[Item]:
        """Readers of the oldest row of each mit-sot."""
        return [list_inputs[group[0]] for group in places(self.spec, "inner_inp", "mit-sot")]

    def mitmot_taps(self) -> Slices:
        """Taps at which mit-mots are read, from their oldest row."""
        return self.info.mit_mot_in_slices

    def mitmot_out_taps(self) -> Slices:
        """Taps at which mit-mots are written, from their oldest row."""
        return self.info.mit_mot_out_slices

    def mitsot_taps(self) -> Slices:
        """Taps at which mit-sots are read."""
        return self.info.mit_sot_in_slices

    def get_oinp_iinp_iout_oout_mappings(self) -> dict[str, Mapping]:
        """See `graphc.scan.mappings.mappings`."""
        return mappings(self.spec)


@record(frozen=True)
class FieldInfo:
    """Position of a variable: its field, its index there, and in the list of all of its kind."""

    name: str
    agg_name: str
    index: int
    inner_index: int | None
    agg_index: int | None


# Fields of ScanArgs: the list that they are of, the role, and whether each variable has a list of its own.
_ROLES: dict[str, RoleName] = {
    "seqs": "sequence",
    "mit_mot": "mit-mot",
    "mit_sot": "mit-sot",
    "sit_sot": "sit-sot",
    "nit_sot": "nit-sot",
    "shared": "untraced",
    "non_seqs": "non-sequence",
}
_READ = ("seqs", "mit_mot", "mit_sot", "sit_sot", "shared", "non_seqs")
_COMPUTED = ("mit_mot", "mit_sot", "sit_sot", "nit_sot", "shared")
_NESTED = ("inner_in_mit_mot", "inner_in_mit_sot", "inner_out_mit_mot")
_FIELDS = (
    *(f"{side}_in_{kind}" for side in ("outer", "inner") for kind in _READ),
    *(f"{side}_out_{kind}" for side in ("outer", "inner") for kind in _COMPUTED),
)


class FieldNames:
    """Fields of `ScanArgs`: the variables of one role in one of the four lists, as the roles are now.

    The lists are copies: `ScanArgs.replace`, `ScanArgs.remove` and the like change a loop.
    """

    if TYPE_CHECKING:
        n_steps: Variable
        condition: Variable | None

        @property
        def spec(self) -> ScanSpec: ...

        def of_role(self, role: RoleName) -> tuple[Entry, ...]: ...

    as_while = property(lambda self: self.condition is not None, doc="Whether a condition ends the loop.")
    info = property(lambda self: info_of(self.spec), doc="How many variables of each role there are.")
    cond = property(lambda self: [] if self.condition is None else [self.condition], doc="The condition.")
    field_names = property(lambda self: list(_FIELDS), doc="Names of the fields.")
    outer_in_nit_sot = property(
        lambda self: [self.n_steps] * len(self.of_role("nit-sot")), doc="The number of steps for each output."
    )
    var_mappings = property(
        lambda self: mappings(self.spec), doc="See `graphc.scan.mappings.mappings`; of a rebuilt loop."
    )

    def __getattr__(self, name: str) -> list[Variable] | list[list[Variable]] | Slices:
        if name.endswith("_slices") and name in ScanInfo.__annotations__:
            found: Slices = getattr(self.info, name)
            return found
        if name not in _FIELDS:
            raise AttributeError(f"{type(self).__name__} has no attribute {name!r}")
        side, way, kind = name.split("_", 2)
        entries = self.of_role(_ROLES[kind])
        listed = [getattr(entry, f"{side}_{way}") for entry in entries]
        if side == "outer":
            return listed
        groups = [list(group) for group in listed]
        return groups if name in _NESTED else list(chain.from_iterable(groups))

    def _all(self, side: str, way: str) -> list[Variable]:
        found: list[Variable] = []
        for kind in _READ if way == "in" else _COMPUTED:
            name = f"{side}_{way}_{kind}"
            field = getattr(self, name)
            found += chain.from_iterable(field) if name in _NESTED else field
            if (side, kind) == ("outer", "shared") and way == "in":
                found += self.outer_in_nit_sot
        return found

    inner_inputs = property(lambda self: self._all("inner", "in"), doc="In PyTensor's order.")
    outer_inputs = property(lambda self: [self.n_steps, *self._all("outer", "in")], doc="In its order.")
    inner_outputs = property(lambda self: [*self._all("inner", "out"), *self.cond], doc="In its order.")
    outer_outputs = property(lambda self: self._all("outer", "out"), doc="In PyTensor's order.")

    def find_among_fields(
        self, i: Variable, field_filter: Callable[[str], bool] = lambda name: True
    ) -> FieldInfo | None:
        """The first field that holds a variable."""
        for name in filter(field_filter, _FIELDS):
            side, way, _ = name.split("_", 2)
            aggregate = f"{side}_{way}puts"
            together = [v is i for v in getattr(self, aggregate)]
            for index, item in enumerate(getattr(self, name)):
                inner = [v is i for v in item] if name in _NESTED else [item is i]
                if True in inner:
                    within = inner.index(True) if name in _NESTED else None
                    return FieldInfo(name, aggregate, index, within, together.index(True))
        return None

    def get_alt_field(self, var_info: Variable | FieldInfo, alt_prefix: str) -> Variable | list[Variable]:
        """The variables of the same role and place elsewhere: ``"inner_out"``, ``"outer_in"`` ...

        Raises:
            ValueError: the variable is in no field.
        """
        found = var_info if isinstance(var_info, FieldInfo) else self.find_among_fields(var_info)
        if found is None:
            raise ValueError(f"{var_info} is no variable of the loop")
        field: list[Variable] = getattr(self, f"{alt_prefix}_{found.name.split('_', 2)[2]}")
        return field[found.index]
