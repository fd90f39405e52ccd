# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""The names of the Python array API standard, version 2024.12, for symbolic variables.

``xp = x.__array_namespace__()`` gives this module, so that code written for the standard builds graphs. What
differs follows from graphs: ``x.shape`` is a symbolic vector (``x.type.shape`` is the static one), truth
values and conversions to Python numbers need a run (``eval``), and arrays do not change.

Source: https://data-apis.org/array-api/2024.12.
"""

from __future__ import annotations

import importlib
from typing import Any

from graphc.array_api import creation, elementwise, manipulation, searching, statistics, types
from graphc.array_api.creation import *  # noqa: F403
from graphc.array_api.elementwise import *  # noqa: F403
from graphc.array_api.linalg import matmul, matrix_transpose, tensordot, vecdot
from graphc.array_api.manipulation import *  # noqa: F403
from graphc.array_api.searching import *  # noqa: F403
from graphc.array_api.statistics import *  # noqa: F403
from graphc.array_api.types import *  # noqa: F403
from graphc.array_api.types import VERSIONS, check_version
from graphc.array_api.types import namespace_info as __array_namespace_info__
from graphc.tensor.compat import e, inf, nan, newaxis, pi

__array_api_version__ = VERSIONS[-1]

__all__ = [
    "__array_api_version__",
    "__array_namespace_info__",
    "e",
    "inf",
    "matmul",
    "matrix_transpose",
    "nan",
    "newaxis",
    "pi",
    "tensordot",
    "vecdot",
    *creation.__all__,
    *elementwise.__all__,
    *manipulation.__all__,
    *searching.__all__,
    *statistics.__all__,
    *types.__all__,
]


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
    return sorted([*__all__, "fft", "linalg"])
