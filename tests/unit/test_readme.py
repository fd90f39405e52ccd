# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""The Python blocks of README.md and of all pages in docs/ run, in order, page by page; links lead somewhere.

Blocks with `>>>` also have to print what they show.
"""

from __future__ import annotations

import doctest
import re
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
ALL = [*sorted(ROOT.glob("*.md")), *sorted((ROOT / "docs").rglob("*.md"))]
# Pages whose code needs another library: `make bridge` runs them in an environment that has it.
NEEDS = {"pymc.md": "pymc"}
BLOCK = re.compile(r"^```python\n(.*?)^```$", re.MULTILINE | re.DOTALL)
PAGES = [page for page in ALL if BLOCK.search(page.read_text(encoding="utf-8"))]


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.name)
def test_code_blocks_run(page, tmp_path, monkeypatch):
    if page.name in NEEDS:
        pytest.importorskip(NEEDS[page.name], reason="`make bridge` runs this page")
    monkeypatch.chdir(tmp_path)
    text = page.read_text(encoding="utf-8")
    blocks = list(BLOCK.finditer(text))
    names: dict[str, object] = {"__name__": "page"}
    parser = doctest.DocTestParser()
    for block in blocks:
        line = text.count("\n", 0, block.start(1))
        if ">>>" in block[1]:
            example = parser.get_doctest(block[1], names, page.name, str(page), line)
            report: list[str] = []
            runner = doctest.DocTestRunner(optionflags=doctest.NORMALIZE_WHITESPACE | doctest.ELLIPSIS)
            runner.run(example, out=report.append, clear_globs=False)
            assert not runner.failures, "".join(report)
            names.update(example.globs)
        else:
            exec(compile("\n" * line + block[1], str(page), "exec"), names)


def test_the_guide_shows_code():
    generated = {"scan-passes.md"}
    guide = {page.name for page in (ROOT / "docs" / "guide").glob("*.md")}
    assert guide - generated <= {page.name for page in PAGES}


@pytest.mark.parametrize("page", ALL, ids=lambda page: page.name)
def test_links_lead_somewhere(page):
    text = re.sub(
        r"^```.*?^```$|`[^`\n]*`", "", page.read_text(encoding="utf-8"), flags=re.MULTILINE | re.DOTALL
    )
    targets = re.findall(r"\]\((?!https?:|#)([^)#\s]+)", text)
    assert [t for t in targets if not (page.parent / t).exists()] == []


def test_the_settings_page_lists_every_setting():
    from graphc import config

    page = (ROOT / "docs" / "settings.md").read_text(encoding="utf-8")
    for name, variable, _, doc in config.table():
        assert f"| `{name}` | `{variable}` |" in page and doc in page, name
