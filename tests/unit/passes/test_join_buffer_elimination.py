# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Joins are computed in place: no buffer and no copy is left, and nothing is read too late or too early."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import pairwise
from typing import Any

import numpy as np
import pytest
from pipelines import Graph, compile_text, module_of

import graphc
import graphc.tensor as pt
from graphc.backends.cpu.pipeline import FAST_RUN
from graphc.ir.rewrite import Rewriter
from graphc.ir.size import Size, SizesOf
from graphc.passes.graph._joins import Joined, Tile, arrange
from graphc.passes.run import run_pipeline
from graphc_dialects._mlir import ir

from ._semantics import context

RNG = np.random.default_rng(0)
FLAG = "graphc-join-buffer-elimination"


def matrices(count: int, *shape: int) -> tuple[list[Any], list[np.ndarray]]:
    """Arguments of unknown sizes, and their values."""
    variables = [pt.tensor(f"m{i}", dtype="float64", shape=(None,) * len(shape)) for i in range(count)]
    return variables, [RNG.standard_normal(shape) for _ in range(count)]


def buffers(variables: Sequence[Any], results: Sequence[Any], entries: Any = FAST_RUN) -> str:
    """`@main` before its buffers get their places in memory."""
    text, _ = module_of(Graph(list(variables), [], list(results)))
    last = next(i for i, (flag, _) in enumerate(entries) if flag.startswith("graphc-hoist-allocations"))
    with context(), ir.Location.unknown():
        module = ir.Module.parse(text)
        run_pipeline(module, [flag for flag, _ in entries[:last]])
        return str(module).partition("@shapes")[0]


def assert_in_place(
    variables: Sequence[Any], values: Sequence[np.ndarray], results: Sequence[Any], allocations: int = 0
) -> list[Any]:
    """Asserts that there are so many buffers and no copy; returns what is computed."""
    main = buffers(variables, results)
    assert main.count("memref.alloc") == allocations and "memref.copy" not in main, main
    text, arguments = module_of(Graph(list(variables), list(values), list(results)))
    return list(compile_text(text, FAST_RUN, opt_level=1)(*arguments))


def same(have: Any, want: Any) -> None:
    np.testing.assert_allclose(have, want, 1e-12, 1e-12)


@pytest.mark.parametrize("axis", [0, 1, -1])
def test_elementwise_and_products_of_any_axis(axis):
    (x, y), (a, b) = matrices(2, 4, 4)
    out = pt.concatenate([pt.exp(x), x @ y, (y * 2).T], axis=axis)
    (result,) = assert_in_place([x, y], [a, b], [out])
    same(result, np.concatenate([np.exp(a), a @ b, (b * 2).T], axis=axis))


def test_flattened():
    (x, y), (a, b) = matrices(2, 3, 5)
    out = pt.concatenate([pt.exp(x).ravel(), (y + 1).T.ravel(), (x * y).sum(axis=0), y.max().reshape((1,))])
    main = buffers([x, y], [out])
    # The transpose between y + 1 and the ravel is no view of a slice.
    assert main.count("memref.alloc(") <= 1 and "memref.copy" not in main, main
    same(
        graphc.function([x, y], out)(a, b),
        np.concatenate([np.exp(a).ravel(), (b + 1).T.ravel(), (a * b).sum(0), [b.max()]]),
    )


def model(sizes: Sequence[int]) -> tuple[list[Any], list[np.ndarray], Any, list[Any]]:
    """Arguments of a perceptron, their values, the gradients by its parameters, and the parameters."""
    x, t = pt.matrix("x"), pt.matrix("t")
    parameters, values = [], []
    for i, (n, m) in enumerate(pairwise(sizes)):
        for shape in ((n, m), (m,)):
            parameters.append(pt.tensor(f"p{i}{len(shape)}", dtype="float64", shape=shape))
            values.append(RNG.standard_normal(shape) / np.sqrt(n))
    h = x
    for i in range(0, len(parameters), 2):
        h = h @ parameters[i] + parameters[i + 1]
        h = pt.tanh(h) if i + 2 < len(parameters) else h
    gradients = graphc.grad(((h - t) ** 2).mean(), parameters)
    arguments = [RNG.standard_normal((7, sizes[0])), RNG.standard_normal((7, sizes[-1])), *values]
    return [x, t, *parameters], arguments, gradients, parameters


def test_a_flattened_gradient_takes_no_more_memory_than_the_gradients():
    """20 parameter arrays of mixed shapes."""
    variables, values, gradients, parameters = model([6, 9, 17, 5, 12, 8, 8, 20, 3, 4, 2])
    assert len(parameters) == 20
    flat = pt.concatenate([g.ravel() for g in gradients])
    separate = buffers(variables, gradients)
    joined = buffers(variables, [flat])
    assert joined.count("memref.alloc") == separate.count("memref.alloc"), joined
    assert "memref.copy" not in joined, joined
    want = np.concatenate([g.ravel() for g in graphc.function(variables, gradients)(*values)])
    same(graphc.function(variables, flat)(*values), want)


def test_a_value_has_one_destination():
    (x, y), (a, b) = matrices(2, 3, 2)
    e = pt.exp(x)
    outs = [pt.concatenate([e, e, y * 2]), pt.concatenate([y + 1, e]), e, e * 3]
    first, second, third, fourth = assert_in_place([x, y], [a, b], outs)
    e = np.exp(a)
    same(first, np.concatenate([e, e, b * 2]))
    same(second, np.concatenate([b + 1, e]))
    same(third, e)
    same(fourth, e * 3)


@pytest.mark.parametrize(("axis", "apart"), [(0, 2), (1, 0)])
def test_what_would_be_slow_in_a_column_is_computed_apart(axis, apart):
    """Sums that are added to again and again, row by row; those of a row are stored once."""
    (x, y), (a, b) = matrices(2, 5, 3)
    out = pt.stack([pt.exp(x).sum(axis=axis), pt.tanh(y).sum(axis=axis)], axis=1)
    assert buffers([x, y], [out]).count("memref.alloc") == apart
    same(graphc.function([x, y], out)(a, b), np.stack([np.exp(a).sum(axis), np.tanh(b).sum(axis)], axis=1))


def test_nested_joins_along_different_axes_have_one_buffer():
    (x, y), (a, b) = matrices(2, 2, 3)
    top = pt.concatenate([pt.exp(x), y * 2], axis=1)
    bottom = pt.concatenate([x - 1, x * y], axis=1)
    (result,) = assert_in_place([x, y], [a, b], [pt.concatenate([top, bottom]).ravel()])
    same(result, np.block([[np.exp(a), b * 2], [a - 1, a * b]]).ravel())


def test_blocks_that_are_set_one_by_one_are_a_join():
    x = pt.tensor("x", dtype="float64", shape=(2, 3))
    value = RNG.standard_normal((2, 3))
    out = pt.zeros((4, 6))
    out = pt.set_subtensor(out[:2, :3], x * 2)
    out = pt.set_subtensor(out[2:, 3:], x + 1)
    out = pt.set_subtensor(out[2:, :3], pt.exp(x))
    out = pt.set_subtensor(out[:2, 3:], -x)
    (result,) = assert_in_place([x], [value], [out])
    same(result, np.block([[value * 2, -value], [np.exp(value), value + 1]]))


def test_slices_of_unknown_sizes_that_are_set_are_a_join():
    (x, y), _ = matrices(2, 1)
    out = pt.zeros((x.shape[0] + y.shape[0],))
    out = pt.set_subtensor(out[: x.shape[0]], x * 2)
    out = pt.set_subtensor(out[x.shape[0] :], y * 3)
    a, b = RNG.standard_normal(4), RNG.standard_normal(0)
    (result,) = assert_in_place([x, y], [a, b], [out])
    same(result, np.concatenate([a * 2, b * 3]))


def test_an_update_is_made_in_its_destination():
    (x, y), (a, b) = matrices(2, 3, 2)
    changed = pt.inc_subtensor(pt.set_subtensor(pt.exp(x)[0], 1.0)[1], 2.0)
    # What is stored is computed where it is stored.
    (result,) = assert_in_place([x, y], [a, b], [pt.concatenate([changed, y * 2])], allocations=0)
    want = np.exp(a)
    want[0], want[1] = 1, want[1] + 2
    same(result, np.concatenate([want, b * 2]))


def test_what_is_updated_and_read_is_not_overwritten():
    (x, y), (a, b) = matrices(2, 3, 2)
    e = pt.exp(x)
    text, arguments = module_of(
        Graph([x, y], [a, b], [pt.concatenate([pt.set_subtensor(e[0], 1.0), y * 2]), e.sum(axis=1)])
    )
    joined, sums = compile_text(text, FAST_RUN, opt_level=1)(*arguments)
    want = np.exp(a)
    same(sums, want.sum(1))
    want[0] = 1
    same(joined, np.concatenate([want, b * 2]))


def test_a_sum_that_is_divided_needs_no_memory():
    (x, y), (a, b) = matrices(2, 5, 3)
    out = pt.concatenate([x.sum(axis=0) / pt.sqrt(x.sum()), pt.tanh(y.sum(axis=0)) * 2])
    main = buffers([x, y], [out])
    assert "memref.alloc()" in main and "memref.alloc(%" not in main, main  # the scalar x.sum()
    same(
        graphc.function([x, y], out)(a, b),
        np.concatenate([a.sum(0) / np.sqrt(a.sum()), np.tanh(b.sum(0)) * 2]),
    )


def test_traces_and_last_rows_of_scans():
    (x, y), (a, b) = matrices(2, 5, 3)
    trace = graphc.scan(
        lambda row, h: pt.tanh(row + h), sequences=[x], outputs_info=[y[0]], return_updates=False
    )
    rows, h = [], b[0]
    for row in a:
        h = np.tanh(row + h)
        rows.append(h)
    main = buffers([x, y], [pt.concatenate([trace, y * 2])])
    assert "memref.copy" not in main.partition("scf.for")[2].replace("%arg", ""), main
    same(graphc.function([x, y], pt.concatenate([trace, y * 2]))(a, b), np.concatenate([rows, b * 2]))
    last = pt.concatenate([trace[-1], pt.exp(y[1])])
    same(graphc.function([x, y], last)(a, b), np.concatenate([h, np.exp(b[1])]))


def test_a_row_that_is_a_join_is_computed_in_its_row():
    (x,), (a,) = matrices(1, 5, 4)
    step = graphc.scan(
        lambda row: pt.concatenate([pt.exp(row[2:]), row[:2] * 2]),
        sequences=[x],
        outputs_info=[None],
        return_updates=False,
    )
    (result,) = assert_in_place([x], [a], [step])
    same(result, np.concatenate([np.exp(a[:, 2:]), a[:, :2] * 2], axis=1))


def test_a_size_that_depends_on_an_operand():
    """The number of steps is known only when the scan has run: its trace is copied, the rest is in place."""
    (x,), (a,) = matrices(1, 6)
    trace = graphc.scan(
        lambda row, h: (h + row, graphc.until(h + row > 2)),
        sequences=[x],
        outputs_info=[pt.constant(0.0)],
        return_updates=False,
    )
    values = np.abs(a) + 0.5
    have = graphc.function([x], pt.concatenate([trace, pt.exp(x), trace * 2]))(values)
    sums = np.cumsum(values)
    sums = sums[: int(np.argmax(sums > 2)) + 1]
    same(have, np.concatenate([sums, np.exp(values), sums * 2]))


def test_operands_that_do_not_fit_are_refused_before_anything_is_written():
    (x, y), _ = matrices(2, 2, 2)
    f = graphc.function([x, y], pt.concatenate([pt.exp(x), y * 2]))
    with pytest.raises(ValueError, match=r"join.*operand 1 has size 9.* 3"):
        f(np.ones((2, 3)), np.ones((400, 9)))


def test_complex_products_keep_to_blas():
    x = pt.tensor("x", dtype="complex128", shape=(None, None))
    value = RNG.standard_normal((40, 40)) + 1j * RNG.standard_normal((40, 40))
    out = pt.concatenate([x @ x, x * 2], axis=1)
    assert "graphc_zgemm" in buffers([x], [out])
    same(graphc.function([x], out)(value), np.concatenate([value @ value, value * 2], axis=1))


def test_one_operand_is_not_enough_by_default():
    (x,), _ = matrices(1, 3, 2)
    text, _ = module_of(Graph([x], [], [pt.concatenate([pt.exp(x), x])]))
    for option, expected in (("", False), ("{min-eligible=1}", True)):
        with context(), ir.Location.unknown():
            module = ir.Module.parse(text)
            run_pipeline(module, [FLAG + option])
            assert ("graphc.write_join" in str(module)) is expected


def test_statistics():
    (x, y), _ = matrices(2, 3, 2)
    text, _ = module_of(Graph([x, y], [], [pt.concatenate([pt.exp(x).ravel(), (y * 2).ravel(), x.ravel()])]))
    with context(), ir.Location.unknown():
        (run,) = run_pipeline(ir.Module.parse(text), [FLAG]).runs
    assert run.statistics == {
        "joins": 1, "values computed in place": 2, "absorbed views": 2, "copied operands": 1,
    }  # fmt: skip


def test_arrangements():
    with context(), ir.Location.unknown():
        module = ir.Module.parse("func.func @f(%x: tensor<?xf64>) { return }")
        function = module.body.operations[0].operation
        known = SizesOf(Rewriter(function))
        n = known.of_dim(function.regions[0].blocks[0].arguments[0], 0)
        one = Size(1)

        def tile(value: str, *bounds: tuple[Any, Any]) -> Tile:
            return Tile([start for start, _ in bounds], [size for _, size in bounds], value)

        zero, more = Size(0), n + one
        tiles = [tile("b", (n, one)), tile("a", (zero, n))]
        found = arrange(known, [zero], [more], tiles)
        assert isinstance(found, Joined) and [part.value for part in found.parts] == ["a", "b"]
        assert arrange(known, [zero], [more], tiles[1:]) is None
        assert arrange(known, [zero], [n], [tile("a", (zero, n)), tile("b", (zero, n))]) is None
        assert arrange(known, [zero], [more + one], tiles) is None
        assert known.at_most(n, more) and not known.at_most(more, n)
