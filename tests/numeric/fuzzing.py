# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""How much ordinary runs try, and how much `make fuzz-inputs` does: it sets ``FUZZ_EXAMPLES``."""

from __future__ import annotations

import os

EXAMPLES = int(os.environ.get("FUZZ_EXAMPLES", "0"))
FUZZING = EXAMPLES > 0


def some(seeds: range, daily: int) -> range:
    """The seeds of a test: the first ``daily`` in ordinary runs, all in `make fuzz-inputs`."""
    return seeds if FUZZING else seeds[:daily]


def examples(daily: int, factor: int = 1) -> int:
    """The number of generated inputs of a test that compiles for each of them.

    Args:
        daily: how many an ordinary run has.
        factor: for `make fuzz-inputs`, on ``FUZZ_EXAMPLES``.
    """
    return factor * EXAMPLES or daily
