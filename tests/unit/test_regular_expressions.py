# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""IR is read through operations, attributes and types: what its printed form looks like is nobody's business.

Regular expressions are for text that people write or other programs print.
"""

from __future__ import annotations

import ast
from pathlib import Path

import pytest

pytestmark = pytest.mark.usefixtures("no_collections")
ROOT = Path(__file__).resolve().parents[2]
PACKAGES = {
    "graphc": ROOT / "compiler",
    "graphc_dialects": ROOT / "dialects",
    "graphc_runtime": ROOT / "runtime",
    "graphc_tools": ROOT / "tools",
}
# The modules that may apply them, and to what.
ALLOWED = {
    # What people write: names, signatures, options, documentation.
    "graphc.artifacts.emit": "names of models",
    "graphc.artifacts.export": "names of states",
    "graphc.passes.run": "options of passes",
    "graphc.tensor.einsums": "subscripts",
    "graphc.tensor.vectorizing": "signatures of core dimensions",
    "graphc_dialects.foreign": "modules that people write",
    "graphc_dialects.signatures": "signatures of core dimensions",
    "graphc_runtime.package": "names in artifacts",
    "graphc_runtime.run": "arguments of a command",
    "graphc_tools._expected": "comments of tests",
    "graphc_tools.docs_operations": "documentation",
    "graphc_tools.docs_site": "documentation",
    "graphc_tools.public_names": "documentation",
    "graphc_tools.lit_format": "commands of tests",
    "graphc_tools._lsp_text": "what people write in an editor",
    "graphc_tools.short_reader": "the short form, which people write",
    "graphc_tools.new": "names of passes and operations",
    "graphc_tools.scan_tutorial": "documentation, and the IR that it shows",
    # What other programs and libraries say.
    "graphc.artifacts.c_module": "symbols of libraries",
    "graphc.interop.pytensor.identity": "addresses in what PyTensor prints",
    "graphc_runtime.cache": "names of files",
    "graphc_runtime.symbols": "symbols of libraries",
    "graphc_tools._driver": "messages",
    "graphc_tools.gpu.performance": "what ptxas says, and the PTX that it is given",
    "graphc_tools._reproducer": "the pipeline in a comment",
    # What is shown: a picture or a page of a stage is made of its text.
    "graphc.inspect.svg": "stages in pictures",
    "graphc_tools.loop_notation": "names in listings",
    "graphc_tools.short_form": "how types and numbers are written",
    # The hand-over from MLIR's LLVM to llvmlite's, and complex numbers, which the bindings print only.
    "graphc.backends.handoff": "spellings of another version",
    "graphc.ir.constants": "complex elements",
}


def _imports(module: ast.Module) -> set[str]:
    found = set()
    for node in ast.walk(module):
        if isinstance(node, ast.Import):
            found.update(alias.name for alias in node.names)
        elif isinstance(node, ast.ImportFrom):
            found.add(node.module or "")
    return found


@pytest.mark.parametrize("package", PACKAGES)
def test_only_these_modules_apply_regular_expressions(package: str) -> None:
    found = set()
    for path in (PACKAGES[package] / package).rglob("*.py"):
        if {"re", "regex"} & _imports(ast.parse(path.read_bytes())):
            parts = path.relative_to(PACKAGES[package]).with_suffix("").parts
            found.add(".".join(parts).removesuffix(".__init__"))
    assert found == {name for name in ALLOWED if name.partition(".")[0] == package}
