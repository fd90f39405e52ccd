# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""``shared``: makes shared variables of values."""

from __future__ import annotations

from collections.abc import Sequence
from functools import singledispatch
from typing import TYPE_CHECKING, Any, overload

import numpy as np

from graphc.config import config
from graphc.graph.basic import Variable, capture
from graphc.graph.shared import SharedVariable
from graphc.graph.tensor.type import TensorType
from graphc.graph.tensor.variable import TensorSharedVariable
from graphc.tensor.random.shared import share_generator
from graphc_runtime.marshal import demand_numbers
from graphc_runtime.symbols import kind_letter

if TYPE_CHECKING:
    import numpy.typing as npt


@singledispatch
def shared_constructor(
    value: Any,
    name: str | None = None,
    strict: bool = False,
    allow_downcast: bool | None = None,
    borrow: bool = False,
    shape: Sequence[int | None] | None = None,
    **kwargs: Any,
) -> SharedVariable:
    """Make a shared variable; ``shared_constructor.register(cls)`` adds other kinds of values."""
    if isinstance(value, Variable):
        raise TypeError(f"a shared variable needs a value, got the symbolic variable {value}")
    if hasattr(value, "bit_generator"):
        return share_generator(value, name, strict, allow_downcast, borrow, **kwargs)
    if hasattr(value, "tocsr"):
        from graphc.sparse.variables import share_matrix

        return share_matrix(value, name, strict, allow_downcast)
    if kwargs:
        raise TypeError(f"shared() got unknown arguments {', '.join(kwargs)}")
    demand_numbers(value)
    array = np.asarray(value, dtype=config.floatX if type(value) is float else None)
    if kind_letter(array.dtype) not in "biufc":
        raise TypeError(
            f"cannot share {value!r:.80} of type {type(value).__name__}: it is not an array of numbers. "
            "For a type of your own, register it with graphc.function.shared.shared_constructor"
        )
    tensor_type = TensorType(
        array.dtype.newbyteorder("=").name, (None,) * array.ndim if shape is None else shape
    )
    variable = TensorSharedVariable(tensor_type, None, strict, allow_downcast, name, container=[None])
    variable.container[0] = variable._canonical(array, borrow)
    return variable


@overload
def shared(
    value: npt.ArrayLike,
    name: str | None = None,
    strict: bool = False,
    allow_downcast: bool | None = None,
    borrow: bool = False,
    shape: Sequence[int | None] | None = None,
) -> TensorSharedVariable: ...
@overload
def shared(
    value: Any,
    name: str | None = None,
    strict: bool = False,
    allow_downcast: bool | None = None,
    borrow: bool = False,
    shape: Sequence[int | None] | None = None,
    **kwargs: Any,
) -> Any: ...
def shared(
    value: Any,
    name: str | None = None,
    strict: bool = False,
    allow_downcast: bool | None = None,
    borrow: bool = False,
    shape: Sequence[int | None] | None = None,
    **kwargs: Any,
) -> Any:
    """A variable with a value that functions keep between calls, and may update.

    Args:
        value: the first value: array-like, or of a class registered with `shared_constructor`. A Python float
            becomes ``config.floatX``.
        name: a name for people.
        strict, allow_downcast: how later values are converted, as in ``Type.filter``.
        borrow: keep the array itself where possible instead of a copy.
        shape: static shape; by default no size is fixed.

    Raises:
        TypeError: the value is not supported, or does not have the static shape.
        NotImplementedError: it is a masked array.

    Examples:
        >>> count = graphc.shared(0, name="count")
        >>> advance = graphc.function([], count, updates={count: count + 2})
        >>> int(advance()), int(advance()), int(count.get_value())
        (0, 2, 4)
    """
    if shape is not None:
        kwargs["shape"] = shape
    if borrow:
        kwargs["borrow"] = True
    variable = shared_constructor(value, name=name, strict=strict, allow_downcast=allow_downcast, **kwargs)
    variable._location = capture()
    return variable
