# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Knowledge of MLIR for the language server: diagnostics of a text, and documentation of its words."""

from __future__ import annotations

import inspect
from collections.abc import Iterator
from functools import cache

from graphc.backends import worker
from graphc.ops.elementwise import ROWS
from graphc.passes import discover, find
from graphc_dialects._mlir import ir
from graphc_dialects.diagnostics import Diagnostic, Position, collect
from graphc_dialects.dialect import new_context, operation_classes
from graphc_dialects.foreign import Excess, early_use, excess
from graphc_tools._driver import split_source
from graphc_tools._lsp_text import Word, definition_of, full_name, place_of
from graphc_tools.docs_operations import fields_of
from graphc_tools.opt import odd_iterators
from graphc_tools.short_reader import ShortFormError, is_short, to_mlir


def check(text: str) -> list[Diagnostic]:
    """The diagnostics of a text; modules between `// -----` lines are checked one by one.

    Positions are lines and columns of the text, from 1. A diagnostic without a position has none in it.
    """
    unregistered = "--allow-unregistered-dialect" in text
    context = new_context(allow_unregistered=unregistered)
    found: list[Diagnostic] = []
    for part in split_source(text):
        if not part.strip():
            continue
        if problem := excess(part):
            position = Position("-", problem.line, problem.column)
            found.append(Diagnostic("error", problem.message, position))
        elif early := early_use(part):
            found += _check_apart(part, unregistered, early)
        else:
            found += check_part(part, context)
    return found


def check_part(part: str, context: ir.Context | None = None, unregistered: bool = False) -> list[Diagnostic]:
    """The diagnostics of one module; without a context it gets one."""
    context = context or new_context(allow_unregistered=unregistered)
    with collect(context) as diagnostics:
        try:
            source = to_mlir(part) if is_short(part) else part
            if place := odd_iterators(source):  # which upstream's parser does not survive
                line, _, column = place.partition(":")
                message = "'iterator_types' of linalg.generic must be strings"
                diagnostics.append(Diagnostic("error", message, Position("-", int(line), int(column))))
            else:
                ir.Module.parse(source, context=context)
        except ShortFormError as error:
            position = Position("-", error.line, error.column)
            diagnostics.append(Diagnostic("error", str(error), position))
        except (ir.MLIRError, RuntimeError, MemoryError) as error:
            if not diagnostics:
                diagnostics.append(Diagnostic("error", f"MLIR cannot parse this: {error}", None))
    return list(diagnostics)


def _check_apart(part: str, unregistered: bool, early: Excess) -> list[Diagnostic]:
    """`check_part` of what may damage the memory of its process, in one that ends then."""
    try:
        call = ("graphc_tools._lsp_check:check_part", part, None, unregistered)
        found: list[Diagnostic] = worker.call(*call, last=True)
        return found
    except worker.WorkerDied:
        return [Diagnostic("error", early.message, Position("-", early.line, early.column))]


def operations() -> dict[str, str]:
    """Documentation of every operation of our dialect, by full name, as Markdown."""
    return {name: _documentation(name) for name in sorted(operation_classes())}


@cache
def _documentation(name: str) -> str:
    row = ROWS.get(name.removeprefix("graphc."))
    cls = operation_classes()[name]
    operands, attributes = fields_of(cls)
    lines = [f"**{name}**({operands})", "", row.doc if row else inspect.getdoc(cls) or ""]
    if attributes:
        lines += ["", f"Attributes: {attributes}"]
    return "\n".join(lines)


@cache
def passes() -> dict[str, str]:
    """Documentation of every pass of ours, by flag, as Markdown."""
    found = {}
    for flag in discover():
        cls = find(flag)
        options = [f"`{name}={default}`" for name, default in cls.options().items()]
        text = f"**--{flag}** ({cls.stage} stage)\n\n{inspect.getdoc(cls) or ''}"
        found[f"--{flag}"] = text + (f"\n\nOptions: {', '.join(options)}" if options else "")
    return found


def describe(text: str, word: Word) -> str | None:
    """Text to show where a mouse rests on a word: Markdown, or nothing."""
    if word.text.startswith("--"):
        return passes().get(word.text)
    if word.text[0] in "%^@":
        return "\n".join(_defining_line(text, word)) or None
    return operations().get(full_name(text, word))


def _defining_line(text: str, word: Word) -> Iterator[str]:
    defined = definition_of(text, word)
    if defined is not None:
        line, _ = place_of(text, defined.start)
        yield from ("```mlir", text.split("\n")[line].strip(), "```", f"line {line + 1}")
