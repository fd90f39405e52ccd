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

    The call is chosen where BLAS has the element type; products whose operation count m * n * k is known
    to be at most `threshold` stay loops. With sizes known only at run time, `graphc_?gemm` itself chooses
    between a loop and BLAS. Batched products loop over the batch.

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
