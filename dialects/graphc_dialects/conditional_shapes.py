# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Sizes of what upstream's `scf.if`, `arith.select` and `tensor.empty` give, computed before them."""

from typing import Any

from graphc_dialects._base import const_index, constant_value, dim_of
from graphc_dialects._mlir import ir
from graphc_dialects.check import checks_in
from graphc_dialects.walk import is_inside, walk

CONDITIONALS = frozenset({"scf.if", "arith.select", "tensor.empty"})
_FAIL = ("arith.div", "arith.rem", "arith.ceildiv", "arith.floordiv")
_SCALAR_WORK = frozenset(
    f"graphc.{name}"
    for name in "add sub mul neg abs cast maximum minimum switch eq ne lt le gt ge and or logical_not".split()
)
_KEEP_SIGN = frozenset(f"arith.{name}" for name in "addi muli minsi select".split())


class UnknownSize(Exception):
    """A size inside a region depends on what only the region can tell."""


def results_of_regions(conditional: Any, number: int) -> list[Any]:
    """Operands of each region's `scf.yield` that an `scf.if` gives as result `number`."""
    return [block.operations[-1].operands[number] for block in blocks_of(conditional)]


def read_results(value: Any) -> list[Any]:
    """The values that a result of an `scf.if` may be; those that nobody reads only if there are no others."""
    values = results_of_regions(value.owner, ir.OpResult(value).result_number)
    return [x for x in values if not is_unread(x)] or values


def blocks_of(conditional: Any) -> list[Any]:
    """The blocks of the regions of an `scf.if`; there may be no second one."""
    return [region.blocks[0] for region in conditional.regions if len(region.blocks)]


def conditional_size(value: Any, axis: int) -> Any:
    """Index value with the size of a tensor that one of `CONDITIONALS` defines, at the insertion point.

    The insertion point is where the operation's operands are visible. `tensor.empty` in a region of `scf.if`
    stands for a value that nobody reads: the other region's size is the result's. Where a region's size needs
    work that must not be done before it, an `scf.if` computes it in copies of both regions.
    """
    known = value.type.shape[axis]
    op = value.owner.operation
    if known >= 0:
        return const_index(known)
    if op.name == "tensor.empty":
        return op.operands[sum(size < 0 for size in value.type.shape[:axis])]
    if op.name == "arith.select":
        condition, *values = op.operands
        sizes = [dim_of(x, axis) for x in values]
        return _select(condition, sizes)
    return _Sizes(op).size(ir.OpResult(value).result_number, axis)


def _select(condition: Any, sizes: list[Any]) -> Any:
    if len(sizes) == 1 or same_size(*sizes):
        return sizes[0]
    return _create("arith.select", [condition, *map(_not_negative, sizes)])


class _Sizes:
    """Sizes of the results of one `scf.if`, before it."""

    def __init__(self, op: Any) -> None:
        self._op = op

    def size(self, number: int, axis: int) -> Any:
        values = results_of_regions(self._op, number)
        read = [x for x in values if not is_unread(x)] or values
        inside = {x: self._in_region(x, axis) for x in read}
        try:
            sizes = [self._outside(inside[x], {}) for x in read]
        except UnknownSize:
            return self._by_regions([inside.get(x) for x in values])
        for block in blocks_of(self._op):
            _erase_sizes(block)
        return _select(self._op.operands[0], sizes)

    # -- in a region -----------------------------------------------------------------------------------------

    def _in_region(self, value: Any, axis: int) -> Any:
        """The size as an index value of the region that yields the value."""
        if not is_inside(value, self._op):
            return dim_of(value, axis)
        block = value.owner.operation.block
        with ir.InsertionPoint(block.operations[-1]):
            return self._resolved_size(value, axis)

    def _resolved_size(self, value: Any, axis: int) -> Any:
        if value.type.shape[axis] >= 0 or not is_inside(value, self._op):
            return dim_of(value, axis)
        op = value.owner.operation
        try:
            if op.name == "tensor.cast":
                return self._resolved_size(op.operands[0], axis)
            if op.name in CONDITIONALS:
                return self._resolved(conditional_size(value, axis))
            if op.name.startswith("graphc."):
                return self._resolved(op.opview.reify(axis, ir.OpResult(value).result_number))
        except (UnknownSize, NotImplementedError):
            pass
        return dim_of(value, axis)

    def _resolved(self, size: Any) -> Any:
        """An index value with sizes in terms of sizes, as far as these are from outside."""
        if not is_inside(size, self._op):
            return size
        op = size.owner.operation
        axis = _literal_axis(op)
        if axis is not None:
            return self._resolved_size(op.operands[0], axis)
        if not op.name.startswith("arith."):
            return size
        operands = [self._resolved(x) for x in op.operands]
        if operands == list(op.operands):
            return size
        copy = op.clone(ip=ir.InsertionPoint.current).operation
        for position, operand in enumerate(operands):
            copy.operands[position] = operand
        return copy.results[0]

    # -- before it -------------------------------------------------------------------------------------------

    def _outside(self, value: Any, memo: dict[Any, Any]) -> Any:
        """A value of a region computed before it; UnknownSize where that could fail or is no index code."""
        if not is_inside(value, self._op):
            return value
        if value not in memo:
            op = value.owner.operation
            if not may_run_anywhere(op):
                raise UnknownSize(f"the size of a result of scf.if depends on {op.name}")
            operands = [self._outside(x, memo) for x in op.operands]
            copy = op.clone(ip=ir.InsertionPoint.current).operation
            for position, operand in enumerate(operands):
                copy.operands[position] = operand
            memo[value] = copy.results[0]
        return memo[value]

    def _by_regions(self, sizes: list[Any]) -> Any:
        """An `scf.if` of copies of the regions, checks included, of which only what the sizes need stays."""
        copy = self._op.clone(ip=ir.InsertionPoint.current).operation
        new = ir.Operation.create("scf.if", [ir.IndexType.get()], [self._op.operands[0]], regions=2)
        twins = dict(zip(_results_below(self._op), _results_below(copy), strict=True))
        blocks = blocks_of(copy)
        for block, region, size in zip(blocks, new.regions, sizes, strict=True):
            block.append_to(region)
            end = block.operations[-1].operation
            with ir.InsertionPoint(end):
                result = const_index(0) if size is None else _not_negative(twins.get(size, size))
                ir.Operation.create("scf.yield", [], [result])
            end.erase()
        copy.erase()
        _erase_unused(new)
        return new.results[0]


def is_unread(value: Any) -> bool:
    """True for what a region yields for a value of the other one. Upstream's canonicalization gives a
    `tensor.empty` without elements a static size, and casts it.
    """
    owner = value.owner
    while not isinstance(owner, ir.Block) and owner.name == "tensor.cast":
        owner = owner.operands[0].owner
    return not isinstance(owner, ir.Block) and owner.name == "tensor.empty"


def _literal_axis(op: Any) -> int | None:
    """The axis of a `tensor.dim`, if it is a literal."""
    if isinstance(op, ir.Block) or op.name != "tensor.dim":
        return None
    return constant_value(op.operands[1])


def may_run_anywhere(op: Any) -> bool:
    """True if an operation is index code, or arithmetic on one element, that cannot fail."""
    name = op.name
    if len(op.regions) or name == "tensor.empty":
        return False
    if name == "tensor.extract":
        return len(op.operands) == 1
    if name.startswith("graphc.") and name not in _SCALAR_WORK and name != "graphc.constant":
        return False
    if name.startswith(_FAIL):
        return False
    if name == "tensor.dim":
        return True
    values = [*op.operands, *op.results]
    return all(all(size == 1 for size in getattr(x.type, "shape", ())) for x in values)


def origin(size: Any) -> Any:
    """A size in terms of what the tensor that has it was made of, as far as that goes."""
    while (axis := _literal_axis(size.owner)) is not None:
        value = size.owner.operands[0]
        op = value.owner
        if isinstance(op, ir.Block):
            break
        if op.name == "tensor.cast":
            size = dim_of(op.operands[0], axis)
        elif op.name.startswith("graphc."):
            try:
                size = op.opview.reify(axis, ir.OpResult(value).result_number)
            except (UnknownSize, NotImplementedError):
                break
        else:
            break
    return size


def same_size(a: Any, b: Any) -> bool:
    """True if two index values are certainly equal."""
    if a == b:
        return True
    x, y = a.owner, b.owner
    if isinstance(x, ir.Block) or isinstance(y, ir.Block):
        return False
    if x.name != y.name or len(x.operands) != len(y.operands) or len(x.operation.regions):
        return False
    if x.name == "arith.constant":
        return bool(x.attributes["value"] == y.attributes["value"])
    if not x.name.startswith("arith.") and x.name != "tensor.dim":
        return False
    attributes = [{name: op.attributes[name] for name in op.attributes} for op in (x, y)]
    return attributes[0] == attributes[1] and all(
        same_size(p, q) for p, q in zip(x.operands, y.operands, strict=True)
    )


def _not_negative(size: Any) -> Any:
    """The size, or 0 where a check in the region is going to refuse it."""
    return size if _is_size(size) else _create("arith.maxsi", [size, const_index(0)])


def _is_size(value: Any) -> bool:
    owner = value.owner
    if isinstance(owner, ir.Block):
        return False
    if owner.name == "arith.constant":
        return (constant_value(value) or 0) >= 0
    if owner.name == "arith.maxsi":
        return any(_is_size(x) for x in owner.operands)
    if owner.name in _KEEP_SIGN:
        return all(_is_size(x) for x in owner.operands if isinstance(x.type, ir.IndexType))
    return bool(owner.name == "tensor.dim")


def _create(name: str, operands: list[Any]) -> Any:
    return ir.Operation.create(name, [ir.IndexType.get()], operands).result


def _results_below(op: Any) -> list[Any]:
    return [result for inner in walk(op) for result in inner.results]


def _erase_sizes(block: Any) -> None:
    """Erases index code at the end of a region that nobody uses: a size of what a region computes for itself
    would ask for all of that in memory.
    """
    for op in reversed([op.operation for op in block.operations][:-1]):
        if not op.name.startswith(("arith.", "tensor.dim")):
            break
        if all(next(result.uses, None) is None for result in op.results):
            op.erase()


def _erase_unused(root: Any) -> None:
    """Erases what has no effect and no use."""
    for op in reversed(walk(root)):
        results = list(op.results)
        if not results or any(next(result.uses, None) is not None for result in results):
            continue
        # What a loop checks is only of interest where its results are.
        if not op.name.startswith("graphc.") and checks_in(op):
            continue
        op.erase()
