# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Malformed operations are refused with a diagnostic, never with a Python exception or a crash."""

from __future__ import annotations

import pytest

from graphc_dialects._mlir import ir
from graphc_dialects.diagnostics import collect
from graphc_dialects.dialect import new_context, operation_classes

_ATTRIBUTES = "axes = 1, axis = 7.0, order = [0], value = 1, accumulate, error, message = 3, transpose_b = 1"
_X = "tensor<2xf64>"
FORMS = [
    ("() : () -> ()", True),
    ("() : () -> tensor<2xf64>", False),
    ("(%x) : (tensor<2xf64>) -> ()", True),
    ("(%i) : (index) -> index", False),
    ("(%i, %i) : (index, index) -> index", False),
    ("(%u) : (tensor<*xf64>) -> tensor<2xf64>", False),
    (f"(%x, %x, %x, %x, %x) : ({_X}, {_X}, {_X}, {_X}, {_X}) -> tensor<1xf64>", False),
    (f"(%x) {{{_ATTRIBUTES}}} : ({_X}) -> tensor<5xf32>", False),
    (f"(%x) : ({_X}) -> ({_X}, {_X})", False),
]
HEADER = "func.func @f(%x: tensor<2xf64>, %i: index, %u: tensor<*xf64>) {"


@pytest.fixture(scope="module")
def context() -> ir.Context:
    return new_context()


@pytest.mark.parametrize("name", sorted(operation_classes()))
def test_malformed_operation_is_refused(context: ir.Context, name: str) -> None:
    for form, no_result in FORMS:
        result = "" if no_result else "%r:2 = " if form.endswith("tensor<2xf64>)") else "%r = "
        source = f'{HEADER}\n{result}"{name}"{form}\nreturn }}'
        with collect(context) as diagnostics, context:
            try:
                ir.Module.parse(source)
            except ir.MLIRError:
                assert diagnostics, f"{name}{form} was refused without a diagnostic"
                assert diagnostics[0].position is not None
            else:
                raise AssertionError(f"{name}{form} was accepted")
