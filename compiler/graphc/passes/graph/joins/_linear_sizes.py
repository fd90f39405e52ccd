# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Index values as sums of sizes, to tell which parts of an axis are neighbours.

What normalises a NumPy slice (minima, maxima, selects) goes away where it is certain which side it takes:
sizes are not negative.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from graphc.ir.build import predicate_of
from graphc.ir.rewrite import Rewriter

if TYPE_CHECKING:
    from graphc_dialects._mlir import ir

# A constant, and how often each size is added; sizes are named by their keys (graphc.ir.dims).
Form = tuple[int, frozenset[tuple[Any, int]]]
_LARGEST = 2**31  # factors up to here: sums of sizes cannot overflow in practice
_DEPTH = 32
_LESS, _LESS_EQUAL, _GREATER, _GREATER_EQUAL = 2, 3, 4, 5


def constant(value: int) -> Form:
    """A number."""
    return value, frozenset()


def plus(a: Form, b: Form, factor: int = 1) -> Form:
    """`a + factor * b`."""
    sizes = dict(a[1])
    for key, count in b[1]:
        sizes[key] = sizes.get(key, 0) + factor * count
    return a[0] + factor * b[0], frozenset((key, count) for key, count in sizes.items() if count)


class LinearSizes:
    """Forms of the index values of a function.

    Args:
        rewriter: knows definitions and keys of sizes.
    """

    def __init__(self, rewriter: Rewriter) -> None:
        self._rw = rewriter
        self._forms: dict[ir.Value, Form] = {}

    def of(self, value: ir.Value, depth: int = 0) -> Form:
        """The form of an index value."""
        if value not in self._forms:
            self._forms[value] = self._form(value, depth)
        return self._forms[value]

    def of_dim(self, tensor: ir.Value, axis: int) -> Form:
        """The form of a size of a tensor."""
        return self._of_key(self._rw.dims.shape(tensor)[axis])

    def not_negative(self, form: Form) -> bool:
        """Whether a sum of sizes is certainly not negative."""
        return form[0] >= 0 and all(count > 0 and self._is_size(key) for key, count in form[1])

    def at_most(self, a: Form, b: Form) -> bool:
        """Whether certainly a <= b."""
        return self.not_negative(plus(b, a, -1))

    def _is_size(self, key: Any) -> bool:
        if key[0] == "dim":
            return True
        return key[0] == "index" and bool(self._rw.dims.is_size(key[1]))

    def _of_key(self, key: Any) -> Form:
        if isinstance(key, int):
            return constant(key)
        if key[0] == "index":
            return self.of(key[1], 1)
        return 0, frozenset([(key, 1)])

    def _form(self, value: ir.Value, depth: int) -> Form:
        key = self._rw.dims.size(value)
        if isinstance(key, int):
            return constant(key)
        found = None
        op = self._rw.defs.get(key[1]) if key[0] == "index" else None
        if op is not None and depth < _DEPTH:
            found = self._of_op(op, depth + 1)
        return (0, frozenset([(key, 1)])) if found is None else found

    def _of_op(self, op: ir.Operation, depth: int) -> Form | None:
        name = op.name
        if name in ("arith.addi", "arith.subi"):
            a, b = (self.of(x, depth) for x in op.operands)
            return plus(a, b, 1 if name == "arith.addi" else -1)
        if name == "arith.muli":
            a, b = (self.of(x, depth) for x in op.operands)
            if b[1]:
                a, b = b, a
            return None if b[1] or abs(b[0]) > _LARGEST else plus(constant(0), a, b[0])
        if name in ("arith.maxsi", "arith.minsi"):
            a, b = (self.of(x, depth) for x in op.operands)
            low, high = (a, b) if self.at_most(a, b) else (b, a)
            if not self.at_most(low, high):
                return None
            return high if name == "arith.maxsi" else low
        if name == "arith.select":
            return self._select(op, depth)
        return None

    def _select(self, op: ir.Operation, depth: int) -> Form | None:
        condition, a, b = op.operands
        test = self._rw.defining(condition, "arith.cmpi")
        if test is None:
            return None
        predicate = predicate_of(test)
        x, y = (self.of(z, depth) for z in test.operands)
        if predicate in (_GREATER, _GREATER_EQUAL):
            x, y, predicate = y, x, _LESS + (predicate == _GREATER_EQUAL)
        if predicate not in (_LESS, _LESS_EQUAL):
            return None
        strict = constant(int(predicate == _LESS))
        if self.at_most(plus(x, strict), y):
            return self.of(a, depth)
        if self.at_most(plus(y, constant(1 - strict[0])), x):
            return self.of(b, depth)
        return None

    def without_empty(self, offset: ir.Value, size: ir.Value) -> ir.Value:
        """The offset of a slice, without the select that moves an empty slice to 0."""
        op = self._rw.defining(offset, "arith.select")
        test = None if op is None else self._rw.defining(op.operands[0], "arith.cmpi")
        if op is None or test is None or predicate_of(test) != 0:
            return offset
        if self._rw.constant(op.operands[1]) != 0 or self._rw.constant(test.operands[1]) != 0:
            return offset
        return op.operands[2] if self.of(test.operands[0]) == self.of(size) else offset
