# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
# What type checkers know of the operators, properties and methods that `Tensor` gets when it loads.
from collections.abc import Callable

from graphc.immediate.tensor import Tensor

class Operators:
    T: Tensor
    mT: Tensor
    real: Tensor
    imag: Tensor
    nonzero: Callable[..., tuple[Tensor, ...]]

    def __getattr__(self, name: str) -> Callable[..., Tensor]: ...
    def __eq__(self, other: object) -> Tensor: ...
    def __ne__(self, other: object) -> Tensor: ...
    def __neg__(self) -> Tensor: ...
    def _binary(self, other: object) -> Tensor: ...

    __pos__ = __abs__ = __invert__ = __neg__
    __add__ = __sub__ = __mul__ = __truediv__ = __floordiv__ = __mod__ = __pow__ = __matmul__ = _binary
    __radd__ = __rsub__ = __rmul__ = __rtruediv__ = __rfloordiv__ = __rmod__ = __rpow__ = __rmatmul__ = (
        _binary
    )
    __and__ = __or__ = __xor__ = __lshift__ = __rshift__ = __lt__ = __le__ = __gt__ = __ge__ = _binary
    __rmatmul__ = __rand__ = __ror__ = __rxor__ = __rlshift__ = __rrshift__ = _binary
