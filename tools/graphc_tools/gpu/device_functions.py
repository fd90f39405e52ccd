# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Functions that kernels call and do not define: the code that devices run, compiled for this machine."""

from __future__ import annotations

import ctypes
from collections.abc import Callable
from functools import cache

import llvmlite.binding as llvm
import numpy as np

from graphc.backends.cuda.functions import definitions, missing

_C_TYPES: dict[str, type[ctypes.c_double | ctypes.c_uint64]] = {
    "float64": ctypes.c_double,
    "int64": ctypes.c_uint64,
}


@cache
def device_function(symbol: str, dtype: str, count: int) -> Callable[..., np.ndarray]:
    """A function of numbers, element by element.

    Args:
        symbol: its name, such as ``graphc_scalar.sin``.
        dtype: of its operands and of its result.
        count: how many operands it has.

    Raises:
        NotImplementedError: no code is known for it.

    Examples:
        >>> from graphc_tools.gpu.device_functions import device_function
        >>> device_function("graphc_scalar.pow", "float64", 2)(np.array([2.0, 9.0]), np.array([10.0, 0.5]))
        array([1024.,    3.])
    """
    unknown = missing([symbol])
    if unknown:
        raise NotImplementedError(f"no code is known for {', '.join(unknown)}")
    llvm.initialize_native_target()
    llvm.initialize_native_asmprinter()
    module = llvm.parse_assembly(definitions([symbol]))
    machine = llvm.Target.from_default_triple().create_target_machine(opt=2)
    engine = llvm.create_mcjit_compiler(module, machine)
    engine.finalize_object()
    kind = _C_TYPES[dtype]
    function = ctypes.CFUNCTYPE(kind, *[kind] * count)(engine.get_function_address(symbol))

    def run(*operands: np.ndarray) -> np.ndarray:
        assert engine is not None, "the code lives as long as this"
        given = np.broadcast_arrays(*operands)
        numbers = zip(*(x.ravel().tolist() for x in given), strict=True)
        values = np.array([function(*each) for each in numbers], kind)
        return values.view(dtype).reshape(given[0].shape)

    return run
