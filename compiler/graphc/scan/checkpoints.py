# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""``scan_checkpoints``: PyTensor's name for a scan that keeps few states for its gradient."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, Any

from graphc.ops.create import arange
from graphc.ops.math import floor_div, minimum
from graphc.ops.sizes import size_of
from graphc.scan.frontend import build_loop

if TYPE_CHECKING:
    from graphc.graph.basic import Variable
    from graphc.graph.tensor.variable import TensorVariable


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
