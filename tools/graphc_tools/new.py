# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Starts a new operation or pass, with tests, all of which run.

    graphc-new op flip-rows --summary "The rows of an array in reverse order."
    graphc-new pass remove-identity --stage graph --summary "Removes graphc.identity."

Both are found by their names; nothing has to be registered.
"""

from __future__ import annotations

import argparse
import re
import sys
from pathlib import Path

from graphc.passes import STAGES, discover, flag_of
from graphc_dialects.dialect import operation_classes
from graphc_tools import new_op, new_pass

ROOT = Path(__file__).resolve().parents[2]
_HEADER = "# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception\n"


def _write(files: dict[str, str], root: Path, **words: str) -> list[Path]:
    paths = [root / place.format(**words) for place in files]
    for path in paths:
        if path.exists():
            raise ValueError(f"there is a file {path.relative_to(root)} already")
    for path, text in zip(paths, files.values(), strict=True):
        path.parent.mkdir(parents=True, exist_ok=True)
        header = _HEADER if path.suffix == ".py" else ""
        path.write_text(header + text.format(**words), encoding="utf-8")
    return paths


def _words(name: str, summary: str) -> dict[str, str]:
    if not re.fullmatch(r"[a-z][a-z0-9]*(-[a-z0-9]+)*", name):
        raise ValueError(f"a name consists of lower-case words joined by hyphens, but was given '{name}'")
    if not summary.endswith("."):
        raise ValueError(f"the summary is one sentence and ends with a full stop, but was given '{summary}'")
    cls = "".join(word.capitalize() for word in name.split("-"))
    return {"name": name.replace("-", "_"), "cls": cls, "summary": summary}


def create_pass(name: str, stage: str, summary: str, root: Path = ROOT) -> list[Path]:
    """Writes the files of a new pass.

    Args:
        name: name with hyphens, without the `graphc-` prefix.
        stage: graph, tensor, buffer or llvm.
        summary: one sentence.
        root: the repository.

    Returns:
        The files written.

    Raises:
        ValueError: the name is malformed or taken, or the summary is no sentence.
    """
    words = _words(name, summary)
    flag = flag_of(words["name"])
    if flag in discover():
        raise ValueError(f"there is a pass {flag} already")
    return _write(new_pass.FILES, root, **words, stage=stage, flag=flag, flag_name=name)


def create_op(name: str, summary: str, root: Path = ROOT) -> list[Path]:
    """Writes the files of a new structured operation: class, graph operation, traits, lowering, tests.

    Args:
        name: name with hyphens. summary: one sentence.
        root: the repository.

    Returns:
        The files written.

    Raises:
        ValueError: the name is malformed or taken, or the summary is no sentence.
    """
    words = _words(name, summary)
    if f"graphc.{words['name']}" in operation_classes():
        raise ValueError(f"there is an operation graphc.{words['name']} already")
    return _write(new_op.FILES, root, **words)


def main(argv: list[str] | None = None) -> int:
    """Runs the tool; returns the exit code."""
    parser = argparse.ArgumentParser(prog="graphc-new", description=(__doc__ or "").partition("\n")[0])
    kinds = parser.add_subparsers(dest="kind", required=True)
    for kind in ("op", "pass"):
        one = kinds.add_parser(kind)
        one.add_argument("name", help="name with hyphens")
        one.add_argument("--summary", required=True, help="one sentence")
        if kind == "pass":
            one.add_argument("--stage", choices=STAGES, required=True)
    given = parser.parse_args(argv)
    try:
        paths = (
            create_op(given.name, given.summary)
            if given.kind == "op"
            else create_pass(given.name, given.stage, given.summary)
        )
    except ValueError as error:
        print(f"graphc-new: error: {error}", file=sys.stderr)
        return 1
    for path in paths:
        print(path.relative_to(ROOT))
    print("now write the pages of docs that are made from the code: make docs")
    return 0


if __name__ == "__main__":
    sys.exit(main())
