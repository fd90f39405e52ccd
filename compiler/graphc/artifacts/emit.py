# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Compiled functions as files for C: objects, shared libraries and headers; and as texts, to be looked at.

The header has declarations, and in comments what functions take and give.
"""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import tempfile
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from graphc.artifacts.c_function import Interface, Member
from graphc.artifacts.c_module import c_module
from graphc.artifacts.export import StateNames, named_target
from graphc.artifacts.source import Source, sources
from graphc.backends.cpu.object import this_machine
from graphc.errors import CompileError
from graphc_runtime.container import write_file
from graphc_runtime.worker import apart

if TYPE_CHECKING:
    from graphc.artifacts.c_module import CModule
    from graphc.backends.cpu.object import Machine
    from graphc.function.types import Function


def c_header(name: str, interfaces: Mapping[str, Interface], docs: Mapping[str, str] | None = None) -> str:
    """The text of `<name>.h`, which includes `graphc.h`."""
    # The prefix makes identifiers of names that begin with a digit, and another one than that of graphc.h.
    guard = re.sub(r"\W", "_", f"GRAPHC_{name}_H".upper(), flags=re.ASCII)
    lines = [
        "/* Written by graphc. */",
        f"#ifndef {guard}",
        f"#define {guard}",
        "",
        "#include <graphc.h>",
        "",
        "#ifdef __cplusplus",
        'extern "C" {',
        "#endif",
        "",
    ]
    for function, interface in interfaces.items():
        lines += _declaration(function, interface, (docs or {}).get(function, ""))
    return "\n".join([*lines, "#ifdef __cplusplus", "}", "#endif", "#endif", ""])


def _declaration(name: str, interface: Interface, doc: str) -> list[str]:
    text = [*doc.splitlines(), *_listed("inputs", interface.inputs), *_listed("outputs", interface.outputs)]
    return [
        "/*",
        *(f" * {line}".rstrip() for line in "\n".join(text).replace("*/", "* /").splitlines()),
        " */",
        f"extern graphc_run_function {name};",
        f"extern graphc_shapes_function {name}_shapes;",
        f"extern graphc_workspace_function {name}_workspace;",
        f"extern const graphc_function {name}_info;",
        f"enum {{ {name}_n_inputs = {len(interface.inputs)}, {name}_n_outputs = {len(interface.outputs)} }};",
        "",
    ]


def _listed(what: str, members: Sequence[Member]) -> list[str]:
    lines = [f"{what}:"]
    for i, member in enumerate(members):
        sizes = ", ".join("?" if size is None else str(size) for size in member.spec.shape)
        role = " (state)" if member.initial is not None else ""
        role = f" (next value of input {member.updates})" if member.updates >= 0 else role
        lines.append(f"  {i}  {member.name}: {member.spec.dtype}[{sizes}]{role}")
    return lines


KINDS = ("object", "shared", "header", "llvm", "asm", "mlir")


def emit(
    functions: Function | Mapping[str, Function],
    path: str | os.PathLike[str],
    kind: str,
    target: str = "host",
    *,
    docs: Mapping[str, str] | None = None,
    freestanding: bool = False,
) -> tuple[str, ...]:
    """Writes compiled functions for C programs (`graphc.h` has the interface).

    Args:
        functions: as for `graphc.export`.
        path: of the file. A header is written beside objects and shared libraries, with the suffix ``.h``.
        kind: ``"object"``, ``"shared"``, ``"header"``, or a text: ``"llvm"``, ``"asm"``, ``"mlir"``.
        target: a name as for `graphc.export`.
        docs: descriptions of functions by name.
        freestanding: call no library: products and factors of real matrices are graphc's own, and what else
            needs BLAS, LAPACK or the mathematical library is refused.

    Returns:
        The libraries that a program has to link with: "BLAS", "LAPACK", "libm", "libmvec".

    Raises:
        TypeError: a function runs partly in Python.
        CompileError: it calls what C programs do not have, or there is no linker for a shared library.
        ValueError: a C program cannot have a function of such a name (keywords, symbols of libraries).
    """
    if kind not in KINDS:
        raise ValueError(f"kind must be one of {', '.join(KINDS)}, got {kind!r}")
    return emit_sources(sources(functions), path, kind, target, docs=docs, freestanding=freestanding)


def emit_sources(
    given: Sequence[Source],
    path: str | os.PathLike[str],
    kind: str,
    target: str = "host",
    *,
    docs: Mapping[str, str] | None = None,
    freestanding: bool = False,
) -> tuple[str, ...]:
    """As `emit`."""
    path = Path(path)
    if kind == "mlir":
        write_file(path, "\n".join(source.text for source in given).encode())
        return ()
    made_for = named_target(target)
    module = apart(_made, given, made_for, freestanding, docs)
    header = c_header(path.stem, module.interfaces, docs).encode()
    if kind == "header":
        write_file(path, header)
        return module.needs
    if kind in ("llvm", "asm"):
        write_file(path, (module.llvm if kind == "llvm" else module.assembly).encode())
        return module.needs
    write_file(path, module.code if kind == "object" else linked(module.code, made_for, module.needs))
    write_file(path.with_suffix(".h"), header)
    return module.needs


def _made(
    given: Sequence[Source], target: Machine, freestanding: bool, docs: Mapping[str, str] | None
) -> CModule:
    names = StateNames(given)
    return c_module(given, names.of_cells, target, freestanding=freestanding, docs=docs)


def linked(code: bytes, target: Any, needs: Sequence[str]) -> bytes:
    """A shared library of an object, made by the system's C compiler.

    Raises:
        CompileError: there is none, or none for the target.
    """
    if target.triple.split("-")[0] != this_machine().triple.split("-")[0]:
        raise CompileError(
            f"a shared library for {target.triple} needs a linker for it: emit an object, and link that"
        )
    compiler = shutil.which("cc") or shutil.which("gcc") or shutil.which("clang")
    if compiler is None:
        raise CompileError("a shared library needs the system's C compiler (cc) to link it: emit an object")
    with tempfile.TemporaryDirectory() as folder:
        source, result = Path(folder, "model.o"), Path(folder, "model.so")
        source.write_bytes(code)
        libraries = ["-lm"] if {"libm", "libmvec"} & set(needs) else []
        command = [compiler, "-shared", "-nostartfiles", "-o", str(result), str(source), *libraries]
        done = subprocess.run(command, capture_output=True, text=True, check=False)
        if done.returncode:
            raise CompileError(f"{' '.join(command)} failed:\n{done.stderr}")
        return result.read_bytes()
