# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""What a block of buffer code computes and loads and stores, as a tree that sizes are put into later."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from graphc.ir.helpers import callee_of
from graphc.ir.work import Block
from graphc.library.helpers import BlockProduct, Draws, Gemm, Helper, KernelCall, ScalarCall
from graphc.passes.buffer._expressions import Expressions
from graphc.passes.buffer.memory._buffer_sizes import item_size
from graphc_dialects._mlir import ir

_ONE = frozenset(
    f"arith.{name}" for name in "addf subf mulf divf maximumf minimumf maxnumf minnumf".split()
) | {"math.sqrt"}
_COMPLEX = {"add": 2, "sub": 2, "mul": 6, "div": 11}
_COMPLEX_FUNCTIONS = frozenset("exp expm1 log log1p sin cos tan tanh sqrt rsqrt pow atan2 abs angle".split())
# Neither arithmetic nor a function worth counting: signs and roundings.
_FREE = frozenset(f"math.{name}" for name in "absf copysign floor ceil trunc round roundeven".split())
_WIDTHS = {"f64": "f64", "f32": "f32", "f16": "f32", "bf16": "f32"}
_MOVES = {"memref.load": "read", "memref.store": "written"}
LETTERS = {"s": ("f32", 1), "d": ("f64", 1), "c": ("f32", 4), "z": ("f64", 4)}


class Arithmetic:
    """Counts the arithmetic of blocks.

    Args:
        expressions: gains sizes and bounds; its variables are those of loops.
        helpers: by name, what the module declares.
    """

    def __init__(self, expressions: Expressions, helpers: Mapping[str, Helper]) -> None:
        self._expressions, self._helpers = expressions, helpers

    def block(self, operations: Sequence[ir.Operation]) -> Block:
        """The record of operations that run one after the other."""
        flops: dict[str, int] = {}
        functions: dict[str, int] = {}
        moved: dict[str, int] = {}
        parts: list[Block] = []
        for op in operations:
            if op.name in _MOVES:
                _add(moved, _MOVES[op.name], item_size(_memref_of(op).type.element_type) or 0)
            elif op.name == "memref.copy":
                parts.append(self._copy(op))
            if op.name == "func.call":
                self._call(op, functions, parts)
            elif op.name == "scf.for":
                parts.append(self._loop(op))
            elif len(op.regions):
                parts.append(self._regions(op))
            elif len(op.results):
                _count(op, flops, functions)
        return {"flops": flops, "functions": functions, "moved": moved, "parts": parts}

    def _copy(self, op: ir.Operation) -> Block:
        source = op.operands[0]
        sizes = [self._expressions.size(source, axis) for axis in range(source.type.rank)]
        item = item_size(source.type.element_type) or 0
        return {"times": sizes, "moved": {"read": item, "written": item}, "parts": []}

    def _loop(self, op: ir.Operation) -> Block:
        block = op.regions[0].blocks[0]
        variables = self._expressions.variables
        number = variables.setdefault(block.arguments[0], len(variables))
        bounds = [self._expressions.number(bound) for bound in list(op.operands)[:3]]
        return {"loop": number, "bounds": bounds, "body": self.block(operations_of(block))}

    def _regions(self, op: ir.Operation) -> Block:
        blocks = [self.block(operations_of(block)) for region in op.regions for block in region.blocks]
        if op.name == "scf.while":
            inside = [inner for region in op.regions for b in region.blocks for inner in operations_of(b)]
            return {"repeated": self.block(inside)}
        return {"either": blocks}

    def _call(self, op: ir.Operation, functions: dict[str, int], parts: list[Block]) -> None:
        helper = self._helpers.get(callee_of(op))
        if isinstance(helper, Gemm | BlockProduct):
            element, factor = LETTERS[helper.letter]
            sizes = [self._expressions.number(size) for size in product_sizes(op, helper)]
            parts.append({"times": sizes, "flops": {element: 2 * factor}, "functions": {}, "parts": []})
        elif isinstance(helper, ScalarCall):
            _add(functions, f"{helper.name} f64")
        elif isinstance(helper, KernelCall):
            parts.append({"unknown": helper.name})
        elif isinstance(helper, Draws):
            parts.append({"unknown": helper.symbol})


def operations_of(block: ir.Block) -> list[ir.Operation]:
    """The operations of a block."""
    return [op.operation for op in block.operations]


def product_sizes(op: ir.Operation, helper: Gemm | BlockProduct) -> list[ir.Value | int]:
    """Rows and columns of the result of a product, and the length of its sums."""
    return [*op.operands[2:5]] if isinstance(helper, Gemm) else [*helper.sizes]


def _memref_of(op: ir.Operation) -> ir.Value:
    return op.operands[0 if op.name == "memref.load" else 1]


def _add(counts: dict[str, int], key: str, number: int = 1) -> None:
    counts[key] = counts.get(key, 0) + number


def _count(op: ir.Operation, flops: dict[str, int], functions: dict[str, int]) -> None:
    kind = op.results[0].type
    name = op.name
    if isinstance(kind, ir.ComplexType):
        element = _WIDTHS.get(str(kind.element_type))
        short = name.removeprefix("complex.")
        if element is not None and short in _COMPLEX:
            _add(flops, element, _COMPLEX[short])
        elif element is not None and short in _COMPLEX_FUNCTIONS:
            _add(functions, f"complex {short} {element}")
        return
    element = _WIDTHS.get(str(kind))
    if element is None:
        return
    if name in _ONE:
        _add(flops, element)
    elif name == "math.fma":
        _add(flops, element, 2)
    elif name == "arith.remf":
        _add(functions, f"remainder {element}")
    elif name.startswith("math.") and name not in _FREE:
        _add(functions, f"{name.removeprefix('math.')} {element}")
    elif name in ("complex.abs", "complex.angle"):
        _add(functions, f"{name.replace('.', ' ')} {element}")
