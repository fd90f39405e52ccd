# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Which conditions each operation needs; the insert-checks pass lists them."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from graphc.passes._dims import broadcasts
from graphc.passes._rewrite import Rewriter, RuleTable, tensor_type
from graphc.passes._shape_rules import size_of
from graphc_dialects._mlir import ir
from graphc_dialects.signatures import SIGNATURES

# More elements than memory holds.
_MOST = 1 << 62
_PREDICATES = {"eq": 0, "ne": 1, "lt": 2, "le": 3, "gt": 4, "ge": 5}


class CheckInserter:
    """Builds checks before the operation that a rewriter visits.

    Args:
        location: of the checks; by default that of the visited operation.
    """

    def __init__(self, location: Any = None) -> None:
        self._location = location
        self.inserted = 0

    # -- building blocks -------------------------------------------------------------------------------------

    def compare(self, rw: Rewriter, predicate: str, a: Any, b: Any) -> Any:
        i64, i1 = ir.IntegerType.get_signless(64), ir.IntegerType.get_signless(1)
        return rw.create("arith.cmpi", [a, b], i1, predicate=ir.IntegerAttr.get(i64, _PREDICATES[predicate]))

    def check(
        self, rw: Rewriter, condition: Any, given: Any, expected: Any, message: str, error: str
    ) -> None:
        attributes = {"message": ir.StringAttr.get(message), "error": ir.StringAttr.get(error)}
        location, point = self._location or rw.anchor.location, ir.InsertionPoint(rw.anchor)
        ir.Operation.create(
            "graphc.check", [], [condition, given, expected], attributes, loc=location, ip=point
        )
        self.inserted += 1

    def equal(self, rw: Rewriter, a: tuple[Any, int], b: tuple[Any, int], message: str) -> None:
        """Dimensions of two tensors, given as (value, axis), agree; `given` is that of a."""
        keys = rw.dims.shape(a[0])[a[1]], rw.dims.shape(b[0])[b[1]]
        if not rw.dims.same(*keys):
            self._equal_sizes(rw, keys, size_of(rw, *a), size_of(rw, *b), message)

    def equal_size(self, rw: Rewriter, a: tuple[Any, int], size: Any, message: str) -> None:
        """A dimension of a tensor agrees with an index value."""
        keys = rw.dims.shape(a[0])[a[1]], rw.dims.size(size)
        if not rw.dims.same(*keys):
            self._equal_sizes(rw, keys, size_of(rw, *a), size, message)

    def _equal_sizes(
        self, rw: Rewriter, keys: tuple[Any, Any], given: Any, expected: Any, message: str
    ) -> None:
        self.check(rw, self.compare(rw, "eq", given, expected), given, expected, message, "ValueError")
        if not all(isinstance(key, int) for key in keys):
            rw.dims.assume_equal(*keys)

    def not_negative(self, rw: Rewriter, size: Any, name: str) -> None:
        key = ("not negative", rw.dims.size(size))
        if key in rw.reified or rw.dims.is_size(size):
            return
        rw.reified[key] = size
        zero = rw.index(0)
        message = f"{name}: negative dimensions are not allowed, but {{given}} was given"
        self.check(rw, self.compare(rw, "ge", size, zero), size, zero, message, "ValueError")

    # -- rules -----------------------------------------------------------------------------------------------

    def elementwise(self, rw: Rewriter, op: Any) -> None:
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
            for position in wide:
                if position != first:
                    self.equal(rw, (operands[position], axis), (operands[first], axis), message)

    def pow(self, rw: Rewriter, op: Any) -> None:
        """Integers have no powers with negative exponents."""
        self.elementwise(rw, op)
        x, y = op.operands
        element = y.type.element_type
        if not isinstance(element, ir.IntegerType) or element.is_unsigned or 0 in op.results[0].type.shape:
            return
        known = rw.constant(y)
        if isinstance(known, np.ndarray) and known.size and known.min() >= 0:
            return
        lowest, zero = self._extreme(rw, "min", y), rw.index(0)
        condition, empty = self.compare(rw, "ge", lowest, zero), self._is_empty(rw, x)
        if empty is not None:
            condition = rw.create("arith.ori", [condition, empty], condition.type)
        message = "pow: an integer has no power of the negative integer {given}; convert one to a float"
        self.check(rw, condition, lowest, zero, message, "ValueError")

    def join(self, rw: Rewriter, op: Any) -> None:
        first, *others = op.operands
        axis = op.attributes["axis"].value
        for position, other in enumerate(others, 1):
            for dim in range(len(first.type.shape)):
                if dim != axis:
                    message = (
                        f"join: operand {position} has size {{given}} in dimension {dim}, "
                        "but operand 0 has {expected}"
                    )
                    self.equal(rw, (other, dim), (first, dim), message)

    def matmul(self, rw: Rewriter, op: Any) -> None:
        a, b = op.operands
        rank = len(a.type.shape)
        for axis in range(rank - 2):
            message = (
                f"matmul: batch sizes in dimension {axis} must agree, but are {{expected}} and {{given}}"
            )
            self.equal(rw, (b, axis), (a, axis), message)
        summed_a = rank - 2 if op.attributes["transpose_a"].value else rank - 1
        summed_b = rank - 1 if op.attributes["transpose_b"].value else rank - 2
        message = "matmul: the left operand has {expected} columns, but the right one has {given} rows"
        self.equal(rw, (b, summed_b), (a, summed_a), message)

    def kernel(self, rw: Rewriter, op: Any) -> None:
        """Sizes that the signature gives one name agree, and so do the batches."""
        name = op.name[7:]
        signature = SIGNATURES[name]
        operands = list(op.operands)[: len(signature.operands)]
        first: dict[Any, tuple[Any, int]] = {}
        for number, (x, core) in enumerate(zip(operands, signature.operands, strict=True)):
            batch = len(x.type.shape) - len(core)
            for axis, dim in enumerate([*range(batch), *core]):
                message = (
                    f"{name}: dimension {axis} of operand {number} must be {{expected}}, but is {{given}}"
                )
                if dim in first:
                    self.equal(rw, (x, axis), first[dim], message)
                first.setdefault(dim, (x, axis))
        for dim, size in zip(signature.given, list(op.operands)[len(operands) :], strict=True):
            self.not_negative(rw, size, f"{name}: size {dim}")

    def reshape(self, rw: Rewriter, op: Any) -> None:
        x, *sizes = op.operands
        have = rw.dims.count(rw.dims.shape(x))
        for size in sizes:
            self.not_negative(rw, size, "reshape")
        if have == rw.dims.count(rw.dims.size(size) for size in sizes):
            return
        given = self._product(rw, [size_of(rw, x, axis) for axis in range(len(x.type.shape))])
        expected = self._product(rw, sizes, bounded=True)
        message = "reshape: cannot reshape an array of {given} elements into a shape of {expected} elements"
        self.check(rw, self.compare(rw, "eq", given, expected), given, expected, message, "ValueError")
        self._static_sizes(rw, op, sizes)

    def _product(self, rw: Rewriter, sizes: Sequence[Any], bounded: bool = False) -> Any:
        """The product of sizes; if `bounded`, of any sizes (not negative) up to `_MOST`, meaning more."""
        total = None
        for size in sizes:
            if rw.constant(size) != 1:
                multiply = self._bounded_product if bounded else self._plain_product
                total = size if total is None else multiply(rw, total, size)
        return rw.index(1) if total is None else total

    def _plain_product(self, rw: Rewriter, a: Any, b: Any) -> Any:
        return rw.index_op("muli", a, b)

    def _bounded_product(self, rw: Rewriter, a: Any, b: Any) -> Any:
        most = rw.index(_MOST)
        fits = self.compare(rw, "le", b, rw.index_op("divsi", most, rw.index_op("maxsi", a, rw.index(1))))
        return rw.create("arith.select", [fits, rw.index_op("muli", a, b), most], a.type)

    def _static_sizes(self, rw: Rewriter, op: Any, sizes: Sequence[Any]) -> None:
        """Where the result type knows a size, the size operand is that."""
        for axis, (known, size) in enumerate(zip(op.results[0].type.shape, sizes, strict=True)):
            key = rw.dims.size(size)
            if known >= 0 and key != known:
                message = f"{op.name[7:]}: dimension {axis} must be {{expected}}, but {{given}} was asked for"
                self._equal_sizes(rw, (key, known), size, rw.index(known), message)

    def broadcast_to(self, rw: Rewriter, op: Any) -> None:
        x, *sizes = op.operands
        self._static_sizes(rw, op, sizes)
        for size in sizes:
            self.not_negative(rw, size, "broadcast_to")
        lead = len(sizes) - len(x.type.shape)
        for axis, known in enumerate(x.type.shape):
            if known != 1:
                message = f"broadcast_to: dimension {axis} of size {{given}} cannot become {{expected}}"
                self.equal_size(rw, (x, axis), sizes[lead + axis], message)

    def specify_shape(self, rw: Rewriter, op: Any) -> None:
        x, *sizes = op.operands
        for axis, size in enumerate(sizes):
            message = f"specify_shape: dimension {axis} has size {{given}}, expected {{expected}}"
            self.equal_size(rw, (x, axis), size, message)
        self._static_sizes(rw, op, sizes)

    def update_slice(self, rw: Rewriter, op: Any) -> None:
        x, y, *bounds = op.operands
        rank = len(x.type.shape)
        for axis, size in enumerate(bounds[rank : 2 * rank]):
            message = (
                f"set_subtensor: values have size {{given}} in dimension {axis}, the slice has {{expected}}"
            )
            self.equal_size(rw, (y, axis), size, message)

    def write(self, rw: Rewriter, op: Any) -> None:
        """What is written has the sizes of where it is written."""
        from graphc_dialects.write import buffer_sizes

        value, buffer = op.operands
        with ir.InsertionPoint(op), op.location:
            sizes = [rw.adopt(size) for size in buffer_sizes(buffer)]
        for axis, size in enumerate(sizes):
            message = f"write: the value has size {{given}} in dimension {axis}, its place has {{expected}}"
            self.equal_size(rw, (value, axis), size, message)

    def scan_carry(self, rw: Rewriter, op: Any) -> None:
        """The rows of a state keep their shape."""
        initial, *rows = op.operands
        name = op.attributes["state"].value
        for row in rows:
            for axis in range(len(row.type.shape)):
                message = (
                    f"scan: rows of the state '{name}' start with size {{expected}} in dimension "
                    f"{axis}, but go on with {{given}}"
                )
                self.equal(rw, (row, axis), (initial, axis + 1), message)

    def recurrence(self, rw: Rewriter, op: Any) -> None:
        """A row for each step, of the shape the first one has; without steps nothing is required."""
        *stacks, initial, steps = op.operands
        name = op.name[7:]
        for position, stack in enumerate(stacks):
            for axis, known in enumerate(stack.type.shape):
                key = rw.dims.shape(stack)[axis]
                want = rw.dims.shape(initial)[axis] if axis else rw.dims.size(steps)
                if known == 1 or rw.dims.same(key, want):
                    continue
                given = size_of(rw, stack, axis)
                expected = size_of(rw, initial, axis) if axis else steps
                none = self.compare(rw, "eq", steps, rw.index(0))
                fits = self.compare(rw, "eq", given, expected)
                fits = rw.create("arith.ori", [fits, none], fits.type)
                message = (
                    f"{name}: operand {position} has size {{given}} in dimension {axis}, "
                    "but {expected} is needed"
                )
                self.check(rw, fits, given, expected, message, "ValueError")

    def take(self, rw: Rewriter, op: Any) -> None:
        x, indices = op.operands
        self._indices(rw, x, indices, op.attributes["axis"].value)

    def put(self, rw: Rewriter, op: Any) -> None:
        x, y, indices = op.operands
        axis, rank = op.attributes["axis"].value, len(indices.type.shape)
        self._indices(rw, x, indices, axis)
        for dim in range(len(y.type.shape)):
            inside = axis <= dim < axis + rank
            source = (indices, dim - axis) if inside else (x, dim if dim < axis else dim - rank + 1)
            message = (
                f"set_subtensor: values have size {{given}} in dimension {dim}, {{expected}} are selected"
            )
            self.equal(rw, (y, dim), source, message)

    def _indices(self, rw: Rewriter, x: Any, indices: Any, axis: int) -> None:
        """-n <= index < n for the smallest and the largest index; no index at all is in range."""
        key, known = rw.dims.shape(x)[axis], rw.constant(indices)
        if isinstance(known, np.ndarray) and isinstance(key, int):
            if known.size == 0 or (-key <= known.min() and known.max() < key):
                return
        size = size_of(rw, x, axis)
        done = ("in range", indices, key)
        if done in rw.reified:
            return
        rw.reified[done] = size
        low = rw.index_op("subi", rw.index(0), size)
        message = f"index {{given}} is out of bounds for axis {axis} with size {{expected}}"
        lowest, highest = self._extreme(rw, "min", indices), self._extreme(rw, "max", indices)
        empty = self._is_empty(rw, indices)
        for value, predicate, bound in ((lowest, "ge", low), (highest, "lt", size)):
            condition = self.compare(rw, predicate, value, bound)
            if empty is not None:
                condition = rw.create("arith.ori", [condition, empty], condition.type)
            self.check(rw, condition, value, size, message, "IndexError")

    def _is_empty(self, rw: Rewriter, indices: Any) -> Any:
        dynamic = [axis for axis, size in enumerate(indices.type.shape) if size <= 0]
        if not dynamic:
            return None
        count = self._product(rw, [size_of(rw, indices, axis) for axis in range(len(indices.type.shape))])
        return self.compare(rw, "eq", count, rw.index(0))

    def _extreme(self, rw: Rewriter, which: str, indices: Any) -> Any:
        """The smallest or largest of signed integers, as an index value."""
        rank, kind = len(indices.type.shape), indices.type.element_type
        if rank:
            axes = {"axes": ir.DenseI64ArrayAttr.get(list(range(rank))), "allow_empty": ir.BoolAttr.get(True)}
            indices = rw.create(f"graphc.reduce_{which}", [indices], tensor_type([], kind), **axes)
        number = rw.create("tensor.extract", [indices], kind)
        return rw.create("arith.index_cast", [number], ir.IndexType.get())

    def extremum(self, rw: Rewriter, op: Any) -> None:
        """Reductions without a neutral element need an element, as in NumPy even where there is no result."""
        attributes = op.attributes
        if "allow_empty" in attributes:
            return
        x = op.operands[0]
        shape = rw.dims.shape(x)
        axes = list(attributes["axes"]) if "axes" in attributes else [attributes["axis"].value]
        risky = [axis for axis in axes if not isinstance(shape[axis], int) or shape[axis] == 0]
        if not risky:
            return
        zero = rw.index(0)
        count = self._product(rw, [size_of(rw, x, axis) for axis in risky])
        condition = self.compare(rw, "gt", count, zero)
        name = op.name[7:].removeprefix("reduce_")
        message = f"{name}: the reduced axes have no elements, and {name} of nothing is undefined"
        self.check(rw, condition, count, zero, message, "ValueError")


def rules() -> tuple[CheckInserter, RuleTable]:
    """A new inserter, and its methods as rules that replace nothing."""
    from graphc_dialects.elementwise import ELEMENTWISE

    inserter = CheckInserter()
    names: dict[str, Callable[[Rewriter, Any], None]] = {
        **{name: inserter.elementwise for name, (arity, _) in ELEMENTWISE.items() if arity > 1},
        **dict.fromkeys(("reduce_max", "reduce_min", "argmax", "argmin"), inserter.extremum),
    }
    structural = (
        "pow",
        "join",
        "matmul",
        "reshape",
        "broadcast_to",
        "specify_shape",
        "update_slice",
        "take",
        "put",
    )
    for name in (*structural, "scan_carry", "write"):
        names[name] = getattr(inserter, name)
    names.update(dict.fromkeys(SIGNATURES, inserter.kernel))
    names.update(dict.fromkeys(("cumulative", "linear_recurrence"), inserter.recurrence))
    return inserter, {f"graphc.{name}": [rule] for name, rule in names.items()}
