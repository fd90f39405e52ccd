# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Settings: one typed object, ``graphc.config``, filled from ``GRAPHC_*`` environment variables at import."""

from __future__ import annotations

import os
import sys
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import field, fields
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any, NoReturn

from graphc.errors import did_you_mean
from graphc_runtime.record import record

FASTMATH = ("off", "contract", "reassoc", "fast")
PRECISIONS = ("float32", "tf32")
CUDA_ARCHITECTURES = ("sm_80", "sm_86", "sm_89", "sm_90", "sm_100")
MODES = ("fast_run", "fast_compile", "interpret", "cuda", "reference", "debug", "tiered")


def _one_of(*choices: str) -> Callable[[Any], str]:
    def parse(value: object) -> str:
        if value not in choices:
            raise ValueError(f"expected one of {', '.join(choices)}, got {value!r}")
        return str(value)

    return parse


def _mode(value: object) -> str:
    text = str(value)
    return _one_of(*MODES)(text.lower())


def _positive_int(value: Any) -> int:
    number = int(value)
    if number < 0:
        raise ValueError(f"expected a number of at least 0, got {value!r}")
    return number


def _boolean(value: object) -> bool:
    text = str(value).lower()
    return _one_of("0", "1", "false", "true")(text) in ("1", "true")


def _default_cache_dir() -> str:
    return os.path.join(os.environ.get("XDG_CACHE_HOME") or os.path.join(Path.home(), ".cache"), "graphc")


def _default_reproducer_dir() -> str:
    return f"{_default_cache_dir()}-reproducers"


def _setting(
    default: object, parse: Callable[[object], object], doc: str, apply: Callable[[Any], None] | None = None
) -> Any:
    kwargs = {"default_factory": default} if callable(default) else {"default": default}
    return field(**kwargs, metadata={"parse": parse, "doc": doc, "apply": apply})


def _set_threads(number: int) -> None:
    """Tells the runtime if it is loaded; `graphc.function.compiled` does when it loads it."""
    runtime = sys.modules.get("graphc_runtime.threads")
    if runtime is not None:
        runtime.set_default_threads(number)


def _enable(setting: str, is_used: bool) -> None:
    """As `_set_threads`."""
    runtime = sys.modules.get("graphc_runtime.cuda.libraries")
    if runtime is not None:
        runtime.enable(setting, is_used)


@record()
class Config:
    """Settings of the compiler. Each can be set in code, or by the environment variable ``GRAPHC_<NAME>``."""

    floatX: str = _setting(
        "float64",
        _one_of("float16", "float32", "float64"),
        "dtype of `vector()`, `shared(1.5)` and other unspecified floats",
    )
    mode: str = _setting("fast_run", _mode, "how functions are compiled when `mode=` is not given")
    on_unused_input: str = _setting(
        "raise", _one_of("raise", "warn", "ignore"), "what to do about function inputs that nothing uses"
    )
    nan_guard: str = _setting(
        "off",
        _one_of("off", "warn", "raise"),
        "for debugging: run functions op by op in Python and report the first op that makes NaN or infinity",
    )
    compute_test_value: str = _setting(
        "off",
        _one_of("off", "ignore", "warn", "raise"),
        "for debugging: operations are computed as they are written, from `tag.test_value` of the inputs; "
        "what is done about an input that has none",
    )
    cache_dir: str = _setting(
        _default_cache_dir, str, "folder of the on-disk cache; empty switches the cache off"
    )
    cache_size_mb: int = _setting(512, _positive_int, "size the on-disk cache is kept below, in MiB")
    workspace_limit_mb: int = _setting(
        1024, _positive_int, "largest workspace that a function keeps for its next call, in MiB"
    )
    threads: int = _setting(
        0,
        _positive_int,
        "number of threads that share large loops; 0 stands for the cores that this process may use",
        apply=_set_threads,
    )
    fastmath: str = _setting(
        "off",
        _one_of(*FASTMATH),
        "what compiled arithmetic may change: nothing, fused multiply-add, also order, also reciprocals",
    )
    flush_denormals: bool = _setting(
        False,
        _boolean,
        "compiled code takes denormal numbers as zeros, with which many processors are faster",
    )
    cuda_arch: str = _setting(
        "sm_90",
        _one_of(*CUDA_ARCHITECTURES),
        "the oldest CUDA device that functions of mode `cuda` are compiled for: its compute capability",
    )
    matmul_precision: str = _setting(
        "float32",
        _one_of(*PRECISIONS),
        "what factors of float32 matrix products have on CUDA devices: all digits, or the 10 bits that "
        "tensor cores multiply",
    )
    cublas: bool = _setting(
        True,
        _boolean,
        "large matrix products and triangular systems on CUDA devices are computed by NVIDIA's library where "
        "it is installed; it counts when a function is called for the first time",
        apply=partial(_enable, "GRAPHC_CUBLAS"),
    )
    cuda_libraries: bool = _setting(
        True,
        _boolean,
        "factorizations of large matrices, convolutions and Fourier transforms on CUDA devices are computed "
        "by NVIDIA's other libraries where they are installed; it counts when a function is called for the "
        "first time",
        apply=partial(_enable, "GRAPHC_CUDA_LIBRARIES"),
    )
    traceback: str = _setting(
        "user",
        _one_of("user", "full"),
        "what uncaught errors show: the lines of the user, or also the frames of graphc between them",
    )
    compile_progress: str = _setting(
        "auto",
        _one_of("on", "off", "auto"),
        "lines on stderr that say how far a compilation is which takes more than two seconds; `auto` waits "
        "five seconds where stderr is no terminal",
    )
    compile_isolated: bool = _setting(
        False,
        _boolean,
        "compile in a helper process, so that a crash of the compiler is a `CompileError` with a reproducer",
    )
    compile_time_limit: int = _setting(
        0,
        _positive_int,
        "seconds after which a helper process that compiles is ended; 0 stands for no limit",
    )
    reproducer_dir: str = _setting(
        _default_reproducer_dir, str, "folder of the files with which a crash of the compiler happens again"
    )
    poison_memory: bool = _setting(
        False,
        _boolean,
        "for tests: compile functions that fill workspaces, temporaries and results with NaN before use, and "
        "fail when memory next to a workspace was written",
    )
    verify_memory: bool = _setting(
        False,
        _boolean,
        "for tests: refuse to compile a function that reads memory after something else was written there, "
        "and verify modules before each pass that folds",
    )

    def __setattr__(self, name: str, value: object) -> None:
        for setting in fields(self):
            if setting.name == name:
                try:
                    parsed = setting.metadata["parse"](value)
                except (TypeError, ValueError) as error:
                    raise ValueError(f"config.{name}: {error}") from None
                object.__setattr__(self, name, parsed)
                if setting.metadata["apply"] is not None:
                    setting.metadata["apply"](parsed)
                return
        raise _no_setting(self, name)

    def _not_found(self, name: str) -> NoReturn:
        raise _no_setting(self, name)

    if not TYPE_CHECKING:  # which knows all settings
        __getattr__ = _not_found

    @contextmanager
    def change_flags(self, mapping: Mapping[str, object] | None = None, **kwargs: object) -> Iterator[Config]:
        """Change settings inside a ``with`` block or a decorated function, and restore them after it.

        Args:
            mapping: settings by name.
            kwargs: more settings by name.
        """
        changes = {**(mapping or {}), **kwargs}
        before = {name: getattr(self, name) for name in changes}
        try:
            for name, value in changes.items():
                setattr(self, name, value)
            yield self
        finally:
            for name, value in before.items():
                setattr(self, name, value)

    def table(self) -> list[tuple[str, str, Any, str]]:
        """One row for each setting: name, environment variable, present value, meaning."""
        return [
            (f.name, f"GRAPHC_{f.name.upper()}", getattr(self, f.name), f.metadata["doc"])
            for f in fields(self)
        ]


def _no_setting(settings: Config, name: str) -> AttributeError:
    known = [setting.name for setting in fields(settings)]
    hint = did_you_mean(name, known) or f"; the settings are {', '.join(known)}"
    return AttributeError(f"there is no setting {name!r}{hint}")


def _from_environment() -> Config:
    values: dict[str, Any] = {f.name: os.environ.get(f"GRAPHC_{f.name.upper()}") for f in fields(Config)}
    return Config(**{name: value for name, value in values.items() if value is not None})


config = _from_environment()
