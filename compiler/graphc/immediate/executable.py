# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""``Executable``: one operation on inputs of given kinds, as a small graph and its machine code."""

from __future__ import annotations

import itertools
import threading
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any, TypeVar

import numpy as np

from graphc.function.function import function
from graphc.function.io import OutputForm
from graphc.immediate.kinds import Kind
from graphc_runtime.worker import renew_in_children

if TYPE_CHECKING:
    from graphc.graph.basic import Variable
    from graphc.immediate.place import Held, Host, Run

_serials = itertools.count()
Key = TypeVar("Key")


class _Compiling:
    """What lets one thread at a time compile operations, so that each is compiled once."""

    def __init__(self) -> None:
        self.lock = threading.RLock()
        renew_in_children(self)


_compiling = _Compiling()


class Executable:
    """An operation whose inputs have known kinds.

    Attributes:
        name: name of the operation.
        inputs, outputs: the graph.
        form: the form in which the operation returns its results.
        kinds: the kinds of the results. kind: that of the first, where there is one.
        weaks: for each input, the dtype of a Python number in its place; None for tensors. weak: that of the
            second input.
        place: where arrays are, and how functions for that are compiled.
        run: takes an array for each input; returns the array of a single result, or a list.
        serial: a number of its own, for keys.
        hits, seen: how often it was used, and the count when the cache last looked.
    """

    __slots__ = (
        "_places",
        "form",
        "hits",
        "inputs",
        "is_single",
        "kind",
        "kinds",
        "name",
        "outputs",
        "place",
        "run",
        "seen",
        "serial",
        "weak",
        "weaks",
    )

    def __init__(
        self,
        name: str,
        inputs: Sequence[Variable],
        form: OutputForm,
        kinds: Sequence[Kind],
        *,
        weaks: Sequence[np.dtype | None] = (),
        place: Host,
    ) -> None:
        self.name = name
        self.inputs = list(inputs)
        self.outputs = form.variables
        self.form = form
        self.is_single = form.is_single
        self.kinds = list(kinds)
        if self.kinds:
            self.kind = self.kinds[0]
        self.weaks = list(weaks) or [None] * len(self.inputs)
        self.weak = self.weaks[1] if len(self.weaks) > 1 else None
        self.place = place
        self.run: Callable[..., Any] = self._compile_and_run
        self.serial = next(_serials)
        self.hits = self.seen = 0
        self._places: list[tuple[dict[Any, Executable], object]] = []

    def compile(self) -> Run:
        """What `run` is from then on."""
        # Methods are new objects at each access, but they compare by what they are bound to.
        if self.run == self._compile_and_run:
            with _compiling.lock:
                if self.run == self._compile_and_run:
                    outputs = self.outputs[0] if self.is_single else self.outputs
                    made = function(
                        self.inputs, outputs, mode=self.place.mode, name=self.name, on_unused_input="ignore"
                    )
                    self.run = self.place.finished(made)
        return self.run

    def _compile_and_run(self, *arrays: Held) -> Held | list[Held]:
        return self.compile()(*arrays)

    def results(self, arrays: Sequence[Held]) -> list[Held]:
        """The results as a list."""
        found = self.run(*arrays)
        return [found] if self.is_single else found

    def connect(self, table: dict[Key, Executable], key: Key) -> None:
        """Let calls find this executable in a table, without a look at the cache."""
        table[key] = self
        self._places.append((table, key))

    def forget(self) -> None:
        """Take the executable out of the tables."""
        for table, key in self._places:
            if table.get(key) is self:
                table.pop(key, None)
        self._places.clear()

    def __repr__(self) -> str:
        return f"<executable {self.name}({', '.join(str(v.type) for v in self.inputs)})>"
