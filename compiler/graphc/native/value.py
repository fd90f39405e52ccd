# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""The one value with operators: Python expressions that write the code of the program being compiled.

A formula is written once, as Python, and becomes operations when it is evaluated: `(a + b) * c` makes an
addition and a multiplication, in this order. `Val` has the operators; a class derived from it says in
`_apply` what an operation is where its values live:

| values | operations |
|---|---|
| `ir.Value` (`graphc/ir/value.py`) | of `arith` at the insertion point, constants folded for sizes |
| `lowering/complex_functions.py` | of a `ScalarBuilder`, with NumPy's rules for a dtype |
| `lowering/math/builder.py` | of `arith` on vectors, without fast-math flags |
| `tensor/random/expressions.py` | text of the dialect's elementwise operations |

`==` stays that of Python, so that values are keys of dictionaries; `equals` compares what they stand for.
"""

from __future__ import annotations

from typing import Self


class Val:
    """A number, tensor or flag of the program being compiled.

    Operators take values of the same class, or Python numbers, which become constants. The names of
    operations are those of `ScalarBuilder`.
    """

    __slots__ = ()

    def _apply(self, name: str, *operands: Self | float) -> Self:
        """The result of an operation, of which `self` is an operand."""
        raise NotImplementedError(f"{type(self).__name__} has no operation {name}")

    def __add__(self, other: Self | float) -> Self:
        return self._apply("add", self, other)

    def __radd__(self, other: float) -> Self:
        return self._apply("add", other, self)

    def __sub__(self, other: Self | float) -> Self:
        return self._apply("sub", self, other)

    def __rsub__(self, other: float) -> Self:
        return self._apply("sub", other, self)

    def __mul__(self, other: Self | float) -> Self:
        return self._apply("mul", self, other)

    def __rmul__(self, other: float) -> Self:
        return self._apply("mul", other, self)

    def __truediv__(self, other: Self | float) -> Self:
        return self._apply("truediv", self, other)

    def __rtruediv__(self, other: float) -> Self:
        return self._apply("truediv", other, self)

    def __floordiv__(self, other: Self | int) -> Self:
        """Of sizes, which are not negative."""
        return self._apply("floordiv", self, other)

    def __mod__(self, other: Self | int) -> Self:
        """Of sizes, which are not negative."""
        return self._apply("mod", self, other)

    def __neg__(self) -> Self:
        return self._apply("neg", self)

    def __abs__(self) -> Self:
        return self._apply("abs", self)

    def __lshift__(self, other: Self | int) -> Self:
        return self._apply("shl", self, other)

    def __rshift__(self, other: Self | int) -> Self:
        """Logical: vectors of AVX2 have no arithmetic shift of 64 bits."""
        return self._apply("shr", self, other)

    def __and__(self, other: Self | int) -> Self:
        return self._apply("and_", self, other)

    def __or__(self, other: Self | int) -> Self:
        return self._apply("or_", self, other)

    def __xor__(self, other: Self | int) -> Self:
        return self._apply("xor", self, other)

    def __invert__(self) -> Self:
        return self._apply("invert", self)

    def __lt__(self, other: Self | float) -> Self:
        return self._apply("lt", self, other)

    def __le__(self, other: Self | float) -> Self:
        return self._apply("le", self, other)

    def __gt__(self, other: Self | float) -> Self:
        return self._apply("gt", self, other)

    def __ge__(self, other: Self | float) -> Self:
        return self._apply("ge", self, other)

    def equals(self, other: Self | float) -> Self:
        """A flag: both are the same number."""
        return self._apply("eq", self, other)

    def differs(self, other: Self | float) -> Self:
        """A flag: they are not the same number."""
        return self._apply("ne", self, other)

    def below(self, other: Self | int) -> Self:
        """A flag: less, of integers without a sign."""
        return self._apply("ult", self, other)

    def above(self, other: Self | int) -> Self:
        """A flag: more, of integers without a sign."""
        return self._apply("ugt", self, other)


# What a class that cannot be derived from `Val` is given of it.
OPERATORS = {name: made for name, made in vars(Val).items() if callable(made) and name != "_apply"}
