# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Elementary functions as arithmetic that vectorises."""

from __future__ import annotations

from collections.abc import Collection
from typing import Any

from graphc.ir import build
from graphc.ir.build import constant_value
from graphc.ir.diagnostics import fail
from graphc.ir.lifetimes import root_of
from graphc.ir.value import smaller
from graphc.ir.walk import (
    copy_with,
    functions,
    is_defined_in,
    is_used_once,
    named_attributes,
    static_steps,
    walk,
    walk_for,
)
from graphc.lowering.carried import loop
from graphc.lowering.loops import APART
from graphc.lowering.math import HALVES, Builder, expansions
from graphc.lowering.math.builder import F32, F64
from graphc.passes import Pass
from graphc_dialects._mlir import ir
from graphc_runtime.record import record

_CALLABLE = frozenset(
    f"math.{name}" for name in "exp exp2 log log2 log10 tanh sinh cosh asin acos atan erf".split()
)

WIDE = "graphc.wide"
# Loops of at most so many elements, one of the widest vectors, are as well done with two shorter ones.
_FEW = 8
# So many operations of floating-point numbers an element are much: reading and writing takes less time.
_MUCH = 16
_ARITHMETIC = frozenset(f"arith.{name}f" for name in ("add", "sub", "mul", "div")) | {"math.fma", "math.sqrt"}
# Elements that are computed side by side, and then stored where they lie apart: they fit the first cache.
_STRIP = 256
# Elements of the loops that become vectors: how many at most, and of which types.
_SHORT, _LANES = 16, frozenset("f64 f32 f16 i64 i32 i16 i8 i1".split())
# So many sums are held in registers; operations of one, and what keeps LLVM from masks, for which loads wait.
_FEW_SUMS, _SUM = 5, 4
_SCALAR = "#llvm.loop_annotation<vectorize = <width = 1 : i32>, interleave = <count = 1 : i32>>"
_LOOPS_AND_CALLS = frozenset({"scf.for", "scf.while", "scf.parallel", "func.call", "llvm.call"})


@record()
class ExpandMath(Pass):
    """Replaces elementary functions on f16, f32 and f64 values by branch-free arithmetic.

    A call of libm in a loop body keeps LLVM from vectorising the loop. The expansions consist of
    arithmetic, bit operations, selects and fused multiply-add only, without fast-math flags, and are
    accurate to 2 units in the last place with IEEE special values (docs/math.md has the table). f16 is
    computed in f32. Functions with no expansion stay calls; `graphc.backends.cpu.object` tells LLVM about
    vector variants of those in glibc's libmvec. Operands may be scalars or vectors.

    A loop that computes much, and stores it where neighbours lie apart (a column, a transposed part), is not
    vectorised as it is. It becomes one over strips: 256 elements are computed in an array on the stack, and
    then stored.

    `graphc.wide` on the module says that a loop over elements has an expansion, or sixteen operations of
    arithmetic, which is the case for the widest vectors that a processor has (see
    `graphc.backends.cpu.object.Machine.wide`). Functions without such a loop are marked for vectors of at
    most 32 bytes then.

    Attributes:
        keep: names of functions to leave as calls, separated by commas, such as `exp,log`.
        limit: above this number of expansions in a module, functions whose library calls are accurate stay
            calls: hundreds of inline copies would take LLVM seconds to compile.
    """

    keep: str = ""
    limit: int = 48

    stage = "buffer"

    def run(self, module: ir.Module) -> None:
        table = dict(expansions())
        for name in filter(None, self.keep.split(",")):
            if table.pop(f"math.{name}", None) is None:
                known = ", ".join(sorted(key.removeprefix("math.") for key in expansions()))
                fail(
                    module.operation,
                    f"option keep names '{name}', which has no expansion; these have: {known}",
                )
        found, loops = _found(module, table)
        if len(found) > self.limit:
            # expm1 and log1p are not among these: upstream lowers them to formulas that cancel near 0.
            self.count("left as calls", sum(op.name in _CALLABLE for op in found))
            found = [op for op in found if op.name not in _CALLABLE]
        expanded = {op.name for op in found}
        for apart in loops:
            if APART in apart.attributes and _computes_much(apart, expanded):
                self.count("loops in strips", _in_strips(apart))
            elif constant_value(apart.operands[1]) is not None and _function(apart) and _as_vector(apart):
                self.count("loops of one vector")
        if any(self.statistics.get(made) for made in ("loops in strips", "loops of one vector")):
            found, loops = _found(module, expanded)
        _mark(module, loops, expanded)
        for op in found:
            self._expand(op, table[op.name])

    def _expand(self, op: ir.Operation, expansion: Any) -> None:
        operand = op.operands[0]
        element = operand.type.element_type if isinstance(operand.type, ir.VectorType) else operand.type
        if not isinstance(element, (ir.F64Type, ir.F32Type, ir.F16Type)):
            return
        ip = ir.InsertionPoint(op)
        half = isinstance(element, ir.F16Type)
        wide = _with_element(operand.type, ir.F32Type.get()) if half else operand.type
        builder = Builder(ip, op.location, wide, F64 if isinstance(element, ir.F64Type) else F32)
        if half or _is_of_half(op):
            expansion = HALVES.get(op.name, expansion)
        if half:
            operand = builder.create("arith.extf", wide, [operand])
        value = expansion(builder, builder.number(operand)).value
        if half:
            value = builder.create("arith.truncf", op.results[0].type, [value])
        op.results[0].replace_all_uses_with(value)
        op.erase()
        self.count(f"expanded {expansion.__name__}")


def _is_of_half(op: ir.Operation) -> bool:
    """True if a function in float32 is one of a float16, and its value becomes one."""
    source, half = op.operands[0].owner, ir.F16Type.get()
    return (
        not isinstance(source, ir.Block)
        and source.name == "arith.extf"
        and source.operands[0].type == half
        and all(
            x.owner.name == "arith.truncf" and x.owner.results[0].type == half for x in op.results[0].uses
        )
    )


def is_wide(module: ir.Module) -> bool:
    """True if a loop over elements computes enough for the widest vectors."""
    return WIDE in module.operation.attributes


def _found(module: ir.Module, names: Collection[str]) -> tuple[list[ir.Operation], list[ir.Operation]]:
    """The elementary functions of some names, and the loops, found in one walk."""
    found = walk_for(module.operation, {*names, "scf.for"})
    return [op for op in found if op.name != "scf.for"], [op for op in found if op.name == "scf.for"]


def _mark(module: ir.Module, loops: list[ir.Operation], expanded: set[str]) -> None:
    """Says which functions take the widest vectors: those with a loop that computes much.

    Args:
        module: is marked.
        loops: those in it.
        expanded: names of the functions that become arithmetic.
    """
    wide = [_function(loop) for loop in loops if _computes_much(loop, expanded)]
    if not any(wide):
        return
    module.operation.attributes[WIDE] = ir.UnitAttr.get()
    for function in functions(module):
        if function not in wide:
            function.attributes["llvm.passthrough"] = ir.Attribute.parse('[["prefer-vector-width", "256"]]')


def _function(op: ir.Operation) -> ir.Operation | None:
    """The function that an operation is in; None for kernels of devices."""
    while op.name not in ("func.func", "gpu.func"):
        op = op.parent.operation
    return op if op.name == "func.func" else None


def _computes_much(loop: ir.Operation, expanded: set[str]) -> bool:
    """True if an innermost loop has an elementary function, or much arithmetic, that does not wait for the
    iteration before.
    """
    block = loop.regions[0].blocks[0]
    waits = set[ir.Value](list(block.arguments)[1:])
    arithmetic, much = 0, False
    for other in block.operations:
        inside = walk(other.operation) if len(other.regions) and other.name not in _LOOPS_AND_CALLS else []
        names = [other.name, *(inner.name for inner in inside)]
        if not _LOOPS_AND_CALLS.isdisjoint(names):
            return False
        operands = [*other.operands, *(value for inner in inside for value in inner.operands)]
        if not waits.isdisjoint(operands):
            waits.update(other.results)
            continue
        much = much or not expanded.isdisjoint(names)
        arithmetic += sum(name in _ARITHMETIC for name in names)
    steps = static_steps(loop) if much or arithmetic >= _MUCH else 0
    return steps is None or steps > _FEW


def _in_strips(apart: ir.Operation) -> bool:
    """Makes an innermost loop one over strips, in which one loop computes and another one stores."""
    block = apart.regions[0].blocks[0]
    variable = block.arguments[0]
    stores = [op.operation for op in block.operations if op.operation.name == "memref.store"]
    addresses = [list(store.operands)[1:] for store in stores]
    if not stores or any(is_defined_in(x, block) for address in addresses for x in address):
        return False
    start, stop, one = list(apart.operands)[:3]
    with apart.location:
        kinds = [ir.MemRefType.get([_STRIP], store.operands[0].type) for store in stores]
        strips = [build.stack_memory(kind, apart) for kind in kinds]
    with ir.InsertionPoint(apart), apart.location:
        _, outer = loop(stop, [], start=start, step=build.const_index(_STRIP))
    with ir.InsertionPoint(outer), apart.location:
        first = outer.arguments[0]
        apart.operands[0], apart.operands[1] = build.const_index(0), smaller(stop - first, _STRIP)
        stored, inner = loop(apart.operands[1], [], step=one)
        build.create("scf.yield", [], [])
    apart.move_before(stored)
    with ir.InsertionPoint(inner), apart.location:
        number = inner.arguments[0]
        position = first + number
        for store, strip, (memory, *where) in zip(stores, strips, addresses, strict=True):
            value = build.create("memref.load", [store.operands[0].type], [strip, number]).result
            build.create(
                "memref.store", [], [value, memory, *[position if x == variable else x for x in where]]
            )
        build.create("scf.yield", [], [])
    # The variable counts from the start of the strip from here on.
    with ir.InsertionPoint.at_block_begin(block), apart.location:
        position = first + variable
    variable.replace_all_uses_except(position, position.owner.operation)
    for store, strip in zip(stores, strips, strict=True):
        with ir.InsertionPoint(store), store.location:
            build.create("memref.store", [], [store.operands[0], strip, variable])
        store.erase()
    return True


def _as_vector(short: ir.Operation) -> bool:
    """Makes a loop over a few elements that lie side by side operations on one vector, if it can be.

    LLVM does not: it would have to compare addresses first, which takes longer than so few iterations. All
    elements are read before one is stored, as an operation on arrays demands. Lanes are what the elements
    were, bit for bit; sums of them whose order is free are those of a vector. So a row that was stored as one
    vector is read as one: the load of a vector waits until numbers stored one by one are in the cache. A few
    sums over the iterations of a loop around it stay numbers, which LLVM holds in registers. It makes vectors
    over a loop around it with no other in it, if one array is stored, and not in the place of what is read.
    """
    block = short.regions[0].blocks[0]
    (variable, *states), (*operations, last) = block.arguments, (op.operation for op in block.operations)
    count, (low, _, step, *initial) = static_steps(short) or 0, short.operands
    sums = [x.owner for x in last.operands]
    operations = [op for op in operations if op not in sums]
    written = {root_of(op.operands[1]) for op in operations if op.name == "memref.store"}
    is_short = 1 < count <= _SHORT and constant_value(step) == 1 and all(map(_is_sum, sums, states))
    if not is_short or not written or not all(_is_lanewise(op, variable, written) for op in operations):
        return False
    read = {root_of(op.operands[0]) for op in operations if op.name == "memref.load"}
    if states and len(written) < 2 and written.isdisjoint(read) and _is_alone(short):
        return False
    moves = any(is_defined_in(x, short.block) for x in list(operations[-1].operands)[1:])
    if count <= _FEW_SUMS and len(operations) == _SUM and not written.isdisjoint(read) and not moves:
        short.attributes["loop_annotation"] = ir.Attribute.parse(_SCALAR)
        return False
    new, vectors = dict[ir.Value, ir.Value]({variable: low}), dict[ir.Value, ir.Value]()

    def given(x: ir.Value) -> ir.Value:
        if str(x.type) not in _LANES:
            return new.get(x, x)
        if x not in vectors:
            kind = ir.VectorType.get([count], x.type)
            vectors[x] = build.create("vector.broadcast", [kind], [new.get(x, x)]).result
        return vectors[x]

    for op in operations:
        with ir.InsertionPoint(short), op.location:
            if len(op.results) and variable not in op.operands and vectors.keys().isdisjoint(op.operands):
                copy_with(op, new)
                continue
            kinds = [ir.VectorType.get([count], x.type) for x in op.results]
            name, operands = op.name.replace("memref.", "vector."), list(map(given, op.operands))
            made = ir.Operation.create(name, kinds, operands, named_attributes(op))
            vectors.update(zip(op.results, made.results, strict=True))
    for op, state, start, total in zip(sums, states, initial, short.results, strict=True):
        (term,) = (x for x in op.operands if x != state)
        with ir.InsertionPoint(short), op.location:
            flags = {"kind": ir.Attribute.parse("#vector.kind<add>"), "fastmath": op.attributes["fastmath"]}
            made = build.create("vector.reduction", [total.type], [given(term), start], **flags)
            total.replace_all_uses_with(made.result)
    short.erase()
    return True


def _is_alone(short: ir.Operation) -> bool:
    """True if a loop is the only one in a loop."""
    return short.parent.name == "scf.for" and sum(op.name == "scf.for" for op in short.block.operations) == 1


def _is_sum(op: ir.Operation | ir.Block, state: ir.Value) -> bool:
    """True if the iterations of a loop add up numbers in any order."""
    if isinstance(op, ir.Block) or op.name != "arith.addf" or "reassoc" not in str(op.attributes["fastmath"]):
        return False
    return state in op.operands and is_used_once(state) and is_used_once(op.results[0])


def _is_lanewise(op: ir.Operation, variable: ir.Value, written: Collection[ir.Value]) -> bool:
    """True if an operation of a loop does to each lane what it does to a number."""
    if op.name.startswith(("arith.", "math.")):
        return all(str(x.type) in _LANES for x in (*op.operands, *op.results))
    if op.name not in ("memref.load", "memref.store"):
        return False
    number, buffer, *indices = list(op.results) + list(op.operands)
    if variable not in indices:
        return len(op.results) > 0 and root_of(buffer) not in written
    is_last = indices.index(variable) == len(indices) - 1 and str(number.type) in _LANES - {"i1"}
    return is_last and ir.MemRefType(buffer.type).get_strides_and_offset()[0][-1] == 1


def _with_element(value_type: ir.Type, element: ir.Type) -> ir.Type:
    return ir.VectorType.get(value_type.shape, element) if isinstance(value_type, ir.VectorType) else element
