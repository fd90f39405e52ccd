# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""The pipelines are well formed, and every step leaves IR that its stage allows."""

from __future__ import annotations

import pytest

from graphc.backends.cpu.pipeline import PIPELINES, pipeline
from graphc.backends.cuda import pipeline as cuda
from graphc.backends.stages import Request, entries
from graphc.passes import STAGES, Pass
from graphc.passes.run import normalise, run_pipeline
from graphc_dialects._mlir import ir, passmanager
from graphc_dialects.dialect import new_context
from graphc_tools.legality import check, illegal_operation, is_legal

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
        for entry in pipeline(name):
            text, reason = entry
            assert reason and not reason.endswith("."), f"{text} needs a reason, a phrase"
            for step in normalise([entry]):
                if isinstance(step, Pass):
                    stages.append(STAGES.index(step.stage))
                else:
                    passmanager.PassManager.parse(f"builtin.module({step})")
    assert stages == sorted(stages)


def test_conditions_only_add_steps_and_options() -> None:
    """Whatever is asked for, the passes of a plain request run in their order."""
    plain = entries(PIPELINES["fast_run"], Request(has_scan=False, has_complex=False))
    asked = [Request(), Request(budget=4096), Request(profile=True, work=True), Request(fastmath="full")]
    for request in [*asked, Request(device=True)]:
        rest = iter(text.partition("{")[0] for text, _ in entries(PIPELINES["fast_run"], request))
        assert all(text.partition("{")[0] in rest for text, _ in plain), request
    for request, step in (
        (Request(budget=4096), "graphc-rematerialise{budget=4096}"),
        (Request(budget=4096), "graphc-loop-fusion{overlap=40}"),
        (Request(profile=True), "graphc-profile-operations"),
        (Request(work=True), "graphc-count-work"),
        (Request(fastmath="full"), "graphc-fast-math{level=full}"),
        (Request(has_scan=True), "graphc-scan-save-mem"),
    ):
        assert step in dict(entries(PIPELINES["fast_run"], request)), step
        assert step not in dict(plain), step


def test_no_target_needs_the_stages_of_another() -> None:
    for pipelines in (PIPELINES["fast_run"], PIPELINES["fast_compile"], (cuda.KERNELS, cuda.HOST)):
        names = [stage.name for stage in pipelines]
        assert len(set(names)) == len(names)
    assert not any("cpu" in str(value.__module__) for value in vars(cuda).values() if callable(value))


@pytest.mark.parametrize("name", PIPELINES)
def test_every_step_is_legal(name: str) -> None:
    module = ir.Module.parse(SOURCE, context=new_context())
    run_pipeline(module, pipeline(name), check=check, verify_each=True)
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
