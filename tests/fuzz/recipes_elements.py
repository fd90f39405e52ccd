# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Recipes of elements: arithmetic as users write it, reductions, products."""

from __future__ import annotations

import numpy as np
from fitting import to_shape
from growing import Builder, Unfit
from recipes import axis_of, is_float, is_number, is_real, recipe, with_rank

UNARY = (
    *(
        "-{x}",
        "{x} * 2",
        "{x} + 1",
        "1 - {x}",
        "{x} * {x}",
        "abs({x})",
        "{x} ** 2",
        "{x} - {x}",
        "{x} * 0.5 - 1.5",
    ),
    *(
        "pt.exp({x})",
        "pt.tanh({x})",
        "pt.sigmoid({x})",
        "pt.sin({x})",
        "pt.cos({x})",
        "pt.log(abs({x}) + 0.5)",
    ),
    *(
        "{x} ** 0.5",
        "{x} ** -1",
        "{x} ** 3",
        "{x} / 3",
        "1 / {x}",
        "pt.sqrt({x})",
        "pt.maximum({x}, 0)",
        "{x} * 0",
    ),
    *(
        "pt.exp({x}) / (1 + pt.exp({x}))",
        "pt.log(1 + pt.exp({x}))",
        "pt.log1p({x} * {x})",
        "pt.sqr({x})",
        "{x} + 0",
    ),
    *(
        "pt.zeros_like({x})",
        "pt.ones_like({x})",
        "{x} / {x}",
        "0 * {x} + 2",
        "pt.isnan({x})",
        "pt.arctan({x})",
    ),
)
BINARY = (
    *("{x} + {y}", "{x} * {y}", "{x} - {y}", "{x} / {y}", "{x} + {y}", "{x} * {y}", "{x} - 2 * {y}"),
    *(
        "pt.maximum({x}, {y})",
        "pt.minimum({x}, {y})",
        "{x} * {y} + {x}",
        "pt.floor_divide({x}, {y})",
        "{x} % {y}",
        "{x} ** {y}",
    ),
    *(
        "{x} < {y}",
        "{x} >= {y}",
        "pt.eq({x}, {y})",
        "pt.where({x} > 0, {x}, {y})",
        "pt.where({x} > {y}, {y}, 0)",
    ),
    *("pt.isclose({x}, {y})", "pt.fmod({x}, {y})", "pt.fmax({x}, {y})", "pt.exp({x}) * {y}"),
)


@recipe(6)
def unary(b: Builder) -> None:
    x = b.operand(is_number if not b.chance(3) else is_float)
    b.add(b.pick(UNARY).format(x=x), "unary")


def fits_elementwise(x: np.ndarray, y: np.ndarray) -> bool:
    """Whether two shapes broadcast."""
    return all(m == n or 1 in (m, n) for m, n in zip(x.shape[::-1], y.shape[::-1], strict=False))


@recipe(7)
def binary(b: Builder) -> None:
    x = b.operand(is_number)
    value = b.values[x]
    if b.chance(12):
        y = b.operand(is_number)  # sizes that may not fit
    elif b.chance(4):
        y = to_shape(b, b.operand(is_number), value.shape)
    else:
        y = b.operand(lambda v: is_number(v) and fits_elementwise(v, value))
    b.add(b.pick(BINARY).format(x=x, y=y), "binary", may_fail=b.chance(2))


@recipe(2)
def constant_operand(b: Builder) -> None:
    x = b.operand(is_number)
    value = b.numbers(b.shape(x)[-1:], str(b.dtype(x)))
    text = f"{x} {b.pick(['+', '*', '-'])} pt.constant(np.array({value.tolist()!r}, '{value.dtype}'))"
    b.add(text.replace("nan", "np.nan").replace("inf", "np.inf"), "constant_operand")


@recipe(1)
def logical(b: Builder) -> None:
    x = b.operand(lambda v: v.dtype.kind == "b")
    y = to_shape(b, b.operand(lambda v: v.dtype.kind == "b"), b.shape(x))
    b.add(b.pick([f"{x} & {y}", f"{x} | {y}", f"{x} ^ {y}", f"~{x}"]), "logical")


@recipe(1.5)
def convert(b: Builder) -> None:
    x = b.operand(lambda v: v.dtype.kind != "c")
    dtypes = ["float64", "float32", "float16", "complex128"]
    if b.dtype(x).kind != "f":
        dtypes += ["int64", "int32", "int8", "uint8", "uint32", "bool"]
    b.add(f"{x}.astype('{b.pick(dtypes)}')", "convert")


def axes_of(b: Builder, name: str) -> str:
    """Text of axes: one, several, or all."""
    rank = len(b.shape(name))
    chosen = tuple(axis for axis in range(rank) if b.chance(2))
    return str(b.pick([None, axis_of(b, name), axis_of(b, name), chosen or None]))


@recipe(5)
def reduction(b: Builder) -> None:
    x = b.operand(with_rank)
    names = {"b": ["any", "all", "sum"], "c": ["sum", "prod", "mean"]}.get(
        b.dtype(x).kind, ["sum", "sum", "mean", "max", "min", "prod", "var", "std", "logsumexp", "median"]
    )
    name, axis = b.pick(names), axes_of(b, x)
    if name in ("logsumexp", "median"):
        b.add(
            f"pt.{name}({x}, axis={axis})",
            "reduction",
            may_fail=b.chance(2),
            numpy="" if name != "median" else None,
        )
        return
    keep = ", keepdims=True" if b.chance(4) else ""
    b.add(f"pt.{name}({x}, axis={axis}{keep})", "reduction", may_fail=b.chance(2))


FLOATS = ("float32", "float64")
# What is positive, of a value x.
FACTORS = (
    *("2", "pt.exp(-{x})", "(1 + pt.exp({x}))", "(1 + pt.exp(-{x}))", "pt.sigmoid({x})", "pt.erfc({x})"),
    *("(1 + pt.erf({x}))", "(1 - pt.erf({x}))", "(1 + pt.tanh({x}))", "pt.cosh({x})", "pt.hypot({x}, 1)"),
    *("(pt.exp({x}) + pt.exp(-{x}))", "pt.softmax({x}, axis=-1)", "(0.5 * pt.exp({x}))"),
)


@recipe(1)
def reduce_expression(b: Builder) -> None:
    x = b.operand(lambda v: is_float(v) and v.ndim > 0)
    text = b.pick(
        [
            "({x} - {x}).sum()",
            "({x} - {x}.mean(axis={a}, keepdims=True)) / ({x}.std(axis={a}, keepdims=True) + 0.1)",
            "pt.log(pt.sum(pt.exp({x}), axis={a}))",
            "pt.exp({x}) / pt.sum(pt.exp({x}), axis={a}, keepdims=True)",
            "{x} / pt.sqrt(pt.sum({x} ** 2, axis={a}, keepdims=True))",
            "({x} * {x} - {x} ** 2).sum(axis={a})",
            "pt.sum({x}) / {x}.size",
            "({x} * {x}.shape[{a}]).sum(axis={a})",
        ]
    )
    b.add(text.format(x=x, a=axis_of(b, x)), "reduce_expression")


@recipe(2)
def factors(b: Builder) -> None:
    """Products and quotients of exponentials, their sums and sizes, in any order; logarithms, derivatives."""
    x = b.operand(lambda v: v.dtype.name in FLOATS and v.ndim > 0 and v.size > 0 and abs(v).max() < 4)
    of_axis = f"(pt.exp({x}), axis={axis_of(b, x)}, keepdims=True)"
    others = b.r.choices([f"pt.mean{of_axis}", f"{x}.size", *FACTORS], k=3)
    parts = [f"pt.exp({x})", f"pt.sum{of_axis}", *others]
    b.r.shuffle(parts)
    while parts[1:]:
        i = b.r.randrange(len(parts) - 1)
        parts[i : i + 2] = [f"({parts[i]} {b.pick(['*', '/'])} {parts[i + 1]})"]
    y = b.one(b.pick(["{y}", "pt.log({y})", "pt.log({y}).sum()"]).format(y=parts[0].format(x=x)), "factors")
    if b.chance(2):
        b.kept.append(b.one(f"graphc.grad({y}.sum(), {x})", "gradient", numpy=""))


@recipe(4)
def kernel(b: Builder) -> None:
    """Operations of their own code on a value that others may read, too."""
    x = b.operand(lambda v: is_real(v) and v.ndim > 0)
    name = b.pick(["sort", "argsort", "cumsum", "cumprod", "argmax", "argmin", "median", "cumsum", "sort"])
    numpy = f"np.argsort({x}, axis={{a}}, kind='stable')" if name == "argsort" else None
    a = axis_of(b, x)
    b.add(f"pt.{name}({x}, axis={a})", "kernel", numpy=numpy and numpy.format(a=a), may_fail=b.chance(3))


@recipe(4)
def product(b: Builder) -> None:
    x = b.operand(lambda v: is_number(v) and v.ndim in (1, 2, 3))
    shape = b.shape(x)
    if b.chance(3) and len(shape) == 2:
        b.add(b.pick([f"{x} @ {x}.T", f"{x}.T @ {x}", f"pt.dot({x}, {x}.T)"]), "product")
        return
    rank = b.pick([1, 2, 2, 3] if len(shape) == 3 else [1, 2])
    inner = shape[-1] if not b.chance(10) else b.pick([1, 2, 0])
    other = (inner,) if rank == 1 else (inner, b.pick([2, 3, 1, 4]))
    y = to_shape(b, b.operand(lambda v: v.dtype == b.dtype(x)), (shape[0], *other) if rank == 3 else other)
    text = f"{x} @ {y}" if rank == 3 or b.chance(2) else f"pt.dot({x}, {y})"
    b.add(text, "product", may_fail=b.chance(2))


@recipe(1)
def vector_product(b: Builder) -> None:
    x = b.operand(lambda v: is_number(v) and v.ndim == 1)
    y = b.operand(lambda v: is_number(v) and v.ndim == 1)
    name = b.pick(["dot", "inner", "outer", "vdot", "matmul", "vecdot", "tensordot"])
    axes = ", axes=1" if name == "tensordot" else ""
    b.add(f"pt.{name}({x}, {y}{axes})", "vector_product", may_fail=b.chance(2))


@recipe(1)
def contraction(b: Builder) -> None:
    x = b.operand(lambda v: is_number(v) and v.ndim in (2, 3) and v.size > 0)
    rules = ["ij,kj->ik", "ij,ij->j", "ij,kj,kl->il", "ij->ji", "ij->i"]
    text = b.pick(rules if len(b.shape(x)) == 2 else ["bij,bkj->bik", "bij,bij->i", "bij->jb"])
    count = len(text.partition("->")[0].split(","))
    if not count:
        raise Unfit
    b.add(f"pt.einsum('{text}', {', '.join([x] * count)})", "contraction")
