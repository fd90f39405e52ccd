# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""``map_batches``: a function on each of many batches, or on the blocks of a Dask array."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from typing import Any

import numpy as np

from graphc_runtime.distributed.engines import Progress, engine_of
from graphc_runtime.distributed.shipping import Shipped


def map_batches(
    fn: Callable[..., Any], batches: Any, *, on: Any = None, progress: bool | Progress = False
) -> Any:
    """Calls a function on each batch.

    Args:
        fn: a compiled function or one of an artifact, without updates.
        batches: arrays, or tuples of arrays where the function has several inputs. Futures of Dask and Ray's
            object references stand for what they will be. Or a Dask array, of which each block of rows is a
            batch: the function gives an array with a row for each.
        on: where to run, see `graphc_runtime.distributed`. A Dask array stays lazy, and knows itself.
        progress: whether lines on stderr say how many batches are done; or a function ``(done, total)``.

    Returns:
        A list with the results for each batch, in their order; of a Dask array, a Dask array.

    Raises:
        TypeError: the function has updates, or is not one of one array to one array as Dask arrays need.

    Examples:
        >>> x = pt.vector("x")
        >>> f = graphc.function([x], x.sum(), mode="fast_run")
        >>> [float(v) for v in graphc.distributed.map_batches(f, [[1.0, 2.0], [3.0]])]
        [3.0, 3.0]
    """
    shipped = Shipped(fn)
    shipped.require_fixed("map_batches")
    if _is_dask_array(batches):
        return _blocks(fn, shipped, batches)
    engine = engine_of(on)
    code = engine.put(shipped)
    handles = [engine.submit(_call, code, *_tuple(batch)) for batch in _listed(batches)]
    if progress:
        engine.watch(handles, progress, shipped.name)
    return engine.results(handles)


def _listed(batches: Iterable[Any]) -> list[Any]:
    if isinstance(batches, np.ndarray):
        raise TypeError(
            "batches must be a list of arrays, not one: np.array_split(x, n) makes n batches of it"
        )
    return list(batches)


def _tuple(batch: Sequence[np.ndarray]) -> tuple[np.ndarray, ...]:
    return batch if isinstance(batch, tuple) else (batch,)


def _call(code: Shipped, *arrays: Any) -> Any:
    return code(*arrays)


def _is_dask_array(value: object) -> bool:
    return type(value).__module__.startswith("dask.array") and hasattr(value, "map_blocks")


def _blocks(fn: object, shipped: Shipped, x: Any) -> Any:
    """A Dask array of results."""
    import dask

    outputs = getattr(fn, "outputs", None)
    if outputs is None or len(outputs) != 1:
        raise TypeError(f"of a Dask array, map_batches takes a compiled function with one result, not {fn!r}")
    spec = getattr(outputs[0], "type", outputs[0])
    shape = tuple(spec.shape)
    if not shape:
        raise TypeError(f"{shipped.name} has one number for each block; it must have a row for each row")
    if any(len(sizes) > 1 for sizes in x.chunks[1:]):
        raise ValueError(f"blocks must have whole rows, got chunks {x.chunks}: rechunk({{1: -1}}) joins them")
    chunks = (x.chunks[0], *((float("nan") if size is None else size,) for size in shape[1:]))
    return x.map_blocks(
        _block,
        code=dask.delayed(shipped, pure=False),
        dtype=np.dtype(spec.dtype),
        chunks=chunks,
        drop_axis=list(range(len(shape), x.ndim)),
        new_axis=list(range(x.ndim, len(shape))) or None,
        meta=np.empty((0,) * len(shape), spec.dtype),
    )


def _block(block: np.ndarray, code: Shipped) -> np.ndarray:
    result = code(block)
    result = result[0] if isinstance(result, list | tuple) else result
    if len(result) != len(block):
        raise ValueError(
            f"{code.name} has {len(result)} rows for a block of {len(block)}: map_batches of a Dask array "
            "needs a row for each"
        )
    return np.asarray(result)
