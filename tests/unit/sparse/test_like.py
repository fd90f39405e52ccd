# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""SciPy's matrices are what the types of `graphc.sparse.like` say."""

from __future__ import annotations

import numpy as np
import pytest
import scipy.sparse

from graphc.sparse.like import Matrix

VALUES = np.array([[0.0, 2.0], [3.0, 0.0]])


@pytest.mark.parametrize("format", ["csr", "csc", "bsr"])
@pytest.mark.parametrize("kind", ["matrix", "array"])
def test_matrices_of_scipy_have_what_the_protocol_says(format, kind):
    x = getattr(scipy.sparse, f"{format}_{kind}")(VALUES)
    assert isinstance(x, Matrix)
    assert isinstance(x.format, str) and isinstance(x.dtype, np.dtype) and x.shape == (2, 2)
    assert all(isinstance(part, np.ndarray) for part in (x.data, x.indices, x.indptr))
    assert isinstance(x.has_canonical_format, bool | np.bool_)
    made = (x.tocsr(), x.asformat("csc"), x.astype("float32"), x.copy(), x.multiply(x), x + x, x @ x)
    assert all(isinstance(y, Matrix) for y in made)


def test_rows_and_parts_are_matrices_and_elements_an_array():
    x = scipy.sparse.csr_matrix(VALUES)
    assert isinstance(x[np.array([1, 0])], Matrix) and isinstance(x[slice(0, 1), slice(None)], Matrix)
    assert isinstance(x[np.array([0, 1]), np.array([1, 0])], np.ndarray)


def test_arrays_are_no_matrices():
    assert not isinstance(VALUES, Matrix)
