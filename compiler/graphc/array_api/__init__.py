# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""The names of the Python array API standard, version 2024.12, for symbolic variables.

``xp = x.__array_namespace__()`` gives this module, so that code written for the standard builds graphs. What
differs follows from graphs: ``x.shape`` is a symbolic vector (``x.type.shape`` is the static one), truth
values and conversions to Python numbers need a run (``eval``), and arrays do not change.

Source: https://data-apis.org/array-api/2024.12.
"""

from __future__ import annotations

import importlib
from typing import TYPE_CHECKING, Any

from graphc.array_api import creation, elementwise, manipulation, searching, statistics, types
from graphc.array_api.creation import *  # noqa: F403
from graphc.array_api.elementwise import *  # noqa: F403
from graphc.array_api.linalg import matmul as matmul
from graphc.array_api.linalg import matrix_transpose as matrix_transpose
from graphc.array_api.linalg import tensordot as tensordot
from graphc.array_api.linalg import vecdot as vecdot
from graphc.array_api.manipulation import *  # noqa: F403
from graphc.array_api.searching import *  # noqa: F403
from graphc.array_api.statistics import *  # noqa: F403
from graphc.array_api.types import *  # noqa: F403
from graphc.array_api.types import VERSIONS, check_version
from graphc.tensor.compat import e as e
from graphc.tensor.compat import inf as inf
from graphc.tensor.compat import nan as nan
from graphc.tensor.compat import newaxis as newaxis
from graphc.tensor.compat import pi as pi

__array_api_version__ = VERSIONS[-1]
__array_namespace_info__ = types.namespace_info

if not TYPE_CHECKING:  # type checkers read no sums of lists: without this one they take all names
    __all__ = ["__array_api_version__", "__array_namespace_info__", "e", "inf", "matmul", "matrix_transpose"]
    __all__ += ["nan", "newaxis", "pi", "tensordot", "vecdot", *creation.__all__, *elementwise.__all__]
    __all__ += [*manipulation.__all__, *searching.__all__, *statistics.__all__, *types.__all__]


def namespace(api_version: str | None = None) -> Any:
    """This module, for ``__array_namespace__``.

    Raises:
        ValueError: the version is none that it follows.
    """
    check_version(api_version)
    return importlib.import_module(__name__)


def __getattr__(name: str) -> Any:
    if name in ("fft", "linalg"):
        return importlib.import_module(f"{__name__}.{name}")
    raise AttributeError(f"the array API standard, and so graphc.array_api, has no {name!r}")


def __dir__() -> list[str]:
    return sorted([*globals()["__all__"], "fft", "linalg"])
