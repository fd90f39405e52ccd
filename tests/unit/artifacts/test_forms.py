# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Artifacts and C functions of all dtypes, ranks, sizes and kinds of kernels give what this process gives."""

from __future__ import annotations

import numpy as np
import ways_artifacts
from ways_artifacts import call

import graphc
import graphc.tensor as pt
import graphc_runtime
from graphc.artifacts.c_module import c_module
from graphc.artifacts.export import StateNames
from graphc.artifacts.source import sources
from graphc.backends.cpu.object import this_machine
from graphc_runtime.loader import load_object
from graphc_runtime.symbols import DTYPES


def check(function, cases, tmp_path, *, freestanding=False):
    """Compares a function that returns a list with its artifact and its C function, for several arguments."""
    graphc.export({"f": function}, tmp_path / "f.gcx")
    loaded = graphc_runtime.load(tmp_path / "f.gcx").f
    given = sources({"f": function})
    made = c_module(given, StateNames(given).of_cells, this_machine(), freestanding=freestanding)
    specs = [member.spec for member in made.interfaces["f"].outputs]
    code = load_object(made.code, ways_artifacts._resolve)
    for values in cases:
        expected, found = function(*values), loaded(*values)
        assert [x.dtype for x in found] == [x.dtype for x in expected]
        for have, want in zip(found, expected, strict=True):
            np.testing.assert_array_equal(have, want)
        inputs = [np.ascontiguousarray(np.asarray(v)).reshape(np.shape(v)) for v in values]
        for have, want in zip(call(code, "f", inputs, specs), expected, strict=True):
            np.testing.assert_allclose(have, want, rtol=1e-13 if want.dtype.itemsize > 4 else 1e-5)


def test_all_dtypes(tmp_path):
    inputs = [pt.tensor(f"x_{dtype}", dtype=dtype, shape=(None, 3)) for dtype in DTYPES]
    f = graphc.function(inputs, [v[::-1] if v.dtype == "bool" else v + v for v in inputs])
    rng = np.random.default_rng(0)
    check(f, [[rng.integers(0, 2, (rows, 3)).astype(dtype) for dtype in DTYPES] for rows in (1, 4)], tmp_path)


def test_no_inputs_no_elements_and_scalars(tmp_path):
    x, s = pt.dmatrix("x"), pt.dscalar("s")
    f = graphc.function([x, s], [x * s, x.sum(0), pt.exp(s), x.T])
    check(f, [[np.ones(shape), np.array(2.0)] for shape in ((0, 3), (3, 0), (0, 0), (1, 1))], tmp_path)
    check(graphc.function([], [pt.arange(5) * 2]), [[]], tmp_path)


def test_many_arguments(tmp_path):
    inputs = [pt.dvector(f"x{i}") for i in range(120)]
    f = graphc.function(inputs, [sum(inputs[1:], inputs[0]), *(v * 2 for v in inputs[:3])])
    check(f, [[np.full(5, float(i)) for i in range(120)]], tmp_path)


def test_settings_of_the_function(tmp_path):
    x = pt.dvector("x")
    tiny = np.array([5e-324, 1e-310, 1.0, -3e-320])
    for options in ({"flush_denormals": True}, {"fastmath": "fast"}, {"mode": "fast_compile"}):
        check(graphc.function([x], [x * 1.0 + 0.0, pt.exp(x).sum()], **options), [[tiny]], tmp_path)


def test_plans_of_several_sizes_and_workspaces_of_branches(tmp_path):
    a, b, n = pt.dmatrix("a"), pt.dvector("b"), pt.lscalar("n")
    c = pt.tanh(pt.dot(a, a.T))
    d = pt.dot(pt.exp(c), c) + pt.outer(b, b).sum() + pt.cumsum(b).sum()
    chosen = graphc.ifelse(n > 0, pt.dot(d, d) / d.sum(), pt.sqrt(abs(d)) @ c)
    f = graphc.function([a, b, n], [chosen, pt.sort(b), pt.exp(b)[pt.argsort(b)][: n + 5]])
    rng = np.random.default_rng(0)
    sizes = ((6, 4, 30, 1), (5, 9, 8, -1), (1, 1, 1, 2))
    cases = [
        [rng.normal(size=(rows, columns)), rng.normal(size=length), np.array(way)]
        for rows, columns, length, way in sizes
    ]
    check(f, cases, tmp_path, freestanding=True)


def test_loops_with_sizes_of_their_own(tmp_path):
    x = pt.dvector("x")
    total = graphc.scan(
        lambda i, s: s + pt.exp(x[: i + 1]).sum() + pt.outer(x[i:], x[i:]).sum(),
        sequences=[pt.arange(x.shape[0])],
        outputs_info=[pt.constant(0.0)],
        return_updates=False,
    )
    check(graphc.function([x], [total]), [[np.linspace(0, 1, 40)]], tmp_path)


def test_states_and_random_numbers_in_c(tmp_path):
    rng = graphc.shared(np.random.default_rng(3), name="rng")
    next_rng, draws = rng.normal(size=5)
    f = graphc.function([], [draws], updates={rng: next_rng}, name="f")
    graphc.export(f, tmp_path / "f.gcx")
    module = graphc_runtime.load(tmp_path / "f.gcx")
    expected = np.random.default_rng(3)
    for _ in range(3):
        np.testing.assert_array_equal(module.f()[0], expected.normal(size=5))
    assert module.package.states[0].generator == "PCG64"
