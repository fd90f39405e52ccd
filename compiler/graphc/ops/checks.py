# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Ops that raise when a condition does not hold, and the domains of arguments.

A function whose argument has a domain says so by `required` (or `as_count`): a constant is refused where the
graph is built, another value when it is run, wherever the value that `required` returned is needed. So what
computes every result must read that value, not the argument. `tests/numeric/test_domains.py` lists the
arguments of all public functions with their domains, and fails for a new one of which nothing is said.

Source: PyTensor's ``pytensor.raise_op``.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, ClassVar

import numpy as np

from graphc.graph.basic import Apply, Constant, Flags, Maybe, Variable, Variables, describe
from graphc.graph.op import Op, same_tangent
from graphc.graph.tensor.convert import as_tensor_variable
from graphc.ops.math import eq, ne
from graphc.ops.shape import Shape_i, as_size, known_value, made_as
from graphc.ops.shaping import repeat

if TYPE_CHECKING:
    from graphc.emit.emitter import Emitter
    from graphc.graph.tensor import TensorLike
    from graphc.graph.tensor.variable import TensorVariable
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
    depends_on = (0,)

    def __init__(self, exc_type: type[Exception], msg: str = "") -> None:
        if not (isinstance(exc_type, type) and issubclass(exc_type, Exception)):
            raise ValueError(f"exc_type must be a class of exceptions, got {exc_type!r}")
        self.exc_type, self.msg = exc_type, str(msg)

    def make_node(self, value: TensorLike, *conditions: TensorLike) -> Apply:
        value = value if isinstance(value, Variable) else as_tensor_variable(value)
        tests = []
        for condition in conditions:
            test = as_tensor_variable(condition)
            test = test if test.dtype == "bool" else ne(test, 0)
            tests.append(test.all() if test.ndim else test)
        return Apply(self, [value, *tests], [value.type()])

    def perform(self, node: Apply, inputs: Sequence[np.ndarray], output_storage: Sequence[Register]) -> None:
        value, *tests = inputs
        if not all(np.all(test) for test in tests):
            given = f", got {value}" if self._shows(node) else ""
            raise self.exc_type(f"{self.msg}{given}{describe(node.location)}")
        output_storage[0][0] = value

    def emit(self, node: Apply, operands: Sequence[str], e: Emitter) -> list[str]:
        """The dialect's check."""
        given = zero = e.const_index(0)
        error = next((base.__name__ for base in self.exc_type.__mro__ if base in _COMPILED), "RuntimeError")
        message = self.msg.replace("{given}", "{ given}").replace("{expected}", "{ expected}")
        if self._shows(node):
            given, message = e.index(node.inputs[0], operands[0]), f"{message}, got {{given}}"
        for variable, operand in zip(node.inputs[1:], operands[1:], strict=True):
            condition = e.raw(f"tensor.extract {operand}[] : {e.type_of(variable)}")
            e.check(condition, given, zero, message, error)
        return [operands[0]]

    def _shows(self, node: Apply) -> bool:
        """True if the message ends with the value."""
        return False

    def pullback(self, inputs: Variables, outputs: Variables, cotangents: Maybe) -> list[Variable | None]:
        return [cotangents[0], *[None] * (len(inputs) - 1)]

    pushforward = same_tangent

    def batch(self, node: Apply, inputs: Variables, batched: Flags, size: Variable | int) -> list[Variable]:
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


class Required(CheckAndRaise):
    """`CheckAndRaise` whose message ends with the value where that is one signed integer; see `required`."""

    def _shows(self, node: Apply) -> bool:
        return node.inputs[0].type.ndim == 0 and node.inputs[0].type.kind == "i"


def where_sizes(
    v: TensorVariable, sizes: Sequence[tuple[Variable, int, int]], message: str
) -> TensorVariable:
    """``v``, which raises a ValueError unless each variable has that size along that axis."""
    conditions = [eq(Shape_i(axis)(x), size) for x, axis, size in sizes]
    checked: TensorVariable = CheckAndRaise(ValueError, message)(v, *conditions)
    return checked


def required(
    value: TensorVariable, holds: Callable[..., object], message: str, error: type[Exception] = ValueError
) -> TensorVariable:
    """An argument of which something must hold.

    Args:
        value: the argument.
        holds: the condition, elementwise, as a function of the argument: of an array if its value is known.
        message: what must hold. What was given and the user's line follow.
        error: class of the exception.

    Returns:
        The argument if it is known to be right, else one that is tested where it is needed.

    Raises:
        error: the value is known, and wrong.
    """
    known = value.data if isinstance(value, Constant) else known_value(value)
    condition = holds(value if known is None else known)
    if known is None and not isinstance(condition, Variable):
        # As of ``x != 0``, which compares objects: nothing would be tested.
        raise TypeError(f"the condition of {value} must be an expression of it, got {condition!r}")
    right = known_value(condition) if isinstance(condition, Variable) else condition
    if right is not None and not np.asarray(right).all():
        raise error(f"{message}, got {value if known is None else known}")
    return value if right is not None else Required(error, message)(value, condition)


def as_count(n: TensorLike | None, what: str, name: str = "a size") -> TensorVariable:
    """A size as a 0-d int64 variable, required to be at least 0."""
    count = as_size(n, what)
    # The size of an array is one already; a test of it would have to be waited for on devices.
    if isinstance(getattr(made_as(count).owner, "op", None), Required | Shape_i):
        return count
    return required(count, lambda n: n >= 0, f"{what}: {name} must be at least 0")
