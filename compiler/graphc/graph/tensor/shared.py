# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Shared tensors."""

from __future__ import annotations

import numpy as np

from graphc.graph.shared import SharedVariable
from graphc.graph.tensor.variable import TensorVariable


class TensorSharedVariable(TensorVariable, SharedVariable):
    """A shared tensor; its value is always a C-contiguous, aligned array, which compiled code can read."""

    def _canonical(self, value: object, borrow: bool) -> np.ndarray:
        array = self.type.filter(value, strict=self._strict, allow_downcast=self._allow_downcast)
        if borrow and type(array) is np.ndarray and array.flags.carray:
            return array
        return np.array(array, order="C", copy=True, subok=False)

    def get_value(self, borrow: bool = False, return_internal_type: bool = False) -> np.ndarray:
        array = self.container[0]
        return array if borrow else array.copy()

    def zero(self, borrow: bool = False) -> None:
        """Set all elements to 0; with ``borrow`` in place, also in a caller's array that was borrowed."""
        if borrow and self.container[0].flags.writeable:
            self.container[0].fill(0)
        else:
            self.container[0] = np.zeros_like(self.container[0])
