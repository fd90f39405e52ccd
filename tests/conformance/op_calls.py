# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Classes of PyTensor's ops by which tests call operations: ``Repeat(axis=0)(x, n)`` is
``repeat(x, n, axis=0)``.

What the constructor of such a class returns calls graphc's function of the same meaning. It is not an op:
what else a test asks of it puts the test out of scope.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial
from typing import Any

from absent import Absent, AbsentNameError, Phase, use

import graphc.tensor as pt

Function = Callable[..., Any]


class OpCall:
    """What a constructor of an op returned."""

    def __init__(
        self, cls: OpClass, function: Function, params: tuple[Any, ...], named: dict[str, Any]
    ) -> None:
        self._kind, self._function = cls, function
        self._key = (cls.__name__, repr(params), repr(sorted(named.items())))

    def __call__(self, *inputs: Any, **kwargs: Any) -> Any:
        kwargs.pop("return_list", None)
        return self._function(*inputs, **kwargs)

    def make_node(self, *inputs: Any) -> Any:
        result = self(*inputs)
        return (result[0] if isinstance(result, list) else result).owner

    def __eq__(self, other: object) -> bool:
        return isinstance(other, OpCall) and self._key == other._key

    def __hash__(self) -> int:
        return hash(self._key)

    def __getattr__(self, name: str) -> Any:
        if name.startswith("_") or not Phase.strict:
            raise AttributeError(name)
        raise AbsentNameError(f"attribute {name}")

    def __str__(self) -> str:
        return self._key[0]

    __repr__ = object.__repr__


class OpClass(Absent):
    """Metaclass of the classes; a test's own subclass of one is as absent as any."""

    def __call__(cls, *params: Any, **named: Any) -> Any:
        if cls.__module__ != "pytensor":
            use(cls.__mro__[1].__qualname__)
        return OpCall(cls, CLASSES[cls.__name__](*params, **named), params, named)

    def __instancecheck__(cls, instance: Any) -> bool:
        return isinstance(instance, OpCall) and instance._kind is cls


def op_class(name: str) -> type:
    return OpClass(name, (), {"__qualname__": f"pytensor.tensor.{name}", "__module__": "pytensor"})


def _reduction(name: str) -> Callable[..., Function]:
    return lambda axis=None, **options: partial(getattr(pt, name), axis=axis, **options)


def _ca_reduce(scalar_op: Any, axis: Any = None, dtype: Any = None, acc_dtype: Any = None) -> Function:
    """A reduction by a binary operation; PyTensor's has the dtype of its operand where none is given."""
    names = {"add": "sum", "mul": "prod", "maximum": "max", "minimum": "min"}
    name = names.get(getattr(scalar_op, "name", None) or getattr(scalar_op, "__name__", ""))
    if name is None:
        return lambda x: use("pytensor.tensor.elemwise.CAReduce of other operations")
    options = {} if name in ("max", "min") else {"acc_dtype": acc_dtype}

    def reduce(x: Any) -> Any:
        x = pt.as_tensor_variable(x)
        typed = {"dtype": dtype or x.dtype} if options else {}
        return getattr(pt, name)(x, axis=axis, **typed, **options)

    return reduce


def _make_vector(dtype: str = "int64") -> Function:
    def stack(*elements: Any) -> Any:
        parts = [pt.as_tensor_variable(element) for element in elements]
        return pt.stack([pt.cast(part, dtype) for part in parts]) if parts else pt.zeros((0,), dtype=dtype)

    return stack


def _elemwise(scalar_op: Any, inplace_pattern: Any = None, name: Any = None, **options: Any) -> Function:
    return scalar_op


def _at(idx_list: Sequence[Any] = ()) -> Function:
    """Indexing: numbers of a list of indices stand for the inputs, in order."""

    def index(x: Any, *inputs: Any) -> Any:
        if any(part is not None for entry in idx_list for part in _parts(entry)):
            use("pytensor.tensor.subtensor: positions of inputs in lists of indices")
        return pt.as_tensor_variable(x)[tuple(idx_list) or inputs]

    return index


def _parts(entry: Any) -> tuple[Any, ...]:
    return (entry.start, entry.stop, entry.step) if isinstance(entry, slice) else (entry,)


def _blockwise(core_op: Any, signature: str | None = None, **options: Any) -> Function:
    return pt.vectorize(core_op, signature=signature or core_op.gufunc_signature)


def _cumulative(axis: int | None = None, mode: str = "add") -> Function:
    return partial(pt.cumsum if mode == "add" else pt.cumprod, axis=axis)


def _linear(name: str) -> Callable[..., Function]:
    return lambda *args, **options: partial(getattr(pt.linalg, name), *args, **options)


# By the name of the class: from the constructor's parameters to a function of the operands.
CLASSES: dict[str, Callable[..., Function]] = {
    "All": _reduction("all"),
    "Alloc": lambda: pt.alloc,
    "AllocEmpty": lambda dtype: lambda *sizes: pt.empty(sizes, dtype=dtype),
    "Any": _reduction("any"),
    "ARange": lambda dtype: lambda start, stop, step: pt.arange(start, stop, step, dtype=dtype),
    "Argmax": _reduction("argmax"),
    "ArgSortOp": lambda kind="quicksort", order=None: lambda x, axis=-1: pt.argsort(x, axis, kind),
    "Blockwise": _blockwise,
    "CAReduce": _ca_reduce,
    "Cholesky": lambda lower=True, **options: partial(pt.linalg.cholesky, lower=lower),
    "CumOp": _cumulative,
    "DimShuffle": lambda input_ndim, new_order: lambda x: pt.as_tensor_variable(x).dimshuffle(new_order),
    "Dot": lambda: pt.dot,
    "Elemwise": _elemwise,
    "ExtractDiag": lambda offset=0, axis1=0, axis2=1, view=False: partial(
        pt.diagonal, offset=offset, axis1=axis1, axis2=axis2
    ),
    "Eye": lambda dtype=None: lambda n, m, k: pt.eye(n, m, k, dtype=dtype),
    "Join": lambda axis=None: pt.join if axis is None else partial(pt.join, axis),
    "LogSoftmax": lambda axis=None: partial(pt.special.log_softmax, axis=axis),
    "MakeVector": _make_vector,
    "MatrixInverse": lambda: pt.linalg.matrix_inverse,
    "Max": _reduction("max"),
    "Min": _reduction("min"),
    "PermuteRowElements": lambda inverse=False: partial(pt.permute_row_elements, inverse=inverse),
    "Prod": _reduction("prod"),
    "Repeat": lambda axis=None: lambda x, repeats: pt.repeat(x, repeats, axis=axis),
    "Reshape": lambda ndim, name=None: lambda x, shape: pt.reshape(x, shape, ndim=ndim),
    "SearchsortedOp": lambda side="left": partial(pt.searchsorted, side=side),
    "Shape": lambda: pt.shape,
    "Shape_i": lambda i: lambda x: pt.as_tensor_variable(x).shape[i],
    "Softmax": lambda axis=None: partial(pt.special.softmax, axis=axis),
    "Solve": lambda b_ndim=2, lower=False, **options: partial(
        pt.linalg.solve, b_ndim=b_ndim, lower=lower, **options
    ),
    "SortOp": lambda kind="quicksort", order=None: lambda x, axis=-1: pt.sort(x, axis, kind),
    "SpecifyShape": lambda: lambda x, *shape: pt.specify_shape(x, shape),
    "Split": lambda len_splits, axis=None: (
        lambda x, *at: pt.split(x, at[-1], len_splits, at[0] if axis is None else axis)
    ),
    "Subtensor": _at,
    "AdvancedSubtensor1": lambda: lambda x, index: pt.as_tensor_variable(x)[index],
    "Sum": _reduction("sum"),
    "Unbroadcast": lambda *axes: lambda x: pt.unbroadcast(x, *axes),
}
NAMES: dict[str, type] = {name: op_class(name) for name in CLASSES}
