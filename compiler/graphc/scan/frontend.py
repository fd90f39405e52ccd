# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""``graphc.scan``: loops built from a function of one iteration.

``scan_checkpoints``: PyTensor's name for a scan that keeps few states for its gradient.
"""

from __future__ import annotations

import warnings
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Any, Literal, NoReturn, TypedDict, Unpack, overload

from graphc.errors import checks_keywords
from graphc.graph.basic import Variable, frames_inside
from graphc.graph.tensor.type import TensorType
from graphc.graph.tensor.variable import TensorVariable
from graphc.ops.create import arange
from graphc.ops.ifelse import as_variable
from graphc.ops.math import floor_div, maximum, minimum
from graphc.ops.shape import known_as, known_size, size_of
from graphc.scan.arguments import OutputArgument, SequenceArgument, as_outputs, as_sequences, as_steps, listed
from graphc.scan.builder import Callee, LoopBuilder
from graphc.scan.returned import Returned, parse
from graphc.scan.states import UntracedPart
from graphc_runtime.record import record

if TYPE_CHECKING:
    from graphc.graph.basic import Apply
    from graphc.graph.shared import SharedVariable
    from graphc.graph.tensor import AnyFunction, IndexLike, TensorLike
    from graphc.scan.arguments import Given
    from graphc.scan.states import StatePart

    # Of an output: its state, or the number of one that no iteration reads.
    Part = StatePart | UntracedPart | int
    Carried = StatePart | UntracedPart | None

    class _Options(TypedDict, total=False):
        checkpoint_every: int | None
        unroll: int
        progress: bool
        mode: object
        profile: object
        allow_gc: object


_PAIR = (
    "return_updates=True returns (outputs, updates) as a tuple, the form that PyTensor is about to give up; "
    "leave it out: the result is the outputs, and unpacks as the pair"
)


class _Updates:
    """New values of shared variables after a loop: default updates of these, until somebody takes them.

    Args:
        values: new values.
    """

    def __init__(self, values: dict[SharedVariable, Variable]) -> None:
        self._values = values
        self._is_taken = False
        self._before = {shared: shared.default_update for shared in values}
        for shared, new in values.items():
            shared.default_update = new

    def take(self) -> dict[SharedVariable, Variable]:
        """The new values, for ``function(..., updates=...)``; functions do not apply them otherwise then."""
        for shared, before in self._before.items():
            if shared.default_update is self._values[shared]:
                shared.default_update = before
        self._before = {}
        self._is_taken = True
        return self._values

    def notice(self, index: object, found: str, outputs: str) -> None:
        """Warns where the first part of PyTensor's pair may be meant.

        Args:
            index: into the result of a loop that has not been unpacked.
            found: what is there.
            outputs: what the pair would begin with, as it is written.
        """
        if type(index) is int and index == 0 and not self._is_taken:
            warnings.warn(
                f"[0] of a loop is {found}; PyTensor's pair of outputs and updates has all outputs "
                f"there; write `{outputs}, updates = scan(...)` for the pair, and {outputs}[0] after that",
                UserWarning,
                stacklevel=frames_inside() + 1,
            )


class Rows(TensorVariable):
    """The only output of a loop: a variable like others, which unpacks as ``rows, updates``."""

    def __iter__(self) -> Iterator[Any]:
        updates: _Updates | None = self.__dict__.get("_updates")
        return super().__iter__() if updates is None else iter((self, updates.take()))

    def __getitem__(self, index: IndexLike) -> TensorVariable:
        updates: _Updates | None = self.__dict__.get("_updates")
        if updates is not None:
            updates.notice(index, "the first row", "rows")
        return super().__getitem__(index)

    def __getstate__(self) -> dict[str, object]:
        return {name: value for name, value in super().__getstate__().items() if name != "_updates"}


class Outputs(list[Variable]):
    """Several outputs of a loop, or none: a list of them, which unpacks as ``outputs, updates``."""

    def __init__(self, outputs: Sequence[Variable], updates: _Updates) -> None:
        super().__init__(outputs)
        self._updates = updates

    def __iter__(self) -> Iterator[Any]:
        outputs: list[Variable] | None = self[:] or None
        return iter((outputs, self._updates.take()))

    def __getitem__(self, index: Any) -> Any:
        self._updates.notice(index, f"the first of {len(self)} outputs", "outputs")
        return super().__getitem__(index)

    def __reduce__(self) -> tuple[object, ...]:
        return list, (self[:],)

    def _refuse(self, *other: object) -> NoReturn:
        raise TypeError(
            f"this loop has {len(self)} outputs, and arithmetic needs one of them; write `(a, b), updates = "
            "scan(...)`"
        )

    __add__ = __radd__ = __sub__ = __rsub__ = __mul__ = __rmul__ = __imul__ = __iadd__ = _refuse
    __truediv__ = __rtruediv__ = __pow__ = __rpow__ = __matmul__ = __rmatmul__ = __neg__ = _refuse


@overload
def scan(
    fn: AnyFunction,
    sequences: Given = None,
    outputs_info: Given = None,
    non_sequences: TensorLike | None = None,
    n_steps: TensorLike | None = None,
    truncate_gradient: int = -1,
    go_backwards: bool = False,
    name: str | None = None,
    strict: bool = False,
    return_list: bool = False,
    return_updates: Literal[None] = None,
    **options: Unpack[_Options],
) -> Rows | Outputs: ...
@overload
def scan(
    fn: AnyFunction,
    sequences: Given = None,
    outputs_info: Given = None,
    non_sequences: TensorLike | None = None,
    n_steps: TensorLike | None = None,
    truncate_gradient: int = -1,
    go_backwards: bool = False,
    name: str | None = None,
    strict: bool = False,
    return_list: bool = False,
    *,
    return_updates: Literal[False],
    **options: Unpack[_Options],
) -> TensorVariable | list[TensorVariable]: ...
@overload
def scan(
    fn: AnyFunction,
    sequences: Given = None,
    outputs_info: Given = None,
    non_sequences: TensorLike | None = None,
    n_steps: TensorLike | None = None,
    truncate_gradient: int = -1,
    go_backwards: bool = False,
    name: str | None = None,
    strict: bool = False,
    return_list: bool = False,
    *,
    return_updates: Literal[True],
    **options: Unpack[_Options],
) -> tuple[Any, dict[SharedVariable, Variable]]: ...
@checks_keywords
def scan(
    fn: AnyFunction,
    sequences: Given = None,
    outputs_info: Given = None,
    non_sequences: TensorLike | None = None,
    n_steps: TensorLike | None = None,
    truncate_gradient: int = -1,
    go_backwards: bool = False,
    name: str | None = None,
    strict: bool = False,
    return_list: bool = False,
    return_updates: bool | None = None,
    *,
    checkpoint_every: int | None = None,
    unroll: int = 1,
    progress: bool = False,
    mode: object = None,
    profile: object = None,
    allow_gc: object = None,
) -> Any:
    """Call a function once for each step of a loop and stack what it returns.

    ``fn`` is called once, while the graph is built, with symbolic rows: for each sequence one variable a tap,
    for each output with an initial value one a tap, then the non-sequences.

    Args:
        fn: builds one iteration. It returns an output or a list of outputs; beside them it may return a dict
            of updates of shared variables, which the next iteration sees, and ``until(condition)``.
        sequences: tensors read row by row: a variable, ``dict(input=x, taps=[-1, 0])``, or a list of these.
            Step 0 reads the first rows for which all taps exist.
        outputs_info: one entry an output. A variable: the value "before the first step", read by the next
            step. ``dict(initial=x, taps=[-3, -1])``: earlier rows that are read; x has as many leading rows
            as the oldest tap reaches back, oldest first (for taps [-1] just the one row, without an axis of
            rows). None: no step reads the output. A variable that is no tensor is handed from step to step
            and only its last value is returned.
        non_sequences: further arguments of ``fn``. Other variables that ``fn`` reads need not be listed.
        n_steps: number of steps; as many as the sequences allow by default. With ``until``, the most.
        truncate_gradient: number of steps that a gradient goes back; -1 for all.
        go_backwards: read the sequences from their ends.
        name: shown in messages; the function's name by default.
        strict: refuse functions that read variables that were not passed.
        return_list: return a list even of one output.
        return_updates: True returns a tuple ``(outputs, updates)``, with a DeprecationWarning, as PyTensor
            does; False returns outputs that do not unpack as such a pair.
        checkpoint_every: keep states only every so many steps for the gradient, which computes the others
            again.
        unroll: steps that compiled code runs between two tests of the loop's end.
        progress: show on stderr how far a loop is that takes longer than a fraction of a second. Loops that
            compile to something else than a loop (a sum, say) show nothing.
        mode, profile, allow_gc: accepted for compatibility; they have no effect.

    Returns:
        The outputs of all steps that were run, stacked along a new first axis: one variable, or a list of
        several. ``ys = scan(...)`` is used as it is: ``ys[-1]``, ``ys.sum()``. New values of shared variables
        are their ``default_update`` then, which functions that use the variables apply. ``ys, updates =
        scan(...)`` unpacks as PyTensor's pair: ``updates`` is a dict for ``graphc.function(...,
        updates=updates)``, and nothing is applied without it. Of several outputs it is
        ``(a, b), updates = scan(...)``.

    Raises:
        TypeError: the dtype or shape of a state changes, or an argument or result is of the wrong kind.
        ValueError: the number of steps is unknown, negative or too large; outputs do not fit
            ``outputs_info``.

    Examples:
        >>> x = pt.vector("x")
        >>> step = lambda v, h: 0.5 * h + v
        >>> states = graphc.scan(step, sequences=[x], outputs_info=[pt.constant(0.0)])
        >>> graphc.function([x], [states, states[-1]])([1.0, 1.0, 1.0])
        [array([1.  , 1.5 , 1.75]), array(1.75)]
    """
    loop = build_loop(
        fn,
        sequences,
        outputs_info,
        non_sequences,
        n_steps,
        go_backwards=go_backwards,
        strict=strict,
        name=name,
        truncate_gradient=truncate_gradient,
        checkpoint_every=checkpoint_every,
        unroll=unroll,
        progress=progress,
    )
    return loop.result(loop.outputs, return_list=return_list, return_updates=return_updates)


@record()
class BuiltLoop:
    """A loop and its results.

    Attributes:
        builder: its parts.
        node: the application.
        parts: for each output, the state, the number of the nit-sot, or the untraced state.
    """

    builder: LoopBuilder
    node: Apply
    parts: list[Part]

    @property
    def outputs(self) -> list[Variable]:
        """Each output, stacked; the final value of untraced states."""
        return [self._pick(part, self.builder.steps_of) for part in self.parts]

    @property
    def lasts(self) -> list[Variable]:
        """Each output after the last step; a state without steps is as it was at the start."""
        return [
            self.builder.collected(self.node, part)[-1]
            if isinstance(part, int)
            else self._pick(part, self.builder.last)
            for part in self.parts
        ]

    def _pick(self, part: Part, of_state: Callable[[Apply, StatePart], Variable]) -> Variable:
        if isinstance(part, int):
            return self.builder.collected(self.node, part)
        if isinstance(part, UntracedPart):
            return self.builder.final(self.node, part)
        return of_state(self.node, part)

    def result(
        self, outputs: Sequence[Variable], *, return_list: bool = False, return_updates: bool | None = None
    ) -> Any:
        """``outputs`` in the form that users get, with updates returned or attached; None for both."""
        updates = _Updates(self.builder.updates(self.node))
        if return_updates is None:
            first = outputs[0] if len(outputs) == 1 and not return_list else None
            if type(first) is not TensorVariable:
                return Outputs(outputs, updates)
            first.__class__ = Rows
            first.__dict__["_updates"] = updates
            return first
        found: Any = outputs
        if not return_list:
            found = None if not outputs else outputs[0] if len(outputs) == 1 else outputs
        if not return_updates:
            return found
        warnings.warn(_PAIR, DeprecationWarning, stacklevel=frames_inside() + 1)
        return found, updates.take()


def build_loop(
    fn: AnyFunction,
    sequences: Given,
    outputs_info: Given,
    non_sequences: TensorLike | None,
    n_steps: TensorLike | None = None,
    *,
    go_backwards: bool = False,
    strict: bool = False,
    name: str | None = None,
    what: str = "scan",
    **options: Any,
) -> BuiltLoop:
    """The loop of `scan` and of the functions like it, from the user's arguments.

    Args:
        what: name of the function that is called, for messages.
        options: of the `Scan` op. The others: as in `scan`.
    """
    given, outputs = as_sequences(sequences), as_outputs(outputs_info)
    arguments = [as_variable(v) for v in listed(non_sequences)]
    callee = Callee(fn, what)
    builder = LoopBuilder(callee)
    # The number of steps is part of the outside, so it is made before the function is called.
    steps = _steps(given, n_steps, callee)
    args = [v for each in given for v in _add_sequence(builder, each, go_backwards)]
    states = [_add_output(builder, i, each) for i, each in enumerate(outputs or [])]
    for argument, part in zip(outputs or [], states, strict=True):
        args += _arguments_of(argument, part)
    returned = parse(builder.call([*args, *arguments]), callee)
    if outputs is None:
        states = [None] * len(returned.outputs)
    _check_count(returned, states, callee)
    parts = [_set_output(builder, part, v) for part, v in zip(states, returned.outputs, strict=True)]
    for shared, value in returned.updates.items():
        builder.update(shared, value)
    builder.condition = returned.condition
    node = builder.build(steps, non_sequences=arguments, strict=strict, name=name or callee.name, **options)
    return BuiltLoop(builder, node, parts)


def _reach(taps: tuple[int, ...]) -> tuple[int, int]:
    """The oldest and newest row that an iteration may read; tap 0 counts in any case, as in PyTensor."""
    return min(*taps, 0), max(*taps, 0)


def _add_sequence(builder: LoopBuilder, given: SequenceArgument, go_backwards: bool) -> list[Variable]:
    oldest, newest = _reach(given.taps)
    x = given.variable
    offsets = [newest - tap if go_backwards else tap - oldest for tap in given.taps]
    labels = ["t" if tap == 0 else f"t{tap:+d}" for tap in given.taps]
    return builder.sequence(x[::-1] if go_backwards else x, offsets, labels, x.name)


def _steps(sequences: list[SequenceArgument], n_steps: TensorLike | None, callee: Callee) -> Variable:
    if n_steps is not None:
        return as_steps(n_steps, str(callee))
    if not sequences:
        raise ValueError(
            f"the number of steps of the loop over {callee} is unknown: give n_steps, or a sequence to go "
            "through"
        )
    lengths = list(dict.fromkeys(_length(each) for each in sequences))
    known = [size for length in lengths if (size := known_size(length)) is not None]
    if len(known) == len(lengths):
        return known_as(min(known), *lengths)
    return _minimum(lengths)


def _length(given: SequenceArgument) -> TensorVariable:
    """Number of steps that a sequence allows."""
    oldest, newest = _reach(given.taps)
    length = size_of(given.variable, 0)
    if oldest == newest:
        return length
    static = known_size(length)
    if static is not None:
        return known_as(max(static - (newest - oldest), 0), length)
    return maximum(length - (newest - oldest), 0)


def _minimum(lengths: list[TensorVariable]) -> TensorVariable:
    least = lengths[0]
    for length in lengths[1:]:
        least = minimum(least, length)
    return least


def _add_output(
    builder: LoopBuilder, position: int, given: OutputArgument
) -> StatePart | UntracedPart | None:
    """The state of an output; None for one that no step reads."""
    if given.initial is None:
        return None
    label = f"the state '{{name}}' (outputs_info[{position}])"
    if isinstance(given.initial.type, TensorType) and not given.initial.type.is_untraced:
        return builder.state(given.initial, given.taps, given.taps == (-1,), label)
    if given.taps != (-1,):
        raise ValueError(
            f"outputs_info[{position}] is {given.initial} of type {given.initial.type}, of which only the "
            f"last value is kept; its taps must be [-1], got {list(given.taps)}"
        )
    return builder.untraced(given.initial)


def _arguments_of(given: OutputArgument, part: Carried) -> list[Variable]:
    if part is None:
        return []
    return [part.inner] if isinstance(part, UntracedPart) else [part.inner[tap] for tap in given.taps]


def _set_output(builder: LoopBuilder, part: Carried, value: Variable) -> Part:
    if part is None:
        return builder.output(value)
    if isinstance(part, UntracedPart):
        part.next = part.initial.type.filter_variable(value)
    else:
        part.next = value
    return part


def _check_count(returned: Returned, parts: Sequence[Carried], callee: Callee) -> None:
    if len(returned.outputs) != len(parts):
        raise ValueError(
            f"{callee} returns {len(returned.outputs)} outputs ({', '.join(map(str, returned.outputs))}), "
            f"but outputs_info has {len(parts)} entries; give one entry an output, None for each that no "
            "step reads"
        )


def scan_checkpoints(
    fn: Callable[..., Any],
    sequences: Any = None,
    outputs_info: Any = None,
    non_sequences: Any = None,
    name: str = "checkpointscan_fn",
    n_steps: Any = None,
    save_every_N: int = 10,
    padding: bool = True,
    return_updates: bool | None = None,
) -> TensorVariable | None:
    """`graphc.scan` with ``checkpoint_every``: of its results, every ``save_every_N``-th row and the last.

    Args:
        fn, sequences, outputs_info, non_sequences, name, n_steps, return_updates: as in `graphc.scan`.
        save_every_N: how many steps the gradient computes again from each state that is kept.
        padding: accepted for compatibility; sequences of any length do.

    Returns:
        Results (one, or a list), with updates if ``return_updates``.

    Raises:
        RuntimeError: an entry of ``outputs_info`` has taps.
    """
    given = outputs_info if isinstance(outputs_info, list) else [outputs_info]
    if any(isinstance(entry, Mapping) and "taps" in entry for entry in given):
        raise RuntimeError("scan_checkpoints takes no taps; use graphc.scan(..., checkpoint_every=...)")
    loop = build_loop(
        fn, sequences, outputs_info, non_sequences, n_steps=n_steps, name=name, what="scan_checkpoints",
        checkpoint_every=save_every_N,
    )  # fmt: skip
    kept = [_last_of_blocks(each, save_every_N) for each in loop.outputs]
    return loop.result(kept, return_updates=return_updates)


def _last_of_blocks(rows: Variable, size: int) -> Variable:
    count = size_of(rows, 0)
    ends = (arange(floor_div(count + (size - 1), size)) + 1) * size
    return rows[minimum(ends, count) - 1]
