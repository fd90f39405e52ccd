# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Reductions of whole arrays."""

from __future__ import annotations

import math

from graphc.ir.walk import functions, walk
from graphc.passes.gpu._nest import Nest
from graphc.passes.gpu._parts import in_parts, reduce_in_parts
from graphc.passes.manager.base import Pass
from graphc_dialects._mlir import ir
from graphc_runtime.record import record

# What one block does in less time than a launch takes.
_SMALL = 16384


@record()
class GpuWhole(Pass):
    """Splits reductions of all elements of an array over the grid.

    Blocks reduce parts of the array and write one element each; a nest that reduces these follows, for
    `graphc-gpu-rows`, which also takes what is done to the result. The number of blocks follows from the
    size: equal calls give equal bits. Arrays that are contiguous and aligned are read 16 bytes at a time,
    with one accumulator an element of a vector. Arrays of known size that one block reduces quickly stay as
    they are.

    Attributes:
        threads: threads of a block.
        blocks: the most blocks.
    """

    threads: int = 256
    blocks: int = 1024

    stage = "buffer"

    def run(self, module: ir.Module) -> None:
        for function in functions(module):
            for op in [op for op in walk(function) if op.name == "linalg.generic"]:
                nest = Nest(op)
                if nest.rank and all(nest.reduction) and not self._is_small(nest):
                    parts = in_parts(nest)
                    if parts is not None:
                        reduce_in_parts(parts, threads=self.threads, blocks=self.blocks)
                        self.count("kernels")

    def _is_small(self, nest: Nest) -> bool:
        sizes = [nest.static_extent(axis) for axis in range(nest.rank)]
        known = [size for size in sizes if size is not None]
        return len(known) == len(sizes) and math.prod(known) <= _SMALL
