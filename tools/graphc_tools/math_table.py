# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Measures the elementary functions: `python -m graphc_tools.math_table` prints the tables of docs/math.md.

Times are nanoseconds per element on one core, best of many, without the cost of the call itself.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from typing import Any

import numpy as np

from graphc.backends.cpu.object import add_vector_variants, is_available, this_machine
from graphc.backends.handoff import to_llvmlite
from graphc.backends.llvm import parsed
from graphc.lowering.math import expansions
from graphc.passes.buffer.expand_math import ExpandMath
from graphc_tools.math_kernel import Kernel, compile_ir, compile_unary, lower, unary

_NUMPY: dict[str, Any] = {
    "acos": np.arccos, "acosh": np.arccosh, "asin": np.arcsin, "asinh": np.arcsinh, "atan": np.arctan,
    "atanh": np.arctanh, "cbrt": np.cbrt, "cos": np.cos, "cosh": np.cosh, "erf": None, "exp": np.exp,
    "exp2": np.exp2, "expm1": np.expm1, "log": np.log, "log10": np.log10, "log1p": np.log1p, "log2": np.log2,
    "sin": np.sin, "sinh": np.sinh, "tan": np.tan, "tanh": np.tanh,
}  # fmt: skip
_DOMAINS = {"log": (0.1, 10), "log2": (0.1, 10), "log10": (0.1, 10), "log1p": (-0.5, 5), "acosh": (1, 10)}
_UNIT = {"asin", "acos", "atanh"}
SIZES = (100_000, 1_000_000)


def main() -> None:
    """Print one Markdown row for each function and dtype."""
    sizes = " | ".join(f"{size:.0e}".replace("+0", "") for size in SIZES)
    print(
        f"| function | dtype | ours {sizes} | libmvec {sizes} | NumPy {sizes} | max ulp | libmvec | NumPy |"
    )
    print("|---|---|" + "--:|" * 9)
    for name in _NUMPY:
        for dtype in ("float64", "float32"):
            cells = [
                [*_speed(kernel, name, dtype), _error(kernel, name, dtype)]
                for kernel in _kernels(name, dtype)
            ]
            times = [f"{cell:.2f}" if cell else "-" for row in cells for cell in row[:2]]
            errors = [f"{row[2]:.2f}" if row[2] else "-" for row in cells]
            print(f"| {name} | {dtype} | {' | '.join([*times, *errors])} |", flush=True)


def _kernels(name: str, dtype: str) -> Iterator[Callable[..., Any] | None]:
    yield compile_unary(name, dtype, ExpandMath()) if f"math.{name}" in expansions() else None
    target = this_machine()
    if is_available(target.triple):
        import llvmlite.binding as llvm

        llvm.load_library_permanently("libmvec.so.1")
        # Upstream lowers expm1 as exp(x) - 1; a log call with the other name keeps the loop the same.
        text = lower(unary("log" if name == "expm1" else name, dtype), ())
        text = text.replace("llvm.log.", "llvm.expm1.") if name == "expm1" else text
        with parsed(to_llvmlite(text)) as module:
            add_vector_variants(module, target.features)
            yield compile_ir(str(module))
    else:
        yield None
    yield _NUMPY[name]


def _speed(kernel: Callable[..., object] | None, name: str, dtype: str) -> tuple[float, ...]:
    if kernel is None:
        return 0.0, 0.0
    low, high = (-1, 1) if name in _UNIT else _DOMAINS.get(name, (-5, 5))
    overhead = _best(kernel, np.empty(0, dtype))
    rng = np.random.default_rng(0)
    times = [_best(kernel, rng.uniform(low, high, size).astype(dtype)) - overhead for size in SIZES]
    return tuple(seconds / size * 1e9 for seconds, size in zip(times, SIZES, strict=True))


def _best(kernel: Callable[..., object], x: np.ndarray) -> float:
    out = np.empty_like(x)
    best, end = float("inf"), time.perf_counter() + 0.05
    while time.perf_counter() < end:
        start = time.perf_counter()
        kernel(x, out=out)
        best = min(best, time.perf_counter() - start)
    return best


def _error(kernel: Callable[..., object] | None, name: str, dtype: str) -> float:
    """Largest error in units in the last place over random encodings and numbers of several scales."""
    if kernel is None or (_NUMPY[name] is None and not isinstance(kernel, Kernel)):
        return 0.0
    rng = np.random.default_rng(1)
    info = np.finfo(dtype)
    parts = [rng.integers(0, 2**info.bits, 300_000, dtype=f"uint{info.bits}").view(dtype)]
    parts += [(rng.standard_normal(150_000) * scale).astype(dtype) for scale in (1e-3, 0.3, 1, 3, 20, 200)]
    parts += [rng.uniform(0.5, 2, 300_000).astype(dtype), rng.uniform(-1, 1, 300_000).astype(dtype)]
    x = np.concatenate(parts)
    with np.errstate(all="ignore"):
        exact = (_NUMPY[name] or erf)(x.astype(np.longdouble))
        got = np.asarray(kernel(x, out=np.empty_like(x)))
        spacing = np.spacing(np.maximum(np.abs(exact.astype(dtype)), info.smallest_normal))
        errors = np.abs(got.astype(np.longdouble) - exact) / spacing
    return float(np.max(errors[np.isfinite(errors)]))


def erf(x: np.ndarray) -> np.ndarray:
    """erf by its series of positive terms (Abramowitz and Stegun 7.1.6), in the precision of x."""
    a = np.minimum(np.abs(x), x.dtype.type(6.5))
    term = a.copy()
    total = a.copy()
    for n in range(1, 180):
        term = term * (2 * a * a / (2 * n + 1))
        total = total + term
    two_over_sqrt_pi = 2 / np.sqrt(np.arctan(x.dtype.type(1)) * 4)
    return np.asarray(np.copysign(two_over_sqrt_pi * np.exp(-a * a) * total, x))


if __name__ == "__main__":
    main()
