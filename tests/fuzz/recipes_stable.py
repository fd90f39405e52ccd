# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Recipes of what stable forms match: exponentials behind moves, constants with shapes, slopes far out.

Where the graph as written overflows or cancels, a plain interpreter is no measure: these lines say with
``exact`` that NumPy's text, a closed form, is what the compiled line should be (`checked.exact_values`).
So it is for densities with sums over hidden states, whose slopes are the states' probabilities, and for
functions of matrices that are homogeneous: of numbers times a power of 2 they are a power of 2 times theirs.
"""

from __future__ import annotations

import inspect

import numpy as np
from growing import Builder, Unfit
from recipes import RECIPES, recipe

# What is around a value, the value, and the closed form of both.
FORMS = (
    ("pt.log({y})", "pt.softmax({x}, axis=-1)", "pt.log_softmax({x}, axis=-1)"),
    ("-pt.log({y})", "pt.sigmoid({x})", "np.logaddexp(0, -{x})"),
    ("pt.log1p({y})", "pt.exp({x})", "np.logaddexp(0, {x})"),
    ("pt.log(1 + {y})", "pt.exp({x})", "np.logaddexp(0, {x})"),
    ("pt.log(1 - {y})", "pt.sigmoid({x})", "-np.logaddexp(0, {x})"),
    ("pt.log({y})", "pt.sum(pt.exp({x}), axis=-1)", "np.logaddexp.reduce({x}, axis=-1)"),
    ("pt.log({y})", "(pt.exp({x}) + pt.exp(-{x}) + 1)", "np.logaddexp.reduce([{x}, -{x}, {x} * 0])"),
    ("pt.log({y})", "pt.prod(pt.exp({x}), axis=-1)", "np.sum({x}, axis=-1)"),
    ("pt.log({y})", "(pt.sigmoid({x}) / (1 - pt.sigmoid({x})))", "{x} + 0"),
    ("pt.log({y})", "pt.exp({x})", "{x} + 0"),
    ("pt.arctanh({y})", "pt.tanh({x})", "{x} + 0"),
    ("pt.arccosh({y})", "pt.cosh({x})", "abs({x})"),
    ("pt.arcsinh({y})", "pt.sinh({x})", "{x} + 0"),
    ("{y}", "(pt.exp({x}) * pt.exp(1 - {x}))", "np.exp({x} * 0 + 1)"),
)  # fmt: skip
# What moves elements, or selects some.
MOVES = (
    *("{y}", "{y}", "{y}[..., 0]", "{y}.T", "{y}[..., ::-1]", "{y}[1:]", "{y}[None]"),
    "pt.reshape({y}, (-1,))",
    *("pt.take({y}, np.array([0, -1]), axis=-1)", "pt.take_along_axis({y}, {s}, axis=-1)"),
)  # fmt: skip
# Functions of elements and their slopes, without overflow and cancellation. That of tanh is 1 - tanh(x) ** 2
# in every library, exact to the last place of 1 and not to its own.
SLOPES = (
    ("pt.expm1({x})", "np.exp({x})"),
    ("pt.sigmoid({x})", "pt.expit({x}) * pt.expit(-{x})"),
    ("pt.softplus({x})", "pt.expit({x})"),
    ("pt.log1p(pt.exp({x}))", "pt.expit({x})"),
    ("pt.logaddexp({x}, 0)", "pt.expit({x})"),
    ("pt.log(pt.sigmoid({x}))", "pt.expit(-{x})"),
    ("pt.erf({x})", "2 / np.sqrt(np.pi) * np.exp(-{x} * {x})"),
    ("pt.arctan({x})", "1 / (1 + {x} * {x})"),
    ("pt.arcsinh({x})", "1 / np.hypot({x}, 1)"),
    ("pt.hypot({x}, 1)", "{x} / np.hypot({x}, 1)"),
    ("pt.exp2({x})", "np.log(2) * np.exp2({x})"),
    ("pt.log(pt.sum(pt.exp({x}), axis=-1))", "pt.softmax({x}, axis=-1)"),
    ("-pt.log(pt.softmax({x}, axis=-1))[..., 0]", "pt.softmax({x}, axis=-1) + np.eye({x}.shape[-1])[0]"),
)
# Of an expression x, constants of ones, zeros and -1 that broadcast; and what may be around that. What stable
# forms match is more likely, and so is a sum within a logarithm.
WITH_CONSTANTS = (
    *("{one} + pt.exp({x})", "{one} - pt.sigmoid({x})", "{one} + pt.erf({x})", "{one} - pt.erf({x})") * 5,
    *("{one} / ({one} + pt.exp(-{x}))", "pt.exp({x}) - {one}", "{one} + pt.tanh({x})", "{x} * {one}"),
    *("{x} / {one}", "{x} ** ({one} * 2)", "{one} - pt.tanh({x}) ** 2", "{zero} + {x}", "{zero} - {x}"),
    *("{x} * {zero}", "pt.maximum({x}, {zero})", "pt.where({x} > {zero}, {one}, {x})", "{minus} * {x}"),
    *("pt.softmax({x} * {one}, axis=-1)", "pt.logsumexp({x} + {zero}, axis=-1)", "pt.expm1({zero} + {x})"),
    *("{one} + {x} * {x}", "pt.exp({minus} * {x})", "{one} - pt.exp({minus} * {x} * {x})", "{x} ** {minus}"),
    *("pt.sqrt({one} + {x} * {x}) - {one}", "{one} * 2 * {x}", "pt.cumsum({one} * {x}, axis=-1)"),
)
AROUND = (
    *("{y}", "{y}", "pt.log({y})", "pt.log1p({y})", "pt.log(({y}).sum())", "pt.log1p(({y}).sum())"),
    *("pt.log(({y}).prod())", "1 / ({y}).sum()", "({y}).mean()"),
    *("pt.log(({y}).sum())", "pt.log1p(({y}).sum())") * 3,
)


def _far(b: Builder, shape: tuple[int, ...], scale: float, signs: tuple[int, ...] = (-1, 1)) -> str:
    rng = np.random.default_rng(b.r.randrange(2**32))
    value = rng.uniform(0.3, 1.2, shape) * rng.choice(signs, shape) * scale
    return b.add_input(value=value.astype(b.pick(["float64", "float64", "float32"])))


@recipe(3)
def stable_form(b: Builder) -> None:
    around, inner, exact = b.pick(FORMS)
    shape = (3, 4) if "axis=-1)" in inner else b.pick([(4,), (3, 4)])
    x = _far(b, shape, b.pick([1, 10, 100, 800, 1000]))
    move, reduced = b.pick(MOVES), inner.startswith(("pt.sum", "pt.prod"))
    of = f"np.array({np.zeros(shape[:-1] if reduced else shape, int).tolist()})"
    text = around.format(y=move.format(y=inner, s=of)).format(x=x)
    numpy = move.format(y=f"({exact})", s=of).format(x=x)
    b.kept.append(b.add(text, "stable_form", numpy=numpy, exact=True)[0])


@recipe(2)
def stable_slope(b: Builder) -> None:
    f, slope = b.pick(SLOPES)
    scale, sign = b.pick([0.01, 1, 5, 20, 20, 40, 100, 800, 1000]), (b.pick([-1, 1]),)
    x = _far(b, b.pick([(4,), (2, 3)]), scale, (-1, 1) if "axis" in f else sign)
    if b.chance(8):
        value = b.numbers((b.pick([3, 4]),), "float64", "few")
        value[b.r.randrange(3)] = 0
        x, n = b.add_input(value=value), len(value)
        entry = "np.prod(np.delete({x}, [i, j])) * (i != j)"
        slope = f"np.array([[{entry} for j in range({n})] for i in range({n})])"
        text = f"graphc.hessian(pt.prod({x}), {x})"
    else:
        text = f"graphc.grad(({f.format(x=x)}).sum(), {x})"
    if "eye" in slope:
        # A probability less 1 is as exact as 1.
        text = f"{text} + 2 * np.eye({b.shape(x)[-1]}, dtype='{b.dtype(x)}')[0]"
    b.kept.append(b.add(text, "stable_slope", numpy=slope.format(x=x), exact=True)[0])


@recipe(4)
def constants_with_shapes(b: Builder) -> None:
    """Its gradient is compared with differences."""
    x = b.add_input(b.pick([(), (), (1,), (3,), (1, 3), (2, 1), (2, 3)]), "float64")
    like = b.pick(["(3,)", "(1,)", "(2, 1)", "(2, 3)", "()", "(1, 1, 1)"])
    made = [f"np.{{}}({like})", f"pt.{{}}({like})", f"pt.constant(np.{{}}({like}))"]
    made.append(f"pt.{{}}_like({x})")
    one, zero, minus = (b.pick(made) for _ in range(3))
    found = {"one": one.format("ones"), "zero": zero.format("zeros"), "minus": f"(-{minus.format('ones')})"}
    text = b.pick(AROUND).format(y=b.pick(WITH_CONSTANTS)).format(x=x, **found)
    y = b.one(text, "constants_with_shapes", numpy="")
    b.kept += [
        y,
        b.one(f"graphc.grad({b.pick([f'{y}.sum()', f'({y} * {y}).sum()'])}, {x})", "gradient", numpy=""),
    ]


# What is positive, and what divides by a sum of such, or has its logarithm.
TERMS = ("1", "1", "1.0", "pt.exp({x})", "pt.exp({x})", "pt.exp(-{x})", "pt.sigmoid({x})", "{x} * {x}")
OF_TERMS = ("pt.log({y})", "pt.log1p({y})", "1 / {y}", "pt.exp({x}) / {y}", "{y} / (1 + {y})", "{y} * {y}")


@recipe(3)
def terms_several_times(b: Builder) -> None:
    """Sums and products in which a rewrite has to count equal terms and factors."""
    x = b.add_input(b.pick([(), (3,), (2, 3)]), "float64")
    y = "pt.exp({x})"
    for _ in range(b.pick([2, 3, 4])):
        y = f"({b.pick([y, b.pick(TERMS)])} {b.pick('+++*')} {y})"
    y = b.one(b.pick(OF_TERMS).replace("{y}", y).format(x=x), "terms_several_times", numpy="")
    b.kept += [y, b.one(f"graphc.grad({y}.sum(), {x})", "gradient", numpy="")]


@recipe(2)
def extremes(b: Builder) -> None:
    """A function of numbers that are very large, or very small."""
    wide = b.chance(1.5)
    scale = 10.0 ** b.pick([-300, -150, -30, 30, 150, 300] if wide else [-30, -15, 15, 30])
    rng = np.random.default_rng(b.r.randrange(2**32))
    value = rng.uniform(-2, 2, b.pick([(), (3,), (2, 2), (3, 3)])) * scale
    calm, focus = b.calm, b.focus
    b.focus, b.insist, b.calm = (
        b.add_input(value=np.asarray(value, "float64" if wide else "float32")),
        True,
        False,
    )
    try:
        for _ in range(3):
            try:
                RECIPES["library"](b)
                return
            except Unfit:
                b.raises = False
    finally:
        b.focus, b.insist, b.calm = focus, False, calm
    raise Unfit


@recipe(2)
def taken_apart(b: Builder) -> None:
    """A vector of parameters in parts, of which each has a use of its own, and its gradient."""
    parts, size = b.pick([2, 3, 4]), b.pick([1, 2, 3])
    v = b.add_input((parts * size,), b.pick(["float64", "float64", "float32"]))
    if b.chance(2):
        v = b.one(f"pt.specify_shape({v}, ({parts * size},))", "fit", numpy=f"{v} + 0")
    cuts = [f"{v}[{i * size}:{(i + 1) * size}]" for i in range(parts)]
    forms = [f"pt.split({v}, {[size] * parts}, n_splits={parts}, axis=0)"] if b.chance(2) else []
    forms += [
        f"[{', '.join(cuts)}]",
        f"[{', '.join(f'pt.reshape({v}, ({parts}, {size}))[{i}]' for i in range(parts))}]",
    ]
    if b.chance(3):
        forms = [
            f"[{', '.join(f'{v}[{i}::{parts}]' for i in range(parts))}]",
            f"[{v}[1:], {v}[:-1], {v}[0], {v}[-1]]",
        ]
    found = b.add(b.pick(forms), "taken_apart", numpy="")
    uses = [
        "pt.sin({p}).sum()",
        "({p} * {p}).sum()",
        "pt.exp({p}).sum()",
        "pt.prod({p})",
        "pt.tanh({p}).mean()",
    ]
    cost = b.one(" + ".join(b.pick(uses).format(p=p) for p in found), "taken_apart", numpy="")
    g = b.one(f"graphc.grad({cost}, {v})", "gradient", numpy="")
    b.kept += [cost, g, *b.r.sample(found, b.pick([0, 1]))]
    if b.chance(3):
        b.kept.append(b.one(f"graphc.grad(({g} * {g}).sum(), {v})", "gradient", numpy=""))


def hidden_states(rows, steps, start):
    """The log likelihood of a hidden Markov model by NumPy, and its slopes by the rows."""
    states = [start]
    for row in rows:
        states.append(np.logaddexp.reduce(states[-1][:, None] + steps, axis=0) + row)
    ahead, slopes = np.zeros_like(start), []
    for row, state in zip(rows[::-1], states[:0:-1], strict=True):
        weights = state + ahead - np.logaddexp.reduce(state + ahead)
        slopes.append(np.exp(weights))
        ahead = np.logaddexp.reduce(steps + (row + ahead)[None, :], axis=1)
    return np.logaddexp.reduce(states[-1]), np.array(slopes[::-1])


# The log of a sum of exponentials of a vector of states, or of a matrix along an axis.
LOG_SUMS = (
    "pt.logsumexp({m}, axis={a})",
    "pt.log(pt.exp({m}).sum(axis={a}))",
    "pt.log(pt.sum(pt.exp({m}), {a}))",
)


@recipe(1.5)
def hidden_markov(b: Builder) -> None:
    """The forward algorithm, far out; and the probabilities of the states, which are its gradient."""
    n, k = b.pick([1, 2, 5]), b.pick([2, 3])
    scale = b.pick([1, 10, 100, 1000, 3000])
    rng = np.random.default_rng(b.r.randrange(2**32))
    rows = b.add_input(value=rng.uniform(-1.2, -0.3, (n, k)) * scale * b.pick([1, 1, -1]))
    chances = rng.uniform(0.1, 1, (k, k))
    steps = b.add_input(value=np.log(chances / chances.sum(axis=1, keepdims=True)))
    start = b.add_input(value=np.log(np.full(k, 1 / k)))
    inner, last = (b.pick(LOG_SUMS) for _ in range(2))
    step = f"lambda r, h, t: {inner.format(m='(h[:, None] + t)', a=0)} + r"
    if b.chance(3):
        step = f"lambda r, h, t: {inner.format(m='(h[:, None] + t + r)', a=0)}"
    loop = f"graphc.scan({step}, sequences=[{rows}], outputs_info=[{start}], non_sequences=[{steps}]"
    total = last.format(m=f"{loop}, return_updates=False)[-1]", a="-1")
    given, helpers = f"hidden_states({rows}, {steps}, {start})", (inspect.getsource(hidden_states),)
    chosen = b.pick([0, 1, 2])
    if chosen != 1:
        made = b.add(total, "hidden_markov", numpy=f"{given}[0]", helpers=helpers, exact=True)
        b.kept.append(made[0])
    if chosen:
        # Probabilities are as exact as the logarithms that they are made of, which are as large as their sum.
        text, numpy = f"{scale * n} + graphc.grad({total}, {rows})", f"{scale * n} + {given}[1]"
        made = b.add(text, "hidden_markov", numpy=numpy, helpers=helpers, exact=True)
        b.kept.append(made[0])


# Of a vector of logarithms, and their slopes.
MIXTURES = (
    ("pt.logsumexp({v})", "pt.softmax({v})"),
    ("pt.log(pt.exp({v}).sum())", "pt.softmax({v})"),
    ("pt.log(pt.exp({v}).mean())", "pt.softmax({v})"),
    ("pt.log(pt.exp({v})[0] + pt.exp({v})[1:].sum())", "pt.softmax({v})"),
    ("pt.logaddexp({v}[0], pt.logsumexp({v}[1:]))", "pt.softmax({v})"),
    ("pt.logaddexp({v}[:-1], {v}[-1:]).sum()", "LOGADDEXP"),
    ("({v}.max() + pt.log(pt.exp({v} - {v}.max()).sum()))", "pt.softmax({v})"),
    ("pt.where(pt.isinf({v}.max()), {v}.max(), pt.logsumexp({v}))", "pt.softmax({v})"),
)


def slopes_of_pairs(v):
    """Slopes of the sum of ``logaddexp(v[:-1], v[-1])`` by NumPy."""
    first, last = (1 / (1 + np.exp(np.minimum(sign * (v[-1] - v[:-1]), 700))) for sign in (1, -1))
    return np.append(first, last.sum())


@recipe(1.5)
def mixture(b: Builder) -> None:
    """The slope of a density that is a sum over kinds, each of which is far out."""
    kinds, data = b.pick([2, 3]), b.pick([3, 40])
    rng = np.random.default_rng(b.r.randrange(2**32))
    z = b.add_input(value=rng.uniform(0.3, 1.2, kinds) * rng.choice([-1, 1], kinds))
    y = b.add_input(value=rng.normal(0, 1e-2, data))
    factor = b.pick([-0.5, -0.5, -20.0, -400.0, 30.0])
    each = b.pick([
        f"({factor} * ({y}[None] - {z}[:, None]) ** 2).sum(axis=1)",
        f"({factor} * {z} * {z} * {data})",
    ])  # fmt: skip
    inner = (
        f"({2 * factor} * ({z} * {data} - {y}.sum()))" if "None" in each else f"({2 * factor * data} * {z})"
    )
    total, weights = b.pick(MIXTURES)
    weights = f"slopes_of_pairs({each})" if weights == "LOGADDEXP" else weights.format(v=each)
    helpers = (inspect.getsource(slopes_of_pairs),)
    numpy = f"{weights} * {inner}"
    text = f"graphc.grad({total.format(v=each)}, {z})"
    b.kept.append(b.add(text, "mixture", numpy=numpy, helpers=helpers, exact=True)[0])


# Functions of a matrix x = f * M, of f and of M by NumPy.
HOMOGENEOUS = (
    ("pt.sort(abs(pt.linalg.eigvals({x})))", "np.sort(abs(np.linalg.eigvals({m}))) * {f}"),
    ("pt.sort(abs(pt.linalg.eig({x})[0]))", "np.sort(abs(np.linalg.eigvals({m}))) * {f}"),
    ("pt.linalg.eigvals({x}).sum().real", "np.trace({m}) * {f}"),
    ("pt.linalg.eigvalsh({x} + {x}.T)", "np.linalg.eigvalsh({m} + {m}.T) * {f}"),
    ("pt.linalg.eigh({x} + {x}.T)[0]", "np.linalg.eigvalsh({m} + {m}.T) * {f}"),
    ("pt.linalg.svd({x}, compute_uv=False)", "np.linalg.svd({m}, compute_uv=False) * {f}"),
    ("pt.linalg.norm({x}, 2)", "np.linalg.norm({m}, 2) * {f}"),
    ("pt.linalg.solve({x}, {x}[0])", "np.linalg.solve({m}, {m}[0])"),
    ("pt.linalg.inv({x}) * {f}", "np.linalg.inv({m})"),
    ("pt.linalg.pinv({x}) * {f}", "np.linalg.pinv({m})"),
    ("abs(pt.linalg.qr({x})[1])", "abs(np.linalg.qr({m})[1]) * {f}"),
    ("pt.linalg.slogdet({x})[1]", "np.linalg.slogdet({m})[1] + len({m}) * np.log({f})"),
    ("pt.sort(abs(pt.roots({x}[0])))", "np.sort(abs(np.roots({m}[0])))"),
    ("pt.linalg.lstsq({x}, {x}[0])[0]", "np.linalg.solve({m}, {m}[0])"),
)


@recipe(1.5)
def scaled_matrix(b: Builder) -> None:
    """Of very large or very small numbers."""
    text, numpy = b.pick(HOMOGENEOUS)
    n, single = b.pick([2, 3, 4]), b.chance(3)
    rng = np.random.default_rng(b.r.randrange(2**32))
    power = b.pick([-60, -45, 45, 60] if single else [-700, -480, -60, 60, 480, 700])
    m = (rng.normal(size=(n, n)) + 2 * np.eye(n)).astype("float32" if single else "float64")
    x = b.add_input(value=np.ldexp(m, power))
    f = f"2.0 ** {power}"
    numpy = numpy.format(m=f"({x} * 2.0 ** {-power})", f=f"({f})")
    calm, b.calm = b.calm, False
    try:
        b.kept.append(b.add(text.format(x=x, f=f"({f})"), "scaled_matrix", numpy=numpy, exact=True)[0])
    finally:
        b.calm = calm
