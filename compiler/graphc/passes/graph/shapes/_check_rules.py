# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Which conditions each operation needs; the insert-checks pass lists them."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from graphc.ir.dims import broadcasts
from graphc.ir.rewrite import Rewriter, RuleTable, tensor_type
from graphc.passes.graph.shapes._check_sizes import PREDICATES, SizeChecks
from graphc.passes.graph.shapes._rules import size_of
from graphc_dialects._mlir import ir
from graphc_dialects.elementwise import ELEMENTWISE
from graphc_dialects.signatures import SIGNATURES
from graphc_dialects.write import buffer_sizes


class CheckInserter(SizeChecks):
    """Builds checks before the operation that a rewriter visits."""

    # -- rules -----------------------------------------------------------------------------------------------

    def passed(self, rw: Rewriter, op: Any) -> None:
        """What a check that is there already says of sizes."""
        made = rw.defining(op.operands[0], "arith.cmpi")
        if made is not None and made.attributes["predicate"].value == PREDICATES["eq"]:
            a, b = made.operands
            if isinstance(a.type, ir.IndexType):
                keys = rw.dims.size(a), rw.dims.size(b)
                if not all(isinstance(key, int) for key in keys):
                    rw.dims.assume_equal(*keys)

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
        self.sum_of_sizes(rw, op.operands, axis)
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
        given = self.product(rw, [size_of(rw, x, axis) for axis in range(len(x.type.shape))])
        expected = self.product(rw, sizes, bounded=True)
        message = "reshape: cannot reshape an array of {given} elements into a shape of {expected} elements"
        self.check(rw, self.compare(rw, "eq", given, expected), given, expected, message, "ValueError")
        self._static_sizes(rw, op, sizes)

    def _static_sizes(self, rw: Rewriter, op: Any, sizes: Sequence[Any]) -> None:
        """Where the result type knows a size, the size operand is that."""
        for axis, (known, size) in enumerate(zip(op.results[0].type.shape, sizes, strict=True)):
            key = rw.dims.size(size)
            if known >= 0 and key != known:
                message = f"{op.name[7:]}: dimension {axis} must be {{expected}}, but {{given}} was asked for"
                self.equal_sizes(rw, (key, known), size, rw.index(known), message)

    def broadcast_to(self, rw: Rewriter, op: Any) -> None:
        x, *sizes = op.operands
        self._static_sizes(rw, op, sizes)
        for size in sizes:
            self.not_negative(rw, size, "broadcast_to")
        self.fits_memory(rw, sizes, "broadcast_to")
        lead = len(sizes) - len(x.type.shape)
        for axis, known in enumerate(x.type.shape):
            if known != 1:
                message = f"broadcast_to: dimension {axis} of size {{given}} cannot become {{expected}}"
                self.equal_size(rw, (x, axis), sizes[lead + axis], message)

    def iota(self, rw: Rewriter, op: Any) -> None:
        self.fits_memory(rw, [op.operands[2]], "arange")

    def specify_shape(self, rw: Rewriter, op: Any) -> None:
        x, *sizes = op.operands
        name, error = "specify_shape", "ShapeError"
        if "index" in op.attributes:
            name, error = "index arrays, or a mask and what it selects from, do not fit", "IndexError"
        for axis, size in enumerate(sizes):
            message = f"{name}: dimension {axis} has size {{given}}, expected {{expected}}"
            self.equal_size(rw, (x, axis), size, message, error)
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
        count = self.product(rw, [size_of(rw, indices, axis) for axis in range(len(indices.type.shape))])
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
        count = self.product(rw, [size_of(rw, x, axis) for axis in risky])
        condition = self.compare(rw, "gt", count, zero)
        name = op.name[7:].removeprefix("reduce_")
        message = f"{name}: the reduced axes have no elements, and {name} of nothing is undefined"
        self.check(rw, condition, count, zero, message, "ValueError")


def rules(inserter: CheckInserter | None = None) -> tuple[CheckInserter, RuleTable]:
    """An inserter, by default a new one, and its methods as rules that replace nothing."""
    inserter = inserter or CheckInserter()
    names: dict[str, Callable[[Rewriter, Any], None]] = {
        **{name: inserter.elementwise for name, (arity, _) in ELEMENTWISE.items() if arity > 1},
        **dict.fromkeys(("reduce_max", "reduce_min", "argmax", "argmin"), inserter.extremum),
        "check": inserter.passed,
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
    for name in (*structural, "iota", "scan_carry", "write"):
        names[name] = getattr(inserter, name)
    names.update(dict.fromkeys(SIGNATURES, inserter.kernel))
    names.update(dict.fromkeys(("cumulative", "linear_recurrence"), inserter.recurrence))
    return inserter, {f"graphc.{name}": [rule] for name, rule in names.items()}
