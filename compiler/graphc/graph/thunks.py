# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Thunks of nodes that run in Python."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any

from numpy import ndarray

from graphc.graph.basic import Apply
from graphc.graph.location import describe
from graphc.graph.reference import add_place, checked
from graphc.graph.tensor.type import exact_type
from graphc_runtime.thunk import Flag, Register, Thunk

if TYPE_CHECKING:
    import numpy as np

    from graphc.graph.executor import Body


class PerformThunk(Thunk):
    """Runs a node's ``perform`` and checks what it has computed.

    Args:
        node: the node.
        output_computed, input_registers, output_registers: as in `Op.make_thunk`.

    Raises:
        Exception: from calls: whatever the op raises, with the op and the user's line in its message.
        TypeError: from calls: the op broke the promise of its output types.
    """

    __slots__ = ("_checks", "_inputs", "_node", "_outputs", "_perform")

    def __init__(
        self,
        node: Apply,
        output_computed: Sequence[Flag],
        input_registers: Sequence[Register],
        output_registers: Sequence[Register],
    ) -> None:
        self._node, self._perform = node, node.op.perform
        self._inputs, self._outputs = input_registers, output_registers
        self._checks = [
            (register, flag, *exact_type(v.type), v)
            for register, flag, v in zip(output_registers, output_computed, node.outputs, strict=True)
        ]

    def __call__(self) -> None:
        try:
            self._perform(self._node, [register[0] for register in self._inputs], self._outputs)
            for register, flag, dtype, ndim, v in self._checks:
                value = register[0]
                if type(value) is not ndarray or value.dtype is not dtype or value.ndim != ndim:
                    register[0] = checked(v, value)
                flag[0] = True
        except Exception as error:
            add_place(error, self._node)
            raise


class _ToOne(PerformThunk):
    """The same for one output, without loops: what most ops have, and a fifth of the time of small ones."""

    __slots__ = ("_dtype", "_flag", "_ndim", "_output", "_variable")

    def __init__(
        self,
        node: Apply,
        output_computed: Sequence[Flag],
        input_registers: Sequence[Register],
        output_registers: Sequence[Register],
    ) -> None:
        super().__init__(node, output_computed, input_registers, output_registers)
        ((self._output, self._flag, self._dtype, self._ndim, self._variable),) = self._checks

    def __call__(self) -> None:
        try:
            self._perform(self._node, [register[0] for register in self._inputs], self._outputs)
            value = self._output[0]
            if type(value) is not ndarray or value.dtype is not self._dtype or value.ndim != self._ndim:
                self._output[0] = checked(self._variable, value)
            self._flag[0] = True
        except Exception as error:
            add_place(error, self._node)
            raise


class _OneToOne(_ToOne):
    """The same for one input and one output."""

    __slots__ = ("_input",)

    def __init__(
        self,
        node: Apply,
        output_computed: Sequence[Flag],
        input_registers: Sequence[Register],
        output_registers: Sequence[Register],
    ) -> None:
        super().__init__(node, output_computed, input_registers, output_registers)
        (self._input,) = self._inputs

    def __call__(self) -> None:
        try:
            self._perform(self._node, [self._input[0]], self._outputs)
            value = self._output[0]
            if type(value) is not ndarray or value.dtype is not self._dtype or value.ndim != self._ndim:
                self._output[0] = checked(self._variable, value)
            self._flag[0] = True
        except Exception as error:
            add_place(error, self._node)
            raise


class CallThunk(_ToOne):
    """Calls a Python function whose result, if it is an array of the promised dtype and rank, is the output.

    Args:
        function: called with the inputs' values.
        store: stores any other result in the registers of outputs, or refuses it.
        node, output_computed, input_registers, output_registers: as in `Op.make_thunk`; there is one output.
    """

    __slots__ = ("_first", "_function", "_store")

    def __init__(
        self,
        function: Callable[..., object],
        store: Callable[[Apply, object, Sequence[Register]], None],
        node: Apply,
        output_computed: Sequence[Flag],
        input_registers: Sequence[Register],
        output_registers: Sequence[Register],
    ) -> None:
        super().__init__(node, output_computed, input_registers, output_registers)
        self._function, self._store = function, store
        # One input spares the list of arguments.
        self._first = input_registers[0] if len(input_registers) == 1 else None

    def __call__(self) -> None:
        try:
            if self._first is None:
                value = self._function(*[register[0] for register in self._inputs])
            else:
                value = self._function(self._first[0])
            if type(value) is ndarray and value.dtype is self._dtype and value.ndim == self._ndim:
                self._output[0] = value
            else:
                self._store(self._node, value, self._outputs)
                self._output[0] = checked(self._variable, self._output[0])
            self._flag[0] = True
        except Exception as error:
            add_place(error, self._node)
            raise


def perform_thunk(
    node: Apply,
    output_computed: Sequence[Flag],
    input_registers: Sequence[Register],
    output_registers: Sequence[Register],
) -> PerformThunk:
    """The fastest `PerformThunk` for a node; arguments as there."""
    kind: type[PerformThunk] = PerformThunk
    if len(output_registers) == 1:
        kind = _OneToOne if len(input_registers) == 1 else _ToOne
    return kind(node, output_computed, input_registers, output_registers)


class UserThunk(Thunk):
    """What a user's ``make_thunk`` has made: a thunk, or a plain function as Theano's ops return it. Errors
    name the op and the user's line.

    Args:
        thunk: the thunk or function; a function with an attribute ``lazy`` that is true sets its own flags.
        node: the node.
        output_computed: flags of the outputs.
    """

    __slots__ = ("_flags", "_lazy", "_node", "_thunk")

    def __init__(
        self, thunk: Callable[[], Sequence[int] | None], node: Apply, output_computed: Sequence[Flag]
    ) -> None:
        self._thunk, self._node, self._lazy = thunk, node, bool(getattr(thunk, "lazy", False))
        self._flags = () if self._lazy or isinstance(thunk, Thunk) else output_computed

    @property
    def lazy(self) -> bool:
        return self._lazy

    def __call__(self) -> Sequence[int] | None:
        try:
            needed = self._thunk()
        except Exception as error:
            add_place(error, self._node)
            raise
        for flag in self._flags:
            flag[0] = True
        return needed


def user_thunk(
    node: Apply,
    input_computed: Sequence[Flag],
    output_computed: Sequence[Flag],
    input_registers: Sequence[Register],
    output_registers: Sequence[Register],
) -> Thunk:
    """The thunk of an op with a ``make_thunk`` of its own, with the arguments of `Op.make_thunk` or with
    those of PyTensor: node, storage_map, compute_map, no_recycling.

    Raises:
        TypeError: it makes something that cannot be called.
    """
    op = node.op
    if "storage_map" in inspect.signature(op.make_thunk).parameters:
        variables = [*node.inputs, *node.outputs]
        storage = dict(zip(variables, [*input_registers, *output_registers], strict=True))
        computed = dict(zip(variables, [*input_computed, *output_computed], strict=True))
        made: Any = op.make_thunk(node, storage, computed, [])  # type: ignore[call-arg, arg-type]
    else:
        made = op.make_thunk(node, input_computed, output_computed, input_registers, output_registers)
    if not callable(made):
        raise TypeError(
            f"make_thunk of {op} must return a thunk or a function, got {made!r}{describe(node.location)}"
        )
    return UserThunk(made, node, output_computed)


class LoopThunk(PerformThunk):
    """Runs a loop in Python.

    Args:
        node: an op with ``run(inputs, body)``.
        output_computed, input_registers, output_registers: as in `Op.make_thunk`.
        body: what runs the inner graph.
    """

    __slots__ = ("_body",)

    def __init__(
        self,
        node: Apply,
        output_computed: Sequence[Flag],
        input_registers: Sequence[Register],
        output_registers: Sequence[Register],
        body: Body,
    ) -> None:
        super().__init__(node, output_computed, input_registers, output_registers)
        self._body = body
        self._perform = self._iterate

    def _iterate(self, node: Apply, inputs: Sequence[np.ndarray], output_storage: Sequence[Register]) -> None:
        if hasattr(self._body, "restart"):
            self._body.restart()
        op: Any = node.op  # a loop, which has `run`
        for register, value in zip(output_storage, op.run(inputs, self._body), strict=True):
            register[0] = value
