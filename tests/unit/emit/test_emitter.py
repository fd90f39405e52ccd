# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""The emitted text parses, verifies, and says what the graph says."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import graphc
import graphc.tensor as pt
from graphc.backends.contexts import shared_context
from graphc.emit import emit_module
from graphc.emit.emitter import dense, location, quoted, tensor_type
from graphc.errors import CompileError
from graphc.graph.basic import SourceLocation
from graphc.graph.function_graph import FunctionGraph
from graphc_dialects._mlir import ir

ARRAYS = [
    np.array([1.5, -0.0, np.inf, -np.inf, np.nan]),
    np.array([[1, 2], [3, 4]], "float32"),
    np.array(1e-300),
    np.array([0.1, np.nan], "float16"),
    np.array([True, False]),
    np.array([-128, 127], "int8"),
    np.array([2**64 - 1, 0], "uint64"),
    np.array([1 + 2j, complex(np.nan, -np.inf)], "complex64"),
    np.zeros((0, 3)),
    np.full((2, 2), 7, "int64"),
]


def _verified(text: str) -> Any:
    module = ir.Module.parse(text)
    assert module.operation.verify()
    return module


@pytest.mark.parametrize("array", ARRAYS, ids=str)
def test_literals(array: np.ndarray) -> None:
    emitted = emit_module(FunctionGraph([], [pt.constant(array)]))
    with shared_context():
        _verified(emitted.text)
    got = graphc.function([], pt.constant(array))()
    assert got.dtype == array.dtype and got.tobytes() == array.tobytes()


def test_large_constants_are_arguments() -> None:
    x, big = pt.vector("x"), pt.constant(np.arange(17.0))
    small = pt.constant(np.arange(16.0))
    emitted = emit_module(FunctionGraph([x], [x + big, x + small]))
    assert emitted.inputs == [x, big] and emitted.constants == [big]
    assert "dense<[" in emitted.text and "%arg1: tensor<17xf64>" in emitted.text


def test_locations_name_the_node_and_the_line() -> None:
    x = pt.vector("x")
    out = pt.exp(x)
    emitted = emit_module(FunctionGraph([x], [out]))
    assert emitted.nodes == [out.owner]
    assert f'#n0 = loc("n0"("{__file__}":{out.owner.location.line}:0))' in emitted.text


def test_texts() -> None:
    assert tensor_type("uint8", (2, None)) == "tensor<2x?xui8>"
    assert dense(np.ones((3,), "int64")) == "dense<1>"
    assert quoted('a"b\\ü') == '"a\\22b\\5C\\C3\\BC"'
    assert location("n1", SourceLocation("m.py", 3, "f")) == 'loc("n1"("m.py":3:0))'
    assert location("n1", None) == 'loc("n1")'


def test_an_op_without_emit_is_refused() -> None:
    class Plain(graphc.Op):
        __props__ = ()

        def make_node(self, x: Any) -> Any:
            return graphc.Apply(self, [x], [x.type()])

    x = pt.vector("x")
    with pytest.raises(CompileError, match=r"Plain.*has no emit method"):
        emit_module(FunctionGraph([x], [Plain()(x)]))
