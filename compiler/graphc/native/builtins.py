# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Builtins of kernels, as Python functions: a kernel that calls no library also runs as it stands.

The translator (`graphc.native.translate`) knows these by name.
"""

from __future__ import annotations

import ctypes
import math
import threading
from collections.abc import Callable
from fractions import Fraction
from typing import TYPE_CHECKING, Any, TypeVar

import numpy as np

from graphc.native import Type, kind_of, type_of_dtype

if TYPE_CHECKING:
    import numpy.typing as npt

_F = TypeVar("_F", bound=Callable[..., object])
_ATOMIC = threading.RLock()
_VARIABLES: dict[str, np.ndarray] = {}
# What machine code may still call.
_CODE: list[object] = []
# Bytes that are within reach of a pointer.
_FAR = 1 << 40


def apart(function: _F) -> _F:
    """Marks a routine that is not copied into its callers: a long one, of which one copy is enough."""
    return _marked(function, attributes="noinline")


def seldom(function: _F) -> _F:
    """Marks a routine that runs so seldom that making code of it is to take little time."""
    return _marked(function, attributes="noinline optnone")


def short(function: _F) -> _F:
    """Marks a routine whose code is to be short."""
    return _marked(function, attributes="noinline minsize optsize")


def inlined(function: _F) -> _F:
    """Marks a routine whose statements are written in place of each call; it may return a tuple."""
    return _marked(function, is_inlined=True)


def _marked(function: _F, **marks: object) -> _F:
    vars(function).update(marks)
    return function


def unrolled(count: int) -> range:
    """The numbers below `count`, for a loop that is written out: the variable is known when translating."""
    return range(count)


def local(count: int, type_: str) -> np.ndarray:
    """Memory for a few elements, for the time of the call; `count` is known when translating."""
    return np.zeros(count, _dtype(type_))


def view(pointer: np.ndarray | tuple[float, ...], type_: Any) -> np.ndarray:
    """The same memory as elements of another type; of a tuple of numbers, its memory."""
    return np.asarray(pointer).view(_dtype(type_))


def variable(name: str, type_: str) -> np.ndarray:
    """The memory of a global variable, which the text around a kernel defines. In Python, 64 elements."""
    return _VARIABLES.setdefault(name, np.zeros(64, _dtype(type_)))


def address(pointer: np.ndarray) -> int:
    """Address of elements."""
    return pointer.ctypes.data


def at(place: int, type_: str) -> np.ndarray:
    """The elements at an address."""
    return np.frombuffer(memoryview((ctypes.c_char * _FAR).from_address(int(place))), _dtype(type_))


def atomic_load(pointer: np.ndarray, i: int, order: str) -> float:
    """An element that other threads may write: order is "monotonic", "acquire" or "seq_cst"."""
    with _ATOMIC:
        return pointer[i]


def atomic_store(pointer: np.ndarray, i: int, x: float, order: str) -> None:
    """Writes an element that other threads may read: order is "monotonic", "release" or "seq_cst"."""
    with _ATOMIC:
        pointer[i] = x


def fetch_add(pointer: np.ndarray, i: int, x: float, order: str) -> float:
    """Adds to an element at once, whatever other threads do; the element before."""
    with _ATOMIC:
        old = pointer[i]
        pointer[i : i + 1] += np.asarray(x).astype(pointer.dtype)
        return old


def exchange(pointer: np.ndarray, i: int, x: float, order: str) -> float:
    """Writes an element; the one before, which no other thread gets."""
    with _ATOMIC:
        old = pointer[i]
        pointer[i] = x
        return old


def compare_exchange(pointer: np.ndarray, i: int, old: float, new: float, order: str) -> bool:
    """Writes an element if it is `old`; whether it was. The order holds if so; if not, there is none."""
    with _ATOMIC:
        if pointer[i] != old:
            return False
        pointer[i] = new
        return True


def function(routine: Callable[..., object], *types: str, returns: str | None = None) -> np.ndarray:
    """The address of the code of a routine for arguments of these types, such as "i64" or "f64*"."""
    kinds = [kind_of(name) for name in types]

    def run(*arguments: Any) -> object:
        given = [
            at(x or 0, k.name) if k.pointer else _dtype(k).type(x)
            for x, k in zip(arguments, kinds, strict=True)
        ]
        return routine(*given)

    code = ctypes.CFUNCTYPE(_c_type(returns), *map(_c_type, types))(run)
    _CODE.append(code)
    return at(ctypes.cast(code, ctypes.c_void_p).value or 0, "u8")


def invoke(code: np.ndarray, *arguments: Any, returns: str | None = None) -> Any:
    """Calls what a pointer points at. The types of the arguments are what they are."""
    passed = [_passed(x) for x in arguments]
    called = ctypes.CFUNCTYPE(_c_type(returns), *(type(x) for x in passed))(code.ctypes.data)(*passed)
    if returns is None:
        return None
    kind = kind_of(returns)
    return at(called or 0, kind.name) if kind.pointer else _dtype(kind).type(called)


def lanes_of(type_: str) -> int:
    """Number of lanes of a vector register of the target; in Python, of one of 16 bytes."""
    return 16 // _dtype(type_).itemsize


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
    """True if a number is not a number."""
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


def fmuladd(x: np.ndarray, y: np.ndarray, z: np.ndarray) -> np.ndarray:
    """x * y + z, rounded once where the target does that in one operation."""
    return x * y + z


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

        _, letters, name = symbol.split("_", 2)
        count = letters.count("d")
        found = getattr(scipy.special, name)(*arguments[:count])
        if count == len(letters):
            return found
        for place, value in zip(arguments[count:], found, strict=True):
            np.asarray(place)[0] = value
        return None
    found = getattr(ctypes.CDLL(None), symbol, None)
    if found is None:
        raise NotImplementedError(f"{symbol} is only called by compiled kernels")
    return invoke(at(ctypes.cast(found, ctypes.c_void_p).value or 0, "u8"), *arguments, returns=returns)


def ref(x: Any, type_: str = "i32") -> np.ndarray:
    """The address of a number, as Fortran takes its arguments. A string of one character is a byte."""
    return np.array([ord(x) if isinstance(x, str) else x], _dtype("u8" if isinstance(x, str) else type_))


def _c_type(name: str | None) -> Any:
    if name is None:
        return None
    kind = kind_of(name)
    return ctypes.c_void_p if kind.pointer else np.ctypeslib.as_ctypes_type(_dtype(kind))


def _passed(x: Any) -> Any:
    """As C takes it."""
    if isinstance(x, np.ndarray):
        return ctypes.c_void_p(x.ctypes.data)
    x = np.asarray(x)
    return np.ctypeslib.as_ctypes_type(x.dtype)(x.item())


def _dtype(type_: Any) -> np.dtype:
    kind = kind_of(type_)
    return np.dtype(bool) if kind.is_bool else np.dtype(f"{kind.name[0]}{kind.bits // 8}")
