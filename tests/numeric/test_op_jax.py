# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Values and gradients of the cases that JAX has, against JAX (see `jax_gradients`)."""

from __future__ import annotations

import pytest
from jax_gradients import NotInJax, differences, load_cases

jax = pytest.importorskip("jax")
pytestmark = pytest.mark.usefixtures("jax_in_double_precision")


@pytest.mark.parametrize("case", load_cases(), ids=lambda case: case.name)
def test_agrees_with_jax(case):
    try:
        found = list(differences(case))
    except NotInJax as reason:
        pytest.skip(str(reason))
    assert not found, "\n".join(found)
