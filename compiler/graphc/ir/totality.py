# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Operations that cannot fail, so that they may run where the program would not have run them."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from graphc.ir.constants import CONSTANTS, read_constant
from graphc.ir.dims import DimKeys, broadcasts
from graphc.ir.kernels import attributes_of
from graphc.ir.known_rows import definition
from graphc.ir.scan_view import SCAN
from graphc.library.registry import find
from graphc_dialects._base import constant_value
from graphc_dialects._mlir import ir
from graphc_dialects.conditional_shapes import blocks_of
from graphc_dialects.elementwise import ELEMENTWISE
from graphc_dialects.signatures import SIGNATURES

_ALWAYS = frozenset(
    {
        *CONSTANTS,
        *(f"graphc.reduce_{name}" for name in ("sum", "prod", "and", "or")),
        *(f"graphc.{name}" for name in ("dimshuffle", "iota", "softmax", "log_softmax")),
        *(f"graphc.{name}" for name in ("scan_prev", "scan_trace", "scan_steps", "scan_collect", "scan_end")),
        *("tensor.from_elements", "tensor.empty", "scf.yield"),
    }
)
_DIVISIONS = ("arith.div", "arith.rem", "arith.floordiv", "arith.ceildiv")
# They read by position. A check before them may be what keeps the position in range.
POSITIONAL = frozenset({"graphc.slice", "graphc.scan_seq", "graphc.update_slice", "tensor.extract", SCAN})


class Totality:
    """Decides whether operations can fail, from types, literals and sizes that are known to be equal.

    Args:
        defs: the operation that defines each value of the function.
    """

    def __init__(self, defs: dict[Any, Any]) -> None:
        self._defs = defs
        self._keys = DimKeys(defs)

    def is_total(self, op: Any, guarded: bool) -> bool:
        """Whether an operation cannot fail for any values of its operands.

        Args:
            op: an operation of the graph stage.
            guarded: a check precedes it, which may be what makes its position valid. Without one, bounds of
                slices are valid by the way they are computed, as the dialect demands.
        """
        name = op.name
        if name in _ALWAYS:
            return True
        if name == "scf.if":
            return self._branches(op, guarded)
        if name.startswith("arith."):
            return not name.startswith(_DIVISIONS) or bool(constant_value(op.operands[1]))
        if name in POSITIONAL and guarded:
            return False
        if name.removeprefix("graphc.") in SIGNATURES:
            return never_fails(op) and self.kernel(op)
        rule = _RULES.get(name)
        if rule is not None:
            return rule(self, op)
        return name.removeprefix("graphc.") in ELEMENTWISE and self.elementwise(op)

    def _branches(self, op: Any, guarded: bool) -> bool:
        """Neither region can fail."""
        inner = [inner.operation for block in blocks_of(op) for inner in block.operations]
        return all(self.is_total(x, guarded) for x in inner)

    def same(self, a: tuple[Any, int], b: tuple[Any, int]) -> bool:
        """Whether two dimensions, given as (value, axis), have equal sizes."""
        return self._keys.same(self._keys.shape(a[0])[a[1]], self._keys.shape(b[0])[b[1]])

    def elementwise(self, op: Any) -> bool:
        """Sizes agree wherever they do not broadcast. Integer powers fail for negative exponents."""
        operands = list(op.operands)
        if op.name == "graphc.pow" and not self._has_powers(operands[1]):
            return False
        if len(operands) < 2:
            return True
        for axis, keys in enumerate(zip(*(self._keys.shape(x) for x in operands), strict=True)):
            wide = [key for key, x in zip(keys, operands, strict=True) if not broadcasts(x, axis)]
            if any(not self._keys.same(key, wide[0]) for key in wide[1:]):
                return False
        return True

    def _has_powers(self, exponents: Any) -> bool:
        """Whether there is no negative integer among exponents, as far as their type or literals tell."""
        element = exponents.type.element_type
        if not isinstance(element, ir.IntegerType) or element.is_unsigned:
            return True
        made = self._defs.get(exponents)
        known = read_constant(made) if made is not None and made.name in CONSTANTS else None
        return isinstance(known, np.ndarray) and known.size > 0 and known.min() >= 0

    def kernel(self, op: Any) -> bool:
        """Dimensions of one name have one size, and so have those of the batch."""
        signature = SIGNATURES[op.name.removeprefix("graphc.")]
        first: dict[Any, tuple[Any, int]] = {}
        for x, core in zip(op.operands, signature.operands, strict=False):
            rank = len(x.type.shape)
            for axis, dim in enumerate([*range(rank - len(core)), *core]):
                if not self.same(first.setdefault(dim, (x, axis)), (x, axis)):
                    return False
        sizes = list(op.operands)[len(signature.operands) :]
        return all(self._keys.is_size(size) for size in sizes)

    def extremum(self, op: Any) -> bool:
        """There is an element along each reduced axis."""
        attributes = op.attributes
        if "allow_empty" in attributes:
            return True
        axes = list(attributes["axes"]) if "axes" in attributes else [attributes["axis"].value]
        shape = op.operands[0].type.shape
        return all(shape[axis] > 0 for axis in axes)

    def sized(self, op: Any) -> bool:
        """broadcast_to and specify_shape: the sizes are those of the operand, or it broadcasts."""
        x, *sizes = op.operands
        keys = [self._keys.size(size) for size in sizes]
        lead = len(keys) - len(x.type.shape)
        spread = op.name == "graphc.broadcast_to"
        if not self._are_sizes(op, sizes):
            return False
        return all(
            (spread and broadcasts(x, axis)) or self._keys.same(have, want)
            for axis, (have, want) in enumerate(zip(self._keys.shape(x), keys[lead:], strict=True))
        )

    def reshape(self, op: Any) -> bool:
        """The number of elements stays the same."""
        x, *sizes = op.operands
        wanted = [self._keys.size(size) for size in sizes]
        counts = self._keys.count(self._keys.shape(x)), self._keys.count(wanted)
        return self._are_sizes(op, sizes) and counts[0] == counts[1]

    def _are_sizes(self, op: Any, sizes: list[Any]) -> bool:
        """Size operands are not negative, and are what the result type says."""
        for known, size in zip(op.results[0].type.shape, sizes, strict=True):
            key = self._keys.size(size)
            if not self._keys.is_size(size) or (known >= 0 and key != known):
                return False
        return True

    def matmul(self, op: Any) -> bool:
        """Summed sizes and batch sizes agree."""
        a, b = op.operands
        rank = len(a.type.shape)
        left = rank - 2 if op.attributes["transpose_a"].value else rank - 1
        right = rank - 1 if op.attributes["transpose_b"].value else rank - 2
        return self.same((a, left), (b, right)) and all(
            self.same((a, axis), (b, axis)) for axis in range(rank - 2)
        )

    def join(self, op: Any) -> bool:
        """Sizes agree but for the joined axis."""
        first, *others = op.operands
        joined = op.attributes["axis"].value
        axes = [axis for axis in range(len(first.type.shape)) if axis != joined]
        return all(self.same((other, axis), (first, axis)) for other in others for axis in axes)

    def update_slice(self, op: Any) -> bool:
        """The new values have the size of the slice."""
        x, y, *bounds = op.operands
        rank = len(x.type.shape)
        return all(
            self._keys.same(have, self._keys.size(size))
            for have, size in zip(self._keys.shape(y), bounds[rank : 2 * rank], strict=True)
        )

    def slice(self, op: Any) -> bool:
        """Bounds are valid as they are; see `is_total`."""
        return True

    def take(self, op: Any) -> bool:
        """Literal indices within a static size."""
        x, indices = op.operands
        size, made = x.type.shape[op.attributes["axis"].value], definition(indices)
        if size < 0 or made is None or made.name not in CONSTANTS:
            return False
        values = read_constant(made)
        return isinstance(values, np.ndarray) and bool(np.all((values >= -size) & (values < size)))

    def row(self, op: Any) -> bool:
        """A literal row of a stack of static length."""
        number = constant_value(op.operands[1])
        return number is not None and 0 <= number < op.operands[0].type.shape[0]

    def element(self, op: Any) -> bool:
        """Elements of scalars, and literal positions within static sizes."""
        x, *positions = op.operands
        numbers = [constant_value(position) for position in positions]
        return all(n is not None and 0 <= n < size for n, size in zip(numbers, x.type.shape, strict=True))

    def size(self, op: Any) -> bool:
        """A literal axis."""
        return constant_value(op.operands[1]) is not None

    def view_as(self, op: Any) -> bool:
        """Types claim nothing that is not known."""
        have, want = self._keys.shape(op.operands[0]), op.results[0].type.shape
        return all(size < 0 or key == size for key, size in zip(have, want, strict=True))

    def carry(self, op: Any) -> bool:
        """Rows go on as they start."""
        initial, *rows = op.operands
        axes = range(len(initial.type.shape) - 1)
        return all(self.same((row, axis), (initial, axis + 1)) for row in rows for axis in axes)

    def scan(self, op: Any) -> bool:
        """Nothing in the body can fail. That rows of sequences exist is checked or known before it."""
        for inner in op.regions[0].blocks[0].operations:
            inner = inner.operation
            if inner.name != "graphc.scan_seq" and not self.is_total(inner, guarded=False):
                return False
        return True


def never_fails(op: Any) -> bool:
    """Whether the kernel of an operation reports no errors."""
    return not find(op.name.removeprefix("graphc.")).errors or attributes_of(op).get("check") == 0


_RULES: dict[str, Callable[[Totality, Any], bool]] = {
    **dict.fromkeys(
        ("graphc.reduce_max", "graphc.reduce_min", "graphc.argmax", "graphc.argmin"), Totality.extremum
    ),
    **dict.fromkeys(("graphc.broadcast_to", "graphc.specify_shape"), Totality.sized),
    "graphc.reshape": Totality.reshape,
    "graphc.matmul": Totality.matmul,
    "graphc.join": Totality.join,
    "graphc.update_slice": Totality.update_slice,
    "graphc.slice": Totality.slice,
    "graphc.take": Totality.take,
    "graphc.scan_seq": Totality.row,
    "tensor.extract": Totality.element,
    "tensor.dim": Totality.size,
    "tensor.cast": Totality.view_as,
    "graphc.scan_carry": Totality.carry,
    SCAN: Totality.scan,
}
