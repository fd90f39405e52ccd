# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Values and gradients of the cases that JAX has, against JAX (see `jax_gradients`)."""

from __future__ import annotations

import pytest
from jax_gradients import NotInJax, differences, load_cases

jax = pytest.importorskip("jax")


@pytest.fixture(scope="module", autouse=True)
def _double_precision():
    before = jax.config.jax_enable_x64
    jax.config.update("jax_enable_x64", True)
    yield
    jax.config.update("jax_enable_x64", before)


@pytest.mark.parametrize("case", load_cases(), ids=lambda case: case.name)
def test_agrees_with_jax(case):
    try:
        found = list(differences(case))
    except NotInJax as reason:
        pytest.skip(str(reason))
    assert not found, "\n".join(found)
