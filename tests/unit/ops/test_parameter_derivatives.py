# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Derivatives of special functions by their orders and parameters, first and second ones, against mpmath's.

No order of differentiation is refused where the other is not.
"""

from __future__ import annotations

import inspect
import itertools

import mpmath
import numpy as np
import pytest

import graphc
import graphc.tensor as pt

mp = mpmath.mp.clone()
mp.dps = 40


def scaled(function, sign):
    return lambda v, x: mp.exp(sign * abs(x)) * function(v, x)


# What mpmath computes, and where.
FUNCTIONS = {
    "jv": (mp.besselj, [(0.5, 2.0), (3.0, 0.1), (0.0, 1e-5), (10.3, 20.0), (2.0, 50.0)]),
    "yv": (mp.bessely, [(0.5, 2.0), (3.0, 0.7), (10.3, 20.0)]),
    "iv": (mp.besseli, [(0.5, 2.0), (3.0, 0.1), (1.5, 1e-5), (10.3, 20.0)]),
    "kv": (mp.besselk, [(0.5, 2.0), (3.0, 0.1), (10.3, 20.0)]),
    "ive": (scaled(mp.besseli, -1), [(0.5, 2.0), (10.3, 20.0)]),
    "kve": (scaled(mp.besselk, 1), [(0.5, 2.0), (10.3, 20.0)]),
    "zeta": (mp.zeta, [(2.0, 1.0), (1.05, 0.5), (3.0, 10.0), (20.0, 2.0), (1.001, 1.0)]),
    "hyp1f1": (mp.hyp1f1, [(1.0, 2.0, 0.5), (0.3, 1.7, -3.0), (2.0, 0.5, 4.0), (5.0, 3.0, 10.0)]),
    "gammainc": (
        lambda a, x: mp.gammainc(a, 0, x, regularized=True),
        [(1.0, 0.5), (2.5, 3.0), (30.0, 25.0), (0.1, 1e-3), (1.0, 1e-4)],
    ),
    "gammaincc": (lambda a, x: mp.gammainc(a, x, regularized=True), [(2.5, 3.0), (0.1, 1e-3)]),
    "betainc": (
        lambda a, b, x: mp.betainc(a, b, 0, x, regularized=True),
        [(1.0, 2.0, 0.3), (5.0, 3.0, 0.7), (0.4, 0.6, 0.01), (30.0, 20.0, 0.6)],
    ),
    "hyp2f1": (mp.hyp2f1, [(1.0, 2.0, 3.0, 0.3), (0.5, 1.5, 2.5, -2.0), (2.0, 0.3, 1.1, 0.8)]),
}
RIGHT = 1e-9  # relative to the derivative or, where that is small, to the function


def derivative(name, places, dtype="float64"):
    count = len(FUNCTIONS[name][1][0])
    variables = [pt.scalar(f"v{i}", dtype=dtype) for i in range(count)]
    value = getattr(pt, name)(*variables)
    for place in places:
        value = graphc.grad(value, variables[place])
    return graphc.function(variables, value, mode="fast_compile", on_unused_input="ignore")


def exact(name, places, point):
    function = FUNCTIONS[name][0]
    orders = tuple(places.count(i) for i in range(len(point)))
    return float(mp.diff(function, [mp.mpf(x) for x in point], orders))


@pytest.mark.parametrize("name", FUNCTIONS)
def test_first_and_second_derivatives(name):
    points = FUNCTIONS[name][1]
    numbers = range(len(points[0]))
    for places in [*((i,) for i in numbers), *itertools.product(numbers, repeat=2)]:
        f = derivative(name, places)
        for point in points:
            small, label = RIGHT * abs(exact(name, (), point)), f"{places} {point}"
            np.testing.assert_allclose(
                f(*point), exact(name, places, point), rtol=RIGHT, atol=small, err_msg=label
            )


@pytest.mark.parametrize("name", ["jv", "kv", "zeta", "hyp1f1", "gammainc"])
def test_single_precision_and_loops(name):
    f, point = derivative(name, (0,), "float32"), FUNCTIONS[name][1][0]
    np.testing.assert_allclose(f(*np.float32(point)), exact(name, (0,), point), rtol=1e-5)
    v, rest = pt.vector("v"), point[1:]
    total, _ = graphc.scan(lambda v: getattr(pt, name)(v, *rest), sequences=[v])
    found = graphc.function([v], graphc.grad(total.sum(), v))([point[0], point[0] + 1])
    expected = [exact(name, (0,), (point[0] + k, *rest)) for k in (0, 1)]
    np.testing.assert_allclose(found, expected, rtol=RIGHT)
    pushed = graphc.pushforward(getattr(pt, name)(v, *rest), v, pt.ones_like(v))
    np.testing.assert_allclose(graphc.function([v], pushed)([point[0], point[0] + 1]), expected, rtol=RIGHT)


def exists(value, *variables):
    try:
        for v in variables:
            value = graphc.grad(value.sum(), v, disconnected_inputs="ignore")
    except graphc.gradient.NullTypeGradError:
        return False
    return True


def special_functions():
    for name in dir(pt.special):
        function = getattr(pt.special, name)
        if name.startswith("_") or not callable(function) or inspect.isclass(function):
            continue
        parameters = inspect.signature(function).parameters.values()
        for count in [len([p for p in parameters if p.default is p.empty and p.kind in (0, 1)]) or 2, 3, 4]:
            variables = [pt.vector(f"v{i}") for i in range(count)]
            try:
                value = function(*variables)
            except (TypeError, ValueError):
                continue
            if isinstance(value, pt.TensorVariable) and value.type.numpy_dtype.kind == "f":
                yield name, value, variables
                break


def test_the_order_of_derivatives_does_not_matter():
    """A mixed derivative exists in both orders or in none; that of whole numbers in none."""
    seen = set()
    for name, value, variables in special_functions():
        seen.add(name)
        for a, b in itertools.combinations(variables, 2):
            assert exists(value, a, b) == exists(value, b, a), f"{name}: {a} and {b}"
        refused = [v for v in variables if not exists(value, v)]
        assert not refused or name in ("polygamma", "sph_legendre"), f"{name} has no derivative by {refused}"
    assert seen >= FUNCTIONS.keys()
