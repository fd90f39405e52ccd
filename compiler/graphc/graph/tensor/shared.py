# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Shared tensors."""

from __future__ import annotations

import numpy as np

from graphc.graph.shared import SharedVariable
from graphc.graph.tensor.variable import TensorVariable
from graphc_runtime.marshal import is_on_device


class TensorSharedVariable(TensorVariable, SharedVariable):
    """A shared tensor; its value is always a C-contiguous, aligned array, which compiled code can read."""

    def _canonical(self, value: object, borrow: bool) -> np.ndarray:
        array = self.type.filter(value, strict=self._strict, allow_downcast=self._allow_downcast)
        if borrow and type(array) is np.ndarray and array.flags.carray:
            return array
        return np.array(array, order="C", copy=True, subok=False)

    def _replacement(self, value: object, borrow: bool) -> np.ndarray:
        """An array of its own: functions that run may still read the old one."""
        return self._canonical(value, borrow)

    def get_value(self, borrow: bool = False, return_internal_type: bool = False) -> np.ndarray:
        """The value: a copy, or with ``borrow`` the array itself.

        Functions for a device keep it there: then it is a copy on the host, and an array of the device
        (``graphc_runtime.cuda.array.DeviceArray``) with ``return_internal_type``.
        """
        array = self.container[0]
        if is_on_device(array):
            return array if return_internal_type else np.asarray(array)
        return array if borrow else array.copy()

    def zero(self, borrow: bool = False) -> None:
        """Set all elements to 0; with ``borrow`` in place, also in a caller's array that was borrowed."""
        array = self.container[0]
        if borrow and isinstance(array, np.ndarray) and array.flags.writeable:
            array.fill(0)
        else:
            self.container[0] = np.zeros(array.shape, array.dtype)
