# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Matrix products on buffers: the call of BLAS and the choice between it and loops."""

from __future__ import annotations

from typing import Any

from graphc.lowering import build
from graphc.lowering.loops import is_contiguous, loop
from graphc_dialects._mlir import ir


def lower_matmul(module: Any, op: Any, suffixes: dict[str, str], threshold: int) -> bool:
    """Lowers one product; returns whether a BLAS call was emitted.

    `op` is a `linalg.generic` on buffers with the attribute `graphc.matmul` = (transpose a, transpose b). Its
    result buffer has already been filled with zeros, which the call keeps as the accumulator (beta = 1).
    """
    a, b, c = op.operands
    element = str(ir.MemRefType(c.type).element_type)
    if element not in suffixes or not all(is_contiguous(x) for x in (a, b, c)):
        return False
    flags = list(ir.DenseBoolArrayAttr(op.attributes["graphc.matmul"]))
    with ir.InsertionPoint(op), op.location:
        rank = ir.MemRefType(c.type).rank
        m, n = build.dim(c, rank - 2), build.dim(c, rank - 1)
        k = build.dim(a, rank - 2 if flags[0] else rank - 1)
        work = _static_product(m, n, k)
        if work is not None and work <= threshold:
            return False
        symbol = _declare(module, suffixes[element])
        _batched(symbol, (a, b, c), (m, n, k), flags, [])
    op.erase()
    return True


def _static_product(*sizes: Any) -> int | None:
    total = 1
    for size in sizes:
        number = build.constant_value(size)
        if number is None:
            return None
        total *= number
    return total


def _batched(
    symbol: str,
    buffers: tuple[Any, Any, Any],
    sizes: tuple[Any, Any, Any],
    flags: list[bool],
    batch: list[Any],
) -> None:
    """Loops over the batch dimensions around one gemm."""
    rank = ir.MemRefType(buffers[2].type).rank
    if len(batch) < rank - 2:
        _, block = loop(build.dim(buffers[2], len(batch)), [])
        with ir.InsertionPoint(block):
            _batched(symbol, buffers, sizes, flags, [*batch, block.arguments[0]])
            build.create("scf.yield", [], [])
        return
    i64 = ir.IntegerType.get_signless(64)
    flag_values = [
        build.create("arith.constant", [i64], [], value=ir.IntegerAttr.get(i64, int(flag))).result
        for flag in flags
    ]
    numbers = [build.create("arith.index_cast", [i64], [size]).result for size in sizes]
    addresses = [build.create("arith.index_cast", [i64], [_address(x, batch)]).result for x in buffers]
    build.create(
        "func.call", [], [*flag_values, *numbers, *addresses], callee=ir.FlatSymbolRefAttr.get(symbol)
    )


def _address(buffer: Any, batch: list[Any]) -> Any:
    """Address, as an index, of the matrix at a batch position."""
    memref = ir.MemRefType(buffer.type)
    base = build.create("memref.extract_aligned_pointer_as_index", [build.index_type()], [buffer]).result
    if not batch:
        return base
    offset = build.const_index(0)
    for axis, position in enumerate(batch):
        offset = build.index_op("addi", build.index_op("muli", offset, build.dim(buffer, axis)), position)
    for axis in (memref.rank - 2, memref.rank - 1):
        offset = build.index_op("muli", offset, build.dim(buffer, axis))
    size = {"f32": 4, "f64": 8, "complex<f32>": 8, "complex<f64>": 16}[str(memref.element_type)]
    return build.index_op("addi", base, build.index_op("muli", offset, build.const_index(size)))


def _declare(module: Any, suffix: str) -> str:
    """Declares `graphc_<suffix>gemm(ta, tb, m, n, k, a, b, c)`; code generation defines it."""
    symbol = f"graphc_{suffix}gemm"
    names = [
        ir.StringAttr(op.operation.attributes["sym_name"]).value
        for op in module.body.operations
        if "sym_name" in op.operation.attributes
    ]
    if symbol not in names:
        declaration = f"func.func private @{symbol}(i64, i64, i64, i64, i64, i64, i64, i64)"
        ir.InsertionPoint.at_block_begin(module.body).insert(ir.Operation.parse(declaration))
    return symbol
