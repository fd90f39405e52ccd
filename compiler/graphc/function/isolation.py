# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Settings of compiling in helper processes; few processes do, so that nobody else imports this."""

from __future__ import annotations

from graphc.backends import CompileOptions, Target
from graphc.backends.isolated import CompilerDied, IsolatedTarget, Reproducers
from graphc.config import config
from graphc.errors import CompileError
from graphc.ir.donations import with_donations


def in_helper_process(target: Target) -> Target:
    """A target in a helper process, with the time limit of now."""
    return IsolatedTarget(target, config.compile_time_limit, reproducers())


def reported(error: Exception, target: Target, text: str, options: CompileOptions) -> CompileError:
    """An error of a compilation, whose message names a file with which it happens again.

    Args:
        error: what was raised.
        target: who raised it.
        text: the module.
        options: what it was compiled with.
    """
    if isinstance(error, CompilerDied):
        return error
    what = str(error) if isinstance(error, CompileError) else f"{type(error).__name__}: {error}"
    entries = ",".join(target.pipeline(text, options))
    notes = [f"mode {options.mode}: {what}"]
    path = reproducers().write(with_donations(text, options.donations), entries, notes)
    place = f"could not be written to {config.reproducer_dir!r}" if path is None else f"is in {path}"
    kind = type(error) if isinstance(error, CompileError) else CompileError
    return kind(f"{what}\nplease report this with the module that was compiled, which {place}")


def reproducers() -> Reproducers:
    """Folder in which crashes of the compiler are written down, with the settings of now."""
    rows = [f"{name}={value}" for name, _, value, _ in config.table() if not name.endswith("_dir")]
    return Reproducers(config.reproducer_dir, ", ".join(rows))
