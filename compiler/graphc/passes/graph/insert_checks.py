# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Makes the conditions that operations rely on explicit, and moves checks out of scans.

`rules` has the conditions of each operation, as rules of a rewriter that replace nothing.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import cache, partial

import numpy as np

from graphc.ir import build
from graphc.ir.checks import CHECKS, PREDICATES, SizeChecks
from graphc.ir.constants import constant_attribute, element_dtype
from graphc.ir.dims import broadcasts
from graphc.ir.rewrite import Rewriter, RuleTable, tensor_type
from graphc.ir.scan_view import SCAN, ScanView, is_scan, scans
from graphc.ir.views import RESIZES, repeated
from graphc.ir.walk import ancestors, functions, walk_for
from graphc.passes import Pass
from graphc.passes.graph._shapes import RULES, useless_resize
from graphc_dialects._base import constant_value
from graphc_dialects._mlir import ir
from graphc_dialects.check import NAME as CHECK
from graphc_dialects.check import raises
from graphc_dialects.elementwise import ELEMENTWISE
from graphc_dialects.scan_shapes import Outside, UnknownSize
from graphc_dialects.signatures import SIGNATURES

Rule = Callable[[SizeChecks, Rewriter, ir.Operation], None]


def rules(checks: SizeChecks) -> RuleTable:
    """A rule for each operation that has conditions; structured operations register theirs as a trait."""
    return {name: [partial(rule, checks)] for name, rule in _conditions().items()}


@cache
def _conditions() -> dict[str, Rule]:
    names: dict[str, Rule] = {name: elementwise for name, (arity, _) in ELEMENTWISE.items() if arity > 1}
    names |= {"pow": power, **dict.fromkeys(SIGNATURES, kernel)}
    table = {f"graphc.{name}": rule for name, rule in names.items()}
    return table | {name: rule for name in CHECKS if (rule := CHECKS.get(name)) is not None}


def elementwise(checks: SizeChecks, rw: Rewriter, op: ir.Operation) -> None:
    """Sizes that do not broadcast agree with the first one of them, preferably a static one."""
    operands = list(op.operands)
    if len(operands) == 1:
        return
    types = [x.type for x in operands]
    if all(type_ == types[0] for type_ in types) and types[0].has_static_shape:
        return
    shapes = [rw.dims.shape(x) for x in operands]
    if shapes.count(shapes[0]) == len(shapes):
        return
    name = op.name[7:]
    for axis, keys in enumerate(zip(*shapes, strict=True)):
        wide = [position for position, x in enumerate(operands) if not broadcasts(x, axis)]
        if len(wide) < 2:
            continue
        first = next((position for position in wide if isinstance(keys[position], int)), wide[0])
        message = (
            f"{name}: operand sizes in dimension {axis} must agree, but are {{expected}} and {{given}} "
            "(a size that is 1 only at run time does not broadcast)"
        )
        # What blas-recognition wrote for a product.
        if axis == len(shapes[0]) - 1 and "inner" in op.attributes:
            message = "matmul: vectors of {expected} and {given} elements have no inner product"
        for position in wide:
            if position != first:
                checks.equal(rw, (operands[position], axis), (operands[first], axis), message)


def power(checks: SizeChecks, rw: Rewriter, op: ir.Operation) -> None:
    """Integers have no powers with negative exponents."""
    elementwise(checks, rw, op)
    x, y = op.operands
    element = y.type.element_type
    if checks.only_sizes or not isinstance(element, ir.IntegerType) or element.is_unsigned:
        return
    known = rw.constant(y)
    if 0 in op.results[0].type.shape or (isinstance(known, np.ndarray) and known.size and known.min() >= 0):
        return
    lowest, zero = checks.extreme(rw, "min", y), rw.index(0)
    condition, empty = checks.compare(rw, "ge", lowest, zero), checks.is_empty(rw, x)
    if empty is not None:
        condition = rw.create("arith.ori", [condition, empty], condition.type)
    message = "pow: an integer has no power of the negative integer {given}; convert one to a float"
    checks.check(rw, condition, lowest, zero, message, "ValueError")


def kernel(checks: SizeChecks, rw: Rewriter, op: ir.Operation) -> None:
    """Sizes that the signature gives one name agree, and so do the batches."""
    name = op.name[7:]
    signature = SIGNATURES[name]
    operands = list(op.operands)[: len(signature.operands)]
    first: dict[str | int, tuple[ir.Value, int]] = {}
    for number, (x, core) in enumerate(zip(operands, signature.operands, strict=True)):
        batch = len(x.type.shape) - len(core)
        for axis, dim in enumerate([*range(batch), *core]):
            message = f"{name}: dimension {axis} of operand {number} must be {{expected}}, but is {{given}}"
            if dim in first:
                checks.equal(rw, (x, axis), first[dim], message)
            first.setdefault(dim, (x, axis))
    for dim, size in zip(signature.given, list(op.operands)[len(operands) :], strict=True):
        checks.not_negative(rw, size, f"{name}: size {dim}")


def end_blocks(never: Sequence[ir.Operation]) -> None:
    """Removes what comes after checks that compare numbers which differ: it never runs, and upstream, which
    finds out the sizes of all that shares a loop, takes sizes that contradict each other for its own error.
    """
    left = list(never)
    while left:
        check = left.pop(0)
        block = check.block
        operations = [op.operation for op in block.operations]
        after = operations[operations.index(check) + 1 :]
        # What has no results says what those of a loop are.
        gone = [op for op in after[:-1] if len(op.results) or raises(op)]
        removed = set(gone)
        left = [other for other in left if other.block != block and not _is_below(other, removed)]
        for op in (op for op in after if op not in removed):
            for number, x in enumerate(op.operands):
                if not isinstance(x.owner, ir.Block) and x.owner.operation in removed:
                    with ir.InsertionPoint(op), op.location:
                        op.operands[number] = _placeholder(x.type)
        for op in reversed(gone):
            op.erase()


def _is_below(op: ir.Operation, above: set[ir.Operation]) -> bool:
    return any(around in above for around in ancestors(op.parent))


def _placeholder(type_: ir.Type) -> ir.Value:
    """A value of a type; of no elements where sizes are not static."""
    if not isinstance(type_, ir.RankedTensorType):
        return build.create("arith.constant", [type_], [], value=ir.IntegerAttr.get(type_, 0)).result
    scalar = tensor_type([], type_.element_type)
    name, zero = constant_attribute(np.zeros((), element_dtype(scalar.element_type)), scalar)
    sizes = [build.const_index(max(size, 0)) for size in type_.shape]
    return repeated(build.create(name, [scalar], [], value=zero).result, sizes, type_)


def hoist_checks(function: ir.Operation) -> int:
    """Puts the checks that do not depend on the iteration before their scans; returns how many."""
    moved = 0
    for op in scans(function):
        view = ScanView(op)
        checks = [op for op in view.operations() if raises(op)]
        if not checks:
            continue
        with ir.InsertionPoint(view.op):
            outside = Outside(view.op)
            never = None
            for check in checks:
                with check.location:
                    try:
                        operands = [outside.copy(x) for x in check.operands]
                    except UnknownSize:
                        continue
                    never = never or build.compare_index(0, view.steps, build.const_index(0))
                    condition = build.create("arith.ori", [operands[0].type], [operands[0], never]).result
                    build.check_again(check, [condition, *operands[1:]])
                check.erase()
                moved += 1
    return moved


def unify_sizes(function: ir.Operation) -> int:
    """Uses one of two sizes that a check compares in the place of the other one: after the check, or, where
    it holds trivially for loops without iterations, in the bodies of these. Returns how many uses changed.
    """
    block = function.regions[0].blocks[0]
    facts = [(op.operation, fact) for op in block.operations if raises(op) for fact in _facts(op.operation)]
    if not facts:
        return 0
    positions = {op.operation: number for number, op in enumerate(block.operations)}
    same: dict[ir.Value, tuple[ir.Value, int]] = {
        op.results[0]: key for op in walk_for(function, ("tensor.dim",)) if (key := _dimension(op))
    }
    named: dict[object, list[ir.Value]] = {}
    for value, key in same.items():
        named.setdefault(key, []).append(value)
    # The hash of an operation changes with its operands.
    changes = []
    for check, (a, b, steps) in facts:
        if constant_value(a) is not None:
            a, b = b, a
        # Upstream refuses parts of what is known to be empty.
        if constant_value(a) is not None or constant_value(b) == 0:
            continue
        for old in named[same[a]] if a in same else [a]:
            for use in old.uses if old != b else ():
                user = use.owner.operation
                if _knows(user, positions, positions[check], steps):
                    changes.append((user, use.operand_number, b))
    for user, number, value in changes:
        user.operands[number] = value
    return len(changes)


class _Equal:
    """Rules that tell a sweep which sizes checks have found to be equal."""

    def __init__(self) -> None:
        self._by_steps: dict[ir.Value, list[tuple[ir.Value, ir.Value]]] = {}

    def rules(self) -> RuleTable:
        """Those of shapes and these."""
        resizes = {name: [self.resize] for name in RESIZES}
        return {**RULES, **resizes, CHECK: [self.check], SCAN: [self.scan]}

    def resize(self, rw: Rewriter, op: ir.Operation) -> ir.Value | None:
        """Drops useless resizes, but in regions of conditionals: there they tell sizes outside of them."""
        is_inside = any(around.name == "scf.if" for around in ancestors(op))
        return None if is_inside else useless_resize(rw, op)

    def check(self, rw: Rewriter, op: ir.Operation) -> None:
        # A row whose size an iteration finds out keeps the size of the others, which is known outside.
        if op.parent.name != "func.func":
            return
        for a, b, steps in _facts(op):
            if steps is None:
                rw.dims.assume_equal(rw.dims.size(a), rw.dims.size(b))
            else:
                self._by_steps.setdefault(steps, []).append((a, b))

    def scan(self, rw: Rewriter, op: ir.Operation) -> None:
        for a, b in self._by_steps.get(op.operands[0], ()):
            rw.dims.assume_equal(rw.dims.size(a), rw.dims.size(b))


def _facts(check: ir.Operation) -> list[tuple[ir.Value, ir.Value, ir.Value | None]]:
    """The two index values that a check says to be equal, if any, and the number of steps of loops that have
    to run for it.
    """
    made, steps = check.operands[0].owner, None
    if not isinstance(made, ir.Block) and made.name == "arith.ori":
        made, never = (x.owner for x in made.operands)
        pair = _compared(never)
        if pair is None or constant_value(pair[1]) != 0:
            return []
        steps = pair[0]
    found = _compared(made)
    return [] if found is None else [(*found, steps)]


def _compared(made: ir.Block | ir.OpView) -> tuple[ir.Value, ir.Value] | None:
    """The operands of a comparison of index values for equality."""
    if isinstance(made, ir.Block) or made.name != "arith.cmpi":
        return None
    a, b = made.operands
    is_equality = made.attributes["predicate"].value == PREDICATES["eq"]
    return (a, b) if is_equality and isinstance(a.type, ir.IndexType) else None


def _dimension(op: ir.Operation) -> tuple[ir.Value, int] | None:
    axis = constant_value(op.operands[1])
    return None if axis is None else (op.operands[0], axis)


def _knows(
    user: ir.Operation, positions: dict[ir.Operation, int], check: int, steps: ir.Value | None
) -> bool:
    """True if an operation runs only where a check has passed, or in an iteration that it was made for."""
    runs = steps is None
    while user not in positions:
        user = user.parent.operation
        runs = runs or (is_scan(user) and user.operands[0] == steps)
    return runs and positions[user] > check


class InsertChecks(Pass):
    """Adds a `graphc.check` for each condition that an operation needs and the types do not guarantee.

    | operation | condition | error |
    |---|---|---|
    | elementwise | sizes that are not statically 1 agree (nothing broadcasts by chance) | ValueError |
    | `pow` of integers | no exponent is negative (unless there is no element) | ValueError |
    | `join` | sizes agree off the joined axis, and their sum is a number of 64 bits | ValueError |
    | `matmul` | summed and batch sizes agree | ValueError |
    | `reshape` | element counts agree, no size is negative | ValueError |
    | `broadcast_to` | sizes of the operand agree with the target, no size is negative | ValueError |
    | `broadcast_to`, `iota` | sizes that are no array's make no more elements than fit memory | ValueError |
    | `specify_shape` | sizes are the specified ones | ValueError, IndexError with `index` |
    | `update_slice`, `put` | the values have the shape of what they replace | ValueError |
    | `take`, `put` | the smallest and largest index are in range | IndexError |
    | `scan_carry` | the rows of a state keep their shape | ValueError |
    | `write` | the value has the sizes of the buffer it is written to | ValueError |
    | recurrences | each step (if any) has a row, shaped like initial | ValueError |
    | `reduce_max/min`, `argmax/argmin` | there is an element (unless `allow_empty`) | ValueError |

    A check in a scan that does not depend on the iteration is made once, before the scan, where it holds
    trivially if there is no iteration.

    Nothing is inserted where equality is certain: static sizes, the same index value, the same dimension of
    the same argument, or a check before. A check carries the location of its operation.

    What comes after a check that compares numbers which differ never runs, and is removed.

    Of two sizes that a check compares, one is used in the place of the other from there on, a static one if
    there is one, and what has no effect then is removed: what comes later knows sizes as equal only where
    they are one value. Where a check holds trivially for a loop without iterations, that is in its body.

    Source: the run-time checks of PyTensor's C code; NumPy's errors.
    """

    stage = "graph"

    def run(self, module: ir.Module) -> None:
        for function in functions(module):
            checks = SizeChecks()
            Rewriter(function, rules(checks)).run(erase=False)
            end_blocks(checks.never)
            hoisted, unified = hoist_checks(function), unify_sizes(function)
            counts = {"checks": checks.inserted, "hoisted checks": hoisted, "sizes that are one": unified}
            self.count_all(counts)
            if unified or walk_for(function, frozenset(RESIZES)):
                Rewriter(function, _Equal().rules()).run()
