# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Kernels of every class assemble for the devices that we make them for, in registers alone."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from functools import cache
from pathlib import Path

import pytest
from gpu_cases import CASES
from ptx_assembler import report

from graphc.backends.cuda import code
from graphc.backends.cuda.code import Lowered, to_ptx
from graphc_runtime.cuda import schedule as sc
from graphc_runtime.cuda.schedule_check import check

_ARCHITECTURES = ("sm_80", "sm_90", "sm_100")


@cache
def lowered(name: str) -> Lowered:
    return code.lower(CASES[name].text(), "sm_90")


@pytest.mark.parametrize("arch", _ARCHITECTURES)
@pytest.mark.parametrize("name", CASES)
def test_kernels_stay_in_registers(name: str, arch: str, tmp_path: Path) -> None:
    found = lowered(name)
    lines = report(to_ptx(found.llvm_ir, arch), arch, tmp_path)
    spills = [line for line in lines if "spill stores" in line]
    case = CASES[name]
    assert len(spills) == case.kernels + case.functions
    assert all("0 bytes spill stores, 0 bytes spill loads" in line for line in spills)
    frames = sorted(int(line.split()[0]) for line in spills)
    callers = case.kernels if case.callers is None else case.callers
    assert frames == [0] * (len(frames) - callers) + [case.frame] * callers
    used = [int(line.partition("Used ")[2].split()[0]) for line in lines if "Used " in line]
    named = [line.split("'")[1] for line in lines if "Compiling entry" in line]
    assert len(used) == len(named) == case.kernels
    for kernel, registers in zip(named, used, strict=True):
        # Threads of rows hold 32 registers of elements: 768 of them have 96 KiB of reads under way.
        assert registers <= (max(case.registers, 80) if kernel.startswith("rows") else case.registers)


def _inside(steps: Sequence[sc.Step]) -> Iterator[sc.Step]:
    """Steps, and those of their blocks."""
    for step in steps:
        yield step
        for value in vars(step).values() if isinstance(step, sc.If | sc.Loop | sc.While | sc.Product) else ():
            if isinstance(value, sc.Block):
                yield from _inside(value.steps)


@pytest.mark.parametrize("name", CASES)
def test_schedule_agrees_with_itself(name: str) -> None:
    found = lowered(name)
    check(found.schedule)
    launches = [step for step in _inside(found.schedule.main.steps) if isinstance(step, sc.Launch)]
    assert len({step.kernel for step in launches}) == CASES[name].kernels
    assert all(f".entry {step.kernel}(" in found.ptx for step in launches)
    allocated = [step.result for step in found.schedule.main.steps if isinstance(step, sc.Allocate)]
    freed = [step.array for step in found.schedule.main.steps if isinstance(step, sc.Free)]
    assert sorted(allocated) == sorted(freed)
