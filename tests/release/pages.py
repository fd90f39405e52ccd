# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Opens pages of the built site in headless Chromium: wide, narrow and dark. Takes pictures and checks them.

    python tests/release/pages.py build/site --pictures build/pages

A page of the explorer is checked in the same way: `--pages model.html` in the folder that has it.

Checks what a reader would stumble over: pages that scroll sideways, text whose contrast with what is behind
it is below 4.5 (3 where it is large; WCAG 2.2, 1.4.3), links of navigation that are smaller than 24 pixels
(2.5.8), pages that are longer than `LONGEST` on a telephone, searches whose first result is another page, and
prompts in copied code.
Exits with 1 where something is wrong, with 77 where there is no Chromium (Debian's package `chromium`).

The browser is told what to do by its own protocol over two pipes: there is nothing to install but itself.
"""

from __future__ import annotations

import argparse
import base64
import json
import os
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

PAGES = (
    "index.html",
    "guide/five-minutes.html",
    "guide/fit-a-model.html",
    "guide/read-the-ir.html",
    "reference/graphc.html",
    "reference/graphc.tensor.html",
    "passes/graph.html",
    "gallery.html",
    "benchmarks.html",
    "benchmarks_pymc.html",
)
# Name, width in pixels, colours.
VIEWS = (
    ("wide", 1280, "light"),
    ("narrow", 500, "light"),
    ("telephone", 360, "light"),
    ("dark", 1280, "dark"),
)
LONGEST = 60_000  # pixels at the width of a telephone
# What readers type, and the page that has to come first.
SEARCHES = {
    "jit": "guide/jit.html",
    "standard errors": "guide/fit-a-model.html",
    "vmap": "guide/numpy.html",
    "save": "guide/ship-a-model.html",
}

CHECKS = r"""
(() => {
  const found = [];
  const shown = (e) => e.checkVisibility({checkOpacity: true, checkVisibilityCSS: true});
  const numbers = (text) => (text.match(/[\d.]+/g) || []).map(Number);
  const light = (c) => { const s = c / 255; return s <= 0.04045 ? s / 12.92 : ((s + 0.055) / 1.055) ** 2.4; };
  const luminance = ([r, g, b]) => 0.2126 * light(r) + 0.7152 * light(g) + 0.0722 * light(b);
  const mixed = (top, below, a) => [0, 1, 2].map((k) => top[k] * a + below[k] * (1 - a));
  const over = (top, below) => mixed(top, below, top[3] ?? 1);
  const behind = (e) => {
    const layers = [];
    for (let each = e; each; each = each.parentElement) {
      const style = getComputedStyle(each);
      if (style.backgroundImage !== "none") return null;
      const colour = numbers(style.backgroundColor);
      if ((colour[3] ?? 1) > 0) layers.push(colour);
      if ((colour[3] ?? 1) === 1) break;
    }
    return layers.reverse().reduce((below, top) => over(top, below), [255, 255, 255]);
  };
  const width = document.documentElement.clientWidth;
  if (document.documentElement.scrollWidth > width + 1) {
    const all = [...document.querySelectorAll("main *")];
    const wide = all.filter((e) => e.getBoundingClientRect().right > width + 1);
    found.push("scrolls sideways: " + wide.slice(0, 3).map((e) => e.tagName + "." + e.className).join(", "));
  }
  const seen = new Set();
  const walk = document.createTreeWalker(document.querySelector("main"), NodeFilter.SHOW_TEXT);
  while (walk.nextNode()) {
    const text = walk.currentNode.data.trim(), e = walk.currentNode.parentElement;
    if (!text || !shown(e) || e.closest(".headerlink, script, style, .md-clipboard, [aria-hidden]")) continue;
    const style = getComputedStyle(e), size = parseFloat(style.fontSize);
    const key = [style.color, e.className, e.tagName, e.parentElement.className].join();
    if (seen.has(key)) continue;
    seen.add(key);
    const ground = behind(e);
    if (!ground) continue;
    const one = luminance(over(numbers(style.color), ground)), two = luminance(ground);
    const ratio = (Math.max(one, two) + 0.05) / (Math.min(one, two) + 0.05);
    const large = size >= 24 || (size >= 18.66 && Number(style.fontWeight) >= 700);
    if (ratio < (large ? 3 : 4.5))
      found.push(`contrast ${ratio.toFixed(2)} of ${text.slice(0, 30)} (${e.tagName}.${e.className})`);
  }
  const tapped = ".md-header button, .md-header label, .md-nav__link, .md-clipboard, .tabs button, " +
    ".which button, body > header button, body > header select, body > footer button";
  for (const e of document.querySelectorAll(tapped)) {
    const box = e.getBoundingClientRect();
    const size = `${Math.round(box.width)} x ${Math.round(box.height)}`;
    if (shown(e) && box.width && box.height && (box.height < 23.9 || box.width < 23.9))
      found.push(`${size} is small to tap: ${e.innerText.slice(0, 30) || e.className}`);
  }
  return {found: [...new Set(found)], height: document.documentElement.scrollHeight};
})()
"""
# What the button copies: as the theme does, which leaves out what is hidden meanwhile.
COPIED = r"""
[...document.querySelectorAll("pre code")].map((e) => {
  e.setAttribute("data-md-copying", "");
  const text = e.innerText;
  e.removeAttribute("data-md-copying");
  return text;
}).filter((text) => /^>>> /m.test(text)).length
"""
SEARCH = r"""
new Promise((done) => {
  const field = document.querySelector("input.md-search__input");
  document.querySelector("#__search").click();
  field.focus();
  field.value = WORDS;
  field.dispatchEvent(new KeyboardEvent("keyup"));
  field.dispatchEvent(new Event("input", {bubbles: true}));
  let left = 100;
  const timer = setInterval(() => {
    const first = document.querySelector(".md-search-result__item a");
    const counted = document.querySelector(".md-search-result__meta").innerText;
    if ((first && /\d/.test(counted)) || --left === 0) {
      clearInterval(timer);
      done([...document.querySelectorAll(".md-search-result__item > a")].slice(0, 4).map((e) => e.href));
    }
  }, 100);
})
"""


class Browser:
    """A headless Chromium with one tab; messages of its protocol end with a zero byte."""

    def __init__(self, program: str, profile: str) -> None:
        theirs_in, self._out = os.pipe()
        self._in, theirs_out = os.pipe()

        command = [program, "--headless=new", "--no-sandbox", "--disable-gpu", "--hide-scrollbars"]
        command += [f"--user-data-dir={profile}", "--remote-debugging-pipe", "about:blank"]
        places = f'exec "$0" "$@" 3<&{theirs_in} 4>&{theirs_out}'  # where the browser expects them
        self.process = subprocess.Popen(
            ["bash", "-c", places, *command],
            pass_fds=(theirs_in, theirs_out),
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
        )
        os.close(theirs_in)
        os.close(theirs_out)
        self._rest, self._number, self._session = b"", 0, ""
        pages = self.send("Target.getTargets")["targetInfos"]
        target = next(each["targetId"] for each in pages if each["type"] == "page")
        self._session = self.send("Target.attachToTarget", targetId=target, flatten=True)["sessionId"]
        self.send("Page.enable")

    def send(self, method: str, **parameters: object) -> Any:
        """The answer to a command."""
        self._number += 1
        message: dict[str, object] = {"id": self._number, "method": method, "params": parameters}
        if self._session:
            message["sessionId"] = self._session
        os.write(self._out, json.dumps(message).encode() + b"\0")
        for answer in self._messages():
            if answer.get("id") == self._number:
                if "error" in answer:
                    raise RuntimeError(f"{method}: {answer['error']}")
                return answer["result"]
        raise RuntimeError("the browser ended")

    def _messages(self) -> Iterator[dict[str, Any]]:
        while True:
            text, found, rest = self._rest.partition(b"\0")
            if found:
                self._rest = rest
                yield json.loads(text)
            elif part := os.read(self._in, 1 << 16):
                self._rest += part
            else:
                return

    def open(self, page: Path, width: int, colours: str, height: int = 900) -> None:
        """Opens a page, as on a first visit, and waits until it is loaded."""
        size = {"width": width, "height": height}
        self.send("Emulation.setDeviceMetricsOverride", **size, deviceScaleFactor=1, mobile=False)
        self.value("try { localStorage.clear() } catch (error) {}")
        features = [{"name": "prefers-color-scheme", "value": colours}]
        self.send("Emulation.setEmulatedMedia", features=features)
        self.send("Page.navigate", url=page.resolve().as_uri())
        for answer in self._messages():
            if answer.get("method") == "Page.loadEventFired":
                break
        self.value("new Promise((done) => setTimeout(done, 300))")

    def value(self, script: str) -> Any:
        """The value of an expression in the page."""
        answer = self.send("Runtime.evaluate", expression=script, returnByValue=True, awaitPromise=True)
        if "exceptionDetails" in answer:
            raise RuntimeError(str(answer["exceptionDetails"]))
        return answer["result"].get("value")

    def picture(self, file: Path) -> None:
        """Writes what is in view as a PNG file."""
        file.write_bytes(base64.b64decode(self.send("Page.captureScreenshot", format="png")["data"]))


@contextmanager
def browser() -> Iterator[Browser]:
    """A browser that ends with the block."""
    program = shutil.which("chromium") or shutil.which("chromium-browser") or shutil.which("google-chrome")
    if program is None:
        print("pages: SKIPPED, there is no Chromium: install Debian's package `chromium`", file=sys.stderr)
        raise SystemExit(77)
    with tempfile.TemporaryDirectory(ignore_cleanup_errors=True) as profile:
        started = Browser(program, profile)
        try:
            yield started
        finally:
            started.process.terminate()
            started.process.wait(20)


def checked(site: Path, pictures: Path | None, pages: tuple[str, ...], tall: int) -> list[str]:
    """What is wrong, a line each."""
    wrong: list[str] = []
    with browser() as tab:
        for page in pages:
            for view, width, colours in VIEWS:
                tab.open(site / page, width, colours, tall)
                answer = tab.value(CHECKS)
                wrong += [f"{page}, {view}: {each}" for each in answer["found"]]
                if view == "telephone" and answer["height"] > LONGEST:
                    wrong.append(f"{page}, {view}: {answer['height']:,} pixels long")
                if pictures is not None:
                    name = f"{Path(page).with_suffix('').as_posix().replace('/', '-')}-{view}.png"
                    tab.picture(pictures / name)
            if prompts := tab.value(COPIED):
                wrong.append(f"{page}: {prompts} blocks of code are copied with prompts")
        searches = SEARCHES if (site / "index.html").exists() else {}
        for words, page in searches.items():
            tab.open(site / "index.html", 1280, "light")
            found = [
                each.partition("#")[0].rpartition("/site/")[2].split("?")[0]
                for each in tab.value(SEARCH.replace("WORDS", json.dumps(words)))
            ]
            if not found or not found[0].endswith(page):
                wrong.append(f"search for {words!r}: {found} instead of {page}")
    return wrong


def main() -> int:
    """Runs the command; returns the exit code."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("site", type=Path, help="folder that `make docs` wrote")
    parser.add_argument("--pictures", type=Path, help="folder for PNG files")
    parser.add_argument("--pages", nargs="*", default=PAGES, help="instead of the ten")
    parser.add_argument("--tall", type=int, default=1800, help="height of the window in pixels")
    options = parser.parse_args()
    if options.pictures is not None:
        options.pictures.mkdir(parents=True, exist_ok=True)
    wrong = checked(options.site, options.pictures, tuple(options.pages), options.tall)
    print("\n".join(wrong) or f"pages: {len(options.pages)} in {len(VIEWS)} views are in order")
    return 1 if wrong else 0


if __name__ == "__main__":
    sys.exit(main())
