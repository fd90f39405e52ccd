# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Operators, indexing and iteration of results, wherever these are."""

from __future__ import annotations

from collections.abc import Iterator
from types import EllipsisType, NotImplementedType
from typing import Any, TypeAlias

import numpy as np
from numpy.lib.mixins import NDArrayOperatorsMixin

_Part: TypeAlias = "int | slice | EllipsisType | np.ndarray | list[int] | None"


def _no_operator(self: object, other: object) -> NotImplementedType:
    """``y += 1`` makes ``y`` the name of a new array."""
    return NotImplemented


class HostOperators(NDArrayOperatorsMixin):
    """Operators and indexing of a class with ``__array__``; they copy the value to the host, and give arrays
    of NumPy.
    """

    __slots__ = ()
    __iadd__ = __isub__ = __imul__ = __itruediv__ = __ifloordiv__ = __imod__ = __ipow__ = _no_operator
    __imatmul__ = __iand__ = __ior__ = __ixor__ = __ilshift__ = __irshift__ = _no_operator

    def __array_ufunc__(self, ufunc: np.ufunc, method: str, *inputs: object, **options: Any) -> object:
        if any(isinstance(value, HostOperators) for value in options.get("out", ())):
            return NotImplemented
        values = [np.asarray(value) if isinstance(value, HostOperators) else value for value in inputs]
        return getattr(ufunc, method)(*values, **options)

    def __getitem__(self, key: _Part | tuple[_Part, ...]) -> np.ndarray:
        return np.asarray(self)[key]

    def __iter__(self) -> Iterator[np.ndarray]:
        return iter(np.asarray(self))
