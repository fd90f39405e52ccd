# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""The table of cases: every public function of ``graphc.tensor``, and what it is compared with.

A case is written once for all libraries: its ``call`` takes a namespace, which is `graphc.tensor`, NumPy (or
SciPy) or JAX, and the arguments. Where NumPy has no such function, the case has a ``reference`` of its own.
The modules ``op_cases_*`` fill `CASES`; `op_runner` runs them.
"""

from __future__ import annotations

import importlib
import zlib
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np

FLOATS = ("float32", "float64")
REALS = ("int32", "float32", "float64")
COMPLEX = (*FLOATS, "complex128")
NUMBERS = ("bool", "int8", "int64", "uint8", "float16", "float32", "float64", "complex64", "complex128")
ORDERED = tuple(dtype for dtype in NUMBERS if not dtype.startswith("complex"))
# Relative to the largest element of the result.
TOLERANCES = {"float16": 1e-2, "float32": 2e-5, "float64": 1e-11, "complex64": 2e-5, "complex128": 1e-11}

# Where a family of functions is found: in graphc, in NumPy or SciPy, in JAX.
SPACES = {
    "": ("graphc.tensor", "numpy", "jax.numpy"),
    "linalg": ("graphc.tensor.linalg", "numpy.linalg", "jax.numpy.linalg"),
    "slinalg": ("graphc.tensor.linalg", "scipy.linalg", "jax.scipy.linalg"),
    "special": ("graphc.tensor.special", "scipy.special", "jax.scipy.special"),
    "nn": ("graphc.tensor.nn", None, "jax.nn"),
    "fft": ("graphc.tensor.fft", "numpy.fft", "jax.numpy.fft"),
    "signal": ("graphc.tensor.signal", "scipy.signal", "jax.scipy.signal"),
}


def space(name: str, library: int) -> Any:
    """The module of a space: 0 graphc's, 1 NumPy's, 2 JAX's; None where there is none."""
    module = SPACES[name][library]
    return None if module is None else importlib.import_module(module)


# Arguments ----------------------------------------------------------------------------------------

Make = Callable[[np.random.Generator, tuple[int, ...], str], np.ndarray]


def uniform(rng: np.random.Generator, shape: tuple[int, ...], dtype: str) -> np.ndarray:
    """Numbers between -2 and 2, small integers, or booleans."""
    return numbers(rng, shape, dtype, -2.0, 2.0)


def numbers(
    rng: np.random.Generator, shape: tuple[int, ...], dtype: str, low: float, high: float
) -> np.ndarray:
    """Random numbers of a dtype in an interval; the imaginary part is below 1."""
    kind = np.dtype(dtype).kind
    if kind == "b":
        return rng.integers(0, 2, shape).astype(bool)
    if kind in "iu":
        least = max(int(np.ceil(low)), 0) if kind == "u" else int(np.ceil(low))
        return rng.integers(least, max(int(high), least) + 1, shape).astype(dtype)
    values = rng.uniform(low, high, shape)
    return (values + 1j * rng.uniform(-0.8, 0.8, shape) if kind == "c" else values).astype(dtype)


@dataclass(frozen=True)
class Argument:
    """How an argument is made.

    Attributes:
        dims: sizes: numbers, which are static, and expressions in ``n``, which are not.
        dtype: its dtype if that is not the case's.
        make: makes the array.
    """

    dims: tuple[int | str, ...]
    dtype: str | None = None
    make: Make = uniform

    def variable(self, dtype: str) -> Any:
        """An input for it."""
        import graphc.tensor as pt

        shape = tuple(dim if isinstance(dim, int) else None for dim in self.dims)
        return pt.tensor(dtype=self.dtype or dtype, shape=shape)

    def array(self, dtype: str, n: int, seed: int = 0) -> np.ndarray:
        """Its value for size n."""
        shape = tuple(
            dim if isinstance(dim, int) else int(eval(dim, {}, {"n": n}))  # our own short expressions
            for dim in self.dims
        )
        name = f"{self.dims}{self.dtype}{self.make.__name__}{dtype}{n}"
        rng = np.random.default_rng([zlib.crc32(name.encode()), seed])
        return np.asarray(self.make(rng, shape, self.dtype or dtype))


def arg(*dims: int | str, dtype: str | None = None, make: Make = uniform) -> Argument:
    """An argument of the given sizes."""
    return Argument(dims, dtype, make)


_BETWEEN: dict[tuple[float, float], Make] = {}


def between(low: float, high: float) -> Make:
    """Makes numbers in an interval (one function for each interval, as arguments are compared)."""

    def make(rng: np.random.Generator, shape: tuple[int, ...], dtype: str) -> np.ndarray:
        return numbers(rng, shape, dtype, low, high)

    make.__name__ = f"between_{low}_{high}"
    return _BETWEEN.setdefault((low, high), make)


def distinct(rng: np.random.Generator, shape: tuple[int, ...], dtype: str) -> np.ndarray:
    """Numbers of which no two are close, so that orders and extremes have derivatives."""
    size = int(np.prod(shape))
    kind = np.dtype(dtype).kind
    if kind in "biu":
        return uniform(rng, shape, dtype)
    return ((rng.permutation(size) - size / 2.0 + 0.25) / 3).reshape(shape).astype(dtype)


def regular(rng: np.random.Generator, shape: tuple[int, ...], dtype: str) -> np.ndarray:
    """Square matrices far from singular ones."""
    return (uniform(rng, shape, dtype) + 3 * shape[-1] * np.eye(shape[-1])).astype(dtype)


def positive_definite(rng: np.random.Generator, shape: tuple[int, ...], dtype: str) -> np.ndarray:
    """Hermitian matrices with eigenvalues well apart from 0 and from each other."""
    n = shape[-1]
    values = uniform(rng, shape, dtype)
    half = values + np.conj(np.swapaxes(values, -1, -2))
    return (half / 4 + np.diag(np.arange(n) * 3.0 + 4)).astype(dtype)


# Cases --------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Case:
    """One way to call one function.

    Attributes:
        name: public name, with the submodule, and after a colon what is special about this case.
        arguments: what it is called with.
        call: called with a namespace and the arguments.
        reference: the same for arrays; by default ``call`` with NumPy's namespace.
        where: the namespace (a key of `SPACES`).
        dtypes: dtypes of the arguments that have no dtype of their own.
        sizes: values of n.
        gradient: whether it is differentiable in the arguments without a dtype; or in which positions.
        tolerance: factor on `TOLERANCES`.
        python: why it does not compile, if so.
        jax: whether JAX's function of that name does the same; or what does.
        same_dtype: whether the dtype is the reference's too.
    """

    name: str
    arguments: tuple[Argument, ...]
    call: Callable[..., Any]
    reference: Callable[..., Any] | None = None
    where: str = ""
    dtypes: tuple[str, ...] = FLOATS
    sizes: tuple[int, ...] = (4, 1, 0)
    gradient: bool | tuple[int, ...] = True
    tolerance: float = 1.0
    python: str = ""
    jax: bool | Callable[..., Any] = True
    same_dtype: bool = True
    family: str = ""

    @property
    def covers(self) -> str:
        """The public name."""
        return self.name.partition(":")[0]

    def symbolic(self, variables: list[Any]) -> list[Any]:
        """The outputs for symbolic arguments."""
        return _flat(self.call(space(self.where, 0), *variables))

    def expected(self, arrays: list[np.ndarray]) -> list[np.ndarray]:
        """The outputs for arrays."""
        with np.errstate(all="ignore"):
            if self.reference is not None:
                return [np.asarray(x) for x in _flat(self.reference(*arrays))]
            return [np.asarray(x) for x in _flat(self.call(space(self.where, 1), *arrays))]


def _flat(results: Any) -> list[Any]:
    return list(results) if isinstance(results, tuple | list) else [results]


CASES: list[Case] = []


class Family:
    """Adds cases: ``case = Family("arrays"); case("sort", [X], lambda m, x: m.sort(x))``."""

    def __init__(self, family: str, where: str = "", **defaults: Any) -> None:
        self.family, self.where, self.defaults = family, where, defaults

    def __call__(
        self,
        name: str,
        arguments: list[Argument],
        call: Callable[..., Any] | None = None,
        reference: Callable[..., Any] | None = None,
        **options: Any,
    ) -> None:
        """Add a case; without ``call``, the function is called with the arguments."""
        function = name.partition(":")[0]
        where = options.pop("where", self.where)
        prefix = {"": "", "slinalg": "linalg."}.get(where, f"{where}.")
        made = {**self.defaults, **options}
        CASES.append(
            Case(
                prefix + name,
                tuple(arguments),
                call or (lambda m, *xs: getattr(m, function)(*xs)),
                reference,
                where,
                family=self.family,
                **made,
            )
        )
