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
    "logaddexp": Exceeds(_INF, _INF, "ill-conditioned next to results of 0; 3 units elsewhere"),
    "logaddexp2": Exceeds(_INF, _INF, "ill-conditioned next to results of 0; 3 units elsewhere"),
    "rgamma": Exceeds(8.0, 4.0, "the C library's gamma, next to negative integers"),
    "gamma": Exceeds(6.0, 4.0, "the C library's, next to negative integers"),
    "erfi": Exceeds(20.0, 4.0, "SciPy's Dawson integral"),
    "dawsn": Exceeds(20.0, 4.0, "SciPy's routine"),
    "k0": Exceeds(16.0, 4.0, "SciPy's routine, near 2"),
    "k1": Exceeds(8.0, 4.0, "SciPy's routine, below 2"),
    "k1e": Exceeds(8.0, 4.0, "SciPy's routine, below 2"),
    "k0e": Exceeds(16.0, 4.0, "SciPy's routine, near 2"),
    "j0": Exceeds(_INF, _INF, "SciPy's routine: absolutely accurate, up to x = 1e6"),
    "j1": Exceeds(_INF, _INF, "SciPy's routine: absolutely accurate, up to x = 1e6"),
    "y0": Exceeds(_INF, _INF, "SciPy's routine: absolutely accurate, up to x = 1e6"),
    "y1": Exceeds(_INF, _INF, "SciPy's routine: absolutely accurate, up to x = 1e6"),
    "jv": Exceeds(_INF, 8.0, "SciPy's routine: absolutely accurate next to zeros"),
    "yv": Exceeds(_INF, 8.0, "SciPy's routine: absolutely accurate next to zeros"),
    "iv": Exceeds(1000.0, 4.0, "SciPy's routine"),
    "ive": Exceeds(1000.0, 4.0, "SciPy's routine"),
    "kv": Exceeds(1000.0, 4.0, "SciPy's routine"),
    "kve": Exceeds(1000.0, 4.0, "SciPy's routine"),
    "expi": Exceeds(32.0, 4.0, "SciPy's routine, but next to its zero"),
    "exp1": Exceeds(32.0, 4.0, "SciPy's routine"),
    "beta": Exceeds(1000.0, 4.0, "three gamma functions; for operands above 170 SciPy's routine"),
    "betaln": Exceeds(_INF, 8.0, "SciPy's routine: absolutely accurate, to a unit of the largest term"),
    "poch": Exceeds(1000.0, 4.0, "SciPy's routine"),
    "binom": Exceeds(_INF, 4.0, "SciPy's routine"),
    "gammainc": Exceeds(2000.0, 4.0, "SciPy's routine: grows with a"),
    "gammaincc": Exceeds(2000.0, 4.0, "SciPy's routine: grows with a"),
    "gammaincinv": Exceeds(32.0, 4.0, "SciPy's routine"),
    "gammainccinv": Exceeds(32.0, 4.0, "SciPy's routine"),
    "gammainc_da": Exceeds(1000.0, 4.0, "the exponential of a sum of logarithms"),
    "betainc": Exceeds(200.0, 4.0, "SciPy's routine"),
    "betaincc": Exceeds(200.0, 4.0, "SciPy's routine"),
    "betaincinv": Exceeds(200.0, 4.0, "SciPy's routine"),
    "betainc_da": Exceeds(
        _INF, 8.0, "the exponential of a sum of logarithms; absolutely accurate next to zeros"
    ),
    "betainc_db": Exceeds(
        _INF, 8.0, "the exponential of a sum of logarithms; absolutely accurate next to zeros"
    ),
    "hyp2f1": Exceeds(1000.0, 8.0, "SciPy's routine"),
    "hyp2f1_da": Exceeds(_INF, 8.0, "a power series; absolutely accurate next to zeros"),
    "hyp2f1_dc": Exceeds(_INF, 8.0, "a power series; absolutely accurate next to zeros"),
    "hyp1f1": Exceeds(_INF, 8.0, "SciPy's routine"),
    "owens_t": Exceeds(200.0, 4.0, "SciPy's routine"),
    "ellipkinc_dm": Exceeds(16.0, 4.0, "the cosine at the end of a range is only as exact as the angle"),
    "ellipeinc_dm": Exceeds(16.0, 4.0, "the cosine at the end of a range is only as exact as the angle"),
    **dict.fromkeys(
        ("ellipj_sn", "ellipj_cn", "ellipj_dn", "ellipj_ph", "sici_si", "sici_ci", "shichi_chi"),
        Exceeds(_INF, 8.0, "SciPy's routine: absolutely accurate next to zeros"),
    ),
    "shichi_shi": Exceeds(64.0, 4.0, "SciPy's routine"),
    "sph_legendre": Exceeds(_INF, 8.0, "a recurrence: absolutely accurate next to zeros"),
    "stdtrit": Exceeds(_INF, 8.0, "SciPy's routine: absolutely accurate next to p = 1/2"),
    **dict.fromkeys(("fresnel_s", "fresnel_c"), Exceeds(_INF, 8.0, "SciPy's routine: absolutely accurate")),
    **dict.fromkeys(
        [f"{name}_{part}" for name in ("airy", "airye") for part in ("ai", "aip", "bi", "bip")],
        Exceeds(_INF, _INF, "SciPy's routine: absolutely accurate next to zeros, NaN beyond 1e6"),
    ),
}


def limit(name: str, dtype: str) -> float:
    """The bound for a function."""
    found = EXCEPTIONS.get(name)
    return 4.0 if found is None else float(getattr(found, dtype))
