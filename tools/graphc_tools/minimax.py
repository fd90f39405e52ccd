# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Derive the polynomial coefficients of `graphc.lowering.math.coefficients`.

Run `python -m graphc_tools.minimax` (needs mpmath) to print the tables. Each polynomial minimises the error
of the final result relative to its magnitude. Coefficients are then rounded to the working precision one at
a time, lowest order first, and the higher ones fitted again to absorb the rounding.
"""

from __future__ import annotations

import argparse
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np


@dataclass(frozen=True)
class Target:
    """One polynomial `P(t)` of `terms` coefficients for `function` on `[low, high]`.

    `weight(t)` is the factor that turns an error of `P` into a relative error of the result it is used in.
    """

    name: str
    function: Callable[[Any], Any]
    weight: Callable[[Any], Any]
    low: float
    high: float
    terms: dict[str, int]


def least_squares(
    function: Callable[[Any], Any], weight: Callable[[Any], Any], low: Any, high: Any, powers: list[int]
) -> tuple[list[Any], Any]:
    """Coefficients for the given powers, and the largest weighted error on `[low, high]`.

    Weighted least squares on Chebyshev nodes is within a fraction of a bit of minimax, and unlike the
    exchange algorithm it does not mind that all remaining powers vanish at 0.
    """
    from mpmath import mp, mpf

    count = 8 * (len(powers) + 1)
    nodes = [
        (low + high) / 2 - (high - low) / 2 * mp.cos(mp.pi * (i + mpf("0.5")) / count) for i in range(count)
    ]
    matrix = mp.matrix(count, len(powers))
    right = mp.matrix(count, 1)
    for i, t in enumerate(nodes):
        for j, power in enumerate(powers):
            matrix[i, j] = weight(t) * t**power
        right[i] = weight(t) * function(t)
    solution = mp.lu_solve(matrix.T * matrix, matrix.T * right)
    errors = matrix * solution - right
    return list(solution), max(abs(error) for error in errors)


def fit(target: Target, dtype: str) -> tuple[list[float], Any]:
    """Coefficients rounded to `dtype`, lowest order first, and the largest relative error in them."""
    from mpmath import mpf

    low, high = mpf(target.low), mpf(target.high)
    terms = target.terms[dtype]
    done: list[float] = []
    worst = mpf(0)
    while len(done) < terms:
        fixed = list(done)

        def rest(t: Any, fixed: list[float] = fixed) -> Any:
            return target.function(t) - sum(mpf(c) * t**i for i, c in enumerate(fixed))

        coefficients, worst = least_squares(rest, target.weight, low, high, list(range(len(done), terms)))
        done.append(float(np.dtype(dtype).type(coefficients[0])))
    return done, worst


def targets() -> list[Target]:
    """Every polynomial of the expansions."""
    from mpmath import mp, mpf

    def exp_tail(r: Any) -> Any:
        return (mp.expm1(r) - r) / r**2 if r else mpf("0.5")

    def cosh_tail(z: object) -> Any:
        return (mp.cosh(mp.sqrt(z)) - 1) / z if z else mpf("0.5")

    def sinh_tail(z: object) -> Any:
        return (mp.sinh(mp.sqrt(z)) / mp.sqrt(z) - 1) / z if z else mpf(1) / 6

    def atanh_tail(z: object) -> Any:
        return (2 * mp.atanh(mp.sqrt(z)) / mp.sqrt(z) - 2) / z if z else mpf(2) / 3

    def atan_tail(z: object) -> Any:
        return (mp.atan(mp.sqrt(z)) / mp.sqrt(z) - 1) / z if z else -mpf(1) / 3

    def asin_tail(z: object) -> Any:
        return (mp.asin(mp.sqrt(z)) / mp.sqrt(z) - 1) / z if z else mpf(1) / 6

    def erf_tail(a: object) -> Any:
        return (-mp.log(mp.erfc(a)) / a - 2 / mp.sqrt(mp.pi)) / a

    half_ln2, edge = 0.34658, 0.1716
    return [
        Target(
            "EXP",
            exp_tail,
            lambda r: abs(r) + mpf("1e-5"),
            -half_ln2,
            half_ln2,
            {"float64": 10, "float32": 5},
        ),
        Target(
            "EXPM1",
            exp_tail,
            lambda r: abs(r) + mpf("1e-5"),
            -half_ln2,
            half_ln2,
            {"float64": 11, "float32": 6},
        ),
        Target("COSH", cosh_tail, lambda z: z, 1e-12, half_ln2**2, {"float64": 6, "float32": 3}),
        Target("SINH", sinh_tail, lambda z: z, 1e-12, half_ln2**2, {"float64": 6, "float32": 3}),
        Target("LOG", atanh_tail, lambda z: z, 1e-12, edge**2 * 1.001, {"float64": 7, "float32": 3}),
        Target("ATAN", atan_tail, lambda z: z, 1e-12, edge * 1.0002, {"float64": 11, "float32": 5}),
        Target("ERF", erf_tail, lambda a: a**2 * mp.erfc(a) / mp.erf(a), 1e-9, 5.95, {"float64": 24}),
        Target("ERF", erf_tail, lambda a: a**2 * mp.erfc(a) / mp.erf(a), 1e-9, 4.0, {"float32": 9}),
        Target("ASIN", asin_tail, lambda z: z, 1e-12, 0.25, {"float64": 12, "float32": 5}),
    ]


def main() -> None:
    """Print every table as Python source."""
    from mpmath import mp

    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--only", default="", help="names of the tables, separated by commas")
    wanted = parser.parse_args().only
    mp.dps = 50
    wanted_targets = [target for target in targets() if not wanted or target.name in wanted.split(",")]
    for name in dict.fromkeys(target.name for target in wanted_targets):
        print(f"{name} = {{")
        for target in wanted_targets:
            if target.name == name:
                _print(target)
        print("}\n")


def _print(target: Target) -> None:
    from mpmath import mp

    for dtype in target.terms:
        coefficients, worst = fit(target, dtype)
        print(f"    # largest relative error 2^{float(mp.log(worst, 2)):.1f}")
        print(f'    "f{dtype[5:]}": (')
        for first in range(0, len(coefficients), 4):
            print(f"        *{tuple(coefficients[first : first + 4])!r},")
        print("    ),")


if __name__ == "__main__":
    main()
