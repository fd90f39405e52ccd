# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""constant-folding computes what execution would."""

from __future__ import annotations

import pytest

from ._semantics import assert_same, function

PASS = "graphc-constant-folding"
LITERALS = {
    "i1": "dense<[true, false, true]>",
    "i8": "dense<[3, -7, 100]>",
    "ui8": "dense<[3, 7, 250]>",
    "i64": "dense<[3, -7, 100]>",
    "ui64": "dense<[3, 7, 18446744073709551615]>",
    "f16": "dense<[0.5, -2.0, 100.0]>",
    "f32": "dense<[0.5, -2.0, 0x7F800000]>",
    "f64": "dense<[0.5, 0.3, 0x7FF8000000000000]>",
    "complex<f32>": "dense<[(1.0, 2.0), (-0.5, 0.0), (0x7FC00000, 1.0)]>",
    "complex<f64>": "dense<[(1.0, 2.0), (-0.5, 0.0), (3.0, -1.0)]>",
}


def literal(name: str, element: str) -> str:
    op = "graphc.constant" if element.startswith("ui") else "arith.constant"
    if op == "graphc.constant":
        type_ = f"tensor<3x{element}>"
        return f'  {name} = "graphc.constant"() {{value = {LITERALS[element]} : {type_}}} : () -> {type_}'
    return f"  {name} = arith.constant {LITERALS[element]} : tensor<3x{element}>"


@pytest.mark.parametrize("element", LITERALS)
@pytest.mark.parametrize("name", ["add", "mul", "maximum", "eq", "lt"])
def test_binary(element: str, name: str) -> None:
    t, result = f"tensor<3x{element}>", "i1" if name in ("eq", "lt") else element
    body = f'{literal("%a", element)}\n  %0 = "graphc.{name}"(%a, %a) : ({t}, {t}) -> tensor<3x{result}>'
    text = assert_same(function("", body, f"%0 : tensor<3x{result}>"), [], PASS)
    assert f"graphc.{name}" not in text


@pytest.mark.parametrize("source", LITERALS)
@pytest.mark.parametrize("target", LITERALS)
def test_cast(source: str, target: str) -> None:
    if source.startswith("complex") and target[0] in "uif":
        target = "complex<f64>"
    if target[0] in "ui" and source[0] == "f":
        target = "f64"
    body = f'{literal("%a", source)}\n  %0 = "graphc.cast"(%a) : (tensor<3x{source}>) -> tensor<3x{target}>'
    text = assert_same(function("", body, f"%0 : tensor<3x{target}>"), [], PASS)
    assert "graphc.cast" not in text


STRUCTURAL = [
    ('"graphc.dimshuffle"(%a) {order = array<i64: -1, 0>}', "tensor<3xf64>", "tensor<1x3xf64>"),
    ('"graphc.reduce_sum"(%a) {axes = array<i64: 0>}', "tensor<3xf64>", "tensor<f64>"),
    ('"graphc.argmax"(%a) {axis = 0 : i64}', "tensor<3xf64>", "tensor<i64>"),
    ('"graphc.softmax"(%a) {axes = array<i64: 0>}', "tensor<3xf64>", "tensor<3xf64>"),
    ('"graphc.reshape"(%a, %c3, %c1)', "tensor<3xf64>, index, index", "tensor<3x1xf64>"),
    ('"graphc.broadcast_to"(%a, %c2, %c3)', "tensor<3xf64>, index, index", "tensor<2x3xf64>"),
    ('"graphc.slice"(%a, %c2, %c2, %m1)', "tensor<3xf64>, index, index, index", "tensor<2xf64>"),
    (
        '"graphc.update_slice"(%a, %a, %c2, %c3, %m1) {accumulate = true}',
        "tensor<3xf64>, tensor<3xf64>, index, index, index",
        "tensor<3xf64>",
    ),
    ('"graphc.join"(%a, %a) {axis = 0 : i64}', "tensor<3xf64>, tensor<3xf64>", "tensor<6xf64>"),
    ('"graphc.take"(%a, %i) {axis = 0 : i64}', "tensor<3xf64>, tensor<2xi64>", "tensor<2xf64>"),
    ('"graphc.iota"(%s, %s, %c3)', "tensor<f64>, tensor<f64>, index", "tensor<3xf64>"),
]


@pytest.mark.parametrize(("op", "operands", "result"), STRUCTURAL)
def test_structural(op: str, operands: str, result: str) -> None:
    body = f"""  %c1 = arith.constant 1 : index
  %c2 = arith.constant 2 : index
  %c3 = arith.constant 3 : index
  %m1 = arith.constant -1 : index
  %s = arith.constant dense<0.5> : tensor<f64>
  %i = arith.constant dense<[2, -3]> : tensor<2xi64>
  %a = arith.constant dense<[0.5, -2.0, 1.0]> : tensor<3xf64>
  %0 = {op} : ({operands}) -> {result}"""
    text = assert_same(function("", body, f"%0 : {result}"), [], PASS)
    assert "graphc." not in text


def test_failing_operations_stay() -> None:
    body = """  %i = arith.constant dense<[7]> : tensor<1xi64>
  %a = arith.constant dense<[0.5, -2.0, 1.0]> : tensor<3xf64>
  %0 = "graphc.take"(%a, %i) {axis = 0 : i64} : (tensor<3xf64>, tensor<1xi64>) -> tensor<1xf64>"""
    text = assert_same(function("", body, "%0 : tensor<1xf64>"), [], PASS)
    assert "graphc.take" in text


def test_large_results_stay() -> None:
    body = """  %c = arith.constant 1000 : index
  %a = arith.constant dense<0.5> : tensor<f64>
  %0 = "graphc.broadcast_to"(%a, %c) : (tensor<f64>, index) -> tensor<1000xf64>"""
    text = assert_same(function("", body, "%0 : tensor<1000xf64>"), [], PASS)
    assert "graphc.broadcast_to" in text
