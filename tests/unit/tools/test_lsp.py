# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""The language server, spoken to as editors do: JSON-RPC over its standard streams."""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Iterator
from typing import Any

import pytest

from graphc_tools import lsp
from graphc_tools._lsp_text import definition_of, word_at

URI = "file:///model.mlir"
SOURCE = """// RUN: graphc-opt --graphc-fusion %s
func.func @main(%x: tensor<?xf64>, %n: index) -> tensor<?xf64> {
  %0 = "graphc.exp"(%x) : (tensor<?xf64>) -> tensor<?xf64>
  %1 = "graphc.add"(%0, %x) : (tensor<?xf64>, tensor<?xf64>) -> tensor<?xf64>
  return %1 : tensor<?xf64>
}
func.func @other(%x: tensor<3xf64>) -> tensor<3xf64> {
  return %x : tensor<3xf64>
}
"""


class Editor:
    """A process of the server, and what an editor says to it."""

    def __init__(self) -> None:
        command = [sys.executable, "-m", "graphc_tools.lsp"]
        self.process = subprocess.Popen(
            command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.PIPE
        )
        self._count = 0
        self.capabilities = self.ask("initialize", processId=None, rootUri=None, capabilities={})[
            "capabilities"
        ]
        self.tell("initialized")

    def _send(self, message: dict[str, Any]) -> None:
        body = json.dumps({"jsonrpc": "2.0", **message}).encode()
        self.process.stdin.write(b"Content-Length: %d\r\n\r\n%s" % (len(body), body))
        self.process.stdin.flush()

    def _receive(self) -> dict[str, Any]:
        length = 0
        while line := self.process.stdout.readline().strip():
            if line.lower().startswith(b"content-length:"):
                length = int(line.partition(b":")[2])
        assert length, self.process.stderr.read().decode()
        return json.loads(self.process.stdout.read(length))

    def tell(self, method: str, **parameters: Any) -> None:
        self._send({"method": method, "params": parameters})

    def ask(self, method: str, **parameters: Any) -> Any:
        self._count += 1
        self._send({"id": self._count, "method": method, "params": parameters})
        while (answer := self._receive()).get("id") != self._count:
            pass
        assert "error" not in answer, answer
        return answer["result"]

    def open(self, text: str) -> list[dict[str, Any]]:
        """Opens a text; gives its diagnostics."""
        document = {"uri": URI, "languageId": "mlir", "version": 1, "text": text}
        self.tell("textDocument/didOpen", textDocument=document)
        return self.diagnostics()

    def diagnostics(self) -> list[dict[str, Any]]:
        while (message := self._receive()).get("method") != "textDocument/publishDiagnostics":
            pass
        return message["params"]["diagnostics"]

    def at(self, method: str, text: str, line: int, word: str) -> Any:
        """Asks about the first place of a word in a line."""
        column = len(text.split("\n")[line].partition(word)[0].encode("utf-16-le")) // 2 + 1
        place = {"line": line, "character": column}
        return self.ask(f"textDocument/{method}", textDocument={"uri": URI}, position=place)


@pytest.fixture(scope="module")
def editor() -> Iterator[Editor]:
    editor = Editor()
    yield editor
    editor.ask("shutdown")
    editor.tell("exit")
    editor.process.stdin.close()
    assert editor.process.wait(20) == 0
    editor.process.stdout.close()
    editor.process.stderr.close()


def test_valid_text_has_no_diagnostics(editor: Editor) -> None:
    assert editor.capabilities["hoverProvider"] and editor.capabilities["definitionProvider"]
    assert editor.open(SOURCE) == []


def test_diagnostics_have_positions(editor: Editor) -> None:
    [found] = editor.open(SOURCE.replace('"graphc.add"(%0, %x)', '"graphc.add"(%0)'))
    assert (found["severity"] == 1 and "graphc.add" in found["message"]) or "operand" in found["message"]
    assert found["range"]["start"]["line"] == 3
    [found] = editor.open(SOURCE.replace("return %1 :", "return %2 :"))
    assert "undeclared SSA value" in found["message"]
    assert found["range"] == {"start": {"line": 4, "character": 9}, "end": {"line": 4, "character": 11}}
    [found] = editor.open(SOURCE.replace("graphc.exp", "graphc.exq"))
    assert found["range"]["start"]["line"] == 2 and "graphc.exq" in found["message"]


def test_diagnostics_change_with_the_text(editor: Editor) -> None:
    assert editor.open(SOURCE) == []
    place = {"start": {"line": 4, "character": 9}, "end": {"line": 4, "character": 11}}
    document = {"uri": URI, "version": 2}
    change = {"range": place, "text": "%9"}
    editor.tell("textDocument/didChange", textDocument=document, contentChanges=[change])
    [found] = editor.diagnostics()
    assert "undeclared SSA value" in found["message"]
    whole = [{"text": SOURCE}]
    editor.tell("textDocument/didChange", textDocument=document, contentChanges=whole)
    assert editor.diagnostics() == []


def test_parts_and_letters_that_take_several_bytes(editor: Editor) -> None:
    text = f"{SOURCE}// -----\n{SOURCE}".replace('"graphc.exp"(%x) :', '/*é𝄞*/ "graphc.exp"(%y) :')
    text = text.replace("/*é𝄞*/", "")
    assert [each["range"]["start"]["line"] for each in editor.open(text)] == [2, 12]
    wide = 'func.func @f() attributes {a = "é𝄞"} { return %q : f64 }\n'
    [found] = editor.open(wide)
    assert found["range"]["start"]["character"] == len(wide.partition("%q")[0].encode("utf-16-le")) // 2


def test_what_crashes_the_parser_is_refused_before(editor: Editor) -> None:
    text = "func.func @f() { linalg.generic {indexing_maps = [], iterator_types = [1]} return }"
    [found] = editor.open(text)
    assert "must be strings" in found["message"]
    assert editor.open(SOURCE) == []


def test_hover(editor: Editor) -> None:
    editor.open(SOURCE)
    shown = editor.at("hover", SOURCE, 2, "graphc.exp")["contents"]["value"]
    assert shown.startswith("**graphc.exp**(x)") and "e to the power x" in shown
    assert "stage" in editor.at("hover", SOURCE, 0, "--graphc-fusion")["contents"]["value"]
    assert '"graphc.exp"(%x)' in editor.at("hover", SOURCE, 3, "%0")["contents"]["value"]
    assert editor.at("hover", SOURCE, 2, "tensor") is None


def test_go_to_definition(editor: Editor) -> None:
    editor.open(SOURCE)
    found = editor.at("definition", SOURCE, 3, "%0")
    assert found == {
        "uri": URI,
        "range": {"start": {"line": 2, "character": 2}, "end": {"line": 2, "character": 4}},
    }
    assert editor.at("definition", SOURCE, 3, "%x")["range"]["start"] == {"line": 1, "character": 16}
    assert editor.at("definition", SOURCE, 7, "%x")["range"]["start"] == {"line": 6, "character": 17}
    assert editor.at("definition", SOURCE, 2, "graphc.exp") is None


def test_completion(editor: Editor) -> None:
    text = SOURCE.replace('"graphc.add"', '"graphc.reduce_s"').replace("--graphc-fusion", "--graphc-scan-m")
    editor.open(text)
    place = {"line": 3, "character": text.split("\n")[3].index("reduce_s") + len("reduce_s")}
    found = editor.ask("textDocument/completion", textDocument={"uri": URI}, position=place)
    assert [each["label"] for each in found] == ["graphc.reduce_sum"]
    edit = found[0]["textEdit"]
    assert edit["newText"] == "graphc.reduce_sum" and edit["range"]["start"]["character"] == 8
    place = {"line": 0, "character": text.split("\n")[0].index("scan-m") + len("scan-m")}
    found = editor.ask("textDocument/completion", textDocument={"uri": URI}, position=place)
    assert {each["label"] for each in found} == {"--graphc-scan-merge", "--graphc-scan-merge-inouts"}


def test_the_short_form(editor: Editor) -> None:
    text = "// graphc short form\nfunc @f(%x: f64[3]) -> f64[3] {\n  %0 = exp(%x): f64[3]\n  return(%0)\n}\n"
    assert editor.open(text) == []
    assert "graphc.exp" in editor.at("hover", text, 2, "exp")["contents"]["value"]
    assert editor.at("definition", text, 2, "%x")["range"]["start"] == {"line": 1, "character": 8}
    [found] = editor.open(text.replace("return(%0)", "return(%1)"))
    assert found["message"] == "no value %1 is defined here"
    assert found["range"]["start"] == {"line": 3, "character": 9}


@pytest.mark.parametrize(
    ("use", "line"), [("%i)", 1), ("%acc,", 1), ("%a#1", 0), ("^bb2]", 6), ("@g(", 7), ("%arg,", 6)]
)
def test_definitions_of_all_kinds(use: str, line: int) -> None:
    text = """%a:2 = "test.two"() : () -> (f64, f64)
%s = scf.for %i = %lo to %hi step %one iter_args(%acc = %zero) -> f64 {
  %v = use(%i)
  %w = "test.use"(%acc, %arg)
  "test.use"(%a#1)
  "cf.br"(%v)[^bb2] : (f64) -> ()
^bb2(%arg: f64):  // %v = no definition
  func.func private @g(f64)
  call @g(%arg, %v) : (f64) -> ()
"""
    word = word_at(text, text.index(use))
    found = definition_of(text, word)
    assert text[: found.start].count("\n") == line


def test_without_pygls(monkeypatch, capsys) -> None:
    monkeypatch.setitem(sys.modules, "pygls.lsp.server", None)
    assert lsp.main([]) == 1
    message = capsys.readouterr().err
    assert "pip install 'graphc[lsp]'" in message and "pygls" in message
