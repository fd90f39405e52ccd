# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Promises of users' code about memory, and the checks that hold it to them.

Who may overwrite whom is decided from declarations when a function is made (`graph.function_graph`), so all
of a graph relies on them:

* an input is not changed unless it is in ``destroy_map``: other inputs are given as views that refuse to be
  written;
* an output is memory of its own, or shares that of inputs that ``view_map`` or ``destroy_map`` name for it:
  of others it becomes a copy, and so does memory that the code itself keeps, as a cache or a buffer that it
  fills in each call. References tell: nobody but the register has an output;
* each output is stored, and is a value of its type.

`Contract` is asked wherever a node runs such code, as a ``perform``, a function or a thunk. A strict one, in
debug mode, tells what it would otherwise mend, in the way of Theano's ``DebugMode``. Operations of graphc are
trusted.
"""

from __future__ import annotations

import copy
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator, Sequence
from sys import getrefcount
from typing import TYPE_CHECKING, Literal, Protocol, cast

import numpy as np

from graphc.errors import BadDestroyMap, BadViewMap
from graphc.graph.basic import Apply, Variable, describe

if TYPE_CHECKING:
    from graphc_runtime.thunk import Register


class Body(Protocol):
    """Executor of the inner graph of a loop."""

    def run(self, values: Sequence[np.ndarray]) -> list[np.ndarray]:
        """One value for each input to one for each output."""


class Executor(ABC):
    """Runs a graph."""

    @abstractmethod
    def run(self, values: Sequence[np.ndarray]) -> list[np.ndarray]:
        """One value for each input to one for each output."""

    def call(self) -> tuple[Callable[..., np.ndarray | list[np.ndarray]], bool]:
        """A function of the inputs, for graphs that are one thunk of many.

        Returns:
            The function, and whether it returns the one output itself instead of a list.
        """
        return lambda *values: self.run(values), False

    @property
    def is_on_device(self) -> bool:
        """True if it takes and gives arrays of a device."""
        return False

    def hold(self, cells: Sequence[Register]) -> None:
        """Moves values that a function keeps to where they are read, if that is another memory."""
        return

    @property
    def whole(self) -> Executor | None:
        """The graph as one executable, if it is one."""
        return None

    def segments(self) -> Iterator[Executor]:
        """The executables that it runs."""
        if self.whole is not None:
            yield self.whole


# What NumPy, Cython and numba say.
_REFUSALS = ("read-only", "readonly")


def add_place(error: Exception, node: Apply) -> None:
    """Say in the message itself which op failed, as notes are not part of ``str(error)``."""
    _add(error, f"while running {node}{describe(node.location)}")


def _add(error: Exception, line: str) -> None:
    if error.args and isinstance(error.args[0], str) and not isinstance(error, KeyError | OSError):
        error.args = (f"{error.args[0]}\n  {line}", *error.args[1:])
    else:
        error.add_note(line)


class Contract:
    """Holds one node to its promises.

    Args:
        node: the node.
        strict: raise where a promise is broken, and compare inputs with what they were.

    Attributes:
        guards: for each input what makes a value of it that cannot be written; None where it may be.
        overwrites: whether an op of the graph overwrites values. Values that are no arrays are then copied,
            too, if they share memory undeclared.
        is_plain: whether an output that is an array and can be written shares no memory.
    """

    __slots__ = ("_before", "_declared", "_node", "guards", "is_plain", "overwrites", "strict")

    def __init__(self, node: Apply, *, strict: bool = False) -> None:
        self._node, self.strict, self.overwrites = node, strict, False
        op = node.op
        overwritten = op.overwritten
        self.guards = [None if i in overwritten else v.type.read_only for i, v in enumerate(node.inputs)]
        self._declared = [
            {*op.view_map.get(k, ()), *op.destroy_map.get(k, ())} for k in range(len(node.outputs))
        ]
        self._before: list[np.ndarray | None] = []
        self.is_plain = not strict and len(node.outputs) == 1 and None not in self.guards

    def given(self, values: Sequence[np.ndarray | None]) -> list[np.ndarray | None]:
        """The values of inputs as the code is to see them; None stands for one that is not computed yet."""
        if self.strict:
            self._before = [copy.deepcopy(value) for value in values]
        return [
            value if guard is None or value is None else guard(value)
            for guard, value in zip(self.guards, values, strict=True)
        ]

    def settle(
        self,
        values: Sequence[np.ndarray | None],
        registers: Sequence[Register],
        only: Sequence[int] | None = None,
    ) -> None:
        """Makes what the code has stored the values of outputs.

        Args:
            values: what `given` was given. registers: those of the outputs.
            only: the outputs that it has stored now; by default all.

        Raises:
            TypeError: an output is missing, or no value of its type.
            BadDestroyMap: if strict: an input was changed, undeclared.
            BadViewMap: if strict: memory is shared, undeclared.
        """
        for k in range(len(registers)) if only is None else only:
            registers[k][0] = self._owned(k, registers[k][0], values)
        if len(registers) > 1 and only is None:
            self._part(registers)
        for k in range(len(registers)) if only is None else only:
            if not self._declared[k]:
                free(registers[k])
        if self.strict:
            before, self._before = self._before, []
            for i, (guard, v) in enumerate(zip(self.guards, self._node.inputs, strict=True)):
                if guard is None or values[i] is None:
                    continue
                if not v.type.values_eq(before[i], values[i]):
                    raise BadDestroyMap(f"{self._node.op} has changed its input {i}, {v}; {_overwriting(i)}")

    def _owned(self, k: int, value: np.ndarray, values: Sequence[np.ndarray | None]) -> np.ndarray:
        """An output of the promised type, in memory of its own or of inputs that it may share."""
        v = self._node.outputs[k]
        if value is None and not v.type.is_valid_value(value):
            raise TypeError(
                f"{self._node.op} has computed no output {k}, {v} of type {v.type}: its value belongs into "
                f"the register of the output, as output_storage[{k}][0]"
            )
        try:
            value = v.type.filter_output(value)
        except TypeError as error:
            _add(
                error,
                f"output {k} of {self._node.op} is declared as {v.type}, which all of the graph relies on; "
                "store a value of that type, or declare another one (None for a size that may differ)",
            )
            raise
        is_array = isinstance(value, np.ndarray)
        if is_array and self.is_plain and value.flags.writeable:
            return value
        shared = [
            i
            for i, x in enumerate(values)
            if x is not None and self._shares(v, value, self._node.inputs[i], x)
        ]
        undeclared = [i for i in shared if i not in self._declared[k]]
        if undeclared and self.strict:
            i = undeclared[0]
            raise BadViewMap(
                f"output {k} of {self._node.op} shares memory with its input {i}, {self._node.inputs[i]}; "
                f"return a copy, or declare it: view_map = {{{k}: [{i}]}}, or destroy_map if it overwrites it"
            )
        if undeclared and (is_array or self.overwrites):
            return copy.deepcopy(value)
        if is_array and not value.flags.writeable:
            if not shared:
                return value.copy()
            if all(getattr(values[i], "flags", value.flags).writeable for i in shared):
                value.setflags(write=True)
        return value

    def _part(self, registers: Sequence[Register]) -> None:
        """Sees to it that outputs share memory only if they are declared to share that of one input."""
        outputs = self._node.outputs
        for k, register in enumerate(registers):
            for j in range(k):
                if self._declared[j] & self._declared[k]:
                    continue
                if not self._shares(outputs[k], register[0], outputs[j], registers[j][0]):
                    continue
                if self.strict:
                    raise BadViewMap(
                        f"outputs {j} and {k} of {self._node.op} share memory; return a copy of one of them"
                    )
                if isinstance(register[0], np.ndarray) or self.overwrites:
                    register[0] = copy.deepcopy(register[0])

    def _shares(self, v: Variable, a: np.ndarray, w: Variable, b: np.ndarray) -> bool:
        """True if values of two variables share memory: their types say so."""
        if isinstance(a, np.ndarray) and isinstance(b, np.ndarray):
            return v.type.may_share_memory(a, b) and _overlap(a, b)
        if type(v.type) is type(w.type):
            return v.type.may_share_memory(a, b)
        try:
            return v.type.may_share_memory(a, b) or w.type.may_share_memory(b, a)
        except (AttributeError, TypeError):
            # A type knows its own values.
            return False

    def explain(self, error: Exception) -> None:
        """Adds to an error of the code which op it is of, and what to do if it wrote into an input.

        Raises:
            BadDestroyMap: if strict: it did write into an input.
        """
        wrote = any(refusal in str(error) for refusal in _REFUSALS)
        if wrote:
            _add(error, f"{self._node.op} may not write into its inputs; {_overwriting(0)}")
        add_place(error, self._node)
        if wrote and self.strict:
            raise BadDestroyMap(str(error)) from error


def _alone() -> tuple[int, int]:
    """References to an array that one variable has, and to the array that such a view is of."""
    value, view = np.empty(1), np.empty(1)[:]
    return getrefcount(value), getrefcount(view.base)


# Counted here, since versions of Python differ.
ALONE, _ALONE_BASE = _alone()


def free(register: Register) -> None:
    """Makes an array in a register a copy if somebody else has it, or the array that it is a view of."""
    value = register[0]
    if isinstance(value, np.ndarray):
        kept = getrefcount(value) > ALONE + 1 if value.base is None else getrefcount(value.base) > _ALONE_BASE
        register[0] = value.copy() if kept else value


def _overwriting(i: int) -> str:
    return (
        "let it work on a copy (x = x.copy()), or declare that it overwrites an input: "
        f"destroy_map = {{0: [{i}]}}"
    )


def _overlap(a: np.ndarray, b: np.ndarray) -> bool:
    """True if two arrays have an element in common, not only bounds: columns of a matrix have none."""
    # How much work may be done to find out; NumPy's stubs know two special numbers only.
    work = cast("Literal[-1]", 10_000)
    try:
        return np.shares_memory(a, b, max_work=work)
    except np.exceptions.TooHardError:
        return True
