# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""graphc-opt: runs passes of graphc and of upstream MLIR on .mlir files.

    graphc-opt --graphc-constant-folding --canonicalize file.mlir
    graphc-opt --pass-pipeline='builtin.module(graphc-fusion{max-inputs=4},func.func(cse))' file.mlir

Passes run in the order in which they are given. Errors are diagnostics with locations on the standard error
stream, and the exit code is 1.
"""

from __future__ import annotations

import argparse
import io
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import TextIO

from graphc_dialects.foreign import early_use, excess, is_large
from graphc_tools._options import PROGRAM, build_parser, help_on
from graphc_tools._usage import UsageError
from graphc_tools.short_reader import ShortFormError, is_short, to_mlir


def parse_arguments(argv: Sequence[str]) -> tuple[argparse.Namespace, list[str]]:
    """Splits the command line into options and pass texts such as `graphc-fusion{max-inputs=4}`.

    Raises:
        UsageError: an option is malformed, or both passes and a pipeline are given.
    """
    parser = build_parser()
    options, passes = [], []
    known = {flag for action in parser._actions for flag in action.option_strings}
    takes_value = {flag for action in parser._actions if action.nargs != 0 for flag in action.option_strings}
    words = iter(argv)
    for word in words:
        flag, equals, value = word.partition("=")
        if not word.startswith("-") or word == "-":
            options.append(word)
        elif flag in known or word.startswith("-o"):
            options.append(word)
            if flag in takes_value and not equals:
                options.extend([item] if (item := next(words, None)) is not None else [])
        else:
            name = flag.lstrip("-")
            passes.append(f"{name}{{{value}}}" if equals and value else name)
    arguments = parser.parse_args(options)
    if passes and arguments.pass_pipeline is not None:
        raise UsageError(f"give either --pass-pipeline or passes (--{passes[0]}), not both")
    return arguments, passes


def read_input(path: str, stdin: TextIO) -> str:
    """Text of the input.

    Raises:
        UsageError: the file cannot be read.
    """
    try:
        source = stdin.read() if path == "-" else Path(path).read_text(encoding="utf-8")
    except OSError as error:
        raise UsageError(f"cannot open input file '{path}': {error.strerror}") from None
    except UnicodeDecodeError:
        source = "\0"
    if "\0" in source:
        raise UsageError(f"cannot read input file '{path}': it is not UTF-8 text")
    return source


def write_output(path: str, content: str | bytes, stdout: TextIO) -> None:
    """Writes text or bytes to a file or the standard output.

    Raises:
        UsageError: the file cannot be written.
    """
    if path == "-":
        if isinstance(content, bytes):
            stdout.flush()
            stdout.buffer.write(content)
        else:
            stdout.write(content)
        return
    try:
        if isinstance(content, bytes):
            Path(path).write_bytes(content)
        else:
            Path(path).write_text(content, encoding="utf-8")
    except OSError as error:
        raise UsageError(f"cannot open output file '{path}': {error.strerror}") from None


def process(
    arguments: argparse.Namespace, passes: list[str], source: str, stderr: TextIO
) -> tuple[str | bytes | None, int]:
    """The text to write, and the exit code.

    Args:
        arguments: parsed options.
        passes: pass texts from the command line.
        source: text of the input.
        stderr: where diagnostics and reports go.

    Raises:
        UsageError: a pass or a pipeline does not exist, or MLIR is not installed.
    """
    try:
        from graphc_tools._driver import Driver
    except ImportError as error:
        raise UsageError(str(error)) from None
    driver = Driver(arguments, passes, source, stderr)
    content = driver.run()
    return content, driver.exit_code


def process_quietly(
    arguments: argparse.Namespace, passes: list[str], source: str
) -> tuple[str | bytes | None, int, str]:
    """`process`, with what goes to the standard error stream as a third result."""
    messages = io.StringIO()
    return *process(arguments, passes, source, messages), messages.getvalue()


def in_mlir(source: str) -> str:
    """A text in MLIR's form, also if it is in the short one.

    Raises:
        UsageError: the short form is malformed.
    """
    try:
        return to_mlir(source) if is_short(source) else source
    except ShortFormError as error:
        raise UsageError(f"{error.line}:{error.column}: {error}") from None
    except RecursionError:
        raise UsageError("the short form is nested too deep") from None


def odd_iterators(source: str) -> str | None:
    """Positions of iterator types that are no strings, which crash upstream's parser of linalg.generic.

    The generic form has attributes there, which is fine, and comments may have anything: this only tells that
    it is better to parse in a helper process.

    Returns:
        The first place, as line and column; None if there is none.
    """
    place = 0
    while (place := source.find(_ITERATORS, place)) >= 0:
        given = source[place + len(_ITERATORS) :].partition("]")[0].split()
        items = "".join(given).removeprefix("=[").split(",")
        if not all(item.startswith('"') and item.endswith('"') for item in items if item):
            before = source[:place].split("\n")
            return f"{len(before)}:{len(before[-1]) + 1}"
        place += 1
    return None


_ITERATORS = "iterator_types"


def process_isolated(
    arguments: argparse.Namespace, passes: list[str], source: str, stderr: TextIO
) -> tuple[str | bytes | None, int]:
    """`process` in a helper process; where that crashes, a message says so and names a reproducer."""
    from graphc.backends import worker
    from graphc.function.isolation import reproducers

    damaging, early = False, None
    if excess(source) is None:  # what is in excess has its diagnostic from the helper process
        source = in_mlir(source)
        early = None if is_large(source) else early_use(source)
        damaging = early is not None or is_large(source)
    call = ("graphc_tools.opt:process_quietly", arguments, passes, source)
    try:
        content, code, messages = worker.call(*call, seconds=arguments.time_limit, last=damaging)
    except worker.WorkerDied as death:
        place = odd_iterators(source)
        problem = f"{place}: error: '{_ITERATORS}' of linalg.generic must be strings" if place else None
        if early is not None and problem is None and "ended by" in death.how:
            problem = f"{early.line}:{early.column}: error: {early.message}"
        if problem is not None:
            print(f"{'-' if arguments.input == '-' else arguments.input}:{problem}", file=stderr)
            return None, 1
        pipeline = (arguments.pass_pipeline or ",".join(passes)).removeprefix("builtin.module(")
        path = reproducers().write(
            source, pipeline.removesuffix(")"), [death.how, *death.output.splitlines()]
        )
        place = f"a reproducer is in {path}" if path else "no reproducer could be written"
        print(f"{PROGRAM}: error: the compiler crashed: {death.how}; {place}\n{death.output}", file=stderr)
        return None, 1
    stderr.write(messages)
    return content, code


def main(
    argv: Sequence[str] | None = None,
    stdin: TextIO | None = None,
    stdout: TextIO | None = None,
    stderr: TextIO | None = None,
) -> int:
    """Runs the tool.

    Args:
        argv: command line without the program's name; by default that of the process.
        stdin, stdout, stderr: streams to use instead of the process's own.

    Returns:
        The exit code: 0, or 1 after an error.
    """
    stdin, stdout, stderr = stdin or sys.stdin, stdout or sys.stdout, stderr or sys.stderr
    try:
        words = sys.argv[1:] if argv is None else argv
        topic = next((word.partition("=")[2] for word in words if word.startswith("--help=")), None)
        if topic is not None:
            print(help_on(topic), file=stdout)
            return 0
        arguments, passes = parse_arguments(words)
        if arguments.version or arguments.list_passes or arguments.completion or arguments.reduce:
            from graphc_tools import _listing, _reduce

            if not arguments.reduce:
                print(_listing.about(arguments), file=stdout)
                return 0
            source = in_mlir(read_input(arguments.input, stdin))
            write_output(arguments.output, _reduce.reduce(source, arguments.reduce, stderr), stdout)
            return 0
        source = read_input(arguments.input, stdin)
        apart = arguments.isolated or odd_iterators(source) or is_large(source) or early_use(source)
        run = process_isolated if apart else process
        content, code = run(arguments, passes, source, stderr)
        if content is not None:
            write_output(arguments.output, content, stdout)
        return code
    except UsageError as error:
        print(f"{PROGRAM}: error: {error}", file=stderr)
        return 1
    except SystemExit as request:  # argparse after --help
        return int(request.code or 0)
    except BrokenPipeError:
        return 1


if __name__ == "__main__":
    sys.exit(main())
