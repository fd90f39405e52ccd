# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Output of graphc-opt on the standard error stream: diagnostics, IR dumps, timing and statistics."""

from __future__ import annotations

import argparse
import linecache
from collections.abc import Iterable
from typing import TYPE_CHECKING, TextIO

from graphc.passes.run import PipelineReport
from graphc_dialects.diagnostics import Diagnostic

if TYPE_CHECKING:
    from graphc_dialects._mlir import ir

_STANDARD_INPUT = "-"
_SHOWN = 1000  # characters of a line before and after a column


def print_diagnostic(diagnostic: Diagnostic, path: str, source: str, stream: TextIO) -> None:
    """`file:line:column: error: message`, the source line and a caret, then the notes the same way.

    Args:
        diagnostic: what to print.
        path: name of the input file, which the parser calls `-`.
        source: its text.
        stream: where to print.
    """
    position = diagnostic.position
    if position is None:
        print(f"{path}: {diagnostic.severity}: {diagnostic.message}", file=stream)
    else:
        own = position.file == _STANDARD_INPUT
        name = path if own else position.file
        place = f"{name}:{position.line}:{position.column}" if position.line else name
        print(f"{place}: {diagnostic.severity}: {diagnostic.message}", file=stream)
        lines = source.splitlines() if own else [line.rstrip("\n") for line in linecache.getlines(name)]
        if 0 < position.line <= len(lines):
            column = max(position.column - 1, 0)
            first = max(column - _SHOWN, 0)  # of a line that is too long for anybody to read
            before, after = lines[position.line - 1][first:column], lines[position.line - 1][column:]
            print(f"{before}{after[:_SHOWN]}", file=stream)
            if position.column > 0:
                indent = "".join("\t" if c == "\t" else " " for c in before)
                print(f"{indent}^", file=stream)
    for note in diagnostic.notes:
        print_diagnostic(note, path, source, stream)


class IRPrinter:
    """Prints the IR around passes as the options ask (an `Instrument` of `run_pipeline`).

    Attributes:
        current: text of the pass that runs or ran last.
    """

    def __init__(self, arguments: argparse.Namespace, stream: TextIO) -> None:
        self.current = "the pipeline"
        self._arguments = arguments
        self._stream = stream
        self._text = ""

    def before(self, name: str, module: ir.Module) -> None:
        """Prints the IR if asked for, and remembers it where changes matter."""
        self.current = name
        if self._arguments.mlir_print_ir_after_change:
            self._text = self._asm(module)
        if self._arguments.mlir_print_ir_before_all or _selected(name, self._arguments.mlir_print_ir_before):
            self._dump(f"IR Dump Before {name}", module)

    def after(self, name: str, module: ir.Module) -> None:
        """Prints the IR if asked for."""
        arguments = self._arguments
        chosen = arguments.mlir_print_ir_after_all or _selected(name, arguments.mlir_print_ir_after)
        if arguments.mlir_print_ir_after_change:
            chosen = (chosen or not arguments.mlir_print_ir_after) and self._asm(module) != self._text
        if chosen:
            self._dump(f"IR Dump After {name}", module)

    def failed(self, name: str, module: ir.Module) -> None:
        """Prints the IR, in generic form since it may be invalid, if asked for."""
        arguments = self._arguments
        if arguments.mlir_print_ir_after_failure or arguments.mlir_print_ir_after_all:
            text = module.operation.get_asm(print_generic_op_form=True)
            print(f"// -----// IR Dump After {name} Failed //----- //\n{text.rstrip()}\n", file=self._stream)

    def _asm(self, module: ir.Module) -> str:
        return str(
            module.operation.get_asm(
                print_generic_op_form=self._arguments.mlir_print_op_generic,
                enable_debug_info=self._arguments.mlir_print_debuginfo,
            )
        )

    def _dump(self, title: str, module: ir.Module) -> None:
        print(f"// -----// {title} //----- //\n{self._asm(module).rstrip()}\n", file=self._stream)


def _selected(name: str, wanted: list[str]) -> bool:
    return any(word.lstrip("-") == name.partition("{")[0] for item in wanted for word in item.split(","))


def print_timing(reports: Iterable[PipelineReport], stream: TextIO) -> None:
    """Wall-clock time of each pass, summed over the modules of the input."""
    seconds: dict[str, float] = {}
    for report in reports:
        for run in report.runs:
            seconds[run.name] = seconds.get(run.name, 0.0) + run.seconds
    total = sum(seconds.values())
    print("===-- Execution time report --===", file=stream)
    for name, time in [*seconds.items(), ("Total", total)]:
        print(f"  {time:9.4f} s ({100 * time / total if total else 0:5.1f}%)  {name}", file=stream)


def print_statistics(reports: Iterable[PipelineReport], stream: TextIO) -> None:
    """Counters of each pass, summed over the modules of the input."""
    counters: dict[str, dict[str, int]] = {}
    for report in reports:
        for run in report.runs:
            counter = counters.setdefault(run.name, {})
            for name, number in run.statistics.items():
                counter[name] = counter.get(name, 0) + number
    print("===-- Pass statistics report --===", file=stream)
    for run_name, counter in counters.items():
        print(run_name, file=stream)
        for name, number in counter.items():
            print(f"  (S) {number:6d} {name}", file=stream)
