# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""graphc-lsp: a language server for .mlir files with our dialect, over the standard streams.

    graphc-lsp

Editors start it; it shows errors where they are, documentation of operations and passes, where values are
defined, and completes names. It needs pygls: `pip install 'graphc[lsp]'`.
"""

from __future__ import annotations

import argparse
import sys
from collections.abc import Sequence
from typing import TYPE_CHECKING

from graphc_runtime.installed import version
from graphc_tools import _lsp_check
from graphc_tools._lsp_text import column_in_characters, definition_of, offset_of, place_of, word_at

if TYPE_CHECKING:
    from lsprotocol import types
    from pygls.lsp.server import LanguageServer
    from pygls.workspace import TextDocument

    from graphc_dialects.diagnostics import Diagnostic

PROGRAM = "graphc-lsp"


def make_server() -> LanguageServer:
    """The server, which is started by its `start_io`.

    Raises:
        ImportError: pygls is not installed.
    """
    from lsprotocol import types
    from pygls.lsp.server import LanguageServer

    server = LanguageServer(PROGRAM, version("graphc"))

    def publish(uri: str) -> None:
        document = server.workspace.get_text_document(uri)
        found = [_diagnostic(each, document) for each in _lsp_check.check(document.source)]
        server.text_document_publish_diagnostics(types.PublishDiagnosticsParams(uri, found))

    @server.feature(types.TEXT_DOCUMENT_DID_OPEN)
    def opened(parameters: types.DidOpenTextDocumentParams) -> None:
        publish(parameters.text_document.uri)

    @server.feature(types.TEXT_DOCUMENT_DID_CHANGE)
    def changed(parameters: types.DidChangeTextDocumentParams) -> None:
        publish(parameters.text_document.uri)

    @server.feature(types.TEXT_DOCUMENT_DID_CLOSE)
    def closed(parameters: types.DidCloseTextDocumentParams) -> None:
        uri = parameters.text_document.uri
        server.text_document_publish_diagnostics(types.PublishDiagnosticsParams(uri, []))

    @server.feature(types.TEXT_DOCUMENT_HOVER)
    def hover(parameters: types.HoverParams) -> types.Hover | None:
        document = server.workspace.get_text_document(parameters.text_document.uri)
        word = word_at(document.source, _offset(document, parameters.position))
        shown = _lsp_check.describe(document.source, word) if word else None
        if word is None or shown is None:
            return None
        content = types.MarkupContent(types.MarkupKind.Markdown, shown)
        return types.Hover(content, _range(document, word.start, word.end))

    @server.feature(types.TEXT_DOCUMENT_DEFINITION)
    def definition(parameters: types.DefinitionParams) -> types.Location | None:
        document = server.workspace.get_text_document(parameters.text_document.uri)
        word = word_at(document.source, _offset(document, parameters.position))
        found = definition_of(document.source, word) if word and word.text[0] in "%^@" else None
        return types.Location(document.uri, _range(document, found.start, found.end)) if found else None

    @server.feature(
        types.TEXT_DOCUMENT_COMPLETION, types.CompletionOptions(trigger_characters=['"', ".", "-"])
    )
    def completion(parameters: types.CompletionParams) -> list[types.CompletionItem]:
        document = server.workspace.get_text_document(parameters.text_document.uri)
        offset = _offset(document, parameters.position)
        word = word_at(document.source, offset)
        start = word.start if word and word.end >= offset else offset
        begun = document.source[start:offset].lstrip('"')
        names = _lsp_check.passes() if begun.startswith("-") else _lsp_check.operations()
        first = start + (document.source[start : start + 1] == '"')
        place = _range(document, first, offset)
        return [
            types.CompletionItem(
                name,
                documentation=types.MarkupContent(types.MarkupKind.Markdown, text),
                kind=types.CompletionItemKind.Function,
                text_edit=types.TextEdit(place, name),
            )
            for name, text in names.items()
            if name.startswith(begun)
        ]

    return server


def _offset(document: TextDocument, position: types.Position) -> int:
    """The place of an editor's position, which counts as the editor does."""
    inside = document.position_codec.position_from_client_units(document.lines, position)
    return offset_of(document.source, inside.line, inside.character)


def _range(document: TextDocument, start: int, end: int) -> types.Range:
    from lsprotocol import types

    places = [types.Position(*place_of(document.source, offset)) for offset in (start, end)]
    return document.position_codec.range_to_client_units(document.lines, types.Range(*places))


def _diagnostic(diagnostic: Diagnostic, document: TextDocument) -> types.Diagnostic:
    """A diagnostic as editors take it, from its place to the end of the word there."""
    from lsprotocol import types

    start = end = 0
    if diagnostic.position and diagnostic.position.line:
        line = diagnostic.position.line - 1
        text = document.source.split("\n")[line] if line < document.source.count("\n") + 1 else ""
        start = offset_of(document.source, line, column_in_characters(text, diagnostic.position.column))
        word = word_at(document.source, start)
        end = word.end if word else start + 1
    notes = [note.message for note in diagnostic.notes]
    severity = {"error": types.DiagnosticSeverity.Error, "warning": types.DiagnosticSeverity.Warning}
    return types.Diagnostic(
        _range(document, start, end),
        "\n".join([diagnostic.message, *notes]),
        severity=severity.get(diagnostic.severity, types.DiagnosticSeverity.Information),
        source="graphc",
    )


def main(arguments: Sequence[str] | None = None) -> int:
    """Runs the server until the editor ends it; returns the exit code."""
    parser = argparse.ArgumentParser(
        prog=PROGRAM,
        description="A language server for .mlir files with graphc's dialect, over the standard streams.",
        epilog="Editors start it: docs/guide/edit-mlir.md says how.",
    )
    parser.add_argument("--version", action="version", version=f"{PROGRAM} {version('graphc')}")
    parser.parse_args(arguments)
    try:
        server = make_server()
    except ImportError as error:
        fix = "pip install 'graphc[lsp]'"
        print(
            f"{PROGRAM}: the language server needs a package that is missing ({error}): {fix}",
            file=sys.stderr,
        )
        return 1
    server.start_io()
    return 0


if __name__ == "__main__":
    sys.exit(main())
