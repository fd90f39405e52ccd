# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""graphc-opt and mutated modules: a result or diagnostics, whatever the input."""

from __future__ import annotations

import pytest
from fuzzing import FUZZING, examples
from mutants import Mutant, corpus, fault, mutant, run

# A crash or a hang of the helper process is an answer too, and a wrong one.
DAILY, SECONDS = 120, 60


@pytest.mark.fuzz
@pytest.mark.parametrize("part", range(4))
def test_mutants_have_results_or_diagnostics(part):
    count = examples(DAILY, factor=40) // 4
    seeds = range(part * count, (part + 1) * count)
    faults = {seed: found for seed in seeds if (found := fault(*run(mutant(seed), SECONDS)))}
    assert not faults, "\n".join(f"mutant({seed}): {found}" for seed, found in faults.items())


SQUARE = """func.func @main(%x: TYPE) -> TYPE {
  %0 = "graphc.sqr"(%x) : (TYPE) -> TYPE
  return %0 : TYPE
}
"""
LITERAL = """func.func @f() -> TYPE {
  %0 = arith.constant dense<1.0> : TYPE
  return %0 : TYPE
}
"""
DIM = """func.func @f(%x: tensor<?xf64>) -> index {
  %a = arith.constant AXIS : index
  %0 = tensor.dim %x, %a : tensor<?xf64>
  return %0 : index
}
"""
SUM = """func.func @f(%x: tensor<3xf64>) -> tensor<f64> {
  %0 = "graphc.reduce_sum"(%x) {axes = AXES} : (tensor<3xf64>) -> tensor<f64>
  return %0 : tensor<f64>
}
"""


def donating(requests):
    return (
        f"module attributes {{graphc.donate = {requests}}} {{\n{SQUARE.replace('TYPE', 'tensor<3xf64>')}}}\n"
    )


def test_what_was_found_stays_diagnosed():
    """One module for each kind of fault that mutants have shown."""
    cases = [
        (DIM.replace("AXIS", "3"), "graphc-shape-simplification", "asks for the size of dimension 3"),
        (DIM.replace("AXIS", "-1"), "graphc-convert-to-linalg", "asks for the size of dimension -1"),
        (SQUARE.replace("TYPE", "tensor<2xbf16>"), "graphc-stabilize", "element type bf16 is not supported"),
        (
            SQUARE.replace("TYPE", "tensor<2xf8E5M2>"),
            "graphc-constant-folding",
            "element type f8E5M2 is not supported",
        ),
        (SQUARE.replace("TYPE", "tensor<9223372036854775807xf64>"), "graphc-fusion", "more than any memory"),
        (
            LITERAL.replace("TYPE", "tensor<4294967296xf64>"),
            "graphc-constant-folding",
            "is a literal of 4294967296",
        ),
        (SUM.replace("AXES", "array<i128: 0>"), "graphc-fusion", "array<i64: ...>"),
        (SUM.replace("AXES", "array<i64: 0>, odd = array<ui8: 1>"), "graphc-fusion", "attribute 'odd'"),
        (donating('"[[0, [7], false]]"'), "graphc-convert-to-linalg", "results below 1"),
        (donating('"[[9, [0], false]]"'), "graphc-convert-to-linalg", "arguments below 1"),
        (donating("true"), "graphc-convert-to-linalg", "string of JSON"),
    ]
    for text, passes, message in cases:
        code, messages = run(Mutant(0, text, passes), SECONDS)
        assert code == 1 and message in messages and fault(code, messages) is None, (text, messages)


def test_mutants_reach_passes():
    """Most mutants are refused by the parser or verifiers; enough are not."""
    answers = [run(mutant(seed), SECONDS)[0] for seed in range(10_000, 10_040)]
    assert (len(corpus()) > 200 and answers.count(0) > 5) or FUZZING
