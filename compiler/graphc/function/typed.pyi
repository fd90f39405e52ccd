# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
# What type checkers know of calls: they give values in the form of the outputs; other forms than these are
# Any. Results that stay on a device are taken for NumPy's arrays, as the mode is no type.
from collections.abc import Mapping
from typing import Any, Generic, overload

import numpy as np
from typing_extensions import TypeVar

from graphc.function.base import BaseFunction
from graphc.graph.tensor.variable import TensorVariable

Outputs = TypeVar("Outputs", covariant=True, default=object)

class Called(BaseFunction, Generic[Outputs]):
    @overload
    def __call__(self: Called[TensorVariable], /, *args: object, **kwargs: object) -> np.ndarray: ...
    @overload
    def __call__(
        self: Called[tuple[TensorVariable, ...]], /, *args: object, **kwargs: object
    ) -> tuple[np.ndarray, ...]: ...
    @overload
    def __call__(
        self: Called[list[TensorVariable]], /, *args: object, **kwargs: object
    ) -> list[np.ndarray]: ...
    @overload
    def __call__(
        self: Called[Mapping[str, TensorVariable]], /, *args: object, **kwargs: object
    ) -> dict[str, np.ndarray]: ...
    @overload
    def __call__(self, /, *args: object, **kwargs: object) -> Any: ...
