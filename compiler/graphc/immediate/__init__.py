# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Immediate mode: the functions of ``graphc.tensor``, run at once.

``gt = graphc.immediate.Environment()`` in place of ``import graphc.tensor as gt`` lets code that builds
graphs compute values instead. Each operation is compiled when it is first used and kept for later calls.
"""

from __future__ import annotations

from graphc.immediate.environment import Environment, current
from graphc.immediate.operation import Operation, OpFactory, OpWrapper
from graphc.immediate.record import RecordedGraph, Recording
from graphc.immediate.tape import Tape
from graphc.immediate.tensor import Tensor

__all__ = [
    "Environment",
    "OpFactory",
    "OpWrapper",
    "Operation",
    "RecordedGraph",
    "Recording",
    "Tape",
    "Tensor",
    "current",
]
