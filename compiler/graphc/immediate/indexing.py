# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Indexing tensors, and setting what is indexed."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any

import numpy as np

import graphc.tensor as pt
from graphc.errors import ValueRankError
from graphc.graph.basic import Variable
from graphc.immediate.aliasing import Assigning, Step, _frozen, _has_ellipsis, is_basic
from graphc.immediate.operation import OpWrapper
from graphc.immediate.tensor import Tensor, _bare
from graphc_runtime.marshal import demand_numbers

if TYPE_CHECKING:
    from graphc.graph.tensor import IndexLike, TensorLike
    from graphc.graph.tensor.variable import TensorVariable


class Indexing(Assigning):
    """The part of an environment that reads and sets parts of tensors."""

    _indexers: dict[str, OpWrapper]

    def _indexer(self, name: str, function: Callable[..., Any]) -> OpWrapper:
        wrappers = self.__dict__.setdefault("_indexers", {})
        found = wrappers.get(name)
        if found is None:
            found = wrappers[name] = OpWrapper(self, name, function)  # type: ignore[arg-type]
        return found

    def _changer(self, name: str) -> OpWrapper:
        """A function of ``graphc.tensor`` that changes a part, as one of the whole and the index."""

        def change(x: TensorVariable, index: IndexLike, y: TensorLike, **kwargs: bool) -> Variable:
            return getattr(pt, name)(x[index], y, **kwargs)

        return self._indexer(name, change)

    def _getitem(self, x: Tensor, index: IndexLike) -> Tensor:
        """``x[index]``; the result remembers x, for `set_subtensor`."""
        given = index
        if type(index) is not int:
            index = without_masks(index, x)
        getitem = self._indexer("getitem", pt.getitem)
        result = getitem(x, index)
        if type(result) is Tensor:
            result._view = (_bare(x) if hasattr(x, "_view") else x, index)
            # An element is a number in NumPy, and no view.
            if is_basic(given) and (result._kind.ndim or _has_ellipsis(given)):
                self._link(result, x, Step(getitem, (_frozen(given),), {}))
        return result

    def _set(self, whole: Tensor, index: Any, y: Tensor) -> Tensor:
        """``whole`` with ``whole[index]`` replaced by y."""
        index = Ellipsis if isinstance(index, tuple) and not index else index
        if index is Ellipsis and not whole.ndim:
            return self._indexer("reshape", pt.reshape)(y, ())
        index = without_masks(index, whole)
        try:
            return self._changer("set_subtensor")(whole, index, y)
        except ValueRankError:
            # NumPy drops leading axes of size 1 that are too many.
            if not y.ndim or y.shape[0] != 1:
                raise
        return self._set(whole, index, self._indexer("getitem", pt.getitem)(y, 0))

    def getitem(self, x: object, index: IndexLike) -> Tensor | Variable:
        """``x[index]``."""
        env: Any = self
        return x[index] if isinstance(x, Tensor | Variable) else env.as_tensor(x)[index]

    def set_subtensor(self, x: Tensor, y: object, *args: object, **kwargs: object) -> Tensor:
        """The tensor that x was indexed from, with that part set to y; as ``graphc.tensor.set_subtensor``.

        Raises:
            TypeError: x is no part of a tensor.
        """
        return self._replace("set_subtensor", x, y, *args, **kwargs)

    def inc_subtensor(self, x: Tensor, y: object, *args: object, **kwargs: object) -> Tensor:
        """The tensor that x was indexed from, with that part increased by y."""
        return self._replace("inc_subtensor", x, y, *args, **kwargs)

    def mul_subtensor(self, x: Tensor, y: object) -> Tensor:
        """The tensor that x was indexed from, with that part multiplied by y."""
        return self._replace("mul_subtensor", x, y)

    def max_subtensor(self, x: Tensor, y: object) -> Tensor:
        """The tensor that x was indexed from, with what is smaller than y in that part raised to y."""
        return self._replace("max_subtensor", x, y)

    def min_subtensor(self, x: Tensor, y: object) -> Tensor:
        """The tensor that x was indexed from, with what is larger than y in that part lowered to y."""
        return self._replace("min_subtensor", x, y)

    def _replace(self, name: str, x: Tensor, y: Any, *args: object, **kwargs: object) -> Tensor:
        if isinstance(x, Variable):
            return getattr(pt, name)(x, y, *args, **kwargs)
        view = getattr(x, "_view", None)
        if view is None:
            raise TypeError(f"{name} takes an indexed tensor such as x[1:], got {x!r:.60}")
        whole, index = view
        if hasattr(x, "_family"):
            whole = self._parent(x)
        if type(y) in (bool, int, float, complex):
            # As a constant, a number takes the dtype of the array it goes into.
            made = pt.cast(pt.constant(y), whole.dtype)
            assert isinstance(made, pt.TensorConstant)
            y = made.data
        names = ("inplace", "tolerate_inplace_aliasing")
        kwargs = {**dict(zip(names, args, strict=False)), **kwargs}
        return self._changer(name)(whole, index, y, **kwargs)


def without_masks(index: IndexLike, x: Tensor) -> Any:
    """An index of x whose masks are replaced by the positions that they select; lists become arrays.

    Raises:
        IndexError: a mask does not have the sizes of the dimensions that it selects from.
    """
    items = [_array(item) for item in (index if isinstance(index, tuple) else (index,))]
    if any(map(_is_mask, items)):
        items = _selected(items, tuple(x.shape))
    return tuple(items) if isinstance(index, tuple) or len(items) != 1 else items[0]


def _array(item: object) -> Any:
    if isinstance(item, list | np.ndarray):
        demand_numbers(item)
    if isinstance(item, list):
        return np.asarray(item) if item else np.zeros(0, np.int64)
    return item


def _is_mask(item: object) -> bool:
    return isinstance(item, Tensor | np.ndarray) and str(item.dtype) == "bool" and item.ndim > 0


def _width(item: Any) -> int:
    """Number of dimensions that an item indexes: truth values select from one of their own."""
    if item is None or item is Ellipsis or isinstance(item, bool | np.bool_):
        return 0
    is_boolean = isinstance(item, Tensor | np.ndarray) and str(item.dtype) == "bool"
    return item.ndim if is_boolean else 1


def _selected(items: list[object], shape: tuple[int, ...]) -> list[object]:
    """An index of an array of a shape with masks replaced."""
    widths = [_width(item) for item in items]
    found: list[object] = []
    axis = 0
    for number, (item, width) in enumerate(zip(items, widths, strict=True)):
        if _is_mask(item):
            mask = np.asarray(item)
            # As in NumPy, a mask without elements fits dimensions of any size.
            wanted = shape[axis : axis + width]
            if len(wanted) < width or any(a not in (0, b) for a, b in zip(mask.shape, wanted, strict=True)):
                raise IndexError(
                    f"a boolean index of shape {mask.shape} does not fit an array of shape {shape} from axis "
                    f"{axis} on"
                )
            found.extend(np.nonzero(mask))
        else:
            found.append(item)
        axis = len(shape) - sum(widths[number + 1 :]) if item is Ellipsis else axis + width
    return found
