# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""``BaseFunction``: a compiled graph that can be called. `Function` adds copies of it, and views.

Mode "tiered": calls run in NumPy until their code is there, which is made in the background. Code is made in
a helper process, on another core and without this interpreter's lock; a thread waits for it, loads it and
puts it in the place of what runs in NumPy. Where the disk cache has the code, there is no first tier.
"""

from __future__ import annotations

import os
import threading
import warnings
import weakref
from abc import ABC, abstractmethod
from collections.abc import Callable
from typing import TYPE_CHECKING, Any, Self, TypeVar

from graphc.function.call_form import Signature, with_targets
from graphc.function.calls import Calls
from graphc.function.compiled import Compiled, Program
from graphc.function.io import In, OutputForm
from graphc.function.report import CompileReport
from graphc.function.results import Buffers
from graphc.graph.basic import Variable
from graphc.graph.function_graph import FunctionGraph
from graphc.graph.shared import SharedVariable
from graphc_runtime.callable_type import NativeCallable, enable
from graphc_runtime.machine_code import MachineCode
from graphc_runtime.threads import usable_cores

if TYPE_CHECKING:
    import numpy as np

# More processes than cores would make the first of several functions later.
_SLOTS = threading.BoundedSemaphore(usable_cores())


class Pending:
    """A program that is being made.

    Args:
        build: makes it.
        is_loop: calls wait for it: in NumPy they would take longer for most loops.

    Attributes:
        error: why there is none.
        has_warned: a call has said so.
    """

    def __init__(self, build: Callable[[], Program], is_loop: bool) -> None:
        self._build, self.is_loop = build, is_loop
        self._process = os.getpid()
        self._done = threading.Event()
        self.error: Exception | None = None
        self.has_warned = False

    def start(self, function: BaseFunction) -> None:
        """Makes the program for a function, as long as somebody has it."""
        wanted = weakref.ref(function)
        threading.Thread(target=self._work, args=(wanted,), name="graphc-tiered", daemon=True).start()

    def _work(self, wanted: weakref.ref[BaseFunction]) -> None:
        with _SLOTS:
            self._make(wanted)

    def _make(self, wanted: weakref.ref[BaseFunction]) -> None:
        try:
            if wanted() is not None:
                program = self._build()
                function = wanted()
                if function is not None:
                    function.replace_program(program)
        except Exception as error:
            self.error = error
        finally:
            self._done.set()

    def wait(self, function: BaseFunction, seconds: float | None = None) -> bool:
        """True if the program, or the error, is there after at most so many seconds; None for no limit."""
        if os.getpid() != self._process and not self._done.is_set():
            # The thread has stayed in the process that this one was forked from.
            self._make(weakref.ref(function))
        return self._done.wait(seconds)

    def warn(self, name: str) -> None:
        """Says once that calls go on in NumPy, and why."""
        self.has_warned = True
        warnings.warn(
            f"{name} stays in NumPy: compiling it in the background failed: {self.error}; "
            f"{name}.wait() raises the error",
            RuntimeWarning,
            stacklevel=4,
        )


class Tracer(ABC):
    """Records what calls of functions do, while it is open: see `graphc.inspect.trace`."""

    @abstractmethod
    def attach(self, f: BaseFunction) -> None:
        """Records calls of this function too."""


AnyFunction = TypeVar("AnyFunction", bound="BaseFunction")


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
class BaseFunction(NativeCallable):
    """Base of `Function`: all that its calls need.

    Args:
        signature: how calls look.
        program: the graph and what runs it, compiled for such calls.
        pending: the program that comes in its place (mode "tiered").
    """

    # The name and place of the first slot are known to machine code; see NativeCallable.
    __slots__ = ("__dict__", "__weakref__", "_native_self")

    if TYPE_CHECKING:
        # Of the class that inherits.
        memory_plan: Any
        op_schedule: Any
        profile: Any

    def __class_getitem__(cls, outputs: object) -> type:
        """The class itself: only type checkers tell functions by their outputs."""
        return cls

    def __init__(self, signature: Signature, program: Program, pending: Pending | None = None) -> None:
        self.signature = signature
        self._program, self._pending = program, pending
        self.calls = Calls(signature, program)
        self.subsets: dict[tuple[int, ...], Any] = {}
        self.tracer: Tracer | None = None
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
                    return self._call_some(kwargs.pop(keyword), args, kwargs)
            out = None if "out" in positions else kwargs.pop("out", None)
            buffers = None if out is None else self._buffers(out, form)
        if self._flat is not None and calls.machine is not None:
            if buffers is not None:
                kwargs["out"] = buffers.arrays[0] if form.is_single else buffers.arrays
            found = self._flat(*args, **kwargs)
            return found if form.is_single else form.build(found)
        return form.build(calls(args, kwargs, buffers))

    def _call_some(self, wanted: object, args: tuple[object, ...], kwargs: dict[str, object]) -> Any:
        """A call that computes some of the outputs."""
        raise NotImplementedError

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
        return self._program.report

    @property
    def trust_input(self) -> bool:
        """True if calls that run in Python take inputs as they are."""
        return self.calls.trust

    @trust_input.setter
    def trust_input(self, trust: bool) -> None:
        self.calls.trust = trust

    @property
    def maker(self) -> Self:
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
