# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Scalar kernel: the real branches of Lambert's W function.

Sources: R. M. Corless, G. H. Gonnet, D. E. G. Hare, D. J. Jeffrey and D. E. Knuth, "On the Lambert W
function", 1996 (the series at the branch point); F. N. Fritsch, R. E. Shafer and W. P. Crowley, "Algorithm
443", 1973.
"""
# mypy: ignore-errors

from __future__ import annotations

import math

from graphc.library.scalars import scalar
from graphc.native.builtins import isnan, log, sqrt, unrolled

INF, NAN = math.inf, math.nan
# 1 / e in two parts.
_BRANCH, _BRANCH_REST = 0.36787944117144233, -1.2428753672788363e-17
# Coefficients of W in p = sqrt(2 (1 + e z)).
_SERIES = (
    *(-1.0, 1.0, -0.3333333333333333, 0.1527777777777778),
    *(-0.07962962962962963, 0.044502314814814814, -0.02598471487360376, 0.01563563253233392),
    *(-0.009616892024299432, 0.006014543252956118, -0.0038112980348919993, 0.0024408779911439826),
    *(-0.0015769303446867841, 0.0010262633205076071, -0.0006720616311561362, 0.0004424730618146209),
    *(-0.00029267722472962746, 0.00019438727605453933, -0.00012957426685274883, 8.665035805208128e-05),
    *(-5.811360750441382e-05, 3.907668486743905e-05, -2.63380647472311e-05, 1.7790345805079586e-05),
    *(-1.2040352739559977e-05, 8.163531982496613e-06),
)


def near_branch(p):
    """The series, for magnitudes of p up to 0.35."""
    w = 0.0
    for i in unrolled(len(_SERIES)):
        w = w * p + _SERIES[len(_SERIES) - 1 - i]
    return w


def improved(w, rest):
    """One step of fourth order for w exp(w) = z; rest is log(z / w) - w."""
    near = 1.0 + w
    q = 2.0 * near * (near + rest * (2.0 / 3.0))
    return w * (1.0 + rest / near * ((q - rest) / (q - 2.0 * rest)))


@scalar
def lambertw0(z):
    """The principal branch, for z from -1/e on."""
    if isnan(z) or z == INF or z == 0.0:
        return z
    offset = (z + _BRANCH) + _BRANCH_REST
    if offset < 0.0:
        return NAN if offset < -1e-16 else -1.0
    p = sqrt(2.0 * math.e * offset)
    if p < 0.35:
        return near_branch(p)
    if abs(z) < 1e-8:
        return z * (1.0 - z)
    if z < 1.0:
        w = p * 0.3 if z > 0.0 else -1.0 + p * (1.0 + p * (-1 / 3 + p * (11 / 72)))
        w = z / (1.0 + z) if abs(z) < 0.3 else w
    else:
        w = log(1.0 + z)
        w = w * (1.0 - log(1.0 + w) / (2.0 + w))
    w = improved(w, log(z / w) - w)
    w = improved(w, log(z / w) - w)
    return improved(w, log(z / w) - w)


@scalar
def lambertw1(z):
    """The branch -1, for z from -1/e to 0."""
    if isnan(z) or z > 0.0:
        return NAN
    if z == 0.0:
        return -INF
    offset = (z + _BRANCH) + _BRANCH_REST
    if offset < 0.0:
        return NAN if offset < -1e-16 else -1.0
    p = sqrt(2.0 * math.e * offset)
    if p < 0.35:
        return near_branch(-p)
    log_z = log(-z)
    w = log_z - log(-log_z) if z > -0.25 else -1.0 - p * (1.0 + p * (1 / 3 + p * (11 / 72)))
    if z > -1e-3:
        # The quotient could underflow.
        w = improved(w, log_z - log(-w) - w)
        return improved(w, log_z - log(-w) - w)
    w = improved(w, log(z / w) - w)
    w = improved(w, log(z / w) - w)
    return improved(w, log(z / w) - w)
