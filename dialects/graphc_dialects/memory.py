# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Memory that code unknown to the compiler reads or writes: kernels, random draws."""

from graphc_dialects._base import Operation, Tensor, attribute_of, fail
from graphc_dialects._mlir import ext, ir

ACCESSES = ("read", "write")


class AddressOp(Operation, name="address"):
    """A pointer to the elements of a buffer, side by side in row-major order.

    With the access `read`, to those of a copy where they lie apart: the call that takes the pointer must
    follow at once. With `write`, the memory has to be contiguous. It has no effect traits, so that nothing
    moves across it. `graphc-kernel-pointers` replaces it where the layouts of buffers are known.
    """

    buffer: ext.Operand[Tensor]
    access: ir.StringAttr
    res: ext.Result[Tensor]

    def verify_invariants(self) -> bool:
        """Checks the types and the access."""
        if len(self.operands) != 1 or len(self.results) != 1:
            return fail(self, "takes a buffer and gives a pointer")
        kinds = self.operands[0].type, self.results[0].type
        if not isinstance(kinds[0], ir.MemRefType) or str(kinds[1]) != "!llvm.ptr":
            return fail(self, f"takes a memref and gives a !llvm.ptr, but has {kinds[0]} and {kinds[1]}")
        attribute = attribute_of(self, "access")
        access = attribute.value if isinstance(attribute, ir.StringAttr) else None
        return access in ACCESSES or fail(
            self, f"access must be one of {', '.join(ACCESSES)}, but is {access}"
        )


def is_address(op: ir.Operation) -> bool:
    """True if an operation gives a pointer to a buffer."""
    return op.name == AddressOp.OPERATION_NAME


def is_written(op: ir.Operation) -> bool:
    """True if an operation gives a pointer to a buffer to calls that write there."""
    return is_address(op) and ir.StringAttr(op.attributes["access"]).value == ACCESSES[1]
