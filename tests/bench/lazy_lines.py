# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""The workloads of the lazy runtime: conditionals, graphs that run partly in Python, updates.

They are functions rather than expressions: `FORMS` has how each library makes them.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
from cases import Case

NESTED = (4, 8, 16, 32)
_PYTHON_OPS = 5


def nested(ifelse: Callable[..., Any], total: Callable[..., Any], x: Any, depth: int) -> Any:
    """Conditionals inside of each other; each level does some work on one side and none on the other."""
    inner = x
    for level in range(depth):
        inner = ifelse(total(x) > -1.0 - level, inner * 1.01 + 0.5, x)
    return inner


def _symbolic_nested(package: Any, tensor: Any, function: Any, depth: int) -> Any:
    from importlib import import_module

    ifelse = import_module(f"{package.__name__}.ifelse").ifelse
    x = tensor.vector("x", dtype="float64")
    return function([x], nested(ifelse, lambda v: v.sum(), x, depth))


def _symbolic_mixed(package: Any, tensor: Any, function: Any) -> Any:
    from importlib import import_module

    as_op = import_module(f"{package.__name__}.compile.ops").as_op

    @as_op(itypes=[tensor.dvector], otypes=[tensor.dvector])
    def in_python(v: Any) -> Any:
        return v + 1.0

    x = tensor.dvector("x")
    y = x
    for _ in range(_PYTHON_OPS):
        y = in_python(y * 2.0 + 1.0)
    return function([x], y)


def _symbolic_updates(package: Any, tensor: Any, function: Any) -> Any:
    x = tensor.dvector("x")
    total = package.shared(np.zeros(3), name="total")
    return function([x], x + 1, updates=[(total, total + x)])


def _jax_nested(jax: Any, depth: int) -> Any:
    def ifelse(condition: Any, then: Any, other: Any) -> Any:
        return jax.lax.cond(condition, lambda: then, lambda: other)

    return jax.jit(lambda x: nested(ifelse, jax.numpy.sum, x, depth))


def _jax_mixed(jax: Any) -> Any:
    def in_python(v: Any) -> Any:
        return jax.pure_callback(lambda a: np.asarray(a) + 1.0, jax.ShapeDtypeStruct(v.shape, v.dtype), v)

    def f(x: Any) -> Any:
        for _ in range(_PYTHON_OPS):
            x = in_python(x * 2.0 + 1.0)
        return x

    return jax.jit(f)


SYMBOLIC: dict[str, Callable[..., Any]] = {
    **{f"nested_{n}": lambda p, t, f, n=n: _symbolic_nested(p, t, f, n) for n in NESTED},
    "mixed": _symbolic_mixed,
    "updates": _symbolic_updates,
}
JAX: dict[str, Callable[[Any], Any]] = {
    **{f"nested_{n}": lambda jax, n=n: _jax_nested(jax, n) for n in NESTED},
    "mixed": _jax_mixed,
}


def _reference_nested(m: Any, x: Any, depth: int) -> Any:
    return nested(lambda condition, then, other: then if condition else other, np.sum, x, depth)


def _reference_mixed(m: Any, x: Any) -> Any:
    for _ in range(_PYTHON_OPS):
        x = (x * 2.0 + 1.0) + 1.0
    return x


CASES = [
    *(
        Case(
            f"nested_{n}",
            f"{n} nested conditionals, 10 float64",
            "ns",
            lambda: (np.linspace(0.0, 1.0, 10),),
            lambda m, x, n=n: _reference_nested(m, x, n),
            lead=(("pytensor", 1.0), ("jax", 1.0)),
            form=f"nested_{n}",
        )
        for n in NESTED
    ),
    Case(
        "mixed",
        "10 thunks: 5 native segments and 5 Python ops, 3 float64",
        "us",
        lambda: (np.arange(3.0),),
        _reference_mixed,
        goal=10e-6,
        form="mixed",
    ),
    Case(
        "updates",
        "`x + 1` that also adds x to a shared variable, 3 float64",
        "ns",
        lambda: (np.arange(3.0),),
        lambda m, x: x + 1,
        lead=(("pytensor", 1.0),),
        form="updates",
    ),
]
