# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""``Queue``: the operations that a lazy environment has not run yet, and their launch as one function."""

from __future__ import annotations

import threading
import weakref
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from graphc.function.io import OutputForm
from graphc.graph.basic import SourceLocation, Variable, capture, describe
from graphc.immediate.arguments import Weak
from graphc.immediate.executable import Executable, Kind, Owner
from graphc.immediate.record import Token, apply
from graphc.immediate.tensor import Tensor, _new, as_held

if TYPE_CHECKING:
    from graphc.immediate.arguments import Operand
    from graphc.immediate.place import Held

    # Kind and dimensions of size 1 of an array; the dtype of a Python number.
    Place = tuple[Kind | np.dtype, tuple[bool, ...]]
    # A value, or why there is none.
    Found = Held | Exception


class Pending(Token):
    """The token of a tensor that is, or was, queued.

    Attributes:
        number: of the value in the queue; None when it is not queued any more.
        ones: which dimensions are known to have size 1.
        error: why it could not be computed.
        handles: references to the tensors that stand for the value.
    """

    __slots__ = ("error", "handles", "number", "ones")

    def __init__(self, number: int, ones: tuple[bool, ...]) -> None:
        self.number: int | None = number
        self.ones = ones
        self.error: Exception | None = None
        self.handles: list[weakref.ref[Tensor]] = []

    def held(self) -> list[Tensor]:
        """The tensors that stand for the value now; one that was assigned to has another."""
        return [x for reference in self.handles if (x := reference()) is not None]


class Queued:
    """One operation in the queue; values are numbers, those of arrays that exist are negative."""

    __slots__ = ("executable", "first", "inputs", "location", "tokens")

    def __init__(
        self, executable: Executable, inputs: tuple[int, ...], first: int, location: SourceLocation | None
    ) -> None:
        self.executable = executable
        self.inputs = inputs
        self.first = first
        self.location = location
        self.tokens: list[Pending] = []


class Queue:
    """Operations that wait until a value is needed.

    Then the whole queue is one function of the arrays it started from, which computes the tensors that
    somebody still holds. It is found by the structure of the queue: which executables follow each other, on
    which values. An iteration of a loop that is like the one before thus needs no compilation. Of a queue
    that is full only a beginning runs, up to a place that `_cut` chooses by what stands there: in a loop the
    same one of an iteration each time, so that launches repeat whatever the number of operations in its body.

    Args:
        env: the environment.
        limit: the most operations that wait.
    """

    def __init__(self, env: Owner, limit: int) -> None:
        self.env = env
        self.resize(limit)
        self._reset()

    def resize(self, limit: int) -> None:
        """Let another number of operations wait from now on.

        Raises:
            ValueError: it is below 1.
        """
        if limit < 1:
            raise ValueError(f"queue_size must be at least 1, got {limit!r}")
        self.limit = limit

    @property
    def lock(self) -> threading.RLock:
        """The environment's: with one for everything, no thread waits for what another one holds."""
        return self.env._cache.lock

    def _reset(self) -> None:
        self._steps: list[Queued] = []
        self._codes: list[tuple[int, ...]] = []
        self._arrays: list[Held] = []
        self._places: list[Place] = []
        self._by_id: dict[int, int] = {}
        self._count = 0

    def __len__(self) -> int:
        return len(self._steps)

    def held(self) -> list[Held]:
        """The arrays that the queue keeps; a queue that nobody waits for is dropped."""
        with self.lock:
            if not any(token.held() for step in self._steps for token in step.tokens):
                self._reset()
            return list(self._arrays)

    def ones(self, x: Tensor) -> tuple[bool, ...]:
        """The dimensions of a tensor that are known to have size 1, without running anything."""
        token = self._waiting(x)
        if token is None:
            if hasattr(x, "_data"):
                return tuple([size == 1 for size in x._data.shape])
            token = x._token  # of a value that could not be computed
        return token.ones

    def _waiting(self, x: Tensor) -> Pending | None:
        """The token of a tensor whose value is queued; what it is a view of may have been written to."""
        token = getattr(x, "_token", None)
        if token is None and not hasattr(x, "_data"):
            self.env._refresh(x)
            token = getattr(x, "_token", None)
        return token if type(token) is Pending and token.number is not None else None

    def release(self, x: Tensor) -> None:
        """A tensor is about to stand for another value: the queue does not compute its present one for it."""
        token = getattr(x, "_token", None)
        if isinstance(token, Pending):
            token.handles = [reference for reference in token.handles if reference() is not x]

    def share(self, x: Tensor) -> None:
        """Let a tensor with the token of a queued value get that value."""
        x._token.handles.append(weakref.ref(x))

    def add(self, executable: Executable, operands: Sequence[Operand]) -> list[Tensor]:
        """Queue an operation; returns its results, which have no data yet."""
        with self.lock:
            inputs = tuple(
                [self._number(x, dtype) for x, dtype in zip(operands, executable.weaks, strict=True)]
            )
            step = Queued(executable, inputs, self._count, capture())
            tensors = []
            for kind, variable in zip(executable.kinds, executable.outputs, strict=True):
                tensor = _new(Tensor)
                tensor._kind = kind
                tensor._token = Pending(self._count, variable.type.broadcastable)
                self._count += 1
                tensors.append(tensor)
                step.tokens.append(tensor._token)
                self.share(tensor)
            self._steps.append(step)
            self._codes.append((executable.serial, *inputs))
            if len(self._steps) >= self.limit:
                self._flush(_cut(self._steps))
            return tensors

    def _number(self, x: Operand, dtype: np.dtype | None) -> int:
        if isinstance(x, Weak):
            return self._add_array(self.env._place.number(np.asarray(x.value, dtype)), None)
        token = self._waiting(x)
        if token is not None and token.number is not None:
            return token.number
        return self._add_array(self.env._place.operand(x), x._kind)

    def _add_array(self, array: Held, kind: Kind | np.dtype | None) -> int:
        found = self._by_id.get(id(array))
        if found is None:
            self._arrays.append(array)
            found = self._by_id[id(array)] = -len(self._arrays)
            self._places.append((kind or array.dtype, tuple([size == 1 for size in array.shape])))
        return found

    def force(self, tensor: Tensor) -> None:
        """Compute a tensor that is queued.

        Raises:
            Exception: what its operation, or one that it depends on, raised.
        """
        with self.lock:
            if hasattr(tensor, "_data"):
                return
            token: Pending = tensor._token
            if token.number is not None:
                self.flush()
            if token.error is not None:
                raise token.error

    # Launching ---------------------------------------------------------------------------------------------

    def flush(self) -> None:
        """Run the queue. Tensors whose operation fails keep the error."""
        with self.lock:
            self._flush(len(self._steps))

    def _flush(self, count: int) -> None:
        """Run the first steps of the queue; the others stay."""
        if not self._steps:
            return
        queued = dict(self.__dict__)
        steps, arrays, places, codes = self._steps, self._arrays, self._places, self._codes
        rest = steps[count:]
        read = frozenset(n for step in rest for n in step.inputs if 0 <= n < rest[0].first)
        # Arrays are numbered in the order of their first use.
        used = max([-n for step in steps[:count] for n in step.inputs if n < 0], default=0)
        self._reset()
        try:
            values = self._launch(steps[:count], arrays[:used], places[:used], codes[:count], read)
        except Exception:
            raise
        except BaseException:  # an interrupt: values are still wanted
            self.__dict__.update(queued)
            raise
        if rest:
            kinds: dict[int, Kind | np.dtype] = {
                step.first + i: kind for step in steps for i, kind in enumerate(step.executable.kinds)
            }
            for i, (kind, _) in enumerate(places):
                values[-i - 1], kinds[-i - 1] = arrays[i], kind
            self._queue_again(rest, values, kinds)

    def _queue_again(
        self, steps: list[Queued], values: dict[int, Any], kinds: dict[int, Kind | np.dtype]
    ) -> None:
        """Queue steps of the former queue as if they had just been added.

        Args:
            steps: in order.
            values: by their numbers in the former queue, the arrays that the steps read; or the errors.
            kinds: by the same numbers; a dtype for a Python number.
        """
        numbers: dict[int, int] = {}
        for step in steps:
            former = range(step.first, step.first + len(step.tokens))
            failed = next((values[n] for n in step.inputs if isinstance(values.get(n), Exception)), None)
            if failed is not None:
                for number, token in zip(former, step.tokens, strict=True):
                    values[number] = _settle(token, failed)
                continue
            step.inputs = tuple(
                [numbers[n] if n in numbers else self._add_array(values[n], kinds[n]) for n in step.inputs]
            )
            step.first = self._count
            for number, token in zip(former, step.tokens, strict=True):
                numbers[number] = token.number = self._count
                self._count += 1
            self._steps.append(step)
            self._codes.append((step.executable.serial, *step.inputs))

    def _launch(
        self,
        steps: list[Queued],
        arrays: list[Held],
        places: list[Place],
        codes: list[tuple[int, ...]],
        read: frozenset[int],
    ) -> dict[int, Found]:
        """Run what was queued.

        Args:
            read: numbers of values that are wanted, whether somebody holds their tensors or not.

        Returns:
            Arrays of the values that are wanted, or errors, by number.
        """
        alive = {
            number: token
            for step in steps
            for number, token in enumerate(step.tokens, step.first)
            if token.held() or number in read
        }
        if not alive:
            return {}
        steps = _needed(steps, alive)
        key = ("queue", tuple(codes), tuple(alive), tuple(places))
        executable = self.env._cache.find(key)
        if executable is None:
            executable = self.env._cache.add(key, self._fused(steps, list(alive), places))
        try:
            results = self.env._timed(executable, arrays, len(steps))
        except Exception:
            values = _run_one_by_one(self.env, steps, arrays)
        else:
            values = dict(zip(alive, results, strict=True))
        return {number: _settle(token, values[number]) for number, token in alive.items()}

    def _fused(self, steps: list[Queued], wanted: list[int], places: list[Place]) -> Executable:
        """The executable of the whole queue."""
        inputs: list[Variable] = []
        values: dict[int, Variable] = {}
        for i, (kind, ones) in enumerate(places):
            kind = kind if isinstance(kind, Kind) else self.env._kind(kind.name, len(ones))
            values[-i - 1] = kind.type(ones).make_variable()
            inputs.append(values[-i - 1])
        for step in steps:
            results = apply(step.executable, [values[number] for number in step.inputs])
            values.update(enumerate(results, step.first))
        form = OutputForm([values[number] for number in wanted])
        kinds = [self.env._kind(v.type.dtype, v.type.ndim) for v in form.variables]
        return Executable(f"{len(steps)} operations", inputs, form, kinds, place=self.env._place)


def _cut(steps: list[Queued]) -> int:
    """Place at which to divide a full queue: after more than half of it, or after all.

    Depends on the operations before the place only, not on how far from the beginning it is: the least in an
    order of such windows, the last one of equals. A loop of at most half a queue has each of its places in
    the second half, so that the same one is found in all launches.
    """
    size = len(steps)
    codes = [
        (step.executable.serial, *[step.first - n if n >= 0 else 0 for n in step.inputs]) for step in steps
    ]
    return min(range(size, size // 2, -1), key=lambda place: codes[place - size // 4 : place])


def _needed(steps: list[Queued], alive: dict[int, Pending]) -> list[Queued]:
    """The steps that somebody's value depends on, in order."""
    wanted = set(alive)
    found = []
    for step in reversed(steps):
        if any(step.first + i in wanted for i in range(len(step.tokens))):
            wanted.update(step.inputs)
            found.append(step)
    return found[::-1]


def _settle(token: Pending, value: Found) -> Found:
    """Gives the tensors that stand for a value their array or their error; returns that."""
    token.number = None
    if isinstance(value, Exception):
        token.error = value
        return value
    data = as_held(value)
    for tensor in token.held():
        tensor._data = data
    return data


def _run_one_by_one(env: Owner, steps: list[Queued], arrays: list[Held]) -> dict[int, Found]:
    """Run a queue whose function failed: a size of 1 that only turned out to broadcast, or an error, which
    then belongs to the results of one operation. Returns arrays or errors by number.
    """
    values: dict[int, Found] = {-i - 1: array for i, array in enumerate(arrays)}
    for step in steps:
        given = [values[number] for number in step.inputs]
        failed = next((x for x in given if isinstance(x, Exception)), None)
        try:
            results: Sequence[Found] = (
                _run(env, step, [x for x in given if not isinstance(x, Exception)])
                if failed is None
                else [failed] * len(step.tokens)
            )
        except Exception as error:
            error.add_note(
                f"in {step.executable.name}{describe(step.location).replace('made at', 'queued at')}"
            )
            results = [error] * len(step.tokens)
        values.update(enumerate(results, step.first))
    return values


def _run(env: Owner, step: Queued, arrays: list[Held]) -> list[Held]:
    try:
        return step.executable.results(arrays)
    except (ValueError, IndexError):  # index arrays broadcast too
        ones = [tuple(size == 1 for size in array.shape) for array in arrays]
        if all(v.type.broadcastable == each for v, each in zip(step.executable.inputs, ones, strict=True)):
            raise
    inputs = [
        env._kind(array.dtype.name, array.ndim).type(each).make_variable()
        for array, each in zip(arrays, ones, strict=True)
    ]
    form = step.executable.form.with_variables(apply(step.executable, inputs))
    again = Executable(step.executable.name, inputs, form, step.executable.kinds, place=env._place)
    return again.results(arrays)
