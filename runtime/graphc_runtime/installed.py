# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Versions of installed distributions."""

from __future__ import annotations

from importlib import metadata


def version(*distributions: str) -> str:
    """The version of the first of these that is installed; ``0+unknown`` where none is."""
    for name in distributions:
        try:
            return metadata.version(name)
        except metadata.PackageNotFoundError:
            continue
    return "0+unknown"
