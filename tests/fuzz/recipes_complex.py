# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Programs of complex numbers: their inputs, lines, and real losses that are differentiated."""

from __future__ import annotations

import numpy as np
from fitting import to_dtype, to_shape
from growing import Builder, Unfit
from recipes import axis_of, recipe
from recipes_control import upstream

COMPLEX = ("complex128",) * 8 + ("float64",) * 3 + ("complex64", "int64", "float32")
UNARY = (
    *("pt.conj({x})", "{x} * pt.conj({x})", "abs({x})", "pt.angle({x})", "{x}.real", "{x}.imag", "-{x}"),
    *("pt.exp({x})", "pt.log({x} + 3j)", "pt.sqrt({x} + 3)", "{x} ** 2", "{x} ** -1", "1 / {x}", "{x} ** 3"),
    *("pt.sin({x})", "pt.cosh({x})", "pt.tanh({x})", "pt.arctan({x} * 0.3)", "pt.expm1({x})", "{x} ** 1.5"),
    *("pt.log1p({x} * 0.3)", "pt.arcsinh({x})", "pt.sqr({x})", "{x} / abs({x})", "pt.sign({x})", "{x} * 2j"),
    *("abs({x}) ** 2", "({x} * (1 - 2j)).real", "pt.reciprocal({x} + 4)", "pt.exp(1j * {x}.real)"),
    *("pt.where({x}.real > 0, {x}, pt.conj({x}))", "pt.sigmoid({x}.imag) * {x}", "pt.exp(-abs({x}) ** 2)"),
    *(
        "pt.tan({x} * 0.5)",
        "pt.arcsin({x} * 0.2)",
        "pt.arctanh({x} * 0.2)",
        "pt.arccosh({x} + 4)",
        "2 ** {x}",
    ),
    *("pt.log2({x} + 3j)", "pt.log10({x} + 3)", "pt.exp2({x})", "pt.arccos({x} * 0.2)", "pt.sinh({x})"),
    *("pt.isfinite({x})", "pt.round({x})", "pt.hypot({x}.real, {x}.imag)", "pt.square({x})", "{x} - 1j"),
)
BINARY = (
    *("{x} * {y}", "{x} + {y}", "{x} - {y}", "{x} / ({y} + 3)", "pt.complex({x}.real, {y}.real)"),
    *("{x} * pt.conj({y})", "({x} + 3) ** {y}", "pt.where(abs({x}) > abs({y}), {x}, {y})", "{x} ** {y}.real"),
    *("pt.arctan2({x}.imag, {y}.real + 3)", "pt.complex_from_polar(abs({x}), {y}.real)", "{x} * abs({y})"),
)
ARRAYS = (
    *("{x}.sum(axis={a})", "{x}.mean(axis={a})", "{x}.prod(axis={a})", "pt.cumsum({x}, axis={a})"),
    *(
        "pt.cumprod({x}, axis={a})",
        "pt.var({x}, axis={a})",
        "pt.std({x}, axis={a})",
        "pt.vdot({x}, {x} * 2j)",
    ),
    *("{x} / pt.sqrt((abs({x}) ** 2).sum(axis={a}, keepdims=True))", "pt.concatenate([{x}, pt.conj({x})])"),
    *("pt.fft.fft({x}, axis={a})", "pt.fft.ifft({x}, axis={a})", "pt.linalg.norm({x})", "{x}[::-1] * {x}"),
    *("pt.set_subtensor({x}[0], 1j)", "pt.inc_subtensor({x}[-1], {x}[0] * 1j)", "pt.diff({x}, axis={a})"),
    *("pt.stack([{x}.real, {x}.imag])", "pt.outer({x}, pt.conj({x}))", "pt.logsumexp({x}.real, axis={a})"),
    *(
        "{x}[pt.argsort({x}.real, axis=0).ravel()[0]]",
        "pt.roll({x}, 1, axis={a})",
        "pt.tensordot({x}, {x}, 0)",
    ),
    *(
        "pt.linalg.vector_norm({x}, axis={a})",
        "pt.flip({x}) @ {x}.T",
        "pt.einsum('i...,i...', {x}, pt.conj({x}))",
    ),
    "graphc.scan(lambda r, h: h * 0.5j + r * pt.conj(h), [{x}], [{x}[0]], return_updates=False)",
    "graphc.scan(lambda h: h * h * 0.3 - 1j * h, outputs_info=[{x}], n_steps=3, return_updates=False)[-1]",
    "graphc.ifelse(abs({x}).sum() > 2, {x} * 1j, pt.conj({x}))",
)
MATRICES = (
    *("{x} @ {x}", "{x} @ pt.conj({x}.T)", "pt.linalg.inv({x} + 5 * pt.eye({n}))", "pt.linalg.det({x})"),
    *("pt.linalg.solve({x} + 5 * pt.eye({n}), {x}.T)", "pt.linalg.slogdet({x})", "pt.linalg.expm({x} * 0.3)"),
    *("pt.linalg.cholesky({x} @ pt.conj({x}.T) + pt.eye({n}))", "pt.linalg.eigvalsh({x} + pt.conj({x}.T))"),
    *(
        "pt.linalg.svdvals({x})",
        "pt.trace({x})",
        "pt.tril({x}) @ {x}",
        "pt.linalg.pinv({x})",
        "pt.diagonal({x})",
    ),
    *("pt.linalg.solve_triangular({x} + 5 * pt.eye({n}), {x}, lower=True)", "pt.linalg.matrix_power({x}, 3)"),
    *("abs(pt.linalg.eigh({x} + pt.conj({x}.T))[1])", "pt.linalg.qr({x} + 3 * pt.eye({n}))[1]"),
    *("pt.linalg.solve({x} @ pt.conj({x}.T) + pt.eye({n}), {x}, assume_a='pos')", "pt.kron({x}, {x})"),
)


def is_complex(x: np.ndarray) -> bool:
    return x.dtype.kind == "c"


@recipe(0)
def complex_elements(b: Builder) -> None:
    x = b.operand(is_complex)
    b.add(b.pick(UNARY).format(x=x), "complex_elements", numpy="")


@recipe(0)
def complex_pairs(b: Builder) -> None:
    x = b.operand(is_complex)
    y = to_shape(b, b.operand(lambda v: v.dtype.kind in "cf"), b.shape(x))
    b.add(b.pick(BINARY).format(x=x, y=y), "complex_pairs", numpy="")


@recipe(0)
def complex_arrays(b: Builder) -> None:
    x = b.operand(lambda v: is_complex(v) and v.ndim > 0)
    b.add(b.pick(ARRAYS).format(x=x, a=axis_of(b, x)), "complex_arrays", numpy="")


@recipe(0)
def complex_matrices(b: Builder) -> None:
    x, n = b.operand(lambda v: is_complex(v) and v.ndim > 0), b.pick([1, 2, 3])
    b.add(b.pick(MATRICES).format(x=to_shape(b, x, (n, n)), n=n), "complex_matrices", numpy="")


@recipe(0)
def complex_gradient(b: Builder) -> None:
    """Of a real loss of complex values, in complex and real ones."""
    y = b.operand(lambda v: v.dtype.kind in "cf" and v.size > 0, fresh=False)
    wrt = [n for n in upstream(b, y) if b.values[n].dtype.kind in "cf"]
    if not wrt:
        raise Unfit
    losses = [
        "(abs({y}) ** 2).sum()",
        "({y} * (1 - 2j)).real.sum()",
        "pt.imag({y} * pt.conj({y} * 1j)).sum()",
    ]
    losses += ["({y}.real ** 2 + {y}.imag).sum()", "abs({y}).sum()"]
    cost = b.pick(losses).format(y=to_dtype(b, y, "complex128"))
    chosen = sorted({b.pick(wrt) for _ in range(b.pick([1, 1, 2]))})
    text = f"graphc.grad({cost}, [{', '.join(chosen)}], disconnected_inputs='ignore')"
    b.kept += b.add(text, "complex_gradient", numpy="")


# What a line of such a program may be, and how often, beside one of other programs.
CHANCES = {
    "complex_elements": 10,
    "complex_pairs": 7,
    "complex_arrays": 7,
    "complex_matrices": 3,
    "complex_gradient": 2,
}

__all__ = ["CHANCES", "COMPLEX"]
