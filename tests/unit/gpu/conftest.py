# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Functions are lowered for a device once: what is looked at afterwards is what the call runs."""

from __future__ import annotations

from collections.abc import Iterator

import pytest
from simulation import Run, device_for

from graphc.backends import CompileLog
from graphc.backends.cuda import code, pipeline
from graphc.backends.cuda.code import Lowered, lower
from graphc.function.types import Function

_KNOWN: dict[tuple[str, ...], tuple[Lowered, CompileLog]] = {}


def _lower(text: str, arch: str, log: CompileLog | None = None, *, precision: str = "") -> Lowered:
    # Tests change the passes, too, and what makes PTX.
    key = text, arch, str(pipeline.kernels(text, precision)), code.to_ptx.__name__
    if key not in _KNOWN:
        own = CompileLog(stages=[])
        _KNOWN[key] = lower(text, arch, own, precision=precision), own
    lowered, seen = _KNOWN[key]
    if log is not None and log.stages is not None:
        log.stages += seen.stages or []
    return lowered


@pytest.fixture(autouse=True, scope="module")
def lowered_once(quick_ptx: None) -> Iterator[None]:
    """`Function.ir_stages` compiles again, which for kernels takes longer than the test."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(code, "lower", _lower)
        yield


@pytest.fixture
def ready(monkeypatch: pytest.MonkeyPatch) -> Run:
    """Gives a function a device that is not there."""

    def prepare(function: Function) -> Function:
        device_for(monkeypatch, function)
        return function

    return prepare
