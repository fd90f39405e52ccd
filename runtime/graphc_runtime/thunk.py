# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""``Thunk``: a piece of work over registers.

A register is a list with one element, the value; a computed flag is a list with one bool. A thunk is made
for certain registers and flags, of which a linked program has one set (see `graphc_runtime.linker`). It reads
the registers of its inputs, stores into those of its outputs, and sets the flags of what it has stored. The
contract follows the lazy virtual machine of Theano (``Op.make_thunk`` with ``compute_map``).
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

Register = list[Any]
Flag = list[bool]
MakeThunk = Callable[[Sequence[Flag], Sequence[Flag], Sequence[Register], Sequence[Register]], "Thunk"]


class Spent(list[Any]):
    """Values for a program that nobody else reads: the program takes them out of the list, so that each is
    released after its last reader.

    Examples:
        >>> Spent([1, 2])
        [1, 2]
    """


class Thunk:
    """Base of thunks.

    A thunk keeps nothing from one call of its program to the next but what it can use for any inputs: values
    and progress belong into registers and flags, which the linker clears when the call ends or fails.

    Examples:
        >>> import graphc_runtime
        >>> issubclass(graphc_runtime.FunctionThunk, graphc_runtime.Thunk)
        True
    """

    __slots__ = ("__dict__", "__weakref__")

    @property
    def lazy(self) -> bool:
        """True if a call may find inputs not computed. Otherwise all of them are."""
        return False

    def __call__(self) -> Sequence[int] | None:
        """Computes outputs.

        Returns:
            None or an empty list when finished; else the positions of inputs that are still needed. The
            thunk is called again when they are computed. A lazy thunk reads only inputs whose flag is set.
        """
        raise NotImplementedError(f"{type(self).__name__} must define __call__")


class FunctionThunk(Thunk):
    """Calls a function of all inputs that returns one value for each output.

    Args:
        function: called with the inputs' values.
        input_registers: where these are.
        output_registers: where results go.
        output_computed: flags of the outputs.

    Examples:
        >>> import graphc_runtime
        >>> result, computed = [None], [False]
        >>> thunk = graphc_runtime.FunctionThunk(lambda a, b: [a + b], [[1], [2]], [result], [computed])
        >>> thunk()
        >>> result, computed
        ([3], [True])
    """

    __slots__ = ("_flags", "_function", "_inputs", "_outputs")

    def __init__(
        self,
        function: Callable[..., Any],
        input_registers: Sequence[Register],
        output_registers: Sequence[Register],
        output_computed: Sequence[Flag],
    ) -> None:
        self._function = function
        self._inputs, self._outputs, self._flags = input_registers, output_registers, output_computed

    def __call__(self) -> None:
        results = self._function(*[register[0] for register in self._inputs])
        for register, value in zip(self._outputs, results, strict=True):
            register[0] = value
        for flag in self._flags:
            flag[0] = True


def value_thunk(
    function: Callable[..., object],
    input_registers: Sequence[Register],
    output_register: Register,
    output_computed: Flag,
) -> Thunk:
    """A thunk that calls a function of all inputs, which returns the value of the one output.

    Args:
        function: called with the inputs' values.
        input_registers: where these are.
        output_register: where the result goes.
        output_computed: flag of the output.

    Examples:
        >>> import graphc_runtime
        >>> x, y, done = [3.0], [None], [False]
        >>> thunk = graphc_runtime.value_thunk(lambda v: v + 1, [x], y, done)
        >>> thunk()
        >>> y, done
        ([4.0], [True])
    """
    # One or two inputs spare the list of arguments, a third of the time of a small call.
    kind = {1: _OfOne, 2: _OfTwo}.get(len(input_registers), _OfMany)
    return kind(function, input_registers, output_register, output_computed)


class _OfMany(Thunk):
    __slots__ = ("_flag", "_function", "_inputs", "_output")

    def __init__(
        self,
        function: Callable[..., Any],
        input_registers: Sequence[Register],
        output_register: Register,
        output_computed: Flag,
    ) -> None:
        self._function, self._inputs = function, input_registers
        self._output, self._flag = output_register, output_computed

    def __call__(self) -> None:
        self._output[0] = self._function(*[register[0] for register in self._inputs])
        self._flag[0] = True


class _OfOne(_OfMany):
    __slots__ = ("_first",)

    def __init__(
        self, function: Callable[..., Any], inputs: Sequence[Register], output: Register, computed: Flag
    ) -> None:
        super().__init__(function, inputs, output, computed)
        self._first: Register = inputs[0]

    def __call__(self) -> None:
        self._output[0] = self._function(self._first[0])
        self._flag[0] = True


def plain_call(thunk: Thunk) -> tuple[Callable[..., Any] | None, Register, Register]:
    """The function of a thunk of `value_thunk` with one input, and the registers of the input and the output;
    no function of any other thunk.

    Examples:
        >>> import graphc_runtime
        >>> x, y = [3.0], [None]
        >>> function, source, target = plain_call(graphc_runtime.value_thunk(abs, [x], y, [False]))
        >>> function is abs, source is x, target is y
        (True, True, True)
    """
    if type(thunk) is _OfOne:
        return thunk._function, thunk._first, thunk._output
    return None, [None], [None]


class _OfTwo(_OfOne):
    __slots__ = ("_second",)

    def __init__(
        self, function: Callable[..., Any], inputs: Sequence[Register], output: Register, computed: Flag
    ) -> None:
        super().__init__(function, inputs, output, computed)
        self._second: Register = inputs[1]

    def __call__(self) -> None:
        self._output[0] = self._function(self._first[0], self._second[0])
        self._flag[0] = True
