# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""The C header of exported functions: declarations, and in comments what they take and give."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence

from graphc.artifacts.c_function import Interface, Member


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
