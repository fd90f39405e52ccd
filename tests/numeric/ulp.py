# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Sweeps elementwise functions, compiled in fast_run, against correctly rounded values from mpmath.

    python tests/numeric/ulp.py                       all functions, 2000 points each
    python tests/numeric/ulp.py --only exp,erfc       some functions
    python tests/numeric/ulp.py --points 20000        a longer run
    python tests/numeric/ulp.py --write               also rewrite the table of docs/math.md (`make ulp`)

Points are random encodings (so that all magnitudes, subnormal numbers and both signs occur), numbers of
several scales, neighbours of places where errors are likely, and special values. Where mpmath has no value
(NaN, infinities, poles), NumPy's or SciPy's counts.
"""

from __future__ import annotations

import argparse
import sys
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from mpmath import mp, mpc, mpf

ROOT = Path(__file__).resolve().parents[2]
sys.path[:0] = [str(ROOT / name) for name in ("compiler", "dialects", "runtime", "tools", "tests/numeric")]

from ulp_parameters import PARAMETERS  # noqa: E402
from ulp_references import BINARY, UNARY, Case  # noqa: E402

CASES = {**UNARY, **BINARY, **PARAMETERS}
DTYPES = ("float64", "float32")
DIGITS = 50
GOAL = 4.0


@dataclass
class Result:
    """The outcome for a function and a dtype.

    Attributes:
        worst: largest error in units in the last place, infinite where only one side is finite.
        at: operands of the largest error.
        got: value there.
        exact: what it should be.
        wrong: special values that differ from the reference, as text.
        points: number of points.
        peer: largest error of the reference, NumPy's or SciPy's function.
    """

    name: str
    dtype: str
    worst: float
    at: tuple[Any, ...]
    got: Any
    exact: Any
    wrong: list[str]
    points: int
    peer: float = 0.0


def specials(dtype: str) -> np.ndarray:
    """Zeros, infinities, NaN, subnormal numbers, the largest numbers, and some round ones."""
    info = np.finfo(dtype)
    tiny = [float(info.smallest_subnormal), float(info.smallest_normal), float(info.max), float(info.eps)]
    values = np.array([0.0, np.inf, 1.0, 0.5, 2.0, 3.0, 10.0, 100.0, *tiny], dtype)
    below = np.nextafter(values[-3:], np.zeros((), dtype))
    return np.concatenate([values, -values, below, -below, [np.array(np.nan, dtype)]])


def samples(case: Case, dtype: str, count: int, rng: np.random.Generator, position: int) -> np.ndarray:
    """Values of one operand."""
    info = np.finfo(dtype)
    if case.intervals is not None:
        low, high = case.intervals[position]
        third = max(count // 3, 4)
        spread = max(abs(low), abs(high))
        logarithmic = spread * 10.0 ** rng.uniform(-8, 0, third) * rng.choice([-1, 1], third)
        parts = [rng.uniform(low, high, third), rng.uniform(low, min(high, low + 10), third), logarithmic]
        values = np.concatenate(parts).astype(dtype)
        values = values[(values >= low) & (values <= high)]
    else:
        bits = rng.integers(0, 2**info.bits, count // 2, dtype=f"uint{info.bits}").view(dtype)
        scales = np.repeat([1e-5, 0.3, 1, 5, 40, 400], max(count // 12, 1))
        values = np.concatenate([bits, (rng.standard_normal(scales.size) * scales).astype(dtype)])
    edges = [values]
    for place in case.near:
        near = np.array([place] * 3, dtype)
        steps = rng.integers(-40, 40, 20) * np.spacing(near[0])
        wide = near[0] * (1 + rng.uniform(-1e-3, 1e-3, 20).astype(dtype))
        edges += [near[:1] + steps.astype(dtype), wide.astype(dtype)]
    return np.concatenate(edges).astype(dtype)


def points(name: str, case: Case, dtype: str, count: int, seed: int = 0) -> list[np.ndarray]:
    """Operands to try, and after them the special values (all pairs, for two operands)."""
    rng = np.random.default_rng([seed, len(name), *name.encode()])
    count = max(count // case.cost, 24)
    edge = specials(dtype)
    if name in UNARY:
        return [np.concatenate([samples(case, dtype, count, rng, 0), edge])]
    if case.intervals is not None:
        operands = [samples(case, dtype, count, rng, i) for i in range(len(case.intervals))]
        operands = [np.rint(x) if i in case.whole else x for i, x in enumerate(operands)]
        n = min(x.size for x in operands)
        operands = [rng.permutation(x)[:n] for x in operands]
        if case.zero is not None:
            x = rng.uniform(-0.69, -0.01, 24)
            pair = [np.array(z, dtype) for z in (x, case.zero(x))]
            operands = [np.concatenate(both) for both in zip(operands, pair, strict=True)]
        return operands
    x, y = (samples(case, dtype, count, rng, i) for i in range(2))
    n = min(x.size, y.size)
    # Also pairs of similar magnitude, where cancellation shows.
    with np.errstate(all="ignore"):
        similar = (x * rng.uniform(0.5, 2, x.size)).astype(dtype)
    first, second = (grid.ravel() for grid in np.meshgrid(edge, edge))
    return [np.concatenate([x[:n], x, first]), np.concatenate([y[:n], similar, second])]


def exact_value(case: Case, operands: tuple[Any, ...]) -> Any:
    """The value in mpmath, or None where it has none."""
    # mpmath has no negative zero.
    if any(not np.isfinite(x) or (x == 0 and np.signbit(x)) for x in operands):
        return None
    try:
        value = case.exact(*(mpf(float(x)) for x in operands))
    except (ValueError, ZeroDivisionError, OverflowError, NotImplementedError, mp.NoConvergence):
        return None
    if isinstance(value, mpc):
        return value.real if value.imag == 0 else None
    return value if mp.isfinite(value) else None


def error_in_ulp(got: Any, exact: Any) -> float:
    """Distance of a float from a number of mpmath."""
    info = np.finfo(got.dtype)
    largest = mpf(float(info.max))
    if np.isnan(got):
        return float("inf")
    # Beyond half a unit above the largest number the rounded value is infinite.
    if abs(exact) > largest * (1 + mpf(2) ** -(info.nmant + 2)):
        same = np.isinf(got) and (got > 0) == (exact > 0)
        return (
            0.0
            if same
            else float(min(abs(exact - mpf(float(got))) / (largest * mpf(2) ** -info.nmant), mpf("1e30")))
        )
    _, exponent = mp.frexp(exact) if exact else (0, -(10**6))
    lowest = int(np.log2(float(info.smallest_normal))) + 1
    unit = mpf(2) ** (max(int(exponent), lowest) - info.nmant - 1)
    if np.isinf(got):
        return float("inf")
    return float(abs(mpf(float(got)) - exact) / unit)


def sweep(name: str, dtype: str, count: int, seed: int = 0, mode: str = "fast_run") -> Result:
    """The largest error of one function over its points."""
    import graphc
    import graphc.tensor as pt
    from graphc.ops.elementwise import OPS, ROWS

    case = CASES[name]
    arrays = points(name, case, dtype, count, seed)
    variables = [pt.tensor(f"x{i}", dtype=dtype, shape=(None,)) for i in range(len(arrays))]
    got = graphc.function(variables, OPS[name](*variables), mode=mode)(*arrays)
    with np.errstate(all="ignore"):
        reference = np.asarray(ROWS[name].reference(*arrays), dtype)
    result = Result(name, dtype, 0.0, (), None, None, [], got.size)
    with mp.workdps(DIGITS):
        for i, value in enumerate(got):
            operands = tuple(array[i] for array in arrays)
            exact = exact_value(case, operands)
            if exact is None:
                _compare_special(result, operands, value, reference[i])
                continue
            error = error_in_ulp(value, exact)
            result.peer = max(result.peer, error_in_ulp(reference[i], exact))
            zeros = exact == 0 and value == 0 and reference[i] == 0
            if zeros and np.signbit(value) != np.signbit(reference[i]):
                result.wrong.append(_text(name, operands, value, reference[i]))
            if error > result.worst or not result.at:
                result.worst, result.at, result.got = error, operands, value
                result.exact = mp.nstr(exact, 20)
    return result


def _compare_special(result: Result, operands: tuple[Any, ...], got: Any, reference: Any) -> None:
    same = (np.isnan(got) and np.isnan(reference)) or (
        got == reference and np.signbit(got) == np.signbit(reference)
    )
    near = np.isfinite(got) and np.isfinite(reference) and np.isclose(got, reference, 1e-6, 0)
    if not same and not (near and reference != 0):
        result.wrong.append(_text(result.name, operands, got, reference))


def _text(name: str, operands: tuple[Any, ...], got: Any, expected: Any) -> str:
    return f"{name}({', '.join(map(repr, map(float, operands)))}) = {got!r}, not {expected!r}"


def table(results: list[Result]) -> str:
    """The lines for docs/math.md."""
    from ulp_exceptions import EXCEPTIONS

    by_name: dict[str, dict[str, Result]] = {}
    for result in results:
        by_name.setdefault(result.name, {})[result.dtype] = result
    lines = ["| function | float64 | float32 | NumPy or SciPy | remark |", "|---|--:|--:|--:|---|"]
    for name in sorted(by_name):
        cells = [_cell(by_name[name].get(dtype)) for dtype in DTYPES]
        double = by_name[name].get("float64")
        cells.append(_number(double.peer) if double is not None else "-")
        remark = EXCEPTIONS[name].why if name in EXCEPTIONS else ""
        lines.append(f"| {name} | {' | '.join(cells)} | {remark} |")
    return "\n".join(lines)


def complex_table(count: int) -> str:
    """The lines for functions of complex numbers."""
    import ulp_complex

    lines = ["| function | complex128 | complex64 | NumPy | remark |", "|---|--:|--:|--:|---|"]
    for name in sorted(ulp_complex.FUNCTIONS):
        results = [ulp_complex.sweep(name, dtype, count) for dtype in ulp_complex.DTYPES]
        cells = [_number(worst) for worst, _, _ in results] + [_number(results[0][1])]
        remarks = [ulp_complex.EXCEPTIONS[name][2]] if name in ulp_complex.EXCEPTIONS else []
        if name in ulp_complex.UNLIKE_NUMPY:
            remarks.append(f"special values not compared: {ulp_complex.UNLIKE_NUMPY[name]}")
        print(f"  {name:11} {' '.join(cells)}", flush=True)
        lines.append(f"| {name} | {' | '.join(cells)} | {'; '.join(remarks)} |")
    return "\n".join(lines)


def _cell(result: Result | None) -> str:
    return "-" if result is None else _number(result.worst)


def _number(error: float) -> str:
    return f"{error:.2f}" if error < 1000 else f"{error:.1e}"


def write(tables: dict[str, str]) -> None:
    """Replaces tables in docs/math.md, which stand between comments with their names."""
    path = ROOT / "docs" / "math.md"
    text = path.read_text(encoding="utf-8")
    for name, lines in tables.items():
        begin, end = f"<!-- {name} table begins -->", f"<!-- {name} table ends -->"
        before, _, rest = text.partition(begin)
        _, _, after = rest.partition(end)
        text = f"{before}{begin}\n{lines}\n{end}{after}"
    path.write_text(text, encoding="utf-8")


def main() -> int:
    """Run; the exit status is 1 when a function is worse than documented."""
    from ulp_exceptions import limit

    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--only", default="", help="names of functions, separated by commas")
    parser.add_argument("--points", type=int, default=2000, help="points for each function and dtype")
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--mode", default="fast_run")
    parser.add_argument("--write", action="store_true", help="rewrite the table in docs/math.md")
    options = parser.parse_args()
    names = options.only.split(",") if options.only else list(CASES)
    results, failures = [], 0
    for name in names:
        for dtype in DTYPES:
            result = sweep(name, dtype, options.points, options.seed, options.mode)
            results.append(result)
            bad = result.worst > limit(name, dtype) or bool(result.wrong)
            failures += bad
            at = ", ".join(map(repr, map(float, result.at)))
            print(
                f"{'!' if bad else ' '} {name:11} {dtype} {result.worst:10.2f}  at {at}: {result.got!r}",
                flush=True,
            )
            for line in result.wrong[:6]:
                print(f"      {line}", flush=True)
    if options.write and not options.only:
        write({"ulp": table(results), "complex ulp": complex_table(options.points)})
    return int(failures > 0)


if __name__ == "__main__":
    sys.exit(main())
