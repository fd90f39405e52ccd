# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Ops that few graphs have: sparse matrices, searches for minima, labelled axes, splines, samplers of SciPy and PyMC."""

from __future__ import annotations

import functools
import importlib
import os
import warnings

import numpy as np
import pymc as pm
import pytensor
import pytensor.sparse as ps
import pytensor.sparse.linalg
import pytensor.tensor as pt
import pytest
import scipy.sparse
from pytensor.compile.builders import OpFromGraph
from pytensor.compile.mode import Mode
from pytensor.graph.traversal import toposort
from pytensor.tensor.blockwise import Blockwise
from pytensor.tensor.fourier import fft
from pytensor.tensor.optimize import minimize, minimize_scalar, root, root_scalar
from pytensor.tensor.slinalg import eigvalsh

from graphc.graph.traversal import apply_ancestors
from graphc.interop.pytensor import from_pytensor
from graphc.interop.pytensor.convert import place_of

# Where each version has it.
as_symbolic = getattr(pytensor, "as_symbolic", None) or importlib.import_module("pytensor.basic").as_symbolic
REFERENCE = Mode("py", "minimum_compile")
rng = np.random.default_rng(0)
a, b, c = ps.csr_matrix("a"), ps.csr_matrix("b"), ps.csc_matrix("c")
x, v, s, z = pt.dmatrix("x"), pt.dvector("v"), pt.dmatrix("s"), pt.dscalar("z")
RANDOM = {"density": 0.5, "random_state": 1}
S = rng.normal(size=(4, 4))
VALUES = {
    a: scipy.sparse.random(5, 4, format="csr", **RANDOM),
    b: scipy.sparse.random(5, 4, format="csr", density=0.4, random_state=2),
    c: scipy.sparse.random(4, 5, format="csc", **RANDOM),
    x: rng.normal(size=(4, 5)),
    v: rng.uniform(1, 2, 4),
    s: S @ S.T + np.eye(4),
    z: np.array(0.3),
}
PLACES = [np.array(q, "int32") for q in ([0, 1, 2, 0], [0, 1, 2, 3, 4], [4, 4])]

CASES = {
    "sparse arithmetic": lambda: [
        a + b, a - b, a * b, a * 2.0, ps.dot(a, x), ps.dot(x, a), ps.structured_dot(c, x.T), ps.true_dot(a, c), a + x.T,
        ps.mul(a, v), ps.structured_add_s_v(a, v), ps.sp_sum(a, axis=0), ps.sp_sum(a, 1), ps.sp_sum(a),
    ],
    "sparse structure": lambda: [
        a.T, a[1:3], a[1:, ::2], a[2, 1], a[[0, 3]], a[[0, 1], [1, 2]], ps.hstack([a, b], format="csr"), ps.vstack([a, b]),
        ps.cast(a, "float32"), ps.dense_from_sparse(a), ps.csc_from_dense(x), ps.csr_from_dense(x), ps.remove0(a),
        ps.ensure_sorted_indices(c), *ps.csm_properties(a), ps.col_scale(c, x[0]), ps.row_scale(c, v),
        ps.diag(ps.csc_from_dense(s)), pytensor.sparse.linalg.block_diag(ps.csr_from_dense(x), x),
    ],
    "sparse comparisons": lambda: [ps.math.eq(a, b), ps.math.lt(a, b), ps.math.ge(a, x.T), ps.math.neq(a, b)],
    "sparse gradients": lambda: [
        pytensor.grad(ps.dot(a, x).sum(), x), pytensor.grad((ps.structured_dot(a, x) ** 2).sum(), a),
        pytensor.grad((ps.structured_dot(c, x.T) ** 2).sum(), c), pytensor.grad(ps.sp_sum(a * b), a),
        pytensor.grad((ps.dense_from_sparse(ps.CSR(v, *PLACES)) ** 2).sum(), v),
        *[ps.get_item_list_grad(m, np.array([0, -1, 2, -1]), q) for m, q in ((a, ps.csr_from_dense(s)), (c, ps.csc_from_dense(x)))],
        *[ps.get_item_2lists_grad(m, np.array([0, 2, -1, 2]), np.array([1, 0, -2, 0]), v) for m in (a, c)],
    ],
    "gradients of eigenvalues": lambda: [
        pytensor.grad((pt.linalg.eigh(s)[0] * v + pt.linalg.eigh(s)[1][0] ** 2).sum(), s),
        pytensor.grad((eigvalsh(s, s @ s + np.eye(4)) * v).sum(), s),
    ],
    "systems": lambda: [pt.linalg.solve(s * np.tri(4, k=1) * np.tri(4, k=1).T, v, assume_a="tridiagonal"), pt.linalg.solve_sylvester(s, s, s)],
    "transforms of an axis": lambda: [fft(x, 6, 1), fft(x, None, 0)],
    "complex numbers as real ones": lambda: [pt.sum(pt.complex(v, v), dtype="float64", acc_dtype="complex128"), pt.erf(pt.complex(v, v)).real, pt.linalg.lu(pt.complex(s, s))[0]],
    "searches": lambda: [
        minimize_scalar((z - v[0]) ** 2, z)[0], pytensor.grad(minimize_scalar((z - v[0]) ** 2, z)[0], v),
        minimize(((v - z) ** 4).sum() + (v**2).sum(), v)[0], root(v**3 - z, v)[0], pytensor.grad(root(v**3 - z, v)[0].sum(), z),
        root_scalar(z**3 - v[0], z, jac=True, method="newton")[0],
    ],
}  # fmt: skip


def test_batches_of_results_that_do_not_depend_on_all_of_them():
    """One input has the batch, another core of the op one element of it, a third none."""
    core = OpFromGraph([v, q := pt.dvector("q")], [2 * v, q.sum(), pt.ones(3)])
    one, many = pt.tensor("one", dtype="float64", shape=(None, 1, 4)), pt.dtensor3("many")
    outputs = Blockwise(core, signature="(n),(m)->(n),(),(k)")(one, many)
    given = rng.normal(size=(2, 1, 4)), rng.normal(size=(2, 3, 5))
    functions = [pytensor.function([one, many], outputs, mode=mode) for mode in (REFERENCE, "GRAPHC")]
    for want, got in zip(*(f(*given) for f in functions), strict=True):
        np.testing.assert_allclose(got, want, strict=True)


def test_batches_of_equal_sizes_need_no_loop():
    m, x = pt.tensor("m", shape=(3, 3)), pt.tensor("x", shape=(4, 3, 3))
    masked = pytensor.function([x], pytensor.graph.vectorize_graph(pt.tril(m), {m: x}), mode="GRAPHC")
    values = np.arange(36.0).reshape(4, 3, 3)
    np.testing.assert_array_equal(masked(values), np.tril(values))
    assert "scan" not in dict(masked.vm.jit_fn.ir_stages())["graph"]


def test_slices_and_scalars_are_those_of_python():
    i, number = pytensor.scalar.int64("i"), pytensor.scalar.float64("number")
    for mode in ("GRAPHC", "GRAPHC_REWRITTEN"):
        f = pytensor.function(
            [i, number], [as_symbolic(slice(None, i, 2)), number, v.sum()], givens={v: np.ones(2)}, mode=mode
        )
        part, value, total = f(3, 2.5)
        assert part == slice(None, 3, 2) and isinstance(value, np.float64) and value == 2.5
        assert isinstance(total, np.ndarray) and total == 2
    f = pytensor.function([number], pytensor.Out(pt.tensor_from_scalar(number), borrow=True), mode="GRAPHC")
    assert isinstance(f(2.5), np.ndarray)


@pytest.mark.parametrize("lower", [True, False])
def test_the_factor_of_a_product_with_its_transpose_is_known(lower):
    """PyMC writes the covariance of a factor, whose squares overflow, and takes its factor again."""
    factor = pt.tensor("factor", shape=(3, 3))
    factor.tag.lower_triangular = True
    products = [factor @ factor.T, pt.dot(factor, factor.T), (factor @ factor.T)[None]]
    outputs = [pt.linalg.cholesky(product, lower=lower) for product in products]
    f = pytensor.function([factor], outputs, mode="GRAPHC")
    value = np.array([[3.0, 0, 0], [2, -5, 0], [1, 4, 1e-3]])
    wanted = np.linalg.cholesky(value @ value.T)
    for scale in (1.0, 1e200, 1e-200):
        for result in f(scale * value):
            np.testing.assert_allclose(result.reshape(3, 3) / scale, wanted if lower else wanted.T, rtol=1e-8)
    other = pytensor.function([factor], pt.linalg.cholesky(factor @ (2 * factor).T), mode="GRAPHC")
    np.testing.assert_allclose(other(value), wanted * np.sqrt(2), rtol=1e-8)


def in_pytensor(f):
    return [fallback.op for fallback in f.vm.jit_fn.report.fallbacks if fallback.op.startswith("PyTensor{")]


def dense(value):
    return value.toarray() if scipy.sparse.issparse(value) else np.asarray(value)


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("name", CASES)
def test_conversion(name):
    outputs = CASES[name]()
    functions = [
        pytensor.function(list(VALUES), outputs, mode=mode, on_unused_input="ignore")
        for mode in (REFERENCE, "GRAPHC")
    ]
    expected, given = (f(*VALUES.values()) for f in functions)
    for output, want, got in zip(outputs, expected, given, strict=True):
        assert getattr(got, "format", None) == getattr(want, "format", None), output
        assert got.dtype == want.dtype, output
        np.testing.assert_allclose(dense(got), dense(want), rtol=1e-9, atol=1e-12, err_msg=str(output))
    assert in_pytensor(functions[1]) == []


def test_masks_leave_sums() -> None:
    """What masks each matrix of a batch masks their sum, in all the places where a mask may stand."""
    m, given = pt.dmatrix("m"), pt.dtensor3("given")
    lower = pytensor.graph.vectorize_graph(pt.tril(m), {m: given})
    row = pt.cast(pt.eq(pt.arange(3), 1), "float64")
    outputs = [
        lower.sum(axis=0), (lower * given).sum(axis=0), (lower / given).sum(axis=(0, 1)), lower.sum(),
        (given * row[None, None]).sum(axis=1), (given * row[:, None]).sum(axis=(0, 2)), (lower * row).sum(axis=2),
    ]  # fmt: skip
    functions = [pytensor.function([given], outputs, mode=mode) for mode in (REFERENCE, "GRAPHC")]
    for shape in ((4, 3, 3), (1, 3, 3)):
        value = np.random.default_rng(0).normal(size=shape)
        for expected, found in zip(*(f(value) for f in functions), strict=True):
            np.testing.assert_allclose(found, expected, rtol=1e-12, atol=1e-14)


DRAWS = {
    "pareto": lambda r: [pt.random.pareto(np.array([0.5, 2.0]), 2.0, rng=r), pt.random.pareto(3.0, 2.0, size=(2, 3), rng=r)],
    "choice": lambda r: [pt.random.choice(np.eye(5), size=(3,), replace=False, rng=r), pt.random.choice(9, size=(2, 2), replace=False, rng=r)],
    "clipped beta": lambda r: _again(pm.Beta.dist([0.5, 2.0], 1.0, size=(3, 2)), r),
    "shifted Wald": lambda r: _again(pm.Wald.dist(mu=1.0, lam=2.0, alpha=[0.5, 2.0]), r),
    "discrete uniform": lambda r: _again(pm.DiscreteUniform.dist(1, 9, size=5), r),
}  # fmt: skip


def _again(drawn, generator):
    _, size, *parameters = drawn.owner.inputs
    return [drawn.owner.op(*parameters, size=size, rng=generator)]


@pytest.mark.parametrize("name", DRAWS)
def test_draws_are_those_of_the_ops_own_samplers(name):
    results = []
    for mode in (REFERENCE, "GRAPHC"):
        generator = pytensor.shared(np.random.default_rng(3))
        f = pytensor.function([], DRAWS[name](generator), mode=mode)
        results.append(f())
    for want, got in zip(*results, strict=True):
        np.testing.assert_allclose(got, want, rtol=1e-13)
    assert in_pytensor(f) == []


@functools.singledispatch
def _dispatched(value):
    return pt.exp(value)


def test_places_are_lines_of_those_who_write_graphs():
    """Of the user, or of PyMC where no line of his is among the few that PyTensor keeps."""
    assert place_of(_dispatched(v).owner).function == "_dispatched"
    with pm.Model() as model:
        pm.Mixture("y", [0.5, 0.5], [pm.Truncated.dist(pm.Normal.dist(m), 0) for m in (1, 2)], observed=[1.0])
    found = [place_of(node) for node in toposort([model.logp()], blockers=model.value_vars)]
    files = {place.file for place in found if place is not None}
    assert any("pymc" in file for file in files)
    assert not [file for file in files if not file.startswith((os.path.dirname(pm.__file__), __file__))]
    made = from_pytensor(model.value_vars, model.logp())[1]
    kept = {node.location.file for node in apply_ancestors([made]) if node.location is not None}
    assert kept <= files


def test_splines_of_an_interpolated_density():
    points = np.linspace(-3, 3, 20)
    log_density = pm.logp(pm.Interpolated.dist(points, np.exp(-(points**2))), v)
    outputs = [log_density, pytensor.grad(log_density.sum(), v)]
    at = np.array([-3.5, -3.0, -1.234, 0.7, 2.9999, 3.0, 4.0])
    expected, given = (pytensor.function([v], outputs, mode=m) for m in (Mode("py", "fast_run"), "GRAPHC"))
    for want, got in zip(expected(at), given(at), strict=True):
        known = ~np.isnan(want)  # of a side that was not chosen
        np.testing.assert_allclose(got[known], want[known], rtol=1e-9)
    assert in_pytensor(given) == []


@pytest.mark.parametrize("mode", ["GRAPHC", "GRAPHC_REWRITTEN"])
def test_labelled_axes(mode):
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        from pytensor import xtensor as px
    p, q = px.xtensor("p", dims=("i", "j"), shape=(2, 3)), px.xtensor("q", dims=("j",), shape=(3,))
    f = pytensor.function(
        [p, q], [(p * q).sum("j") + p.max(), px.dot(p, q), p.isel(i=0), p.transpose("j", "i")], mode=mode
    )
    P, Q = np.arange(6.0).reshape(2, 3), np.ones(3)
    for got, want in zip(f(P, Q), [P @ Q + 5, P @ Q, P[0], P.T], strict=True):
        np.testing.assert_array_equal(got, want)
    assert f.vm.jit_fn.report.fallbacks == []
