# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Kernels are found by name."""

from __future__ import annotations

import importlib

import pytest

from graphc.library import FAMILIES, KERNELS, find
from graphc_dialects.signatures import SIGNATURES


@pytest.mark.parametrize("family", FAMILIES)
def test_families_list_their_kernels(family):
    module = importlib.import_module(f"graphc.library.{family}")
    have = {name for name, kernel in KERNELS.items() if kernel.function.__module__ == module.__name__}
    assert have == set(FAMILIES[family].split())


def test_every_signature_has_a_kernel():
    for name in SIGNATURES:
        assert find(name).name == name


def test_unknown_kernel():
    with pytest.raises(KeyError, match="no kernel 'sotr'"):
        find("sotr")
