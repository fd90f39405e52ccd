# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Which node of the graph an operation comes from, whatever passes have made of its location."""

from __future__ import annotations

import pytest

from graphc.ir.diagnostics import node_of
from graphc_dialects._mlir import ir
from graphc_dialects.dialect import new_context

CASES = {
    'loc("n12"("model.py":10:0))': "n12",
    'loc("n3")': "n3",
    'loc("norm"("model.py":10:0))': "",
    'loc("outer"("n4"("model.py":10:0)))': "n4",
    'loc(fused["model.py":1:2, "n5"("a.py":1:1), "n6"])': "n5",
    'loc(callsite("n7" at "n8"))': "n7",
    'loc(callsite("f.py":1:1 at "n8"))': "n8",
    "loc(unknown)": "",
}


@pytest.mark.parametrize("location", CASES)
def test_node_of_a_location(location):
    with new_context(), ir.Location.unknown():
        module = ir.Module.parse(f"module {{ func.func @f() {{ return {location} }} }}")
        (end,) = module.body.operations[0].regions[0].blocks[0].operations
        assert node_of(end.operation) == CASES[location]
