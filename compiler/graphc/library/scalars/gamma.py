# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Scalar kernel: the logarithm of gamma at negative arguments, which few graphs have."""
# mypy: ignore-errors

from __future__ import annotations

from graphc.library.scalars.registry import correction
from graphc.native.builtins import call


@correction
def gammaln_below(value, needed, x):
    """The C library's function where it is needed: its zeros are in double-double arithmetic."""
    if needed == 0.0:
        return value
    return call("lgamma", x, returns="double")
