# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""The path of a call where machine code does not take it.

    read       arguments -> one checked value for each input
    hand over  values in the layout that machine code takes, if only that was missing: it takes them then
    run        values of shared variables -> executor -> new values stored all at once; again, if another
               thread was faster
    own        results -> arrays that are nobody else's, or the caller's (``out=``)

Each step is a method below, in this order; `Calls.__call__` is the whole way, on flat lists.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from operator import is_not
from typing import Any

import numpy as np

from graphc.errors import IntegerRangeError
from graphc.function.call_form import Signature, container
from graphc.function.compiled import Compiled, Program
from graphc.function.io import In
from graphc.function.results import Buffers, canonical, own_results
from graphc.graph.basic import describe
from graphc_runtime.commit import attempts, commit, has_turn, snapshot
from graphc_runtime.executable import ReadyCall
from graphc_runtime.kernel_call import is_owner
from graphc_runtime.marshal import demand_numbers, is_on_device, on_host


class ArgumentReader:
    """Reads the arguments of a function's calls.

    Args:
        inputs: the function's inputs.
        function_name: for messages.
        allow_downcast: what values are filtered with where an input does not say so itself.
        keeps_device: arrays of a device are taken as they are; else their values are copied to the host.
    """

    def __init__(
        self, inputs: list[In], function_name: str, allow_downcast: bool | None, *, keeps_device: bool = False
    ) -> None:
        self.inputs = inputs
        self.function_name = function_name
        self._keeps_device = keeps_device
        self.positions = {item.name: i for i, item in enumerate(inputs) if item.name is not None}
        names = [item.name for item in inputs]
        self._ambiguous = {name for name in self.positions if names.count(name) > 1}
        self._allow_downcast = [
            allow_downcast if item.allow_downcast is None else item.allow_downcast for item in inputs
        ]
        self._exact = [item.variable.type.exact() for item in inputs]

    def are_exact(self, args: tuple[object, ...]) -> bool:
        """True if arguments by position are one array of the input's type for each input, and so need no
        check.
        """
        if len(args) != len(self._exact):
            return False
        for value, (dtype, ndim) in zip(args, self._exact):  # noqa: B905
            if type(value) is not np.ndarray or value.dtype is not dtype or value.ndim != ndim:
                return False
        return True

    def read(self, args: tuple[Any, ...], kwargs: dict[str, Any], trust: bool) -> list[Any]:
        """One value for each input.

        Args:
            args: values by position.
            kwargs: values by name.
            trust: take values as they are, but for NumPy's generators, of which the states are taken; what
                tensors have no place for, such as a mask, is refused.

        Raises:
            TypeError: an input is missing, unknown, given twice, or of the wrong type, dtype, rank or static
                size.
        """
        if len(args) > len(self.inputs):
            inputs = "input" if len(self.inputs) == 1 else "inputs"
            raise TypeError(
                f"{self._signature()} takes {len(self.inputs)} {inputs}, got {len(args)} by position"
            )
        given: dict[int, Any] = dict(enumerate(args))
        for name, value in kwargs.items():
            position = self.positions.get(name)
            if name in self._ambiguous:
                raise TypeError(
                    f"{self._signature()} has several inputs named {name!r}; give them by position"
                )
            if position is None:
                known = ", ".join(sorted(self.positions)) or "none, as no input has a name of its own"
                raise TypeError(f"{self._signature()} has no input named {name!r}; the names are {known}")
            if position in given:
                raise TypeError(f"{self._signature()} got the input {name!r} both by position and by name")
            given[position] = value
        values, missing = [], []
        for i, item in enumerate(self.inputs):
            if i in given:
                value = given[i]
                if not (self._keeps_device and is_on_device(value)):
                    value = self._filter(i, value, trust and not isinstance(value, np.random.Generator))
                values.append(value)
            elif item.default is not None:
                values.append(item.default[0])
            else:
                missing.append(i)
        if missing:
            raise TypeError(f"{self._signature()} is missing {', '.join(self.describe(i) for i in missing)}")
        return values

    def _filter(self, i: int, value: object, as_is: bool) -> Any:
        item = self.inputs[i]
        try:
            if as_is:
                demand_numbers(value)
                return value
            found = item.variable.type.filter(
                value, strict=item.strict, allow_downcast=self._allow_downcast[i]
            )
            # Of a matrix NumPy's functions would make something else.
            return np.asarray(found) if isinstance(found, np.ndarray) else found
        except (TypeError, ValueError, NotImplementedError) as error:
            message = f"{self._signature()} cannot take this value for {self.describe(i)}: {error}"
            kinds = (IntegerRangeError, TypeError, ValueError, NotImplementedError)
            raise next(kind for kind in kinds if isinstance(error, kind))(message) from None

    def describe(self, i: int) -> str:
        """An input in words: position, name, and where it was made."""
        item = self.inputs[i]
        name = f" {item.name!r}" if item.name is not None else ""
        return f"input {i}{name} of type {item.variable.type}{describe(item.variable.location)}"

    def _signature(self) -> str:
        names = (item.name if item.name is not None else f"input {i}" for i, item in enumerate(self.inputs))
        return f"{self.function_name}({', '.join(names)})"


class Calls:
    """Calls of a function that run in Python.

    Args:
        signature: how calls look.
        program: what they run.

    Attributes:
        cells: the one-element lists that hold the values which the function keeps.
        targets: those that calls replace the values of.
        runner: what runs the graph: the program's executor, or what records it.
        machine: takes the values of calls that are machine code; None where there is none.
        ready: takes calls by position that are like one before, and gives None for others; None where there
            is no such function.
        trust: whether inputs are taken as they are.
        is_on_device: whether arrays of a device are taken, kept and given.
    """

    def __init__(self, signature: Signature, program: Program) -> None:
        inputs, fgraph = signature.inputs, program.fgraph
        self.signature = signature
        self.is_on_device = program.executor.is_on_device
        self.reader = ArgumentReader(
            inputs, program.report.name, signature.allow_downcast, keeps_device=self.is_on_device
        )
        self.cells = [container(v) for v in fgraph.inputs[len(inputs) :]]
        self.targets = [container(target) for target in signature.targets]
        self.runner: Any = program.executor
        self._executor = program.executor
        self.machine: Callable[..., Any] | None = None
        self.ready: ReadyCall | None = None
        self.trust = signature.trust_input
        # Compiled code can lend memory, and has no effects but its results.
        self._donated = signature.donated
        self._lends = isinstance(program.executor, Compiled)
        destroyers = fgraph.destruction.destroyers
        self._destroyed = [i for i, v in enumerate(fgraph.inputs) if v in destroyers]
        # Whether arguments are all that there is, and nobody overwrites them.
        self._is_pure = not (
            self.cells or self.targets or self._destroyed or self._lends or self.is_on_device
        )

    def __call__(self, args: tuple[Any, ...], kwargs: dict[str, Any], buffers: Buffers | None) -> list[Any]:
        """A flat list of results.

        Args:
            args: values by position.
            kwargs: values by name.
            buffers: arrays for the results; None where new ones are wanted.
        """
        found = self._as_before(args, buffers) if buffers is not None and not kwargs else None
        if found is not None:
            return found
        values = self._read(args, kwargs)
        if self.ready is not None and (len(args) != len(values) or any(map(is_not, values, args))):
            found = self._as_before(values, buffers)
            if found is not None:
                return found
        if self.machine is not None:
            exact = self._exact(values, args)
            if exact is not None:
                return self._handed_over(self.machine, exact, buffers)
        if self._is_pure and buffers is None:
            return own_results(self.runner.run(values), values, self.signature.form.borrowed)
        return self._run(values, buffers)

    def _as_before(self, values: Sequence[object], buffers: Buffers | None) -> list[object] | None:
        """The results of a call like one before; None if it is none. What records calls sees all of them."""
        if self.ready is None or self.runner is not self._executor:
            return None
        if buffers is None:
            found = self.ready(values)
        elif any(array is not None for array in buffers.arrays):
            return None  # of the host
        else:
            found = self.ready(values, buffers.on_device)
        return None if found is None else list(found)

    # -- read ------------------------------------------------------------------------------------------------

    def _read(self, args: tuple[Any, ...], kwargs: dict[str, Any]) -> list[Any]:
        """One checked value for each input."""
        if not kwargs and self.reader.are_exact(args):
            return list(args)
        return self.reader.read(args, kwargs, self.trust)

    # -- hand over -------------------------------------------------------------------------------------------

    def _exact(self, values: Sequence[np.ndarray], args: tuple[object, ...]) -> list[Any] | None:
        """The values as machine code takes them; None if it has declined just these."""
        exact = [canonical(value) for value in values]
        if len(args) == len(exact) and all(new is old for new, old in zip(exact, args, strict=True)):
            return None
        for i in self._donated:
            default = self.signature.inputs[i].default
            if default is not None and exact[i] is default[0]:
                exact[i] = exact[i].copy()
        return exact

    def _handed_over(
        self, machine: Callable[..., Any], exact: list[Any], buffers: Buffers | None
    ) -> list[Any]:
        single = self.signature.form.is_single
        if buffers is None:
            results = machine(*exact)
        else:
            results = machine(*exact, out=buffers.arrays[0] if single else buffers.arrays)
        return [results] if single else results

    # -- run -------------------------------------------------------------------------------------------------

    def _run(self, given: list[Any], buffers: Buffers | None) -> list[Any]:
        """Run the executor, store the results and then the updates.

        If another thread has replaced a value meanwhile that was read for updates, everything runs again;
        Python ops once, as they may have effects of their own.
        """
        if not self.targets:
            return self._attempt(list(given), buffers, last=True, lends=True) or []
        lends = self._lends and buffers is None and len(self._lent(given)) > 0
        results = None
        for last in attempts(once=not self._lends or lends or len(self._destroyed) > 0):
            results = self._attempt(list(given), buffers, last, lends)
            if results is not None:
                break
        assert results is not None
        return results

    def _attempt(
        self, values: list[object], buffers: Buffers | None, last: bool, lends: bool
    ) -> list[object] | None:
        """The results; None if the call has to run again. What overwrites values of cells has the turn."""
        lent = self._lent(values) if lends and self._lends and buffers is None else []
        stays = self.runner.is_on_device
        if stays:
            self.runner.hold(self.cells)
        read = snapshot(self.cells)
        values += read if stays else map(on_host, read)
        computed = self._computed(values, lent, buffers)
        if not self.targets:
            return computed if buffers is None else buffers.store(computed)
        n_results = self.signature.form.count
        results, new_values = computed[:n_results], computed[n_results:]
        if buffers is not None:
            results = buffers.store(results)
        new = [canonical(value) if isinstance(value, np.ndarray) else value for value in new_values]
        if commit(self.targets, new, self.cells, read):
            return results
        # The last call to end wins where what was read has been overwritten, and where only an op of this
        # very call can have stored something.
        if last or self._destroyed or lent or (not self._lends and has_turn()):
            commit(self.targets, new, (), ())
            return results
        return None

    def _computed(self, values: list[object], lent: Sequence[int], buffers: Buffers | None) -> list[object]:
        """Results of the executor, as arrays that are nobody else's."""
        kept = values
        if self._destroyed or lent:
            for i in self._destroyed:
                values[i] = self._own(i, values)
            overwritten = {*self._destroyed, *lent}
            kept = [value for i, value in enumerate(values) if i not in overwritten]
        if self.is_on_device and buffers is not None:
            return list(self.runner.run(values, out=buffers.on_device))
        found = self.runner.run(values, lent) if lent else self.runner.run(values)
        return own_results(found, kept, self.signature.form.borrowed)

    def _lent(self, values: list[object]) -> list[int]:
        """Positions of the values whose memory compiled code may use for results."""
        if self.is_on_device:
            return []  # kernels write arrays of their own
        inputs = self.signature.inputs
        defaults = [(i, inputs[i].default) for i in self._donated]
        given = [i for i, default in defaults if default is None or values[i] is not default[0]]
        return given + [len(inputs) + k for k, cell in enumerate(self.cells) if is_owner(cell)]

    def _own(self, i: int, values: list[object]) -> Any:
        """The value of an input that Python ops overwrite, or a copy if it is not the caller's alone."""
        inputs = self.signature.inputs
        value, default = values[i], inputs[i].default if i < len(inputs) else None
        if not isinstance(value, np.ndarray):
            return value
        others = [x for k, x in enumerate(values) if k != i and isinstance(x, np.ndarray)]
        is_default = default is not None and value is default[0]
        if is_default or not value.flags.writeable or any(np.may_share_memory(value, x) for x in others):
            return value.copy()
        return value
