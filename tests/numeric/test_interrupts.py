# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Ctrl-C while compiling, over many moments; `make fuzz` takes the whole sweep."""

from __future__ import annotations

import pytest
from fuzzing import FUZZING
from interrupts import sweep


@pytest.mark.fuzz
def test_compilations_end_with_the_interrupt_and_the_next_one_works():
    processes, warm = (60, 300) if FUZZING else (4, 12)
    assert sweep(processes, warm) == []
