# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Operations on core arrays, with leading batch axes: one class per line of the table in `signatures`."""

from typing import Any

from graphc_dialects._base import GraphcOp, Tensor, check_shape, define, dim_of, fail
from graphc_dialects._mlir import ext, ir
from graphc_dialects.signatures import DOCS, SIGNATURES, Signature


class Kernel(GraphcOp):
    """Base of the operations of the table."""

    def verify_invariants(self) -> bool:
        """Checks counts, ranks and the static sizes."""
        signature = SIGNATURES[self._op_name]
        count = len(signature.operands)
        given, gives = len(signature.given), len(signature.results)
        if len(self.operands) != count + given or len(self.results) != gives:
            return fail(
                self,
                f"expects {count} tensors and {given} sizes, and gives {gives} results; has "
                f"{len(self.operands)} operands and {len(self.results)} results",
            )
        types = [x.type for x in (*list(self.operands)[:count], *self.results)]
        cores = (*signature.operands, *signature.results)
        for position, (type_, core) in enumerate(zip(types, cores, strict=True)):
            if type(type_) is not ir.RankedTensorType or len(type_.shape) < len(core):
                return fail(
                    self, f"tensor #{position} must have at least {len(core)} dimensions, but is {type_}"
                )
        batches = [list(t.shape[: len(t.shape) - len(core)]) for t, core in zip(types, cores, strict=True)]
        if any(len(batch) != len(batches[0]) for batch in batches):
            return fail(self, "all tensors must have the same number of leading dimensions")
        return self._verify_sizes(signature, types, batches)

    def _verify_sizes(self, signature: Signature, types: list[ir.Type], batches: list[list[int]]) -> bool:
        known: dict[int | str, int] = {}
        count = len(signature.operands)
        for number, core in enumerate((*signature.operands, *signature.results)):
            names: list[int | str] = [*range(len(batches[0])), *core]
            shape = list(types[number].shape)
            if number >= count:
                if not check_shape(self, shape, [known.get(name, -1) for name in names]):
                    return False
                continue
            for axis, (name, have) in enumerate(zip(names, shape, strict=True)):
                want = known.setdefault(name, have)
                if have >= 0 and want >= 0 and have != want:
                    return fail(self, f"dimension {axis} of operand #{number} is {have}, expected {want}")
                known[name] = max(have, want)
        return True

    def reify_dynamic(self, dim: int) -> ir.Value | None:
        """A size of the first result."""
        return self.reify_result(dim, 0)

    def reify_result(self, dim: int, result: int) -> ir.Value | None:
        """A batch size of the first operand, the size of an operand's core dimension, or a given one."""
        signature = SIGNATURES[self._op_name]
        core = signature.results[result]
        batch = len(self.results[result].type.shape) - len(core)
        if dim < batch:
            return dim_of(self.operands[0], dim)
        name = core[dim - batch]
        place = signature.place(name)
        if place is None:
            return self.operands[len(signature.operands) + signature.given.index(name)]
        operand = self.operands[place[0]]
        return dim_of(operand, len(operand.type.shape) + place[1])


def _define(name: str, signature: Signature) -> type:
    annotations: dict[str, Any] = {f"x{i}": ext.Operand[Tensor] for i in range(len(signature.operands))}
    annotations.update((f"size_{dim}", ext.Operand[ir.IndexType]) for dim in signature.given)
    annotations.update((f"res{i}", ext.Result[Tensor]) for i in range(len(signature.results)))
    return define(name, Kernel, annotations, DOCS[name], __name__)


CLASSES: dict[str, type] = {name: _define(name, signature) for name, signature in SIGNATURES.items()}

__all__ = ["CLASSES", "Kernel"]
