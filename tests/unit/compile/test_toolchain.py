# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""What compiled code depends on besides its graph."""

from __future__ import annotations

import pytest

from graphc.backends import toolchain


def test_code_for_another_kind_of_entry_has_another_key(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("GRAPHC_CALL_TIER", raising=False)
    best = toolchain()
    monkeypatch.setenv("GRAPHC_CALL_TIER", "buffer")
    assert toolchain() != best
    monkeypatch.delenv("GRAPHC_CALL_TIER")
    assert toolchain() == best
