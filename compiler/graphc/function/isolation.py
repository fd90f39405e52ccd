# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Settings of compiling in helper processes; few processes do, so that nobody else imports this."""

from __future__ import annotations

from graphc.backends.isolated import IsolatedTarget
from graphc.backends.reproducer import Reproducers
from graphc.backends.target import Target
from graphc.config import config


def isolated(target: Target) -> Target:
    """A target in a helper process, with the time limit of now."""
    return IsolatedTarget(target, config.compile_time_limit, reproducers())


def reproducers() -> Reproducers:
    """Where crashes of the compiler are written down, with the settings of now."""
    rows = [f"{name}={value}" for name, _, value, _ in config.table() if not name.endswith("_dir")]
    return Reproducers(config.reproducer_dir, ", ".join(rows))
