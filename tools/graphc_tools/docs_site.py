# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Hooks of MkDocs, see mkdocs.yml: pages that are not in docs/, and links that leave it.

docs/ is also read on its own, in an editor or where the repository is hosted; there, links lead to files
beside it. On the site, such a file is a page (`PAGES`), or the link becomes the file's name.
"""

from __future__ import annotations

import ast
import logging
import posixpath
import re
import zlib
from pathlib import Path
from typing import Any

from mkdocs.config.defaults import MkDocsConfig
from mkdocs.structure.files import File, Files
from mkdocs.structure.pages import Page
from mkdocs.utils import get_relative_url

from graphc_tools.docs_reference import inventory, reference_pages
from graphc_tools.ratio_picture import charts

ROOT = Path(__file__).resolve().parents[2]

# Files of the repository that are pages of the site.
PAGES = {"CONTRIBUTING.md": "contributing.md", "CHANGELOG.md": "changes.md", "SECURITY.md": "security.md"}
# The part of each program of the gallery that is shown beside its plot.
SHOWN = {
    "logistic_regression": "build",
    "huber_regression": "build",
    "sunspots": "garch_loss",
    "trust_region": "dogleg",
    "hmc": "hmc",
    "char_rnn": "mean_loss",
    "immediate_session": "descend",
}
_FETCHED = "https://unpkg.com/iframe-worker/shim"
_LINK = re.compile(r"(!?)\[([^\]]*)\]\((?!https?:|mailto:|#)([^)#\s]+)(#[^)\s]*)?\)")
_GALLERY = re.compile(r"^(!\[[^\]]*\]\(gallery/(\w+)\.png\))$", re.MULTILINE)
_FIRST_CHART = re.compile(r"!\[[^\]]*\]\(ratios\.svg\)")
_PROMPTS = re.compile(r"^```python\n>>>", re.MULTILINE)
# Pages that have every word in them.
LAST = ("changes.md", "operations.md", "differences.md", "long-runs.md", "contributing.md")
_FENCE = re.compile(r"^(```.*?^```)$", re.MULTILINE | re.DOTALL)


def on_files(files: Files, config: MkDocsConfig) -> Files:
    """Adds the reference and the pages from the root of the repository."""
    for path, text in reference_pages().items():
        files.append(File.generated(config, path, content=text))
    for source, path in PAGES.items():
        files.append(File.generated(config, path, content=(ROOT / source).read_text(encoding="utf-8")))
    return files


def on_page_markdown(markdown: str, page: Page, config: MkDocsConfig, files: Files) -> str:
    """Links as the site has them."""
    here = page.file.src_uri
    if here == "index.md":  # begins as the repository's first page does
        start = (ROOT / "README.md").read_text(encoding="utf-8").partition("\n## What is in it")[0]
        markdown = f"{start.replace('](docs/', '](')}\n\n## Where to go\n{markdown.partition(chr(10))[2]}"
    sources = {target: source for source, target in PAGES.items()}
    folder = posixpath.dirname(sources.get(here, f"docs/{here}"))

    def renew(match: re.Match[str]) -> str:
        picture, text, target, anchor = match[1], match[2], match[3], match[4] or ""
        place = posixpath.normpath(posixpath.join(folder, target))
        if place in PAGES:
            place = f"docs/{PAGES[place]}"
        if not place.startswith("docs/") or (ROOT / place).is_dir():
            return text if text.startswith("`") else f"{text} (`{place}`)"
        site = posixpath.relpath(place.removeprefix("docs/"), posixpath.dirname(here) or ".")
        return f"{picture}[{text}]({site}{anchor})"

    parts = _FENCE.split(markdown)
    text = "".join(part if part.startswith("```") else _LINK.sub(renew, part) for part in parts)
    if here == "gallery.md":
        text = _GALLERY.sub(_beside, text)
    if here in (drawn := charts()):  # made of the pages' tables, so that there is no chart of old numbers
        kinds = zip(("wide", "narrow"), drawn[here], strict=True)
        chart = "\n\n".join(f'<div class="chart {kind}">\n{picture}</div>' for kind, picture in kinds)
        if here == "index.md":
            text = _FIRST_CHART.sub(lambda _: chart, text, count=1)
        else:
            page.meta.setdefault("hide", ["toc"])  # room for the tables, which are wide
            heading, _, rest = text.partition("\n")
            text = f"{heading}\n\n{chart}\n\n{rest}"
    # Guides come first where readers search; what is generated, and what changed, last.
    folder = posixpath.dirname(here)
    boost = {"guide": 4, "": 2, "reference": 1}.get(folder, 0.5)
    page.meta["search"] = {"boost": 0.2 if here in LAST else boost}
    return _PROMPTS.sub("```pycon\n>>>", text)


def _beside(match: re.Match[str]) -> str:
    """A plot of the gallery and the part of its program that says most, side by side."""
    name = match[2]
    source = (ROOT / "docs" / "examples" / f"{name}.py").read_text(encoding="utf-8")
    nodes = [each for each in ast.parse(source).body if isinstance(each, ast.FunctionDef)]
    (node,) = (each for each in nodes if each.name == SHOWN[name])
    code = "\n".join(source.splitlines()[node.lineno - 1 : node.end_lineno])
    return (
        f'<div class="beside" markdown>\n\n{match[1]}\n\n```python title="{name}.py"\n{code}\n```\n\n</div>'
    )


def on_post_page(output: str, page: Page, config: MkDocsConfig) -> str:
    """Search in files by a script of our own: the theme would fetch one."""
    return output.replace(_FETCHED, get_relative_url("site/search-worker.js", page.url))


def on_post_template(output_content: str, template_name: str, config: MkDocsConfig) -> str:
    """The same for the page of addresses that do not exist."""
    return output_content.replace(_FETCHED, "site/search-worker.js")


def on_startup(command: str, dirty: bool) -> None:
    """Names that `__all__` takes from a table are made when graphc is imported; griffe need not know them."""
    logging.getLogger("mkdocs.plugins.griffe").addFilter(lambda record: "__all__" not in record.getMessage())


def on_post_build(config: Any) -> None:
    """Public names for links from other sites; no list of addresses: the site has no fixed one."""
    path = Path(config["site_dir"]) / "objects.inv"
    head, mark, packed = path.read_bytes().partition(b"zlib.\n")
    lines = zlib.decompress(packed).decode().splitlines()
    public = inventory()
    kept = [line for line in lines if line.split(" ", 1)[0] not in public]
    kept += [f"{name} py:obj 1 {address} -" for name, address in public.items()]
    path.write_bytes(head + mark + zlib.compress("\n".join(sorted(kept)).encode() + b"\n"))
    for name in ("sitemap.xml", "sitemap.xml.gz"):
        (Path(config["site_dir"]) / name).unlink(missing_ok=True)
