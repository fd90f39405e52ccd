# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Scalar kernels: derivatives of incomplete elliptic integrals by the parameter; spherical harmonics.

With s = sin(phi), those of F and E are s^3/6 R_D(cos^2, 1, 1 - m s^2) and -s^3/6 R_D(cos^2, 1 - m s^2, 1),
where nothing cancels, in place of the usual differences of F and E over m (1 - m).

Sources: B. C. Carlson, "Numerical computation of real or complex elliptic integrals", 1995 (R_D); NIST
Digital Library of Mathematical Functions, 14.10 and 14.30.
"""
# mypy: ignore-errors

from __future__ import annotations

import math

from graphc.library.scalars import scalar
from graphc.native.builtins import call, cast, floor, isnan, sqrt

INF, NAN = math.inf, math.nan
_LARGEST_DEGREE = 1e7


def carlson_d(x, y, z):
    """R_D: 3/2 times the integral from 0 of ((t + x) (t + y))^-1/2 (t + z)^-3/2; x, y >= 0 and z > 0."""
    if x + y == 0.0 or z == 0.0:
        return INF
    mean = (x + y + 3.0 * z) / 5.0
    dx, dy = mean - x, mean - y
    # Each step makes differences from the mean a quarter; the series has 16 digits where they are this small.
    spread = 5.0 * max(max(abs(dx), abs(dy)), abs(mean - z)) * 128.0
    power = 1.0
    total = 0.0
    for _ in range(600):
        if spread * power < mean:
            break
        rx, ry, rz = sqrt(x), sqrt(y), sqrt(z)
        shift = rx * (ry + rz) + ry * rz
        total += power / (rz * (z + shift))
        power *= 0.25
        x, y, z = (x + shift) * 0.25, (y + shift) * 0.25, (z + shift) * 0.25
        mean = (mean + shift) * 0.25
    a, b = dx * power / mean, dy * power / mean
    c = -(a + b) / 3.0
    ab, cc = a * b, c * c
    e2 = ab - 6.0 * cc
    e3 = (3.0 * ab - 8.0 * cc) * c
    e4 = 3.0 * (ab - cc) * cc
    e5 = ab * cc * c
    series = 1.0 - 3.0 * e2 / 14.0 + e3 / 6.0 + 9.0 * e2 * e2 / 88.0 - 3.0 * e4 / 22.0
    series += 3.0 * e5 / 26.0 - 9.0 * e2 * e3 / 52.0
    return power / (mean * sqrt(mean)) * series + 3.0 * total


def slope(phi, m, first):
    """By m, of F (first = 1) or E (0)."""
    if isnan(phi) or isnan(m) or abs(phi) == INF or abs(m) == INF:
        return NAN
    turns = floor(phi / math.pi + 0.5)
    rest = phi - turns * math.pi
    s = call("sin", rest, returns="double")
    c = call("cos", rest, returns="double")
    # 1 - m s^2; near m = 1 its last digits are those of the cosine.
    under = (1.0 - m) + m * c * c if m > 0.5 else 1.0 - m * s * s
    if under < 0.0 or (turns != 0.0 and m > 1.0):
        return NAN
    cube = s * s * s / 6.0
    value = cube * carlson_d(c * c, 1.0, under) if first == 1.0 else -cube * carlson_d(c * c, under, 1.0)
    if s == 0.0:
        value = 0.0
    if turns != 0.0:
        whole = carlson_d(0.0, 1.0, 1.0 - m) if first == 1.0 else -carlson_d(0.0, 1.0 - m, 1.0)
        value += turns * whole / 3.0
    return value


@scalar
def ellipkinc_dm(phi, m):
    """Of the incomplete elliptic integral of the first kind."""
    return slope(phi, m, 1.0)


@scalar
def ellipeinc_dm(phi, m):
    """Of the incomplete elliptic integral of the second kind."""
    return slope(phi, m, 0.0)


@scalar
def sph_legendre(n, m, theta):
    """The spherical harmonic of degree n and order m at the polar angle theta and the azimuth 0."""
    order = abs(m)
    if isnan(n) or isnan(m) or isnan(theta) or abs(theta) == INF:
        return NAN
    if n != floor(n) or m != floor(m) or n > _LARGEST_DEGREE:
        return NAN
    if n < 0.0 or order > n:
        return 0.0
    x = call("cos", theta, returns="double")
    s = call("sin", theta, returns="double")
    half = 0.5 * order
    odd = half != floor(half)
    s = abs(s)
    value = 0.5 / sqrt(math.pi)
    for k in range(1, cast(order, "i64") + 1):
        value = -value * s * sqrt(1.0 + 0.5 / k)
    before = 0.0
    factor = 0.0
    for k in range(cast(order, "i64") + 1, cast(n, "i64") + 1):
        squares = (1.0 * k - order) * (1.0 * k + order)
        up = sqrt((4.0 * k * k - 1.0) / squares)
        before, value = value, up * (x * value - factor * before)
        factor = 1.0 / up
    return -value if m < 0.0 and odd else value
