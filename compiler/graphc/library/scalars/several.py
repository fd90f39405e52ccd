# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Scalar kernels of few lines: results of SciPy's functions that have several; gamma; uint64 numbers.

SciPy's C code writes several results to memory. What is not asked for is computed with it and lost, so that a
result costs what all of them cost.
"""

# mypy: ignore-errors

from __future__ import annotations

from functools import partial

from graphc.library.scalars import SCALARS, correction, scalar
from graphc.native.builtins import call, local


@scalar
def gcd(x, y):
    """Greatest common divisor, by Euclid's algorithm; that of 0 and x is x."""
    while y != 0:
        rest = x % y
        x = y
        y = rest
    return x


@scalar
def whole_power(x, y):
    """x to the power of y modulo 2^64, by squaring for each bit of y up to its highest."""
    result = 1
    while y != 0:
        if y & 1 != 0:
            result = result * x
        x = x * x
        y = y >> 1
    return result


@correction
def gammaln_below(value, needed, x):
    """The C library's function where it is needed: its zeros are in double-double arithmetic."""
    if needed == 0.0:
        return value
    return call("lgamma", x, returns="double")


def one_of(symbol, count, i, x):
    """One of the numbers that a function of SciPy writes."""
    found = local(4, "f64")
    call(symbol, x, found, found[1:], *(found[2:], found[3:]) if count == 4 else ())
    return found[i]


def one_of_ellipj(i, u, m):
    found = local(4, "f64")
    call("special_ddoooo_ellipj", u, m, found, found[1:], found[2:], found[3:])
    return found[i]


for _name, _results in {
    "doooo_airy": "airy_ai airy_aip airy_bi airy_bip",
    "doooo_airye": "airye_ai airye_aip airye_bi airye_bip",
    "doo_sici": "sici_si sici_ci",
    "doo_shichi": "shichi_shi shichi_chi",
    "doo_fresnel": "fresnel_s fresnel_c",
}.items():
    for _i, _result in enumerate(_results.split()):
        SCALARS[_result] = partial(one_of, f"special_{_name}", _name.count("o", 0, 5), _i)
for _i, _result in enumerate(("ellipj_sn", "ellipj_cn", "ellipj_dn", "ellipj_ph")):
    SCALARS[_result] = partial(one_of_ellipj, _i)
