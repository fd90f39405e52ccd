# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Global settings as values: what is compiled below gets these, and never looks at ``graphc.config``."""

from __future__ import annotations

from graphc.backends import TARGETS, CompileOptions, Resources, target_class
from graphc.config import FASTMATH, config

_UNITS = {"B": 1}
_UNITS |= {prefix + "B": 1000**power for power, prefix in enumerate(("k", "M", "G", "T"), 1)}
_UNITS |= {prefix + "iB": 1024**power for power, prefix in enumerate(("K", "M", "G", "T"), 1)}


def compile_options(
    mode: str,
    *,
    fastmath: str | None = None,
    flush_denormals: bool | None = None,
    profile: bool = False,
    memory_budget: object = None,
) -> CompileOptions:
    """The options of a function that is compiled now.

    Args:
        mode: the mode of the function; "fast_run" is what "debug" compares, what "tiered" makes in the
            background, and what others compile of a function.
        fastmath: as given to `graphc.function`; None for ``config.fastmath``.
        flush_denormals: as given to `graphc.function`; None for ``config.flush_denormals``.
        profile: as given to `graphc.function`.
        memory_budget: as given to `graphc.function`.

    Raises:
        TypeError: the budget is no number and no text.
        ValueError: there is no such level of fast math, nothing is compiled that could be measured, or the
            budget is none, or one of a mode that has none.
    """
    limit = None if memory_budget is None else parsed(memory_budget)
    target = target_class(mode) if mode in TARGETS else None
    if limit is not None and (mode == "reference" or not (target is None or target.has_budget)):
        raise ValueError(
            f"memory_budget is for code of this machine's processor, which mode {mode!r} does not run; leave "
            "it out, or take mode 'fast_run'"
        )
    if profile and not (target is not None and target.has_counters):
        raise ValueError(
            f"profile=True measures compiled code, which mode {mode!r} does not run; take mode 'fast_run', "
            "or record what runs op by op: with f.trace(per_op=True) as t: f(x)"
        )
    if fastmath is not None and fastmath not in FASTMATH:
        raise ValueError(f"fastmath must be one of {', '.join(FASTMATH)}, got {fastmath!r}")
    return CompileOptions(
        "fast_run" if mode in ("debug", "reference", "tiered") else mode,
        profile=profile,
        fastmath=config.fastmath if fastmath is None else fastmath,
        flush_denormals=config.flush_denormals if flush_denormals is None else bool(flush_denormals),
        workspace_limit_mb=config.workspace_limit_mb,
        poison_memory=config.poison_memory,
        verify_memory=config.verify_memory,
        memory_budget=limit,
        **{field: getattr(config, name) for field, name in (target.settings if target else {}).items()},
    )


def resources() -> Resources:
    """Resources that compiling may use now."""
    return Resources(config.cache_dir, config.cache_size_mb, config.threads)


def nan_guard(action: str | None) -> str:
    """Reaction to NaN and infinities; None for ``config.nan_guard``.

    Raises:
        ValueError: there is no such action.
    """
    if action is None:
        return config.nan_guard
    if action not in ("off", "warn", "raise"):
        raise ValueError(f"nan_guard must be 'off', 'warn' or 'raise', got {action!r}")
    return action


def parsed(budget: object) -> int | None:
    """The bytes of a budget: a number, or text such as ``"64 MiB"``; None for no budget.

    Raises:
        TypeError: it is neither.
        ValueError: it is negative, or the text is no number with a unit.
    """
    if budget is None:
        return None
    if isinstance(budget, str):
        return _from_text(budget)
    if isinstance(budget, bool) or not hasattr(budget, "__index__"):
        raise TypeError(
            "memory_budget must be a number of bytes or text such as '64 MiB', got "
            f"{budget!r} of type {type(budget).__name__}"
        )
    number = int(budget.__index__())
    if number < 0:
        raise ValueError(f"memory_budget must not be negative, got {number} bytes")
    return number


def _from_text(text: str) -> int:
    number = text.strip().rstrip("".join({*"".join(_UNITS)}))
    unit = text.strip()[len(number) :]
    try:
        value = float(number) * _UNITS[unit or "B"]
        if 0 <= value < 2**63:
            return int(value)
    except (ValueError, KeyError):
        pass
    raise ValueError(
        f"memory_budget must be a number of bytes with one of the units {', '.join(_UNITS)}, such as "
        f"'64 MiB', got {text!r}"
    )
