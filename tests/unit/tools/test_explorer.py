# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""The compiler explorer: what its page holds, and what it does in a browser."""

from __future__ import annotations

import base64
import json
import shutil
import subprocess
import sys
import zlib
from html.parser import HTMLParser
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import graphc
import graphc.tensor as pt
from graphc_tools import view

MODEL = """
import graphc
import graphc.tensor as pt

x = pt.matrix("x")
w = pt.vector("w")


def step(row, state):
    return pt.tanh(state * 0.5 + row)


rows = graphc.scan(step, sequences=[x], outputs_info=[pt.zeros(x.shape[1])], return_updates=False)
cost = ((pt.tanh(x @ w) - 1) ** 2).sum() + rows[-1].sum()


def fn():
    return graphc.function([x, w], [cost, graphc.grad(cost, w)], name="model")
"""
TANH = MODEL.splitlines().index("    return pt.tanh(state * 0.5 + row)") + 1
PAGES = Path(__file__).parents[2] / "release" / "pages.py"
CHROMIUM = shutil.which("chromium") or shutil.which("chromium-browser") or shutil.which("google-chrome")


class Stored(HTMLParser):
    """A page: what is packed in it, and every address that a browser would fetch."""

    def __init__(self, page: str) -> None:
        super().__init__()
        self.views: dict[str, Any] = {}
        self.fetched: list[str] = []
        self._id: str | None = None
        self.feed(page)

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        values = dict(attrs)
        self.fetched += [value for key, value in attrs if key in ("src", "href", "action", "data") and value]
        self._id = values.get("id") if tag == "script" and "type" in values else None

    def handle_data(self, data: str) -> None:
        if self._id is not None and data.strip():
            self.views[self._id] = json.loads(zlib.decompress(base64.b64decode(data)))


@pytest.fixture(scope="module")
def page(tmp_path_factory) -> Path:
    folder = tmp_path_factory.mktemp("explorer")
    (folder / "model.py").write_text(MODEL)
    path = folder / "page.html"
    given = [f"{folder}/model.py:fn", "-o", str(path), "--shape", "100,8", "--shape", "8"]
    assert view.main(given) == 0
    return path


@pytest.fixture(scope="module")
def stored(page) -> Stored:
    return Stored(page.read_text(encoding="utf-8"))


def views(stored: Stored, kind: str) -> list[dict[str, Any]]:
    return [each for each in stored.views["index"]["views"] if each["kind"] == kind]


def lines_of(stored: Stored, each: dict[str, Any], nodes: set[int]) -> list[str]:
    """The lines of a view that come from some nodes."""
    content = stored.views[f"view{each['id']}"]
    lines = content["text"].split("\n")
    assert len(lines) == len(content["nodes"])
    return [line for line, own in zip(lines, content["nodes"], strict=True) if nodes.intersection(own)]


def test_nothing_is_fetched(page, stored):
    assert stored.fetched == []
    text = page.read_text(encoding="utf-8")
    code = text[: text.index('id="index"')] + text[text.rindex("octet-stream") :]
    assert "://" not in code and "@import" not in code and "url(" not in code


def test_an_operation_is_found_from_source_to_assembly(stored):
    nodes = stored.views["index"]["nodes"]
    tanh = {i for i, (op, _, _, line, _) in enumerate(nodes) if op == "tanh" and line == TANH}
    assert len(tanh) == 1
    (source,) = views(stored, "source")
    assert lines_of(stored, source, tanh) == ["    return pt.tanh(state * 0.5 + row)"]
    emitted = views(stored, "ir")[0]
    assert len(lines_of(stored, emitted, tanh)) == 1 and '"graphc.tanh"' in lines_of(stored, emitted, tanh)[0]
    for each in (*views(stored, "llvm"), *views(stored, "asm")):
        assert lines_of(stored, each, tanh), each["title"]
    assert any("fma" in line for line in lines_of(stored, views(stored, "asm")[0], tanh))


def test_views_of_every_kind(stored):
    kinds = {each["kind"] for each in stored.views["index"]["views"]}
    assert kinds == {"source", "graph", "ir", "kernels", "memory", "llvm", "asm"}
    for each in stored.views["index"]["views"]:
        if each["picture"]:
            picture = stored.views[f"view{each['id']}"]["picture"]
            assert picture.startswith("<svg") and 'data-n="' in picture
    assert [each["title"] for each in views(stored, "graph")][1].startswith("graph of a step of n")


def test_passes_have_reasons_and_say_whether_they_changed_anything(stored):
    passes = views(stored, "ir")
    assert passes[0]["title"] == "emitted" and len(passes) > 40
    assert all(each["note"] for each in passes)
    texts = [stored.views.get(f"view{each['id']}") for each in passes]
    assert [text is not None for text in texts] == [each["changed"] for each in passes]
    assert 10 < sum(each["changed"] for each in passes) < len(passes)
    names = [each["title"] for each in passes]
    first = passes[names.index("canonicalize")]
    assert first["note"] == "drop what is dead or repeated before looking for patterns"


def test_locations_leave_the_text(stored):
    for each in (*views(stored, "ir"), *views(stored, "llvm")):
        text = stored.views.get(f"view{each['id']}", {}).get("text", "")
        assert " loc(" not in text and "#loc" not in text and "!DI" not in text and "!dbg" not in text


def test_a_function_partly_in_python():
    x = pt.vector("x")
    shown = graphc.printing.Print("x", global_fn=lambda op, value: None)(pt.exp(x))
    page = graphc.function([x], pt.log(shown + 1)).explore()
    stored = Stored(page.html)
    titles = [each["title"] for each in views(stored, "ir")]
    assert "segment 0: emitted" in titles and "segment 1: emitted" in titles
    assert page._repr_html_().startswith("<iframe")


def test_reference_mode_has_the_graph():
    x = pt.vector("x")
    stored = Stored(graphc.function([x], pt.exp(x), mode="reference").explore().html)
    assert {each["kind"] for each in stored.views["index"]["views"]} >= {"source", "graph"}


def test_exploring_leaves_the_function_as_it_is():
    x = pt.vector("x")
    f = graphc.function([x], pt.exp(x))
    report = str(f.report)
    f.explore()
    assert str(f.report) == report
    np.testing.assert_array_equal(f([0.0]), [1.0])


@pytest.mark.parametrize("source", ["model.py", "model.py:nothing", "model.py:x", "model.mlir:fn"])
def test_wrong_arguments(page, capsys, monkeypatch, source):
    monkeypatch.chdir(page.parent)
    assert view.main([source]) == 2
    assert "graphc-view: " in capsys.readouterr().err


# -- in a browser -------------------------------------------------------------------------------------------

SCRIPT = """<script>
(async () => {
  const wait = milliseconds => new Promise(done => setTimeout(done, milliseconds));
  while (!document.body.dataset.ready) await wait(20);
  const key = (key, more = {}) => document.dispatchEvent(new KeyboardEvent("keydown", {key, ...more}));
  const text = element => element.textContent;
  const texts = (pane, name) => [...panes[pane].lines.querySelectorAll(`.${name} .text`)].map(text);
  const row = (pane, text) => [...panes[pane].lines.children].find(e => e.textContent.includes(text));
  const loop = byId("loops").selectedOptions[0].text;
  const result = {loop, opened: [0, 1, 2].map(pane => texts(pane, "pin"))};
  key("Escape");
  try {
    BODY
  } catch (error) { result.error = String(error.stack); }
  const out = document.createElement("script");
  out.type = "application/json"; out.id = "result"; out.textContent = JSON.stringify(result);
  document.body.replaceChildren(out);
})();
</script></body>"""


def browse(page: Path, body: str) -> dict[str, Any]:
    """What a script finds that runs in the page, in a browser without a window."""
    if CHROMIUM is None:
        pytest.skip("no browser: this needs chromium (Debian's package chromium)")
    path = page.with_name("driven.html")
    text = page.read_text(encoding="utf-8").replace("</body>", SCRIPT.replace("BODY", body))
    path.write_text(text, encoding="utf-8")
    command = [CHROMIUM, "--headless", "--no-sandbox", "--disable-gpu", "--window-size=1500,900"]
    command += ["--virtual-time-budget=20000", f"--user-data-dir={page.parent / 'profile'}", "--dump-dom"]
    done = subprocess.run([*command, path.as_uri()], capture_output=True, text=True, timeout=120)
    _, _, rest = done.stdout.partition('id="result">')
    found: dict[str, Any] = json.loads(rest.partition("</script>")[0])
    assert "error" not in found, found["error"]
    return found


def test_a_click_highlights_everywhere(page):
    found = browse(
        page,
        """
        result.start = panes.map(pane => pane.view.kind);
        row(0, "return pt.tanh").dispatchEvent(new PointerEvent("pointerenter"));
        result.hovered = [texts(0, "hover"), texts(1, "hover")];
        row(0, "return pt.tanh").dispatchEvent(new PointerEvent("pointerleave"));
        result.left = texts(0, "hover").length;
        row(0, "return pt.tanh").click();
        result.pinned = [0, 1, 2].map(pane => texts(pane, "pin"));
        result.about = byId("about").textContent;
        await panes[0].showKind("graph");
        await panes[0].step(1);
        result.boxes = [...panes[0].host.shadowRoot.querySelectorAll(".pin title")].map(e => e.textContent);
        key("Escape");
        result.unpinned = panes[1].lines.querySelectorAll(".pin").length;
        """,
    )
    assert found["start"] == ["source", "ir", "asm"]
    assert found["hovered"][0] == ["    return pt.tanh(state * 0.5 + row)"] and found["left"] == 0
    for name in ("mul", "add", "tanh"):
        assert any(f'"graphc.{name}"' in line for line in found["hovered"][1])
    source, ir, assembly = found["pinned"]
    assert source == found["hovered"][0] and ir == found["hovered"][1] and len(assembly) > 10
    assert f"model.py:{TANH}" in found["about"]
    assert len(found["boxes"]) == 3 and found["unpinned"] == 0


def test_a_page_opens_on_the_most_expensive_loop(page, stored):
    index = stored.views["index"]
    (name, nodes, share), *others = index["loops"]
    assert "Scan" in name and TANH in {index["nodes"][node][3] for node in nodes}
    assert 1 >= share >= others[0][2] > 0 and not index["measured"]
    found = browse(
        page,
        """
        key("h"); result.next = [...pinned];
        result.colours = {};
        for (const [line, kind] of [
          ["def f(x):  # why", "source"], ["%0 = arith.addf %a, %b : tensor<?x3xf64>", "ir"],
          ['"graphc.exp"(%1) {axes = array<i64: 0>} : (tensor<f64>) -> f64', "ir"],
          ["  %1 = load double, ptr %0, align 8", "llvm"],
          ["        vmulsd  8(%rax), %xmm0, %xmm1 # 8-byte", "asm"],
        ]) {
          const element = coloured(kind, line), parts = [...element.children];
          result.colours[line] = [element.textContent, parts.map(e => e.className + " " + e.textContent)];
        }
        """,
    )
    source, ir, assembly = found["opened"]
    assert "    return pt.tanh(state * 0.5 + row)" in source and any("graphc.tanh" in line for line in ir)
    assert len(assembly) > 10 and "(estimate): Scan" in found["loop"]
    assert found["next"] == others[0][1]
    lines = [(line, text, parts) for line, (text, parts) in found["colours"].items()]
    assert all(line == text for line, text, _ in lines)
    source, addition, call, load, multiplication = (parts for *_, parts in lines)
    assert source == ["keyword def", "op f", "comment # why"]
    assert addition == ["value %0", "op arith.addf", "value %a", "value %b", "type tensor<?x3xf64>"]
    assert call[:2] == ['op "graphc.exp"', "value %1"] and call[-2:] == ["type tensor<f64>", "type f64"]
    assert load[:4] == ["value %1", "op load", "type double", "type ptr"]
    assert multiplication[0] == "op vmulsd" and multiplication[-1] == "comment # 8-byte"


def test_a_profile_says_which_loop_is_the_most_expensive():
    x = pt.vector("x")
    f = graphc.function([x], [pt.cumsum(x)[-1], pt.exp(pt.sin(x)).sum()], profile=True)
    f(np.zeros(100_000))
    index = Stored(f.explore().html).views["index"]
    assert index["measured"] and sum(share for *_, share in index["loops"]) == pytest.approx(1)


def test_pages_can_be_read_light_dark_and_narrow(page):
    """By the checks of the site: contrast of all texts, sizes of what is tapped, no scrolling sideways."""
    command = [sys.executable, PAGES, page.parent, "--pages", page.name]
    done = subprocess.run(command, capture_output=True, text=True, timeout=120)
    if done.returncode == 77:
        pytest.skip("no browser: this needs chromium (Debian's package chromium)")
    assert done.returncode == 0, done.stdout + done.stderr


def test_passes_differences_search_and_keys(page):
    found = browse(
        page,
        """
        key("2");
        const titles = [];
        for (let i = 0; i < 3; i++) { key("ArrowRight"); await wait(100); titles.push(panes[1].view.title); }
        result.titles = titles;
        result.changed = [texts(1, "add").length, texts(1, "remove").length];
        key("d"); await wait(100);
        result.hidden = [texts(1, "add").length, texts(1, "remove").length];
        key("d"); await wait(100);
        key("ArrowRight", {shiftKey: true}); await wait(100);
        result.shift = panes[1].view.title;
        searchFor("tanh");
        result.count = byId("found").textContent;
        result.found = texts(0, "find");
        key("a"); await wait(200);
        result.kind = panes[1].view.kind;
        const before = isDark(); key("t"); result.theme = [before, isDark()];
        key("k"); await wait(200);
        const zoom = panes[1].zoom; key("+"); result.zoom = panes[1].zoom / zoom;
        """,
    )
    assert len(set(found["titles"])) == 3 and sum(found["changed"]) > 0 and found["hidden"] == [0, 0]
    assert found["shift"] != found["titles"][-1]
    assert len(found["found"]) == 2 and int(found["count"].split()[0]) > 2
    assert found["kind"] == "asm" and found["theme"] == [False, True]
    assert found["zoom"] == pytest.approx(1.25)


def test_differences_are_right(page):
    """Rows of `difference` give both texts, whatever they are; few rows for few changes."""
    found = browse(
        page,
        """
        let seed = 7;
        const random = n => (seed = (seed * 48271) % 2147483647) % n;
        result.wrong = 0;
        for (let i = 0; i < 300; i++) {
          const before = Array.from({length: random(30)}, () => "abcd"[random(4)]);
          const edit = line => random(2) ? [] : [line, "abcd"[random(4)]];
          const after = before.flatMap(line => random(5) ? [line] : edit(line));
          const rows = difference(before, after);
          const old = rows.filter(row => row.sign === "-").length;
          const now = rows.filter(row => row.sign !== "-").map(row => row.line);
          const same = rows.filter(row => row.sign === " ").length;
          const complete = now.length === after.length && same + old === before.length;
          if (now.some((line, k) => line !== k) || !complete) result.wrong++;
        }
        const lines = Array.from({length: 50}, (_, i) => `%${i} = add ${i}`);
        const shifted = lines.map(line => line.replace("%", "%x")).toSpliced(20, 1);
        result.signs = difference(lines, shifted).filter(row => row.sign !== " ");
        """,
    )
    assert found["wrong"] == 0
    assert found["signs"] == [{"sign": "-", "line": 20}]


def test_a_file_name_is_no_argument():
    x = pt.vector("x")
    f = graphc.function([x], x + 1, mode="reference")
    with pytest.raises(TypeError, match=r"argument 0 is the name of a file.*\.save\('page.html'\)"):
        f.explore("page.html")
