# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Scalar kernels of few lines: results of SciPy's functions that have several; gamma; uint64 numbers.

SciPy's C code writes several results to memory. What is not asked for is computed with it and lost, so that a
result costs what all of them cost.
"""

# mypy: ignore-errors

from __future__ import annotations

from graphc.library.scalars import correction, scalar
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


def of_airy(x, i):
    found = local(4, "f64")
    call("special_doooo_airy", x, found, found[1:], found[2:], found[3:])
    return found[i]


@scalar
def airy_ai(x):
    return of_airy(x, 0)


@scalar
def airy_aip(x):
    return of_airy(x, 1)


@scalar
def airy_bi(x):
    return of_airy(x, 2)


@scalar
def airy_bip(x):
    return of_airy(x, 3)


def of_airye(x, i):
    found = local(4, "f64")
    call("special_doooo_airye", x, found, found[1:], found[2:], found[3:])
    return found[i]


@scalar
def airye_ai(x):
    return of_airye(x, 0)


@scalar
def airye_aip(x):
    return of_airye(x, 1)


@scalar
def airye_bi(x):
    return of_airye(x, 2)


@scalar
def airye_bip(x):
    return of_airye(x, 3)


def of_sici(x, i):
    found = local(2, "f64")
    call("special_doo_sici", x, found, found[1:])
    return found[i]


@scalar
def sici_si(x):
    return of_sici(x, 0)


@scalar
def sici_ci(x):
    return of_sici(x, 1)


def of_shichi(x, i):
    found = local(2, "f64")
    call("special_doo_shichi", x, found, found[1:])
    return found[i]


@scalar
def shichi_shi(x):
    return of_shichi(x, 0)


@scalar
def shichi_chi(x):
    return of_shichi(x, 1)


def of_fresnel(x, i):
    found = local(2, "f64")
    call("special_doo_fresnel", x, found, found[1:])
    return found[i]


@scalar
def fresnel_s(x):
    return of_fresnel(x, 0)


@scalar
def fresnel_c(x):
    return of_fresnel(x, 1)


def of_ellipj(u, m, i):
    found = local(4, "f64")
    call("special_ddoooo_ellipj", u, m, found, found[1:], found[2:], found[3:])
    return found[i]


@scalar
def ellipj_sn(u, m):
    return of_ellipj(u, m, 0)


@scalar
def ellipj_cn(u, m):
    return of_ellipj(u, m, 1)


@scalar
def ellipj_dn(u, m):
    return of_ellipj(u, m, 2)


@scalar
def ellipj_ph(u, m):
    return of_ellipj(u, m, 3)
