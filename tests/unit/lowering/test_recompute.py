# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Which producers are copied into the clusters that read them."""

from __future__ import annotations

import re
from functools import cache

import pytest

from graphc.passes.run import run_pipeline
from graphc_dialects._mlir import ir
from graphc_dialects.dialect import new_context

V = "tensor<?xf64>"
M = "tensor<?x?xf64>"


@cache
def context():
    return new_context()


def fused(arguments: str, body: list[str], results: str) -> str:
    """The IR after the fusion pass."""
    names = ", ".join(part.split(":")[0].strip() for part in results.split(";"))
    types = ", ".join(part.split(":", 1)[1].strip() for part in results.split(";"))
    text = f"func.func @main({arguments}) -> ({types}) {{\n" + "\n".join(body)
    text += f"\n  return {names} : {types}\n}}\n"
    with context(), ir.Location.unknown():
        module = ir.Module.parse(text)
        run_pipeline(module, ["graphc-fusion"], verify_each=True)
        return str(module)


def count(text: str, op: str) -> int:
    return len(re.findall(rf'"?graphc\.{op}"?\b', text))


def two_clusters(producer: list[str], last: str) -> list[str]:
    """A value that is read before and after a reduction of it, which no single loop can compute."""
    return [
        *producer,
        f'  %m = "graphc.reduce_max"({last}) {{axes = array<i64: 0>}} : ({V}) -> tensor<f64>',
        '  %k = "graphc.dimshuffle"(%m) {order = array<i64: -1>} : (tensor<f64>) -> tensor<1xf64>',
        f'  %z = "graphc.true_div"({last}, %k) : ({V}, tensor<1xf64>) -> {V}',
    ]


def binary(name: str, op: str, a: str, b: str) -> str:
    return f'  {name} = "graphc.{op}"({a}, {b}) : ({V}, {V}) -> {V}'


def unary(name: str, op: str, a: str) -> str:
    return f'  {name} = "graphc.{op}"({a}) : ({V}) -> {V}'


def test_a_cheap_value_is_computed_twice():
    text = fused(f"%x: {V}, %y: {V}", two_clusters([binary("%d", "sub", "%x", "%y")], "%d"), f"%z : {V}")
    assert count(text, "sub") == 2
    numbers = re.findall(r'graphc\.sub"?.*cluster = (\d+)', text)
    assert len(set(numbers)) == 2


def test_a_chain_is_copied_as_a_whole():
    producer = [binary("%d", "sub", "%x", "%y"), unary("%e", "sqr", "%d")]
    text = fused(f"%x: {V}, %y: {V}", two_clusters(producer, "%e"), f"%z : {V}")
    assert count(text, "sub") == count(text, "sqr") == 2


@pytest.mark.parametrize(
    ("producer", "reason"),
    [
        ([unary("%d", "exp", "%x")], "exp is not cheap"),
        (
            [unary(f"%c{i + 1}", "neg", "%x" if i == 0 else f"%c{i}") for i in range(3)]
            + [binary("%d", "add", "%c3", "%x")],
            "too many operations",
        ),
        (
            [binary("%c", "add", "%x", "%y"), binary("%d", "mul", "%c", "%w")],
            "more than two arrays",
        ),
    ],
)
def test_what_is_stored(producer, reason):
    text = fused(f"%x: {V}, %y: {V}, %w: {V}", two_clusters(producer, "%d"), f"%z : {V}")
    op = re.findall(r"graphc\.(\w+)", producer[-1])[0]
    assert count(text, op) == 1, reason


def test_a_result_of_the_function_is_stored_anyway():
    body = two_clusters([binary("%d", "sub", "%x", "%y")], "%d")
    assert count(fused(f"%x: {V}, %y: {V}", body, f"%z : {V}; %d : {V}"), "sub") == 1


def test_a_broadcast_operand_is_not_copied_into_a_larger_space():
    body = [
        '  %d = "graphc.sub"(%x, %y) : (tensor<1x?xf64>, tensor<1x?xf64>) -> tensor<1x?xf64>',
        f'  %z = "graphc.exp"(%w) : ({M}) -> {M}',
        f'  %a = "graphc.add"(%z, %d) : ({M}, tensor<1x?xf64>) -> {M}',
    ]
    text = fused(f"%x: tensor<1x?xf64>, %y: tensor<1x?xf64>, %w: {M}", body, f"%a : {M}")
    assert count(text, "sub") == 1


def test_gathered_operands_are_not_copied():
    body = [
        binary("%d", "sub", "%x", "%y"),
        f'  %t = "graphc.take"(%d, %i) {{axis = 0 : i64}} : ({V}, tensor<?xi64>) -> {V}',
    ]
    text = fused(f"%x: {V}, %y: {V}, %i: tensor<?xi64>", body, f"%t : {V}")
    assert count(text, "sub") == 1


def test_what_a_product_keeps_in_memory_is_read_again():
    body = [
        f'  %t = "graphc.tanh"(%x) : ({M}) -> {M}',
        f'  %s = "graphc.sqr"(%t) : ({M}) -> {M}',
        f'  %p = "graphc.matmul"(%t, %w) {{transpose_a = false, transpose_b = false}} : ({M}, {M}) -> {M}',
        f'  %z = "graphc.mul"(%p, %s) : ({M}, {M}) -> {M}',
    ]
    text = fused(f"%x: {M}, %w: {M}", body, f"%z : {M}")
    assert count(text, "sqr") == 1  # the one in the loop of tanh is gone, so that nothing keeps its result
    lines = text.splitlines()
    square, product = (
        next(i for i, line in enumerate(lines) if f"graphc.{op}" in line) for op in ("sqr", "matmul")
    )
    assert square > product
