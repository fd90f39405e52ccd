# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""``f.report.roofline``: counts are exact, whatever the machine does at the time."""

from __future__ import annotations

import copy
import gc
import pickle

import numpy as np
import pytest

import graphc
import graphc.tensor as pt
from graphc import inspect
from graphc.inspect import roofline
from graphc.inspect.roofline import MachineLimits, machine_limits
from graphc.scan import until

LIMITS = MachineLimits(float64=4e9, float32=8e9, bandwidth=1e9, cores=2)
x, y, m, w = pt.vector("x"), pt.vector("y"), pt.matrix("m"), pt.matrix("w")


@pytest.fixture(autouse=True)
def known_machine(monkeypatch):
    monkeypatch.setattr(inspect, "machine_limits", lambda: LIMITS)


def test_a_product_has_two_operations_for_each_multiplication():
    f = graphc.function([m, w], m @ w)
    (row,) = f.report.roofline((300, 70), (70, 50)).rows
    assert (row.flops, row.functions) == (2 * 300 * 70 * 50, {})
    assert row.bytes == 8 * (300 * 70 + 70 * 50 + 300 * 50)
    assert row.ops == ("Matmul",) and row.lines[0].file == __file__
    assert row.intensity == row.flops / row.bytes
    assert row.bound == "arithmetic" and row.least_seconds == row.flops / 4e9


@pytest.mark.parametrize("dtype", ["float32", "complex128"])
def test_element_types(dtype):
    a, b = pt.matrix("a", dtype=dtype), pt.matrix("b", dtype=dtype)
    (row,) = graphc.function([a, b], a @ b).report.roofline((64, 32), (32, 48)).rows
    scale, item = (1, 4) if dtype == "float32" else (4, 16)
    assert row.flops == scale * 2 * 64 * 32 * 48
    assert row.bytes == item * (64 * 32 + 32 * 48 + 64 * 48)
    assert row.arithmetic_seconds == row.flops / (8e9 if dtype == "float32" else 4e9)


def test_small_products_of_known_sizes():
    a, b = pt.tensor("a", shape=(4, 5)), pt.tensor("b", shape=(5, 6))
    (row,) = graphc.function([a, b], a @ b).report.roofline().rows
    assert (row.flops, row.bytes) == (2 * 4 * 5 * 6, 8 * (20 + 30 + 24))


def test_elements():
    f = graphc.function([x, y], pt.exp(x) * y + 1)
    (row,) = f.report.roofline((1000,), (1000,)).rows
    assert (row.flops, row.functions, row.bytes) == (2000, {"exp": 1000}, 24_000)
    assert row.bound == "memory" and row.expanded["f64"] > 2000 + 10 * 1000


def test_integers_have_no_operations():
    i = pt.lvector("i")
    (row,) = graphc.function([i], i * 2 + 1).report.roofline((100,)).rows
    assert (row.flops, row.bytes, row.bound, row.intensity) == (0, 1600, "memory", 0.0)


def test_a_neighbour_is_read_once():
    (row,) = graphc.function([x], x[1:] - x[:-1]).report.roofline((1001,)).rows
    assert (row.flops, row.bytes) == (1000, 8 * (1001 + 1000))


def test_rows_are_read_once_by_several_sweeps():
    found = graphc.function([m], pt.special.softmax(m, axis=1)).report.roofline((40, 500))
    (row,) = found.rows
    # A maximum, a difference, a sum and a product for each element; two more for each row.
    assert (row.flops, row.functions) == (40 * (4 * 500 + 2), {"exp": 40 * 500})
    assert 16 * 40 * 500 <= row.bytes <= 16 * 40 * 500 + 3 * 8 * 40


@pytest.mark.parametrize("size", [0, 1, 1000, 4096, 4097, 100_000, 1_234_567])
def test_a_sum_in_parts(size):
    found = graphc.function([x], (x * x).sum()).report.roofline((size,))
    # Each element two, each block of 4096 in a part one, each part one.
    part = min(max((-(-size // 64) + 4095) // 4096 * 4096, 16384), size)
    starts = range(0, size, part) if size else ()
    blocks = sum(-(-(min(start + part, size) - start) // 4096) for start in starts)
    assert found.flops == 2 * size + blocks + len(starts)
    assert found.bytes == 8 * size + 8


def test_a_scan_counts_its_steps():
    u, h0 = pt.matrix("u"), pt.vector("h0")
    h = graphc.scan(lambda v, h: pt.tanh(h @ m + v), sequences=[u], outputs_info=[h0], return_updates=False)
    found = graphc.function([u, m, h0], h).report.roofline((100, 8), (8, 8), (8,))
    loop = found.rows[-1]
    assert (loop.flops, loop.functions) == (100 * (2 * 8 * 8 + 8), {"tanh": 100 * 8})
    # The matrix is read once, not in each step; so is the memory that steps share.
    assert 8 * (2 * 100 * 8 + 64 + 8) <= loop.bytes <= 8 * (2 * 100 * 8 + 64 + 3 * 8)


def test_loops_of_scalars():
    h = graphc.scan(
        lambda v, h: 0.9 * h + v, sequences=[x], outputs_info=[pt.constant(0.0)], return_updates=False
    )
    found = graphc.function([x], h).report.roofline((50_000,))
    assert (found.flops, found.bytes) == (2 * 50_000, 16 * 50_000)


def test_an_unknown_number_of_steps():
    start = pt.scalar("start")
    h = graphc.scan(
        lambda h: (h * 1.5, until(h > 10)), outputs_info=[start], n_steps=100, return_updates=False
    )
    found = graphc.function([start], h[-1]).report.roofline(1.0)
    assert found.flops is None and "? flops" in str(found)


def test_positions_count_as_often_as_they_are_used():
    i = pt.lvector("i")
    found = graphc.function([x, i], x[i]).report.roofline((1_000_000,), (500,))
    assert found.bytes == 500 * 24
    assert graphc.function([x, i], x[i]).report.roofline((10,), (500,)).bytes == 80 + 500 * 16


def test_kernels_of_the_library_have_bytes_only():
    f = graphc.function([m], pt.linalg.cholesky(m))
    found = f.report.roofline((50, 50))
    assert found.flops is None and found.bytes == 16 * 2500 and found.unknown == ["cholesky"]
    assert "not counted: the operations of cholesky" in str(found)


def test_sizes_that_are_not_given():
    found = graphc.function([m, w], m @ w).report.roofline((300, 70))
    assert found.flops is None and found.bytes is None and found.share is None
    assert "? flops, ? bytes" in str(found)


def test_values_are_timed():
    f = graphc.function([m, w], pt.tanh(m @ w), profile=True, name="layer")
    values = np.ones((60, 70)), np.ones((70, 50))
    found = f.report.roofline(*values)
    assert found.seconds is not None and found.share == found.least_seconds / found.seconds
    assert [row.seconds is not None for row in found.rows] == [True, True]
    assert found.rows[0].peak_share == found.rows[0].arithmetic_seconds / found.rows[0].seconds
    assert "roofline of layer: " in str(found) and "of the limit" in str(found)
    assert f.report.roofline(*values, seconds=1.0).seconds == 1.0


def test_calls_that_change_something_are_not_timed():
    state = graphc.shared(np.zeros(3), name="state")
    f = graphc.function([x], x + state, updates={state: state + 1})
    assert f.report.roofline(np.ones(3)).seconds is None
    assert (state.get_value() == 0).all()


def test_notebooks_get_a_table():
    shown = graphc.function([x], x + 1, name="a<b").report.roofline((10,))._repr_html_()
    assert "<table>" in shown and "a&lt;b" in shown and shown.count("<tr>") == 2


def test_wrong_arguments():
    f = graphc.function([x], x + 1)
    with pytest.raises(TypeError, match="takes 1 inputs, got 2"):
        f.report.roofline((3,), (3,))
    with pytest.raises(TypeError, match="x has 1 dimensions, got the shape"):
        f.report.roofline((3, 3))


def test_a_report_without_its_function():
    f = graphc.function([x], x + 1, name="gone")
    report = f.report
    assert pickle.loads(pickle.dumps(f)).report.roofline((3,)).flops == 3
    assert copy.copy(f).report.roofline((3,)).flops == 3
    del f
    gc.collect()
    with pytest.raises(ReferenceError, match="gone does not exist any more"):
        report.roofline((3,))


def test_functions_in_python_have_no_kernels():
    f = graphc.function([x], x + 1, mode="reference")
    assert f.report.roofline(np.ones(3)).rows == []


def test_limits_are_measured_once(monkeypatch, tmp_path):
    measured = []

    def measure() -> MachineLimits:
        measured.append(1)
        return MachineLimits(float(len(measured)), 2.0, 3.0, 4)

    monkeypatch.setattr(roofline, "measure", measure)
    with graphc.config.change_flags(cache_dir=str(tmp_path)):
        roofline._limits.cache_clear()
        first = machine_limits()
        roofline._limits.cache_clear()
        assert machine_limits() == first and len(measured) == 1
        assert machine_limits(renew=True) == MachineLimits(2.0, 2.0, 3.0, 4)
    roofline._limits.cache_clear()


def test_limits_are_numbers(monkeypatch):
    monkeypatch.setattr(roofline, "_LEAST", 0.0)
    monkeypatch.setattr(roofline, "_ROWS", 32)
    monkeypatch.setattr(roofline, "_ELEMENTS", 1000)
    found = roofline.measure()
    assert found.cores >= 1 and "GFLOP/s" in str(found)
    assert all(0 < value < 1e18 for value in (found.float64, found.float32, found.bandwidth))
