# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Global settings as values: what is compiled below gets these, and never looks at ``graphc.config``."""

from __future__ import annotations

from graphc.backends.target import CompileOptions, Resources
from graphc.config import FASTMATH, config


def compile_options(
    mode: str, *, fastmath: str | None = None, flush_denormals: bool | None = None
) -> CompileOptions:
    """The options of a function that is compiled now.

    Args:
        mode: the mode of the function; what "debug" compares, and others compile of it, is "fast_run".
        fastmath: as given to `graphc.function`; None for ``config.fastmath``.
        flush_denormals: as given to `graphc.function`; None for ``config.flush_denormals``.

    Raises:
        ValueError: there is no such level of fast math.
    """
    if fastmath is not None and fastmath not in FASTMATH:
        raise ValueError(f"fastmath must be one of {', '.join(FASTMATH)}, got {fastmath!r}")
    return CompileOptions(
        "fast_run" if mode in ("debug", "reference") else mode,
        fastmath=config.fastmath if fastmath is None else fastmath,
        flush_denormals=config.flush_denormals if flush_denormals is None else bool(flush_denormals),
        workspace_limit_mb=config.workspace_limit_mb,
        poison_memory=config.poison_memory,
        arch=config.cuda_arch if mode == "cuda" else "",
    )


def resources() -> Resources:
    """What compiling may use now."""
    return Resources(config.cache_dir, config.cache_size_mb, config.threads)


def nan_guard(action: str | None) -> str:
    """What is done about NaN and infinities; None for ``config.nan_guard``.

    Raises:
        ValueError: there is no such action.
    """
    if action is None:
        return config.nan_guard
    if action not in ("off", "warn", "raise"):
        raise ValueError(f"nan_guard must be 'off', 'warn' or 'raise', got {action!r}")
    return action
