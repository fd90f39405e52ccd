# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""A disk cache for one test, and Python in another process."""

from __future__ import annotations

import os
import subprocess
import sys

import pytest

from graphc.config import config
from graphc.native.parts import forget_parts


@pytest.fixture
def cache_dir(tmp_path, monkeypatch):
    """An empty cache, used by this process and those that the test starts."""
    monkeypatch.setenv("GRAPHC_CACHE_DIR", str(tmp_path))
    monkeypatch.setattr(config, "cache_dir", str(tmp_path))
    forget_parts()
    return tmp_path


@pytest.fixture
def python():
    """Runs code in a new process and returns what it printed."""

    def run(code: str) -> str:
        environment = {**os.environ, "PYTHONPATH": os.pathsep.join(path for path in sys.path if path)}
        done = subprocess.run(
            [sys.executable, "-c", code], capture_output=True, text=True, env=environment, timeout=120
        )
        assert done.returncode == 0, done.stderr
        return done.stdout.strip()

    return run
