# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Sizes as values, and what checks are made of: comparisons of sizes, their sums and products."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from operator import mul, or_

from graphc.ir import build
from graphc.ir.build import predicate_of
from graphc.ir.diagnostics import fail
from graphc.ir.dims import Key
from graphc.ir.rewrite import Rewriter, tensor_type
from graphc.ir.size import SizesOf
from graphc.ir.traits import Trait
from graphc.ir.value import larger
from graphc_dialects._mlir import ir
from graphc_dialects.conditional_shapes import CONDITIONALS, conditional_size
from graphc_dialects.scan_shapes import UnknownSize

# More elements than memory holds: sums and small multiples of it are still numbers of 64 bits.
_MOST = 1 << 62
_MOST_IN_MEMORY = 1 << 48
PREDICATES = {"eq": 0, "ne": 1, "lt": 2, "le": 3, "gt": 4, "ge": 5}


def size_of(rw: Rewriter, value: ir.Value, axis: int) -> ir.Value:
    """Index value with a size, computed from as little as possible, before the visited operation."""
    key = rw.dims.shape(value)[axis]
    if not isinstance(key, int) and key[0] == "dim":
        _, source, source_axis = key
        op = rw.defs.get(source)
        if op is not None and says_sizes(op):
            known = rw.reified.get(key)
            if known is None:
                try:
                    with ir.InsertionPoint(rw.anchor), rw.anchor.location:
                        known = rw.adopt(_reified(source, source_axis))
                except UnknownSize as error:
                    fail(op, str(error))
                rw.reified[key] = known
            return known
    return rw.dim(value, axis)


def says_sizes(op: ir.Operation) -> bool:
    """True if `size_of` can ask an operation for the sizes of its results."""
    return op.name.startswith("graphc.") or op.name in CONDITIONALS


def _reified(value: ir.Value, axis: int) -> ir.Value:
    op = value.owner
    return (
        conditional_size(value, axis)
        if op.name in CONDITIONALS
        else op.opview.reify(axis, value.result_number)
    )


class SizeChecks:
    """Builds checks of sizes before the operation that a rewriter visits.

    Args:
        location: of the checks; by default that of the visited operation.
        only_sizes: leave out what is asked of elements, which would cost the computation of these.

    Attributes:
        inserted: how many checks there are.
        never: those that compare numbers which differ: nothing that comes after one runs.
    """

    def __init__(self, location: ir.Location | None = None, only_sizes: bool = False) -> None:
        self._location = location
        self.only_sizes = only_sizes
        self.inserted = 0
        self.never: list[ir.Operation] = []

    def compare(self, rw: Rewriter, predicate: str, a: ir.Value, b: ir.Value) -> ir.Value:
        i64, i1 = ir.IntegerType.get_signless(64), ir.IntegerType.get_signless(1)
        return rw.create("arith.cmpi", [a, b], i1, predicate=ir.IntegerAttr.get(i64, PREDICATES[predicate]))

    def check(
        self, rw: Rewriter, condition: ir.Value, given: ir.Value, expected: ir.Value, message: str, error: str
    ) -> None:
        with ir.InsertionPoint(rw.anchor), self._location or rw.anchor.location:
            check = build.check(condition, given, expected, message, error)
        self.inserted += 1
        self.read(rw, check)

    def read(self, rw: Rewriter, check: ir.Operation) -> tuple[ir.Value, ir.Value] | None:
        """The two index values that a check says to be equal, if any; it is in `never` if they are not."""
        made = rw.defining(check.operands[0], "arith.cmpi")
        if made is None or predicate_of(made) != PREDICATES["eq"]:
            return None
        a, b = made.operands
        if not isinstance(a.type, ir.IndexType):
            return None
        sizes = SizesOf(rw)
        if (sizes.of(a) - sizes.of(b)).number:
            self.never.append(check)
        return a, b

    def equal(self, rw: Rewriter, a: tuple[ir.Value, int], b: tuple[ir.Value, int], message: str) -> None:
        """Dimensions of two tensors, given as (value, axis), agree; `given` is that of a."""
        keys = rw.dims.shape(a[0])[a[1]], rw.dims.shape(b[0])[b[1]]
        if not rw.dims.same(*keys):
            self.equal_sizes(rw, keys, size_of(rw, *a), size_of(rw, *b), message)

    def equal_size(
        self, rw: Rewriter, a: tuple[ir.Value, int], size: ir.Value, message: str, error: str = "ValueError"
    ) -> None:
        """A dimension of a tensor agrees with an index value."""
        keys = rw.dims.shape(a[0])[a[1]], rw.dims.size(size)
        if not rw.dims.same(*keys):
            self.equal_sizes(rw, keys, size_of(rw, *a), size, message, error)

    def equal_sizes(
        self,
        rw: Rewriter,
        keys: tuple[Key, Key],
        given: ir.Value,
        expected: ir.Value,
        message: str,
        error: str = "ValueError",
    ) -> None:
        self.check(rw, self.compare(rw, "eq", given, expected), given, expected, message, error)
        if not all(isinstance(key, int) for key in keys):
            rw.dims.assume_equal(*keys)

    def not_negative(self, rw: Rewriter, size: ir.Value, name: str) -> None:
        key = ("not negative", rw.dims.size(size))
        if key in rw.reified or rw.dims.is_size(size):
            return
        rw.reified[key] = size
        zero = rw.index(0)
        message = f"{name}: negative dimensions are not allowed, but {{given}} was given"
        self.check(rw, self.compare(rw, "ge", size, zero), size, zero, message, "ValueError")

    def fits_memory(self, rw: Rewriter, sizes: Sequence[ir.Value], name: str) -> None:
        """Sizes that are not those of one array make no more elements than memory holds, those of 0 left out,
        with which arrays can be longer: sums and products of sizes are then right.
        """
        keys = [key for key in (rw.dims.size(size) for size in sizes) if key not in (0, 1)]
        sources = {None if isinstance(key, int) or key[0] != "dim" else key[1] for key in keys}
        if (len(sources) <= 1 and None not in sources) or all(isinstance(key, int) for key in keys):
            return
        done = ("fits memory", *keys)
        if done in rw.reified:
            return
        positive = [
            size if isinstance(rw.dims.size(size), int) else rw.build(larger, size, 1)
            for size in sizes
            if rw.dims.size(size) != 0
        ]
        count, most = self.product(rw, positive, bounded=True), rw.index(_MOST_IN_MEMORY)
        rw.reified[done] = count
        message = f"{name}: {{given}} elements or more were asked for, memory holds at most {{expected}}"
        self.check(rw, self.compare(rw, "le", count, most), count, most, message, "ValueError")

    def sum_of_sizes(self, rw: Rewriter, operands: Sequence[ir.Value], axis: int) -> None:
        """No size is so large that their sum could be too large. Arrays that are that long have no elements,
        so that only a size of 0 elsewhere lets them exist.
        """
        shape = rw.dims.shape(operands[0])
        if all(isinstance(key, int) and key for i, key in enumerate(shape) if i != axis):
            return
        sizes = {rw.dims.shape(x)[axis]: size_of(rw, x, axis) for x in operands}
        dynamic = [size for key, size in sizes.items() if not isinstance(key, int)]
        if not dynamic:
            return
        bits = dynamic[0]
        for size in dynamic[1:]:
            bits = rw.build(or_, bits, size)
        most = rw.index(_MOST_IN_MEMORY)
        message = (
            "join: a size along the joined axis is about {given}, memory holds at most {expected} elements"
        )
        self.check(rw, self.compare(rw, "le", bits, most), bits, most, message, "ValueError")

    def product(self, rw: Rewriter, sizes: Sequence[ir.Value], bounded: bool = False) -> ir.Value:
        """The product of sizes; if `bounded`, of any sizes (not negative) up to `_MOST`, meaning more."""
        total = None
        for size in sizes:
            if rw.constant(size) != 1:
                multiply = self._bounded_product if bounded else self._plain_product
                total = size if total is None else multiply(rw, total, size)
        return rw.index(1) if total is None else total

    def _plain_product(self, rw: Rewriter, a: ir.Value, b: ir.Value) -> ir.Value:
        return rw.build(mul, a, b)

    def _bounded_product(self, rw: Rewriter, a: ir.Value, b: ir.Value) -> ir.Value:
        most = rw.index(_MOST)
        fits = self.compare(rw, "le", b, rw.index_op("divsi", most, rw.index_op("maxsi", a, rw.index(1))))
        return rw.create("arith.select", [fits, rw.build(mul, a, b), most], a.type)

    def extreme(self, rw: Rewriter, which: str, integers: ir.Value) -> ir.Value:
        """The smallest (`"min"`) or largest (`"max"`) of signed integers, as an index value."""
        rank, kind = len(integers.type.shape), integers.type.element_type
        if rank:
            axes = {"axes": ir.DenseI64ArrayAttr.get(list(range(rank))), "allow_empty": ir.BoolAttr.get(True)}
            integers = rw.create(f"graphc.reduce_{which}", [integers], tensor_type([], kind), **axes)
        number = rw.create("tensor.extract", [integers], kind)
        return rw.create("arith.index_cast", [number], ir.IndexType.get())

    def is_empty(self, rw: Rewriter, x: ir.Value) -> ir.Value | None:
        """An i1: whether a tensor has no elements; None where it certainly has some."""
        if all(size > 0 for size in x.type.shape):
            return None
        count = self.product(rw, [size_of(rw, x, axis) for axis in range(len(x.type.shape))])
        return self.compare(rw, "eq", count, rw.index(0))


# Conditions that the types do not guarantee, as operations before it (insert-checks).
CHECKS: Trait[Callable[[SizeChecks, Rewriter, ir.Operation], None]] = Trait()
