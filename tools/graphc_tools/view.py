# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""graphc-view: the compiler explorer, a page that shows a function from its source to assembly.

    graphc-view model.py:fn
    graphc-view model.py:fn -o fn.html --shape 100,3 --shape 3 --open

The function is a `graphc.function`, or what a Python function without parameters gives; of a dict of
functions, each has a page. The exit code is 1 for what cannot be compiled, 2 for wrong arguments.
"""

from __future__ import annotations

import argparse
import sys
import webbrowser
from collections.abc import Sequence
from pathlib import Path

from graphc.errors import GraphcError
from graphc.function.types import Function
from graphc_tools._functions import SourceError, functions_of

PROGRAM = "graphc-view"


def build_parser() -> argparse.ArgumentParser:
    """The options."""
    parser = argparse.ArgumentParser(
        prog=PROGRAM,
        description="Writes a page that shows a function from its source to assembly.",
        allow_abbrev=False,
    )
    add = parser.add_argument
    add("source", metavar="SOURCE", help="model.py:name")
    add("-o", dest="output", metavar="FILE", help="file to write (default name.html)")
    add(
        "--shape",
        action="append",
        default=[],
        type=_shape,
        metavar="N,N",
        help="of an input, in order, for the memory plan; empty for a number",
    )
    add("--open", action="store_true", help="show the page in a browser")
    return parser


def _shape(text: str) -> tuple[int, ...]:
    try:
        return tuple(int(size) for size in text.split(",") if size)
    except ValueError:
        raise argparse.ArgumentTypeError(
            f"sizes are numbers with commas between them, got {text!r}"
        ) from None


def main(arguments: Sequence[str] | None = None) -> int:
    """Runs the command; returns the exit code."""
    options = build_parser().parse_args(arguments)
    try:
        (functions,) = functions_of([options.source])
        if options.output and len(functions) > 1:
            raise SourceError(f"-o names one file, and {options.source} has {len(functions)} functions")
        for name, function in functions.items():
            if not isinstance(function, Function):
                raise SourceError(
                    f"{options.source} must be a graphc.function, or give one when it is called without "
                    f"arguments; got {type(function).__name__}"
                )
            path = function.explore(*options.shape).save(options.output or f"{name}.html")
            print(f"{path} ({path.stat().st_size // 1024} KB)")
            if options.open:
                webbrowser.open(Path(path).resolve().as_uri())
    except SourceError as error:
        print(f"{PROGRAM}: {error}", file=sys.stderr)
        return 2
    except (GraphcError, TypeError, ValueError, OSError, ImportError) as error:
        print(f"{PROGRAM}: {error}", file=sys.stderr)
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main())
