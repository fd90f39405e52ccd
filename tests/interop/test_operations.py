# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Each op of PyTensor through graphc, and PyTensor's own Python code as the reference."""

from __future__ import annotations

import numpy as np
import pytensor
import pytensor.tensor as pt
import pytest
from pytensor.compile.mode import Mode
from pytensor.ifelse import ifelse
from pytensor.scan.utils import until
from pytensor.tensor.fft import irfft, rfft
from pytensor.tensor.random.utils import RandomStream

import graphc.interop.pytensor  # noqa: F401

REFERENCE = Mode("py", "minimum_compile")
rng = np.random.default_rng(0)
X = rng.normal(size=(3, 4))
V = rng.uniform(0.1, 0.9, 5)
N = rng.integers(-5, 6, (3, 4))
S = X[:, :3] @ X[:, :3].T + 3 * np.eye(3)
B = rng.normal(size=(2, 3, 3)) + 4 * np.eye(3)
x, v, n, s, b = pt.dmatrix("x"), pt.dvector("v"), pt.lmatrix("n"), pt.dmatrix("s"), pt.dtensor3("b")
VALUES = {x: X, v: V, n: N, s: S, b: B}

UNARY = (
    "abs sign ceil floor trunc round exp exp2 expm1 log1p sqr sin cos tan sinh cosh tanh arcsinh arctan deg2rad rad2deg "
    "sigmoid softplus erf erfc erfcx gamma gammaln digamma tri_gamma j0 j1 i0 i1 isnan isinf neg"
).split()
INSIDE = "log log2 log10 sqrt reciprocal arcsin arccos arctanh erfinv erfcinv log1mexp".split()
BINARY = "add sub mul true_div int_div mod maximum minimum arctan2 lt le gt ge eq neq".split()

CASES = {
    **{name: lambda name=name: getattr(pt, name)(x) for name in UNARY},
    **{f"{name} inside": lambda name=name: getattr(pt, name)(-v if name == "log1mexp" else v) for name in INSIDE},
    **{f"{name} floats": lambda name=name: getattr(pt, name)(x, v[:3, None]) for name in BINARY},
    **{f"{name} integers": lambda name=name: getattr(pt, name)(n, n[:, 0][:, None] + 7) for name in BINARY},
    "pow": lambda: pt.abs(x) ** v[:4],
    "functions of integers": lambda: [pt.exp(n), pt.sqrt(n * n), n / 2, pt.cast(n, "int8") + pt.cast(n, "int16")],
    "bits": lambda: [n & 3, n | 4, n ^ 5, ~n],
    "switch, clip": lambda: [pt.switch(x > 0, x, n), pt.clip(x, -0.5, 0.5), pt.clip(n, -2, 2)],
    "special of two": lambda: [pt.gammainc(v, 2 * v), pt.gammaincc(v, v), pt.polygamma(2, v)],
    "beta, bessel, hypergeometric": lambda: [pt.betainc(v, v, v), pt.jv(1.5, v), pt.iv(1.5, v), pt.hyp2f1(v, 1.0, 2.0, v)],
    "gradients by loops of scalars": lambda: [
        pytensor.grad(pt.betainc(v, 2.0, 0.4).sum(), v),
        pytensor.grad(pt.gammainc(v, 2.0).sum(), v),
        pytensor.grad(pt.hyp2f1(v, 1.0, 2.0, 0.3).sum(), v),
    ],
    "complex": lambda: [pt.real(pt.complex(x, x)), pt.imag(pt.complex(x, 2 * x)), pt.angle(pt.complex(x, x)), abs(pt.complex(x, x))],
    "reductions": lambda: [x.sum(), x.sum(0), x.prod(1), x.max(), x.min(0), (x > 0).all(1), (x > 0).any(), x.mean(), x.var(), n.sum(1)],
    "argmax": lambda: [pt.argmax(x), pt.argmax(x, 0), pt.argmin(x, 1), pt.argmax(x, ())],
    "shapes": lambda: [x.T, x.dimshuffle("x", 1, 0), x.reshape((2, -1)), x.flatten(), pt.shape(x), pt.specify_shape(x, (3, 4))],
    "creation": lambda: [pt.alloc(2.0, 2, x.shape[0]), pt.arange(1, 9, 2), pt.arange(x.shape[0]), pt.eye(3, 4, 1), pt.zeros_like(x), pt.stack([v[0], v[1]])],
    "joins": lambda: [pt.join(0, x, 2 * x), pt.concatenate([x, n], axis=1), *pt.split(v, [2, 3], n_splits=2)],
    "diagonals": lambda: [pt.diagonal(x, 1), pt.diag(v), pt.extract_diag(s), pt.fill_diagonal(s, 7.0), pt.tril(s), pt.triu(s)],
    "slices": lambda: [x[1], x[::-1, 1:3], x[-1, ::2], x[:, n[0, 0] % 3], x[1:, None]],
    "advanced indices": lambda: [x[[0, 2]], x[[0, 1], [2, 3]], x[x > 0], v[pt.abs(n[0]) % 5], x[:, [1, 1]], x[pt.nonzero(x > 0)], x[[[0], [1]], 1:]],
    "updates": lambda: [
        pt.set_subtensor(x[1], 0.0), pt.inc_subtensor(x[:, 1:3], 1.0), pt.set_subtensor(x[x > 0], -1.0),
        pt.inc_subtensor(v[[0, 0, 2]], 1.0), pt.set_subtensor(x[[0, 1], [1, 2]], v[:2]), pt.inc_subtensor(v[:], 1.0),
    ],
    "sorting": lambda: [pt.sort(x), pt.sort(x, 0), pt.argsort(x, 1), pt.searchsorted(pt.sort(v), x)],
    "cumulative": lambda: [pt.cumsum(x), pt.cumsum(x, 0), pt.cumprod(x, 1), pt.diff(x), pt.bincount(pt.abs(n[0]))],
    "repetition, unique": lambda: [pt.repeat(x, 2, 1), pt.repeat(v, pt.abs(n[0, 0]), 0), pt.tile(v, 3), pt.unique(n)],
    "index arithmetic": lambda: [*pt.unravel_index(pt.abs(n[0]), (3, 4)), pt.ravel_multi_index((pt.abs(n[0]) % 3, pt.abs(n[1]) % 4), (3, 4))],
    "softmax": lambda: [pt.special.softmax(x, axis=1), pt.special.log_softmax(x, axis=0), pt.logsumexp(x, axis=1)],
    "gradient of softmax": lambda: pytensor.grad((pt.special.softmax(x, axis=1) ** 2).sum(), x),
    **({"ndtri_exp": lambda: [pt.ndtri_exp(-50 * v), pytensor.grad(pt.ndtri_exp(-v).sum(), v)]} if hasattr(pt, "ndtri_exp") else {}),
    **({"batched_dot": lambda: pt.batched_dot(b, b)} if hasattr(pt, "batched_dot") else {}),  # until 3.0
    "products": lambda: [pt.dot(x, x.T), pt.dot(x, v[:4]), x @ x.T, b @ b, pt.outer(v, v), pt.tensordot(x, x, [[0], [0]])],
    "decompositions": lambda: [
        pt.linalg.cholesky(s), pt.linalg.inv(s), pt.linalg.det(s), *pt.linalg.slogdet(s), pt.linalg.eigh(s)[0],
        pt.linalg.svd(s, compute_uv=False), pt.linalg.pinv(x), pt.linalg.expm(0.1 * s), *pt.linalg.qr(x[:, :3]), *pt.linalg.lu(s),
    ],
    "solvers": lambda: [
        pt.linalg.solve(s, v[:3]), pt.linalg.solve(s, x, assume_a="pos"), pt.linalg.solve_triangular(s, x, lower=True),
        pt.linalg.cho_solve((pt.linalg.cholesky(s), True), x), pt.linalg.block_diag(s, x), pt.linalg.kron(s, x),
    ],
    "batches": lambda: [pt.linalg.inv(b), pt.linalg.det(b), pt.linalg.solve(b, b), pt.linalg.cholesky(b @ b.transpose(0, 2, 1))],
    "gradients of linear algebra": lambda: [
        pytensor.grad(pt.linalg.cholesky(s).sum(), s), pytensor.grad(pt.linalg.slogdet(s)[1], s), pytensor.grad(pt.linalg.solve(s, x).sum(), s),
    ],
    "transforms": lambda: [rfft(x), irfft(rfft(x))],
    "conditionals": lambda: [ifelse(v[0] > 0.5, v, 2 * v), ifelse(n[0, 0] > 100, x, -x)],
    "loop": lambda: pytensor.scan(lambda r, h: 0.5 * h + r, sequences=[v], outputs_info=[pt.zeros(())], return_updates=False),
    "loop with two taps and its gradient": lambda: _two_taps(),
    "loop of matrices and its gradient": lambda: _matrices(),
    "loop with a condition": lambda: pytensor.scan(
        lambda h: (1.5 * h, until(h > 5)),
        outputs_info=[v[0]], n_steps=20, return_updates=False,
    ),
    "loop backwards": lambda: pytensor.scan(lambda r, h: h + r, sequences=[v], outputs_info=[pt.zeros(())], go_backwards=True, return_updates=False),
    "loop in a loop": lambda: pytensor.scan(
        lambda r: pytensor.scan(lambda q, h: h * 0.5 + q, sequences=[r], outputs_info=[pt.zeros(())], return_updates=False),
        sequences=[x], return_updates=False,
    ),
    "graph as an op": lambda: _graph_op(),
}  # fmt: skip


def _two_taps():
    h = pytensor.scan(
        lambda r, a, c, w: w * a - 0.3 * c + r,
        sequences=[v],
        outputs_info=[{"initial": x[0, :2], "taps": [-2, -1]}],
        non_sequences=[x[1, 1]],
        return_updates=False,
    )
    return [h, pytensor.grad((h**2).sum(), v), pytensor.grad(h.sum(), x), pytensor.grad(h[-1], x)]


def _matrices():
    h = pytensor.scan(
        lambda h, w: pt.tanh(h @ w),
        outputs_info=[x[:, :3]],
        non_sequences=[s],
        n_steps=4,
        return_updates=False,
    )
    return [h[-1], pytensor.grad(h[-1].sum(), s), pytensor.grad((h**2).sum(), [x, s])[0]]


def _graph_op():
    from pytensor.compile.builders import OpFromGraph

    a, c = pt.dvectors("a", "c")
    op = OpFromGraph([a, c], [a * c, a + c])
    return op(v, 2 * v)


def results(outputs, mode):
    f = pytensor.function(list(VALUES), outputs, mode=mode, on_unused_input="ignore")
    return f(*VALUES.values()), f


@pytest.mark.parametrize("name", CASES)
def test_operation(name):
    outputs = CASES[name]()
    outputs = list(outputs) if isinstance(outputs, (list, tuple)) else [outputs]
    expected, _ = results(outputs, REFERENCE)
    given, f = results(outputs, "GRAPHC")
    for output, want, got in zip(outputs, expected, given, strict=True):
        assert np.asarray(got).dtype == np.asarray(want).dtype, output
        np.testing.assert_allclose(got, want, rtol=1e-10, atol=1e-12, err_msg=str(output))
    assert f.vm.jit_fn.report.fallbacks == []


def test_an_allocation_that_broadcasts_nothing_is_its_operand():
    """As in PyTensor's default mode, whatever sizes it names; static ones are checked."""
    m = pt.lscalar("m")
    rows = pytensor.scan(
        lambda r, m: (pt.alloc(r, m) ** 2).sum(), sequences=[x], non_sequences=[m], return_updates=False
    )
    part = pt.alloc(v, m) ** 2
    wanted = [
        (pt.alloc(v, m), V),
        (pt.alloc(x, m, m), X),
        (pt.alloc(pt.specify_shape(v, 5), m), V),
        (pt.alloc(v, m, 5), np.tile(V, (3, 1))),
        (part, V**2),
        (pytensor.grad(part.sum(), v), 2 * V),
        (rows, (X**2).sum(1)),
        (pytensor.grad(rows.sum(), x), 2 * X),
    ]
    given = pytensor.function([x, v, m], [output for output, _ in wanted], mode="GRAPHC")(X, V, 3)
    for (output, want), got in zip(wanted, given, strict=True):
        np.testing.assert_allclose(got, want, rtol=1e-14, err_msg=str(output))
    for mode in (Mode("py", "fast_run"), "GRAPHC"):
        assert pytensor.function([v, m], pt.alloc(v, m), mode=mode)(V, 3).shape == V.shape
        with pytest.raises((AssertionError, ValueError)):
            pytensor.function([v], pt.alloc(v, 3) + 1, mode=mode)(V)


def test_draws_are_those_of_numpy():
    stream = RandomStream(seed=3)
    drawn = [
        stream.normal(1.0, v), stream.uniform(size=(2, 3)), stream.gamma(2.0, scale=v), stream.beta(v, v),
        stream.poisson(3.0, size=4), stream.integers(0, 9, size=5), stream.categorical(np.full(4, 0.25), size=3),
        stream.dirichlet(np.ones(3)), stream.multinomial(9, np.full(3, 1 / 3)), stream.binomial(9, v),
        stream.multivariate_normal(np.zeros(2), np.eye(2), size=3), stream.permutation(6), stream.t(4.0, 0.0, v),
        stream.negative_binomial(5, v), stream.exponential(v), stream.laplace(0.0, v), stream.halfnormal(0.0, v),
    ]  # fmt: skip
    compiled = [pytensor.function([v], drawn, mode=mode) for mode in (REFERENCE, "GRAPHC")]
    states = [[g.get_value() for g in stream.state_updates and [r for r, _ in stream.state_updates]]]
    first = compiled[0](V)
    for (generator, _), state in zip(stream.state_updates, states[0], strict=True):
        generator.set_value(state)
    second = compiled[1](V)
    for want, got in zip(first, second, strict=True):
        np.testing.assert_allclose(got, want, rtol=1e-12)
