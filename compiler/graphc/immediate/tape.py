# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""``Tape``: gradients of what ran."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, TypeAlias

import numpy as np

import graphc.tensor as pt
from graphc.function.io import OutputForm
from graphc.gradient import grad
from graphc.graph.basic import Variable
from graphc.graph.pytree import flatten
from graphc.immediate.arguments import Weak
from graphc.immediate.executable import Executable, Owner
from graphc.immediate.record import Recording, Root, Step, Token, build, handle, token_of
from graphc.immediate.tensor import Tensor

if TYPE_CHECKING:
    from graphc.graph.tensor import TensorLike
    from graphc.immediate.arguments import Operand

# Where a value comes from: of the roots, or of a step and its results. A step is its executable and places.
Place: TypeAlias = tuple[int, ...]
Line: TypeAlias = tuple[int | Place, ...]


class Tape(Recording):
    """A recording that can be differentiated.

    ``with env.tape() as t: loss = ...``, then ``t.gradient(loss, [w, b])``. What ran is recorded as a graph;
    its gradient is a graph, too, that is compiled once for each structure, and computes again what it needs
    of the operations that ran. A gradient taken inside another tape is recorded there, which gives higher
    derivatives.

    Args:
        env: the environment.
        persistent: several gradients may be taken; otherwise the first one ends the recording's life.
        watch_all: record every operation; otherwise those only that depend on a tensor given to `watch`.

    Examples:
        >>> env = graphc.immediate.Environment()
        >>> x = env.as_tensor([1.0, 3.0])
        >>> with graphc.immediate.Tape(env) as tape:
        ...     y = (x**2).sum()
        >>> np.asarray(tape.gradient(y, x))
        array([2., 6.])
    """

    def __init__(self, env: Owner, persistent: bool = False, watch_all: bool = True) -> None:
        super().__init__(env)
        self.persistent = persistent
        self.watch_all = watch_all
        self._watched: set[Token] = set()
        self._spent = False

    def __exit__(self, *exception: object) -> None:
        self.env._recorders.stop(self, keep=False)

    def watch(self, *tensors: Tensor) -> None:
        """Let gradients with respect to these tensors be taken, even where nothing uses them yet."""
        for x in tensors:
            if not isinstance(x, Tensor):
                raise TypeError(f"a tape watches tensors, got {x!r:.60} of type {type(x).__name__}")
            self.env._check_owner(x)
            token = token_of(x)
            self._watched.add(token)
            if token not in self._made:
                self.leaves.setdefault(token, handle(x))

    def add(self, executable: Executable, operands: Sequence[Operand], tensors: Sequence[Tensor]) -> None:
        """Note an operation, if it depends on something watched."""
        if not self.watch_all:
            tokens = [token_of(x) for x in operands if not isinstance(x, Weak)]
            if self._watched.isdisjoint(tokens):
                return
            self._watched.update(map(token_of, tensors))
        super().add(executable, operands, tensors)

    def stop_recording(self) -> _Paused:
        """A context manager inside which the tape does not record."""
        return _Paused(self)

    def gradient(
        self,
        target: Tensor,
        sources: Any,
        output_gradients: Tensor | TensorLike | None = None,
        disconnected_inputs: str = "raise",
    ) -> Any:
        """The gradient of a value.

        Args:
            target: what to differentiate; of a target that is no scalar, the sum is.
            sources: a tensor, or a list, tuple or dict of them; the result has the same form.
            output_gradients: weights of the target's elements, of its shape; ones by default.
            disconnected_inputs: ``"raise"``, ``"warn"`` or ``"ignore"``: what to do about sources that the
                target does not depend on; with the last two they have the gradient 0.

        Returns:
            Tensors.

        Raises:
            ValueError: the tape was used up, or the target was not computed while it recorded.
            DisconnectedInputError: the target does not depend on a source.
        """
        if self._spent:
            raise ValueError(
                "this tape was used for a gradient already; make it with env.tape(persistent=True) to take "
                "several"
            )
        listed, form = flatten(sources)
        for x in (target, *(listed if sources is not None else [None])):
            if not isinstance(x, Tensor):
                raise TypeError(f"gradients are of tensors with respect to tensors, got {x!r:.60}")
            self.env._check_owner(x)
        token = token_of(target)
        if not self.knows(token):
            raise ValueError(
                "the target was not computed while the tape recorded; compute it inside `with tape:`"
            )
        seed = None if output_gradients is None else self.env.as_tensor(output_gradients)
        results = self._differentiate(target, listed, seed, disconnected_inputs)
        if not self.persistent:
            self._spent = True
            self.steps, self.leaves, self._made = [], {}, {}
        return form.build(results)

    def _differentiate(
        self, target: Tensor, sources: list[Tensor], seed: Tensor | None, disconnected: str
    ) -> list[Tensor]:
        steps = self.needed([token_of(target)])
        structure, roots, numbers = _structure(steps)
        for x in (target, *sources):
            t = token_of(x)
            if t not in numbers:
                numbers[t] = (len(roots),)
                roots.append(t)
                self.leaves.setdefault(t, handle(x))
        operands = [self._operand(t) for t in roots]
        wanted = [numbers[token_of(x)] for x in (target, *sources)]
        places = [(x._kind, self.env._queue.ones(x)) for x in operands]
        key = ("gradient", tuple(structure), tuple(places), tuple(wanted), seed is not None, disconnected)
        operands += [] if seed is None else [seed]
        executable = self.env._cache.find(key)
        if executable is None:
            executable = self._build(steps, roots, operands, target, sources, seed, disconnected)
            executable = self.env._cache.add(key, executable)
        return self.env._run(executable, operands)

    def _operand(self, t: Root) -> Tensor:
        return self.env.numpy_to_tensor(t, copy=False) if isinstance(t, np.ndarray) else self.leaves[t]

    def _build(
        self,
        steps: list[Step],
        roots: list[Root],
        operands: list[Tensor],
        target: Tensor,
        sources: list[Tensor],
        seed: Tensor | None,
        disconnected: str,
    ) -> Executable:
        """The executable of the gradient."""
        env = self.env
        inputs = [x._kind.type(env._queue.ones(x)).make_variable(x.name) for x in operands]
        numbers = {id(t): v for t, v in zip(roots, inputs, strict=False) if isinstance(t, np.ndarray)}
        memo: dict[Token, Variable] = {
            t: v for t, v in zip(roots, inputs, strict=False) if not isinstance(t, np.ndarray)
        }
        build(steps, memo, numbers)
        cost = memo[token_of(target)]
        known = {cost: inputs[-1]} if seed is not None else None
        if known is None and cost.type.ndim:
            cost = pt.sum(cost)
        wrt = [memo[token_of(x)] for x in sources]
        gradients = grad(
            cost if known is None else None, wrt, known_grads=known, disconnected_inputs=disconnected
        )
        form = OutputForm(list(gradients))
        kinds = [env._kind(v.type.dtype, v.type.ndim) for v in form.variables]
        return Executable("gradient", inputs, form, kinds, place=env._place)


class _Paused:
    def __init__(self, tape: Tape) -> None:
        self._tape = tape

    def __enter__(self) -> None:
        self._tape.env._recorders.stop(self._tape, keep=False)

    def __exit__(self, *exception: object) -> None:
        self._tape.env._recorders.start(self._tape)


def _structure(steps: list[Step]) -> tuple[list[Line], list[Root], dict[Token, Place]]:
    """Structure of steps and the values between them; the tokens and numbers they start from; and the places
    of all
    tokens: ``(i,)`` for root i, ``(i, j)`` for result j of step i.
    """
    places: dict[Token, Place] = {}
    roots: list[Root] = []
    structure: list[Line] = []
    for position, step in enumerate(steps):
        line: list[int | Place] = [step.executable.serial]
        for t in step.inputs:
            if isinstance(t, np.ndarray):
                line.append((len(roots),))
                roots.append(t)
                continue
            if t not in places:
                places[t] = (len(roots),)
                roots.append(t)
            line.append(places[t])
        for i, t in enumerate(step.outputs):
            places[t] = (position, i)
        structure.append(tuple(line))
    return structure, roots, places
