# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Information of graphc-opt about itself: versions, passes, completions of shells."""

from __future__ import annotations

import argparse
from importlib.metadata import PackageNotFoundError, version
from importlib.resources import files

from graphc.passes import STAGES, discover, find
from graphc_runtime.installed import version as own_version
from graphc_tools._options import PROGRAM, build_parser


def about(arguments: argparse.Namespace) -> str:
    """The requested information."""
    if arguments.version:
        return versions()
    return passes() if arguments.list_passes else completion(arguments.completion)


def versions() -> str:
    """graphc's version and those of what it is made of."""
    found = [f"{PROGRAM} {own_version('graphc')}"]
    for name in ("torch-mlir", "llvmlite"):
        try:
            found.append(f"{name} {version(name)}")
        except PackageNotFoundError:
            found.append(f"{name} is not installed")
    return "\n".join(found)


def upstream() -> dict[str, str]:
    """Names of upstream's passes, and the operation that a pass is restricted to, or nothing."""
    lines = (files(__package__) / "upstream_passes.txt").read_text(encoding="utf-8").splitlines()
    return {name: anchor for name, _, anchor in (line.partition(" ") for line in lines)}


def passes() -> str:
    """Every pass of graphc with its stage, summary and options; the names of upstream's."""
    lines = []
    classes = [find(flag) for flag in discover()]
    for stage in STAGES:
        lines.append(f"{stage} stage:")
        for cls in classes:
            if cls.stage == stage:
                summary = (cls.__doc__ or "").strip().partition("\n")[0]
                lines.append(f"  --{cls.flag()}: {summary}")
                for name, default in cls.options().items():
                    text = str(default).lower() if isinstance(default, bool) else default
                    lines.append(f"      {name}={text}")
    lines.append("upstream MLIR (mlir.llvm.org/docs/Passes has their options):")
    lines += [f"  --{name}" + (f" on {anchor}" if anchor else "") for name, anchor in upstream().items()]
    return "\n".join(lines)


def completion(shell: str) -> str:
    """Completions of the options of graphc-opt, to be read by a shell."""
    own = [flag for action in build_parser()._actions for flag in action.option_strings]
    flags = sorted({*own, *(f"--{name}" for name in (*discover(), *upstream()))})
    if shell == "fish":
        return "\n".join(f"complete -c {PROGRAM} -l {flag[2:]}" for flag in flags if flag.startswith("--"))
    words = " ".join(flags)
    if shell == "zsh":
        return f"#compdef {PROGRAM}\n_arguments '*:file:_files' {' '.join(map(repr, flags))}"
    return (
        f"_{PROGRAM.replace('-', '_')}() {{\n"
        '  case "${COMP_WORDS[COMP_CWORD]}" in\n'
        f'    -*) COMPREPLY=($(compgen -W "{words}" -- "${{COMP_WORDS[COMP_CWORD]}}"));;\n'
        '    *) COMPREPLY=($(compgen -f -- "${COMP_WORDS[COMP_CWORD]}"));;\n'
        "  esac\n}\n"
        f"complete -o filenames -F _{PROGRAM.replace('-', '_')} {PROGRAM}"
    )
