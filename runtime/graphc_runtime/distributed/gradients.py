# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""``value_and_grad``: sums over partitions of data, added up in a tree that is the same wherever it runs."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from typing import Any

import numpy as np

from graphc_runtime.distributed.engines import Engine, Progress, engine_of, read
from graphc_runtime.distributed.shipping import Shipped


def value_and_grad(
    fn: Callable[..., object],
    partitions: Iterable[object],
    *,
    on: object = None,
    fan_in: int = 8,
    progress: bool | Progress = False,
) -> SumOverPartitions:
    """A function of parameters alone: the sum of a value and its gradient over partitions of the data.

    Args:
        fn: a compiled function or one of an artifact, without updates. It takes parameters, then the arrays
            of a partition; each result is added up. A mean is a sum that was divided afterwards.
        partitions: arrays, or tuples of arrays; or functions without arguments that give one of these, and
            run where the partition is used. Futures of Dask and Ray's references stand for what they will be.
        on: where to run, see `graphc_runtime.distributed`. Dask and Ray get the data once; executors of
            `concurrent.futures` get, or read, them in each call.
        fan_in: how many results a sum has. Sums are ``(a + b) + c``; sums of sums follow until there is one.
        progress: whether lines on stderr say how far a call is; or a function ``(done, total)``.

    Returns:
        ``f(*parameters)``, with results in the form of those of ``fn``. Their bits do not depend on ``on``.

    Raises:
        TypeError: the function has updates.
        ValueError: there are no partitions, or ``fan_in`` is less than 2.

    Examples:
        >>> w, x = pt.scalar("w"), pt.vector("x")
        >>> loss = ((x - w) ** 2).sum()
        >>> fn = graphc.function([w, x], [loss, graphc.grad(loss, w)])
        >>> total = graphc.distributed.value_and_grad(fn, [np.array([1.0, 2.0]), np.array([3.0])])
        >>> [float(each) for each in total(0.0)]
        [14.0, -12.0]
    """
    shipped = Shipped(fn)
    shipped.require_fixed("value_and_grad")
    if fan_in < 2:
        raise ValueError(f"fan_in must be 2 or more, got {fan_in}")
    engine = engine_of(on)
    placed = [engine.place(x if callable(x) or isinstance(x, tuple) else (x,)) for x in partitions]
    if not placed:
        raise ValueError("value_and_grad needs at least one partition")
    return SumOverPartitions(engine, shipped, placed, fan_in, progress)


class SumOverPartitions:
    """Result of `value_and_grad`.

    Attributes:
        n_partitions: of the data.

    Examples:
        >>> x = pt.vector("x")
        >>> fn = graphc.function([x], [x.sum()])
        >>> total = graphc.distributed.value_and_grad(fn, [np.ones(2), np.ones(3)])
        >>> type(total).__name__, total.n_partitions
        ('SumOverPartitions', 2)
    """

    def __init__(
        self, engine: Engine, shipped: Shipped, placed: list[object], fan_in: int, progress: bool | Progress
    ) -> None:
        self._engine, self._code, self._placed = engine, engine.put(shipped), placed
        self._fan_in, self._progress, self._name = fan_in, progress, shipped.name
        self.n_partitions = len(placed)

    def __call__(self, *parameters: Any) -> Any:
        engine = self._engine
        given = engine.put(tuple(np.asarray(value) for value in parameters))
        level = [engine.submit(_part, self._code, given, partition) for partition in self._placed]
        handles = list(level)
        while len(level) > 1:
            groups = [level[i : i + self._fan_in] for i in range(0, len(level), self._fan_in)]
            level = [engine.submit(_sum, *group) if len(group) > 1 else group[0] for group in groups]
            handles += [handle for handle, group in zip(level, groups, strict=True) if len(group) > 1]
        # Only the last one is fetched: the others stay where they were computed.
        if self._progress:
            engine.watch(handles, self._progress, self._name)
        return engine.results(level)[0]


def _part(
    code: Shipped, parameters: tuple[np.ndarray, ...], partition: Sequence[np.ndarray]
) -> list[np.ndarray]:
    return code(*parameters, *read(partition))


def _sum(*results: Any) -> Any:
    """The sum of results of one form, from the left."""
    first = results[0]
    if isinstance(first, dict):
        return {key: _sum(*(result[key] for result in results)) for key in first}
    if isinstance(first, list | tuple):
        return type(first)(_sum(*items) for items in zip(*results, strict=True))
    total = np.add(first, results[1])
    for result in results[2:]:
        total = np.add(total, result)
    return total
