# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Gradients agree with finite differences, for real and for complex matrices."""

from __future__ import annotations

import numpy as np
import pytest
from gradient_batches import verify_grads

import graphc
import graphc.tensor as pt
import graphc.tensor.linalg as L

RNG = np.random.default_rng(1)
A = RNG.normal(size=(2, 3, 3))
DOMINANT = A + 3 * np.eye(3)
POSITIVE = A @ np.swapaxes(A, 1, 2) + np.eye(3)
B, WIDE, TALL = RNG.normal(size=(2, 3, 2)), RNG.normal(size=(2, 2, 4)), RNG.normal(size=(2, 4, 3))
# Real and imaginary parts along the last axis.
Z, ZB = RNG.normal(size=(2, 3, 3, 2)), RNG.normal(size=(2, 3, 2, 2))
Z_TALL, Z_WIDE = RNG.normal(size=(4, 3, 2)), RNG.normal(size=(2, 4, 2))


def c(x):
    return x[..., 0] + 1j * x[..., 1]


def adjoint(x):
    return pt.conj(pt.swapaxes(x, -1, -2))


def rebuilt(u, s, vh):
    return L.matmul(u * pt.expand_dims(s, -2), vh)


def hermitian(z):
    return L.matmul(c(z), adjoint(c(z))) + np.eye(3)


def solved(kind):
    def all_ways(a, b):
        ways = [(lower, turned) for lower in (False, True) for turned in (False, True)]
        return [L.solve(a, b, assume_a=kind, lower=lower, transposed=turned) for lower, turned in ways]

    return all_ways


def triangular(a, b):
    ways = [(lower, trans, unit) for lower in (0, 1) for trans in (0, 1, 2) for unit in (0, 1)]
    return [L.solve_triangular(a, b, lower=low, trans=t, unit_diagonal=u) for low, t, u in ways]


def decomposed(a):
    u, s, vh = L.svd(a, full_matrices=False)
    return [s, pt.abs(u), pt.abs(vh), rebuilt(u, s**2, vh), L.svdvals(a), L.svd(a)[1]]


def decomposed_fully(a):
    """What does not depend on the basis of the vectors beyond the first ones."""
    u, s, vh = L.svd(a)
    k = s.shape[-1]
    first, rest, first_h, rest_h = u[..., :, :k], u[..., :, k:], vh[..., :k, :], vh[..., k:, :]
    projections = [rest @ adjoint(rest), adjoint(rest_h) @ rest_h]
    return [s, pt.abs(first), pt.abs(first_h), rebuilt(first, s**2, first_h), *projections]


def eigen(a):
    w, v = L.eigh(a)
    other = L.eigh(a, lower=False)[1]
    return [w, rebuilt(v, w**3, adjoint(v)), pt.abs(other), L.eigvalsh(a), L.eigvalsh(a, lower=False)]


def norms(a):
    matrices = ("fro", "nuc", 1, -1, 2, -2, np.inf, -np.inf)
    vectors = [L.norm(a, o, axis=1) for o in (None, 1, 2, 3, np.inf, -np.inf)]
    return [L.norm(a), *(L.norm(a, o, axis=(1, 2)) for o in matrices), *vectors]


def lyapunov(a, q):
    discrete = [L.solve_discrete_lyapunov(a / 9, q, method=m) for m in ("bilinear", "direct")]
    return [L.solve_continuous_lyapunov(a, q), *discrete]


def by_factors(a, p, b):
    return [
        *(L.lu_solve(L.lu_factor(a), b, trans=trans) for trans in (0, 1)),
        *(L.cho_solve((L.cholesky(p, lower=low), low), b) for low in (True, False)),
    ]


def products(a, b):
    return [
        *(pt.kron(a[0], b[0]), L.block_diag(a, b), pt.matvec(a, b[..., 0]), pt.vecmat(b[..., 0], a)),
        *(pt.vecdot(a, a), pt.vdot(b, b), L.multi_dot([a[0], a[1], b[0]]), pt.cross(a, a[::-1])),
    ]


REAL = {
    "cholesky": (lambda a: [L.cholesky(a), L.cholesky(a, lower=False)], [POSITIVE]),
    **{f"solve {kind}": (solved(kind), [POSITIVE, B]) for kind in ("gen", "sym", "her", "pos")},
    **{f"solve {kind}": (solved(kind), [POSITIVE, B]) for kind in ("diagonal", "tridiagonal")},
    "triangular": (triangular, [DOMINANT, B]),
    "vectors": (lambda a, b: L.solve(a, b, b_ndim=1), [DOMINANT[0], np.swapaxes(B, 1, 2).copy()]),
    "banded": (
        lambda ab, b: [L.solve_banded((1, 2), ab, b, transposed=turned) for turned in (False, True)],
        [RNG.normal(size=(4, 5)) + 2, RNG.normal(size=(5, 2))],
    ),
    "lu": (lambda a: [*L.lu(a)[1:], L.lu(a, permute_l=True)[0]], [A]),
    "factors": (by_factors, [DOMINANT, POSITIVE, B]),
    "functions": (lambda a: [L.det(a), L.slogdet(a)[1], L.inv(a), L.expm(a), L.matrix_power(a, 3)], [A]),
    "pinv": (lambda a, b: [L.pinv(a), L.pinv(b)], [WIDE, TALL]),
    "lstsq": (lambda a, b: L.lstsq(a, b)[:2], [TALL[0], RNG.normal(size=(4, 2))]),
    "eigh": (eigen, [POSITIVE]),
    "generalised": (lambda a, b: [L.eigvalsh(a, b), pt.abs(L.eigh(a, b)[1])], [POSITIVE[0], POSITIVE[1]]),
    "eig": (lambda a: [L.eig(a)[0], pt.abs(L.eig(a)[1])], [DOMINANT]),
    "svd": (lambda *xs: [y for x in xs for y in decomposed(x)], [WIDE, TALL, A]),
    "full svd": (lambda *xs: [y for x in xs for y in decomposed_fully(x)], [WIDE, TALL, WIDE[0].T]),
    "slopes of singular values": (
        lambda x: graphc.grad((L.svd(x)[1] ** 3).sum(), x),
        [WIDE],
    ),
    "qr": (lambda *xs: [y for x in xs for y in (*L.qr(x), L.qr(x, "r"))], [WIDE, TALL, A]),
    "complete qr": (lambda a: L.qr(pt.specify_shape(a, (2, 2, 4)), "complete"), [WIDE]),
    "sylvester": (L.solve_sylvester, [DOMINANT[0], POSITIVE[1], A[1]]),
    "lyapunov": (lyapunov, [DOMINANT, POSITIVE]),
    "norms": (norms, [A]),
    "products": (products, [A, B]),
}


def batches(cases, *groups):
    """The cases of each group of names, and the others; those that share kernels compile together."""
    named = {name for group in groups for name in group}
    found = [{name: cases[name] for name in group} for group in groups]
    return [*found, {name: case for name, case in cases.items() if name not in named}]


SPECTRAL = (
    "svd",
    "full svd",
    "slopes of singular values",
    "pinv",
    "lstsq",
    "norms",
    "eigh",
    "generalised",
    "eig",
)
SYSTEMS = ("triangular", "vectors", *(name for name in REAL if name.startswith("solve")))


@pytest.mark.parametrize("cases", batches(REAL, SPECTRAL, SYSTEMS), ids=("spectral", "systems", "others"))
def test_real(cases):
    verify_grads(cases)


COMPLEX = {
    "cholesky": (lambda z: [L.cholesky(hermitian(z)), L.cholesky(hermitian(z), lower=False)], [Z]),
    **{
        f"solve {kind}": (lambda z, b, kind=kind: solved(kind)(c(z), c(b)), [Z, ZB])
        for kind in ("gen", "sym", "her")
    },
    "solve pos": (lambda z, b: solved("pos")(hermitian(z), c(b)), [Z, ZB]),
    "triangular": (lambda z, b: triangular(c(z) + 3 * np.eye(3), c(b)), [Z, ZB]),
    "functions": (lambda z: [L.det(c(z)), *L.slogdet(c(z)), L.inv(c(z)), L.expm(c(z))], [Z]),
    "lu": (lambda z: L.lu(c(z))[1:], [Z]),
    "pinv": (lambda x, y: [L.pinv(c(x)), L.pinv(c(y))], [Z_TALL, Z_WIDE]),
    "qr": (lambda x, y: [*L.qr(c(x)), *L.qr(c(y))], [Z_TALL, Z_WIDE]),
    "svd": (
        lambda *xs: [
            f for x in xs for u, s, vh in [L.svd(c(x), False)] for f in (s, rebuilt(u, s**2, vh), u @ vh)
        ],
        [Z_TALL, Z_WIDE],
    ),
    "full svd": (lambda *xs: [y for x in xs for y in decomposed_fully(c(x))], [Z_TALL, Z_WIDE]),
    "eigh": (lambda z: eigen(c(z)), [Z]),
    "eig": (lambda z: [L.eig(c(z))[0], pt.abs(L.eig(c(z))[1])], [Z]),
    "sylvester": (lambda a, b: L.solve_sylvester(c(a)[0], c(a)[1], c(b)[0]), [Z, Z]),
    "products": (lambda a, b: products(c(a), c(b)), [Z, ZB]),
}


COMPLEX_SPECTRAL = ("svd", "full svd", "pinv", "eigh", "eig", "qr")


@pytest.mark.parametrize("cases", batches(COMPLEX, COMPLEX_SPECTRAL), ids=("spectral", "others"))
def test_complex(cases):
    verify_grads(cases)


DIFFERENTIATED = [
    L.cholesky, L.det, L.inv, L.expm, L.pinv, L.eigvalsh, L.svdvals, lambda a: L.slogdet(a)[1],
    lambda a: L.svd(a[:, :2])[1],
    lambda a: L.eigh(a)[0], lambda a: L.qr(a)[1], lambda a: L.lu(a)[2], lambda a: L.solve(a, a[0]),
    lambda a: L.solve(a, a[0], assume_a="sym"), lambda a: L.solve_triangular(a, a[0], unit_diagonal=True),
    lambda a: L.solve_sylvester(a, a, a),
]  # fmt: skip


def test_tangents_are_directional_derivatives():
    x, t = pt.dtensor3("x"), pt.dtensor3("t")
    outputs = [function(x) for function in DIFFERENTIATED]
    tangents = [graphc.pushforward(y, x, t) for y in outputs]
    f = graphc.function([x, t], [*outputs, *tangents], on_unused_input="ignore")
    direction, count = POSITIVE[::-1] / 7, len(outputs)
    step = 1e-5
    ends = [f(POSITIVE + sign * step * direction, direction)[:count] for sign in (1, -1)]
    for number, tangent in enumerate(f(POSITIVE, direction)[count:]):
        difference = (ends[0][number] - ends[1][number]) / (2 * step)
        np.testing.assert_allclose(tangent, difference, rtol=1e-4, atol=1e-6, err_msg=f"function {number}")


def test_second_derivatives():
    functions = (L.det, lambda a: L.slogdet(a)[1], lambda a: L.cholesky(a).sum())
    first = [lambda a, function=function: graphc.grad(function(a), a) for function in functions]
    verify_grads({f"function {i}": (function, [POSITIVE[0]]) for i, function in enumerate(first)})


@pytest.mark.parametrize(
    "function, message",
    [
        (lambda a: L.qr(a, "complete")[0], 'use mode="reduced"'),
        (lambda a: L.qr(a, "raw")[0], "has no gradient"),
        (lambda a: L.lu(a)[1], "square matrices"),
    ],
)
def test_where_no_gradient_is_known(function, message):
    a = pt.tensor("a", shape=(3, 2), dtype="float64")
    with pytest.raises(NotImplementedError, match=message):
        graphc.grad(function(a).sum(), a)


# Equal values -----------------------------------------------------------------------------------------------

WEIGHTS = np.array([[0.3, -1.2, 0.7], [2.0, 0.4, -0.5], [-0.9, 1.1, 0.8]])
TURN = np.linalg.qr(np.array([[1.0, 2.0, 0.5], [-1.0, 0.3, 1.0], [0.2, 1.0, -2.0]]))[0]


def symmetric(a):
    return (a + a.mT) / 2


def product_of_eigh(f):
    def call(a):
        w, v = L.eigh(symmetric(a))
        return ((v * f(w)[..., None, :]) @ v.mT * WEIGHTS.astype(a.dtype)).sum()

    return call


def quadratic(a):
    w, v = L.eigh(symmetric(a))
    return (((v.mT @ WEIGHTS[0].astype(a.dtype)) ** 2) / (w + 3)).sum() + pt.log(w + 3).sum()


def product_of_svd(f):
    def call(a):
        u, s, vh = L.svd(a)
        return ((u * f(s)[..., None, :]) @ vh * WEIGHTS.astype(a.dtype)).sum()

    return call


def product_of_eig(a):
    w, v = L.eig(a)
    return pt.real((v * pt.exp(w)[..., None, :]) @ L.inv(v) * WEIGHTS).sum()


# Functions that do not depend on the basis of what belongs to equal values.
INVARIANT = {
    "the matrix itself": product_of_eigh(lambda w: w),
    "exponential": product_of_eigh(pt.exp),
    "projector": product_of_eigh(pt.ones_like),
    "quadratic form": quadratic,
    "squares": lambda a: (L.eigh(symmetric(a))[1] ** 2).sum() + (L.eigh(symmetric(a))[0] ** 2).sum(),
    "slope of eigenvalues": lambda a: (
        graphc.grad((L.eigvalsh(symmetric(a)) ** 3).sum(), a) * WEIGHTS.astype(a.dtype)
    ).sum(),
    "svd": product_of_svd(lambda s: s**3),
    "polar": product_of_svd(pt.ones_like),
    "slope of singular values": lambda a: (
        graphc.grad((L.svdvals(a) ** 4).sum(), a) * WEIGHTS.astype(a.dtype)
    ).sum(),
}


@pytest.mark.parametrize("dtype", ["float64", "float32"])
def test_equal_values(dtype):
    """Also values that are equal only but for rounding, and of a batch of which some have equal ones."""
    matrices = np.stack(
        [np.eye(3), TURN @ np.diag([1, 1, 2.0]) @ TURN.T, np.diag([1.0, 2, 2]), np.diag([1.0, 2, 4]) @ TURN]
    )
    exact, given = pt.matrix("exact"), pt.tensor3("given", dtype=dtype)
    values = graphc.function([exact], [f(exact) for f in INVARIANT.values()])
    slopes = graphc.function([given], [graphc.grad(f(given), given) for f in INVARIANT.values()])
    found, step = slopes(matrices.astype(dtype)), 1e-4
    bound = {"float64": 2e-6, "float32": 2e-2}[dtype]
    for number, a in enumerate(matrices):
        expected = np.zeros((len(INVARIANT), 3, 3))
        for i, j in np.ndindex(3, 3):
            moved = step * (np.eye(3)[:, [i]] @ np.eye(3)[[j]])
            near = [np.array(values(a + k * moved)) for k in (1, -1, 2, -2)]
            expected[:, i, j] = (8 * (near[0] - near[1]) - (near[2] - near[3])) / (12 * step)
        for name, right, got in zip(INVARIANT, expected, found, strict=True):
            np.testing.assert_allclose(got[number], right, rtol=bound, atol=bound, err_msg=f"{name} {number}")


def in_a_loop(a):
    def step(t, a):
        return product_of_eigh(pt.sin)(t * a)

    return graphc.scan(step, [pt.constant([1.0, 0.5])], None, [a], return_updates=False).sum()


@pytest.mark.parametrize(
    ("f", "mode"),
    [
        (INVARIANT["exponential"], "fast_compile"),
        (INVARIANT["svd"], "reference"),
        (INVARIANT["slope of singular values"], "reference"),
        (product_of_eig, "reference"),
        (in_a_loop, "reference"),
    ],
)
def test_equal_values_in_forward_mode_and_twice(f, mode):
    """Tangents, and second derivatives in both orders of modes, along a line."""
    a, along = pt.matrix("a"), np.random.default_rng(6).normal(size=(3, 3))
    slope = graphc.grad(f(a), a)
    tangent = graphc.pushforward(f(a), a, pt.constant(along))
    found = graphc.function(
        [a],
        [
            (slope * along).sum(), tangent, graphc.grad((slope * along).sum(), a), graphc.grad(tangent, a),
            graphc.pushforward(slope, a, pt.constant(along)),
        ],
        mode=mode,
    )  # fmt: skip
    slopes = graphc.function([a], slope, mode="reference")
    for given in (2 * np.eye(3), np.diag([1.0, 1, 2]), np.diag([1.0, 2, 4]) + 0.1):
        near = [slopes(given + k * 1e-3 * along) for k in (1, -1, 2, -2)]
        expected = (8 * (near[0] - near[1]) - (near[2] - near[3])) / 12e-3
        backward, forward, *curvatures = found(given)
        np.testing.assert_allclose(forward, backward, rtol=1e-6, atol=1e-6)
        for each in curvatures:
            np.testing.assert_allclose(each, expected, rtol=2e-4, atol=2e-4 * abs(expected).max())


def test_equal_values_of_special_matrices():
    a = pt.matrix("a")
    f = graphc.function(
        [a],
        [graphc.grad(INVARIANT["the matrix itself"](a), a), graphc.grad(product_of_svd(lambda s: s)(a), a)],
    )
    for given in (np.zeros((3, 3)), 1e-150 * np.eye(3), 1e150 * np.eye(3), np.diag([1.0, 0, 0])):
        by_eigh, by_svd = f(given)
        np.testing.assert_allclose(by_eigh, (WEIGHTS + WEIGHTS.T) / 2, rtol=1e-6)
        np.testing.assert_allclose(by_svd, WEIGHTS, rtol=1e-6, atol=1e-6)
    w, v = L.eigh(a)
    empty = graphc.function([a], graphc.grad(((v * w) @ v.T).sum(), a))
    assert empty(np.zeros((0, 0))).shape == (0, 0)
    np.testing.assert_allclose(empty(np.eye(2)), [[1, 0], [2, 1]], atol=1e-7)
    u, s, vh = L.svd(a, full_matrices=False)
    wide = graphc.function([a], graphc.grad(((u * s) @ vh * np.arange(6.0).reshape(2, 3)).sum(), a))
    np.testing.assert_allclose(wide(np.eye(2, 3)), np.arange(6.0).reshape(2, 3), atol=1e-6)
    # A repeated eigenvalue of a matrix that is not symmetric.
    given = np.array([[1.0, 0, 0.5], [0, 1, 0], [0, 0, 2]])
    exponential = graphc.function(
        [a], [graphc.grad(product_of_eig(a), a), graphc.grad((L.expm(a) * WEIGHTS).sum(), a)]
    )
    np.testing.assert_allclose(*exponential(given), rtol=1e-5, atol=1e-5)
