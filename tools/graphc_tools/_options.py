# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""The options of graphc-opt that are no passes, by topic."""

from __future__ import annotations

import argparse

from graphc_tools._usage import UsageError

PROGRAM = "graphc-opt"
EMIT = ("mlir", "llvm", "asm", "obj")
SHELLS = ("bash", "zsh", "fish")
_TOPICS = {
    "input": "what is read and written",
    "passes": "which passes run",
    "printing": "the IR on its way, on the standard error stream",
    "checking": "diagnostics, verification, failures",
    "about": "what there is",
}


class _Parser(argparse.ArgumentParser):
    def error(self, message: str) -> None:  # type: ignore[override]
        raise UsageError(message)


def build_parser() -> argparse.ArgumentParser:
    """The options that are not passes."""
    parser = _Parser(
        prog=PROGRAM,
        description="Runs passes of graphc and upstream MLIR. Each is an option: --PASS or --PASS='k=v'.",
        epilog=f"--help=TOPIC shows one of these: {', '.join(_TOPICS)}.",
        allow_abbrev=False,
    )
    groups = {topic: parser.add_argument_group(topic, text) for topic, text in _TOPICS.items()}
    _input(groups["input"])
    _passes(groups["passes"])
    _printing(groups["printing"])
    _checking(groups["checking"])
    about = groups["about"].add_argument
    about("--version", action="store_true", help="show versions")
    about("--list-passes", action="store_true", help="list all passes, and the options of graphc's")
    about("--completion", choices=SHELLS, metavar="SHELL", help="print what completes options in a shell")
    return parser


def help_on(topic: str) -> str:
    """The options of a topic.

    Raises:
        UsageError: there is no such topic.
    """
    parser = build_parser()
    group = next((group for group in parser._action_groups if group.title == topic), None)
    if group is None or topic not in _TOPICS:
        raise UsageError(f"no help on '{topic}'; the topics are: {', '.join(_TOPICS)}")
    formatter = argparse.HelpFormatter(PROGRAM)
    formatter.start_section(f"{topic}: {group.description}")
    formatter.add_arguments(group._group_actions)
    formatter.end_section()
    return formatter.format_help().rstrip()


def _input(group: argparse._ArgumentGroup) -> None:
    add = group.add_argument
    add("input", nargs="?", default="-", help="file to read; - is the standard input")
    add("-o", dest="output", default="-", metavar="FILE", help="file to write; - is the standard output")
    add(
        "--split-input-file",
        action="store_true",
        help="treat parts between '// -----' lines as separate modules",
    )
    add("--allow-unregistered-dialect", action="store_true", help="accept operations of unknown dialects")
    add("--emit", default="mlir", choices=EMIT, help="what to print; other than mlir needs the llvm dialect")
    add(
        "--short",
        action="store_true",
        help="print the short form: types where values are defined and nowhere else; it is read, too",
    )
    add(
        "--loop-notation",
        action="store_true",
        help="print @main of the graph stage in the notation of recurrences, to be read, not parsed",
    )


def _passes(group: argparse._ArgumentGroup) -> None:
    add = group.add_argument
    add("--pass-pipeline", metavar="TEXT", help="builtin.module(...) with passes of both kinds")
    add("--run-reproducer", action="store_true", help="run the pipeline stored in a reproducer file")
    add("--mlir-timing", action="store_true", help="report the time of each pass")
    add("--mlir-pass-statistics", action="store_true", help="report the counters of each pass")
    add(
        "--mlir-disable-threading",
        action="store_true",
        help="accepted for compatibility; nothing is threaded",
    )


def _printing(group: argparse._ArgumentGroup) -> None:
    add = group.add_argument
    for when in ("before", "after"):
        add(
            f"--mlir-print-ir-{when}",
            action="append",
            default=[],
            metavar="PASS",
            help=f"print the IR {when} a pass",
        )
        add(f"--mlir-print-ir-{when}-all", action="store_true", help=f"print the IR {when} each pass")
    add("--mlir-print-ir-after-change", action="store_true", help="print the IR after passes that changed it")
    add("--mlir-print-ir-after-failure", action="store_true", help="print the IR after a pass that failed")
    add("--mlir-print-ir-tree-dir", metavar="DIR", help="write the IR after each pass to files of a folder")
    add("--diff", action="store_true", help="print what each pass changed, line by line")
    add(
        "--color",
        default="auto",
        choices=("auto", "always", "never"),
        help="colours of --diff (default: where the stream is a terminal)",
    )
    add("--mlir-print-op-generic", action="store_true", help="print the generic form")
    add("--mlir-print-debuginfo", action="store_true", help="print locations")


def _checking(group: argparse._ArgumentGroup) -> None:
    add = group.add_argument
    add("--verify-diagnostics", action="store_true", help="compare diagnostics with expected-* comments")
    add(
        "--verify-each",
        default="true",
        choices=("true", "false"),
        help="verify after every pass (default true)",
    )
    add(
        "--mlir-pass-pipeline-crash-reproducer",
        metavar="FILE",
        help="on failure, write the input module and the pipeline to FILE",
    )
    add(
        "--reduce",
        metavar="COMMAND",
        help="make the module smaller as long as COMMAND FILE exits with 0; print the smallest",
    )
    add("--isolated", action="store_true", help="run in a helper process, and report it if that crashes")
    add(
        "--time-limit",
        type=int,
        default=0,
        metavar="SECONDS",
        help="end the helper process then (--isolated)",
    )
