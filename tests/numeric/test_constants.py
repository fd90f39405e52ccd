# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Constants of one number that broadcast, in all that a rewrite matches.

The oracle is the same graph with the constant as an input, which no rule can take for a number. A rule that
drops a constant of ones with its shape, or takes one of -1 for one of 1, differs from it.
"""

from __future__ import annotations

from functools import cache

import numpy as np
import pytest

import graphc
import graphc.tensor as pt

# Of an operand x and a constant c: each line is a form that some rule knows for c of 1, 0, -1 or 2.
FORMS = {
    "add": lambda x, c: pt.log(c + pt.exp(x)) + pt.log1p(pt.exp(x) + c),
    "sum of terms": lambda x, c: pt.log1p((c + pt.exp(x)).sum()),
    "sums": lambda x, c: pt.log((c * pt.exp(x)).sum()) + pt.log((c + pt.exp(x)).sum(axis=-1)).sum(),
    "three terms": lambda x, c: pt.log(c + pt.exp(x) + pt.exp(2 * x)),
    "log1p": lambda x, c: pt.log(c + x * x),
    "logit": lambda x, c: pt.log(pt.sigmoid(x) / (c - pt.sigmoid(x))),
    "log of difference": lambda x, c: pt.log(c - pt.exp(-x * x)) + pt.log1p(-c * pt.sigmoid(x)),
    "differences": lambda x, c: (pt.exp(x) - c) * (c - pt.exp(x)) + (c - pt.sigmoid(x)),
    "erf": lambda x, c: pt.log(c + pt.erf(x)) + (c - pt.erf(x)) * (c - pt.erfc(x)) + (pt.erf(x) - c),
    "quotients": lambda x, c: c / (c + pt.exp(x)) + pt.exp(x) / (c + pt.exp(x)) + 1 / (c + pt.exp(-x)),
    "share": lambda x, c: pt.exp(x) * (c / pt.exp(x).sum(axis=-1, keepdims=True)),
    "share of terms": lambda x, c: pt.exp(x) * (x / (c + pt.exp(x) + pt.exp(2 * x))),
    "arithmetic": lambda x, c: (x + c) * c - c * (x - c) + (c - x) / pt.switch(pt.eq(c, 0), 3.0, c),
    "neutral": lambda x, c: (x + 0 * c) + x * c + x**c + c**x.clip(0.5, 2),
    "chains": lambda x, c: ((x + c) + c) * c * 2 - -(x * c) + (-x) * c,
    "extremes": lambda x, c: pt.maximum(pt.maximum(x, c), c) + pt.minimum(c, x) + pt.switch(x > c, x, c),
    "reductions": lambda x, c: (x * c).sum() + (c + x).max(axis=-1).sum() + (c * x).prod(),
    "logs of products": lambda x, c: pt.log(pt.prod(c * pt.exp(x), axis=-1)).sum() + pt.log(c * pt.exp(x)),
    "products": lambda x, c: pt.exp(x) * pt.exp(c) * pt.exp(c - x) + pt.exp(x) / pt.exp(c),
    "powers": lambda x, c: pt.exp(x) ** c * pt.exp(x) ** -c + (x * x) ** c,
    "logaddexp": lambda x, c: pt.logaddexp(c, x) + pt.logaddexp(pt.log(c), x),
    "xlogy": lambda x, c: pt.xlogy(c, pt.exp(x)) + pt.xlog1py(x, c),
    "views": lambda x, c: pt.log((c + pt.exp(x))[..., 0]) + pt.log((c - pt.sigmoid(x)).T).sum(),
}  # fmt: skip
# The shape of x, its static sizes, and that of the constant: bigger, with leading axes, of size 1.
SHAPES = [
    ((), (), (3,)),
    ((), (), (2, 3)),
    ((3,), (None,), ()),
    ((3,), (None,), (1,)),
    ((3,), (3,), (3,)),
    ((3,), (None,), (3,)),
    ((3,), (None,), (2, 3)),
    ((1,), (1,), (3,)),
    ((2, 1), (None, 1), (3,)),
    ((2, 3), (None, None), (1, 1)),
    ((1, 3), (1, None), (2, 1)),
    ((2, 3), (2, 3), (4, 1, 1)),
]


def outputs_of(name, variable_of):
    """Inputs x and c of each shape, values and gradients for the c of `variable_of`, and the shapes."""
    inputs, outputs, shapes = [], [], []
    for shape, static, constant in SHAPES:
        x = pt.tensor("x", shape=static, dtype="float64")
        c = pt.tensor("c", shape=[1 if n == 1 else None for n in constant], dtype="float64")
        try:
            out = FORMS[name](x, variable_of(c, constant))
        except IndexError:  # a view of a number
            continue
        weights = pt.cos(pt.arange(out.size)).reshape(out.shape) if out.type.ndim else 1
        inputs += [x, c]
        outputs += [out, graphc.grad((out * weights).sum(), x)]
        shapes.append((shape, constant))
    return inputs, outputs, shapes


@cache
def oracle(name):
    """The dimensions of the outputs, and a function of them, which is the same for all numbers."""
    inputs, outputs, _ = outputs_of(name, lambda c, constant: c)
    return [y.type.ndim for y in outputs], graphc.function(
        inputs, outputs, mode="reference", on_unused_input="ignore"
    )


@pytest.mark.parametrize("number", [1, 0, -1, 2])
@pytest.mark.parametrize("name", FORMS)
def test_keep_their_shape(name, number):
    """Values and gradients."""
    given, results, shapes = outputs_of(
        name, lambda c, constant: pt.constant(np.full(constant, number, dtype="float64"))
    )
    dimensions, compute = oracle(name)
    assert [y.type.ndim for y in results] == dimensions
    values = []
    for shape, constant in shapes:
        values += [np.random.default_rng(1).normal(size=shape), np.full(constant, number, dtype="float64")]
    with np.errstate(all="ignore"):
        wanted = compute(*values)
        for mode in ("reference", "fast_run"):
            found = graphc.function(given, results, mode=mode, on_unused_input="ignore")(*values)
            for i, (one, other) in enumerate(zip(found, wanted, strict=True)):
                assert one.shape == other.shape, (mode, i, shapes[i // 2])
                value = wanted[i - i % 2]
                if i % 2 and not np.isfinite(value).all():
                    continue
                where = np.isfinite(other)
                message = f"{mode}, {'gradient' if i % 2 else 'value'}, {shapes[i // 2]}"
                np.testing.assert_allclose(one[where], other[where], 1e-9, 1e-12, err_msg=message)
