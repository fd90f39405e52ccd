# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""The pipelines are well formed, and every step leaves IR that its stage allows."""

from __future__ import annotations

import pytest

from graphc.backends.cpu.pipeline import PIPELINES
from graphc.passes.manager.base import STAGES, Pass
from graphc.passes.manager.legality import illegal_operation, is_legal
from graphc.passes.manager.parse import normalise
from graphc.passes.manager.run import run_pipeline
from graphc_dialects._mlir import ir, passmanager
from graphc_dialects.dialect import new_context

SOURCE = """
func.func @main(%x: tensor<?x3xf64>, %w: tensor<3x?xf64>, %i: tensor<?xi64>)
    -> (tensor<?x?xf64>, tensor<?xf64>) {
  %0 = "graphc.matmul"(%x, %w) {transpose_a = false, transpose_b = false} :
      (tensor<?x3xf64>, tensor<3x?xf64>) -> tensor<?x?xf64>
  %1 = "graphc.softmax"(%0) {axes = array<i64: 1>} : (tensor<?x?xf64>) -> tensor<?x?xf64>
  %2 = "graphc.take"(%1, %i) {axis = 0 : i64} : (tensor<?x?xf64>, tensor<?xi64>) -> tensor<?x?xf64>
  %3 = "graphc.log"(%2) : (tensor<?x?xf64>) -> tensor<?x?xf64>
  %4 = "graphc.reduce_sum"(%3) {axes = array<i64: 1>} : (tensor<?x?xf64>) -> tensor<?xf64>
  return %3, %4 : tensor<?x?xf64>, tensor<?xf64>
}
"""


@pytest.mark.parametrize("name", PIPELINES)
def test_entries_are_passes_in_the_order_of_stages_and_have_reasons(name: str) -> None:
    stages = []
    with new_context():
        for entry in PIPELINES[name]:
            text, reason = entry
            assert reason and not reason.endswith("."), f"{text} needs a reason, a phrase"
            for step in normalise([entry]):
                if isinstance(step, Pass):
                    stages.append(STAGES.index(step.stage))
                else:
                    passmanager.PassManager.parse(f"builtin.module({step})")
    assert stages == sorted(stages)


@pytest.mark.parametrize("name", PIPELINES)
def test_every_step_is_legal(name: str) -> None:
    module = ir.Module.parse(SOURCE, context=new_context())
    run_pipeline(module, PIPELINES[name], check_legality=True, verify_each=True)
    names = {op.operation.name.partition(".")[0] for op in module.body.operations}
    assert names == {"llvm"}


def test_legality_table() -> None:
    assert (
        is_legal("graphc.add", "graph") and is_legal("tensor.dim", "graph") and is_legal("test.any", "graph")
    )
    assert not is_legal("linalg.generic", "graph") and not is_legal("tensor.insert", "graph")
    assert not is_legal("graphc.add", "buffer") and is_legal("graphc.check", "buffer")
    assert not is_legal("linalg.generic", "llvm")
    module = ir.Module.parse(SOURCE, context=new_context())
    assert illegal_operation(module, ("graph",)) is None
    found = illegal_operation(module, ("buffer",))
    assert found is not None and found.name == "graphc.matmul"
