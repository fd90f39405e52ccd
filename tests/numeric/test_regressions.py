# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Mistakes that were found once: each test is the smallest program that showed one."""

from __future__ import annotations

import importlib.util
from typing import Any

import numpy as np
import pytest

import graphc
import graphc.tensor as pt

COMPILED_MODES = ["fast_run", "fast_compile"]
EXTREMES = (-(2**63), -(2**63) + 1, -(2**62), -3, -1, 0, 1, 2, 2**62, 2**63 - 1)


@pytest.mark.parametrize("mode", COMPILED_MODES)
@pytest.mark.parametrize("sizes", [(2**32, 2**32), (2**31, 2**31), (2**61, 8), (2**62, 4)], ids=str)
def test_bytes_of_a_temporary_do_not_wrap_around(mode: str, sizes: tuple[int, int]) -> None:
    n, m = pt.lscalars("n", "m")
    part = pt.zeros((n, m))[1:3, 2:4].set(1.0)[1:2, 2:3]
    function = graphc.function([n, m], part, mode=mode)
    with pytest.raises((MemoryError, ValueError), match=r"memory"):
        function(*sizes)
    np.testing.assert_array_equal(function(3, 4), [[1.0]])


@pytest.mark.parametrize("mode", COMPILED_MODES)
def test_element_counts_of_reshape_do_not_wrap_around(mode: str) -> None:
    x, n, m = pt.vector("x"), pt.lscalar("n"), pt.lscalar("m")
    function = graphc.function([x, n, m], pt.exp(x).reshape((n, m))[:2, :2], mode=mode)
    for sizes in ((2**32, 2**32), (2**63 - 1, 2), (2**62, 4)):
        with pytest.raises(ValueError, match="cannot reshape an array of 0 elements"):
            function(np.zeros(0), *sizes)
    assert function(np.zeros(0), 5, 0).shape == (2, 0)
    assert function(np.zeros(6), 3, 2).shape == (2, 2)


@pytest.mark.parametrize("mode", COMPILED_MODES)
def test_sizes_that_are_only_read_do_not_wrap_around(mode: str) -> None:
    n, x, y = pt.lscalar("n"), pt.vector("x"), pt.vector("y")
    z, wide = pt.alloc(np.int8(0), n), pt.alloc(np.int8(0), n, 2)
    large = [
        *(pt.repeat(z, 8).shape, pt.tile(z, 8).shape, pt.concatenate([z] * 8).shape, pt.arange(n).size * 8),
        *(pt.outer(z, z).size, (z[:, None] + z).size, pt.linalg.kron(wide, wide).shape, pt.eye(n).size),
        *(
            pt.dot(wide, wide.T).size,
            wide[pt.zeros((n, n), dtype="int64")].size,
            pt.meshgrid(z, z, z)[0].size,
        ),
    ]
    function = graphc.function([n], large, mode=mode)
    assert [list(np.atleast_1d(size)) for size in function(3)[:5]] == [[24], [24], [24], [24], [9]]
    for output in (large[0], large[2], large[3], large[4], large[8], large[10]):
        with pytest.raises(ValueError, match="memory holds at most"):
            graphc.function([n], output, mode=mode)(2**61 if output in large[:4] else 2**40)
    # What makes sizes right is tested although nobody needs an element, as in PyTensor.
    for output in ((x + y).shape, graphc.grad((x + y).sum(), x), pt.zeros_like(pt.exp(x * y))):
        with pytest.raises(ValueError, match="must agree"):
            graphc.function([x, y], output, mode=mode)(np.ones(3), np.ones(4))


def test_no_type_has_more_bytes_than_numbers_of_64_bits_count() -> None:
    for make in (
        lambda: pt.alloc(0.0, 2**61),
        lambda: pt.repeat(pt.zeros(2**61, dtype="int8"), 8),
        lambda: pt.zeros((2**40, 0, 2**40)),
        lambda: pt.concatenate([pt.zeros(2**62, dtype="int8")] * 2),
        lambda: pt.outer(pt.zeros(2**32), pt.zeros(2**32)),
    ):
        with pytest.raises(ValueError, match="too large"):
            make()


@pytest.mark.parametrize("mode", COMPILED_MODES)
def test_slices_with_extreme_bounds(mode: str) -> None:
    x, bounds = pt.vector("x"), pt.lscalars("a", "b", "c")
    part = x[slice(*bounds)]
    function = graphc.function([x, *bounds], [part, part.inc(1.0)], mode=mode)
    for data in (np.zeros(0), np.arange(5.0)):
        for start in EXTREMES:
            for stop in EXTREMES:
                for step in filter(None, EXTREMES):
                    got, increased = function(data, start, stop, step)
                    expected = data.copy()
                    expected[start:stop:step] += 1
                    np.testing.assert_array_equal(got, data[start:stop:step])
                    np.testing.assert_array_equal(increased, expected)


@pytest.mark.parametrize("step", [2**62, 2**63 - 1, -(2**62), -(2**63)])
@pytest.mark.parametrize("mode", COMPILED_MODES)
def test_slices_with_an_extreme_literal_step(mode: str, step: int) -> None:
    x = pt.vector("x")
    data = np.arange(5.0)
    np.testing.assert_array_equal(graphc.function([x], x[::step], mode=mode)(data), data[::step])


@pytest.mark.parametrize("mode", [*COMPILED_MODES, "reference"])
@pytest.mark.parametrize("reduction", [pt.max, pt.argmin])
def test_extremes_of_empty_axes_are_errors_even_without_results(mode: str, reduction: Any) -> None:
    x = pt.matrix("x")
    function = graphc.function([x], reduction(x, axis=0), mode=mode)
    for columns in (0, 3):
        with pytest.raises(ValueError):
            function(np.zeros((0, columns)))
    assert function(np.zeros((3, 0))).shape == (0,)


@pytest.mark.parametrize("mode", [*COMPILED_MODES, "reference"])
def test_an_infinite_imaginary_part_leaves_the_real_part_alone(mode: str) -> None:
    x, y = pt.vectors("x", "y")
    z = graphc.function([x, y], pt.complex(x, y), mode=mode)(np.ones(3), np.array([np.inf, -np.inf, np.nan]))
    np.testing.assert_array_equal(z.real, np.ones(3))
    np.testing.assert_array_equal(z.imag, [np.inf, -np.inf, np.nan])


@pytest.mark.parametrize("mode", [*COMPILED_MODES, "reference"])
def test_the_second_operand_may_be_the_longer_one(mode: str) -> None:
    a, b = pt.tensor("a", shape=(2, 3)), pt.tensor("b", shape=(2, 1))
    values = np.arange(6.0).reshape(2, 3), np.ones((2, 1))
    found = graphc.function([a, b], pt.broadcast_arrays(a, b), mode=mode)(*values)
    for got, want in zip(found, np.broadcast_arrays(*values), strict=True):
        np.testing.assert_array_equal(got, want)


@pytest.mark.parametrize("mode", [*COMPILED_MODES, "reference"])
def test_traces_of_batches_in_linalg_are_those_of_the_last_axes(mode: str) -> None:
    x = pt.tensor3("x")
    data = np.arange(24.0).reshape(2, 3, 4)
    outputs = [pt.linalg.trace(x), pt.linalg.diagonal(x, offset=1)]
    trace, diagonal = graphc.function([x], outputs, mode=mode)(data)
    np.testing.assert_array_equal(trace, np.linalg.trace(data))
    np.testing.assert_array_equal(diagonal, np.linalg.diagonal(data, offset=1))


def test_linspace_keeps_the_precision_of_its_ends() -> None:
    ends = pt.fscalar("low"), pt.fscalar("high")
    result = graphc.function(list(ends), pt.linspace(*ends, 5))(np.float32(0.1), np.float32(2))
    np.testing.assert_allclose(result, np.linspace(np.float32(0.1), np.float32(2), 5), rtol=1e-6)
    assert result.dtype == np.float32


def test_old_names_of_linalg_have_all_its_functions() -> None:
    import graphc.tensor.nlinalg
    import graphc.tensor.slinalg

    assert graphc.tensor.nlinalg.det is pt.linalg.det
    assert graphc.tensor.slinalg.cholesky is pt.linalg.cholesky
    assert pt.slinalg.__all__ == pt.linalg.__all__ and "det" in dir(pt.nlinalg)


def test_modules_have_the_names_of_pytensor_too() -> None:
    import graphc.tensor.basic as basic
    from graphc.tensor.math import int_div
    from graphc.tensor.type import TensorType
    from graphc.tensor.variable import TensorConstant, TensorSharedVariable

    assert basic.as_tensor_variable is pt.as_tensor_variable and int_div is pt.floor_divide
    assert TensorType is pt.TensorType and TensorConstant is pt.TensorConstant
    assert isinstance(graphc.shared(1.0), TensorSharedVariable)
    assert issubclass(basic.NotScalarConstantError, Exception)
    for name in ("basic", "math", "nlinalg", "slinalg", "type", "variable"):
        assert getattr(pt, name) is importlib.import_module(f"graphc.tensor.{name}")
        assert importlib.util.find_spec(f"graphc.tensor.{name}") is not None


def test_a_function_without_arguments_has_no_context() -> None:
    """A loop nest that was moved to a function of its own and has nothing left to do."""
    from graphc.passes.run import run_pipeline
    from graphc_dialects._mlir import ir
    from graphc_dialects.dialect import new_context

    text = "llvm.func @graphc_part_0() attributes {graphc.part} {\n  llvm.return\n}"
    module = ir.Module.parse(text, context=new_context())
    run_pipeline(module, ["graphc-arena-allocation"])
    assert "llvm.return" in str(module)
