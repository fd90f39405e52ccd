# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Recipes of what stable forms match: exponentials behind moves, constants with shapes, slopes far out.

Where the graph as written overflows or cancels, a plain interpreter is no measure: these lines say with
``exact`` that NumPy's text, a closed form, is what the compiled line should be (`checked.exact_values`).
"""

from __future__ import annotations

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
    ("-pt.log(pt.softmax({x}, axis=-1))[..., 0]", "pt.softmax({x}, axis=-1) - np.eye({x}.shape[-1])[0]"),
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
