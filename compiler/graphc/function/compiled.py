# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""From a graph to its executable: out of the disk cache, or made by the target of the mode."""

from __future__ import annotations

import time
from collections import Counter
from collections.abc import Callable, Collection, Sequence
from dataclasses import replace
from types import ModuleType
from typing import Any, cast

import numpy as np

from graphc import emit
from graphc.backends import CompileLog, CompileOptions, Target, find_target
from graphc.compile.fingerprint import fingerprint
from graphc.config import config
from graphc.errors import CompileError, UnsupportedError
from graphc.function.call_form import KernelForm
from graphc.function.report import CompileReport, Fallback
from graphc.function.settings import resources
from graphc.graph.basic import Apply, Constant, SourceLocation, Variable, describe
from graphc.graph.contract import Executor
from graphc.graph.function_graph import FunctionGraph
from graphc.graph.printing import pprint
from graphc.graph.traversal import graph_inputs
from graphc.ir.work import Work
from graphc.ops.checks import CheckAndRaise
from graphc.ops.elementwise import Elementwise
from graphc_runtime.artifact import Artifact
from graphc_runtime.cache import disk_cache
from graphc_runtime.callable_type import NativeCallable, install
from graphc_runtime.cuda.libraries import LIBRARIES, enable
from graphc_runtime.errors import ArtifactError, LoadError, Origin
from graphc_runtime.executable import Executable, ReadyCall
from graphc_runtime.kernel_call import KernelCall
from graphc_runtime.manifest import Signature
from graphc_runtime.marshal import canonical
from graphc_runtime.record import record
from graphc_runtime.steps import shown
from graphc_runtime.threads import set_default_threads
from graphc_runtime.thunk import Register
from graphc_runtime.worker import apart, checkpoint


@record(frozen=True)
class Program:
    """A graph that can be run.

    Attributes:
        fgraph: inputs, then shared variables and large constants, to results, then updates.
        executor: runs it. Functions that differ only in their shared variables have one in common.
        report: what the compiler did.
    """

    fgraph: FunctionGraph
    executor: Executor
    report: CompileReport


_LONGEST = 40  # characters of a formula
_MOST = 4  # operands of operations that are not elementwise


def origin_of(node: Apply) -> Origin:
    """Known facts about a node in which something failed."""
    line = None if node.location is None else str(node.location)
    if isinstance(node.op, CheckAndRaise):
        return Origin(line, error=node.op.exc_type, op=str(node.op))
    operands = [x for x in node.inputs if getattr(x.type, "ndim", 0)]
    words = [_words(x) for x in operands]
    if isinstance(node.op, Elementwise):
        is_told = len(operands) > 1
    else:  # of loops, and of variables without a name, the words would say nothing
        names = {v.name for v in graph_inputs(operands) if v.name is not None}
        is_told = len(operands) <= _MOST and any(name in word for name in names for word in words)
    return Origin(line, ", ".join(words) if is_told else None, op=str(node.op))


def _words(v: Variable) -> str:
    """A name or a short formula."""
    if isinstance(v, Constant) and v.name is None:
        return f"a constant of type {v.type}"
    if v.name is not None or v.owner is None:
        return str(v)
    text = pprint(v, max_length=_LONGEST)
    return str(v) if text == "..." else text


# Operations from one line of the user, from which on a loop is advised where compiling takes long.
_UNROLLED = 100

set_default_threads(config.threads)
enable("GRAPHC_CUBLAS", config.cublas)
enable("GRAPHC_CUDA_LIBRARIES", config.cuda_libraries)


class NotStored(Exception):
    """The disk cache has no code for a graph; not for users to see."""


def compile_graph(
    fgraph: FunctionGraph,
    form: KernelForm,
    options: CompileOptions,
    report: CompileReport,
    *,
    isolated: bool = False,
    only_stored: bool = False,
) -> Compiled:
    """Compiles a graph whose nodes all have ``emit``.

    Args:
        fgraph: tensors to tensors.
        form: how calls look.
        options: what code depends on; its donations are those of the form.
        report: gains times, the state of the cache, and what became of donations.
        isolated: compile in a helper process, whatever the settings say.
        only_stored: compile nothing.

    Raises:
        UnsupportedError: the target does not do what a node asks for.
        NotStored: the disk cache does not have it, and it is not to be compiled.
    """
    options = replace(options, donations=form.donations)
    target = _target(options, isolated)
    start = time.perf_counter()
    key = fingerprint(fgraph, form.signature, options, target.identity()) if config.cache_dir else None
    executable = apart(_stored, key, form.signature, target) if key is not None else None
    if executable is not None:
        report.cache.append("hit")
        report.add_phase("disk cache", time.perf_counter() - start)
    elif only_stored:
        raise NotStored
    else:
        # Emission calls methods of ops, which are the users' too: in their own thread.
        with report.phase("emit"):
            text = emit.emit_module(fgraph).text
        with shown(report.name, config.compile_progress, lambda: repeated_lines(fgraph)):
            try:
                executable = apart(_built, text, form.signature, options, target, key, report)
            except UnsupportedError as error:
                raise UnsupportedError(_named(error, fgraph)) from error
        report.cache.append("off" if key is None else "miss")
    report.segments += 1
    report.native_nodes += len(fgraph.nodes)
    report.donations += _donations(fgraph, executable)
    report.on_host += _on_host(fgraph, executable)
    report.library += _for_library(fgraph, executable)
    if options.memory_budget is not None:
        from graphc.function import budget

        report.memory += budget.tell(fgraph, executable.manifest, options.memory_budget, report.name)
    return Compiled(fgraph, executable, options, form.takes_calls)


@record(eq=False)
class Compiled(Executor):
    """A graph with its executable.

    Attributes:
        fgraph: the graph.
        executable: what a target has made of it.
        options: what it was compiled with.
        takes_calls: whether it was compiled for the calls of a function, and not as a part of one.
    """

    fgraph: FunctionGraph
    executable: Executable
    options: CompileOptions
    takes_calls: bool

    def __post_init__(self) -> None:
        self._run_call: KernelCall | None = None
        self._array_call: Callable[..., object] | None = None
        self._padding: list[np.ndarray] = []
        self._work: list[Work] | None = None

    # -- calling ---------------------------------------------------------------------------------------------

    def install(
        self, function: NativeCallable, fallback: Callable[..., object], cells: Sequence[list[object]]
    ) -> bool:
        """Lets calls of a function go straight to machine code.

        Args:
            function: the function.
            fallback: takes the calls that machine code does not.
            cells: one for each cell of the signature.

        Returns:
            Whether they do; where the executable has no such entry, ``function`` calls `run`.
        """
        address = self.executable.vectorcall_address()
        if address is None:
            return False
        return install(function, address, self.executable.native_self(cells, fallback, where=self.where))

    def ready_call(self, cells: Sequence[list[object]]) -> ReadyCall | None:
        """As `Executable.ready_call`, for the calls of a function."""
        return self.executable.ready_call(cells, where=self.where)

    def call(self) -> tuple[Callable[..., Any], bool]:
        """As `Executor.call`, as fast as calls get."""
        signature = self.executable.manifest.signature

        def convert(*values: object) -> list[np.ndarray]:
            pairs = zip(values, signature.inputs, strict=True)
            exact = [canonical(value, spec, f"input {i}") for i, (value, spec) in enumerate(pairs)]
            if all(new is old for new, old in zip(exact, values, strict=True)):
                return slow(*exact)
            return fast(*exact)

        slow = self.executable.kernel_call(signature, where=self.where)
        if not self.executable.gives_numpy:
            # Operations in Python, and other parts, work on arrays of the host.
            return slow, signature.returns == "single"
        fast = self.executable.bind(fallback=convert, where=self.where)
        return fast, signature.returns == "single"

    @property
    def is_on_device(self) -> bool:
        return self.takes_calls and not self.executable.gives_numpy

    def hold(self, cells: Sequence[Register]) -> None:
        self.executable.hold(cells)

    def run(self, values: Sequence[Any], own: Collection[int] = (), out: Sequence[object] = ()) -> list[Any]:
        """One array for each output; the values are converted where they are not canonical.

        Functions for a device take and give arrays of the device; what is a part of one, arrays of the host.

        Args:
            values: of the graph's inputs.
            own: positions of values whose memory results may take; all other results are new arrays.
            out: for functions of a device, arrays there for the first results; None stands for a new one.
        """
        if self.is_on_device:
            if self._array_call is None:
                self._array_call = self.executable.array_call(self._flat(), where=self.where)
            given: list[object] = [None] * len(self.executable.manifest.signature.results)
            given[: len(out)] = out
            return cast("list[object]", self._array_call(*values, *self._padding, out=given))
        signature = self.executable.manifest.signature
        # Other threads must not see the value of a shared variable while it changes.
        alone = any(
            argument >= len(signature.inputs) and argument in own for argument, _ in signature.donated
        )
        call = self._made_run_call()
        results: list[Any] = call.lend(own, [*values, *self._padding], alone=alone)
        return results

    @property
    def whole(self) -> Compiled:
        return self

    def result_shapes(self, values: Sequence[Any]) -> list[tuple[int, ...]]:
        """The shapes of the outputs, without computing them; values as in `run`."""
        call = self._made_run_call()
        return call.result_shapes(*values, *self._padding)

    def _made_run_call(self) -> KernelCall:
        """A call of all arguments, cells among them."""
        if self._run_call is None:
            self._run_call = self.executable.kernel_call(self._flat(), where=self.where)
        return self._run_call

    def _flat(self) -> Signature:
        """The signature of a call of all arguments; values of cells that are only replaced are made up."""
        given = self.executable.manifest.signature
        only_replaced = given.arguments[len(self.fgraph.inputs) :]
        self._padding = [np.empty([size or 0 for size in s.shape], s.dtype) for s in only_replaced]
        # For messages about what is given.
        names = [variable.name or "" for variable in self.fgraph.inputs] + [""] * len(only_replaced)
        called = [variable.name or "" for variable in self.fgraph.outputs]
        return Signature(
            tuple(replace(spec, name=name) for spec, name in zip(given.arguments, names, strict=True)),
            outputs=tuple(replace(s, name=name) for s, name in zip(given.results, called, strict=True)),
            returns="list",
            donated=given.donated,
            spares=given.spares,
            name=given.name,
        )

    def where(self, node: str) -> Origin:
        """Known facts about a node of the emitted graph, such as ``n12``."""
        found = emit.node_named(self.fgraph, node)
        return Origin() if found is None else origin_of(found)

    # -- looking ---------------------------------------------------------------------------------------------

    def ir_stages(self) -> list[tuple[str, str]]:
        """Name and text of the IR at each stage, from the graph to assembly. Compiles again, without the
        cache.
        """
        return self.views(CompileLog(stages=[])).stages or []

    def work(self) -> list[Work]:
        """Counts of the kernels, for any arguments (see `graphc.passes.buffer.count_work`); made once."""
        if self._work is None:
            self._work = self.views(CompileLog(work=[])).work or []
        return self._work

    def views(self, log: CompileLog) -> CompileLog:
        """Compiles again, without the cache, for what a log asks for; locations are numbers of nodes if that
        is the IR after each pass.

        Returns:
            The log.
        """
        text = emit.emit_module(self.fgraph, numbered=log.views is not None).text
        signature = self.executable.manifest.signature
        apart(_target(self.options).compile, text, signature, self.options, log)
        return log

    def __getstate__(self) -> dict[str, Any]:
        return {**self.__dict__, "_run_call": None, "_array_call": None}


def _target(options: CompileOptions, isolated: bool = False) -> Target:
    """The target of a mode, in a helper process where that is wanted."""
    target = find_target(options.mode, resources())
    if not (isolated or config.compile_isolated):
        return target
    return _isolation().in_helper_process(target)


def _isolation() -> ModuleType:
    """Modules that few compilations need; their imports would make that of graphc longer."""
    from graphc.function import isolation

    return isolation


def _stored(key: str, signature: Signature, target: Target) -> Executable | None:
    """The entry of the disk cache under a key, for a form of call."""
    disk = disk_cache(config.cache_dir, config.cache_size_mb)
    data = disk.get(key)
    if data is None:
        return None
    try:
        executable = target.load(Artifact.from_bytes(data))
    except (ArtifactError, LoadError):
        executable = None
    if executable is not None:
        found = executable.manifest.signature
        if found == replace(signature, donated=found.donated, spares=found.spares):
            return executable
    disk.discard(key)
    return None


def _built(
    text: str, signature: Signature, options: CompileOptions, target: Target, key: str | None, log: CompileLog
) -> Executable:
    """Compiles emitted text, and stores the artifact in the disk cache.

    Raises:
        UnsupportedError: the target does not do what is asked for.
        CompileError: the compiler failed; the message names a file with which it does so again.
    """
    try:
        executable = target.build(text, signature, options, log)
    except UnsupportedError:
        raise
    except _FAILURES as error:
        raise _isolation().reported(error, target, text, options) from error
    # Who gave up waiting may have changed settings meanwhile.
    checkpoint()
    if key is not None:
        disk_cache(config.cache_dir, config.cache_size_mb).put(key, executable.artifact.to_bytes())
    return executable


# What a defect of the compiler raises, besides what says that the process has no memory or is to end.
_FAILURES = (CompileError, AssertionError, AttributeError, LookupError, TypeError, ValueError)


def _named(error: UnsupportedError, fgraph: FunctionGraph) -> str:
    """The message of a refusal, with the operation that is refused and the user's line."""
    node = emit.node_named(fgraph, error.node)
    return str(error) if node is None else f"{node.op}: {error}{describe(node.location)}"


def repeated_lines(fgraph: FunctionGraph) -> str:
    """Advice about a graph that takes long to compile since a Python loop has made it; else nothing.

    The line is the first that repeats: that of a gradient, which has more operations, comes after it.
    """
    counts: Counter[SourceLocation] = Counter()
    line = None
    for node in fgraph.nodes:
        if node.location is not None:
            counts[node.location] += 1
            if line is None and counts[node.location] == _UNROLLED:
                line = node.location
    if line is None:
        return ""
    return (
        f"the graph has {len(fgraph.nodes):,} operations, {counts[line]:,} of them from {line.short} in "
        f"{line.function}; if a Python loop repeats that line, scan(step, sequences=..., n_steps=...) "
        "in its place makes a graph of one step, which compiles in the time of one"
    )


def _on_host(fgraph: FunctionGraph, executable: Executable) -> list[Fallback]:
    """The part of a function for a device that runs on the host."""
    found: list[Fallback] = []
    for op, reason, name in executable.manifest.extra.get("host", ()):
        node = emit.node_named(fgraph, name)
        found.append(Fallback(op.removeprefix("graphc."), reason, None if node is None else node.location))
    return found


def _for_library(fgraph: FunctionGraph, executable: Executable) -> list[str]:
    """The operations of a function for a device that libraries may compute, after the library's name."""
    found: list[str] = []
    for library, names in executable.manifest.extra.get("libraries", {}).items():
        for node in filter(None, (emit.node_named(fgraph, name) for name in names)):
            location = f" at {node.location}" if node.location else ""
            found.append(f"{LIBRARIES[library].title}, where it is installed: {node.op}{location}")
    return found


def _donations(fgraph: FunctionGraph, executable: Executable) -> list[str]:
    """Outcome of donated inputs, and of shared variables that are updated."""
    signature = executable.manifest.signature
    lines = []
    for argument, result in signature.donated:
        what = f"result {result}" if result < len(signature.outputs) else "its new value"
        lines.append(f"{fgraph.inputs[argument]} lends its memory to {what}")
    for argument, result in signature.spares:
        lines.append(f"{fgraph.inputs[argument]} lends its memory to result {result} if it has its sizes")
    for argument, reason in executable.manifest.extra.get("kept", ()):
        lines.append(f"{fgraph.inputs[argument]} is not overwritten: {reason}")
    return lines
