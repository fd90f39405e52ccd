# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Which operations of a graph have no kernel, and why."""

from __future__ import annotations

# Functions that SciPy's code computes on CPUs, in C or C++, for which there is none of our own.
SCIPY = frozenset(
    "erfi erfinv erfcinv dawsn ndtri log_ndtr ndtri_exp owens_t j0 j1 jv y0 y1 yv i0 i1 iv i0e i1e ive k0 k1 "
    "kv k0e k1e kve beta betaln poch binom gammainc gammaincc gammaincinv gammainccinv betainc betaincc "
    "betaincinv hyp2f1 hyp2f1_da hyp2f1_dc hyp1f1 expi exp1 ellipk ellipe".split()
)
