# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""C functions of compiled log densities, for samplers in other languages.

``int64_t f(uint64_t dim, const double *x, double *gradient, double *value, void *user)`` computes without the
interpreter's lock, in any number of threads at once::

    f = graphc.function([x], [density, graphc.grad(density, x)])
    entry = density_entry(f, dim=5)
    entry.address, entry.user        # for a sampler; keep `entry` alive as long as it may call

| status | meaning |
|---|---|
| 0 | value and gradient are written |
| 1 | a check of the graph failed, such as an index out of range |
| 3, 4 | an element of the gradient, or the value, is not finite |
| -1 | `dim` is not the number of elements of x |
| -2 | memory is exhausted |
"""

from __future__ import annotations

import ctypes
from collections.abc import Sequence
from functools import cache
from typing import Any

import numpy as np

from graphc.backends.cpu.density import EXPORTS, density_ir
from graphc.backends.cpu.object import compile_to_object
from graphc.function.types import Function
from graphc_runtime import symbols
from graphc_runtime.loader import LoadedObject, load_object

_WORDS = 10


class CEntry:
    """A C function and what it computes with; valid as long as this object lives.

    Attributes:
        address: of the C function.
        user: address to be handed to it as the last argument.
        dim: elements of ``x``.
        shapes: of the results.

    Args:
        name: of the C function.
        function: what it computes.
        x: a value of the first argument.
        fixed: values of the others.
        results: positions of the gradient and the value, or twice that of the result.
    """

    def __init__(
        self, name: str, function: Function, x: np.ndarray, fixed: Sequence[Any], results: tuple[int, int]
    ) -> None:
        code = function.machine_code()
        if code is None:
            raise TypeError(
                f"a C function needs a graph that is compiled as a whole and updates nothing: {function} "
                + ("updates shared variables" if function.updates else _in_python(function))
            )
        executable, cells = code
        self._function, signature = function, executable.manifest.signature
        if not signature.inputs or signature.inputs[0].dtype != "float64":
            raise TypeError(
                f"the first argument of a C function is a float64 vector, {function} takes another"
            )
        if signature.donated or signature.spares:
            raise TypeError(f"{function} overwrites donated inputs, which a C function must not")
        arrays = executable.arguments([x, *fixed], [cell[0] for cell in cells])
        self.shapes = [np.shape(result) for result in _as_list(function(x, *fixed))]
        self.dim = x.size
        # These are read by machine code.
        self._arrays = arrays
        count = len(arrays) + len(self.shapes)
        self._template = (ctypes.c_uint64 * count)(*(array.ctypes.data for array in arrays))
        sizes = [size for shape in (*(a.shape for a in arrays), *self.shapes) for size in shape]
        self._sizes = (ctypes.c_int64 * (len(sizes) + 1))(*sizes)
        kernel = executable.kernel
        self._words = (ctypes.c_uint64 * _WORDS)(
            kernel.run,
            kernel.release,
            self.dim,
            ctypes.addressof(self._template),
            ctypes.addressof(self._sizes),
            count,
            0,
            *(len(arrays) + result for result in results),
            int(np.prod(self.shapes[results[0]])),
        )
        self.address = _loaded().address(name)
        self.user = ctypes.addressof(self._words)


def density_entry(function: Function, x: np.ndarray, *fixed: np.ndarray) -> CEntry:
    """The C function of a compiled log density with its gradient.

    Args:
        function: takes a float64 vector and perhaps more, and returns a float64 scalar and a float64 vector
            of the length of the first argument, in this order.
        x: a value of the first argument, of the length that calls will have.
        fixed: values of the other arguments, the same in all calls. They are not copied where possible.
            Shared variables keep the values of now, too.

    Raises:
        TypeError: the function runs partly in Python, updates shared variables or has other results.
    """
    x = np.ascontiguousarray(x, dtype=np.float64)
    dtypes = _dtypes(function)
    shapes = None
    if dtypes == ["float64", "float64"]:
        entry = CEntry("graphc_density", function, x, fixed, (1, 0))
        shapes = entry.shapes
        if shapes == [(), x.shape]:
            return entry
    raise TypeError(
        f"a log density returns a float64 scalar and a gradient of shape {x.shape}, got results of dtypes "
        f"{dtypes}" + ("" if shapes is None else f" and shapes {shapes}")
    )


def values_entry(function: Function, x: np.ndarray, *fixed: object) -> CEntry:
    """The C function ``int64_t f(dim, count, const double *x, double *result, user)`` of one float64 result.

    Args, errors: as in `density_entry`; ``count`` is the number of elements of the result.
    """
    x = np.ascontiguousarray(x, dtype=np.float64)
    dtypes = _dtypes(function)
    if dtypes != ["float64"]:
        raise TypeError(f"one float64 result is needed, got {dtypes}")
    return CEntry("graphc_values", function, x, fixed, (0, 0))


def _dtypes(function: Function) -> list[str]:
    """Of the results; those of a function from the disk are known without its graph."""
    code = function.machine_code()
    if code is None:
        return [variable.type.dtype for variable in function.outputs]
    return [spec.dtype for spec in code[0].manifest.signature.outputs]


def _as_list(results: Any) -> list[np.ndarray]:
    return list(results) if isinstance(results, (list, tuple)) else [results]


def _in_python(function: Function) -> str:
    names = ", ".join(fallback.op for fallback in function.report.fallbacks) or "its mode"
    return f"runs in Python because of {names}"


@cache
def _loaded() -> LoadedObject:
    """The machine code; it knows no function, so one copy serves all."""
    return load_object(compile_to_object(density_ir(), exports=EXPORTS), symbols.resolve)
