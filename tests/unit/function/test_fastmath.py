# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Levels of fast math: what each may change, and that the default changes nothing."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import graphc
import graphc.tensor as pt

A = np.array([1e200, 1 / 3, 3.0, 1e16] * 8)
B = np.array([1e200, 3.0, 7.0, 1.0] * 8)
C = np.array([np.inf, 1.0, 21.0, 1.0] * 8)


def _run(level: str | None) -> list[np.ndarray]:
    x, y, z = pt.vectors("x", "y", "z")
    f = graphc.function([x, y, z], [x * y - z, (x + y) - x], fastmath=level)
    result: list[np.ndarray] = f(A, B, C)
    return result


def test_the_default_rounds_and_overflows_as_numpy() -> None:
    with np.errstate(all="ignore"):
        for level in (None, "off"):
            got = _run(level)
            np.testing.assert_array_equal(got[0], A * B - C)
            np.testing.assert_array_equal(got[1], (A + B) - A)


def test_contraction_rounds_once() -> None:
    got = _run("contract")
    assert abs(got[0][1]) in (0.0, 2.0**-54)
    np.testing.assert_array_equal(got[1], (A + B) - A)


@pytest.mark.parametrize("level", ["reassoc", "fast"])
def test_other_levels_keep_nan_and_infinity(level: str) -> None:
    x = pt.vector("x")
    v = np.array([np.nan, np.inf, -np.inf, 1.0, 2.0])
    outputs = [pt.isnan(x + 1.0), x * 2.0, pt.sum(x), x.astype("int64"), pt.isinf(x / 3.0)]
    got = graphc.function([x], outputs, fastmath=level)(v)
    np.testing.assert_array_equal(got[0], np.isnan(v))
    np.testing.assert_array_equal(got[1], v * 2)
    assert np.isnan(got[2])
    np.testing.assert_array_equal(got[4], np.isinf(v))


def _flags(f: Any) -> str:
    return dict(f.ir_stages())["llvm"]


@pytest.mark.parametrize(
    "level, flags", [("contract", "contract"), ("reassoc", "reassoc"), ("fast", "arcp"), ("off", None)]
)
def test_flags_are_in_the_code(level: str, flags: str | None) -> None:
    x, y = pt.vectors("x", "y")
    f = graphc.function([x, y], (x * y + x) / y, fastmath=level)
    text = _flags(f)
    assert (flags in text) if flags else ("fastmath" not in text)
    assert "nnan" not in text and "ninf" not in text
    assert f.report.fastmath == level


def test_the_level_is_part_of_the_cache_key(tmp_path: Any) -> None:
    x, y, z = pt.vectors("x", "y", "z")
    with graphc.config.change_flags(cache_dir=str(tmp_path)):
        reports = [
            graphc.function([x, y, z], x * y - z, fastmath=level).report for level in ("off", "contract")
        ]
        again = graphc.function([x, y, z], x * y - z, fastmath="contract").report
    assert [report.cache for report in (*reports, again)] == [["miss"], ["miss"], ["hit"]]


def test_the_setting() -> None:
    x = pt.vector("x")
    with graphc.config.change_flags(fastmath="reassoc"):
        f = graphc.function([x], x + 1.0)
    assert f.report.fastmath == "reassoc"
    assert f.copy(swap={}).report.fastmath == "reassoc" if hasattr(f, "copy") else True
    with pytest.raises(ValueError, match="fastmath must be one of off, contract, reassoc, fast, got 'yes'"):
        graphc.function([x], x + 1.0, fastmath="yes")
    with pytest.raises(ValueError, match=r"config.fastmath: expected one of off"):
        graphc.config.fastmath = "yes"
