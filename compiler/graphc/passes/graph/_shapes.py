# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""The rules of the shape-simplification pass, which outline-shapes uses too."""

from __future__ import annotations

from graphc.ir.checks import says_sizes, size_of
from graphc.ir.patterns import registrar
from graphc.ir.rewrite import Rewriter, RuleTable
from graphc.ir.views import MOVES_AXES, RESIZES, TAKES_PART, axes_order, bounds_of, repeated
from graphc_dialects._mlir import ir

RULES: RuleTable = {}
_rule = registrar(RULES)


@_rule("tensor.dim")
def resolved_dim(rw: Rewriter, op: ir.Operation) -> ir.Value | None:
    axis = rw.constant(op.operands[1])
    value = op.operands[0]
    if axis is None or not 0 <= axis < len(value.type.shape):
        return None
    size = value.type.shape[axis]
    if size < 0 and value not in rw.defs:
        return None
    if size < 0 and rw.dims.shape(value)[axis] == ("dim", value, axis) and not says_sizes(rw.defs[value]):
        return None
    if value in rw.defs:
        rw.measured.append(rw.defs[value])
    return size_of(rw, value, axis)


@_rule("tensor.extract")
def extract_of_from_elements(rw: Rewriter, op: ir.Operation) -> ir.Value | None:
    tensor, *indices = op.operands
    made = rw.defining(tensor, "tensor.from_elements")
    if made is None:
        return None
    position = 0
    for size, index in zip(tensor.type.shape, indices, strict=True):
        at = rw.constant(index)
        if at is None or not 0 <= at < size:
            return None
        position = position * size + at
    return made.operands[position]


_SCALAR_ARITHMETIC = {"graphc.add": "arith.addi", "graphc.sub": "arith.subi", "graphc.mul": "arith.muli"}


@_rule("tensor.extract")
def extract_of_arithmetic(rw: Rewriter, op: ir.Operation) -> ir.Value | None:
    """Arithmetic on 0-d int64 tensors that are arguments, literals or made of sizes is one on numbers."""
    tensor = op.operands[0]
    if len(op.operands) != 1 or str(op.results[0].type) != "i64" or tensor not in rw.defs:
        return None
    if not _is_made_of_numbers(rw, tensor):
        return None
    return _number(rw, tensor, op.results[0].type)


def _is_made_of_numbers(rw: Rewriter, tensor: ir.Value, depth: int = 16) -> bool:
    made = rw.defs.get(tensor)
    if made is None or len(tensor.type.shape):
        return made is None and not len(tensor.type.shape)
    if made.name in ("tensor.from_elements", "arith.constant"):
        return True
    operands = list(made.operands)
    return (made.name == "graphc.neg" or made.name in _SCALAR_ARITHMETIC) and all(
        depth and _is_made_of_numbers(rw, x, depth - 1) for x in operands
    )


def _number(rw: Rewriter, tensor: ir.Value, i64: ir.Type) -> ir.Value:
    made = rw.defs.get(tensor)
    if made is None:
        return rw.create("tensor.extract", [tensor], i64)
    if made.name == "tensor.from_elements":
        return made.operands[0]
    if made.name == "arith.constant":
        value = ir.IntegerAttr.get(i64, int(rw.constant(tensor)))
        return rw.create("arith.constant", [], i64, value=value)
    if made.name == "graphc.neg":
        zero = rw.create("arith.constant", [], i64, value=ir.IntegerAttr.get(i64, 0))
        return rw.create("arith.subi", [zero, _number(rw, made.operands[0], i64)], i64)
    a, b = (_number(rw, x, i64) for x in made.operands)
    return rw.create(_SCALAR_ARITHMETIC[made.name], [a, b], i64)


@_rule("arith.index_cast")
def index_cast_of_arithmetic(rw: Rewriter, op: ir.Operation) -> ir.Value | None:
    """Computes with sizes as index values: both wrap at 64 bits."""
    made = rw.defs.get(op.operands[0])
    if made is None or made.name not in _SCALAR_ARITHMETIC.values() or str(made.results[0].type) != "i64":
        return None
    index = op.results[0].type
    operands = [rw.create("arith.index_cast", [x], index) for x in made.operands]
    return rw.create(made.name, operands, index)


@_rule("arith.index_cast")
def index_cast_of_index_cast(rw: Rewriter, op: ir.Operation) -> ir.Value | None:
    """index -> i64 -> index; i64 -> index -> i64 is the same on the 64-bit targets there are."""
    inner = rw.defining(op.operands[0], "arith.index_cast")
    if inner is None or inner.operands[0].type != op.results[0].type:
        return None
    return inner.operands[0] if str(inner.results[0].type) in ("index", "i64") else None


def _least(rw: Rewriter, value: ir.Value, depth: int = 4) -> int | None:
    """A number that an index value is certainly not below, or None."""
    known = rw.constant(value)
    if known is not None:
        return int(known)
    op = rw.defining(value, "arith.addi")
    if op is not None and depth:
        parts = [_least(rw, x, depth - 1) for x in op.operands]
        if all(part is not None for part in parts):
            return sum(part for part in parts if part is not None)
    return 0 if rw.dims.is_size(value) else None


@_rule("arith.maxsi", "arith.minsi")
def decided_extreme(rw: Rewriter, op: ir.Operation) -> ir.Value | None:
    """`max(size, 0)` and `min(size + 1, 1)`, which are left of NumPy's rules for slices."""
    if not isinstance(op.results[0].type, ir.IndexType):
        return None
    a, b = op.operands
    for value, other in ((a, b), (b, a)):
        bound = rw.constant(other)
        least = _least(rw, value) if bound is not None else None
        if least is not None and least >= int(bound):
            return value if op.name == "arith.maxsi" else other
    return None


@_rule(*RESIZES)
def useless_resize(rw: Rewriter, op: ir.Operation) -> ir.Value | None:
    x = op.operands[0]
    rank = len(op.results[0].type.shape)
    if len(x.type.shape) != rank:
        return None
    sizes = [rw.dims.size(size) for size in list(op.operands)[1:]]
    have, result = rw.dims.shape(x), rw.dims.shape(op.results[0])
    return x if have == sizes and have == result else None


@_rule("second")
def second_as_broadcast(rw: Rewriter, op: ir.Operation) -> ir.Value:
    """`second(x, y)` needs only the sizes of x; as a broadcast of y it does not keep x alive."""
    x, y = op.operands
    # Where x has size 1, it is y that says how long the result is.
    sizes = [size_of(rw, y if size == 1 else x, axis) for axis, size in enumerate(x.type.shape)]
    if x in rw.defs:
        rw.measured.append(rw.defs[x])
    return repeated(y, sizes, op.results[0].type, rw.create)


@_rule(*MOVES_AXES)
def useless_dimshuffle(rw: Rewriter, op: ir.Operation) -> ir.Value | None:
    x = op.operands[0]
    return x if axes_order(op) == list(range(len(x.type.shape))) else None


@_rule(*TAKES_PART)
def useless_slice(rw: Rewriter, op: ir.Operation) -> ir.Value | None:
    x, bounds = op.operands[0], bounds_of(op)
    if any(rw.constant(bound.offset) != 0 for bound in bounds):
        return None
    keys = [rw.dims.size(bound.size) for bound in bounds]
    if any(rw.constant(b.stride) != 1 and key != 1 for b, key in zip(bounds, keys, strict=True)):
        return None
    return x if keys == rw.dims.shape(x) else None


@_rule("tensor.cast")
def useless_tensor_cast(rw: Rewriter, op: ir.Operation) -> ir.Value | None:
    x = op.operands[0]
    return x if x.type == op.results[0].type else None
