# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Functions that are not within 4 units in the last place everywhere, and why; see docs/math.md."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True)
class Exceeds:
    """Largest errors found, with a margin, and the reason.

    Attributes:
        float64: bound in units in the last place, infinite where values are only absolutely accurate.
        float32: the same.
        why: range and reason, for the documentation.
    """

    float64: float
    float32: float
    why: str


_INF = float("inf")
EXCEPTIONS: dict[str, Exceeds] = {
    "logaddexp": Exceeds(_INF, _INF, "4 units of the larger operand where the result is near 0"),
    "logaddexp2": Exceeds(_INF, _INF, "4 units of the larger operand where the result is near 0"),
    "kl_div": Exceeds(6.0, 4.0, "a product with a logarithm less a difference"),
    "trigamma": Exceeds(8.0, 4.0, "negative x: the square of a sine"),
    "digamma": Exceeds(_INF, _INF, "absolutely accurate next to the zeros for negative x"),
    "erfi": Exceeds(20.0, 4.0, "SciPy's Dawson integral"),
    "dawsn": Exceeds(20.0, 4.0, "SciPy"),
    "i0": Exceeds(_INF, 4.0, "SciPy overflows at 711 instead of 713.9; 4 below"),
    "i1": Exceeds(_INF, 4.0, "SciPy overflows at 711 instead of 713.9; 10 below"),
    "i1e": Exceeds(16.0, 4.0, "SciPy, near 8"),
    "k0": Exceeds(16.0, 4.0, "SciPy"),
    "k0e": Exceeds(16.0, 4.0, "SciPy"),
    "j0": Exceeds(_INF, _INF, "SciPy: absolutely accurate, up to x = 1e6"),
    "j1": Exceeds(_INF, _INF, "SciPy: absolutely accurate, up to x = 1e6"),
    "y0": Exceeds(_INF, _INF, "SciPy: absolutely accurate, up to x = 1e6"),
    "y1": Exceeds(_INF, _INF, "SciPy: absolutely accurate, up to x = 1e6"),
    "jv": Exceeds(_INF, 8.0, "SciPy: absolutely accurate next to zeros"),
    "yv": Exceeds(_INF, 8.0, "SciPy: absolutely accurate next to zeros"),
    "iv": Exceeds(64.0, 4.0, "SciPy"),
    "kv": Exceeds(64.0, 4.0, "SciPy"),
    "expi": Exceeds(_INF, 8.0, "SciPy: absolutely accurate next to the zero at 0.37"),
    "exp1": Exceeds(24.0, 4.0, "SciPy"),
    "spence": Exceeds(_INF, 8.0, "SciPy: absolutely accurate next to 1, 20 elsewhere"),
    "beta": Exceeds(1000.0, 4.0, "SciPy: exponential of logarithms for large operands"),
    "betaln": Exceeds(_INF, 8.0, "SciPy: absolutely accurate, to a unit of the largest term"),
    "poch": Exceeds(1000.0, 4.0, "SciPy"),
    "binom": Exceeds(_INF, 4.0, "SciPy"),
    "gammainc": Exceeds(1000.0, 4.0, "SciPy: grows with a"),
    "gammaincc": Exceeds(1000.0, 4.0, "SciPy: grows with a"),
}


def limit(name: str, dtype: str) -> float:
    """The bound for a function."""
    found = EXCEPTIONS.get(name)
    return 4.0 if found is None else float(getattr(found, dtype))
