# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""The plans of an executable, by the forms of the arrays that they are for."""

from __future__ import annotations

import threading
from collections.abc import Callable

from graphc_runtime.cuda import schedule as sc
from graphc_runtime.cuda.array import layout
from graphc_runtime.cuda.driver import Driver
from graphc_runtime.cuda.graphs import Graphs
from graphc_runtime.cuda.plan import can_be_planned, make_plan
from graphc_runtime.cuda.planned import Layouts, Planned, Ready
from graphc_runtime.cuda.registers import OnCheck, Registers
from graphc_runtime.manifest import Signature

_KEPT = 32


class Plans:
    """Plans, made when a call repeats.

    Args:
        schedule: what the executable does.
        signature: of its arguments and results.
        sizes_are_kept: whether sizes of results follow from those of arguments.

    Attributes:
        libraries: which of those that the schedule asks there are; known when the kernels are loaded.
        ready: gives a call of arguments of these forms, if there was one that has a plan, else None.
    """

    libraries: frozenset[str] = frozenset()

    def __init__(self, schedule: sc.Schedule, signature: Signature, sizes_are_kept: bool) -> None:
        self._program, self._signature = schedule.main, signature
        self._is_planned = can_be_planned(schedule)
        self._is_ready = sizes_are_kept or not signature.needs_shapes
        # None stands for calls that were seen once, or whose plan would be too long.
        self._found: dict[Layouts, Planned | None] = {}
        self._refused: set[Layouts] = set()
        self._ready: dict[Layouts, Ready] = {}
        self.ready = self._ready.get

    @property
    def reads(self) -> int:
        """Number of arguments that programs take: not the values of cells that they only replace,
        the last ones.
        """
        return self._program.parameters - len(self._signature.results)

    def planned(self, layouts: Layouts) -> Planned | None:
        """The plan for arrays of these forms, arguments and results."""
        return self._found.get(layouts)

    def is_due(self, layouts: Layouts, addresses: tuple[int, ...], graphs: Graphs) -> bool:
        """True if a plan should be made: in the second call of arrays of the same forms."""
        if not self._is_planned or layouts in self._refused:
            return False
        if layouts in self._found:
            return True
        while len(self._found) >= _KEPT:
            self._forget(next(iter(self._found)))
        self._found[layouts] = None
        # If the second one has the same arrays, too, it is captured.
        graphs.is_due((layouts, addresses))
        return False

    def make(
        self,
        layouts: Layouts,
        run: Callable[[Registers], None],
        on_check: OnCheck,
        driver: Driver,
        graphs: Graphs,
        lock: threading.RLock,
    ) -> Planned | None:
        """Makes a plan; None if it would be too long."""
        plan = make_plan(self._program, run, layouts, on_check, driver, self.libraries)
        if plan is None:
            if len(self._refused) >= _KEPT:
                self._refused.clear()
            self._refused.add(layouts)
            return None
        made = self._found[layouts] = Planned(plan, layouts, driver, graphs, lock)
        results = layouts[self.reads :]
        # Results of calls that are ready are new arrays.
        if self._is_ready and all(form is layout(form.dtype, form.shape, None, 0) for form in results):
            self._ready[layouts[: self.reads]] = Ready(made, results, self._signature.donated)
        return made

    def _forget(self, layouts: Layouts) -> None:
        self._found.pop(layouts, None)
        self._ready.pop(layouts[: self.reads], None)
