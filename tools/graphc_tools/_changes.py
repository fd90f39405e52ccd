# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Changes that passes made: differences on the standard error stream, and a file for each pass."""

from __future__ import annotations

import argparse
import difflib
from pathlib import Path
from typing import TYPE_CHECKING, TextIO

from graphc_tools._printing import IRPrinter
from graphc_tools._usage import UsageError

if TYPE_CHECKING:
    from graphc_dialects._mlir import ir

_COLOURS = {"-": "\x1b[31m", "+": "\x1b[32m", "@": "\x1b[36m"}
_PLAIN = "\x1b[0m"


class ChangesPrinter(IRPrinter):
    """Prints as an `IRPrinter`, and also what ``--diff`` and ``--mlir-print-ir-tree-dir`` ask for."""

    def __init__(self, arguments: argparse.Namespace, stream: TextIO) -> None:
        super().__init__(arguments, stream)
        self._options, self._out = arguments, stream
        self._count, self._before = 0, ""
        on_terminal = getattr(stream, "isatty", lambda: False)()
        self._coloured = arguments.color == "always" or (arguments.color == "auto" and on_terminal)

    def before(self, name: str, module: ir.Module) -> None:
        """As `IRPrinter.before`; remembers the IR where differences are asked for."""
        super().before(name, module)
        if self._options.diff:
            self._before = self._asm(module)

    def after(self, name: str, module: ir.Module) -> None:
        """As `IRPrinter.after`, then the difference and the file."""
        super().after(name, module)
        if self._options.diff:
            self._difference(name, self._asm(module))
        if self._options.mlir_print_ir_tree_dir:
            self._to_file(name, module)

    def _difference(self, name: str, text: str) -> None:
        """Prints what a pass changed, removed lines in red and added ones in green."""
        old, new = self._before.splitlines(), text.splitlines()
        for line in difflib.unified_diff(old, new, f"before {name}", f"after {name}", n=2, lineterm=""):
            colour = _COLOURS.get(line[:1], "") if self._coloured else ""
            print(f"{colour}{line}{_PLAIN}" if colour else line, file=self._out)

    def _to_file(self, name: str, module: ir.Module) -> None:
        """Writes the IR to a file named after the number of the pass and its name.

        Raises:
            UsageError: it cannot be written.
        """
        path = Path(self._options.mlir_print_ir_tree_dir, "builtin_module_no-symbol-name")
        file = path / f"{self._count}_{_file_name(name)}.mlir"
        self._count += 1
        try:
            path.mkdir(parents=True, exist_ok=True)
            file.write_text(f"{self._asm(module).rstrip()}\n", encoding="utf-8")
        except OSError as error:
            raise UsageError(f"cannot write '{file}': {error.strerror}") from None


def _file_name(name: str) -> str:
    """The name of a pass without its options, nor what it is nested in."""
    return name.partition("{")[0].rpartition("(")[2].rstrip(")")
