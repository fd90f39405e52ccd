# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""What kernels may call, as Python functions: a kernel that calls no library also runs as it stands.

The translator (`graphc.native.translate`) knows these by name.
"""

from __future__ import annotations

import math
from fractions import Fraction
from typing import TYPE_CHECKING, Any

import numpy as np

from graphc.native.types import Type, kind_of, type_of_dtype

if TYPE_CHECKING:
    import numpy.typing as npt


def apart(function: Any) -> Any:
    """Marks a routine that is not copied into its callers: a long one, of which one copy is enough."""
    function.is_apart = True
    return function


def unrolled(count: int) -> range:
    """The numbers below `count`, for a loop that is written out: the variable is known when translating."""
    return range(count)


def local(count: int, type_: str) -> np.ndarray:
    """Memory for a few elements, for the time of the call; `count` is known when translating."""
    return np.zeros(count, _dtype(type_))


def view(pointer: np.ndarray, type_: Any) -> np.ndarray:
    """The same memory as elements of another type."""
    return pointer.view(_dtype(type_))


def word(pointer: np.ndarray, i: int) -> int:
    """The eight bytes from byte i on as a number, wherever they are."""
    return pointer[i : i + 8].view(np.uint64)[0]


def cast(x: complex, type_: str) -> complex:
    """A number in another type; floats are cut off towards 0 on the way to integers."""
    return _dtype(type_).type(x)


def type_of(x: np.ndarray) -> Type:
    """The type of a number, or of the elements that a pointer points to; known when translating."""
    return type_of_dtype(np.asarray(x).dtype)


def choose(condition: npt.ArrayLike, a: np.ndarray, b: npt.ArrayLike) -> Any:
    """a or b, without a branch: for conditions that nothing predicts, and lane by lane."""
    if isinstance(condition, np.ndarray):
        return np.where(condition, a, b)
    return a if condition else b


def row(pointer: np.ndarray, i: int, lanes: int, count: int | None = None) -> np.ndarray:
    """The `lanes` elements from i on as a vector; those from `count` on are not read, but 0."""
    x = np.zeros(lanes, pointer.dtype)
    have = lanes if count is None else max(0, min(count, lanes))
    x[:have] = pointer[i : i + have]
    return x


def put(pointer: np.ndarray, i: int, x: np.ndarray, count: int | None = None) -> None:
    """Writes the lanes of a vector, or the first `count` of them, to the elements from i on."""
    have = len(x) if count is None else max(0, min(count, len(x)))
    pointer[i : i + have] = x[:have]


def spread(x: float, lanes: int) -> np.ndarray:
    """A number in all lanes of a vector."""
    return np.full(lanes, x)


def positions(lanes: int) -> np.ndarray:
    """The vector 0, 1, ..., lanes - 1."""
    return np.arange(lanes)


def evens(a: np.ndarray, b: np.ndarray) -> np.ndarray:
    """The numbers at even places of two vectors, one after the other. With one lane, the first."""
    return np.concatenate([a, b])[::2]


def odds(a: np.ndarray, b: np.ndarray) -> np.ndarray:
    """The numbers at odd places of two vectors, one after the other. With one lane, the second."""
    return np.concatenate([a, b])[1::2]


def low(a: np.ndarray, b: np.ndarray) -> np.ndarray:
    """The first halves of two vectors, by turns. With one lane, the first."""
    return np.stack([a, b], -1).ravel()[: len(a)]


def high(a: np.ndarray, b: np.ndarray) -> np.ndarray:
    """The second halves of two vectors, by turns. With one lane, the second."""
    return np.stack([a, b], -1).ravel()[len(a) :]


def backwards(a: np.ndarray) -> np.ndarray:
    """The lanes of a vector from the last to the first."""
    return a[::-1]


def total(x: np.ndarray) -> float:
    """The sum of the lanes of a vector, rounded in any order."""
    return x.sum()


def isnan(x: np.generic) -> bool:
    """Whether a number is not a number."""
    return bool(x != x)


def real(z: Any) -> Any:
    """Real part; of a real number, itself."""
    return np.real(z)


def imag(z: Any) -> Any:
    """Imaginary part; of a real number, 0."""
    return np.imag(z)


def conj(z: complex) -> complex:
    """Complex conjugate."""
    return np.conj(z)


def fma(x: float, y: float, z: float) -> float:
    """x * y + z of finite numbers, rounded once."""
    return float(Fraction(float(x)) * Fraction(float(y)) + Fraction(float(z)))


sqrt, floor, ceil, exp, log = math.sqrt, math.floor, math.ceil, math.exp, math.log
copysign = math.copysign


_C_LIBRARY: dict[str, Any] = {
    "acos": np.arccos,
    "asin": np.arcsin,
    "atan2": np.arctan2,
    "log1p": np.log1p,
    "lgamma": math.lgamma,
    "pow": np.power,
    "sin": np.sin,
    "cos": np.cos,
}


def call(symbol: str, *arguments: np.generic, returns: str | None = None) -> Any:
    """Calls a C function by its symbol, as `graphc_runtime.symbols` resolves it.

    A ``?`` in the symbol stands for the BLAS letter of the kernel's first operand. The functions of the C
    library that Python has too run in Python, and so do SciPy's special functions.
    """
    if symbol in _C_LIBRARY:
        return _C_LIBRARY[symbol](*arguments)
    if symbol.startswith("special_"):
        import scipy.special

        return getattr(scipy.special, symbol.split("_", 2)[2])(*arguments)
    raise NotImplementedError(f"{symbol} is only called by compiled kernels")


def ref(x: Any, type_: str = "i32") -> Any:
    """The address of a number, as Fortran takes its arguments. A string of one character is a byte."""
    raise NotImplementedError("only compiled kernels have addresses")


def _dtype(type_: Any) -> np.dtype:
    kind = kind_of(type_)
    return np.dtype(bool) if kind.is_bool else np.dtype(f"{kind.name[0]}{kind.bits // 8}")
