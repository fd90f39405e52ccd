# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""``compile_native``: the executable of a graph, from the disk cache or from the compiler."""

from __future__ import annotations

import time
from collections.abc import Callable, Collection, Sequence
from dataclasses import replace
from typing import Any

import numpy as np

from graphc.backends.cpu.generate import disk_cache, generate
from graphc.backends.cpu.job import Job, lower_with_donations, make
from graphc.backends.cpu.preload import preload
from graphc.compile.fingerprint import fingerprint
from graphc.compile.origins import origin_of
from graphc.config import config
from graphc.emit import all_nodes, emit_module
from graphc.graph.function_graph import FunctionGraph
from graphc_runtime.callable_type import install
from graphc_runtime.errors import ArtifactError, LoadError, Origin
from graphc_runtime.executable import Executable
from graphc_runtime.kernel_call import KernelCall
from graphc_runtime.manifest import ArraySpec, Signature, Update
from graphc_runtime.marshal import canonical
from graphc_runtime.threads import set_default_threads
from graphc_runtime.worker import apart, checkpoint

set_default_threads(config.threads)


def compile_native(fgraph: FunctionGraph, *, mode: str, name: str, report: Any) -> NativeExecutable:
    """The native executable of a graph whose nodes all have ``emit``.

    Code is made when the form of the call is known: by `NativeExecutable.bind` or `NativeExecutable.prepare`.

    Args:
        fgraph: tensors to tensors.
        mode: a key of `graphc.backends.cpu.pipeline.PIPELINES`.
        name: name of the function, for messages.
        report: a `CompileReport`, which gains times and the state of the cache.
    """
    return NativeExecutable(fgraph, mode, name, report)


class NativeExecutable:
    """Machine code for a graph.

    Attributes:
        fgraph: the graph.
        executable: the loaded code; None before `bind` or `prepare`.
    """

    def __init__(self, fgraph: FunctionGraph, mode: str, name: str, report: Any) -> None:
        self.fgraph = fgraph
        self.mode = mode
        self.name = name
        self.report = report
        self.executable: Executable | None = None
        self._run_call: KernelCall | None = None
        self._padding: list[np.ndarray] = []
        self._donate: list[tuple[int, list[int], bool]] = []

    # -- calling ---------------------------------------------------------------------------------------------

    def bind(
        self,
        function: Any,
        *,
        fallback: Any,
        cells: Sequence[list[Any]],
        n_cells: int,
        n_results: int,
        single: bool,
        updates: list[int],
        donated: Sequence[int] = (),
    ) -> bool:
        """Compiles for one form of call, and lets calls of ``function`` go straight to machine code.

        Args:
            function: a `graphc_runtime.callable_type.NativeCallable`.
            fallback: takes the calls that machine code does not.
            cells: one-element lists: those behind the graph's last inputs, then those that are only updated.
            n_cells: how many of them stand behind inputs of the graph.
            n_results: how many outputs a call returns; the others are updates.
            single: whether a call returns one array instead of a list.
            updates: for each update, the cell whose item it replaces.
            donated: inputs whose memory results may take.

        Returns:
            Whether calls go to machine code; if not, ``function`` calls `run`.
        """
        outputs = [_spec(v) for v in self.fgraph.outputs]
        inputs = [_spec(v) for v in self.fgraph.inputs]
        extra = [outputs[n_results + i] for i, cell in enumerate(updates) if cell >= n_cells]
        count = len(inputs) - n_cells
        signature = Signature(
            tuple(inputs[:count]),
            (*inputs[count:], *extra),
            tuple(outputs[:n_results]),
            tuple(Update(cell, outputs[n_results + i]) for i, cell in enumerate(updates)),
            returns="single" if single else "list",
            name=self.name,
        )
        self._donate = _requests(signature, donated, n_cells)
        executable = self.prepare(signature)
        address = executable.vectorcall_address()
        if address is None:
            return False
        return install(function, address, executable.native_self(cells, fallback, where=self.where))

    def call(self) -> tuple[Callable[..., Any], bool]:
        """A function of the inputs as fast as calls get, for graphs that are one thunk of many.

        Returns:
            The function, and whether it returns the one output itself instead of a list.
        """
        plain = self._plain_signature()
        executable = self.prepare(replace(plain, returns="single") if len(plain.outputs) == 1 else plain)
        signature = executable.manifest.signature

        def convert(*values: Any) -> Any:
            pairs = zip(values, signature.inputs, strict=True)
            exact = [canonical(value, spec, f"input {i}") for i, (value, spec) in enumerate(pairs)]
            if all(new is old for new, old in zip(exact, values, strict=True)):
                return slow(*exact)
            return fast(*exact)

        slow = executable.kernel_call(signature, where=self.where)
        fast = executable.bind(fallback=convert, where=self.where)
        return fast, signature.returns == "single"

    def run(self, values: Sequence[Any], own: Collection[int] = ()) -> list[Any]:
        """One array for each output; the values are converted where they are not canonical.

        Args:
            values: of the graph's inputs.
            own: positions of values whose memory results may take; all other results are new arrays.
        """
        if self._run_call is None:
            self._run_call = self._make_run_call()
        assert self.executable is not None
        signature = self.executable.manifest.signature
        # Other threads must not see the value of a shared variable while it changes.
        alone = any(
            argument >= len(signature.inputs) and argument in own for argument, _ in signature.donated
        )
        results: list[Any] = self._run_call.lend(own, [*values, *self._padding], alone=alone)
        return results

    def result_shapes(self, values: Sequence[Any]) -> list[tuple[int, ...]]:
        """The shapes of the outputs, without computing them; values as in `run`."""
        if self._run_call is None:
            self._run_call = self._make_run_call()
        return self._run_call.result_shapes(*values, *self._padding)

    def prepare(self, signature: Signature | None = None) -> Executable:
        """Compiles or loads the code, for a form of call or for `run` alone; does nothing the second time."""
        if self.executable is None:
            self.executable = self._load(signature or self._plain_signature())
        return self.executable

    def _plain_signature(self) -> Signature:
        return Signature(
            tuple(map(_spec, self.fgraph.inputs)),
            outputs=tuple(map(_spec, self.fgraph.outputs)),
            returns="list",
            name=self.name,
        )

    def _make_run_call(self) -> KernelCall:
        executable = self.prepare()
        arguments = executable.manifest.signature.arguments
        unused = arguments[len(self.fgraph.inputs) :]
        self._padding = [np.empty([size or 0 for size in spec.shape], spec.dtype) for spec in unused]
        signature = Signature(
            arguments,
            outputs=executable.manifest.signature.results,
            returns="list",
            donated=executable.manifest.signature.donated,
            spares=executable.manifest.signature.spares,
            name=self.name,
        )
        return executable.kernel_call(signature, where=self.where)

    def where(self, node: str) -> Origin:
        """What is known of a node of the emitted graph, such as ``n12``."""
        nodes = all_nodes(self.fgraph)
        index = int(node[1:])
        return origin_of(nodes[index]) if index < len(nodes) else Origin()

    # -- compiling -------------------------------------------------------------------------------------------

    def _load(self, signature: Signature) -> Executable:
        start = time.perf_counter()
        liberties = (self.report.fastmath, self.report.flush_denormals)
        settings = (config.workspace_limit_mb, config.poison_memory, self._donate, *liberties)
        key = fingerprint(self.fgraph, self.mode, signature, settings) if config.cache_dir else None
        executable = apart(_cached, key, signature) if key is not None else None
        if executable is not None:
            self.report.cache.append("hit")
            self.report.add_phase("disk cache", time.perf_counter() - start)
        else:
            # Emission calls methods of ops, which are the users' too: in their own thread.
            with self.report.phase("emit"):
                text = emit_module(self.fgraph).text
            executable = apart(self._compiled, text, signature, key)
            self.report.cache.append("off" if key is None else "miss")
        self._report_donations(executable)
        return executable

    def _compiled(self, text: str, signature: Signature, key: str | None) -> Executable:
        """Compiles emitted text, and stores the artifact in the disk cache."""
        try:
            executable = self._linked(text, signature)
        except LoadError:
            if not config.cache_dir:
                raise
            # A part from the disk is not what its hash says.
            executable = self._linked(text, signature, renew=True)
        # Who gave up waiting may have changed settings meanwhile.
        checkpoint()
        if key is not None:
            disk_cache(config.cache_dir, config.cache_size_mb).put(key, executable.artifact.to_bytes())
        return executable

    def _linked(self, text: str, signature: Signature, *, renew: bool = False) -> Executable:
        job = self.job(text, signature, renew)
        if config.compile_isolated:
            # Few processes do: its imports would make that of graphc longer.
            from graphc.backends.cpu.isolated import make_isolated

            made = make_isolated(job)
        else:
            with self.report.phase("load compiler"):
                preload(any(hasattr(node.op, "compiled_graph") for node in self.fgraph.nodes))
            made = make(job)
        for phase, seconds in made.seconds.items():
            self.report.add_phase(phase, seconds)
        self.report.passes.extend(made.passes)
        with self.report.phase("link"):
            return Executable(made.artifact)

    def job(self, text: str, signature: Signature, renew: bool = False) -> Job:
        """What is to be compiled, from emitted text and the form of calls."""
        used = len(self.fgraph.inputs)
        liberties = (self.report.fastmath, self.report.flush_denormals)
        return Job(text, self.mode, signature, used, self._donate, *liberties, renew)

    def _report_donations(self, executable: Executable) -> None:
        """Says what became of donated inputs, and of shared variables that are updated."""
        manifest = executable.manifest
        n_outputs = len(manifest.signature.outputs)
        for argument, result in manifest.signature.donated:
            what = f"result {result}" if result < n_outputs else "its new value"
            self.report.donations.append(f"{self.fgraph.inputs[argument]} lends its memory to {what}")
        for argument, result in manifest.signature.spares:
            self.report.donations.append(
                f"{self.fgraph.inputs[argument]} lends its memory to result {result} if it has its sizes"
            )
        for argument, reason in manifest.extra.get("kept", ()):
            self.report.donations.append(f"{self.fgraph.inputs[argument]} is not overwritten: {reason}")

    def ir_stages(self) -> list[tuple[str, str]]:
        """Name and text of the IR at each stage, from the graph to assembly. Compiles again, without the
        cache.
        """
        return apart(self._stages, emit_module(self.fgraph).text)

    def _stages(self, text: str) -> list[tuple[str, str]]:
        signature = self.executable.manifest.signature if self.executable else self._plain_signature()
        job = self.job(text, signature)
        lowered = lower_with_donations(job, keep_stages=True)
        stages = list(lowered.stages)
        generate(
            lowered,
            signature,
            self.mode,
            job.used,
            flush_denormals=job.flush_denormals,
            on_ir=lambda name, text: stages.append((name, text)),
        )
        return stages

    def __getstate__(self) -> dict[str, Any]:
        return {**self.__dict__, "_run_call": None}


def _cached(key: str, signature: Signature) -> Executable | None:
    """What the disk cache has under a key, for a form of call."""
    disk = disk_cache(config.cache_dir, config.cache_size_mb)
    data = disk.get(key)
    if data is None:
        return None
    try:
        executable = Executable.from_bytes(data)
    except (ArtifactError, LoadError):
        executable = None
    if executable is not None:
        found = executable.manifest.signature
        if found == replace(signature, donated=found.donated, spares=found.spares):
            return executable
    disk.discard(key)
    return None


def _spec(v: Any) -> ArraySpec:
    return ArraySpec(v.type.dtype, tuple(v.type.shape))


def _requests(
    signature: Signature, donated: Sequence[int], n_cells: int
) -> list[tuple[int, list[int], bool]]:
    """The arguments that may be overwritten, as `graphc.lowering.donation.Request` has them."""
    requests = []
    for argument in donated:
        spec = signature.inputs[argument]
        same = [
            i for i, out in enumerate(signature.outputs) if (out.dtype, out.shape) == (spec.dtype, spec.shape)
        ]
        requests.append((argument, same, False))
    for i, update in enumerate(signature.updates, len(signature.outputs)):
        cell = signature.cells[update.cell]
        if update.cell < n_cells and (cell.dtype, cell.shape) == (update.value.dtype, update.value.shape):
            requests.append((len(signature.inputs) + update.cell, [i], True))
    return requests
