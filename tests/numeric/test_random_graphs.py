# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Graphs of 5 to 40 operations of the whole library, the same in every mode, call path and number of threads.

`make fuzz` runs 2,000 of them (``FUZZ_GRAPHS`` sets the number), other runs 200.
"""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest
from comparing import check_all
from fuzz_library import graph_of
from fuzzing import FUZZING
from steps_library import ALL

import graphc

COUNT = int(os.environ.get("FUZZ_GRAPHS", "2000" if FUZZING else "200"))
BATCH = 10
STARTS = range(0, COUNT, BATCH)


@pytest.mark.fuzz
@pytest.mark.parametrize("start", STARTS)
def test_compiled(start):
    """Half of them with memory that is poisoned, and a few with the pipeline of fast_compile."""
    graphs = [graph_of(seed) for seed in range(start, start + BATCH)]
    with graphc.config.change_flags(poison_memory=start % (2 * BATCH) == 0):
        check_all(graphs, "fast_run")
    if FUZZING or start % (10 * BATCH) == 0:
        check_all(graphs, "fast_compile")


@pytest.mark.fuzz
@pytest.mark.parametrize("first", range(50_000, 50_000 + COUNT // 40, 5))
def test_large_values_on_several_threads(first):
    graphs = [graph_of(seed, large=True) for seed in range(first, first + 5)]
    check_all(graphs, "fast_run", threads=(1, 2, 3))


@pytest.mark.fuzz
@pytest.mark.parametrize("tier", ["buffer", "python"])
def test_call_tiers(tier):
    """In a process of its own, as the tier is chosen once."""
    script = Path(__file__).with_name("fuzz_library.py")
    command = [sys.executable, str(script), "--poison", "--start", "90000"]
    command += ["--count", str(COUNT // 20), "--batch", str(BATCH)]
    environment = {**os.environ, "GRAPHC_CALL_TIER": tier}
    done = subprocess.run(command, env=environment, capture_output=True, text=True, check=False)
    assert done.returncode == 0, f"{done.stdout}\n{done.stderr}"


def test_the_generator_covers_its_steps():
    seen = {name for seed in range(120) for name in graph_of(seed).steps}
    assert seen >= set(ALL)
