# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""The target of each mode: a new target adds to this table, and its name to `graphc.config.MODES`."""

from __future__ import annotations

import importlib

from graphc.backends.target import Resources, Target

# Modes of compiled functions, and the class of their target.
TARGETS: dict[str, str] = {
    "fast_run": "graphc.backends.cpu.target:CpuTarget",
    "fast_compile": "graphc.backends.cpu.target:CpuTarget",
    "interpret": "graphc.backends.interpret.target:InterpretTarget",
    "cuda": "graphc.backends.cuda.target:CudaTarget",
}


def target_class(mode: str) -> type[Target]:
    """The class of a mode's target; what it needs is imported now."""
    module, _, name = TARGETS[mode].partition(":")
    found: type[Target] = getattr(importlib.import_module(module), name)
    return found


def find_target(mode: str, resources: Resources) -> Target:
    """The target of a mode."""
    return target_class(mode)(resources)
