# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Real scalars with Python's operators, for scalar lowerings that are long formulas."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

if TYPE_CHECKING:
    from graphc.lowering.scalar import Scalar, ScalarBuilder


class Real:
    """A floating-point `Scalar` and the `ScalarBuilder` that computes with it.

    Operators round each operation by itself; Python numbers are constants of the same dtype. Comparisons give
    flags, which `&`, `|` and `~` combine and `pick` consumes.

    Args:
        b: the builder.
        scalar: of a floating dtype, or a flag.
    """

    __slots__ = ("b", "scalar")

    def __init__(self, b: ScalarBuilder, scalar: Scalar) -> None:
        self.b = b
        self.scalar = scalar

    def like(self, value: Real | float) -> Real:
        """A constant of the same dtype; a `Real` as it is."""
        return value if isinstance(value, Real) else Real(self.b, self.b.const(value, self.scalar.dtype))

    def _with(self, method: str, *others: Real | float) -> Real:
        scalars = [self.like(x).scalar for x in others]
        return Real(self.b, getattr(self.b, method)(self.scalar, *scalars))

    def __add__(self, other: Real | float) -> Real:
        return self._with("add", other)

    def __radd__(self, other: Any) -> Real:
        return self.like(other) + self

    def __sub__(self, other: Real | float) -> Real:
        return self._with("sub", other)

    def __rsub__(self, other: Real | float) -> Real:
        return self.like(other) - self

    def __mul__(self, other: Real | float) -> Real:
        return self._with("mul", other)

    def __rmul__(self, other: Real | float) -> Real:
        return self.like(other) * self

    def __truediv__(self, other: Real | float) -> Real:
        return self._with("truediv", other)

    def __rtruediv__(self, other: Any) -> Real:
        return self.like(other) / self

    def __neg__(self) -> Real:
        return self._with("neg")

    def __abs__(self) -> Real:
        return self._with("abs")

    def __lt__(self, other: Real | float) -> Real:
        return self._with("lt", other)

    def __le__(self, other: Any) -> Real:
        return self._with("le", other)

    def __gt__(self, other: Real | float) -> Real:
        return self._with("gt", other)

    def __ge__(self, other: Any) -> Real:
        return self._with("ge", other)

    def same(self, other: Real | float) -> Real:
        """Equality, as a flag; `==` stays that of Python objects."""
        return self._with("eq", other)

    def __and__(self, other: Real | float) -> Real:
        return self._with("logical_and", other)

    def __or__(self, other: Real | float) -> Real:
        return self._with("logical_or", other)

    def __invert__(self) -> Real:
        return self._with("logical_not")

    def isnan(self) -> Real:
        return self._with("isnan")

    def isinf(self) -> Real:
        return self._with("isinf")

    def fma(self, y: Real | float, z: Real | float) -> Real:
        """self * y + z, rounded once."""
        return self._with("fma", y, z)

    def copysign(self, sign: Real | float) -> Real:
        return self._with("copysign", sign)

    def at_least(self, other: Real | float) -> Real:
        """The larger one; NaN wins."""
        return self._with("maximum", other)

    def at_most(self, other: Real | float) -> Real:
        """The smaller one; NaN wins."""
        return self._with("minimum", other)

    def floor(self) -> Real:
        return self._with("floor")

    def rint(self) -> Real:
        return self._with("rint")

    def f(self, name: str, *others: Real | float) -> Real:
        """A function of the C library."""
        scalars = [self.like(x).scalar for x in others]
        return Real(self.b, self.b.math(name, self.scalar, *scalars))

    def pick(self, yes: Any, no: Any) -> Real:
        """Of a flag: the value where it holds, else the other one. At least one of them is a `Real`."""
        of = yes if isinstance(yes, Real) else no
        return Real(self.b, self.b.select(self.scalar, of.like(yes).scalar, of.like(no).scalar))

    @property
    def info(self) -> Any:
        """NumPy's `finfo` of the dtype."""
        return np.finfo(self.scalar.dtype)


Pair = tuple[Real, Real]


def two_sum(x: Real, y: Real | float) -> Pair:
    """x + y and its rounding error (D. Knuth, The Art of Computer Programming, volume 2, 4.2.2)."""
    total = x + y
    rest = total - x
    return total, (x - (total - rest)) + (y - rest)


def two_product(x: Real, y: Real | float) -> Pair:
    """x * y and its rounding error."""
    high = x * y
    return high, x.fma(y, -high)
