# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Denormal numbers flushed to zero: where they are, and that nobody else's arithmetic changes."""

from __future__ import annotations

import ctypes
import signal
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import numpy as np
import pytest

import graphc
import graphc.tensor as pt
from graphc.backends.cpu.object import compile_to_object, this_machine
from graphc.errors import CompileError
from graphc.library.float_environment import FLUSH, SAVE, SET, environment_ir
from graphc_runtime import layout, progress
from graphc_runtime.loader import load_object

TINY = np.finfo(np.float64).tiny


def _keeps_denormals() -> bool:
    """Whether this thread computes with denormal numbers, as operands and as results."""
    smallest = float(TINY)
    half = smallest * 0.5
    return half != 0.0 and half + half == smallest


@pytest.fixture(autouse=True)
def _nothing_leaks() -> Iterator[None]:
    assert _keeps_denormals()
    yield
    assert _keeps_denormals()


def _flushed(inputs: list[Any], outputs: Any, **options: Any) -> Any:
    return graphc.function(inputs, outputs, flush_denormals=True, **options)


@pytest.mark.parametrize("mode", ["fast_run", "fast_compile"])
@pytest.mark.parametrize("dtype", ["float64", "float32"])
def test_results_and_operands_become_zeros(mode: str, dtype: str) -> None:
    x = pt.vector("x", dtype=dtype)
    tiny = np.finfo(dtype).tiny
    values = np.array([tiny, -tiny, tiny / 4, 1.0], dtype)
    half, eight = values.dtype.type(0.5), values.dtype.type(8)
    outputs = [x * half, x * eight]
    halves, eights = _flushed([x], outputs, mode=mode)(values)
    np.testing.assert_array_equal(halves, np.array([0.0, -0.0, 0.0, 0.5], dtype))
    assert np.signbit(halves[1])
    np.testing.assert_array_equal(eights, np.array([8 * tiny, -8 * tiny, 0.0, 8.0], dtype))
    for got, factor in zip(graphc.function([x], outputs, mode=mode)(values), (half, eight), strict=True):
        np.testing.assert_array_equal(got, values * factor)


@pytest.mark.parametrize("tier", ["struct", "buffer", "python"])
def test_every_form_of_call(tier: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(layout, "tier", lambda: tier)
    x = pt.vector("x")
    with graphc.config.change_flags(cache_dir=""):
        f = _flushed([x], x * 0.5)
    entries = f.executor.executable.manifest.entries
    assert entries == (() if tier == "python" else (tier,))
    for call in (f, lambda v: f(v, out=np.ones(2)), lambda v: f(list(v))):
        np.testing.assert_array_equal(call(np.array([TINY, 2.0])), [0.0, 1.0])


def test_sizes_are_computed_the_same_way() -> None:
    x = pt.dscalar("x")
    grid = pt.arange(0.0, x * 2.0**1020, 2.0**-6)
    assert len(graphc.function([x], grid)(TINY / 2)) == 8
    assert len(_flushed([x], grid)(TINY / 2)) == 0


def test_errors_restore_the_environment() -> None:
    x, y = pt.vectors("x", "y")
    f = _flushed([x, y], (x * 0.5 + y).sum())
    with pytest.raises(ValueError):
        f(np.ones(3), np.ones(2))
    assert _keeps_denormals()
    f = _flushed([x], pt.linalg.cholesky(pt.outer(x, x) * 0.5))
    with pytest.raises(np.linalg.LinAlgError):
        f(np.array([0.0, 1.0]))


def test_decaying_gradients() -> None:
    """The cotangents of an autoregression that nobody reads reach zero instead of the smallest numbers."""
    x, a = pt.vector("x"), pt.dscalar("a")
    h = graphc.scan(lambda r, h: a * h + r, x, pt.constant(0.0), return_updates=False)
    g = graphc.grad(h[-1], x)
    values = np.ones(3000)
    flushed, kept = _flushed([x, a], g)(values, 0.5), graphc.function([x, a], g)(values, 0.5)
    assert ((kept > 0) & (kept < TINY)).any()
    np.testing.assert_array_equal(flushed, np.where(kept < TINY, 0.0, kept))


def test_threads_that_help_compute_as_their_caller() -> None:
    x = pt.vector("x")
    y = pt.exp(x) * TINY * 0.25
    flushed, kept = _flushed([x], y), graphc.function([x], y)
    values = np.zeros(1_000_000)
    with graphc.threads(4):
        for _ in range(3):
            assert not flushed(values).any()
            assert (kept(values) == TINY * 0.25).all()
            with _environment_of_the_caller():
                assert not kept(values).any()


@contextmanager
def _environment_of_the_caller() -> Iterator[None]:
    """A thread that flushes denormal numbers by itself."""
    text = environment_ir(this_machine().triple)
    for name in (SAVE, SET, FLUSH):
        text += f"define void @test_{name}(ptr %p) {{\n  call void @{name}(ptr %p)\n  ret void\n}}\n"
    exports = [f"test_{name}" for name in (SAVE, SET, FLUSH)]
    code = load_object(compile_to_object(text, exports=exports), {}.get)
    save, set_, flush = (
        ctypes.CFUNCTYPE(None, ctypes.c_void_p)(code.address(f"test_{name}")) for name in (SAVE, SET, FLUSH)
    )
    slot = (ctypes.c_uint64 * 1)()
    save(slot)
    flush(slot)
    try:
        assert not _keeps_denormals()
        yield
        assert not _keeps_denormals()
    finally:
        set_(slot)


def test_a_caller_that_flushes_goes_on_doing_so() -> None:
    x = pt.vector("x")
    f = _flushed([x], x * 0.5)
    with _environment_of_the_caller():
        f(np.array([TINY]))


def _logistic(**options: Any) -> Any:
    c, n = pt.dscalar("c"), pt.lscalar("n")
    y = graphc.scan(lambda y: 3.9 * y * (1 - y), outputs_info=c, n_steps=n, return_updates=False, **options)[
        -1
    ]
    return _flushed([c, n], y)


def test_signal_handlers_run_in_the_environment_of_the_caller() -> None:
    f = _logistic()
    seen: list[bool] = []

    def handler(*_: Any) -> None:
        seen.append(_keeps_denormals())
        if len(seen) == 2:
            raise KeyboardInterrupt

    before = signal.signal(signal.SIGINT, handler)
    timers = [threading.Timer(delay, signal.raise_signal, [signal.SIGINT]) for delay in (0.3, 0.7)]
    try:
        for timer in timers:
            timer.start()
        with pytest.raises(KeyboardInterrupt):
            f(0.3, 10**11)
    finally:
        for timer in timers:
            timer.cancel()
        signal.signal(signal.SIGINT, before)
    assert seen == [True, True]


def test_progress_is_reported_in_the_environment_of_the_caller(monkeypatch: pytest.MonkeyPatch) -> None:
    seen: list[bool] = []
    monkeypatch.setattr(progress, "report", lambda *_: seen.append(_keeps_denormals()))
    _logistic(progress=True)(0.3, 1000)
    assert seen
    assert all(seen)


def test_part_of_the_cache_key_and_of_copies(tmp_path: Any) -> None:
    x = pt.vector("x")
    values = np.array([TINY])
    with graphc.config.change_flags(cache_dir=str(tmp_path)):
        kept = [graphc.function([x], x * 0.5) for _ in range(2)]
        flushed = [_flushed([x], x * 0.5) for _ in range(2)]
        with graphc.config.change_flags(flush_denormals=True):
            flushed.append(graphc.function([x], x * 0.5))
            assert graphc.function([x], x * 0.5, flush_denormals=False)(values) != 0
        assert [f.report.cache for f in (*kept, *flushed)] == [["miss"], ["hit"], ["miss"], ["hit"], ["hit"]]
        assert all(f(values) != 0 for f in kept) and not any(f(values) for f in flushed)
        assert not flushed[0].copy()(values)


def test_processors_that_cannot_are_refused() -> None:
    assert "fpcr" in environment_ir("aarch64-apple-darwin")
    with pytest.raises(CompileError, match=r"x86-64 and AArch64, not on riscv64-unknown-linux-gnu"):
        environment_ir("riscv64-unknown-linux-gnu")
