# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Kernels: what operations on small core arrays do with each element of a batch (sort, cholesky, ...).

The dialect's table (`graphc_dialects.kernels`) has the signature of each operation in the notation of NumPy's
gufuncs. A module here has the algorithm in the kernel language and the reference in NumPy or SciPy.
"""

from __future__ import annotations

import importlib
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

# Modules with kernels and the names of these, so that finding one imports no other module.
FAMILIES = {
    "bands": "cholesky_banded cholesky_banded_pullback tridiagonal_factor tridiagonal_solve",
    "cholesky": "cholesky",
    "convolution": "conv2d conv2d_input conv2d_filters",
    "counting": "bin_length count_bins sum_bins histogram weighted_histogram",
    "eigen": "eig sylvester",
    "extremes": "arg_extreme topk",
    "fourier": "fft fft_any rfft rfft_any irfft irfft_any",
    "fourier_columns": "fft_columns",
    "fourier_tables": "fft_table",
    "functions": "expm",
    "lu": "lu_factor det slogdet inv pivot_to_permutation permute_rows",
    "pivoted": "qr_pivoted",
    "pooling": "max_pool window_sum window_spread",
    "qr": "qr qr_r qr_raw",
    "running": "running",
    "scattering": "gather scatter",
    "schur": "schur sqrtm logm",
    "searching": "searchsorted contained count_true flatnonzero compress repeat_positions repeat_length",
    "selecting": "partition argpartition",
    "solve": "solve solve_banded",
    "sorting": "sort argsort",
    "sparse": "csr_product csr_partial_product csr_sampled_product",
    "svd": "svd svd_full singular_values pinv",
    "symmetric": "eigh eigvalsh",
    "triangular": "solve_triangular",
}

# (attributes, *arrays, *sizes) -> the results
Reference = Callable[..., Any]
# (sizes by the name of their dimension) -> bytes, or picoseconds; only + and * are allowed
Scratch = Callable[[Mapping[str, Any]], Any]


@dataclass(frozen=True)
class Kernel:
    """One operation.

    Attributes:
        name: of the operation.
        function: in the kernel language. Its parameters are the operands, the results, ``scratch`` if there
            is any, the sizes of the signature in order of appearance, and by keyword the attributes. Arrays
            are contiguous, in row-major order, and do not overlap. It returns nothing, or 0 for success and k
            for ``errors[k - 1]``.
        reference: the same in NumPy, on whole batches.
        scratch: how many bytes of memory it needs besides.
        errors: class and message of each error.
        flags: fast-math flags.
        cost: picoseconds of one element; without it, a guess from the sizes of its operands
            (`graphc.lowering.kernels`).
        parts: for kernels of which one element is worth sharing: a routine in the kernel language that takes
            the sizes, and by keyword the attributes, and returns how many parts an element has. The function
            then has a parameter more behind the sizes, the part that it does. Parts touch nothing that others
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
        importlib.import_module(f"graphc.kernels.{family}")
    return KERNELS[name]
