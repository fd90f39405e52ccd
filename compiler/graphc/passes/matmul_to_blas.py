# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Large matrix products are done by BLAS."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from graphc.passes._base import Pass

_SUFFIX = {"f32": "s", "f64": "d", "complex<f32>": "c", "complex<f64>": "z"}


@dataclass
class MatmulToBlas(Pass):
    """Replaces matrix products on contiguous buffers by a call of `graphc_<s,d,c,z>gemm`.

    The call is chosen where BLAS has the element type; products whose operation count m * n * k is at most
    `threshold` stay loops, decided at compile time for static sizes and at run time otherwise. Batched
    products loop over the batch.

    Options:
        threshold: largest m * n * k that stays a loop nest.

    Source: PyTensor's BLAS rewrites; the reference BLAS interface.
    """

    stage = "buffer"
    threshold: int = 4096

    def run(self, module: Any) -> None:
        from graphc.lowering.matmul import lower_matmul
        from graphc.passes._walk import walk

        for op in walk(module.operation):
            is_product = op.name == "linalg.generic" and "graphc.matmul" in op.attributes
            if is_product and lower_matmul(module, op, _SUFFIX, self.threshold):
                self.count("blas calls")
