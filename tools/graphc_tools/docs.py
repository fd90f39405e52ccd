# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Writes the pages of docs that are made from the code.

python -m graphc_tools.docs           write the pages
python -m graphc_tools.docs --check   exit with 1 if a page is not what would be written
"""

from __future__ import annotations

import argparse
import inspect
import io
import sys
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any

from graphc.ir.patterns import described
from graphc.passes import STAGES, discover, find
from graphc_tools import opt
from graphc_tools.docs_operations import NOTICE as _NOTICE
from graphc_tools.docs_operations import cell, operations_page
from graphc_tools.layers_picture import layers_picture
from graphc_tools.lit_format import parse_command
from graphc_tools.ratio_picture import first_picture
from graphc_tools.scan_picture import rows_picture
from graphc_tools.scan_tutorial import tutorial_page

ROOT = Path(__file__).resolve().parents[2]
_STAGE_TEXT = {
    "graph": "The module holds operations of the graphc dialect on tensors.",
    "tensor": "The module holds linalg, tensor, arith and math operations on tensors.",
    "buffer": "Tensors have become memrefs; loops are explicit.",
    "llvm": "The module is on its way into the llvm dialect.",
}


# -- passes ----------------------------------------------------------------------------------------


# Pages of passes, by the name of their file. A pass whose flag begins with the prefix is there, any other
# where its stage is.
PASSES = {
    "graph": ("Passes on graphs", ("graph",), ""),
    "loops": ("Passes on loops", (), "graphc-scan-"),
    "buffer": ("Passes on tensors and buffers", ("tensor", "buffer"), ""),
    "gpu": ("Passes for graphics processors", (), "graphc-gpu-"),
    "llvm": ("Passes on LLVM's dialect", ("llvm",), ""),
}
_LONGEST = 80  # lines of an example's result


def page_of(flag: str) -> str:
    """The page of a pass, a key of `PASSES`."""
    stage = find(flag).stage
    by_name = (page for page, (_, _, prefix) in PASSES.items() if prefix and flag.startswith(prefix))
    return next(by_name, None) or next(page for page, (_, stages, _) in PASSES.items() if stage in stages)


def passes_page() -> str:
    """Markdown with a line for every pass."""
    lines = [
        _NOTICE,
        "",
        "# Passes",
        "",
        "Each pass is an option of `graphc-opt` and a name in pipelines; upstream's passes may be mixed in:",
        "",
        "    graphc-opt --graphc-constant-folding --canonicalize file.mlir",
        "    graphc-opt --pass-pipeline='builtin.module(graphc-fusion,func.func(cse))' file.mlir",
        "",
        "`compiler/graphc/backends/stages.py` and the pipelines of targets list which of them run, and why.",
    ]
    for page, (title, _, _) in PASSES.items():
        lines += [
            "",
            f"## {title.removeprefix('Passes ').capitalize()}",
            "",
            "| pass | what it does |",
            "|---|---|",
        ]
        for flag in discover():
            if page_of(flag) == page:
                summary = _markdown(inspect.getdoc(find(flag)) or "").partition("\n\n")[0]
                lines.append(f"| [`--{flag}`](passes/{page}.md#--{flag}) | {cell(summary)} |")
    return "\n".join(lines) + "\n"


def passes_of(page: str) -> str:
    """Markdown with the passes of a page: documentation, options, the doctest's example before and after."""
    title = PASSES[page][0]
    classes = [find(flag) for flag in discover() if page_of(flag) == page]
    lines = [_NOTICE, "", f"# {title}", "", "[All passes](../passes.md)."]
    for stage in STAGES:
        here = [cls for cls in classes if cls.stage == stage]
        if here:
            lines += ["", f"## {stage.capitalize()} stage", "", _STAGE_TEXT[stage]]
            for cls in here:
                lines += [
                    "",
                    f"### `--{cls.flag()}`",
                    "",
                    _markdown(inspect.getdoc(cls) or ""),
                    *_lines(cls),
                    *_defaults(cls),
                ]
                lines += _example(cls.flag())
    return "\n".join(lines) + "\n"


def _lines(cls: object) -> list[str]:
    """The table of a pass's rules of one line."""
    rows = list(described(getattr(cls, "lines", ())))
    return ["", "| before | after | for |", "|---|---|---|", *rows] if rows else []


def _defaults(cls: Any) -> list[str]:
    options = cls.options()
    if not options:
        return []
    texts = {
        name: str(value).lower() if isinstance(value, bool) else value for name, value in options.items()
    }
    return ["", f"Defaults: {', '.join(f'`{name}={text}`' for name, text in texts.items())}."]


def _markdown(docstring: str) -> str:
    """A Google style docstring as Markdown: the options become a list."""
    result, in_options = [], False
    for line in docstring.splitlines():
        if line.strip() == "Options:":
            in_options = True
            result += ["Options:", ""]
        elif in_options and line.startswith("    "):
            text = line.strip()
            name, colon, rest = text.partition(": ")
            is_new = bool(colon) and " " not in name and not line.startswith("     ")
            result.append(f"- `{name}`: {rest}" if is_new else f"  {text}")
        else:
            in_options = in_options and not line.strip()
            result.append(line)
    return "\n".join(result).replace("``", "`")


def _example(flag: str) -> list[str]:
    """The module of the pass's doctest, before and after."""
    path = ROOT / "tests" / "lit" / "passes" / flag.removeprefix("graphc-") / "doctest.mlir"
    if not path.is_file():
        return []
    kept = [line for line in path.read_text(encoding="utf-8").splitlines() if not _is_directive(line)]
    before = "\n".join(kept).strip()
    after, cut = _run(flag, path).strip().splitlines(), ""
    if len(after) > _LONGEST + 10:
        cut = f" (the first {_LONGEST} of {len(after):,} lines)"
        after = after[:_LONGEST]
    becomes = ["", f"becomes{cut}", "", "```mlir", *after, "```"]
    return ["", "Example:", "", "```mlir", before, "```", *becomes]


def _is_directive(line: str) -> bool:
    text = line.strip()
    return text.startswith("//") and any(word in text for word in ("RUN:", "CHECK", "COM:"))


def _run(flag: str, path: Path) -> str:
    """Output of the first RUN line of a doctest, which must be a plain run of graphc-opt."""
    run_line = next(line for line in path.read_text(encoding="utf-8").splitlines() if "RUN:" in line)
    command = parse_command(run_line.partition("RUN:")[2].strip().replace("%s", str(path)))
    if command is None or command.fails:
        raise ValueError(
            f"the RUN line of {path.relative_to(ROOT)} must be: graphc-opt --{flag} %s | filecheck %s"
        )
    stdout, stderr = io.StringIO(), io.StringIO()
    if opt.main(command.arguments, io.StringIO(), stdout, stderr):
        raise ValueError(f"{path.relative_to(ROOT)} failed:\n{stderr.getvalue()}")
    return stdout.getvalue()


# -- command line ----------------------------------------------------------------------------------

PAGES: dict[str, Callable[[], str]] = {
    "passes.md": passes_page,
    **{f"passes/{page}.md": partial(passes_of, page) for page in PASSES},
    "operations.md": operations_page,
    "guide/scan-passes.md": tutorial_page,
    "guide/scan-rows.svg": rows_picture,
    "architecture/layers.svg": layers_picture,
    "ratios.svg": first_picture,
}


def main(argv: list[str] | None = None) -> int:
    """Writes or checks the pages; returns the exit code."""
    parser = argparse.ArgumentParser(prog="graphc_tools.docs", description=(__doc__ or "").partition("\n")[0])
    parser.add_argument(
        "--check", action="store_true", help="change nothing; exit with 1 if a page is out of date"
    )
    arguments = parser.parse_args(argv)
    stale = []
    for name, build in PAGES.items():
        path, text = ROOT / "docs" / name, build()
        if path.is_file() and path.read_text(encoding="utf-8") == text:
            continue
        stale.append(name)
        if not arguments.check:
            path.parent.mkdir(exist_ok=True)
            path.write_text(text, encoding="utf-8")
            print(f"wrote docs/{name}")
    if arguments.check and stale:
        print(f"out of date: {', '.join(f'docs/{name}' for name in stale)}; run `make docs`", file=sys.stderr)
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main())
