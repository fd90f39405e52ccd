# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Which operations of a graph have no kernel, and why."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from graphc.ir.traits.interfaces import EXPENSIVE, SEQUENTIAL
from graphc.ir.types import dtype_of
from graphc.ir.walk import walk
from graphc.lowering.device_draws import have_kernel
from graphc_dialects._mlir import ir
from graphc_dialects.elementwise import ELEMENTWISE
from graphc_dialects.signatures import SIGNATURES

# Functions that SciPy's code computes on CPUs, in C or C++, for which there is none of our own.
SCIPY = frozenset(
    "erfi erfinv erfcinv dawsn ndtri log_ndtr ndtri_exp owens_t j0 j1 jv y0 y1 yv i0 i1 iv i0e i1e ive k0 k1 "
    "kv k0e k1e kve beta betaln poch binom gammainc gammaincc gammaincinv gammainccinv betainc betaincc "
    "betaincinv hyp2f1 hyp2f1_da hyp2f1_dc hyp1f1 expi exp1 ellipk ellipe".split()
)
# Operations on core arrays (`graphc_dialects.signatures`) that passes make kernels of, and which dtypes of
# their first operand they take.
DEVICE: dict[str, Callable[[np.dtype], bool]] = {
    "running": lambda dtype: True,
    **dict.fromkeys(("sort", "argsort", "arg_extreme"), lambda dtype: dtype.kind != "c"),
    **dict.fromkeys(
        ("cholesky", "solve_triangular", "solve", "inv", "det", "slogdet"),
        lambda dtype: dtype.kind == "f" and dtype.itemsize >= 4,
    ),
}


def reason(op: ir.Operation) -> str:
    """Why an operation of the graph stage, or what it contains, has no kernel; empty if it has one."""
    for inner in [op, *walk(op)]:
        name = inner.name.removeprefix("graphc.")
        if name in SCIPY:
            return f"{name} is code of SciPy"
        if name in SIGNATURES:
            if name not in DEVICE:
                return f"{name} has no kernel"
            dtype = dtype_of(ir.RankedTensorType(inner.operands[0].type).element_type)
            if not DEVICE[name](dtype):
                return f"{name} of {dtype} has no kernel"
        if inner.name in SEQUENTIAL and not have_kernel(inner):
            return "draws follow one stream of bits"
    return ""


def is_movable(op: ir.Operation) -> bool:
    """Whether an operation is so cheap that it may run on the host, to save a transfer."""
    if not op.name.startswith("graphc.") or not len(op.results) or len(op.regions):
        return False
    is_expensive = EXPENSIVE.get(op.name)
    if is_expensive is not None and op.name.removeprefix("graphc.") not in ELEMENTWISE and is_expensive(op):
        return False
    return all(isinstance(result.type, ir.RankedTensorType) for result in op.results)
