# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""`random.choice` in dtypes other than the default."""

from __future__ import annotations

import numpy as np
import pytest

import graphc
from graphc.tensor import random


@pytest.mark.parametrize("dtype", ["int16", "float32"])
@pytest.mark.parametrize("replace", [True, False])
def test_a_choice_is_numpys_in_the_dtype_asked_for(dtype, replace):
    values, p = np.array([1.5, 2.5, 3.5, 4.5]), np.array([0.1, 0.2, 0.3, 0.4])
    cases = [(a, weights) for a in (4, values) for weights in (None, p)]
    draws = [
        random.choice(
            a,
            size=3,
            replace=replace,
            p=weights,
            rng=graphc.shared(np.random.default_rng(7)),
            dtype=dtype,
            name="chosen",
        )
        for a, weights in cases
    ]
    assert {(x.type.dtype, x.name) for x in draws} == {(dtype, "chosen")}
    for (a, weights), x in zip(cases, graphc.function([], draws)(), strict=True):
        expected = np.random.default_rng(7).choice(a, 3, replace=replace, p=weights)
        np.testing.assert_array_equal(x, expected.astype(dtype), strict=True)
