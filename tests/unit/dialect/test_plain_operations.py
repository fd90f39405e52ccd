# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""A compilation needs no Python classes of upstream's operations, and does not load them."""

import os
import subprocess
import sys
from typing import Any

from graphc_dialects._base import Graphc
from graphc_dialects._mlir import ir
from graphc_dialects.dialect import new_context, operation_classes

FIRST = """
import sys
import numpy as np
import graphc, graphc.tensor as pt
x = pt.dmatrix("x")
h = graphc.scan(lambda h: pt.tanh(h @ x), outputs_info=x[0], n_steps=3, return_updates=False)
f = graphc.function([x], [x + 1, pt.linalg.cholesky(x), graphc.grad(h.sum(), x)])
f(np.eye(2))
print(sorted(name for name in sys.modules if name.endswith(ENDS) or name in ("yaml", "scipy.linalg")))
"""
# What the bindings' modules of a dialect import.
GENERATED = ("_ops_gen", ".opdsl", "dialects.linalg", "dialects.llvm", "dialects.arith", "dialects.memref")


def test_a_first_compilation_loads_no_classes_of_upstream() -> None:
    environment = {**os.environ, "GRAPHC_CACHE_DIR": ""}
    code = FIRST.replace("ENDS", repr(GENERATED))
    ran = subprocess.run([sys.executable, "-c", code], env=environment, capture_output=True, text=True)
    assert ran.returncode == 0, ran.stderr
    loaded = [name for name in eval(ran.stdout) if not name.startswith("graphc")]
    # What defines dialects in Python is written with the irdl dialect's classes.
    assert [name for name in loaded if not name.endswith("_irdl_ops_gen")] == []


def test_only_our_operations_have_classes() -> None:
    with new_context(), ir.Location.unknown():
        module = ir.Module.parse(
            """func.func @main(%x: tensor<3xf64>) -> tensor<3xf64> {
                 %y = "graphc.add"(%x, %x) : (tensor<3xf64>, tensor<3xf64>) -> tensor<3xf64>
                 %z = tensor.cast %y : tensor<3xf64> to tensor<3xf64>
                 return %z : tensor<3xf64>
               }"""
        )
        function = module.body.operations[0]
        assert isinstance(function, ir.OpView)
        ours, theirs, _ = function.regions[0].blocks[0].operations
        assert type(ours) is operation_classes()["graphc.add"]
        assert isinstance(theirs, ir.OpView) and theirs.operation.name == "tensor.cast"


def test_the_definition_is_what_the_bindings_would_write() -> None:
    with new_context(), ir.Location.unknown():
        whole = super(Graphc, Graphc)._emit_module()
        assert str(Graphc._emit_module()) == str(whole)


def test_classes_of_a_table_are_those_that_the_bindings_would_make() -> None:
    first, other = operation_classes()["graphc.add"], operation_classes()["graphc.sub"]
    own = {"__doc__", "__module__", "_op_name", "OPERATION_NAME"}
    assert {*vars(first)} - own == {*vars(other)} - own
    assert other.__annotations__ == first.__annotations__
    assert other.__name__ == "SubOp" and other.__bases__ == first.__bases__
    with new_context(), ir.Location.unknown():
        block = ir.Module.create().body
        tensor = ir.RankedTensorType.get([2], ir.F64Type.get())
        with ir.InsertionPoint(block):
            literal = ir.DenseElementsAttr.get_splat(tensor, ir.FloatAttr.get_f64(1.0))
            x = ir.Operation.create("arith.constant", [tensor], attributes={"value": literal}).result
            difference: Any = other(x, x, tensor)
        assert difference.operation.name == "graphc.sub" and type(difference) is other
        assert difference.x == x and difference.y == x and difference.res.type == tensor
        assert difference.operation.verify()
