# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""graphc-compile: compiled functions as files.

    graphc-compile model.py:fn -o model.gcx --target x86-64-v3 --target aarch64
    graphc-compile model.py:loss model.py:gradient --emit shared -o libmodel.so
    graphc-compile graph.mlir -o graph.gcx

A source is a Python file and the name of a function in it: a `graphc.function`, a dict of them by name, or a
Python function without parameters that gives one of both. A file runs once, so that its functions have the
same shared variables. Or a source is a module in MLIR of the graph stage, with a function `main`. The exit
code is 1 for what cannot be compiled, 2 for wrong arguments.
"""

from __future__ import annotations

import argparse
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from graphc.artifacts.emit import emit_sources
from graphc.artifacts.export import LICENCE, NAMES, export_sources
from graphc.artifacts.source import mlir_source, sources
from graphc.errors import GraphcError
from graphc_tools._functions import SourceError, functions_of

if TYPE_CHECKING:
    from graphc.artifacts.source import Source

PROGRAM = "graphc-compile"
_EMIT = ("artifact", "object", "shared", "header", "llvm", "asm", "mlir")


def build_parser() -> argparse.ArgumentParser:
    """The options."""
    parser = argparse.ArgumentParser(
        prog=PROGRAM,
        description="Compiles functions to files that run without the compiler.",
        allow_abbrev=False,
    )
    add = parser.add_argument
    add("sources", nargs="+", metavar="SOURCE", help="model.py:name or graph.mlir")
    add("-o", dest="output", required=True, metavar="FILE", help="file to write")
    add("--emit", default="artifact", choices=_EMIT, help="what to write (default artifact, a .gcx file)")
    add("--target", action="append", choices=NAMES, help="may be repeated for artifacts (default host)")
    add("--mode", default="fast_run", choices=("fast_run", "fast_compile"), help="of MLIR sources")
    add("--freestanding", action="store_true", help="for C: call no library; what needs one is refused")
    add("--keep-ir", action="store_true", help="put the graphs into the artifact, as MLIR")
    add("--licence", action="append", default=[], metavar="TEXT", help="of the model (SPDX); may be repeated")
    add("--sign", metavar="FILE", help="file with a private Ed25519 key of 32 bytes")
    return parser


def main(arguments: Sequence[str] | None = None) -> int:
    """Runs the command; returns the exit code."""
    options = build_parser().parse_args(arguments)
    targets = options.target or ["host"]
    if options.emit != "artifact" and len(targets) > 1:
        print(f"{PROGRAM}: --emit {options.emit} takes one target, got {len(targets)}", file=sys.stderr)
        return 2
    try:
        _write(_sources(options.sources, options.mode), targets, options)
    except SourceError as error:
        print(f"{PROGRAM}: {error}", file=sys.stderr)
        return 2
    except (GraphcError, TypeError, ValueError, OSError, ImportError) as error:
        print(f"{PROGRAM}: {error}", file=sys.stderr)
        return 1
    return 0


def _write(given: Sequence[Source], targets: Sequence[str], options: argparse.Namespace) -> None:
    names = [source.name for source in given]
    twice = sorted({name for name in names if names.count(name) > 1})
    if twice:
        raise ValueError(f"two functions have the name {twice[0]}")
    if options.emit == "artifact":
        key = Path(options.sign).read_bytes() if options.sign else None
        licences = options.licence or [LICENCE]
        export_sources(
            given, options.output, targets, licences=licences, signing_key=key, keep_ir=options.keep_ir
        )
        return
    needs = emit_sources(given, options.output, options.emit, targets[0], freestanding=options.freestanding)
    if needs:
        print(f"{PROGRAM}: link with {', '.join(needs)}", file=sys.stderr)


def _sources(texts: Sequence[str], mode: str) -> list[Source]:
    """The functions that arguments name, in their order."""
    files = [text for text in texts if not text.endswith(".mlir")]
    found = iter(functions_of(files, "model.py:name or graph.mlir"))
    return [
        source
        for text in texts
        for source in ([_graph(Path(text), mode)] if text.endswith(".mlir") else sources(next(found)))
    ]


def _graph(path: Path, mode: str) -> Source:
    name = path.stem if path.stem.isidentifier() else "main"
    return mlir_source(name, path.read_text(encoding="utf-8"), mode)


if __name__ == "__main__":
    sys.exit(main())
