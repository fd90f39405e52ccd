# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Values at the edges of what functions take, in every mode, against NumPy and SciPy."""

from __future__ import annotations

import numpy as np
import pytest

import graphc
import graphc.tensor as pt

MODES = ("fast_run", "fast_compile", "reference")


def vector(dtype, size=None):
    return pt.tensor(dtype=dtype, shape=(size,))


def agree(inputs, pairs, *arguments, modes=MODES):
    """Compares outputs with what NumPy has for them, elements and dtypes, in every mode."""
    for mode in modes:
        found = graphc.function(inputs, [output for output, _ in pairs], mode=mode)(*arguments)
        for got, (_, want) in zip(found, pairs, strict=True):
            want = np.asarray(want)
            assert got.dtype == want.dtype, mode
            np.testing.assert_allclose(got, want, rtol=1e-14, err_msg=mode)
            number = ~np.isnan(want)
            np.testing.assert_array_equal(np.signbit(got.real[number]), np.signbit(want.real[number]), mode)


def refuse(error, match, output, *inputs):
    """The call fails in every mode; `inputs` are pairs of a variable and its value."""
    for mode in MODES:
        f = graphc.function([v for v, _ in inputs], output, mode=mode)
        with pytest.raises(error, match=match):
            f(*(value for _, value in inputs))


def test_repeat_checks_and_broadcasts_counts():
    x, counts, m = pt.lvector("x"), pt.lvector("counts"), pt.dmatrix("m")
    outputs = [pt.repeat(x, counts), pt.repeat(m, counts, axis=1)]
    for mode in MODES:
        f = graphc.function([x, m, counts], outputs, mode=mode)
        for n in (3, 1, 0):
            a, b = np.arange(n), np.arange(2.0 * n).reshape(2, n)
            for c in ([2], [0], list(range(n))):
                for got, want in zip(f(a, b, c), (np.repeat(a, c), np.repeat(b, c, axis=1)), strict=True):
                    np.testing.assert_array_equal(got, want)
        for wrong in ([1, 2], [1, -1, 1], [-1], [1] * 4, [1 << 62] * 3):
            with pytest.raises(ValueError):
                f(np.arange(3), np.zeros((2, 3)), wrong)
    assert graphc.function([x], pt.repeat(x, np.array([True, False])))([5, 6]).tolist() == [5]
    env = graphc.immediate.Environment(mode="reference")
    np.testing.assert_array_equal(env.repeat(env.as_tensor([1, 2]), env.as_tensor([2])), [1, 1, 2, 2])


def test_products_do_not_broadcast():
    one, x = vector("float64", 1), vector("float64")
    row, batch = pt.tensor(dtype="float64", shape=(2, 1)), pt.tensor(dtype="float64", shape=(None, None, 3))
    lead = pt.tensor(dtype="float64", shape=(1, 2, None))
    outputs = {
        (one, x): [
            pt.dot(one, x),
            pt.dot(x, one),
            pt.vecdot(one, x),
            pt.inner(x, one),
            pt.linalg.vecdot(x, one),
        ],
        (row, x): [row @ x, pt.tensordot(row, x, [[1], [0]]), pt.dot(row, x[:, None])],
    }
    for (a, b), products in outputs.items():
        values = np.ones((2, 1) if a is row else 1), np.ones(3)
        for product in products:
            with pytest.raises(ValueError, match="1"):
                graphc.function([a, b], product)(*values)
        refuse(ValueError, "1", products[0], (a, values[0]), (b, values[1]))
        assert graphc.function([a, b], products[0])(values[0], [2.0]).tolist() in (2.0, [2.0, 2.0])
    b = np.arange(24.0).reshape(4, 2, 3)
    agree([lead, batch], [(lead @ batch, np.ones((1, 2, 2)) @ b)], np.ones((1, 2, 2)), b)


def test_masks_fit():
    x, m = pt.dvector("x"), pt.dtensor3("m")
    known = np.array([True, False])
    mask = vector("bool")
    for output in (x[known], x[known].set(1.0), x[known].inc(pt.ones(1)), x[None, known]):
        refuse(IndexError, "3", output, (x, np.ones(3)))
    for index in ((slice(None), known), (Ellipsis, known), (0, Ellipsis, known), (known, None, 0)):
        refuse(IndexError, "3", m[index], (m, np.ones((3, 3, 3))))
        np.testing.assert_array_equal(
            graphc.function([m], m[index])(np.ones((2, 2, 2))), np.ones((2, 2, 2))[index]
        )
    refuse(IndexError, "4", m[:, 0, mask], (m, np.ones((3, 3, 3))), (mask, np.ones(4, bool)))
    env = graphc.immediate.Environment(mode="reference")
    for index in ((known,), (0, known), (Ellipsis, known)):
        with pytest.raises(IndexError, match="does not fit"):
            env.as_tensor(np.ones((3, 3)))[index]


def test_spaced_numbers_with_ends_of_any_shape():
    first, last = np.array([-1.0, 1.0]), np.array([-100.0, 100.0])
    cases = [(first, last), (np.array([1.0, 2]), 100.0), (2, np.array([[4.0, 8]])), (1j, 16 + 2j)]
    outputs = []
    for axis in (0, -1):
        for a, b in cases:
            outputs.append((pt.geomspace(a, b, 4, axis=axis), np.geomspace(a, b, 4, axis=axis)))
        of_base = {"base": np.array([[2.0], [3.0]]), "axis": axis}
        outputs.append((pt.logspace(first, 2.0, 3, **of_base), np.logspace(first, 2.0, 3, **of_base)))
    found = graphc.function([], [x for x, _ in outputs])()
    for got, (_, want) in zip(found, outputs, strict=True):
        np.testing.assert_allclose(got, want, rtol=1e-13)
        assert got.dtype == want.dtype
    np.testing.assert_array_equal(found[0][0], first)
    np.testing.assert_array_equal(found[0][-1], last)


def test_integer_division_at_the_limits():
    for dtype in ("int8", "uint8", "int64", "uint64"):
        x, y = vector(dtype), vector(dtype)
        limits = np.iinfo(dtype)
        numbers = np.array([limits.min, limits.min + 1, 1, 2, 7, limits.max - 1, limits.max], dtype)
        if limits.min < 0:
            numbers = np.concatenate([numbers, np.array([-1, -2, -7], dtype)])
        a, b = (v.ravel() for v in np.meshgrid(numbers, numbers))
        b[b == 0] = 3
        # No division of the smallest integer by -1, whose result does not exist.
        keep = (a != limits.min) | (b != -1) if limits.min < 0 else np.full(a.shape, True)
        a, b = a[keep], b[keep]
        ceil = np.array([-(-int(p) // int(q)) for p, q in zip(a, b, strict=True)], dtype)
        fmod = np.array(
            [int(p) - int(q) * trunc_div(int(p), int(q)) for p, q in zip(a, b, strict=True)], dtype
        )
        pairs = [
            (pt.ceil_intdiv(x, y), ceil),
            (pt.fmod(x, y), fmod),
            (pt.mod(x, y), np.mod(a, b)),
            (x // y, a // b),
        ]
        agree([x, y], pairs, a, b)


def test_floor_division_of_infinite_numbers_rounds_their_quotient_down():
    ends = [np.inf, -np.inf, 0.0, -0.0, 2.5, -2.5, 1e-7, 6e4, np.nan]
    for dtype in ("float16", "float32", "float64"):
        x, y = vector(dtype), vector(dtype)
        a, b = (v.ravel() for v in np.meshgrid(np.array(ends, dtype), np.array(ends, dtype)))
        with np.errstate(all="ignore"):
            infinite = np.isinf(a) | np.isinf(b)
            quotient = np.where(infinite, np.floor(a / b), np.floor_divide(a, b))
            agree([x, y], [(x // y, quotient), (x % y, np.mod(a, b))], a, b)
            eager = graphc.immediate.Environment()
            found = np.asarray(eager.numpy_to_tensor(a) // eager.numpy_to_tensor(b))
        np.testing.assert_array_equal(found, quotient)
        known = ~np.isnan(quotient)
        np.testing.assert_array_equal(np.signbit(found[known]), np.signbit(quotient[known]))


def test_expm1_of_a_negative_zero_and_an_imaginary_part():
    for dtype in ("complex64", "complex128"):
        z = vector(dtype)
        values = np.array(
            [complex(-0.0, 0.0), complex(-0.0, -0.0), complex(0.0, -0.0), complex(-1e-9, 1e-9)], dtype
        )
        for mode in ("fast_run", "reference"):
            w = graphc.function([z], pt.expm1(z), mode=mode)(values)
            assert np.signbit(w.real).tolist() == [False, False, False, True]
            assert np.signbit(w.imag).tolist() == [False, True, True, False]
            np.testing.assert_allclose(w, np.expm1(values), rtol=1e-6)


def test_tanh_of_an_infinite_real_part():
    for dtype in ("complex64", "complex128"):
        z = vector(dtype)
        values = np.array([complex(x, y) for x in (np.inf, -np.inf) for y in (2.0, -2.0, 0.5, 3e15)], dtype)
        for mode in ("fast_run", "reference"):
            w = graphc.function([z], pt.tanh(z), mode=mode)(values)
            np.testing.assert_array_equal(w.real, np.sign(values.real))
            np.testing.assert_array_equal(w.imag, 0)
            np.testing.assert_array_equal(np.signbit(w.imag), np.signbit(values.imag))


@pytest.mark.parametrize("number", [-1, 256, 1 << 80])
def test_numbers_beyond_a_dtype(number):
    for make in (pt.as_tensor, graphc.immediate.Environment().array_api.asarray):
        with pytest.raises(OverflowError, match="cannot make a tensor"):
            make(number, dtype="uint8")


def trunc_div(p, q):
    return abs(p) // abs(q) * (1 if (p < 0) == (q < 0) else -1)


def test_extremes_of_complex_numbers_pass_over_nan():
    for dtype in ("complex128", "complex64"):
        z, w = vector(dtype), vector(dtype)
        numbers = np.array([np.nan, 1 + 1j, complex(1, np.nan), 2, -np.inf, complex(np.nan, np.nan)], dtype)
        a, b = (v.ravel() for v in np.meshgrid(numbers, numbers))
        agree([z, w], [(pt.fmax(z, w), np.fmax(a, b)), (pt.fmin(z, w), np.fmin(a, b))], a, b)


def test_square_root_as_a_power():
    for dtype in ("float64", "float32", "float16"):
        x, y, one = vector(dtype), vector(dtype), pt.tensor(dtype=dtype, shape=())
        a, half = np.array([-np.inf, -0.0, 0.0, 4, np.inf, np.nan], dtype), np.array(0.5, dtype)
        root, power = (
            np.sqrt(a, where=a != -np.inf, out=np.full_like(a, np.nan)),
            np.power(a, np.full_like(a, 0.5)),
        )
        constant = [(x**0.5, root), (x ** pt.constant(half), root), (pt.power(x, half.reshape(1)), root)]
        agree([x, y, one], [*constant, (x**y, power), (x**one, power)], a, np.full_like(a, 0.5), half)


@pytest.mark.parametrize("dtype", ["int8", "uint32", "int64", "bool", "float16", "complex64"])
def test_closeness(dtype):
    x, y = vector(dtype), vector(dtype)
    if dtype == "bool":
        numbers = np.array([True, False])
    elif dtype in ("float16", "complex64"):
        numbers = np.array([0, -0.0, 1, np.inf, -np.inf, np.nan, 65504], dtype)
    else:
        limits = np.iinfo(dtype)
        numbers = np.array([limits.min, limits.max, limits.max - 1, 0, 1, limits.max // 2], dtype)
    a, b = (v.ravel() for v in np.meshgrid(numbers, numbers))
    pairs = [(pt.isclose(x, y), np.isclose(a, b)), (pt.allclose(x, y), np.allclose(a, b))]
    pairs += [(pt.isclose(x, y, 0.5, 0.25, True), np.isclose(a, b, 0.5, 0.25, True))]
    pairs += [(pt.array_equal(x, y, equal_nan=True), np.array_equal(a, b, equal_nan=True))]
    agree([x, y], pairs, a, b)


def test_gradients_at_the_ends_of_the_domain():
    x = pt.dvector("x")
    slope = graphc.grad(pt.sum(pt.log1mexp(x)), x)
    for mode in MODES:
        np.testing.assert_array_equal(graphc.function([x], slope, mode=mode)([0.0, -0.0]), [-np.inf] * 2)
    parameters = [pt.dscalar(name) for name in "abcz"]
    slopes = graphc.grad(pt.hyp2f1(*parameters), parameters[:3])
    # From 40-digit central differences.
    known = {
        (1, 31, 41, 1): (6.825270649241036, 0.49382716049382713, -0.38271604938271603),
        (-2, 3.5, 2.25, 1): (0.10301470506610935, 0.20512820512820512, -0.23727080137336548),
        (2.5, -3.25, 0.5, 1): (-0.7264575042194618, 0.0, 0.7264575042194618),
        (0.5, 0.5, 2, 1): (0.7813942882491126, 0.7813942882491126, -0.28954903176306257),
    }
    for mode in MODES:
        f = graphc.function(parameters, slopes, mode=mode)
        for point, want in known.items():
            np.testing.assert_allclose(f(*point), want, rtol=1e-13, atol=1e-15)


def test_integer_powers_of_negative_exponents():
    x, y, k = vector("int64"), vector("int64"), pt.lscalar("k")
    narrow, unsigned = vector("int8"), vector("uint8")
    zero = pt.constant(np.int64(0))
    looped = graphc.scan(
        lambda a, b, c: c + a**b, sequences=[x, y], outputs_info=[zero], return_updates=False
    )
    a, b = np.array([2, -3, -1]), np.array([62, 3, 5])
    agree([x, y], [(x**y, a**b), (looped, np.cumsum(a**b))], a, b)
    small = np.array([3, 7, 255], "uint8")
    agree([unsigned], [(unsigned**unsigned, small**small), (unsigned**2, small**2)], small)
    b[1] = -1
    refuse(ValueError, "negative integer", pt.stack([(x**y).sum(), looped[-1]]), (x, a), (y, b))
    mapped = graphc.scan(lambda a: a**k, sequences=[x], return_updates=False)
    for output in (x**k, mapped):
        refuse(ValueError, "negative integer", output, (x, a), (k, -2))
        agree([x, k], [(output, a[:0])], a[:0], -2)
    chosen = graphc.ifelse(k > 0, x**k, x)
    agree([x, k], [(chosen, a)], a, -2)
    refuse(ValueError, "negative integer", narrow ** (narrow - 5), (narrow, np.array([7, 1], "int8")))
    refuse(ValueError, "negative integer", x**-1, (x, a))


@pytest.mark.parametrize("dtype", ["bool", "int8", "uint8", "int16", "uint16", "int32", "uint64", "float16"])
def test_special_functions_of_integers(dtype):
    """SciPy has them in float32 for 16 bits and less, in float64 for others; nothing wraps around."""
    import scipy.special

    x, y = vector(dtype), vector(dtype)
    a, b = (
        np.array([0, 1, 2, 3, 7], "uint8").astype(dtype),
        np.array([1, 1, 2, 5, 120], "uint8").astype(dtype),
    )
    wide = np.dtype(
        "float64" if np.dtype(dtype).itemsize > 2 else "float16" if dtype == "float16" else "float32"
    )
    names = "gammaln erf psi expit ndtr i0e entr rgamma exprel factorial log_expit cosm1 exp10".split()
    pairs = [(name, (x,), (a,)) for name in names]
    pairs += [(name, (x, y), (a, b)) for name in "xlogy gammainc betaln boxcox1p chdtr pdtrc stdtr".split()]
    pairs += [(name, (y, x), (b, a)) for name in ("comb", "perm", "poch", "binom", "huber")]
    found = graphc.function([x, y], [getattr(pt.special, name)(*given) for name, given, _ in pairs])(a, b)
    for got, (name, _, values) in zip(found, pairs, strict=True):
        want = getattr(scipy.special, name)(*(v.astype("float64") for v in values))
        assert got.dtype == wide, name
        with np.errstate(over="ignore"):
            rounded = want.astype(wide)
        np.testing.assert_allclose(got, rounded, rtol=4 * np.finfo(wide).eps, atol=1e-300, err_msg=name)


def test_sizes_that_no_number_of_64_bits_holds():
    m, v, n, k = (
        pt.tensor("m", dtype="int8", shape=(None, None)),
        vector("int8"),
        pt.lscalar("n"),
        pt.lscalar("k"),
    )
    long, longer = np.zeros((1 << 61, 0), "int8"), np.zeros(((1 << 63) - 1, 0), "int8")
    for output, value in (
        (pt.repeat(m, 8, axis=0), long),
        (pt.tile(m, (8, 1)), long),
        (pt.broadcast_to(m, (8, m.shape[0], m.shape[1])), long),
        (pt.concatenate([m, m]), longer),
        (pt.pad(m, ((1, 0), (0, 0))), longer),
    ):
        refuse(ValueError, "large|agree|memory", output, (m, value))
    for mode in MODES:
        f = graphc.function([v, n], pt.repeat(v, n), mode=mode)
        with pytest.raises((ValueError, MemoryError)):
            f(np.ones(3, "int8"), 1 << 62)
        f = graphc.function([n, k], [pt.zeros((n, k)), pt.arange(n, k)], mode=mode)
        for given in ((1 << 33, 1 << 33), (1 << 62, 0), (-2, 1 << 62)):
            with pytest.raises((ValueError, MemoryError)):
                f(*given)
        f = graphc.function([n, k], [pt.arange(n, k), pt.arange(k, n, -3)], mode=mode)
        found = f((1 << 63) - 1, -(1 << 63) + 5)
        assert [x.size for x in found] == [0, 0]
        with pytest.raises((ValueError, MemoryError)):
            f(-(1 << 63) + 5, (1 << 63) - 1)


def test_statistics_that_pass_over_nan():
    x, z = vector("float64"), vector("complex128")
    a = np.array([1.0, np.nan, 3.0, 5.5])
    b = np.array([1 + 1j, np.nan, complex(1, np.nan), -2, complex(-np.inf, 1)])
    with np.errstate(all="ignore"):
        for value in (a, np.array([np.inf, np.nan, 1.0]), np.array([-np.inf])):
            agree(
                [x],
                [(pt.nanvar(x), np.nanvar(value)), (pt.nanmean(x), np.nanmean(value))],
                value,
                modes=MODES[2:],
            )
    agree([z], [(pt.nanmax(z), np.nanmax(b)), (pt.nanmin(z), np.nanmin(b))], b)
    assert np.isnan(graphc.function([x], pt.cov(x), mode="reference")([]))


def test_slopes_of_sums_of_exponentials_that_are_nothing():
    """Where nothing can happen the slope is 0; a NaN there would reach the slopes of all that can."""
    m, x, y = pt.dmatrix("m"), vector("float64"), vector("float64")
    inf = np.inf
    rows = np.array([[-inf, -inf], [-inf, 1], [0, 0], [1e3, 1e3 - np.log(3)]])
    shares = [[0, 0], [0, 1], [0.5, 0.5], [0.75, 0.25]]
    ends = np.array([-inf, -inf, 0, inf, 0, 2]), np.array([-inf, 0, -inf, 0, inf, 2])
    for mode in MODES:
        total = pt.logsumexp(m, axis=1)
        f = graphc.function([m], [total, graphc.grad(total.sum(), m)], mode=mode)
        found, slopes = f(rows)
        np.testing.assert_allclose(found, np.logaddexp(*rows.T), rtol=1e-15)
        np.testing.assert_allclose(slopes, shares, rtol=1e-12)
        for z in (pt.logaddexp(x, y), pt.logaddexp2(x, y)):
            of_x, of_y = graphc.function([x, y], graphc.grad(z.sum(), [x, y]), mode=mode)(*ends)
            np.testing.assert_array_equal(of_x, [0, 0, 1, 1, 0, 0.5])
            np.testing.assert_array_equal(of_y, [0, 1, 0, 0, 1, 0.5])
