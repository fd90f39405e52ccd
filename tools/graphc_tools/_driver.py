# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Work of graphc-opt on each module of its input."""

from __future__ import annotations

import argparse
import re
import traceback
from collections.abc import Iterator
from typing import TextIO

from graphc.ir.diagnostics import PassError
from graphc.passes import Pass
from graphc.passes.run import PipelineReport, parse_pipeline, run_pipeline
from graphc_dialects._mlir import ir, passmanager
from graphc_dialects.diagnostics import Diagnostic, Position, collect
from graphc_dialects.dialect import new_context
from graphc_dialects.foreign import excess
from graphc_tools import _reproducer
from graphc_tools._changes import ChangesPrinter
from graphc_tools._emit import EmitError, emit
from graphc_tools._expected import compare, parse_expectations
from graphc_tools._printing import print_diagnostic, print_statistics, print_timing
from graphc_tools._usage import UsageError
from graphc_tools.legality import check
from graphc_tools.short_reader import ShortFormError, is_short, to_mlir

_SEPARATOR = "// -----"
_RESTRICTED = re.compile(r"restricted to '([\w.]+)' on a PassManager intended to run on 'builtin.module'")


def split_source(source: str) -> Iterator[str]:
    """The parts between separator lines, padded with blank lines so that line numbers stay right."""
    part: list[str] = []
    start = 0
    lines = source.splitlines(keepends=True)
    for number, line in enumerate(lines):
        if line.rstrip() == _SEPARATOR:
            yield "\n" * start + "".join(part)
            part, start = [], number + 1
        else:
            part.append(line)
    yield "\n" * start + "".join(part)


class Driver:
    """Runs one command line over all modules of the input.

    Args:
        arguments: parsed options.
        passes: pass texts from the command line, in order.
        source: text of the input.
        stderr: where diagnostics and reports go.

    Attributes:
        exit_code: 1 once something has failed.
    """

    def __init__(self, arguments: argparse.Namespace, passes: list[str], source: str, stderr: TextIO) -> None:
        self.exit_code = 0
        self._arguments = arguments
        self._source = source
        self._stderr = stderr
        self._reports: list[PipelineReport] = []
        self._context = new_context(allow_unregistered=arguments.allow_unregistered_dialect)
        if arguments.run_reproducer:
            passes = [_reproducer.stored_pipeline(source)]
        elif arguments.pass_pipeline is not None:
            text = arguments.pass_pipeline.strip()
            if not (text.startswith("builtin.module(") and text.endswith(")")):
                raise UsageError(
                    f"expected a pass pipeline of the form builtin.module(...), but was given '{text}'"
                )
            passes = [text]
        if problem := next(filter(None, map(excess, passes)), None):
            raise UsageError(f"the pipeline cannot be read: {problem.message}")
        self._passes = passes

    def run(self) -> str | bytes | None:
        """Processes the input and returns what to write; None if there is nothing."""
        entries = self._parse_passes()
        parts = list(split_source(self._source)) if self._arguments.split_input_file else [self._source]
        if len(parts) > 1 and self._arguments.emit == "obj":
            raise UsageError("--emit=obj writes one object, which --split-input-file does not allow")
        outputs = [self._run_part(part, entries) for part in parts]
        if self._arguments.mlir_timing:
            print_timing(self._reports, self._stderr)
        if self._arguments.mlir_pass_statistics:
            print_statistics(self._reports, self._stderr)
        if self._arguments.verify_diagnostics or (len(parts) == 1 and outputs[0] is None):
            return None
        if isinstance(outputs[0], bytes):
            return outputs[0]
        return f"{_SEPARATOR}\n".join(str(output) for output in outputs if output is not None)

    def _parse_passes(self) -> list[Pass | str]:
        try:
            with self._context:
                return [self._nested(entry) for text in self._passes for entry in parse_pipeline(text)]
        except ValueError as error:
            raise UsageError(str(error).strip()) from None

    def _nested(self, entry: Pass | str) -> Pass | str:
        """Nests an upstream pass in the op it runs on, as mlir-opt does for passes given as options."""
        if isinstance(entry, Pass):
            return entry
        try:
            passmanager.PassManager.parse(f"builtin.module({entry})")
        except ValueError as error:
            match = _RESTRICTED.search(str(error))
            if match is None or self._arguments.pass_pipeline is not None:
                raise
            return f"{match[1]}({entry})"
        return entry

    def _run_part(self, source: str, entries: list[Pass | str]) -> str | bytes | None:
        """Output for one module, or None if it failed."""
        output: str | bytes | None = None
        with collect(self._context) as diagnostics:
            output = self._process(source, entries, diagnostics)
        if self._arguments.verify_diagnostics:
            try:
                expectations = parse_expectations(source)
            except ValueError as error:
                raise UsageError(f"{self._arguments.input}: {error}") from None
            problems = compare(expectations, diagnostics)
            for problem in problems:
                print_diagnostic(problem, self._arguments.input, self._source, self._stderr)
            self.exit_code = max(self.exit_code, int(bool(problems)))
            return output
        for diagnostic in diagnostics:
            print_diagnostic(diagnostic, self._arguments.input, self._source, self._stderr)
        self.exit_code = max(self.exit_code, int(output is None))
        return output

    def _process(
        self, source: str, entries: list[Pass | str], diagnostics: list[Diagnostic]
    ) -> str | bytes | None:
        if problem := excess(source):
            position = Position("-", problem.line, problem.column)
            diagnostics.append(Diagnostic("error", problem.message, position))
            return None
        try:
            source = to_mlir(source) if is_short(source) else source
            module = ir.Module.parse(source, context=self._context)
        except ShortFormError as error:
            position = Position("-", error.line, error.column)
            diagnostics.append(Diagnostic("error", str(error), position))
            return None
        except ir.MLIRError:
            if not diagnostics:
                message = "MLIR cannot parse the module; operations of graphc are written in quotes"
                diagnostics.append(Diagnostic("error", message, None))
            return None
        except (MemoryError, RuntimeError) as error:
            # Parsers of upstream's operations do not expect every attribute.
            diagnostics.append(Diagnostic("error", f"MLIR cannot parse the module: {error}", None))
            return None
        printer = ChangesPrinter(self._arguments, self._stderr)
        pipeline = ",".join(map(str, entries))
        try:
            report = run_pipeline(
                module,
                entries,
                instrument=printer,
                check=check,
                verify_each=self._arguments.verify_each == "true",
            )
            self._reports.append(report)
            return emit(module, self._arguments)
        except (ir.MLIRError, PassError, EmitError) as error:
            told = any(diagnostic.severity == "error" for diagnostic in diagnostics)
            if not told or isinstance(error, EmitError):
                diagnostics.append(Diagnostic("error", _message(error, printer.current), None))
        except Exception as error:
            diagnostics.append(Diagnostic("error", _internal(error, printer.current), None))
        path = self._arguments.mlir_pass_pipeline_crash_reproducer
        if path:
            _reproducer.write(path, source, pipeline)
            note = Diagnostic("note", f"a reproducer was written to '{path}'", None)
            diagnostics.append(note)
        return None


def _message(error: Exception, current: str) -> str:
    return str(error) if isinstance(error, EmitError) else f"{current} failed: {error}"


def _internal(error: Exception, current: str) -> str:
    """One line for an exception that is a bug of a pass, with the place that raised it."""
    frame = traceback.extract_tb(error.__traceback__)[-1]
    place = f"{frame.filename.rpartition('/')[2]}:{frame.lineno}"
    return f"internal error in {current}: {type(error).__name__}: {error} (at {place})"
