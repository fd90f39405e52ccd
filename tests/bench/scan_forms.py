# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""What a loop is in each library: the functions `scan` and `iterate` of the namespaces.

`scan(step, rows, states, outputs=0, kept=True)`: `step` takes a row of each tensor of `rows` and the states;
it returns the new states, then so many outputs. The result is a list: each state after every step (`kept`) or
after the last one, then the stacked outputs. `iterate(step, x, limit)`: `step` takes x and returns the next
one and whether to stop.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

_Step = Callable[..., Any]


def numpy_forms() -> dict[str, Any]:
    """Loops of Python."""

    def scan(step: _Step, rows: list[Any], states: list[Any], outputs: int = 0, kept: bool = True) -> Any:
        count = len(states)
        steps = []
        for row in zip(*rows, strict=True):
            new = step(*row, *states)
            states = new[:count]
            steps.append(new if kept else new[count:])
        stacked = [np.array(column) for column in zip(*steps, strict=True)]
        return stacked if kept else [*states, *stacked]

    def iterate(step: _Step, x: Any, limit: int) -> Any:
        for _ in range(limit):
            x, stop = step(x)
            if stop:
                break
        return x

    return {"scan": scan, "iterate": iterate, "pushes_out": True}


def symbolic_forms(package: Any, until: Any, **options: Any) -> dict[str, Any]:
    """`scan` of graphc and PyTensor.

    Args:
        package: the library.
        until: its class of stop conditions.
        options: further arguments of its `scan`.
    """

    def scan(step: _Step, rows: list[Any], states: list[Any], outputs: int = 0, kept: bool = True) -> Any:
        count = len(states)
        found = package.scan(
            step, sequences=rows, outputs_info=[*states, *[None] * outputs], return_list=True, **options
        )
        return found if kept else [*(trace[-1] for trace in found[:count]), *found[count:]]

    def iterate(step: _Step, x: Any, limit: int) -> Any:
        def body(x: Any) -> Any:
            new, stop = step(x)
            return new, until(stop)

        return package.scan(body, outputs_info=[x], n_steps=limit, return_list=True, **options)[0][-1]

    return {"scan": scan, "iterate": iterate, "pushes_out": True}


def jax_forms() -> dict[str, Any]:
    """`lax.scan` and `lax.while_loop`."""
    from jax import lax

    def scan(step: _Step, rows: list[Any], states: list[Any], outputs: int = 0, kept: bool = True) -> Any:
        count = len(states)

        def body(carry: Any, row: Any) -> Any:
            new = tuple(step(*row, *carry))
            return new[:count], new if kept else new[count:]

        last, stacked = lax.scan(body, tuple(states), tuple(rows))
        return [*stacked] if kept else [*last, *stacked]

    def iterate(step: _Step, x: Any, limit: int) -> Any:
        def body(carry: Any) -> Any:
            return *step(carry[0]), carry[2] + 1

        return lax.while_loop(lambda c: ~c[1] & (c[2] < limit), body, (x, False, 0))[0]

    return {"scan": scan, "iterate": iterate, "pushes_out": False}
