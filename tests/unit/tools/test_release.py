# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Which interpreters `make release` tries, and that it names those it did not."""

from __future__ import annotations

import runpy
from pathlib import Path

import pytest

SCRIPT = Path(__file__).resolve().parents[2] / "release" / "environments.py"


@pytest.fixture
def release(tmp_path, monkeypatch):
    """What the script defines, where one of the interpreters can make no environments."""
    monkeypatch.setenv("PATH", f"{tmp_path}:/usr/bin:/bin")
    for name, answer in (("python3.12", "echo 3.12"), ("python3.13", "exit 1"), ("other", "echo 3.14")):
        (tmp_path / name).write_text(f"#!/bin/sh\n{answer}\n")
        (tmp_path / name).chmod(0o755)
    return runpy.run_path(str(SCRIPT))


def test_interpreters_are_taken_by_the_version_that_they_have(release, tmp_path):
    found = release["interpreters"]([str(tmp_path / "other"), "/nowhere/python3.13"])
    assert found["3.12"] == "python3.12" and found["3.14"] == f"{tmp_path}/other"
    assert found.get("3.13") != "python3.13"


def test_versions_that_were_not_tried_are_named(release):
    assert list(release["summary"](["3.11", "3.12"]))[1].startswith("release: NOT TRIED on Python 3.13, 3.14")
    assert len(list(release["summary"](release["VERSIONS"]))) == 1
