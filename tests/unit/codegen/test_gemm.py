# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""The row-major products around BLAS against NumPy."""

from __future__ import annotations

import ctypes
from functools import cache

import numpy as np
import pytest

from graphc.codegen.blas import define_gemm
from graphc.codegen.object import compile_to_object
from graphc_runtime import symbols
from graphc_runtime.loader import LoadedObject, load_object

DTYPES = {"s": "float32", "d": "float64", "c": "complex64", "z": "complex128"}
ARGUMENTS = ", ".join(f"i64 %x{i}" for i in range(8))
SIZES = [(1, 1, 1), (3, 5, 7), (17, 1, 9), (1, 33, 2), (0, 4, 3), (4, 0, 3), (4, 3, 0), (65, 31, 40)]


@cache
def loaded(letter: str) -> LoadedObject:
    text = f"declare void @graphc_{letter}gemm({', '.join(['i64'] * 8)})\n"
    text += f"define i64 @graphc_run({ARGUMENTS}) {{\n"
    text += f"  call void @graphc_{letter}gemm({ARGUMENTS})\n  ret i64 0\n}}\n"
    return load_object(compile_to_object(define_gemm(text)), symbols.resolve)


def gemm(letter, ta, tb, m, n, k, a, b, c):
    function = ctypes.CFUNCTYPE(ctypes.c_int64, *[ctypes.c_int64] * 8)(loaded(letter).address("graphc_run"))
    function(ta, tb, m, n, k, a.ctypes.data, b.ctypes.data, c.ctypes.data)


@pytest.mark.parametrize("letter", DTYPES)
@pytest.mark.parametrize("ta", [0, 1])
@pytest.mark.parametrize("tb", [0, 1])
def test_against_numpy(letter, ta, tb):
    rng, dtype = np.random.default_rng(0), DTYPES[letter]

    def random(*shape):
        value = rng.normal(size=shape) + (1j * rng.normal(size=shape) if letter in "cz" else 0)
        return np.ascontiguousarray(value.astype(dtype))

    for m, n, k in SIZES:
        a, b = random(*((k, m) if ta else (m, k))), random(*((n, k) if tb else (k, n)))
        c = random(m, n)
        want = c + (a.T if ta else a) @ (b.T if tb else b)
        gemm(letter, ta, tb, m, n, k, a, b, c)
        tolerance = 1e-4 if letter in "sc" else 1e-12
        np.testing.assert_allclose(c, want, rtol=tolerance, atol=tolerance, err_msg=str((m, n, k)))


def test_only_what_is_declared():
    assert define_gemm("define void @f() {\n  ret void\n}\n") == "define void @f() {\n  ret void\n}\n"
    declared = "declare void @graphc_dgemm(i64, i64, i64, i64, i64, i64, i64, i64)\n"
    text = define_gemm(declared + "declare i64 @llvm.smax.i64(i64, i64)\n")
    assert text.count("@llvm.smax.i64(i64, i64)") == 1 and "sgemm" not in text
    both = define_gemm(declared + declared.replace("dgemm", "sgemm"))
    assert "@blas_dgemm" in both and "@blas_sgemm" in both
