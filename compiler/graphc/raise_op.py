# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Ops that raise when a condition does not hold.

Source: PyTensor's ``pytensor.raise_op``.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, ClassVar

import numpy as np

from graphc.graph.basic import Apply, Maybe, Variable, Variables
from graphc.graph.location import describe
from graphc.graph.op import Op
from graphc.ops.sizes import repeat
from graphc.public import pt

if TYPE_CHECKING:
    from graphc.emit.emitter import Emitter
    from graphc.graph.tensor.like import TensorLike
    from graphc_runtime.thunk import Register

# The classes that a compiled check can raise without the graph, as in an artifact: of others the first base
# that is one of them, or the last.
_COMPILED = frozenset(
    {
        *(AssertionError, IndexError, OverflowError, TypeError, ValueError),
        *(ZeroDivisionError, np.linalg.LinAlgError, RuntimeError),
    }
)


class CheckAndRaise(Op):
    """``op(value, *conditions)`` is the value, but raises unless all elements of all conditions hold.

    The condition is tested where the value is needed, in compiled code, whatever the class. An artifact that
    runs without the graph raises the first base of the class that is a common one of Python's.

    Args:
        exc_type: class of the exception.
        msg: its message, to which the user's line is added.
    """

    __props__: ClassVar[tuple[str, ...]] = ("exc_type", "msg")
    view_map = {0: [0]}

    def __init__(self, exc_type: type[Exception], msg: str = "") -> None:
        if not (isinstance(exc_type, type) and issubclass(exc_type, Exception)):
            raise ValueError(f"exc_type must be a class of exceptions, got {exc_type!r}")
        self.exc_type, self.msg = exc_type, str(msg)

    def make_node(self, value: TensorLike, *conditions: TensorLike) -> Apply:
        value = value if isinstance(value, Variable) else pt.as_tensor_variable(value)
        tests = []
        for condition in conditions:
            test = pt.as_tensor_variable(condition)
            test = test if test.dtype == "bool" else pt.neq(test, 0)
            tests.append(test.all() if test.ndim else test)
        return Apply(self, [value, *tests], [value.type()])

    def perform(self, node: Apply, inputs: Sequence[np.ndarray], output_storage: Sequence[Register]) -> None:
        value, *tests = inputs
        if not all(np.all(test) for test in tests):
            raise self.exc_type(f"{self.msg}{describe(node.location)}")
        output_storage[0][0] = value

    def emit(self, node: Apply, operands: Sequence[str], e: Emitter) -> list[str]:
        """The dialect's check."""
        zero = e.const_index(0)
        error = next((base.__name__ for base in self.exc_type.__mro__ if base in _COMPILED), "RuntimeError")
        message = self.msg.replace("{given}", "{ given}").replace("{expected}", "{ expected}")
        for variable, operand in zip(node.inputs[1:], operands[1:], strict=True):
            condition = e.raw(f"tensor.extract {operand}[] : {e.type_of(variable)}")
            e.check(condition, zero, zero, message, error)
        return [operands[0]]

    def pullback(self, inputs: Variables, outputs: Variables, cotangents: Maybe) -> list[Variable | None]:
        return [cotangents[0], *[None] * (len(inputs) - 1)]

    def pushforward(self, inputs: Variables, outputs: Variables, tangents: Maybe) -> list[Variable | None]:
        return [tangents[0]]

    def connection_pattern(self, node: Apply) -> list[list[bool]]:
        return [[i == 0] for i in range(len(node.inputs))]

    def batch(
        self, node: Apply, inputs: Sequence[Variable], batched: Sequence[bool], size: Variable | int
    ) -> list[Variable]:
        """The conditions of all elements of the batch must hold."""
        value = inputs[0] if batched[0] else repeat(inputs[0], size)
        return [self(value, *inputs[1:])]

    def __str__(self) -> str:
        return f"{type(self).__name__}{{raises={self.exc_type.__name__}, msg={self.msg!r}}}"


class Assert(CheckAndRaise):
    """``Assert(message)(value, *conditions)``: `CheckAndRaise` with `AssertionError`."""

    __props__: ClassVar[tuple[str, ...]] = ("msg",)

    def __init__(self, msg: str = "an assertion of the graph does not hold") -> None:
        super().__init__(AssertionError, msg)

    def __str__(self) -> str:
        return f"Assert{{msg={self.msg!r}}}"


assert_op = Assert()
