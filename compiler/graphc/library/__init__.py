# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Native code that ships with compiled functions, one folder or module a family, and the table of kernels.

Kernels are what operations on small core arrays do with each element of a batch (sort, cholesky, ...).

The dialect's table (`graphc_dialects.kernels`) has the signature of each operation in the notation of NumPy's
gufuncs. A module here has the algorithm in the kernel language and the reference in NumPy or SciPy.
"""

from __future__ import annotations

import importlib
from collections.abc import Callable, Mapping, Sequence
from typing import Any

from graphc_runtime.record import record

# Modules of `graphc.library` with kernels and the names of these, so that finding one imports no other
# module.
FAMILIES = {
    "linalg.bands": "cholesky_banded cholesky_banded_pullback tridiagonal_factor tridiagonal_solve",
    "linalg.cholesky": "cholesky cholesky_pullback",
    "nn": "conv2d conv2d_input conv2d_filters max_pool window_sum window_spread",
    "sorting.counting": "bin_length count_bins sum_bins histogram weighted_histogram",
    "linalg.eigen": "eig sylvester",
    "sorting.extremes": "arg_extreme topk",
    "fourier.transforms": "fft fft_any rfft rfft_any irfft irfft_any",
    "fourier.columns": "fft_columns",
    "fourier": "fft_table",
    "linalg.functions": "expm",
    "linalg.lu": "lu_factor det slogdet inv pivot_to_permutation permute_rows",
    "linalg.pivoted": "qr_pivoted",
    "linalg.qr": "qr qr_r qr_raw",
    "arrays": "running gather scatter",
    "linalg.schur": "schur sqrtm logm",
    "sorting.searching": "searchsorted contained count_true flatnonzero"
    " compress repeat_positions repeat_length",
    "sorting.selecting": "partition argpartition",
    "linalg.solve": "solve solve_banded",
    "sorting": "sort argsort",
    "products.sparse": "csr_product csr_partial_product csr_sampled_product",
    "linalg.svd": "svd svd_full singular_values pinv",
    "linalg.symmetric": "eigh eigvalsh",
    "linalg.triangular": "solve_triangular",
}

# (attributes, *arrays, *sizes) -> the results
Reference = Callable[..., Any]
# (sizes by the name of their dimension) -> bytes, or picoseconds; only + and * are allowed
Scratch = Callable[[Mapping[str, Any]], Any]


@record(frozen=True)
class Kernel:
    """One operation.

    Attributes:
        name: of the operation.
        function: in the kernel language. Its parameters are the operands, the results, ``scratch`` if there
            is any, then by name sizes of the signature, and by keyword attributes, or `attributes`, which has
            all of them. Arrays are contiguous, in row-major order, and do not overlap. It returns nothing, or
            0 for success and k for ``errors[k - 1]``.
        reference: the same in NumPy, on whole batches.
        scratch: how many bytes of memory it needs besides.
        errors: class and message of each error.
        flags: fast-math flags.
        cost: picoseconds of one element; without it, a guess from the sizes of its operands
            (`graphc.lowering.structural`).
        parts: for kernels of which one element is worth sharing: a routine in the kernel language that takes
            sizes and attributes by name, and returns how many parts an element has. The function then has a
            parameter more, `part`, which it does. Parts touch nothing that others
            write, and BLAS uses one thread in them.
    """

    name: str
    function: Callable[..., Any]
    reference: Reference
    scratch: Scratch | None = None
    errors: Sequence[tuple[str, str]] = ()
    flags: str = ""
    cost: Scratch | None = None
    parts: Callable[..., Any] | None = None


KERNELS: dict[str, Kernel] = {}


def kernel(
    name: str,
    reference: Reference,
    *,
    scratch: Scratch | None = None,
    errors: Sequence[tuple[str, str]] = (),
    flags: str = "",
    cost: Scratch | None = None,
    parts: Callable[..., Any] | None = None,
) -> Callable[[Callable[..., Any]], Callable[..., Any]]:
    """Registers the function it decorates; see `Kernel`."""

    def register(function: Callable[..., Any]) -> Callable[..., Any]:
        KERNELS[name] = Kernel(name, function, reference, scratch, tuple(errors), flags, cost, parts)
        return function

    return register


def find(name: str) -> Kernel:
    """The kernel of an operation.

    Raises:
        KeyError: there is none.
    """
    if name not in KERNELS:
        family = next((family for family, names in FAMILIES.items() if name in names.split()), None)
        if family is None:
            raise KeyError(f"no kernel {name!r}; FAMILIES of {__name__} has the names of all")
        importlib.import_module(f"graphc.library.{family}")
    return KERNELS[name]
