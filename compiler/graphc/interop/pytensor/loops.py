# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""``ScalarLoop``: PyTensor's loops for each element, inside elementwise ops."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

import graphc
import graphc.tensor as pt
from graphc.interop.pytensor.convert import Converter, Values

if TYPE_CHECKING:
    from pytensor.graph.op import Op


def run_elements(op: Op, inputs: Values, c: Converter) -> Values:
    """All elements at once: an element whose loop has ended keeps its values.

    Args:
        op: a ``ScalarLoop``: iterations, states and constants in, last states out, and for a loop with a
            condition whether it ended by that.
        inputs: tensors of equal rank that broadcast.
        c: for the inner graph.
    """
    steps, *rest = inputs
    n_states = op.nout - bool(op.is_while)
    steps, *rest = pt.broadcast_arrays(pt.cast(steps, "int64"), *rest)
    states, constants = rest[:n_states], rest[n_states:]
    # PyTensor says that a loop without an iteration has ended.
    ended = pt.ge(0, steps) if op.is_while else pt.zeros_like(steps, dtype="bool")

    def body(carried: Any) -> Any:
        i, ended, *states = carried
        outputs = c.inner(op.fgraph.inputs, op.fgraph.outputs, [*states, *constants])
        running = pt.lt(i, steps) & ~ended
        new = [
            pt.cast(pt.switch(running, new, old), old.type.dtype)
            for new, old in zip(outputs[:n_states], states, strict=True)
        ]
        if op.is_while:
            ended = pt.switch(running, pt.cast(outputs[n_states], "bool"), ended)
        return (i + 1, ended, *new)

    def unfinished(carried: Any) -> Any:
        return pt.any(pt.lt(carried[0], steps) & ~carried[1])

    _, ended, *last = graphc.while_loop(unfinished, body, (pt.constant(np.int64(0)), ended, *states))
    return [*last, ended] if op.is_while else last
