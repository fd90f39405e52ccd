# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Loops over elements that lowering has written out."""

from __future__ import annotations

from graphc.ir import build
from graphc.ir.helpers import declared
from graphc.ir.lifetimes import VIEWS
from graphc.ir.value import larger, parts_of
from graphc.ir.walk import walk
from graphc.library.helpers import Helper
from graphc.passes import Pass
from graphc.passes.buffer.outline_loops import is_independent
from graphc.passes.gpu._host import is_arithmetic, is_of_host, replace_loops
from graphc.passes.gpu._kernel import Kernel, blocks_for
from graphc.passes.gpu._notation import global_position
from graphc.passes.gpu.gpu_numbers import place_for, read, write
from graphc_dialects._mlir import ir
from graphc_runtime.record import record

_ALLOWED = ("arith.", "math.", "complex.", "scf.for", "scf.if", "scf.while", "scf.yield", "scf.condition")
_ACCESSES = VIEWS | {"memref.load", "memref.store", "memref.dim"}
_BLOCKS = 1 << 16


@record()
class GpuLoops(Pass):
    """Makes a kernel of a loop of the host that contains loads, arithmetic and stores, and no nests.

    Iterations of which none touches what another one writes are shared by the threads of the grid. Others,
    such as additions to elements whose indices may repeat, and recurrences of one number, are run in order by
    one thread: right, deterministic, and slow. So are loops that end when a condition says so, if their
    states are numbers: the condition is computed where they are. The host reads numbers that a loop gives.

    Attributes:
        threads: threads of a block.
    """

    threads: int = 128

    stage = "buffer"

    def run(self, module: ir.Module) -> None:
        helpers = declared(module)

        def replace(op: ir.Operation) -> bool:
            if not _is_plain(op):
                return False
            self._lower(op, helpers)
            return True

        self.count("kernels", replace_loops(module, replace, ("scf.for", "scf.while")))

    def _lower(self, op: ir.Operation, helpers: dict[str, Helper]) -> None:
        parallel = op.name == "scf.for" and is_independent(op, helpers)
        kernel = Kernel(op, "loop")
        with kernel.host():
            one = build.const_index(1)
            grid, width = one, one
            if parallel:
                lower, upper, step = list(op.operands)[:3]
                count = parts_of(upper - lower, step)
                count = larger(count, 0)
                width = build.const_index(self.threads)
                grid = blocks_for(count, width, _BLOCKS)
        arrays = _read_back(op, kernel)
        with kernel.body():
            if parallel:
                first, stride = global_position()
                op.operands[0], op.operands[2] = lower + first * step, stride * step
            kernel.take(op)
            for result, array in arrays:
                write(result, array)
        kernel.launch([grid], [width])


def _is_plain(op: ir.Operation) -> bool:
    """True if a loop has only what one thread can do."""
    if any(isinstance(result.type, ir.MemRefType) for result in op.results):
        return False
    inside = walk(op)
    if not all(inner.name.startswith(_ALLOWED) or inner.name in _ACCESSES for inner in inside):
        return False
    if op.name == "scf.while" and all(is_of_host(inner) for inner in inside if is_arithmetic(inner)):
        return any(inner.name in ("memref.load", "memref.store") for inner in inside)
    return len(op.results) > 0 or any(inner.name == "memref.store" for inner in inside)


def _read_back(op: ir.Operation, kernel: Kernel) -> list[tuple[ir.Value, ir.Value]]:
    """The numbers that a loop gives, with arrays for them; what used them reads the arrays."""
    found: list[tuple[ir.Value, ir.Value]] = []
    for result in op.results:
        if next(iter(result.uses), None) is None:
            continue
        with kernel.host():
            array = place_for(result.type)
        with ir.InsertionPoint(op), op.location:
            result.replace_all_uses_with(read(array, result.type))
        found.append((result, array))
    return found
