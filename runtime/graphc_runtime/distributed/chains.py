# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""``sample_chains``: many independent runs of a function with random draws."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

import numpy as np

from graphc_runtime.distributed.engines import Progress, engine_of
from graphc_runtime.distributed.shipping import Shipped, reseed, set_values


def sample_chains(
    step: Callable[..., object],
    n: int,
    *inputs: object,
    draws: int = 1,
    discard: int = 0,
    seed: int | Sequence[int] | np.random.SeedSequence | None = None,
    start: Sequence[Mapping[str, object]] | None = None,
    on: object = None,
    progress: bool | Progress = False,
) -> Any:
    """Runs chains, each with values and random streams of its own.

    Chain ``i`` has generators made from child ``i`` of the seed, one for each that ``step`` keeps. So
    its numbers depend neither on the other chains nor on where and when it runs.

    Args:
        step: a compiled function or one of an artifact. It keeps its generators, and what else goes on from
            call to call, in shared variables with updates.
        n: number of chains.
        inputs: arguments of each call.
        draws: calls of each chain whose results are kept.
        discard: calls before these.
        seed: as for ``numpy.random.SeedSequence``; None takes entropy from the system.
        start: for each chain, values of shared variables by name to begin with.
        on: where to run, see `graphc_runtime.distributed`.
        progress: whether lines on stderr say how many chains are done; or a function ``(done, total)``.

    Returns:
        What ``step`` returns, with two more leading axes for each array: chain and draw.

    Raises:
        TypeError: ``step`` keeps no generator, or has no updates.
        ValueError: ``start`` has not one item for each chain.

    Examples:
        >>> at = graphc.shared(np.zeros(2))
        >>> rng = graphc.shared(np.random.default_rng(0))
        >>> next_rng, noise = rng.normal(size=2)
        >>> step = graphc.function([], at, updates={at: 0.9 * at + noise, rng: next_rng})
        >>> graphc.distributed.sample_chains(step, 3, draws=4, seed=1).shape
        (3, 4, 2)
    """
    shipped = Shipped(step)
    if not shipped.updates:
        raise TypeError(
            f"sample_chains needs a function with updates: {shipped.name} gives the same each time"
        )
    if n < 1 or draws < 1 or discard < 0:
        raise ValueError(
            f"expected n and draws of 1 or more, discard of 0 or more; got {n}, {draws}, {discard}"
        )
    if start is not None and len(start) != n:
        raise ValueError(f"start has values for {len(start)} chains, of {n}")
    root = seed if isinstance(seed, np.random.SeedSequence) else np.random.SeedSequence(seed)
    engine = engine_of(on)
    code = engine.put(shipped)
    handles = [
        engine.submit(_chain, code, child, draws, discard, dict(start[i]) if start else {}, *inputs)
        for i, child in enumerate(root.spawn(n))
    ]
    if progress:
        engine.watch(handles, progress, shipped.name)
    return _stacked(engine.results(handles))


def _chain(
    code: Shipped,
    seed: np.random.SeedSequence,
    draws: int,
    discard: int,
    start: Mapping[str, object],
    *inputs: object,
) -> Any:
    step = code.instance()
    set_values(step, start)
    if not reseed(step, seed):
        raise TypeError(f"sample_chains needs a function that keeps a generator, and {code.name} has none")
    for _ in range(discard):
        step(*inputs)
    return _stacked([step(*inputs) for _ in range(draws)])


def _stacked(results: Sequence[Any]) -> Any:
    """Results of one form, as one of arrays with an axis more."""
    first = results[0]
    if isinstance(first, dict):
        return {key: _stacked([result[key] for result in results]) for key in first}
    if isinstance(first, list | tuple):
        return type(first)(_stacked(items) for items in zip(*results, strict=True))
    return np.stack([np.asarray(result) for result in results])
