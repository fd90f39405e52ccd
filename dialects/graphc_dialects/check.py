# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Run-time checks.

A check is an effect of every iteration and of every branch that is run, whatever becomes of the values beside
it: an operation with a check in its regions is not removed, runs as often as it is written, and has no result
that stands for the check. `Checking` says so to upstream's passes, `graphc.ir.rewrite.is_removable` to ours.
Passes that run fewer iterations ask `has_checks` first.
"""

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


NAME = CheckOp.OPERATION_NAME


def raises(op: ir.Operation) -> bool:
    """True if an operation ends the call with an error unless its first operand holds."""
    return op.name == NAME


def has_checks(root: ir.Operation) -> bool:
    """True if an operation below `root` raises: cheaper than to look through `checks_in`."""
    found = False

    def visit(op: ir.Operation) -> ir.WalkResult:
        nonlocal found
        found = found or op.name == NAME
        return ir.WalkResult.INTERRUPT if found else ir.WalkResult.ADVANCE

    root.walk(visit, ir.WalkOrder.PRE_ORDER)
    return found


class Checking:
    """Trait of an operation with a body: it is pure unless there is a check in the body.

    Upstream's `Pure` would let every pass drop a loop of whose results nobody uses any.
    """

    class Effects(ir.MemoryEffectsOpInterface):
        """A write, so that the operation is neither dead nor the same as another one."""

        @staticmethod
        def get_effects(op: ir.Operation, effects: ir.MemoryEffectInstancesList) -> None:
            if has_checks(op.operation):
                effects.append(ir.MemoryEffect.Write)

    class Speculation(ir.ConditionallySpeculatable):
        """It may run where the program would not have run it, unless it could raise there."""

        @staticmethod
        def get_speculatability(op: ir.Operation) -> ir.Speculatability:
            found = has_checks(op.operation)
            return ir.Speculatability.NotSpeculatable if found else ir.Speculatability.Speculatable

    @staticmethod
    def attach(name: str) -> None:
        """Called by the bindings when the dialect is loaded."""
        Checking.Effects.attach(name)
        Checking.Speculation.attach(name)


def checks_in(root: ir.Operation) -> list[ir.Operation]:
    """The operations below `root` that raise, in order."""
    return [op for op in walk(root) if op.name == NAME]
