# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Run-time checks."""

from graphc_dialects._base import Bit, Operation, attribute_of, fail
from graphc_dialects._mlir import ext, ir
from graphc_dialects.walk import walk

# The classes that a check can raise, by their names in the run time.
ERRORS = (
    *("ValueError", "TypeError", "IndexError", "AssertionError", "ZeroDivisionError", "LinAlgError"),
    *("OverflowError", "RuntimeError", "ShapeError"),
)


class CheckOp(Operation, name="check"):
    """Raises `error` at run time unless `cond` holds; `{given}` and `{expected}` are filled into the message.

    It has no effect traits, so that no pass removes it or moves it.
    """

    cond: ext.Operand[Bit]
    given: ext.Operand[ir.IndexType]
    expected: ext.Operand[ir.IndexType]
    message: ir.StringAttr
    error: ir.StringAttr

    def verify_invariants(self) -> bool:
        """Checks that the error is one the run time can raise."""
        attribute = attribute_of(self, "error")
        error = attribute.value if isinstance(attribute, ir.StringAttr) else None
        if error not in ERRORS:
            return fail(self, f"error must be one of {', '.join(ERRORS)}, but is {error}")
        return True


_NAME = CheckOp.OPERATION_NAME


def raises(op: ir.Operation) -> bool:
    """Whether an operation ends the call with an error unless its first operand holds."""
    return op.name == _NAME


def checks_in(root: ir.Operation) -> list[ir.Operation]:
    """The operations below `root` that raise, in order."""
    return [op for op in walk(root) if op.name == _NAME]
