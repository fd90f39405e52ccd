# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""What reports of bugs contain."""

from __future__ import annotations

import io
import re
from pathlib import Path

import numpy as np

import graphc

ROOT = Path(__file__).resolve().parents[2]


def shown() -> str:
    stream = io.StringIO()
    graphc.show_versions(stream)
    return stream.getvalue()


def test_versions_are_shown():
    lines = dict(line.split(maxsplit=1) for line in shown().splitlines())
    assert lines["numpy"] == np.__version__ and lines["graphc"] == graphc.__version__
    assert {"torch-mlir", "llvmlite", "scipy", "python", "system", "cores"} <= set(lines)


def test_settings_that_are_not_the_defaults_are_shown():
    before = shown()
    with graphc.config.change_flags(fastmath="contract"):
        assert set(shown().splitlines()) - set(before.splitlines()) == {"config.fastmath = 'contract'"}


def test_templates_of_issues_ask_for_versions():
    templates = list((ROOT / ".github" / "ISSUE_TEMPLATE").glob("*.md"))
    assert templates and all(
        "graphc.show_versions()" in path.read_text(encoding="utf-8") for path in templates
    )


def test_the_changelog_has_a_place_for_what_comes():
    """Its first heading is what is not released; those after it are versions, the newest first."""
    text = (ROOT / "CHANGELOG.md").read_text(encoding="utf-8")
    first, *versions = re.findall(r"^## (.*)$", text, re.MULTILINE)
    assert first == "Unreleased"
    numbers = [tuple(map(int, re.match(r"(\d+)\.(\d+)\.(\d+)", v).groups())) for v in versions]
    assert numbers == sorted(numbers, reverse=True)


def test_each_page_is_in_the_index_and_in_the_sites_navigation():
    navigation = (ROOT / "mkdocs.yml").read_text(encoding="utf-8")
    index = (ROOT / "docs" / "index.md").read_text(encoding="utf-8")
    pages = {str(path.relative_to(ROOT / "docs")) for path in (ROOT / "docs").rglob("*.md")} - {"index.md"}
    assert [page for page in sorted(pages) if page not in navigation] == []
    assert [page for page in sorted(pages) if page.startswith("guide/") and page not in index] == []
