# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""The documentation site builds without a warning, links and anchors lead somewhere, nothing is fetched."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import zlib
from html.parser import HTMLParser
from pathlib import Path
from urllib.parse import unquote, urlsplit

import pytest

from graphc_tools.public_names import public_names

ROOT = Path(__file__).resolve().parents[3]
# Elements that make a browser fetch what they name, and the attribute with the name.
FETCHED = {"script": "src", "img": "src", "iframe": "src", "link": "href", "source": "src"}


class Document(HTMLParser):
    """A page: what it links to, what it fetches, what in it can be linked to."""

    def __init__(self, text: str) -> None:
        super().__init__()
        self.links: list[str] = []
        self.fetched: list[str] = []
        self.anchors: set[str] = set()
        self.texts: list[str] = []
        self.feed(text)

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        values = dict(attrs)
        self.anchors |= {values[key] for key in ("id", "name") if values.get(key)}
        if tag == "a" and values.get("href"):
            self.links.append(values["href"])
        if tag in FETCHED and values.get(FETCHED[tag]):
            self.fetched.append(values[FETCHED[tag]])

    def handle_data(self, data: str) -> None:
        self.texts.append(data)

    def has(self, marks: tuple[str, ...]) -> bool:
        return any(mark in text for text in self.texts for mark in marks)


def test_the_site(tmp_path):
    """One test, as the site is built once and pytest's workers share nothing."""
    pytest.importorskip("mkdocs", reason="the site needs the extra `docs`")
    build(tmp_path)
    documents = {path: Document(path.read_text(encoding="utf-8")) for path in tmp_path.rglob("*.html")}
    links_and_anchors_lead_somewhere(tmp_path, documents)
    nothing_is_fetched_from_elsewhere(tmp_path, documents)
    formulas_are_text(tmp_path, documents)
    search_finds_pages_and_public_names(tmp_path)
    the_reference_shows_every_public_name(tmp_path, documents)
    no_page_is_endless(tmp_path)
    plots_have_their_code_and_pages_their_charts(tmp_path)


def build(folder: Path) -> None:
    command = [sys.executable, "-m", "mkdocs", "build", "--quiet", "--strict", "--site-dir", str(folder)]
    # Signatures in one line each: what is tested needs none of the hundreds of processes that break them.
    environment = {**os.environ, "NO_MKDOCS_2_WARNING": "1", "DOCS_LINE_LENGTH": "100000"}
    done = subprocess.run(command, cwd=ROOT, env=environment, capture_output=True, text=True)
    assert done.returncode == 0, done.stdout + done.stderr


def links_and_anchors_lead_somewhere(site: Path, documents: dict[Path, Document]) -> None:
    missing = []
    for page, document in documents.items():
        for link in document.links + document.fetched:
            parts = urlsplit(link)
            if parts.scheme or link.startswith("//"):
                continue
            target = (page.parent / unquote(parts.path)).resolve() if parts.path else page
            target = target / "index.html" if target.is_dir() else target
            anchors = documents[target].anchors if target in documents else set()
            found = target.is_file() and (
                not parts.fragment or unquote(parts.fragment) in anchors | {"__top"}
            )
            if not found and page.name != "404.html":
                missing.append(f"{page.relative_to(site)}: {link}")
    assert missing == []


def nothing_is_fetched_from_elsewhere(site: Path, documents: dict[Path, Document]) -> None:
    outside = {
        (page.name, name)
        for page, document in documents.items()
        for name in document.fetched
        if urlsplit(name).scheme not in ("", "data") or name.startswith("//")
    }
    assert outside == set()
    styles = [path.read_text(encoding="utf-8") for path in site.rglob("*.css")]
    assert not any("url(http" in text or "@import" in text for text in styles)


def formulas_are_text(site: Path, documents: dict[Path, Document]) -> None:
    """Nothing on the site sets TeX: a reader would see its source."""
    marks = ("$$", "\\frac", "\\cdot", "\\left", "\\sum")
    assert [str(page.relative_to(site)) for page, found in documents.items() if found.has(marks)] == []


def search_finds_pages_and_public_names(site: Path) -> None:
    text = (site / "search" / "search_index.js").read_text(encoding="utf-8")
    entries = json.loads(text.partition("=")[2].strip().rstrip(";"))["docs"]
    titles = {entry["title"] for entry in entries}
    assert {"Five minutes", "Coming from JAX", "graphc.grad", "Standard errors"} <= titles
    boosts = {entry["location"]: entry.get("boost", 1) for entry in entries}
    assert boosts["guide/jit.html"] > boosts["index.html"] > boosts["changes.html"]


def the_reference_shows_every_public_name(site: Path, documents: dict[Path, Document]) -> None:
    """By an anchor, which `objects.inv` has for links from other sites."""
    head, _, packed = (site / "objects.inv").read_bytes().partition(b"zlib.\n")
    assert head.startswith(b"# Sphinx inventory version 2")
    known = {line.split(" ")[0]: line.split(" ")[3] for line in zlib.decompress(packed).decode().splitlines()}
    for names in public_names().values():
        for each in names:
            page, _, anchor = known[each.shown].partition("#")
            assert anchor == each.shown and anchor in documents[site / page].anchors


def no_page_is_endless(site: Path) -> None:
    """A page of a megabyte is 200,000 pixels long on a telephone; `make pages` measures ten."""
    large = {path.name: path.stat().st_size for path in site.rglob("*.html") if path.stat().st_size > 600_000}
    assert not set(large) - {"benchmarks.html", "changes.html"}, large


def plots_have_their_code_and_pages_their_charts(site: Path) -> None:
    gallery = (site / "gallery.html").read_text(encoding="utf-8")
    plots = list((ROOT / "docs" / "gallery").glob("*.png"))
    assert gallery.count('class="beside"') == gallery.count('class="filename"') == len(plots)
    for page in ("index.html", "benchmarks.html", "benchmarks_pymc.html"):
        assert (site / page).read_text(encoding="utf-8").count('role="img"') == 2, page
