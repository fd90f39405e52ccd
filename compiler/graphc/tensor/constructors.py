# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Functions that make input variables: ``vector("x")``, ``scalars("a", "b")``, ``tensor(...)``."""

from __future__ import annotations

import warnings
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any, Protocol, cast, overload

from graphc.config import config
from graphc.graph.basic import capture, frames_inside
from graphc.graph.tensor.type import TensorType
from graphc.graph.tensor.variable import TensorVariable
from graphc.hooks import named
from graphc_runtime.symbols import DTYPES

if TYPE_CHECKING:
    from graphc.graph.tensor import DTypeLike

Constructor = TensorType | Callable[..., TensorVariable]
_PREFIXES = {
    "": None, "b": "int8", "w": "int16", "i": "int32", "l": "int64", "f": "float32", "d": "float64",
    "c": "complex64", "z": "complex128",
}  # fmt: skip
_SHAPES: dict[str, tuple[int | None, ...]] = {
    "scalar": (),
    "vector": (None,),
    "matrix": (None, None),
    "row": (1, None),
    "col": (None, 1),
    **{f"tensor{n}": (None,) * n for n in range(3, 8)},
}
_PLURALS = {"matrix": "matrices"}


def tensor(
    name: str | None = None,
    *,
    dtype: DTypeLike | None = None,
    shape: Sequence[int | None] | None = None,
    broadcastable: Sequence[bool] | None = None,
) -> TensorVariable:
    """An input variable.

    Args:
        name: a name for people; it is also the keyword by which a compiled function takes the value.
        dtype: dtype of the elements; ``config.floatX`` by default.
        shape: one entry for each dimension, None where the size is unknown.
        broadcastable: Theano's form of ``shape``, deprecated: True for a dimension of size 1.

    Raises:
        TypeError: no shape is given.

    Examples:
        >>> pt.tensor("x", dtype="float32", shape=(None, 3)).type
        TensorType(float32, (?, 3))
    """
    if name is not None and (not isinstance(name, str) or name in (*DTYPES, "floatX")):
        raise ValueError(
            f"the first argument of tensor() is the name, got {name!r}; give dtype= and shape= by keyword"
        )
    if broadcastable is not None and shape is None:
        shape = tuple(1 if is_one else None for is_one in broadcastable)
        message = f"broadcastable= is deprecated; write tensor(shape={shape})"
        warnings.warn(message, DeprecationWarning, stacklevel=frames_inside() + 1)
    elif shape is None or broadcastable is not None:
        raise TypeError("tensor() needs shape=, one entry for each dimension, None where the size is unknown")
    variable = TensorType(config.floatX if dtype is None else dtype, shape).make_variable(name)
    variable._location = capture()
    return variable  # type: ignore[return-value]


def _check_shape(kind: str, shape: Sequence[int | None], ndim: int) -> None:
    """As PyTensor, so that a list of sizes is no vector of values by mistake."""
    if not isinstance(shape, tuple):
        raise TypeError(
            f"{kind}: shape must be a tuple of {ndim} sizes, got {shape!r}; write {kind}(shape=(...))"
        )
    if len(shape) != ndim:
        raise ValueError(f"{kind}: the length of shape must match its {ndim} dimensions, got {shape}")


def _constructor(kind: str, prefix: str) -> Constructor:
    fixed = _PREFIXES[prefix]
    default = _SHAPES[kind]
    if fixed is not None:
        # As in PyTensor these are types, of which a call makes a variable: ``x.type == dvector``.
        return TensorType(fixed, default)

    def make(
        name: str | None = None,
        *others: object,
        dtype: DTypeLike | None = None,
        shape: Sequence[int | None] | None = None,
    ) -> TensorVariable:
        if others:
            keyword = "shape" if isinstance(others[0], int | tuple | list) else "dtype"
            raise TypeError(
                f"{kind}() takes the name only by position, got {others[0]!r} after it; write "
                f"{kind}({name!r}, {keyword}={(others[0],) if isinstance(others[0], int) else others[0]!r})"
            )
        if shape is not None:
            _check_shape(kind, shape, len(default))
        variable = TensorType(config.floatX if dtype is None else dtype, default)(name, shape=shape)
        variable._location = capture()
        return variable

    sizes = str(default).replace("None", "?")
    doc = f"""An input variable of dtype config.floatX or ``dtype``; ``shape`` narrows its shape.

    Examples:
        >>> pt.{kind}("x").type
        TensorType(float64, {sizes})
    """
    return named(make, kind, doc)


def _plural(make: Constructor, single: str, name: str) -> Callable[..., object]:
    def make_all(*names: Any, **kwargs: Any) -> TensorVariable | list[TensorVariable]:
        if len(names) == 1:
            (only,) = names
            if isinstance(only, int):
                return [make(**kwargs) for _ in range(only)] if only != 1 else make(**kwargs)
            names = tuple(only) if isinstance(only, str | list | tuple) else names
        made = [make(each, **kwargs) for each in names]
        return made[0] if len(made) == 1 else made

    doc = f"""Several variables made by `{single}`: as many as a number says, or one a name.

    One string stands for its letters. A single variable comes without a list.

    Examples:
        >>> a, b = pt.{name}("a", "b")
        >>> a.name, b.name, a.type == b.type
        ('a', 'b', True)
    """
    return named(make_all, name, doc)


def _all_constructors() -> dict[str, Callable[..., Any]]:
    table: dict[str, Callable[..., Any]] = {}
    for prefix in _PREFIXES:
        for kind in _SHAPES:
            name = prefix + kind
            table[name] = _constructor(kind, prefix)
            plural = prefix + _PLURALS.get(kind, kind + "s")
            table[plural] = _plural(table[name], name, plural)
    return table


CONSTRUCTORS = _all_constructors()
globals().update(CONSTRUCTORS)
if not TYPE_CHECKING:  # type checkers take the names below
    __all__ = ["tensor", *CONSTRUCTORS]

if TYPE_CHECKING:

    class _Several(Protocol):
        @overload
        def __call__(
            self, first: str, second: str, /, *rest: str, dtype: DTypeLike | None = None
        ) -> list[TensorVariable]: ...
        @overload
        def __call__(
            self, names: int | str | Sequence[str], /, *, dtype: DTypeLike | None = None
        ) -> TensorVariable | list[TensorVariable]: ...

    def _one(
        name: str | None = None, *, dtype: DTypeLike | None = None, shape: Sequence[int | None] | None = None
    ) -> TensorVariable: ...

    _typed = TensorType("", ())
    _several = cast("_Several", None)

    # As the table makes them.
    scalar = vector = matrix = row = col = tensor3 = tensor4 = tensor5 = tensor6 = tensor7 = _one
    bscalar = bvector = bmatrix = brow = bcol = btensor3 = btensor4 = btensor5 = btensor6 = btensor7 = _typed
    wscalar = wvector = wmatrix = wrow = wcol = wtensor3 = wtensor4 = wtensor5 = wtensor6 = wtensor7 = _typed
    iscalar = ivector = imatrix = irow = icol = itensor3 = itensor4 = itensor5 = itensor6 = itensor7 = _typed
    lscalar = lvector = lmatrix = lrow = lcol = ltensor3 = ltensor4 = ltensor5 = ltensor6 = ltensor7 = _typed
    fscalar = fvector = fmatrix = frow = fcol = ftensor3 = ftensor4 = ftensor5 = ftensor6 = ftensor7 = _typed
    dscalar = dvector = dmatrix = drow = dcol = dtensor3 = dtensor4 = dtensor5 = dtensor6 = dtensor7 = _typed
    cscalar = cvector = cmatrix = crow = ccol = ctensor3 = ctensor4 = ctensor5 = ctensor6 = ctensor7 = _typed
    zscalar = zvector = zmatrix = zrow = zcol = ztensor3 = ztensor4 = ztensor5 = ztensor6 = ztensor7 = _typed
    scalars = vectors = matrices = rows = cols = _several
    tensor3s = tensor4s = tensor5s = tensor6s = tensor7s = _several
    bscalars = bvectors = bmatrices = brows = bcols = _several
    btensor3s = btensor4s = btensor5s = btensor6s = btensor7s = _several
    wscalars = wvectors = wmatrices = wrows = wcols = _several
    wtensor3s = wtensor4s = wtensor5s = wtensor6s = wtensor7s = _several
    iscalars = ivectors = imatrices = irows = icols = _several
    itensor3s = itensor4s = itensor5s = itensor6s = itensor7s = _several
    lscalars = lvectors = lmatrices = lrows = lcols = _several
    ltensor3s = ltensor4s = ltensor5s = ltensor6s = ltensor7s = _several
    fscalars = fvectors = fmatrices = frows = fcols = _several
    ftensor3s = ftensor4s = ftensor5s = ftensor6s = ftensor7s = _several
    dscalars = dvectors = dmatrices = drows = dcols = _several
    dtensor3s = dtensor4s = dtensor5s = dtensor6s = dtensor7s = _several
    cscalars = cvectors = cmatrices = crows = ccols = _several
    ctensor3s = ctensor4s = ctensor5s = ctensor6s = ctensor7s = _several
    zscalars = zvectors = zmatrices = zrows = zcols = _several
    ztensor3s = ztensor4s = ztensor5s = ztensor6s = ztensor7s = _several
