# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Compiles `for i: o[i] = math.<name>(x[i], ...)` and calls it, for tests and measurements."""

from __future__ import annotations

import ctypes
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from graphc.backends.handoff import to_llvmlite
from graphc_dialects._mlir import ir, passmanager, translate_module_to_llvmir

if TYPE_CHECKING:
    from graphc.passes.buffer.expand_math import ExpandMath

LOWERING = (
    "convert-scf-to-cf,convert-math-to-llvm{approximate-log1p=false},convert-math-to-libm,expand-strided-metadata,"
    "finalize-memref-to-llvm,convert-func-to-llvm,convert-arith-to-llvm,convert-cf-to-llvm,"
    "convert-index-to-llvm,reconcile-unrealized-casts"
)
_ELEMENTS = {"float16": "f16", "float32": "f32", "float64": "f64"}


def source(body: str, dtype: str, arity: int = 1) -> str:
    """A loop over `arity` inputs %x0, %x1, ...; `body` computes %r of the element type."""
    kind = _ELEMENTS[dtype]
    buffer = f"memref<?x{kind}>"
    arguments = ", ".join(f"%b{i}: {buffer}" for i in range(arity))
    loads = "\n".join(f"    %x{i} = memref.load %b{i}[%i] : {buffer}" for i in range(arity))
    return f"""
func.func @k({arguments}, %o: {buffer}, %n: index) {{
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  scf.for %i = %c0 to %n step %c1 {{
{loads}
    {body}
    memref.store %r, %o[%i] : {buffer}
  }}
  return
}}
"""


def unary(name: str, dtype: str) -> str:
    """The loop of one function."""
    kind = _ELEMENTS[dtype]
    return source(f"%r = math.{name} %x0 : {kind}", dtype)


def lower(text: str, passes: tuple[ExpandMath, ...]) -> str:
    """LLVM IR of a kernel after the given passes of ours."""
    with ir.Context(), ir.Location.unknown():
        module = ir.Module.parse(text)
        for item in passes:
            item.run(module)
        module.operation.verify()
        passmanager.PassManager.parse(f"builtin.module({LOWERING})").run(module.operation)
        return translate_module_to_llvmir(module.operation)


@dataclass
class Kernel:
    """A compiled loop; call it with arrays of equal length and dtype."""

    function: Any
    assembly: str
    engine: Any

    def __call__(self, *inputs: np.ndarray, out: np.ndarray | None = None) -> np.ndarray:
        result = np.empty_like(inputs[0]) if out is None else out
        descriptors = [(a.ctypes.data, a.ctypes.data, 0, a.size, 1) for a in (*inputs, result)]
        self.function(*(field for descriptor in descriptors for field in descriptor), result.size)
        return result


def compile_ir(text: str, arity: int = 1) -> Kernel:
    """Optimises LLVM IR for this machine and loads it."""
    import llvmlite.binding as llvm

    llvm.initialize_native_target()
    llvm.initialize_native_asmprinter()
    module = llvm.parse_assembly(to_llvmlite(text))
    module.verify()
    target = llvm.Target.from_default_triple().create_target_machine(
        cpu=llvm.get_host_cpu_name(), features=llvm.get_host_cpu_features().flatten(), opt=3
    )
    options = llvm.create_pipeline_tuning_options(speed_level=3)
    options.loop_vectorization = True
    builder = llvm.create_pass_builder(target, options)
    builder.getModulePassManager().run(module, builder)
    assembly = target.emit_assembly(module)
    engine = llvm.create_mcjit_compiler(module, target)
    engine.finalize_object()
    memref = [ctypes.c_void_p, ctypes.c_void_p, ctypes.c_int64, ctypes.c_int64, ctypes.c_int64]
    function = ctypes.CFUNCTYPE(None, *memref * (arity + 1), ctypes.c_int64)(engine.get_function_address("k"))
    return Kernel(function, assembly, engine)


def compile_unary(name: str, dtype: str, *passes: ExpandMath) -> Kernel:
    """The kernel of one function."""
    return compile_ir(lower(unary(name, dtype), passes))
