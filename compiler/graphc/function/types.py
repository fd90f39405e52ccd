# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""``Function``: a compiled graph that can be called."""

from __future__ import annotations

from dataclasses import replace
from functools import cached_property
from types import ModuleType
from typing import TYPE_CHECKING, Any

from graphc.function.call_form import Signature, with_targets
from graphc.function.calls import Calls
from graphc.function.compiled import Compiled
from graphc.function.io import In, OutputForm
from graphc.function.modes import build_op_schedule
from graphc.function.program import Program
from graphc.function.report import CompileReport
from graphc.function.results import Buffers
from graphc.graph.basic import Variable
from graphc.graph.function_graph import FunctionGraph
from graphc.graph.shared import SharedVariable
from graphc.public import notebook, printing, profiles, rebuilding, subsets
from graphc_runtime.callable_type import NativeCallable, enable
from graphc_runtime.machine_code import MachineCode

if TYPE_CHECKING:
    import numpy as np

    from graphc.function.explorer.page import Page
    from graphc.function.memory_plan import MemoryPlan
    from graphc.function.profile import Profile
    from graphc.function.roofline import Roofline
    from graphc.function.schedule import Schedule
    from graphc.function.tiered import Pending
    from graphc.function.trace import Trace


@enable
class FlatCall(NativeCallable):
    """Machine code of a function with nested outputs, for which it returns a list.

    Args:
        fallback: what takes the calls that machine code does not.
    """

    __slots__ = ("__dict__", "__weakref__", "_native_self")

    def __init__(self, fallback: Any) -> None:
        self._fallback = fallback

    def __call__(self, /, *args: Any, **kwargs: Any) -> Any:
        return self._fallback(*args, **kwargs)


@enable
class Function(NativeCallable):
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

    # The name and place of the first slot are known to machine code; see NativeCallable.
    __slots__ = ("__dict__", "__weakref__", "_native_self")

    def __init__(self, signature: Signature, program: Program, pending: Pending | None = None) -> None:
        self.signature = signature
        self._program, self._pending = program, pending
        self.calls = Calls(signature, program)
        self.subsets: dict[tuple[int, ...], Function] = {}
        self.tracer: Trace | None = None
        form = signature.form
        is_flat = (form.is_single or form.is_list) and signature.arguments is None
        self._flat = None if is_flat else FlatCall(self._call_flat)
        if pending is None:
            self._install()
        else:
            pending.start(self)

    def replace_program(self, program: Program) -> None:
        """Runs another program of the same calls from now on; calls that have begun end with the old one."""
        calls = Calls(self.signature, program)
        calls.trust = self.calls.trust
        self._program, self.calls = program, calls
        self._install()
        self._pending = None

    def wait(self, seconds: float | None = None) -> bool:
        """Waits until calls run as compiled code; only in mode "tiered" do they not from the start.

        Args:
            seconds: the longest wait; None for no limit.

        Returns:
            Whether they do.

        Raises:
            CompileError: compiling in the background failed. Calls go on in NumPy.
        """
        pending = self._pending
        if pending is None:
            return True
        if not pending.wait(self, seconds):
            return False
        if pending.error is not None:
            raise pending.error
        return True

    def _settle(self, pending: Pending) -> None:
        """Settles a call that finds its program unmade: loops wait for it."""
        if pending.is_loop:
            pending.wait(self)
        if pending.error is not None and not pending.has_warned:
            pending.warn(self.report.name)

    def _install(self) -> None:
        """Let calls go straight to machine code, if the graph was compiled for this form of call."""
        is_native = self._installed()
        self.report.fast_call = is_native and self._flat is None
        if self.signature.donated and not isinstance(self._program.executor, Compiled):
            self.report.donations.append("no input is overwritten: calls go through Python")

    def _installed(self) -> bool:
        executor = self._program.executor
        if not isinstance(executor, Compiled) or not executor.takes_calls:
            return False
        cells, _ = with_targets(self.calls.cells, self.calls.targets)
        function = self if self._flat is None else self._flat
        fallback = self._call_python if self._flat is None else self._call_flat
        # An entry takes what is named "out" for buffers.
        has_out = "out" in self.calls.reader.positions
        if has_out or not executor.install(function, fallback, cells):
            self.calls.ready = executor.ready_call(cells)
            return False
        self.calls.machine = function
        return True

    def _call_python(self, /, *args: object, **kwargs: object) -> Any:
        if self.signature.arguments is not None:
            args = tuple(self.signature.arguments.flatten(args, kwargs, self.report.name))
        return self.call_flat(args, kwargs)

    def call_flat(self, args: tuple[object, ...], kwargs: dict[str, object]) -> Any:
        """A call with a value for each input, also where the user's arguments are containers of such."""
        ready = self.calls.ready
        if ready is not None and not kwargs and self.tracer is None:
            if (found := ready(args)) is not None:
                return self.signature.form.build(found)
        if self._pending is not None:
            self._settle(self._pending)
        calls, form, buffers = self.calls, self.signature.form, None
        if kwargs:
            positions = calls.reader.positions
            for keyword in ("outputs_wanted", "output_subset"):
                if keyword in kwargs and keyword not in positions:
                    return subsets.call_subset(self, kwargs.pop(keyword), args, kwargs)
            out = None if "out" in positions else kwargs.pop("out", None)
            buffers = None if out is None else self._buffers(out, form)
        if self._flat is not None and calls.machine is not None:
            if buffers is not None:
                kwargs["out"] = buffers.arrays[0] if form.is_single else buffers.arrays
            found = self._flat(*args, **kwargs)
            return found if form.is_single else form.build(found)
        return form.build(calls(args, kwargs, buffers))

    def _call_flat(
        self, /, *args: object, out: object = None, **kwargs: object
    ) -> list[np.ndarray] | np.ndarray:
        """As `_call_python`, with flat lists of values, buffers and results; of one output without a list."""
        single = self.signature.form.is_single
        form = self.signature.form if single else OutputForm.plain(self.signature.form.count)
        buffers = None if out is None else self._buffers(out, form)
        found = self.calls(args, kwargs, buffers)
        return found[0] if single else found

    def _buffers(self, out: object, form: OutputForm) -> Buffers:
        return Buffers(out, form, self.outputs, self.report.name, on_device=self.calls.is_on_device)

    __call__ = _call_python

    # Inspection --------------------------------------------------------------------------------------------

    @property
    def name(self) -> str | None:
        """The user's name."""
        return self.signature.name

    @property
    def fgraph(self) -> FunctionGraph:
        """The graph."""
        return self._program.fgraph

    @property
    def program(self) -> Program:
        """The graph and what runs it; waits for code that is being made."""
        self.wait()
        return self._program

    @property
    def executor(self) -> Any:
        """The executor of the graph; waits for code that is being made."""
        return self.program.executor

    @property
    def report(self) -> CompileReport:
        """Report of the compiler."""
        report = self._program.report
        report.tell_of(self)
        return report

    @property
    def trust_input(self) -> bool:
        """True if calls that run in Python take inputs as they are."""
        return self.calls.trust

    @trust_input.setter
    def trust_input(self, trust: bool) -> None:
        self.calls.trust = trust

    @property
    def maker(self) -> Function:
        """The function itself, so that ``f.maker.fgraph`` works as in PyTensor."""
        return self

    @property
    def inputs(self) -> list[In]:
        """The inputs in order."""
        return self.signature.inputs

    @property
    def outputs(self) -> list[Variable]:
        """The results, flattened."""
        return self.fgraph.outputs[: self.signature.form.count]

    @property
    def updates(self) -> dict[SharedVariable, Variable]:
        """The new values of shared variables."""
        pairs = zip(self.signature.targets, self.fgraph.outputs[self.signature.form.count :], strict=True)
        return {target: v for target, v in pairs if isinstance(target, SharedVariable)}

    def get_shared(self) -> list[SharedVariable]:
        """The shared variables that are read or updated."""
        variables = [*self.cell_variables, *self.signature.targets]
        return list(dict.fromkeys(v for v in variables if isinstance(v, SharedVariable)))

    @property
    def cell_variables(self) -> list[Variable]:
        """The variables whose values the function keeps: shared variables and large constants."""
        return self.fgraph.inputs[len(self.signature.inputs) :]

    def machine_code(self) -> tuple[MachineCode, list[list[Any]]] | None:
        """Code and cells of a function that is compiled as a whole and updates nothing, else None."""
        executable = self.executor.executable if isinstance(self.executor, Compiled) else None
        if not isinstance(executable, MachineCode) or self.report.fallbacks or self.signature.targets:
            return None
        return executable, self.calls.cells

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
        plan: MemoryPlan = _looking().memory_plan(self, args)
        return plan

    def roofline(self, *args: object, seconds: float | None = None) -> Roofline:
        """As `CompileReport.roofline`."""
        found: Roofline = _looking().roofline(self, args, seconds)
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
        page: Page = _looking().explore(self, args)
        return page

    @cached_property
    def profile(self) -> Profile | None:
        """Times of calls by operation, of a function that was compiled with ``profile=True``; else None."""
        if not self.report.options.profile:
            return None
        whole = self.executor.whole
        segments = list(self.executor.segments()) if whole is None else [whole]
        found: Profile = profiles.Profile(self.report.name, segments)
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
        trace: Trace = _looking().Trace(self, per_op=per_op)
        return trace

    @cached_property
    def op_schedule(self) -> Schedule:
        """A program that runs each op for itself, for traces."""
        return build_op_schedule(self.fgraph, self.report.mode, self.report.name)

    def dprint(self, **kwargs: object) -> str:
        """Print the graph; arguments as in `graphc.dprint`."""
        text: str = printing.debugprint(self, **kwargs)
        return text

    def _repr_html_(self) -> str:
        """HTML for notebooks."""
        page: str = notebook.function_html(self)
        return page

    def __repr__(self) -> str:
        inputs = ", ".join(str(item.variable) for item in self.inputs)
        return f"<graphc.Function {self.report.name}({inputs}), {self.report.mode}>"

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
        return rebuilding.rebuild_function(self, swap or {}, delete_updates, name)

    def __copy__(self) -> Function:
        return self.copy(name=self.name)

    def __reduce__(self) -> tuple[object, ...]:
        signature = replace(self.signature, trust_input=self.trust_input)
        return Function, (signature, self.program)


def _looking() -> ModuleType:
    """The module that shows functions and their calls: few processes need it."""
    from graphc.function import looking

    return looking


__all__ = ["Function", "Signature"]
