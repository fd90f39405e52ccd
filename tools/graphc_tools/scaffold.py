# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Starts a new pass: its module and its three lit tests, all of which run.

    python -m graphc_tools.scaffold remove-identity --stage graph --summary "Removes graphc.identity."

The module is found by its name; nothing has to be registered, and it may move to a folder of the stage. What
it does is then yours to write: the scaffold counts the operations it visits.
"""

from __future__ import annotations

import argparse
import re
import sys
from pathlib import Path

from graphc.passes.manager.base import STAGES, discover, flag_of

ROOT = Path(__file__).resolve().parents[2]
_HEADER = "# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception\n"

_MODULE = '''{header}"""{summary}"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from graphc.passes.manager.base import Pass
from graphc.ir.diagnostics import fail


@dataclass
class {cls}(Pass):
    """{summary}

    What it looks for, what it leaves alone and why, in a few sentences.

    Options:
        max-operations: largest number of operations it accepts in a module.

    Source: the paper or the rewrite it follows.
    """

    stage = "{stage}"
    max_operations: int = 100000

    def run(self, module: Any) -> None:
        from graphc.ir.walk import functions, walk

        found = [op for function in functions(module) for op in walk(function)]
        if len(found) > self.max_operations:
            fail(found[self.max_operations], f"more than {{self.max_operations}} operations")
        self.count("operations", len(found))
'''

_BASIC = """// RUN: graphc-opt --{flag} --mlir-pass-statistics %s 2>&1 | filecheck %s

// CHECK: (S) {{{{ *}}}}1 operations
// CHECK-LABEL: func.func @f
func.func @f() {{
  return
}}
"""

_INVALID = """// RUN: graphc-opt --{flag}=max-operations=0 --verify-diagnostics %s

func.func @f() {{
  // expected-error @below {{{{more than 0 operations}}}}
  return
}}
"""

_DOCTEST = """// RUN: graphc-opt --{flag} %s | filecheck %s

// CHECK: func.func @f() {{
// CHECK-NEXT: return
func.func @f() {{
  return
}}
"""


def scaffold(name: str, stage: str, summary: str, root: Path = ROOT) -> list[Path]:
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
    if not re.fullmatch(r"[a-z][a-z0-9]*(-[a-z0-9]+)*", name):
        raise ValueError(
            f"a pass name consists of lower-case words joined by hyphens, but was given '{name}'"
        )
    module_name = name.replace("-", "_")
    flag = flag_of(module_name)
    module = root / "compiler" / "graphc" / "passes" / stage / f"{module_name}.py"
    if flag in discover() or module.exists():
        raise ValueError(f"there is a pass {flag} already")
    if not summary.endswith("."):
        raise ValueError(f"the summary is one sentence and ends with a full stop, but was given '{summary}'")
    cls = "".join(word.capitalize() for word in name.split("-"))
    lit = root / "tests" / "lit" / "passes" / name
    files = {
        module: _MODULE.format(header=_HEADER, summary=summary, cls=cls, stage=stage),
        lit / "basic.mlir": _BASIC.format(flag=flag),
        lit / "invalid.mlir": _INVALID.format(flag=flag),
        lit / "doctest.mlir": _DOCTEST.format(flag=flag),
    }
    for path, text in files.items():
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text, encoding="utf-8")
    return list(files)


def main(argv: list[str] | None = None) -> int:
    """Runs the tool; returns the exit code."""
    parser = argparse.ArgumentParser(
        prog="graphc_tools.scaffold", description=(__doc__ or "").partition("\n")[0]
    )
    parser.add_argument("name", help="name with hyphens, without the graphc- prefix")
    parser.add_argument("--stage", choices=STAGES, required=True)
    parser.add_argument("--summary", required=True, help="one sentence")
    arguments = parser.parse_args(argv)
    try:
        for path in scaffold(arguments.name, arguments.stage, arguments.summary):
            print(path.relative_to(ROOT))
    except ValueError as error:
        print(f"graphc_tools.scaffold: error: {error}", file=sys.stderr)
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main())
