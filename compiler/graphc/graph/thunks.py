# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Thunks of nodes that run in Python."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Sequence
from sys import getrefcount
from typing import TYPE_CHECKING, Any, NamedTuple

from numpy import errstate, ndarray

from graphc.graph.basic import Apply, describe
from graphc.graph.contract import ALONE, Contract, add_place
from graphc_runtime.thunk import Flag, Register, Thunk

if TYPE_CHECKING:
    import numpy as np

    from graphc.graph.contract import Body


class Cells(NamedTuple):
    """Flags and registers of a thunk, as in `Op.make_thunk`."""

    input_computed: Sequence[Flag]
    output_computed: Sequence[Flag]
    input_registers: Sequence[Register]
    output_registers: Sequence[Register]


class PerformThunk(Thunk):
    """Runs a node's ``perform`` and checks what it has computed.

    Args:
        node: the node.
        cells: flags and registers.

    Raises:
        Exception: from calls: whatever the op raises, with the op and the user's line in its message.
        TypeError: from calls: the op broke the promise of its output types.
    """

    __slots__ = ("_checks", "_inputs", "_node", "_outputs", "_perform")

    def __init__(self, node: Apply, cells: Cells) -> None:
        self._node, self._perform = node, node.op.perform
        _, flags, self._inputs, self._outputs = cells
        self._checks = [
            (register, flag, *v.type.exact(), v)
            for register, flag, v in zip(self._outputs, flags, node.outputs, strict=True)
        ]
        self._prepare()

    def _prepare(self) -> None:
        """Looks up what the calls of a derived class use."""

    def __call__(self) -> None:
        try:
            self._perform(self._node, [register[0] for register in self._inputs], self._outputs)
            for register, flag, dtype, ndim, v in self._checks:
                value = register[0]
                if type(value) is not ndarray or value.dtype is not dtype or value.ndim != ndim:
                    register[0] = v.type.filter_output(value)
                flag[0] = True
        except Exception as error:
            add_place(error, self._node)
            raise


class _ToOne(PerformThunk):
    """The same for one output, without loops: what most ops have, and a fifth of the time of small ones."""

    __slots__ = ("_dtype", "_first", "_flag", "_ndim", "_output", "_variable")

    def _prepare(self) -> None:
        ((self._output, self._flag, self._dtype, self._ndim, self._variable),) = self._checks
        self._first = self._inputs[0] if len(self._inputs) == 1 else None

    def __call__(self) -> None:
        first = self._first
        try:
            inputs = [register[0] for register in self._inputs] if first is None else [first[0]]
            self._perform(self._node, inputs, self._outputs)
            value = self._output[0]
            if type(value) is not ndarray or value.dtype is not self._dtype or value.ndim != self._ndim:
                self._output[0] = self._variable.type.filter_output(value)
            self._flag[0] = True
        except Exception as error:
            add_place(error, self._node)
            raise


class ForeignThunk(PerformThunk):
    """Runs a ``perform`` that is code of users, and holds it to its `Contract`."""

    __slots__ = ("contract",)

    def _prepare(self) -> None:
        self.contract = Contract(self._node)

    def __call__(self) -> None:
        contract, values = self.contract, [register[0] for register in self._inputs]
        try:
            self._perform(self._node, contract.given(values), self._outputs)
            contract.settle(values, self._outputs)
        except Exception as error:
            contract.explain(error)
            raise
        for _, flag, _, _, _ in self._checks:
            flag[0] = True


class CallThunk(ForeignThunk):
    """Calls a Python function whose result, if it is an array of the promised dtype and rank, is the output.

    Args:
        function: called with the inputs' values.
        store: stores any other result in the registers of outputs, or refuses it.
        node: the node, which has one output.
        cells: flags and registers.
    """

    __slots__ = ("_dtype", "_first", "_flag", "_function", "_guarded", "_ndim", "_output", "_store")

    def __init__(
        self,
        function: Callable[..., object],
        store: Callable[[Apply, object, Sequence[Register]], None],
        node: Apply,
        cells: Cells,
    ) -> None:
        super().__init__(node, cells)
        self._function, self._store = function, store
        ((self._output, self._flag, self._dtype, self._ndim, _),) = self._checks
        guarded = zip(self.contract.guards, cells.input_registers, strict=True)
        self._guarded = [(guard, register) for guard, register in guarded if guard is not None]
        self._first = self._guarded[0] if len(self._guarded) == 1 else None

    def __call__(self) -> None:
        contract, first = self.contract, self._first
        if not contract.is_plain:
            super().__call__()
            return
        try:
            # One input spares the list of arguments, a fifth of the time of a small call.
            if first is not None:
                value = self._function(first[0](first[1][0]))
            else:
                value = self._function(*[guard(register[0]) for guard, register in self._guarded])
            if (
                type(value) is ndarray
                and value.dtype is self._dtype
                and value.ndim == self._ndim
                and value.base is None
                and value.flags.writeable
                and getrefcount(value) <= ALONE
            ):
                self._output[0] = value
            else:
                self._store(self._node, value, self._outputs)
                value = None
                contract.settle([register[0] for register in self._inputs], self._outputs)
        except Exception as error:
            contract.explain(error)
            raise
        self._flag[0] = True


def perform_thunk(node: Apply, cells: Cells) -> PerformThunk:
    """The fastest `PerformThunk` for a node; arguments as there."""
    plain = _ToOne if len(cells.output_registers) == 1 else PerformThunk
    kind = ForeignThunk if node.op.is_foreign() else plain
    return kind(node, cells)


class UserThunk(Thunk):
    """A thunk of a user's ``make_thunk``, which returned a thunk, or a plain function as Theano's ops do. It
    is held to its `Contract`, and errors name the op and the user's line.

    Args:
        make: makes it from registers for the inputs, of which it may read those that have been computed.
        node: the node.
        cells: flags and registers.

    Raises:
        TypeError: it cannot be called. From calls: it has not stored an output, or asks for inputs though it
            is not lazy (has no attribute ``lazy`` that is true), so that all of them are computed.
    """

    __slots__ = ("_flags", "_inputs", "_lazy", "_node", "_outputs", "_thunk", "contract")

    def __init__(
        self,
        make: Callable[[Sequence[Register]], Callable[[], Sequence[int] | None]],
        node: Apply,
        cells: Cells,
    ) -> None:
        self._node, self._outputs, self._flags = node, cells.output_registers, cells.output_computed
        self.contract = Contract(node)
        seen: list[Register] = [[None] for _ in cells.input_registers]
        self._inputs = list(zip(cells.input_computed, cells.input_registers, seen, strict=True))
        self._thunk = make(seen)
        if not callable(self._thunk):
            raise TypeError(
                f"make_thunk of {node.op} must return a thunk or a function, got "
                f"{self._thunk!r}{describe(node.location)}"
            )
        self._lazy = bool(getattr(self._thunk, "lazy", False))

    @property
    def lazy(self) -> bool:
        return self._lazy

    def __call__(self) -> Sequence[int] | None:
        contract = self.contract
        # A lazy thunk may be called several times, and what it stored before may be released by now.
        values = [register[0] if flag[0] or not self._lazy else None for flag, register, _ in self._inputs]
        waiting = [k for k, flag in enumerate(self._flags) if not (self._lazy and flag[0])]
        try:
            for (_, _, register), value in zip(self._inputs, contract.given(values), strict=True):
                register[0] = value
            needed = self._thunk()
            if needed and not self._lazy:
                raise TypeError(
                    f"the thunk of {self._node.op} asks for its inputs {list(needed)}, which are computed: "
                    "only a thunk with an attribute lazy that is true may ask, others return None"
                )
            now = [k for k in waiting if not needed or self._flags[k][0]]
            contract.settle(values, self._outputs, now if self._lazy else None)
        except Exception as error:
            contract.explain(error)
            raise
        finally:
            for _, _, register in self._inputs:
                register[0] = None
        if not needed:
            for flag in self._flags:
                flag[0] = True
        return needed


def user_thunk(node: Apply, cells: Cells) -> UserThunk:
    """The thunk of an op with a ``make_thunk`` of its own, with the arguments of `Op.make_thunk` or with
    those of PyTensor: node, storage_map, compute_map, no_recycling.

    Raises:
        TypeError: it makes something that cannot be called.
    """
    op = node.op

    def make(registers: Sequence[Register]) -> Any:
        if "storage_map" not in inspect.signature(op.make_thunk).parameters:
            return op.make_thunk(node, *cells._replace(input_registers=registers))
        variables = [*node.inputs, *node.outputs]
        storage = dict(zip(variables, [*registers, *cells.output_registers], strict=True))
        computed = dict(zip(variables, [*cells.input_computed, *cells.output_computed], strict=True))
        return op.make_thunk(node, storage, computed, [])  # type: ignore[call-arg, arg-type]

    return UserThunk(make, node, cells)


def perform_node(
    node: Apply, inputs: Sequence[np.ndarray], strict: bool = False, overwrites: bool = False
) -> list[np.ndarray]:
    """Run one node, by ``perform``, or by ``make_thunk`` of an op of a user that has nothing else.

    Args:
        node: the node.
        inputs: values of its inputs.
        strict, overwrites: as in `Contract`.

    Raises:
        Exception: whatever the op raises, with the op and the user's line in its message.
        TypeError: the op broke the promise of its output types.
    """
    registers: list[Register] = [[None] for _ in node.outputs]
    if not node.op.is_foreign():
        try:
            with errstate(all="ignore"):
                node.op.perform(node, inputs, registers)
            return [v.type.filter_output(cell[0]) for v, cell in zip(node.outputs, registers, strict=True)]
        except Exception as error:
            add_place(error, node)
            raise
    cells = Cells([[True] for _ in inputs], [[False] for _ in registers], [[x] for x in inputs], registers)
    thunk = user_thunk(node, cells) if node.op.only_makes_thunks() else ForeignThunk(node, cells)
    thunk.contract = Contract(node, strict=strict)
    thunk.contract.overwrites = overwrites
    with errstate(all="ignore"):
        thunk()
    return [register[0] for register in registers]


class LoopThunk(PerformThunk):
    """Runs a loop in Python.

    Args:
        node: of an op with ``run(inputs, body)``.
        cells: flags and registers.
        body: what runs the inner graph.
    """

    __slots__ = ("_body",)

    def __init__(self, node: Apply, cells: Cells, body: Body) -> None:
        super().__init__(node, cells)
        self._body = body
        self._perform = self._iterate

    def _iterate(self, node: Apply, inputs: Sequence[np.ndarray], output_storage: Sequence[Register]) -> None:
        if hasattr(self._body, "restart"):
            self._body.restart()
        op: Any = node.op  # a loop, which has `run`
        for register, value in zip(output_storage, op.run(inputs, self._body), strict=True):
            register[0] = value
