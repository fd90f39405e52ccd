# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Operations that are rematerialised to save memory, as the attribute `graphc.recomputed` of modules."""

from __future__ import annotations

from typing import TypedDict

from graphc.ir import plain
from graphc_dialects._mlir import ir

RECOMPUTED = "graphc.recomputed"


class Array(TypedDict):
    """An array that is computed again.

    Attributes:
        node: of the graph, such as `n12`. bytes: its size.
        times: how often it is computed again. flops: the operations that this takes.
    """

    node: str
    bytes: int
    times: int
    flops: int


class Recomputed(TypedDict, total=False):
    """Rematerialised operations; empty where no budget was given.

    Attributes:
        unknown: how many arrays have sizes that are not known.
        peak: the most bytes that the others should need at once.
        flops: how many operations are done more than before.
        arrays: what is computed again.
    """

    unknown: int
    peak: int
    flops: int
    arrays: list[Array]


def attach(module: ir.Module, record: Recomputed) -> None:
    """Stores what is computed again in a module."""
    module.operation.attributes[RECOMPUTED] = plain.write(record)


def attached(module: ir.Module) -> Recomputed:
    """Reads the attribute of a module."""
    attributes = module.operation.attributes
    found: Recomputed = plain.read(attributes[RECOMPUTED]) if RECOMPUTED in attributes else {}
    return found
