# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""decompose and blas-recognition keep what programs compute."""

from __future__ import annotations

import numpy as np
import pytest

from ._semantics import assert_same, function

RNG = np.random.default_rng(3)


@pytest.mark.parametrize("name", ["softmax", "log_softmax"])
@pytest.mark.parametrize("axes", ["0", "1", "0, 2", "0, 1, 2"])
@pytest.mark.parametrize("element", ["f32", "f64", "f16"])
def test_softmax(name: str, axes: str, element: str) -> None:
    t = f"tensor<?x3x?x{element}>"
    body = f'  %0 = "graphc.{name}"(%x) {{axes = array<i64: {axes}>}} : ({t}) -> {t}'
    values = (RNG.normal(size=(2, 3, 4)) * 30).astype({"f32": "f4", "f64": "f8", "f16": "f2"}[element])
    rtol = 1e-2 if element == "f16" else None
    text = assert_same(function(f"%x: {t}", body, f"%0 : {t}"), [values], "graphc-decompose", rtol)
    assert name not in text
    assert_same(function(f"%x: {t}", body, f"%0 : {t}"), [values[:0]], "graphc-decompose")


@pytest.mark.parametrize("batch", [False, True])
@pytest.mark.parametrize("flags", range(4))
@pytest.mark.parametrize("views", range(8))
@pytest.mark.parametrize("sizes", [(2, 3, 4), (1, 3, 1), (2, 1, 4), (1, 3, 4), (2, 3, 1), (1, 1, 1)])
def test_matmul(batch: bool, flags: int, views: int, sizes: tuple[int, int, int]) -> None:
    """Every combination of transposed operands, flags and a transposed result."""
    m, k, n = sizes
    lead = (2,) if batch else ()
    a_flag, b_flag = bool(flags & 1), bool(flags & 2)
    a_view, b_view, out_view = bool(views & 1), bool(views & 2), bool(views & 4)
    order = "0, 2, 1" if batch else "1, 0"

    def type_of(shape: tuple[int, ...]) -> str:
        static = [str(size) if size == 1 else "?" for size in shape]
        return f"tensor<{'x'.join(static)}xf64>"

    def swapped(shape: tuple[int, ...], yes: bool) -> tuple[int, ...]:
        return (*shape[:-2], shape[-1], shape[-2]) if yes else shape

    a, b = swapped((*lead, m, k), a_flag), swapped((*lead, k, n), b_flag)
    a_in, b_in = swapped(a, a_view), swapped(b, b_view)
    out = (*lead, m, n)
    lines = [f'  %na = "graphc.neg"(%a) : ({type_of(a_in)}) -> {type_of(a_in)}']
    a_name, b_name = "%na", "%b"
    for name, source, view, inner, outer in (("%ta", "%na", a_view, a_in, a), ("%tb", "%b", b_view, b_in, b)):
        if view:
            lines.append(
                f'  {name} = "graphc.dimshuffle"({source}) {{order = array<i64: {order}>}} : '
                f"({type_of(inner)}) -> {type_of(outer)}"
            )
    a_name, b_name = "%ta" if a_view else a_name, "%tb" if b_view else b_name
    lines.append(
        f'  %p = "graphc.matmul"({a_name}, {b_name}) {{transpose_a = {str(a_flag).lower()}, '
        f"transpose_b = {str(b_flag).lower()}}} : ({type_of(a)}, {type_of(b)}) -> {type_of(out)}"
    )
    result, name = swapped(out, out_view), "%p"
    if out_view:
        lines.append(
            f'  %r = "graphc.dimshuffle"(%p) {{order = array<i64: {order}>}} : '
            f"({type_of(out)}) -> {type_of(result)}"
        )
        name = "%r"
    text = function(
        f"%a: {type_of(a_in)}, %b: {type_of(b_in)}", "\n".join(lines), f"{name} : {type_of(result)}"
    )
    new = assert_same(text, [RNG.normal(size=a_in), RNG.normal(size=b_in)], "graphc-blas-recognition")
    if m == k == n == 1 or k == 1 or (m, n) == (1, 1):
        assert "graphc.matmul" not in new
    elif (m, k, n) == (2, 3, 4):
        assert "graphc.dimshuffle" not in new and "graphc.matmul" in new


@pytest.mark.parametrize("element", ["f16", "f32", "f64", "complex<f64>", "i64"])
@pytest.mark.parametrize("axis", range(3))
@pytest.mark.parametrize("sizes", [((5, 3, 1), (5, 1, 4)), ((3, 1, 7), (1, 4, 7)), ((1, 6, 3), (2, 6, 1))])
@pytest.mark.parametrize("turned", [False, True])
def test_sums_of_products(sizes: tuple[tuple[int, ...], ...], axis: int, element: str, turned: bool) -> None:
    a, b = sizes
    whole = tuple(max(m, n) for m, n in zip(a, b, strict=True))
    result = (*whole[:axis], *whole[axis + 1 :])

    def type_of(shape: tuple[int, ...]) -> str:
        return "tensor<" + "".join(f"{n}x" for n in shape) + f"{element}>"

    given, lines, name = a, [], "%a"
    if turned:
        given, name = (a[2], a[0], a[1]), "%t"
        lines.append(
            '  %t = "graphc.dimshuffle"(%a) {order = array<i64: 1, 2, 0>} : '
            f"({type_of(given)}) -> {type_of(a)}"
        )
    lines += [
        f'  %p = "graphc.mul"({name}, %b) : ({type_of(a)}, {type_of(b)}) -> {type_of(whole)}',
        (
            f'  %s = "graphc.reduce_sum"(%p) {{axes = array<i64: {axis}>}} : '
            f"({type_of(whole)}) -> {type_of(result)}"
        ),
    ]
    text = function(f"%a: {type_of(given)}, %b: {type_of(b)}", "\n".join(lines), f"%s : {type_of(result)}")
    dtype = {"f16": "f2", "f32": "f4", "f64": "f8", "complex<f64>": "c16", "i64": "i8"}[element]
    values = [(RNG.normal(size=shape) * 3).astype(dtype) for shape in (given, b)]
    new = assert_same(text, values, "graphc-blas-recognition")
    shared = a[axis] == b[axis]
    assert ("graphc.matmul" in new) == (shared and element in ("f64", "complex<f64>"))
