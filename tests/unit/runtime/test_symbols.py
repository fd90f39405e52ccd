# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Where the addresses of BLAS and LAPACK routines come from."""

from __future__ import annotations

import ctypes
import subprocess
import sys

import numpy as np
import pytest

from graphc_runtime import symbols

ROUTINES = ["blas_dgemm", "blas_zgemm", "lapack_dpotrf"]


@pytest.fixture(params=[True, False], ids=["bundled", "cython"])
def source(request, monkeypatch):
    """The library of SciPy's wheel, and the way that works with every SciPy."""
    monkeypatch.setattr(symbols, "ADDRESSES", type(symbols.ADDRESSES)())
    if not request.param:
        monkeypatch.setattr(symbols, "_bundled_openblas", lambda: None)
    elif symbols._bundled_openblas() is None:
        pytest.skip("this SciPy brings no OpenBLAS along")


@pytest.mark.usefixtures("source")
def test_products():
    a, b = np.random.default_rng(0).normal(size=(2, 3, 3))
    c = np.empty((3, 3))
    gemm = ctypes.CFUNCTYPE(None, *[ctypes.c_void_p] * 13)(symbols.resolve("blas_dgemm"))
    n = np.array(3, np.int32)
    one, zero = np.array(1.0), np.array(0.0)
    scalars = [x.ctypes.data for x in (n, n, n, one)]
    flag = ctypes.create_string_buffer(b"N")
    where = ctypes.addressof(flag)
    sizes = n.ctypes.data
    matrices = [a.ctypes.data, sizes, b.ctypes.data, sizes, zero.ctypes.data, c.ctypes.data, sizes]
    gemm(where, where, *scalars, *matrices)
    np.testing.assert_allclose(c, b @ a, rtol=1e-14)


@pytest.mark.usefixtures("source")
def test_unknown_routine():
    with pytest.raises(symbols.SymbolError, match="blas_nothing"):
        symbols.resolve("blas_nothing")
    assert all(symbols.resolve(name) for name in ROUTINES)


def test_scipy_is_not_imported():
    if symbols._bundled_openblas() is None:
        pytest.skip("this SciPy brings no OpenBLAS along")
    code = (
        "import sys; from graphc_runtime.symbols import resolve\n"
        f"for name in {ROUTINES}: resolve(name)\n"
        "assert 'scipy' not in sys.modules"
    )
    subprocess.run([sys.executable, "-c", code], check=True)
