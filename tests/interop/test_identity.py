# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""What keys of PyTensor's graphs are made of."""

import collections
import enum
import importlib.metadata
import types
from collections.abc import Mapping

import numpy as np
import pytensor.tensor as pt
import pytest
from pytensor.graph.fg import FunctionGraph
from pytensor.graph.op import Op
from pytensor.graph.utils import MetaObject
from pytensor.tensor.blockwise import Blockwise
from pytensor.tensor.slinalg import Cholesky

from graphc.interop.pytensor import identity


class Colour(enum.IntEnum):
    RED = 1


class Given(Mapping):
    def __getitem__(self, key):
        raise KeyError(key)

    def __iter__(self):
        return iter(())

    def __len__(self):
        return 0


@pytest.mark.parametrize(
    ("value", "kind"),
    [
        (np.zeros(2), np.ndarray),
        (np.float32(1), np.generic),
        (np.dtype("f8"), np.dtype),
        ((1, 2), tuple),
        ([1], tuple),
        ({1: 2}, Mapping),
        (collections.OrderedDict(), Mapping),
        (types.MappingProxyType({}), Mapping),
        (Given(), Mapping),
        (frozenset(), set),
        (slice(1), slice),
        (Colour.RED, enum.Enum),
        (np.add, type),
        (len, type),
        (Cholesky, type),
        (Cholesky(), Op),
        (Blockwise(Cholesky()), Op),
        (pt.vector().type, MetaObject),
        (FunctionGraph([], []), FunctionGraph),
        (object(), None),
    ],
)
def test_kinds_of_values(value: object, kind: type | None) -> None:
    assert identity._kind(type(value)) is kind


@pytest.mark.parametrize("package", ["pytensor", "numpy", "scipy"])
def test_versions_are_those_of_the_metadata(package: str) -> None:
    assert identity._version(package) == f"Version: {importlib.metadata.version(package)}"


def test_packages_that_are_not_installed_have_no_version() -> None:
    assert identity._version("a_package_of_nobody") == "unknown"
