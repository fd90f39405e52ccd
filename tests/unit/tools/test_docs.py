# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""The generated pages are up to date."""

from __future__ import annotations

import pytest

from graphc_tools.docs import PAGES, ROOT


@pytest.mark.parametrize("name", PAGES)
def test_page_is_up_to_date(name: str) -> None:
    assert (ROOT / "docs" / name).read_text(encoding="utf-8") == PAGES[name](), "run `make docs`"
