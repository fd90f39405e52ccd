# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Recordings: which operations ran on which tensors, as a graph."""

from __future__ import annotations

from collections.abc import Container, Sequence
from contextvars import ContextVar
from typing import TYPE_CHECKING, Any, Self, TypeAlias

import numpy as np

from graphc.function.function import function
from graphc.graph.basic import SourceLocation, Variable, capture
from graphc.graph.printing import debugprint
from graphc.graph.replace import rebuild
from graphc.graph.tensor.convert import constant
from graphc.graph.traversal import toposort
from graphc.immediate.arguments import Weak
from graphc.immediate.executable import Executable, Owner
from graphc.immediate.tensor import Tensor, _bare
from graphc_runtime.record import record

if TYPE_CHECKING:
    from typing import TextIO

    from graphc.function.types import Function
    from graphc.immediate.arguments import Operand
    from graphc.immediate.executable import ExecutableCache


class Token:
    """Identifies the value of a tensor, whatever handles it has."""

    __slots__ = ("__weakref__",)


Tensors: TypeAlias = Sequence[Tensor]
# What a recorded operation reads: a value, or a number as an array.
Root: TypeAlias = "Token | np.ndarray"


def token_of(tensor: Tensor) -> Token:
    """The token of a tensor, which gets one when it has none."""
    try:
        return tensor._token
    except AttributeError:
        with tensor._kind.env._cache.lock:
            tensor._kind.env._refresh(tensor)
            if not hasattr(tensor, "_token"):
                tensor._token = Token()
            return tensor._token


@record(frozen=True)
class Step:
    """One operation that ran: its inputs and results are tokens, its numbers arrays."""

    executable: Executable
    inputs: tuple[Root, ...]
    outputs: tuple[Token, ...]
    location: SourceLocation | None


@record()
class RecordedGraph:
    """A graph of what ran.

    Attributes:
        inputs: symbolic inputs. outputs: symbolic results.
        values: the values that the inputs had.

    Examples:
        >>> env = graphc.immediate.Environment()
        >>> with env.record() as recording:
        ...     y = env.as_tensor([1.0, 2.0]) * 3.0
        >>> graph = recording.graph([y])
        >>> len(graph.inputs), len(graph.outputs)
        (1, 1)
    """

    inputs: list[Variable]
    outputs: list[Variable]
    values: list[np.ndarray]

    def function(self, **kwargs: Any) -> Function:
        """The compiled graph; arguments as in `graphc.function`."""
        return function(self.inputs, self.outputs, **{"on_unused_input": "ignore", **kwargs})

    def dprint(self, **kwargs: Any) -> str | TextIO | None:
        """Print the graph; arguments as in `graphc.dprint`."""
        return debugprint(self.outputs, **kwargs)


class Recording:
    """The operations that this thread ran inside ``with env.record() as recording:``.

    Attributes:
        steps: the operations in order.
        leaves: tensors that were there before, in order of first use, by token.

    Examples:
        >>> env = graphc.immediate.Environment()
        >>> x = env.as_tensor([1.0, 3.0])
        >>> with env.record() as recording:
        ...     y = (x**2).sum()
        >>> float(y)
        10.0
    """

    def __init__(self, env: Owner) -> None:
        self.env = env
        self.steps: list[Step] = []
        self.leaves: dict[Token, Tensor] = {}
        self._made: dict[Token, int] = {}

    def __enter__(self) -> Self:
        self.env._recorders.start(self)
        return self

    def __exit__(self, *exception: object) -> None:
        self.env._recorders.stop(self)

    def add(self, executable: Executable, operands: Sequence[Operand], tensors: Sequence[Tensor]) -> None:
        """Note an operation that ran."""
        inputs: list[Root] = []
        for x, dtype in zip(operands, executable.weaks, strict=True):
            if isinstance(x, Weak):
                inputs.append(np.asarray(x.value, dtype))
                continue
            token = token_of(x)
            inputs.append(token)
            if token not in self._made and token not in self.leaves:
                self.leaves[token] = handle(x)
        outputs = tuple(map(token_of, tensors))
        for token in outputs:
            self._made[token] = len(self.steps)
        self.steps.append(Step(executable, tuple(inputs), outputs, capture()))

    def knows(self, token: Token) -> bool:
        """True if a value was used or made while recording."""
        return token in self._made or token in self.leaves

    def needed(self, tokens: Sequence[Token], stop: Container[Token] = ()) -> list[Step]:
        """The steps that make values, in order; what ``stop`` holds is taken as given."""
        wanted: set[int] = set()
        stack = [token for token in tokens if token not in stop]
        while stack:
            number = self._made.get(stack.pop())
            if number is None or number in wanted:
                continue
            wanted.add(number)
            step = self.steps[number]
            stack.extend(t for t in step.inputs if not isinstance(t, np.ndarray) and t not in stop)
        return [self.steps[number] for number in sorted(wanted)]

    def graph(
        self, outputs: Sequence[Tensor] | Tensor | None = None, inputs: Sequence[Tensor] | None = None
    ) -> RecordedGraph:
        """The graph that computes tensors.

        Args:
            outputs: results; by default all that nothing else used.
            inputs: tensors that become inputs, in this order; the other ones that the results need become
                constants. By default all tensors that were there before the recording become inputs.

        Raises:
            ValueError: an output was not computed while recording.
        """
        wanted = self._outputs(outputs)
        given = None if inputs is None else [token_of(x) for x in inputs]
        steps = self.needed(wanted, stop=set(given or ()))
        memo: dict[Token, Variable] = {}
        for token, x in zip(given or (), inputs or (), strict=True):
            memo[token] = _variable(x)
        used = dict.fromkeys(t for step in steps for t in step.inputs if not isinstance(t, np.ndarray))
        roots = [t for t in used if t in self.leaves and t not in memo]
        for token in roots:
            leaf = self.leaves[token]
            memo[token] = _variable(leaf) if given is None else constant(leaf._array(), leaf.name)
        variables = [memo[t] for t in (roots if given is None else given)]
        values = (
            [self.leaves[t]._array() for t in roots] if given is None else [x._array() for x in inputs or ()]
        )
        build(steps, memo)
        return RecordedGraph(variables, [memo[t] for t in wanted], values)

    def _outputs(self, outputs: Sequence[Tensor] | Tensor | None) -> list[Token]:
        if outputs is None:
            used = {t for step in self.steps for t in step.inputs if not isinstance(t, np.ndarray)}
            return [t for step in self.steps for t in step.outputs if t not in used]
        wanted = [token_of(x) for x in ([outputs] if isinstance(outputs, Tensor) else outputs)]
        for position, token in enumerate(wanted):
            if token not in self._made:
                raise ValueError(f"output {position} of the graph was not computed while recording")
        return wanted

    def __repr__(self) -> str:
        return f"<recording of {len(self.steps)} operations in {self.env!r}>"


def handle(x: Tensor) -> Tensor:
    """A handle that keeps the value when x is assigned to, but not what x was indexed from."""
    other = _bare(x)
    other.name = x.name
    return other


def _variable(x: Tensor) -> Variable:
    return x._kind.type(x._kind.env._queue.ones(x)).make_variable(x.name)


def build(
    steps: Sequence[Step], memo: dict[Token, Variable], numbers: dict[int, Variable] | None = None
) -> None:
    """Add the results of steps to ``memo``, the variables by token.

    Args:
        steps: the steps.
        memo: the variables of what they read.
        numbers: variables in the place of numbers, by the `id` of their arrays; by default these are
        constants.
    """
    for step in steps:
        inputs = [
            memo[t]
            if not isinstance(t, np.ndarray)
            else numbers[id(t)]
            if numbers is not None
            else constant(t)
            for t in step.inputs
        ]
        results = apply(step.executable, inputs)
        for node in toposort(results, blockers=set(inputs)):
            node.location = node.location or step.location
        memo.update(zip(step.outputs, results, strict=True))


def apply(executable: Executable, inputs: Sequence[Variable]) -> list[Variable]:
    """The results of an executable's graph on other inputs."""
    memo: dict[Variable, Variable] = {
        old: old.type.filter_variable(new) for old, new in zip(executable.inputs, inputs, strict=True)
    }
    return rebuild(executable.outputs, memo, copy_nodes=False, strict=False)


_recordings: ContextVar[tuple[Recording, ...]] = ContextVar("graphc_immediate_recordings", default=())


class Recorders:
    """The recordings that are going on in an environment.

    Attributes:
        count: how many there are in all threads. While there are any, calls do not go straight to
        executables.
    """

    def __init__(self, cache: ExecutableCache) -> None:
        self.count = 0
        self._cache = cache
        self._for_all: Recording | None = None
        self._last: Recording | None = None

    def start_for_all(self, recording: Recording) -> None:
        """Record all threads from now on."""
        self._for_all = recording
        self.count += 1

    def start(self, recording: Recording) -> None:
        """Record this thread."""
        with self._cache.lock:
            self.count += 1
            self._cache.disconnect()
        _recordings.set((*_recordings.get(), recording))

    def stop(self, recording: Recording, keep: bool = True) -> None:
        """End a recording; ``keep`` it for `latest`."""
        with self._cache.lock:
            self.count -= 1
        _recordings.set(tuple(each for each in _recordings.get() if each is not recording))
        if keep:
            self._last = recording

    def add(self, executable: Executable, operands: Sequence[Operand], tensors: Sequence[Tensor]) -> None:
        """Tell the recordings of this thread what ran."""
        if self._for_all is not None:
            with self._cache.lock:
                self._for_all.add(executable, operands, tensors)
        for each in _recordings.get():
            if each.env._recorders is self:
                each.add(executable, operands, tensors)

    def latest(self) -> Recording | None:
        """The recording that is going on, or the last one that ended."""
        mine = [each for each in _recordings.get() if each.env._recorders is self]
        return mine[-1] if mine else self._for_all or self._last
