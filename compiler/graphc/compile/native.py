# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""``compile_native``: the executable of a graph, from the disk cache or from the compiler."""

from __future__ import annotations

import time
from collections.abc import Sequence
from functools import cache
from typing import Any

import numpy as np

from graphc.compile.fingerprint import fingerprint
from graphc.config import config
from graphc.graph.function_graph import FunctionGraph
from graphc_runtime.artifact import Artifact
from graphc_runtime.cache import DiskCache
from graphc_runtime.errors import ArtifactError, LoadError
from graphc_runtime.executable import Executable
from graphc_runtime.kernel_call import KernelCall
from graphc_runtime.manifest import ArraySpec, Signature, Site, Update


def compile_native(fgraph: FunctionGraph, *, mode: str, name: str, report: Any) -> NativeExecutable:
    """The native executable of a graph whose nodes all have ``emit``.

    Code is made when the form of the call is known: by `NativeExecutable.bind` or `NativeExecutable.prepare`.

    Args:
        fgraph: tensors to tensors.
        mode: a key of `graphc.pipelines.PIPELINES`.
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

        Returns:
            Whether calls go to machine code; if not, ``function`` calls `run`.
        """
        from graphc_runtime.callable_type import install

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
        executable = self.prepare(signature)
        address = executable.vectorcall_address()
        if address is None:
            return False
        return install(function, address, executable.native_self(cells, fallback, where=self._where))

    def run(self, values: Sequence[Any]) -> list[Any]:
        """One new array for each output; the values are converted where they are not canonical."""
        if self._run_call is None:
            self._run_call = self._make_run_call()
        results: list[Any] = self._run_call(*values, *self._padding)
        return results

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
            arguments, outputs=executable.manifest.signature.results, returns="list", name=self.name
        )
        return executable.kernel_call(signature, where=self._where)

    def _where(self, node: str) -> str | None:
        """The user's line of a node of the emitted graph, such as ``n12``."""
        from graphc.emit import all_nodes

        nodes = all_nodes(self.fgraph)
        index = int(node[1:])
        location = nodes[index].location if index < len(nodes) else None
        return None if location is None else str(location)

    # -- compiling -------------------------------------------------------------------------------------------

    def _load(self, signature: Signature) -> Executable:
        start = time.perf_counter()
        key = fingerprint(self.fgraph, self.mode, signature) if config.cache_dir else None
        disk = disk_cache(config.cache_dir, config.cache_size_mb)
        data = disk.get(key) if key is not None else None
        if data is not None and key is not None:
            try:
                executable = Executable.from_bytes(data)
            except (ArtifactError, LoadError):
                disk.discard(key)
            else:
                self.report.cache.append("hit")
                self.report.add_phase("disk cache", time.perf_counter() - start)
                return executable
        artifact = self._compile(signature)
        if key is not None:
            disk.put(key, artifact.to_bytes())
        self.report.cache.append("off" if key is None else "miss")
        with self.report.phase("link"):
            return Executable(artifact)

    def _compile(self, signature: Signature) -> Artifact:
        from graphc.compile.lower import lower
        from graphc.compile.preload import preload
        from graphc.emit import emit_module

        with self.report.phase("load compiler"):
            preload(any(hasattr(node.op, "compiled_graph") for node in self.fgraph.nodes))
        with self.report.phase("emit"):
            text = emit_module(self.fgraph).text
        lowered = lower(text, self.mode)
        for phase, seconds in lowered.seconds.items():
            self.report.add_phase(phase, seconds)
        self.report.passes.extend(lowered.passes)
        with self.report.phase("code generation"):
            return _generate(lowered, signature, self.mode, len(self.fgraph.inputs))

    def ir_stages(self) -> list[tuple[str, str]]:
        """Name and text of the IR at each stage, from the graph to assembly. Compiles again, without the
        cache.
        """
        from graphc.compile.lower import lower
        from graphc.emit import emit_module

        lowered = lower(emit_module(self.fgraph).text, self.mode, keep_stages=True)
        stages = list(lowered.stages)
        signature = self.executable.manifest.signature if self.executable else self._plain_signature()
        _generate(
            lowered,
            signature,
            self.mode,
            len(self.fgraph.inputs),
            on_ir=lambda name, text: stages.append((name, text)),
        )
        return stages

    def __getstate__(self) -> dict[str, Any]:
        return {**self.__dict__, "_run_call": None}


def _spec(v: Any) -> ArraySpec:
    return ArraySpec(v.type.dtype, tuple(v.type.shape))


def _generate(lowered: Any, signature: Signature, mode: str, used: int, on_ir: Any = None) -> Artifact:
    """Wraps, optimises and emits the kernel.

    Args:
        used: how many of the signature's arguments the kernel reads; the others are cells that are only
            written.
    """
    from graphc.codegen.build import build_artifact
    from graphc.codegen.kernel import kernel_wrappers
    from graphc.codegen.object import host_target
    from graphc.codegen.products import define_products
    from graphc.codegen.veclib import add_vector_variants, is_available
    from graphc.pipelines import OPT_LEVEL

    arguments = [spec.shape for spec in signature.arguments]
    results = [spec.shape for spec in signature.results]
    text = lowered.llvm_ir
    target = host_target()
    if OPT_LEVEL[mode] >= 2 and is_available(target.triple):
        text = add_vector_variants(text, target.features)
    text += kernel_wrappers(arguments[:used], results, has_shapes=lowered.has_shapes, unused=arguments[used:])
    text, products = define_products(text, target.features)
    sites = [Site(**site) for site in lowered.sites]
    return build_artifact(
        text, signature, finished_text=products, sites=sites, opt_level=OPT_LEVEL[mode], on_ir=on_ir
    )


@cache
def disk_cache(directory: str, size_mb: int) -> DiskCache:
    """The cache in a folder; one object per process and setting, so that its statistics add up."""
    return DiskCache(directory, size_mb << 20)
