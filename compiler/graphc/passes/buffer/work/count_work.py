# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Counts of arithmetic and of memory traffic, for ``f.report.roofline()``."""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from graphc.ir import plain
from graphc.ir.helpers import callee_of, declared
from graphc.ir.locations import node_of
from graphc.ir.walk import functions, walk
from graphc.ir.work import Block, Kernel, Work
from graphc.library.helpers import BlockProduct, Draws, Gemm, Helper, KernelCall
from graphc.passes.buffer._expressions import Expressions
from graphc.passes.buffer.work._arithmetic import Arithmetic, operations_of
from graphc.passes.buffer.work._traffic import Traffic
from graphc.passes.buffer.work._weights import weights
from graphc.passes.manager.base import Pass
from graphc_dialects._mlir import ir

WORK = "graphc.work"
_LOOPS = ("scf.for", "scf.while", "scf.parallel")
_CALLS = (Gemm, BlockProduct, KernelCall, Draws)


class CountWork(Pass):
    """Counts what each loop nest and each call of `@main` computes and moves.

    The module attribute `graphc.work` gets a record of each, in the order of the code: floating-point
    operations by element type, functions such as `exp` by name, and the elements that are read and written.
    Counts are trees of loops, whose bounds are expressions of the sizes of arguments; what runs between
    loops is a record of its own.

    * An addition, a multiplication, a division, a comparison that gives a number and a square root are one
      operation, a fused multiply-add two, a product of sizes m, n, k has 2 m n k.
    * An element that a kernel reads or writes many times counts once, and one that it reads after writing it
      only as written: the least that has to be moved if caches are large enough.
    * `weights` says how many operations the inline code of a function has.

    Changes nothing else. Runs before places in the workspace are decided, when a buffer is an allocation.

    Source: Williams, Waterman and Patterson, "Roofline: an insightful visual performance model" (2009).
    """

    stage = "buffer"

    def run(self, module: ir.Module) -> None:
        main = next((f for f in functions(module) if _name(f) == "main"), None)
        if main is None:
            return
        work = _Work(declared(module))
        work.visit(operations_of(main.regions[0].blocks[0]))
        module.operation.attributes[WORK] = plain.write(work.record())
        self.count("kernels", len(work.kernels))


def _name(function: ir.Operation) -> str:
    return str(ir.StringAttr(function.attributes["sym_name"]).value)


def attached(module: ir.Module) -> list[Work]:
    """The counts of a module; none where nobody asked for them."""
    attributes = module.operation.attributes
    return [plain.read(attributes[WORK])] if WORK in attributes else []


class _Work:
    """Records of all kernels of a function."""

    def __init__(self, helpers: Mapping[str, Helper]) -> None:
        self._helpers = helpers
        self._expressions = Expressions()
        self._roots: dict[ir.Value, int] = {}
        self._arithmetic = Arithmetic(self._expressions, helpers)
        self.kernels: list[Kernel] = []

    def visit(self, operations: list[ir.Operation]) -> None:
        """Adds the kernels among operations, also of conditionals, and one of what stands between them."""
        between = []
        for op in operations:
            if self._is_kernel(op):
                what = "loop" if op.name in _LOOPS else callee_of(op) or "copy"
                self._add(what, [op])
            elif op.name == "scf.if":
                for region in op.regions:
                    for block in region.blocks:
                        self.visit(operations_of(block))
            else:
                between.append(op)
        self._add("scalars", [op for op in between if node_of(op)])

    def _is_kernel(self, op: ir.Operation) -> bool:
        if op.name == "func.call":
            return isinstance(self._helpers.get(callee_of(op)), _CALLS)
        return op.name in _LOOPS or op.name == "memref.copy"

    def _add(self, what: str, operations: list[ir.Operation]) -> None:
        traffic = Traffic(self._expressions, self._helpers, self._roots)
        for op in operations:
            traffic.visit(op)
        body = self._arithmetic.block(operations)
        places = list(traffic.places.values())
        if places or body["flops"] or body["functions"] or body["parts"]:
            nodes = dict.fromkeys(filter(None, map(node_of, _all(operations))))
            self.kernels.append({"what": what, "nodes": list(nodes), "body": body, "places": places})

    def record(self) -> Work:
        """What the module's attribute says."""
        roots = [
            [self._expressions.size(root, axis) for axis in range(root.type.rank)]
            if isinstance(root.type, ir.MemRefType)
            else [self._expressions.number(None)]
            for root in self._roots
        ]
        named = {name for kernel in self.kernels for name in _functions(kernel["body"])}
        return {
            "expressions": self._expressions.nodes,
            "roots": roots,
            "kernels": self.kernels,
            "weights": weights(sorted(named)),
        }


def _all(operations: list[ir.Operation]) -> Iterator[ir.Operation]:
    for op in operations:
        yield op
        yield from walk(op)


def _functions(block: Block) -> Iterator[str]:
    """The functions in a record and in all of its parts."""
    yield from block.get("functions", ())
    for part in (*block.get("parts", ()), *block.get("either", ())):
        yield from _functions(part)
    yield from _functions(block["body"]) if "body" in block else ()
    yield from _functions(block["repeated"]) if "repeated" in block else ()
