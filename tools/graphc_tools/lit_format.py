# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""A test format for lit that runs `graphc-opt ... | filecheck ...` in the worker process.

Loading MLIR takes longer than most tests. RUN lines of any other form, and all of them if
GRAPHC_LIT_SUBPROCESS is set, go through lit's shell.
"""

from __future__ import annotations

import io
import os
import re
import shlex
from contextlib import redirect_stderr, redirect_stdout
from dataclasses import dataclass
from typing import Any

import lit.Test
import lit.TestRunner
from lit.formats import ShTest

from graphc_tools.opt import main

# lit puts this before each command, to report its line.
_LINE_MARK = re.compile(r"^%dbg\([^)]*\)\s*")


@dataclass(frozen=True)
class Command:
    """`[not] graphc-opt ARGUMENTS [2>&1] [| filecheck CHECK]`."""

    arguments: list[str]
    check: list[str] | None
    fails: bool
    merges: bool


def parse_command(line: str) -> Command | None:
    """A RUN line as a command that can run in the process; None if it has another form."""
    stages = [stage.strip() for stage in _split_pipes(line)]
    tool = shlex.split(stages[0])
    fails = tool[:1] == ["not"]
    tool = tool[fails:]
    merges = tool[-1:] == ["2>&1"]
    tool = tool[: len(tool) - merges]
    check = shlex.split(stages[1]) if len(stages) == 2 else None
    if tool[:1] != ["graphc-opt"] or len(stages) > 2 or (check is not None and check[0] != "filecheck"):
        return None
    plain = [word for word in tool[1:] + (check or []) if word in ("<", ">", "2>", "&&", "||", ";")]
    if plain:
        return None
    return Command(tool[1:], check and check[1:], fails, merges)


def _split_pipes(line: str) -> list[str]:
    stages: list[str] = []
    current, quote = "", ""
    for character in line:
        if quote:
            quote = "" if character == quote else quote
        elif character in "'\"":
            quote = character
        elif character == "|":
            stages.append(current)
            current = ""
            continue
        current += character
    return [*stages, current]


def run_filecheck(arguments: list[str], content: str) -> tuple[int, str]:
    """Exit code and messages of filecheck on a text."""
    from filecheck.finput import FInput
    from filecheck.matcher import Matcher
    from filecheck.options import parse_argv_options
    from filecheck.parser import Parser

    messages = io.StringIO()
    with redirect_stderr(messages), redirect_stdout(messages):
        options = parse_argv_options(["filecheck", *arguments])
        code = Matcher(options, FInput("-", content), Parser.from_opts(options)).run()
    return code, messages.getvalue()


def run_command(command: Command) -> tuple[bool, str]:
    """True if a command succeeded, and what it printed."""
    stdout, stderr = io.StringIO(), io.StringIO()
    code = main(command.arguments, io.StringIO(), stdout, stdout if command.merges else stderr)
    if (code != 0) != command.fails:
        expected = "to fail" if command.fails else "to succeed"
        return (
            False,
            f"expected graphc-opt {expected}, but it returned {code}\n{stdout.getvalue()}{stderr.getvalue()}",
        )
    if command.check is None:
        return True, stderr.getvalue()
    code, messages = run_filecheck(command.check, stdout.getvalue())
    if code:
        messages += f"\n--- output of graphc-opt ---\n{stdout.getvalue()}{stderr.getvalue()}"
    return code == 0, messages


class InProcessTest(ShTest):
    """lit's shell test, except that common RUN lines do not start processes."""

    def execute(self, test: object, lit_config: object) -> Any:
        """Runs one test file."""
        commands = None if os.environ.get("GRAPHC_LIT_SUBPROCESS") else self._commands(test)
        if commands is None:
            return super().execute(test, lit_config)
        for line, command in commands:
            passed, output = run_command(command)
            if not passed:
                return lit.Test.Result(lit.Test.FAIL, f"RUN: {line}\n{output}")
        return lit.Test.Result(lit.Test.PASS, "")

    def _commands(self, test: Any) -> list[tuple[str, Command]] | None:
        script = lit.TestRunner.parseIntegratedTestScript(test, require_script=False)
        if isinstance(script, lit.Test.Result) or not script:
            return None
        # DEFINE and REDEFINE directives, and %-substitutions other than the file's name, need lit's shell.
        lines = [getattr(item, "command", None) for item in script]
        if any(line is None for line in lines):
            return None
        path = test.getSourcePath()
        parsed = []
        for line in map(str, lines):
            text = _LINE_MARK.sub("", line).replace("%s", shlex.quote(path))
            command = None if "%" in text.replace(path, "") else parse_command(text)
            if command is None:
                return None
            parsed.append((text, command))
        return parsed
