# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Sweeps functions of complex numbers against mpmath, and their special values against NumPy.

The error of a result is the larger one of its parts', in units in the last place of its larger part: where
one part cancels, as in a product, no arithmetic on the rounded operands gives its digits. Operands with a
zero, an infinity or NaN, among them both sides of all branch cuts, are compared with NumPy part by part.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import cache
from typing import Any

import numpy as np
from mpmath import mp, mpc, mpf

DTYPES = ("complex128", "complex64")
DIGITS = 60


def _arctanh(z: Any) -> Any:
    # mpmath loses digits of small numbers.
    return z + z**3 / 3 if abs(z) < 1e-18 else mp.atanh(z)


def _power(x: Any, y: Any) -> Any:
    return mp.exp(y * mp.log(x))


FUNCTIONS: dict[str, Callable[..., Any]] = {
    "exp": mp.exp,
    "exp2": lambda z: mp.exp(z * mp.log(2)),
    "expm1": mp.expm1,
    "log": mp.log,
    "log2": lambda z: mp.log(z) / mp.log(2),
    "log10": lambda z: mp.log(z) / mp.log(10),
    "log1p": mp.log1p,
    "sqrt": mp.sqrt,
    "sin": mp.sin,
    "cos": mp.cos,
    "tan": mp.tan,
    "sinh": mp.sinh,
    "cosh": mp.cosh,
    "tanh": mp.tanh,
    "arcsin": mp.asin,
    "arccos": mp.acos,
    "arctan": lambda z: _arctanh(z * 1j) / 1j,
    "arcsinh": mp.asinh,
    "arccosh": mp.acosh,
    "arctanh": _arctanh,
    "abs": abs,
    "angle": mp.arg,
    "sign": lambda z: z / abs(z),
    "sqr": lambda z: z * z,
    "reciprocal": lambda z: 1 / z,
    "mul": lambda x, y: x * y,
    "true_div": lambda x, y: x / y,
    "pow": _power,
}
BINARY = ("mul", "true_div", "pow")
# Bounds where they are not 4, for complex128 and complex64, and why.
EXCEPTIONS: dict[str, tuple[float, float, str]] = {
    "pow": (1000.0, 4.0, "the exponential of a rounded product, as in NumPy"),
}
# Why special values are not compared: NumPy's are not those of Annex G of the C standard, or there are none.
UNLIKE_NUMPY = {
    "expm1": "NumPy's are NaN where those of the exponential are not",
    "log1p": "NumPy's are 0 for small operands",
    "pow": "infinite and unknown operands; finite ones are NumPy's",
}


def limit(name: str, dtype: str) -> float:
    """The bound of the error of a function."""
    known = EXCEPTIONS.get(name)
    return 4.0 if known is None else known[DTYPES.index(dtype)]


def _part(dtype: str) -> np.dtype:
    return np.dtype(f"float{np.dtype(dtype).itemsize * 4}")


def _grid(values: Any, part: np.dtype) -> np.ndarray:
    values = np.array(values, part)
    result = np.empty((values.size, values.size), np.result_type(part, np.complex64))
    result.real, result.imag = values[:, None], values
    return result.ravel()


def special_operands(name: str, dtype: str) -> list[np.ndarray]:
    """Zeros of both signs, infinities, NaN and a few numbers in all combinations."""
    part = _part(dtype)
    few = [0.0, -0.0, 1.0, -1.0, 2.5, -0.5, np.inf, -np.inf, np.nan]
    if name in ("sqr", "sign", "exp2"):
        return [_grid(few, part)]
    if name in BINARY:
        left, right = np.meshgrid(_grid(few, part), _grid(few, part))
        return [left.ravel(), right.ravel()]
    info = np.finfo(part)
    scales = [0.5, -2.0, 3.7, float(info.max), -float(info.max), float(info.smallest_normal), -1e-40, 1e30]
    return [_grid([*few, *scales], part)]


def operands(name: str, dtype: str, count: int, seed: int) -> list[np.ndarray]:
    """Random operands: several scales, all magnitudes, and the neighbourhoods of 1, -1, i and -i."""
    rng = np.random.default_rng([seed, *name.encode()])
    part = _part(dtype)
    reach = np.log10(float(np.finfo(part).max)) - 1

    def parts() -> np.ndarray:
        n = count // 4
        scale = np.repeat([0.3, 1.0, 5.0, 50.0], max(n // 4, 1))
        plain = rng.standard_normal(scale.size) * scale
        wide = 10 ** rng.uniform(-reach, reach, n) * rng.choice([-1, 1], n)
        near = rng.choice([0.0, 0.0, 1.0, -1.0], n) + 10 ** rng.uniform(-reach / 4, -1, n) * rng.choice(
            [-1, 1], n
        )
        return np.concatenate([plain, rng.permutation(plain), wide, near])

    result = []
    for _ in range(2 if name in BINARY else 1):
        real, imag = parts(), parts()
        if name in ("true_div", "mul", "reciprocal", "sqr", "pow"):
            # Beyond their squares' range, what NumPy's formulas give is accepted.
            bound = 10 ** (reach / (8 if name == "pow" else 2) - 2)
            real, imag = (np.clip(np.where(abs(x) < 1 / bound, 1.25, x), -bound, bound) for x in (real, imag))
        if name == "exp2":
            imag = np.clip(imag, -1e6, 1e6)
        if name == "pow":
            real, imag = np.clip(real, -30, 30), np.clip(imag, -30, 30)
        z = np.empty(real.size, dtype)
        z.real, z.imag = real, imag
        result.append(z)
    return result


def error(got: Any, exact: Any, info: Any) -> float:
    """In units in the last place of the larger part."""
    exact = mpc(exact)
    largest = max(abs(exact.real), abs(exact.imag))
    _, exponent = mp.frexp(largest) if largest else (0, -(10**6))
    lowest = int(np.log2(float(info.smallest_normal))) + 1
    unit = mpf(2) ** (max(int(exponent), lowest) - info.nmant - 1)
    worst = mpf(0)
    for value, right in ((np.real(got), exact.real), (np.imag(got), exact.imag)):
        if abs(right) > mpf(float(info.max)) * (1 + mpf(2) ** -(info.nmant + 2)):
            same = np.isinf(value) and (value > 0) == (right > 0)
            near = np.isfinite(value) and abs(mpf(float(value)) - right) <= 4 * unit
            worst = max(worst, mpf(0) if same or near else mp.inf)
        elif not np.isfinite(value):
            near = np.isinf(value) and abs(right) >= mpf(float(info.max)) - 4 * unit
            worst = max(worst, mpf(0) if near else mp.inf)
        else:
            worst = max(worst, abs(mpf(float(value)) - right) / unit)
    return float(worst)


def sweep(
    name: str, dtype: str, count: int, seed: int = 0, mode: str = "fast_run"
) -> tuple[float, float, Any]:
    """Largest errors of graphc and of NumPy, and the operands of the first."""
    from graphc.ops.elementwise import ROWS

    arrays = operands(name, dtype, count, seed)
    got = _compiled(name, dtype, mode)(*arrays)
    with np.errstate(all="ignore"):
        reference = np.asarray(ROWS[name].reference(*arrays))
    worst, numpy_worst, at = 0.0, 0.0, None
    info = np.finfo(_part(dtype))
    with mp.workdps(DIGITS):
        for i, value in enumerate(got):
            values = [array[i] for array in arrays]
            if any(x.real == 0 or x.imag == 0 for x in values):
                continue
            exact = FUNCTIONS[name](*(mpc(float(x.real), float(x.imag)) for x in values))
            this = error(value, exact, info)
            if this > worst:
                worst, at = this, (*values, value)
            numpy_worst = max(numpy_worst, error(reference[i], exact, info))
    return worst, numpy_worst, at


def wrong_specials(name: str, dtype: str, mode: str = "fast_run") -> list[str]:
    """Special values unlike NumPy's, as text."""
    from graphc.ops.elementwise import ROWS

    arrays = special_operands(name, dtype)
    got = _compiled(name, dtype, mode)(*arrays)
    with np.errstate(all="ignore"):
        expected = np.asarray(ROWS[name].reference(*arrays))
    wrong = []
    for i, (value, right) in enumerate(zip(got, expected, strict=True)):
        if not _alike(value, right, float(np.finfo(_part(dtype)).eps)):
            given = ", ".join(repr(complex(array[i])) for array in arrays)
            wrong.append(f"{name}({given}) = {value!r}, not {right!r}")
    return wrong


def _alike(got: Any, expected: Any, eps: float) -> bool:
    """Whether parts are NaN, infinite or zero alike, and numbers close. Beside NaN, signs do not count."""
    pairs = [(np.real(got), np.real(expected)), (np.imag(got), np.imag(expected))]
    unknown = any(np.isnan(y) for _, y in pairs)
    scale = max((abs(y) for _, y in pairs if np.isfinite(y)), default=0.0)
    for x, y in pairs:
        if np.isnan(x) or np.isnan(y):
            if not (np.isnan(x) and np.isnan(y)):
                return False
        elif np.isinf(y) or y == 0 or np.isinf(x):
            same = x == y and np.signbit(x) == np.signbit(y)
            # Where the other part is a number, a zero may be its rounding error.
            noise = y == 0 and np.isfinite(x) and 0 < abs(x) <= 8 * eps * scale
            if not (same or noise or (unknown and abs(x) == abs(y))):
                return False
        elif abs(x - y) > 64 * eps * abs(y) + 64 * eps * scale:
            return False
    return True


@cache
def _compiled(name: str, dtype: str, mode: str) -> Any:
    import graphc
    import graphc.tensor as pt
    from graphc.ops.elementwise import OPS

    variables = [pt.tensor(dtype=dtype, shape=(None,)) for _ in range(2 if name in BINARY else 1)]
    return graphc.function(variables, OPS[name](*variables), mode=mode)
