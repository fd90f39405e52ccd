# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""``graphc.export``: compiled functions as a `.gcx` file."""

from __future__ import annotations

import os
import platform
from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np

import graphc
from graphc.artifacts.names import StateNames
from graphc.artifacts.needs import needs_of
from graphc.artifacts.source import Source, sources
from graphc.artifacts.targets import is_device, named_target
from graphc.backends.cpu import llvm
from graphc.graph.basic import Constant
from graphc_runtime import signing
from graphc_runtime.container import Container, Writer, write_file
from graphc_runtime.manifest import Site
from graphc_runtime.package import Code, FunctionRecord, Package, StateRecord, Stored, TargetRecord
from graphc_runtime.worker import apart

if TYPE_CHECKING:
    from graphc.backends.cpu.object import Machine
    from graphc.function.types import Function
    from graphc_runtime.artifact import Artifact

LICENCE = "Apache-2.0 WITH LLVM-exception"


def export(
    functions: Function | Mapping[str, Function],
    path: str | os.PathLike[str],
    targets: str | Sequence[str] = ("host",),
    *,
    docs: Mapping[str, str] | None = None,
    licences: Sequence[str] = (LICENCE,),
    signing_key: bytes | None = None,
    keep_ir: bool = False,
) -> Path:
    """Writes compiled functions to a file that `graphc_runtime.load` reads without a compiler.

    Functions share constants and the shared variables that several of them use, whose values of now are the
    initial ones. Constants of more than 16 elements and states are kept apart from code, once each.

    Args:
        functions: one, under its own name or ``function``, or several by name.
        path: of the file, by custom ``*.gcx``.
        targets: what to compile for: ``"host"`` (this machine's CPU with all it has), ``"x86-64-v2"``,
            ``"x86-64-v3"``, ``"x86-64-v4"``, ``"aarch64"``; ``"cuda"`` (CUDA devices from sm_90 on),
            ``"cuda-sm_80"``, ``"cuda-sm_100"``. The best one for the CPU is chosen when the file is loaded,
            one for a device if there is no other or `load` is told to.
        docs: descriptions of functions by name.
        licences: of the model, as SPDX expressions or texts.
        signing_key: a private Ed25519 key of 32 bytes to sign the file with (`graphc_runtime.signing`).
        keep_ir: also put the graph of each function, as MLIR, into the file.

    Returns:
        The path.

    Raises:
        TypeError: a function runs partly in Python, or is none.
        ValueError: a name is no identifier, or a target is not known.
        CompileError: something has no kernel for a device.

    Examples:
        >>> import graphc_runtime, os, tempfile
        >>> x = pt.vector("x")
        >>> f = graphc.function([x], x * 2, mode="fast_run")
        >>> path = os.path.join(tempfile.mkdtemp(), "double.gcx")
        >>> written = graphc.export({"double": f}, path)
        >>> graphc_runtime.load(path).double(np.array([1.0, 2.0]))
        array([2., 4.])
    """
    return export_sources(
        sources(functions),
        path,
        [targets] if isinstance(targets, str) else list(targets),
        docs=docs,
        licences=licences,
        signing_key=signing_key,
        keep_ir=keep_ir,
    )


def export_sources(
    given: Sequence[Source],
    path: str | os.PathLike[str],
    targets: Sequence[str],
    *,
    docs: Mapping[str, str] | None = None,
    licences: Sequence[str] = (LICENCE,),
    signing_key: bytes | None = None,
    keep_ir: bool = False,
) -> Path:
    """As `export`."""
    if not targets:
        raise ValueError("export needs at least one target")
    found = {name: named_target(name) for name in targets}
    unknown = sorted(set(docs or ()) - {source.name for source in given})
    if unknown:
        raise ValueError(f"docs describes {', '.join(unknown)}, which are not exported")
    writer = Writer()
    names = StateNames(given)
    records = {
        source.name: apart(_record, source, found, writer, names, (docs or {}).get(source.name, ""))
        for source in given
    }
    texts = {f"mlir:{source.name}": writer.add(source.text.encode()) for source in given if keep_ir}
    package = Package(
        records,
        tuple(_state(writer, *item) for item in names.variables),
        {name: TargetRecord(**target.to_dict()) for name, target in found.items()},
        _producer(),
        tuple(licences),
        texts,
    )
    sign = None if signing_key is None else signing.signer(signing_key)
    data = writer.to_bytes(package.to_json(), sign)
    # Nothing is written that `load` would refuse.
    Package.from_json(Container(data, str(path)).manifest, str(path))
    write_file(path, data)
    return Path(path)


def _record(
    source: Source, targets: Mapping[str, Machine], writer: Writer, names: StateNames, doc: str
) -> FunctionRecord:
    """Compiles a function for all targets."""
    devices = {name: target for name, target in targets.items() if is_device(target)}
    made: dict[str, Artifact] = {}
    sites: tuple[Site, ...] = ()
    if len(devices) < len(targets):
        # Nothing is donated on devices, and all targets of a function have one signature.
        lowered = source.lowered(donate=not devices)
        sites = lowered.sites
        machines = {name: target for name, target in targets.items() if name not in devices}
        made = {name: source.compiled(lowered, target) for name, target in machines.items()}
    for_devices = {name: source.for_device(target, len(sites)) for name, target in devices.items()}
    # Their checks are other ones, but the same for all of them.
    sites += next((artifact.manifest.sites for artifact in for_devices.values()), ())
    made |= for_devices
    code = {
        name: Code(
            writer.add(artifact.code),
            artifact.manifest.symbols,
            artifact.manifest.entries,
            artifact.manifest.tuple_items,
        )
        for name, artifact in made.items()
    }
    made_signature = next(iter(made.values())).manifest.signature
    spares = () if devices else made_signature.spares
    symbols = {symbol for item in code.values() for symbol in item.symbols}
    return FunctionRecord(
        doc,
        replace(source.signature, donated=made_signature.donated, spares=spares),
        source.outputs,
        source.form,
        tuple(
            ("constant", _stored(writer, source.value(i)))
            if isinstance(variable, Constant)
            else ("state", names.number(variable))
            for i, variable in enumerate(source.cells)
        ),
        {i: _stored(writer, value) for i, value in source.defaults.items()},
        # Nodes are positions in a graph that whoever loads this does not have.
        tuple(Site(site.message, site.error) for site in sites),
        code,
        needs_of(symbols),
    )


def _state(writer: Writer, source: Source, cell: int, name: str) -> StateRecord:
    """A shared variable, from a function that has it as a cell."""
    shape, generator = (
        source.signature.cells[cell].shape,
        getattr(source.cells[cell].type, "bit_generator", ""),
    )
    return StateRecord(name, tuple(shape), _stored(writer, source.value(cell)), generator)


def _stored(writer: Writer, array: np.ndarray) -> Stored:
    return Stored(writer.add(array.tobytes()), array.dtype.name, array.shape)


def _producer() -> dict[str, str]:
    """Versions of what makes the file."""
    from importlib import metadata

    return {
        "graphc": graphc.__version__,
        "llvm": str(llvm.version()),
        "mlir": metadata.version("torch-mlir"),
        "numpy": np.__version__,
        "python": platform.python_version(),
    }
