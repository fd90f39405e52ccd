# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Building a `Scan` from the user's function: what all front ends share."""

from __future__ import annotations

import inspect
import os
from collections.abc import Callable, Collection, Iterable, Sequence
from typing import TYPE_CHECKING, Any

from graphc.errors import MissingInputError
from graphc.graph.basic import Apply, Constant, Variable, Variables, describe
from graphc.graph.replace import rebuild
from graphc.graph.shared import SharedVariable
from graphc.graph.tensor.type import TensorType
from graphc.graph.traversal import explicit_graph_inputs
from graphc.names import unique_name
from graphc.ops.shape import known_size
from graphc.scan.op import Scan
from graphc.scan.spec import Invariant, Output, ScanSpec, State, Untraced
from graphc.scan.spec import Sequence as SequenceRole
from graphc.scan.states import StatePart, UntracedPart, fit, state_part

if TYPE_CHECKING:
    from graphc.graph.tensor.variable import TensorVariable


class Callee:
    """A function that builds one iteration.

    Args:
        fn: the function.
        what: what takes it, for messages, as in ``"scan"``.

    Raises:
        TypeError: it cannot be called.
    """

    def __init__(self, fn: Callable[..., object], what: str) -> None:
        if not callable(fn) or isinstance(fn, Variable):
            raise TypeError(
                f"{what} needs a function that builds one iteration, got {fn!r:.80} of type "
                f"{type(fn).__name__}"
            )
        self.fn = fn
        self.what = what

    @property
    def name(self) -> str | None:
        """The function's name, if it has one of its own."""
        name = getattr(self.fn, "__name__", None)
        return None if name in (None, "<lambda>") else name

    def __str__(self) -> str:
        name = getattr(self.fn, "__name__", type(self.fn).__name__)
        code = getattr(inspect.unwrap(self.fn), "__code__", None)
        if code is None:
            return f"the function {name}"
        file = os.path.relpath(code.co_filename) if os.path.isabs(code.co_filename) else code.co_filename
        file = code.co_filename if file.startswith("..") else file
        return f"the function {name} ({file}:{code.co_firstlineno})"

    def __call__(self, args: Sequence[Any]) -> Any:
        """Results of the function.

        Raises:
            TypeError: it does not take as many arguments.
        """
        try:
            signature = inspect.signature(self.fn)
        except (TypeError, ValueError):
            return self.fn(*args)
        try:
            signature.bind(*args)
        except TypeError as error:
            given = ", ".join(map(str, args)) or "none"
            raise TypeError(
                f"{self.what} calls {self} with {len(args)} arguments ({given}), but its parameters are "
                f"{signature}: {error}. The order is: {_ORDERS.get(self.what, _ORDER)}"
            ) from None
        return self.fn(*args)


_ORDER = "rows of the sequences, earlier rows of the states, non_sequences; each with one argument a tap"
_ORDERS = {
    "fori_loop": "the number of the iteration, the carry",
    "while_loop": "the carry",
    "loop": "the carry, a row of xs",
}
_PREFIX = "auto_"


def _age(v: Variable) -> int:
    """Variables are numbered in the order in which they are made."""
    return int(v.auto_name.removeprefix(_PREFIX))


def mark() -> int:
    """A point in time: whatever is made from now on `is_new`."""
    return _age(Variable(TensorType("bool", ())))


def is_new(v: Variable, since: int) -> bool:
    """True if a variable was made after a `mark`."""
    return _age(v) > since


def captured(outputs: Iterable[Variable], inner: Collection[Variable], since: int) -> list[Variable]:
    """Variables that a loop's function reads besides its arguments, in order of first use.

    A variable that was there before the function was called is captured as it is. What the function computes
    itself belongs to the loop, even where no argument takes part; passes move that out later. Only tensors
    that are parts of what machine code cannot read (sparse matrices) are captured then: with them in its body
    the loop would run in Python. Constants are part of the loop.

    Args:
        outputs: what the function returned.
        inner: the variables that stand for rows.
        since: a `mark` set before the function was called.
    """
    arguments = set(inner)
    found: dict[Variable, None] = {}
    seen: set[Variable] = set()
    stack = list(outputs)[::-1]
    while stack:
        v = stack.pop()
        if v in seen or v in arguments or isinstance(v, Constant):
            continue
        seen.add(v)
        # Nothing old depends on the arguments, which are younger, so there is no need to look beyond it.
        if v.owner is None or not is_new(v, since) or _is_fixed_part(v, arguments, since):
            found[v] = None
        else:
            stack.extend(reversed(v.owner.inputs))
    return list(found)


def _is_fixed_part(v: Variable, arguments: Collection[Variable], since: int) -> bool:
    """True if a tensor is taken from a value that has to be taken apart and is the same in all iterations."""
    assert v.owner is not None
    if v.type.is_taken_apart or not any(x.type.is_taken_apart for x in v.owner.inputs):
        return False
    seen: set[Variable] = set()
    stack = [v]
    while stack:
        x = stack.pop()
        if x in arguments:
            return False
        if x not in seen:
            seen.add(x)
            if x.owner is not None and is_new(x, since):
                stack.extend(x.owner.inputs)
    return True


_RESERVED = ("n_steps", "until")


class LoopBuilder:
    """Collects the parts of a loop, one after the other, and makes a node of them.

    Args:
        callee: the user's function.

    Order of use: `sequence`, `state`, `untraced`; `call`; `output`, `update` and the ``next`` of states;
    `build`.
    """

    def __init__(self, callee: Callee) -> None:
        self.callee = callee
        self.states: list[StatePart] = []
        self.condition: Variable | None = None
        self._sequences: list[tuple[SequenceRole, TensorVariable, list[Variable]]] = []
        self._outputs: list[tuple[str, Variable]] = []
        self._untraced: list[UntracedPart] = []
        self._shared: list[SharedVariable] = []
        self._taken: set[str] = set(_RESERVED)
        self._mark = 0

    # -- before the function is called -----------------------------------------------------------------------

    def unique(self, wanted: str | None, otherwise: str) -> str:
        """A name that no role has yet."""
        name = unique_name(wanted or otherwise, self._taken)
        self._taken.add(name)
        return name

    def sequence(
        self, variable: TensorVariable, offsets: Sequence[int], labels: Sequence[str], name: str | None
    ) -> list[Variable]:
        """Adds a sequence; returns the variables of its rows, in the order of ``offsets`` (>= 0)."""
        role = SequenceRole(self.unique(name, f"x{len(self._sequences)}"), tuple(sorted(set(offsets))))
        row = TensorType(variable.type.dtype, variable.type.shape[1:])
        names = dict(zip(offsets, labels, strict=True))
        inner = {tap: row.make_variable(f"{name or role.name}[{names[tap]}]") for tap in role.taps}
        for tap, v in inner.items():
            v._location = variable.location
            v.take_test_value(variable, tap)
        self._sequences.append((role, variable, list(inner.values())))
        return [inner[offset] for offset in offsets]

    def state(self, initial: TensorVariable, taps: Sequence[int], is_row: bool, label: str) -> StatePart:
        """Adds a state; see `states.state_part`."""
        name = self.unique(initial.name, f"state{len(self.states)}")
        part = state_part(name, label.format(name=name), initial, taps, is_row)
        self.states.append(part)
        return part

    def untraced(self, initial: Variable, label: str | None = None) -> UntracedPart:
        """Adds a state of which only the last value is kept; tensors with a label may get another type."""
        name = self.unique(initial.name, f"value{len(self._untraced)}")
        inner = initial.type.make_variable(f"{name}[t-1]")
        part = UntracedPart(name, label and label.format(name=name), initial, inner)
        self._untraced.append(part)
        return part

    def call(self, args: Sequence[Variable]) -> Any:
        """Results of the function."""
        self._mark = mark()
        return self.callee(args)

    # -- afterwards ------------------------------------------------------------------------------------------

    def output(self, variable: Variable) -> int:
        """Adds an output that no iteration reads; returns its number."""
        if not isinstance(variable.type, TensorType):
            raise TypeError(
                f"{self.callee} returns {variable} of type {variable.type}{describe(variable.location)}, "
                "which cannot "
                "be stacked; give its initial value in outputs_info, so that its last value is returned"
            )
        inner = {v for _, _, rows in self._sequences for v in rows}
        name = None if variable in inner or variable.owner is None else variable.name
        self._outputs.append((self.unique(name, f"out{len(self._outputs)}"), variable))
        return len(self._outputs) - 1

    def update(self, shared: SharedVariable, value: Variable) -> None:
        """Adds a shared variable that changes in each iteration."""
        try:
            new = shared.type.filter_variable(value)
        except TypeError:
            given = value.type if isinstance(value, Variable) else type(value).__name__
            raise TypeError(
                f"the update of the shared variable {shared}{describe(shared.location)} must be of its type "
                f"{shared.type}, but {self.callee} returns {value} of type {given} for it"
            ) from None
        self.untraced(shared).next = new
        self._shared.append(shared)

    def _local_updates(self) -> None:
        """Default updates that were made while the function ran belong to the loop, not to functions."""
        done: set[Variable] = set(self._shared)
        found = True
        while found:
            found = False
            for v in captured(self._results(), self._inner(), self._mark):
                if not isinstance(v, SharedVariable) or v in done or v.default_update is None:
                    continue
                done.add(v)
                if is_new(v.default_update, self._mark):
                    self.update(v, v.default_update)
                    v.default_update = None
                    found = True

    def _inner(self) -> list[Variable]:
        rows = [v for _, _, inner in self._sequences for v in inner]
        rows += [part.inner[tap] for part in self.states for tap in part.taps]
        return rows + [part.inner for part in self._untraced]

    def _results(self) -> list[Variable]:
        results: list[Variable] = [part.next for part in self.states] + [v for _, v in self._outputs]
        results += [part.next for part in self._untraced]
        return results + ([] if self.condition is None else [self.condition])

    def _fit(self) -> list[Variable]:
        """Settles the types of states; returns the inner outputs."""
        fixed = [part for part in self._untraced if part.label is None]
        free: list[StatePart | UntracedPart] = [*self.states]
        free += [part for part in self._untraced if part.label is not None]
        others = [v for _, v in self._outputs] + [part.next for part in fixed]
        others += [] if self.condition is None else [self.condition]
        rest = iter(fit(free, others, self.callee))
        self._outputs = [(name, next(rest)) for name, _ in self._outputs]
        for part in fixed:
            part.next = part.initial.type.filter_variable(next(rest))
        self.condition = next(rest, None)
        return self._results()

    def build(
        self, n_steps: Variable, *, non_sequences: Variables = (), strict: bool = False, **options: Any
    ) -> Apply:
        """The node.

        Args:
            n_steps: 0-d int64.
            non_sequences: what the user passed as such.
            strict: refuse functions that read other variables from outside.
            options: of `Scan`.

        Raises:
            TypeError: a state changes its type.
            MissingInputError: the function captures variables with ``strict``.
            ValueError: a sequence is too short.
        """
        self._check_lengths(n_steps)
        self._local_updates()
        results = self._fit()
        given = [
            v for v in dict.fromkeys(non_sequences) if not isinstance(v, Constant) and v not in self._shared
        ]
        used = [v for v in captured(results, self._inner(), self._mark) if v not in self._shared]
        if strict:
            self._check_strict([v for v in used if v not in given and not _is_part_of(v, given)])
        # What is only read in parts, which are captured, is no part of the loop itself.
        given = [v for v in given if v in used or not v.type.is_taken_apart]
        outside = list(dict.fromkeys([*given, *used]))
        invariants = [Invariant(self.unique(v.name, f"w{i}")) for i, v in enumerate(outside)]
        inner = [v.type.make_variable(v.name) for v in outside]
        memo: dict[Variable, Variable] = dict(zip(outside, inner, strict=True))
        memo.update((shared, self._part_of(shared).inner) for shared in self._shared)
        rebuilt = rebuild(results, memo, copy_nodes=False, strict=True)
        op = Scan(self._spec(invariants), [*self._inner(), *inner], rebuilt, **options)
        initial = [part.initial for part in self.states] + [part.initial for part in self._untraced]
        return op.make_node(n_steps, *(x for _, x, _ in self._sequences), *initial, *outside)

    def _part_of(self, shared: SharedVariable) -> UntracedPart:
        return next(part for part in self._untraced if part.initial is shared)

    def _spec(self, invariants: list[Invariant]) -> ScanSpec:
        return ScanSpec(
            sequences=tuple(role for role, _, _ in self._sequences),
            states=tuple(State(part.name, part.taps) for part in self.states),
            outputs=tuple(Output(name) for name, _ in self._outputs),
            untraced=tuple(Untraced(part.name) for part in self._untraced),
            invariants=tuple(invariants),
            is_while=self.condition is not None,
        )

    def _check_lengths(self, n_steps: Variable) -> None:
        steps = known_size(n_steps)
        for role, x, _ in self._sequences:
            rows = x.type.shape[0]
            available = None if rows is None else max(rows - role.taps[-1], 0)
            if steps is not None and available is not None and steps > available:
                raise ValueError(
                    f"n_steps={steps} of the loop over {self.callee} is more than the sequence '{role.name}' "
                    f"of type {x.type}{describe(x.location)} allows: {available}. Give fewer steps, or leave "
                    "n_steps out"
                )

    def _check_strict(self, found: list[Variable]) -> None:
        if found:
            names = ", ".join(f"{v} of type {v.type}{describe(v.location)}" for v in found)
            raise MissingInputError(
                f"with strict=True {self.callee} may read its arguments only, but it also reads {names}; "
                f"pass {'it' if len(found) == 1 else 'them'} in non_sequences"
            )

    # -- results ---------------------------------------------------------------------------------------------

    def trace(self, node: Apply, part: StatePart) -> Variable:
        """All rows of a state, the initial ones too."""
        return node.outputs[self.states.index(part)]

    def steps_of(self, node: Apply, part: StatePart) -> Variable:
        """Rows of a state that the iterations computed."""
        window, trace = -part.taps[0], self.trace(node, part)
        return trace[:-window] if _reverses(node) else trace[window:]

    def last(self, node: Apply, part: StatePart) -> Variable:
        """The newest row; the initial one where no iteration has run."""
        return self.trace(node, part)[0 if _reverses(node) else -1]

    def collected(self, node: Apply, number: int) -> Variable:
        """The rows of an output."""
        return node.outputs[len(self.states) + number]

    def final(self, node: Apply, part: UntracedPart) -> Variable:
        """The last value of an untraced state."""
        return node.outputs[len(self.states) + len(self._outputs) + self._untraced.index(part)]

    def updates(self, node: Apply) -> dict[SharedVariable, Variable]:
        """The final value of each shared variable that the loop changes."""
        return {shared: self.final(node, self._part_of(shared)) for shared in self._shared}


def _is_part_of(v: Variable, given: list[Variable]) -> bool:
    """True if a variable is computed from what the user passed, a sparse matrix for one."""
    return v.owner is not None and set(explicit_graph_inputs([v])) <= set(given)


def _reverses(node: Apply) -> bool:
    """True if a loop goes from the last row to the first."""
    return isinstance(node.op, Scan) and node.op.reverse
