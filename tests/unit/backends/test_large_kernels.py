# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""The code of large kernels has a bound: scans in scans in scans, differentiated twice."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import graphc
import graphc.tensor as pt
from graphc.backends.cpu import compiler
from graphc.backends.cpu import object as code


def second_order(depth: int) -> tuple[list[Any], Any]:
    """A state `tanh(a * x + b * inner(x))` in each of some loops of unknown lengths, differentiated twice."""
    x, a = pt.dvector("x"), pt.dvector("a")
    steps = [pt.iscalar(f"n{level}") for level in range(depth)]

    def loop(level: int, start: Any) -> Any:
        def step(s: Any) -> Any:
            return pt.tanh(a * s + 0.5 * (loop(level + 1, s) if level + 1 < depth else s))

        rows = graphc.scan(step, outputs_info=[start], n_steps=steps[level], return_updates=False)
        return rows[-1]

    first = graphc.grad(loop(0, x).sum(), x)
    return [x, a, *steps], graphc.grad((first**2).sum(), x)


def test_code_of_nested_loops_has_a_bound(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(code, "VECTORISED_SIZE", 1000)
    inputs, output = second_order(3)
    f = graphc.function(inputs, output)
    stages = dict(f.ir_stages())
    assert len(stages["llvm"]) < 350_000  # 260,000 when this was written; 45,000 for one loop
    assert len(stages["llvm-opt"]) < 1.5 * len(stages["llvm"])
    values = [np.linspace(-0.5, 0.5, 3), np.linspace(0.2, 0.7, 3), 2, 3, 2]
    expected = graphc.function(inputs, output, mode="reference")(*values)
    np.testing.assert_allclose(f(*values), expected, rtol=1e-10)


def test_memory_of_large_modules_is_returned_before_code_is_made(
    monkeypatch: pytest.MonkeyPatch, no_cache: None
) -> None:
    """Of 30,000 operations the peak was 555 MB, and is 454."""
    monkeypatch.setattr(compiler, "_LARGE", 50_000)
    returned: list[None] = []
    monkeypatch.setattr(compiler, "_return_memory", lambda: returned.append(None))
    x = pt.vector("x")
    graphc.function([x], pt.exp(x))
    assert not returned
    y = x
    for _ in range(50):
        y = pt.tanh(x * y.sum())
    graphc.function([x], y)
    assert returned


LOOP = """
define i64 @main(ptr %0, ptr noalias %1, i64 %2) {
  br label %4
4:
  %5 = phi i64 [ 0, %3 ], [ %10, %4 ]
  %6 = getelementptr double, ptr %1, i64 %5
  %7 = getelementptr double, ptr %0, i64 %5
  %8 = load double, ptr %7, align 8
  %9 = fmul double %8, %8
  store double %9, ptr %6, align 8
  %10 = add i64 %5, 1
  %11 = icmp slt i64 %10, %2
  br i1 %11, label %4, label %12
12:
  ret i64 0
}
"""


@pytest.mark.parametrize("size", [len(LOOP) - 1, len(LOOP)])
def test_only_kernels_of_the_bound_are_vectorised(size: int, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(code, "VECTORISED_SIZE", size)
    views: dict[str, str] = {}
    code.compile_to_object(LOOP, on_ir=views.__setitem__)
    assert (" x double>" in views["llvm-opt"]) == (size == len(LOOP))
