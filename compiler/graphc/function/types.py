# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""``Function``: a compiled graph that can be called, copied and looked at."""

from __future__ import annotations

from dataclasses import replace
from functools import cached_property
from types import ModuleType
from typing import TYPE_CHECKING, Any
from weakref import WeakMethod

from graphc import hooks
from graphc.function.base import BaseFunction
from graphc.function.call_form import Signature
from graphc.function.modes import build_op_schedule
from graphc.function.report import CompileReport
from graphc.graph.shared import SharedVariable
from graphc_runtime.callable_type import enable

if TYPE_CHECKING:
    from graphc.function.io import In
    from graphc.function.schedule import Schedule
    from graphc.function.typed import Called, Outputs
    from graphc.graph.basic import Variable
    from graphc.inspect.explorer import Page
    from graphc.inspect.memory import MemoryPlan
    from graphc.inspect.profile import Profile
    from graphc.inspect.roofline import Roofline
    from graphc.inspect.trace import Trace
else:
    Called, Outputs = BaseFunction, None


@enable
class Function(Called[Outputs]):
    """A compiled graph.

    ``f(*args, out=None, **kwargs)`` takes values by position or by the names of the inputs, and returns new
    arrays, or writes into ``out``: arrays in the form of the outputs, with None for those to be made. Each
    has to be writeable, aligned and C-contiguous, with the dtype and shape of its result; then a call
    allocates nothing. When a call fails, shared variables keep their values.

    ``f(..., outputs_wanted=[...])`` computes some of the outputs: a list of positions in a list of outputs,
    of keys of a dict of outputs, or of names of output variables. The others come back as None, in the form
    of the outputs; updates happen all the same. The function for a choice of outputs is compiled when it is
    first asked for, and kept. ``output_subset`` is another name of it.

    Where possible a call goes straight to machine code; ``__call__`` below is the way for everything else:
    arguments that need a conversion, errors, and graphs that run in Python (`graphc.function.calls`).

    Args:
        signature: how calls look.
        program: the graph and what runs it, compiled for such calls.
        pending: the program that comes in its place (mode "tiered").

    Attributes:
        name: the user's name, or None.
        fgraph: the graph: inputs, then shared variables and large constants, to results, then updates.
        report: what the compiler did.
    """

    __slots__ = ()

    @property
    def report(self) -> CompileReport:
        """Report of the compiler."""
        report = self._program.report
        report.measured_by(WeakMethod(self.roofline))
        return report

    def ir_stages(self) -> dict[str, str]:
        """The IR at each stage of compilation by the stage's name, from the dialect to assembly.

        A graph that runs partly in Python has the stages of each native segment, numbered.
        """
        whole = self.executor.whole
        if whole is not None:
            return dict(whole.ir_stages())
        return {
            f"segment {number}: {name}": text
            for number, segment in enumerate(self.executor.segments())
            for name, text in segment.ir_stages()
        }

    def memory_plan(self, *args: object) -> MemoryPlan:
        """Plan of the memory of intermediate values: every buffer, its lifetime, its bytes and its place.

        Args:
            args: for inputs in order: example values, or their shapes as tuples of int. Sizes that depend on
                inputs left out are shown as expressions.

        Returns:
            The plan, to ``print`` or to draw (``to_svg``). It has ``buffers``, ``copies``, ``steps``, and
            in bytes ``peak``, ``alive`` (the most in use at once), ``total`` (without reuse). It is empty for
            functions in reference mode.

        Raises:
            TypeError: an example has another number of dimensions than its input.
        """
        plan: MemoryPlan = _inspection().memory_plan(self, args)
        return plan

    def roofline(self, *args: object, seconds: float | None = None) -> Roofline:
        """As `CompileReport.roofline`."""
        found: Roofline = _inspection().roofline_of(self, args, seconds)
        return found

    def explore(self, *args: object) -> Page:
        """A page that shows this function from your lines to machine code; it compiles again for that.

        The page has the source, the graph, the IR after every pass with what changed, kernels, the memory
        plan over time, LLVM IR and assembly. Pointing at an operation highlights where it came from and went
        to in all of them. It is one file that needs no network.

        Args:
            args: for inputs in order: example values, or their shapes as tuples of int, for the memory plan.

        Returns:
            The page: notebooks show it, ``f.explore().save("page.html")`` writes it.

        Raises:
            TypeError: an example has another number of dimensions than its input.
        """
        page: Page = _inspection().explore(self, args)
        return page

    @cached_property
    def profile(self) -> Profile | None:
        """Times of calls by operation, of a function that was compiled with ``profile=True``; else None."""
        if not self.report.options.profile:
            return None
        found: Profile = _inspection().Profile(self.report.name, list(self.executor.segments()))
        return found

    def trace(self, *, per_op: bool = False) -> Trace:
        """Records what calls do: ``with f.trace() as t: f(x)``, then ``print(t)`` or ``t.save(path)``.

        The finest grain is a thunk: a native segment, or an op that runs in Python. A function that is one
        executable has one event a call. Tracing costs nothing when it is not on; functions that run as
        machine code take the way through Python while it is.

        Args:
            per_op: run each op for itself, compiled where it can be, to see where time goes. Ops are not
                fused then, so that the sum is more than what a call takes otherwise.
        """
        trace: Trace = _inspection().Trace(self, per_op=per_op)
        return trace

    @cached_property
    def op_schedule(self) -> Schedule:
        """A program that runs each op for itself, for traces."""
        return build_op_schedule(self.fgraph, self.report.mode, self.report.name)

    def dprint(self, **kwargs: object) -> str:
        """Print the graph; arguments as in `graphc.dprint`."""
        return hooks.debugprint()(self, **kwargs)

    def _repr_html_(self) -> str:
        """HTML for notebooks."""
        page: str = _inspection().function_html(self)
        return page

    def __repr__(self) -> str:
        inputs = ", ".join(str(item.variable) for item in self.inputs)
        return f"<graphc.Function {self.report.name}({inputs}), {self.report.mode}>"

    # Values of inputs between calls -------------------------------------------------------------------------

    @property
    def container(self) -> dict[Variable | str | int | None, In]:
        """The inputs that have a value between calls, by variable, name and position."""
        kept = [(i, item) for i, item in enumerate(self.inputs) if item.default is not None]
        return {key: item for i, item in kept for key in (i, item.name, item.variable)}

    def __getitem__(self, key: Variable | str | int) -> Any:
        """The value that an input has when a call gives none."""
        return self.container[key].storage[0]

    def __setitem__(self, key: Variable | str | int, value: object) -> None:
        self.container[key].store(value)

    # Copies ------------------------------------------------------------------------------------------------

    def copy(
        self,
        share_memory: bool = False,
        swap: dict[SharedVariable, SharedVariable] | None = None,
        delete_updates: bool = False,
        name: str | None = None,
        profile: object = None,
    ) -> Function:
        """The same function with changes; it shares its code where that is the same.

        Args:
            share_memory: accepted for compatibility; each function has memory of its own.
            swap: shared variables to replace by others of the same type.
            delete_updates: leave shared variables as they are; where there are updates, this compiles again.
            name: name of the copy.
            profile: accepted for compatibility.
        """
        from graphc.function.subset import rebuild_function

        return rebuild_function(self, swap or {}, delete_updates, name)

    def _call_some(self, wanted: object, args: tuple[object, ...], kwargs: dict[str, object]) -> Any:
        from graphc.function.subset import call_subset

        return call_subset(self, wanted, args, kwargs)

    def __copy__(self) -> Function:
        return self.copy(name=self.name)

    def __reduce__(self) -> tuple[object, ...]:
        signature = replace(self.signature, trust_input=self.trust_input)
        return Function, (signature, self.program)


def _inspection() -> ModuleType:
    """The package that shows functions and their calls: few processes need it."""
    return hooks.inspection()


__all__ = ["Function", "Signature"]
