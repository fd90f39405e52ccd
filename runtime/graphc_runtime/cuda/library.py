# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Permission to compute matrix products by cuBLAS where it is installed."""

from __future__ import annotations

import os


class _Setting:
    is_enabled: bool | None = None


def is_enabled() -> bool:
    """True if the library may be used.

    Raises:
        ValueError: GRAPHC_CUBLAS is neither yes nor no.
    """
    if _Setting.is_enabled is None:
        given = (os.environ.get("GRAPHC_CUBLAS") or "1").lower()
        if given not in ("0", "1", "false", "true"):
            raise ValueError(f"GRAPHC_CUBLAS is {given!r}; expected one of 0, 1, false, true")
        _Setting.is_enabled = given in ("1", "true")
    return _Setting.is_enabled


def enable(is_used: bool) -> None:
    """Says whether the library may be used, by functions that have not been called yet."""
    _Setting.is_enabled = is_used
