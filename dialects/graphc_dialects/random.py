# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Random draws."""

from collections.abc import Sequence
from typing import Any

from graphc_dialects._base import Axes, GraphcOp, Tensor, array, attribute_of, fail, is_signless
from graphc_dialects._mlir import ext, ir

# Lengths of state vectors, and what their generators are called.
GENERATORS = {6: "pcg64", 13: "philox"}


class RandomOp(GraphcOp, name="random", traits=[ext.Pure]):
    """Draws from `distribution`, and the state of the generator after them.

    `state` is a vector of 64-bit words: 6 for PCG64, 13 for Philox. After it come one tensor for each entry
    of `cores`, the parameters, then the sizes of the draws. The last `support` dimensions of the draws are
    one draw (0 for numbers). The others are the batch: a parameter has as many dimensions, of the same size
    or 1, and after them as many as its entry of `cores` says, which belong to each draw. Draws are made in
    row-major order. Nothing is checked but types: constraints on parameters are `graphc.check`s before it.
    """

    state: ext.Operand[Tensor]
    first: ext.Operand[Tensor] | None
    second: ext.Operand[Tensor] | None
    third: ext.Operand[Tensor] | None
    sizes: Sequence[ext.Operand[ir.IndexType]]
    distribution: ir.StringAttr
    cores: Axes
    support: Any
    draws: ext.Result[Tensor]
    following: ext.Result[Tensor]

    def verify_invariants(self) -> bool:
        """Checks the state, and the ranks and the static sizes of the parameters and the draws."""
        cores = array(self, "cores")
        support = attribute_of(self, "support")
        if cores is None:
            return False
        if not isinstance(support, ir.IntegerAttr) or support.value not in (0, 1):
            return fail(self, "needs an integer attribute 'support' that is 0 or 1")
        if len(self.operands) < 1 + len(cores) or len(self.results) != 2:
            return fail(self, "needs a state, a parameter for each entry of cores, and two results")
        tensors = [value.type for value in (*list(self.operands)[: 1 + len(cores)], *self.results)]
        if any(type(type_) is not ir.RankedTensorType for type_ in tensors):
            return fail(self, "the state, parameters and results must be ranked tensors")
        if not self._check_state(tensors[0], tensors[-1]):
            return False
        sizes = list(self.operands)[1 + len(cores) :]
        if any(not isinstance(size.type, ir.IndexType) for size in sizes):
            return fail(self, "the sizes must be of index type")
        shape = list(tensors[-2].shape)
        if len(sizes) != len(shape) or len(shape) < support.value:
            return fail(self, f"needs one size for each of {len(shape)} dimensions, but has {len(sizes)}")
        batch = shape[: len(shape) - support.value]
        return all(
            self._check_parameter(number, list(type_.shape), batch, core)
            for number, (type_, core) in enumerate(zip(tensors[1:-2], cores, strict=True))
        )

    def _check_state(self, before: Any, after: Any) -> bool:
        element = before.element_type
        is_words = (
            isinstance(element, ir.IntegerType) and element.width == 64 and not is_signless(element, 64)
        )
        if before.rank != 1 or before.shape[0] not in GENERATORS or not is_words:
            return fail(self, f"the state must be a vector of 6 or 13 words of type ui64, but is {before}")
        return before == after or fail(self, f"the state after must be of type {before}, but is {after}")

    def _check_parameter(self, number: int, shape: list[int], batch: list[int], core: int) -> bool:
        if core not in (0, 1) or len(shape) != len(batch) + core:
            return fail(
                self, f"parameter {number} must have rank {len(batch)} + {core}, but has {len(shape)}"
            )
        for axis, (have, want) in enumerate(zip(shape, batch, strict=False)):
            if have not in (1, want) and have >= 0 and want >= 0:
                return fail(
                    self, f"parameter {number} has size {have} in dimension {axis}, the draws have {want}"
                )
        return True

    def reify_dynamic(self, dim: int) -> Any:
        """The size operand."""
        return list(self.operands)[1 + len(list(self.attributes["cores"])) + dim]
