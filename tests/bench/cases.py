# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""The workloads. Each is written once, against a namespace `m` that every library fills with its own
functions.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np


@dataclass(frozen=True)
class Case:
    """One line of the benchmark.

    Attributes:
        name: identifies the line in the JSON file.
        title: what the table says.
        unit: `ns`, `us` or `ms`; times are kept in seconds.
        inputs: makes the NumPy arguments.
        expression: the computation, given the namespace and one variable an argument.
        goal: the largest time in seconds; None asks to be as fast as the better compiler.
        out: whether the result is written into an array of the caller.
        lead: how many times faster than a peer, by peer, is asked for.
        series: arguments whose length the symbolic libraries do not know; they know every other size. None:
            they know none.
        wrt: arguments by which the result, a scalar, is differentiated; the result is then the derivatives.
        value: the result comes before its derivatives.
        eager: `"eager"`: operations run one by one, on arrays of the library; `"lazy"`: the library may queue
            them until the result is needed; empty for compiled functions.
        memory_lead: how many times less memory than a peer, by peer, a call may take; such a line stands in
            the table of models.
        form: the function is made by this entry of `lazy_lines`; the expression is only the reference.
        draws: whether the result is random, so that only its mean and deviation are compared.
        budget: what graphc's function has as `memory_budget`; empty for none.
        moved: bytes that the call must read and write; it may take 1.5 times as long as NumPy's copy of them.
    """

    name: str
    title: str
    unit: str
    inputs: Callable[[], tuple[Any, ...]]
    expression: Callable[..., Any]
    goal: float | None = None
    out: bool = False
    lead: tuple[tuple[str, float], ...] = ()
    series: tuple[int, ...] | None = None
    wrt: tuple[int, ...] = ()
    value: bool = False
    eager: str = ""
    memory_lead: tuple[tuple[str, float], ...] = ()
    draws: bool = False
    form: str = ""
    budget: str = ""
    moved: int = 0

    @property
    def section(self) -> str:
        """The table that the line is in: "models", "loops" (both have memory) or "other"."""
        if self.memory_lead:
            return "models"
        return "other" if self.series is None else "loops"

    def shape(self, position: int, value: Any) -> tuple[int | None, ...]:
        """What is known of the shape of an argument."""
        if self.series is None:
            return (None,) * value.ndim
        return (None, *value.shape[1:]) if position in self.series else value.shape


def _normal(*shape: int) -> Any:
    return np.random.default_rng(len(shape)).standard_normal(shape)


def _pair() -> tuple[Any, Any]:
    rng = np.random.default_rng(7)
    return rng.standard_normal(1_000_000), rng.standard_normal(1_000_000)


# Two cores are to beat the faster compiler by this factor on work over large arrays.
_LEAD = (("pytensor", 1.3), ("jax", 1.3), ("torch", 1.3))

CASES = [
    Case(
        "call",
        "call overhead: `x + 1`, 3 elements",
        "ns",
        lambda: (np.arange(3.0),),
        lambda m, x: x + 1,
        goal=100e-9,
        lead=(("pytensor", 15.0), ("jax", 50.0)),
    ),
    Case(
        "call_out",
        "the same with `out=`",
        "ns",
        lambda: (np.arange(3.0),),
        lambda m, x: x + 1,
        goal=40e-9,
        out=True,
    ),
    Case(
        "exp",
        "`exp(x) * y + 1`, 1e6 float64",
        "us",
        _pair,
        lambda m, x, y: m.exp(x) * y + 1,
        lead=_LEAD,
        moved=24_000_000,
    ),
    Case(
        "transcendental",
        "`log1p(exp(-abs(x))) + tanh(y) * sigmoid(x)`, 1e6 float64",
        "us",
        _pair,
        lambda m, x, y: m.log1p(m.exp(-m.abs(x))) + m.tanh(y) * m.sigmoid(x),
        lead=_LEAD,
    ),
    Case(
        "square_distance",
        "`sum((x - y)**2)`, 1e6 float64",
        "us",
        _pair,
        lambda m, x, y: ((x - y) ** 2).sum(),
        lead=_LEAD,
        moved=16_000_000,
    ),
    Case(
        "softmax",
        "softmax of the rows of 1000 x 1000",
        "us",
        lambda: (_normal(1000, 1000),),
        lambda m, x: m.softmax(x),
        lead=_LEAD,
        moved=16_000_000,
    ),
    Case(
        "matmul",
        "matrix product, 512 x 512",
        "us",
        lambda: (_normal(512, 512), _normal(512, 512) / 512),
        lambda m, x, y: m.dot(x, y),
        lead=_LEAD,
    ),
]


def deep_graph(m: Any, x: Any) -> Any:
    """300 elementwise operations and a sum: the graph whose compilation is timed."""
    z = x
    for i in range(100):
        z = m.tanh(z * (1.0 + i / 100) + x)
    return z.sum()
