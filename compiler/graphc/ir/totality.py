# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Operations that cannot fail, so that they may run where the program would not have run them."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from graphc.ir.constants import CONSTANTS, read_constant
from graphc.ir.dims import DimKeys, broadcasts
from graphc.ir.references import attributes_of
from graphc.ir.traits import POSITIONAL, Trait
from graphc.library import find
from graphc_dialects._base import constant_value
from graphc_dialects._mlir import ir
from graphc_dialects.conditional_shapes import blocks_of
from graphc_dialects.elementwise import ELEMENTWISE
from graphc_dialects.signatures import SIGNATURES

_DIVISIONS = ("arith.div", "arith.rem", "arith.floordiv", "arith.ceildiv")


# Whether an operation cannot fail, whatever its operands hold. Without it: may fail.
TOTAL: Trait[Callable[[Totality, ir.Operation], bool]] = Trait()


def never_fails(totality: Totality | None, op: ir.Operation) -> bool:
    """`TOTAL` of operations that never fail."""
    return True


def is_always_total(name: str) -> bool:
    """True if no operation of a name can fail."""
    return TOTAL.get(name) is never_fails


class Totality:
    """Decides whether operations can fail, from types, literals and sizes that are known to be equal.

    Args:
        defs: the operation that defines each value of the function.
    """

    def __init__(self, defs: dict[Any, Any]) -> None:
        self._defs = defs
        self._keys = DimKeys(defs)

    def is_total(self, op: ir.Operation, guarded: bool) -> bool:
        """True if an operation cannot fail for any values of its operands.

        Args:
            op: an operation of the graph stage.
            guarded: a check precedes it, which may be what makes its position valid. Without one, bounds of
                slices are valid by the way they are computed, as the dialect demands.
        """
        name = op.name
        if is_always_total(name):
            return True
        if name == "scf.if":
            return self._branches(op, guarded)
        if name.startswith("arith."):
            return not name.startswith(_DIVISIONS) or bool(constant_value(op.operands[1]))
        if name in POSITIONAL and guarded:
            return False
        if name.removeprefix("graphc.") in SIGNATURES:
            return reports_no_errors(op) and self.kernel(op)
        rule = TOTAL.get(name)
        if rule is not None:
            return rule(self, op)
        return name.removeprefix("graphc.") in ELEMENTWISE and self.elementwise(op)

    def _branches(self, op: ir.Operation, guarded: bool) -> bool:
        """Neither region can fail."""
        inner = [inner.operation for block in blocks_of(op) for inner in block.operations]
        return all(self.is_total(x, guarded) for x in inner)

    def same(self, a: tuple[ir.Value, int], b: tuple[ir.Value, int]) -> bool:
        """True if two dimensions, given as (value, axis), have equal sizes."""
        return self._keys.same(self._keys.shape(a[0])[a[1]], self._keys.shape(b[0])[b[1]])

    def elementwise(self, op: ir.Operation) -> bool:
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
        """True if there is no negative integer among exponents, as far as their type or literals tell."""
        element = exponents.type.element_type
        if not isinstance(element, ir.IntegerType) or element.is_unsigned:
            return True
        made = self._defs.get(exponents)
        known = read_constant(made) if made is not None and made.name in CONSTANTS else None
        return isinstance(known, np.ndarray) and known.size > 0 and known.min() >= 0

    def kernel(self, op: ir.Operation) -> bool:
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

    def are_sizes(self, op: ir.Operation, sizes: list[ir.Value]) -> bool:
        """Size operands are not negative, and are what the result type says."""
        for known, size in zip(op.results[0].type.shape, sizes, strict=True):
            key = self._keys.size(size)
            if not self._keys.is_size(size) or (known >= 0 and key != known):
                return False
        return True

    def has_size(self, dim: tuple[ir.Value, int], size: ir.Value) -> bool:
        """True if a dimension, given as (value, axis), has the size that an index value says."""
        return self._keys.same(self._keys.shape(dim[0])[dim[1]], self._keys.size(size))

    def same_count(self, x: ir.Value, sizes: Sequence[ir.Value]) -> bool:
        """True if index values make as many elements as a tensor has."""
        wanted = self._keys.count([self._keys.size(size) for size in sizes])
        return self._keys.count(self._keys.shape(x)) == wanted

    def fits(self, x: ir.Value, type_: ir.Type) -> bool:
        """True if a tensor is known to have what a type knows of sizes."""
        return all(
            size < 0 or key == size for key, size in zip(self._keys.shape(x), type_.shape, strict=True)
        )


def reports_no_errors(op: ir.Operation) -> bool:
    """True if the kernel of an operation reports no errors."""
    return not find(op.name.removeprefix("graphc.")).errors or attributes_of(op).get("check") == 0
