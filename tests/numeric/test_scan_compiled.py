# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Compiled modules with scans compute what the interpreter computes."""

from __future__ import annotations

from random import Random

import numpy as np
import pytest
from fuzzing import some
from pipelines import compile_text, interpret
from scan_modules import ScanCase, assert_close, generate

from graphc.backends.cpu.pipeline import PIPELINES, pipeline

SEEDS = 25


def check(case: ScanCase, mode: str) -> None:
    """Compiles a case with a pipeline and compares its results with the interpreter's."""
    expected = interpret(case.text, case.inputs)
    results = compile_text(case.text, pipeline(mode), 1)(*case.inputs)
    assert_close(results, expected)


@pytest.mark.fuzz
@pytest.mark.parametrize("seed", some(range(SEEDS), 15))
@pytest.mark.parametrize("mode", sorted(PIPELINES))
def test_random_scans(mode: str, seed: int) -> None:
    check(generate(Random(seed)), mode)


_GROWING = """
func.func @main(%x: tensor<?xf64>) -> tensor<?xf64> {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %n = tensor.dim %x, %c0 : tensor<?xf64>
  %s = "graphc.scan"(%n) ({
  ^bb0(%t: index):
    %k = arith.addi %t, %c1 : index
    %part = "graphc.slice"(%x, %c0, %k, %c1) : (tensor<?xf64>, index, index, index) -> tensor<?xf64>
    %e = "graphc.exp"(%part) : (tensor<?xf64>) -> tensor<?xf64>
    %b = "graphc.dimshuffle"(%e) {order = array<i64: 0, -1>} : (tensor<?xf64>) -> tensor<?x1xf64>
    %a = "graphc.dimshuffle"(%part) {order = array<i64: -1, 0>} : (tensor<?xf64>) -> tensor<1x?xf64>
    %p = "graphc.matmul"(%a, %b) {transpose_a = false, transpose_b = false}
      : (tensor<1x?xf64>, tensor<?x1xf64>) -> tensor<1x1xf64>
    %y = "graphc.dimshuffle"(%p) {order = array<i64>} : (tensor<1x1xf64>) -> tensor<f64>
    "graphc.scan_collect"(%y) {state = "y", keep = "steps"} : (tensor<f64>) -> ()
    "graphc.scan_end"() : () -> ()
  }) {name = "growing", reverse = false} : (index) -> !graphc.loop
  %r = "graphc.scan_trace"(%s) {state = "y"} : (!graphc.loop) -> tensor<?xf64>
  return %r : tensor<?xf64>
}
"""


@pytest.mark.parametrize("mode", sorted(PIPELINES))
def test_iterations_give_their_memory_back(mode: str) -> None:
    """Buffers whose size changes from iteration to iteration do not add up: here to 0.8 GB."""
    import resource

    x = np.random.default_rng(0).standard_normal(14_000)
    f = compile_text(_GROWING, pipeline(mode), 1)
    before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    (result,) = f(x)
    after = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    np.testing.assert_allclose(result, np.cumsum(x * np.exp(x)), rtol=1e-6)
    assert after - before < 100 << 10


_JOINED = """
func.func @main(%x: tensor<?x3xf64>, %a: tensor<3xf64>, %b: tensor<3xf64>)
    -> (tensor<1x6xf64>, tensor<3xf64>) {
  %c0 = arith.constant 0 : index
  %n = tensor.dim %x, %c0 : tensor<?x3xf64>
  %ea = "graphc.exp"(%a) : (tensor<3xf64>) -> tensor<3xf64>
  %eb = "graphc.tanh"(%b) : (tensor<3xf64>) -> tensor<3xf64>
  %ca = tensor.cast %ea : tensor<3xf64> to tensor<?xf64>
  %cb = tensor.cast %eb : tensor<3xf64> to tensor<?xf64>
  %j = "graphc.join"(%ca, %cb) {axis = 0 : i64} : (tensor<?xf64>, tensor<?xf64>) -> tensor<?xf64>
  %j6 = tensor.cast %j : tensor<?xf64> to tensor<6xf64>
  %c1 = arith.constant 1 : index
  %c6 = arith.constant 6 : index
  %i = "graphc.reshape"(%j6, %c1, %c6) : (tensor<6xf64>, index, index) -> tensor<1x6xf64>
  %s = "graphc.scan"(%n) ({
  ^bb0(%t: index):
    %h = "graphc.scan_prev"(%t) {state = "h", tap = -1 : i64} : (index) -> tensor<6xf64>
    %y = "graphc.sqr"(%h) : (tensor<6xf64>) -> tensor<6xf64>
    %z = "graphc.neg"(%y) : (tensor<6xf64>) -> tensor<6xf64>
    "graphc.scan_carry"(%i, %z) {state = "h", taps = array<i64: -1>, writes = array<i64: 0>, keep = "all"}
      : (tensor<1x6xf64>, tensor<6xf64>) -> ()
    "graphc.scan_end"() : () -> ()
  }) {name = "s", reverse = false} : (index) -> !graphc.loop
  %all = "graphc.scan_trace"(%s) {state = "h"} : (!graphc.loop) -> tensor<?x6xf64>
  %r = "graphc.slice"(%all, %n, %c0, %c1, %c6, %c1, %c1)
    : (tensor<?x6xf64>, index, index, index, index, index, index) -> tensor<1x6xf64>
  %last = "graphc.scan_seq"(%r, %c0) : (tensor<1x6xf64>, index) -> tensor<6xf64>
  %c3 = arith.constant 3 : index
  %p = "graphc.slice"(%last, %c0, %c3, %c1) : (tensor<6xf64>, index, index, index) -> tensor<3xf64>
  %q = "graphc.add"(%p, %ea) : (tensor<3xf64>, tensor<3xf64>) -> tensor<3xf64>
  return %r, %q : tensor<1x6xf64>, tensor<3xf64>
}
"""


@pytest.mark.parametrize("mode", sorted(PIPELINES))
def test_what_was_joined_into_an_initial_row_stays_readable(mode: str) -> None:
    """The state overwrites its initial row, where the joined parts were computed."""
    rng = np.random.default_rng(0)
    inputs = [rng.standard_normal((3, 3)), rng.standard_normal(3), rng.standard_normal(3)]
    check(ScanCase(_JOINED, inputs, frozenset()), mode)
