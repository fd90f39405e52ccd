# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Random programs over the whole library, the same in every way to evaluate them.

New programs still find defects, more often than once in 4,000, so that ordinary runs keep to seeds that pass;
FUZZ_SEEDS=commit takes those of the commit instead, so that each commit tries programs that none before it
has. A failure prints its seed and a script; ``python tests/fuzz/campaign.py --seed S`` shows it again.
`make fuzz` runs by time, and in more ways: here each program is compiled in one way, in rotation.
"""

from __future__ import annotations

import os

import pytest
from campaign import Campaign, first_seed

COUNT, BATCH = int(os.environ.get("FUZZ_GRAPHS", "80")), 20
FIRST = first_seed() if os.environ.get("FUZZ_SEEDS") == "commit" else 953230758000


@pytest.mark.parametrize("batch", range(0, COUNT, BATCH))
def test_random_programs(batch):
    campaign, found = Campaign(seconds_to_shrink=30.0, thorough=False), []
    try:
        for seed in range(FIRST + batch, FIRST + batch + BATCH):
            found += campaign.run(seed)
    finally:
        campaign.close()
    assert not found, "\n".join([f"{len(found)} failures in seeds from {FIRST + batch}", *found[:3]])


@pytest.mark.parametrize("tier", ["buffer", "python"])
def test_other_ways_into_compiled_functions(tier):
    """What machines with another Python layout use."""
    campaign = Campaign(tier=tier)
    for seed in range(FIRST, FIRST + 5):
        program = campaign.worker.ask("grow", seed)
        answer = campaign.evaluate(program, ["fast_run", "donated", "out"])
        assert not answer.findings, f"seed {seed}\n{answer.findings}\n{program}"
    campaign.close()
