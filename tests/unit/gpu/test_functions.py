# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Every elementwise operation compiles for devices, or is one of few; what is computed is as accurate."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
from ptx_assembler import report

import graphc
import graphc.tensor as pt
from graphc.backends.contexts import shared_context
from graphc.backends.cuda import functions, pipeline
from graphc.backends.cuda.code import lower, to_ptx
from graphc.emit import emit_module
from graphc.graph.function_graph import FunctionGraph
from graphc.graph.tensor.variable import TensorVariable
from graphc.ir.helpers import callee_of
from graphc.ir.walk import walk
from graphc.ops.elementwise import OPS, ROWS
from graphc.passes.gpu.gpu_placement import SCIPY
from graphc.passes.run import run_pipeline
from graphc_dialects._mlir import ir
from graphc_runtime.cuda import executable
from graphc_tools.gpu.kernels import Kernels
from graphc_tools.gpu.simulated import SimulatedDriver


def _outputs(dtype: str, names: set[str]) -> tuple[TensorVariable, dict[str, TensorVariable]]:
    """An operand, and the rows that take it."""
    x = pt.tensor("x", dtype=dtype, shape=(None,))
    found = {}
    for name in sorted(names):
        try:
            output = OPS[name](*[x] * ROWS[name].arity)
        except TypeError:
            continue
        if output.owner is not None and "emit" not in getattr(output.owner.op, "absent", ()):
            found[name] = output
    return x, found


def _text(x: TensorVariable, outputs: dict[str, TensorVariable]) -> str:
    return emit_module(FunctionGraph([x], [*outputs.values()])).text


@pytest.mark.parametrize("dtype", ["float16", "complex64"])
def test_every_row_compiles(dtype: str) -> None:
    x, outputs = _outputs(dtype, set(ROWS) - SCIPY)
    ptx = lower(_text(x, outputs), "sm_90").ptx
    assert len(outputs) > 50 and ".entry" in ptx and ".extern" not in ptx


def test_the_code_of_functions_assembles(tmp_path: Path) -> None:
    names = sorted({*functions.SCALARS, *functions.EXPANDED})
    lines = [f"declare double @{name}({', '.join(['double'] * functions.operands(name))})" for name in names]
    body = []
    for i, name in enumerate(names):
        numbers = ", ".join(f"double %{'xyz'[k]}" for k in range(functions.operands(name)))
        body += [f"  %v{i} = call double @{name}({numbers})", f"  store volatile double %v{i}, ptr %p"]
    head = "define ptx_kernel void @all(ptr %p, double %x, double %y, double %z) {"
    report(to_ptx("\n".join([*lines, head, *body, "  ret void", "}"]), "sm_80"), "sm_80", tmp_path, "-O0")


def _kernels(text: str) -> ir.Module:
    """A module down to calls of functions."""
    module = ir.Module.parse(text)
    run_pipeline(module, [*pipeline.kernels(text), *pipeline.MATH])
    return module


def test_rows_without_code_call_what_is_not_ours() -> None:
    x, outputs = _outputs("float64", set(SCIPY))
    assert set(outputs) == SCIPY
    with shared_context(), ir.Location.unknown():
        for name, output in outputs.items():
            module = _kernels(_text(x, {name: output}))
            called = [callee_of(op) for op in walk(module.operation) if op.name == "llvm.call"]
            assert any(symbol.startswith("special_") for symbol in functions.missing(called)), name


def _values() -> np.ndarray:
    """Of several scales, both signs, and what is special."""
    rng = np.random.default_rng(0)
    special = [0.0, -0.0, 1.0, -1.0, 0.5, 2.0, -3.0, np.inf, -np.inf, np.nan, 1e-320, 1e300]
    wide = rng.choice([-1.0, 1.0], 30) * np.exp(rng.uniform(-30, 6, 30))
    return np.concatenate([special, wide, rng.uniform(-1, 1, 30), rng.uniform(-30, 30, 40)])


def test_results_are_as_accurate_as_the_reference(monkeypatch: pytest.MonkeyPatch) -> None:
    """By the code that devices run: expansions by the interpreter, functions compiled for this machine."""
    x, outputs = _outputs("float64", set(ROWS) - SCIPY)
    with shared_context(), ir.Location.unknown():
        kernels = Kernels(str(_kernels(_text(x, outputs))))
    monkeypatch.setattr("graphc.backends.cuda.code.to_ptx", lambda text, arch: "// not run")
    value = _values()
    cpu = graphc.function([x], [*outputs.values()], mode="fast_compile")
    device = graphc.function([x], [*outputs.values()], mode="cuda")
    monkeypatch.setattr(executable, "device", lambda: SimulatedDriver(kernels))
    for name, found, expected in zip(outputs, device(value), cpu(value), strict=True):
        # Exponentials of sums of logarithms lose digits (docs/math.md).
        tolerance = 1e-13 if name == "gammainc_da" else 4e-15
        np.testing.assert_allclose(found, expected, rtol=tolerance, err_msg=name)
