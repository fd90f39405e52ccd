# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Which code of an artifact is taken."""

from __future__ import annotations

import platform
from types import SimpleNamespace

import pytest

from graphc_runtime import cpu
from graphc_runtime.errors import LoadError

LEVELS = {"x86-64-v2": "+sse3", "x86-64-v3": "+sse3,+avx2", "x86-64-v4": "+sse3,+avx2,+avx512f"}
TARGETS = {
    name: SimpleNamespace(triple="x86_64-unknown-linux-gnu", features=features)
    for name, features in LEVELS.items()
}


@pytest.fixture
def flags(monkeypatch):
    monkeypatch.setattr(platform, "machine", lambda: "x86_64")

    def set_flags(*names):
        monkeypatch.setattr(cpu, "host_flags", lambda: frozenset(names))

    return set_flags


def test_code_that_uses_most_of_the_cpu_is_taken(flags):
    flags("pni", "avx2", "avx512f")
    assert cpu.best_target(TARGETS) == "x86-64-v4"
    flags("pni", "avx2")
    assert cpu.best_target(TARGETS) == "x86-64-v3"
    flags("other")
    with pytest.raises(LoadError, match="x86-64-v2 needs sse3"):
        cpu.best_target(TARGETS)


def test_where_the_system_does_not_tell_it_is_what_asks_for_least(flags):
    """As on macOS, which has no /proc/cpuinfo: an instruction that the CPU lacks would end the process."""
    flags()
    assert cpu.best_target(TARGETS) == "x86-64-v2"
