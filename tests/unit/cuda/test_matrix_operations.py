# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Which lane has which elements of what tensor cores multiply: kernels that upstream writes, and our own."""

from __future__ import annotations

import numpy as np
import pytest

from graphc.passes.run import run_pipeline
from graphc_dialects._mlir import ir
from graphc_dialects.dialect import new_context
from graphc_tools.gpu.kernels import Kernels, run_kernel

_PRODUCT = """
module attributes {transform.with_named_sequence} {
  gpu.module @kernels {
    gpu.func @product(%a: memref<16xDEPTHxKIND>, %b: memref<DEPTHx8xKIND>, %c: memref<16x8xKIND>) kernel {
      linalg.matmul ins(%a, %b: memref<16xDEPTHxKIND>, memref<DEPTHx8xKIND>) outs(%c: memref<16x8xKIND>)
      gpu.return
    }
  }
  transform.named_sequence @__transform_main(%root: !transform.any_op) {
    %product = transform.structured.match ops{["linalg.matmul"]} in %root
        : (!transform.any_op) -> !transform.any_op
    transform.nvgpu.rewrite_matmul_as_mma_sync %product : (!transform.any_op) -> ()
    transform.yield
  }
}
"""
_ROWS = """
gpu.module @kernels {
  gpu.func @rows(%x: memref<16x32xf16>, %y: memref<32x8xf16>)
      workgroup(%s: memref<16x32xf16, #gpu.address_space<workgroup>> {llvm.align = 16 : i64}) kernel {
    %c0 = arith.constant 0 : index
    %c1 = arith.constant 1 : index
    %c8 = arith.constant 8 : index
    %c16 = arith.constant 16 : index
    %i = gpu.thread_id x
    scf.for %r = %c0 to %c16 step %c1 {
      %v = memref.load %x[%r, %i] : memref<16x32xf16>
      memref.store %v, %s[%r, %i] : memref<16x32xf16, #gpu.address_space<workgroup>>
    }
    gpu.barrier
    %row = arith.remui %i, %c16 : index
    %half = arith.divui %i, %c16 : index
    %column = arith.muli %half, %c8 : index
    %m = nvgpu.ldmatrix %s[%row, %column] {numTiles = 4 : i32, transpose = TURNED}
        : memref<16x32xf16, #gpu.address_space<workgroup>> -> vector<4x2xf16>
    EXTRACTED
    gpu.return
  }
}
"""


@pytest.mark.parametrize(("kind", "depth", "dtype"), [("f32", 4, np.float32), ("f16", 16, np.float16)])
def test_products_that_upstream_writes(kind: str, depth: int, dtype: type) -> None:
    text = _PRODUCT.replace("DEPTH", str(depth)).replace("KIND", kind)
    with new_context() as context, ir.Location.unknown():
        for dialect in ("transform", "nvgpu", "gpu", "linalg"):
            _ = context.dialects[dialect]
        module = ir.Module.parse(text)
        run_pipeline(module, [("transform-interpreter,lower-affine,canonicalize", "")])
        found = next(op for op in module.body.operations if op.operation.name == "gpu.module")
        text = str(found)
    assert "nvgpu.mma.sync" in text
    rng = np.random.default_rng(0)
    # Small integers: all digits of sums and products are there.
    a, b, c = (rng.integers(-8, 9, shape).astype(dtype) for shape in ((16, depth), (depth, 8), (16, 8)))
    expected = a @ b + c
    kernels = Kernels(text)
    run_kernel(kernels["product"], (1, 1, 1), (32, 1, 1), [a, b, c])
    np.testing.assert_array_equal(c, expected)


@pytest.mark.parametrize("turned", [False, True])
def test_matrices_from_shared_memory(turned: bool) -> None:
    """Lane 4 g + t has elements 2 t and 2 t + 1 of row g, or column g, of each matrix of 8 by 8."""
    lines = []
    for place in range(8):
        lines += [
            f"%v{place} = vector.extract %m[{place // 2}, {place % 2}] : f16 from vector<4x2xf16>",
            f"%p{place} = arith.constant {place} : index",
            f"memref.store %v{place}, %y[%i, %p{place}] : memref<32x8xf16>",
        ]
    text = _ROWS.replace("TURNED", str(turned).lower()).replace("EXTRACTED", "\n".join(lines))
    x = np.arange(16 * 32, dtype=np.float16).reshape(16, 32)
    y = np.zeros((32, 8), np.float16)
    kernels = Kernels(text)
    run_kernel(kernels["rows"], (1, 1, 1), (32, 1, 1), [x, y])
    matrices = [x[row : row + 8, column : column + 8] for column in (0, 8) for row in (0, 8)]
    for lane, found in enumerate(y.reshape(32, 4, 2)):
        g, t = divmod(lane, 4)
        for part, matrix in zip(found, matrices, strict=True):
            wanted = matrix.T if turned else matrix
            np.testing.assert_array_equal(part, wanted[g, 2 * t : 2 * t + 2])
