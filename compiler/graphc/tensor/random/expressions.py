# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Arithmetic on the parameters of draws that is written once, for arrays and for the emitter.

The rules of `graphc.tensor.random.distributions` are Python functions of their parameters. `perform` calls
them with arrays, `emit` with `Traced` operands, which write the operations.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from graphc.native.value import Val
from graphc.ops.subtensor import emit_slice

if TYPE_CHECKING:
    from graphc.emit.emitter import Emitter


# Names of the dialect's operations, where `Val` has others; those of comparisons.
_NAMES = {"truediv": "true_div", "and_": "and"}
_FLAGS = frozenset(("lt", "le", "gt", "ge", "eq"))


class Traced(Val):
    """A tensor in the text that an emitter writes. Operands have equal rank; static sizes of 1 broadcast."""

    def __init__(self, e: Emitter, name: str, dtype: str, shape: Sequence[int | None]) -> None:
        self.e, self.name, self.dtype, self.shape = e, name, dtype, tuple(shape)

    @property
    def type(self) -> str:
        """Text of its MLIR type."""
        return str(self.e.tensor_type(self.dtype, self.shape))

    def _literal(self, value: float) -> Traced:
        shape = (1,) * len(self.shape)
        type_ = self.e.tensor_type(self.dtype, shape)
        number = np.asarray(value, self.dtype)
        text = str(int(number)) if number.dtype.kind == "i" else f"0x{number.view(f'u{number.itemsize}'):X}"
        if number.dtype.kind == "f" and np.isfinite(number):
            text = f"{float(number):e}" if float(f"{float(number):e}") == number else text
        return Traced(self.e, self.e.raw(f"arith.constant dense<{text}> : {type_}"), self.dtype, shape)

    def _apply(self, name: str, *operands: Traced | float) -> Traced:
        a, b = (x if isinstance(x, Traced) else self._literal(x) for x in operands)
        shape = [_joint(m, n) for m, n in zip(a.shape, b.shape, strict=True)]
        result = Traced(self.e, "", "bool" if name in _FLAGS else self.dtype, shape)
        operation = f"graphc.{_NAMES.get(name, name)}"
        result.name = self.e.op(operation, [a.name, b.name], [a.type, b.type], result.type)
        return result

    def sqrt(self) -> Traced:
        """Square roots."""
        return Traced(
            self.e, self.e.op("graphc.sqrt", [self.name], [self.type], self.type), self.dtype, self.shape
        )

    def astype(self, dtype: str) -> Traced:
        """A cast."""
        if dtype == self.dtype:
            return self
        result = Traced(self.e, "", dtype, self.shape)
        result.name = self.e.op("graphc.cast", [self.name], [self.type], result.type)
        return result

    def total(self) -> Traced:
        """The sum along the last dimension."""
        result = Traced(self.e, "", self.dtype, self.shape[:-1])
        axes = f"axes = array<i64: {len(self.shape) - 1}>"
        result.name = self.e.op("graphc.reduce_sum", [self.name], [self.type], result.type, axes)
        return result

    def head_total(self) -> Traced:
        """The sum along the last dimension without its last element."""
        e, rank = self.e, len(self.shape)
        sizes = [e.dim(self.name, self.type, axis) for axis in range(rank)]
        sizes[-1] = e.subtract(sizes[-1], e.const_index(1))
        bounds = [*[e.const_index(0)] * rank, *sizes, *[e.const_index(1)] * rank]
        known = None if self.shape[-1] is None else self.shape[-1] - 1
        result = Traced(e, "", self.dtype, (*self.shape[:-1], known))
        result.name = emit_slice(e, self.name, self.type, bounds, result.type)
        return result.total()

    def truth(self, every: bool) -> str:
        """True if every element (or any) is true, as an ``i1``."""
        name = self.name
        if self.shape:
            kind, axes = "and" if every else "or", ", ".join(map(str, range(len(self.shape))))
            name = self.e.op(
                f"graphc.reduce_{kind}", [name], [self.type], "tensor<i1>", f"axes = array<i64: {axes}>"
            )
        return str(self.e.raw(f"tensor.extract {name}[] : tensor<i1>"))


def _joint(m: int | None, n: int | None) -> int | None:
    if m == 1:
        return n
    return m if n == 1 or n is None else n


class Plain(np.ndarray):
    """An array with the methods that rules use beside operators."""

    @classmethod
    def of(cls, x: np.ndarray) -> Any:
        """A view of an array."""
        return np.asarray(x).view(cls)

    def equals(self, other: Traced | float) -> np.ndarray:
        """Elementwise ``==``."""
        return self == other

    def sqrt(self) -> np.ndarray:
        """Square roots."""
        return np.sqrt(self)

    def total(self) -> Any:
        """The sum along the last dimension."""
        return self.sum(axis=-1)

    def head_total(self) -> Any:
        """The sum along the last dimension without its last element."""
        return self[..., :-1].sum(axis=-1)


class Constraint:
    """A condition on parameters, the same for each draw.

    Args:
        message: what is wrong if it does not hold, in NumPy's words.
        good: (*parameters) -> truth of each element; all must be true.
        bad: instead of ``good``: none may be true. NaN makes no comparison true.
    """

    def __init__(
        self, message: str, *, good: Callable[..., Any] | None = None, bad: Callable[..., Any] | None = None
    ) -> None:
        assert (good is None) != (bad is None), "one of two"
        self.message, self._good, self._bad = message, good, bad

    def holds(self, parameters: Sequence[np.ndarray]) -> bool:
        """True if arrays fulfil it."""
        xs = [Plain.of(x) for x in parameters]
        if self._good is not None:
            return bool(np.all(self._good(*xs)))
        assert self._bad is not None
        return not np.any(self._bad(*xs))

    def emit(self, parameters: Sequence[Traced], e: Emitter, what: str) -> None:
        """Writes the check."""
        if self._good:
            condition = self._good(*parameters).truth(True)
        else:
            assert self._bad is not None
            found = self._bad(*parameters).truth(False)
            true = e.truth(True)
            condition = e.raw(f"arith.xori {found}, {true} : i1")
        zero = e.const_index(0)
        e.check(condition, zero, zero, f"{what}: {self.message}")
