# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Fills the generated parts of docs/guide/scan-passes.md.

The page's text is written by hand. What stands between `<!-- generated: NAME -->` and `<!-- end -->` comes
from the pipelines, the passes' docstrings, their doctests, and from compiling the page's own examples: a
Python block below `<!-- example: NAME -->` defines a function `f`.
"""

from __future__ import annotations

import difflib
import inspect
import itertools
import re
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

from graphc.backends import CompileLog, CompileOptions
from graphc.backends.cpu.lower import lower
from graphc.backends.cpu.pipeline import pipeline
from graphc.emit import emit_module
from graphc.passes import find
from graphc.passes.run import run_pipeline
from graphc_dialects._mlir import ir
from graphc_dialects.dialect import new_context
from graphc_tools.loop_notation import loop_notation

ROOT = Path(__file__).resolve().parents[2]
PAGE = ROOT / "docs" / "guide" / "scan-passes.md"
_PART = re.compile(r"(<!-- generated: ([\w-]+) -->\n).*?(<!-- end -->)", re.DOTALL)
_EXAMPLE = re.compile(r"<!-- example: ([\w-]+) -->\n```python\n(.*?)^```$", re.MULTILINE | re.DOTALL)
_SCAN = "graphc-scan-"
# What to expect of each pass, beyond the first sentence of its docstring.
_LIMITS = {
    "graphc-scan-row-sizes": (
        "Most loops need nothing of it: a row is as long as that of a sequence or a state."
    ),
    "graphc-scan-remove-constants-and-unused-inputs": (
        "A state that only feeds itself goes too. Gradients leave much of that: cotangents of inputs "
        "that nobody asked for."
    ),
    "graphc-scan-merge-inouts": (
        "Two states are equal if they start alike and assuming them equal makes the body agree. Both "
        "need the same taps."
    ),
    "graphc-scan-merge": (
        "A loop that reads the rows of another one joins it if these rows are there in time. Loops "
        "that end early merge only if they end by the same condition."
    ),
    "graphc-scan-push-out-non-seq": (
        "The loop may run no iteration at all, so what could fail stays inside."
    ),
    "graphc-scan-push-out-seq": (
        "It takes products, reductions and functions such as `exp`; a lone addition stays, as loading "
        "its result would take as long. Loops with a stop condition are left alone."
    ),
    "graphc-scan-to-map": (
        "If that is all a loop does, nothing of it is left, and what it did is fused and vectorised "
        "like any other code."
    ),
    "graphc-scan-push-out-dot1": (
        "Only the last row of such a sum may be in use. The factors are kept as rows, where that is "
        "cheaper than updating a matrix in each iteration."
    ),
    "graphc-scan-push-out-output": (
        "What it is computed from has to be in memory after the loop, so this is done where memory "
        "does not grow."
    ),
    "graphc-scan-to-reduce": (
        "Reductions are fused with what computes their operand, so no rows are stored. Float sums are "
        "added in another order."
    ),
    "graphc-scan-unroll": (
        "How small is a matter of `max-steps` and `max-operations`; `unroll=` of `graphc.loop` asks for more."
    ),
    "graphc-scan-save-mem": (
        "Where only the last rows are read, memory no longer depends on the number of steps; where "
        "only the first ones are, the loop runs no further."
    ),
    "graphc-scan-to-associative": (
        "Only where that is faster than the loop, as for running float sums, which need not wait for "
        "one addition after the other."
    ),
    "graphc-scan-inplace": ("It saves copying them into a window of the loop's own."),
}
_NAMED = re.compile(r"%(\w+): ([^,()]+)(?=[,)])")
_RESULT = re.compile(r"^\s*%(\w+) = ")


def tutorial_page() -> str:
    """The page with its generated parts brought up to date."""
    page = PAGE.read_text(encoding="utf-8")
    examples = dict(_EXAMPLE.findall(page))
    parts: dict[str, Callable[[], list[str]]] = {
        "dialect": lambda: _dialect(_Example(examples["decay"])),
        "short-form": lambda: _fenced(_first_loop(_Example(examples["decay"]).loop_notation())),
        "checkpoints": lambda: _fenced(_Example(examples["checkpoints"]).loops_after()),
        "order": _order,
        "passes": _passes,
        "gradient": lambda: _worked_example(_Example(examples["rnn"])),
        "scalar-loop": lambda: _fenced(_loop(_Example(examples["decay"]).stage("buffer")), "mlir"),
        "rotating-loop": lambda: _fenced(_loop(_Example(examples["last"]).stage("buffer")), "mlir"),
        "stored-loop": lambda: _fenced(
            _loop(_Example(examples["last"] + examples["all"]).stage("buffer")), "mlir"
        ),
    }

    def fill(match: re.Match[str]) -> str:
        return match[1] + "\n" + "\n".join(parts[match[2]]()) + "\n\n" + match[3]

    return _PART.sub(fill, page)


def _fenced(lines: list[str], language: str = "text") -> list[str]:
    return [f"```{language}", *lines, "```"]


class _Example:
    """The function of one of the page's examples.

    Args:
        source: Python that defines `f`.
    """

    def __init__(self, source: str) -> None:
        names: dict[str, Any] = {"__name__": "example"}
        exec(compile(source, str(PAGE), "exec"), names)
        graph = names["f"].fgraph
        self.arguments = [v.name for v in graph.inputs]
        self.text = emit_module(graph).text

    def stage(self, name: str) -> str:
        """The module at the end of a stage."""
        log = CompileLog(stages=[])
        lower(self.text, CompileOptions("fast_run"), log)
        return dict(log.stages or ())[name]

    def loop_notation(self) -> list[str]:
        """The short form once sizes are known, when the first pass for scans begins."""
        return next(lines for _, _, lines in self.history())

    def loops_after(self) -> list[str]:
        """The loops after the passes for scans, in short form."""
        *_, (_, _, lines) = self.history()
        return [line for line in lines if line.startswith(("        ", "    scan"))]

    def history(self) -> Iterator[tuple[str, dict[str, int], list[str]]]:
        """Name, counters and short form after each entry of the pipeline, from the first pass for scans to
        the last. What there is before them comes first, without a name.
        """
        entries = [text for text, _ in pipeline("fast_run")]
        scan = [number for number, text in enumerate(entries) if text.startswith(_SCAN)]
        with new_context(), ir.Location.unknown():
            module = ir.Module.parse(self.text)
            run_pipeline(module, entries[: scan[0]])
            yield "", {}, loop_notation(module, self.arguments, checks=False)
            for text in entries[scan[0] : scan[-1] + 1]:
                run = run_pipeline(module, [text]).runs[0]
                yield text, run.statistics, loop_notation(module, self.arguments, checks=False)


# -- the dialect -----------------------------------------------------------------------------------


def _dialect(example: _Example) -> list[str]:
    """The scan as it is emitted, with the names that the module gets when it is parsed."""
    lines = example.stage("graph").splitlines()
    start = next(number for number, line in enumerate(lines) if '"graphc.scan"' in line)
    end = next(number for number, line in enumerate(lines) if '"graphc.scan_trace"' in line)
    return _fenced([line.removeprefix("    ") for line in lines[start : end + 1]], "mlir")


def _first_loop(lines: list[str]) -> list[str]:
    """The first scan of a short form."""
    start = next(number for number, line in enumerate(lines) if line.startswith("    scan"))
    inside = itertools.takewhile(lambda line: line.startswith("        "), lines[start + 1 :])
    return [line.removeprefix("    ") for line in (lines[start], *inside)]


def _loop(module: str) -> list[str]:
    """The first `scf.for` that carries values, with its body."""
    lines = module.splitlines()
    start = next(number for number, line in enumerate(lines) if "iter_args" in line)
    indent = lines[start][: len(lines[start]) - len(lines[start].lstrip())]
    end = next(number for number, line in enumerate(lines) if number > start and line == f"{indent}}}")
    return [line.removeprefix(indent) for line in lines[start : end + 1]]


# -- passes ----------------------------------------------------------------------------------------


def _graph_stage() -> list[tuple[str, str]]:
    """Entries from the first to the last that concerns scans."""
    entries = pipeline("fast_run")
    scan = [number for number, (text, _) in enumerate(entries) if text.startswith(_SCAN)]
    return entries[scan[0] : scan[-1] + 1]


def _order() -> list[str]:
    """The pipeline as a table."""
    lines = ["| pass | why here |", "|---|---|"]
    for text, reason in _graph_stage():
        name = text.removeprefix("graphc-")
        shown = f"[{name}](#{name.partition('{')[0]})" if text.startswith(_SCAN) else f"`{name}`"
        lines.append(f"| {shown} | {reason} |")
    return lines


def _passes() -> list[str]:
    """A section for each pass, in the order of the pipeline: what it does, why there, and a picture."""
    reasons: dict[str, list[str]] = {}
    for text, reason in _graph_stage():
        if text.startswith(_SCAN):
            reasons.setdefault(text.partition("{")[0], []).append(reason)
    lines: list[str] = []
    for flag, why in reasons.items():
        summary = (inspect.getdoc(find(flag)) or "").partition("\n\n")[0].replace("``", "`")
        comment, picture = _picture(flag)
        lines += [
            *(["", ""] if lines else []),
            f"### {flag.removeprefix('graphc-')}",
            "",
            " ".join(filter(None, (summary, _LIMITS.get(flag)))),
            "",
            f"Why here: {'; the second time: '.join(why)}.",
            "",
            f"Example: {comment}",
            "",
            *_fenced(picture, "diff"),
            "",
            f"[Rules, options, and this example in the dialect](../passes/loops.md#--{flag}).",
        ]
    return lines


def _picture(flag: str) -> tuple[str, list[str]]:
    """The comment of a pass's doctest, and what the pass changes there."""
    path = ROOT / "tests" / "lit" / "passes" / flag.removeprefix("graphc-") / "doctest.mlir"
    source = path.read_text(encoding="utf-8")
    texts = [line.strip()[2:].strip() for line in source.splitlines() if line.startswith("//")]
    comment = " ".join(t for t in texts if not re.match(r"SPDX|RUN:|CHECK|COM:", t))
    run_line = next(t for t in texts if t.startswith("RUN:"))
    flags = [word[2:] for word in run_line.partition("|")[0].split() if word.startswith("--")]
    with new_context(), ir.Location.unknown():
        module = ir.Module.parse(_with_names(source))
        before = loop_notation(module)
        run_pipeline(module, flags)
        return comment, _difference(before, loop_notation(module), 1000)


def _with_names(source: str) -> str:
    """MLIR text whose operations and arguments have their names as locations, which passes keep."""
    lines, regions = [], []
    for line in source.splitlines():
        head = line.strip()
        name = _RESULT.match(line)
        if head.startswith(("func.func", "^bb")):
            line = _NAMED.sub(r'%\1: \2 loc("\1")', line)
        elif head.endswith("({"):
            regions.append(name[1] if name else "")
        elif head.startswith("})"):
            line += f' loc("{regions.pop()}")'
        elif name:
            line += f' loc("{name[1]}")'
        lines.append(line)
    return "\n".join(lines)


def _difference(before: list[str], after: list[str], context: int) -> list[str]:
    """Lines that go (-), come (+) and stay, without the headers of a patch file."""
    lines = list(difflib.unified_diff(before, after, lineterm="", n=context))[2:]
    return [
        line.partition(" @@")[0] + " @@" if line.startswith("@@") else line
        for line in lines
        if context < 9 or line[0] != "@"
    ]


# -- the worked example ----------------------------------------------------------------------------


def _worked_example(example: _Example) -> list[str]:
    """The short form before the passes, what each pass for scans changes, and the short form after them."""
    steps = list(example.history())
    (_, _, before), *rest = steps
    lines = ["Before the passes:", "", *_fenced(before)]
    for (_, _, old), (name, counters, new) in zip(steps, rest, strict=False):
        if not name.startswith(_SCAN) or not counters:
            continue
        counted = ", ".join(f"{key}: {number}" for key, number in counters.items())
        changes = [line for line in _difference(old, new, 0) if not line.startswith("@@")]
        lines += ["", f"[{name.removeprefix('graphc-')}](#{name.removeprefix('graphc-')}) ({counted})"]
        lines += ["", *_fenced(changes, "diff")]
    return [*lines, "", "After them:", "", *_fenced(rest[-1][2])]
