# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Leaves of graphs: inputs, constants and shared variables of PyTensor's types as graphc's."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
from pytensor.compile.sharedvalue import SharedVariable
from pytensor.graph.basic import Constant, Variable
from pytensor.scalar.basic import ScalarType
from pytensor.sparse.type import SparseTensorType
from pytensor.tensor.random.type import RandomGeneratorType
from pytensor.tensor.type import TensorType
from pytensor.tensor.type_other import NoneTypeT, SliceType

import graphc
import graphc.tensor as pt
from graphc.graph.tensor.variable import TensorSharedVariable
from graphc.sparse.type import SparseTensorType as ConvertedSparse

if TYPE_CHECKING:
    from pytensor.graph.type import Type

    from graphc.graph.basic import Variable as Converted
    from graphc_runtime.thunk import Register


def is_tensor(kind: Type) -> bool:
    """True if graphc's tensors stand for values of the type."""
    if isinstance(kind, SparseTensorType):
        return False
    return isinstance(kind, (TensorType, ScalarType)) or _is_labelled(kind)


def _is_labelled(kind: Type) -> bool:
    """True if values are arrays whose axes have names; PyTensor warns when their module is imported."""
    return type(kind).__module__ == "pytensor.xtensor.type" and hasattr(kind, "dims")


def is_dense(kind: Type) -> bool:
    """True if values of the type are NumPy's arrays."""
    return isinstance(kind, TensorType) and not isinstance(kind, SparseTensorType)


def is_cell(variable: Variable) -> bool:
    """True if functions find the value of a variable themselves: that of a shared array."""
    return isinstance(variable, SharedVariable) and is_dense(variable.type)


def is_generator(kind: Type) -> bool:
    """True if values of the type are NumPy's random generators."""
    return isinstance(kind, RandomGeneratorType)


def new_type(kind: Type) -> Any:
    """The type of graphc for one of PyTensor's.

    Raises:
        TypeError: graphc has none.
    """
    if isinstance(kind, SparseTensorType):
        return ConvertedSparse(kind.format, kind.dtype, shape=kind.shape)
    if isinstance(kind, TensorType) or _is_labelled(kind):
        return pt.TensorType(kind.dtype, kind.shape)
    if isinstance(kind, ScalarType):
        return pt.TensorType(kind.dtype, ())
    if is_generator(kind):
        return pt.random.rng().type
    raise TypeError(
        f"graphc has no type for PyTensor's {kind} ({type(kind).__module__}.{type(kind).__name__})"
    )


def new_input(variable: Variable) -> Converted:
    """A free variable of graphc with the type and the name of PyTensor's."""
    if is_generator(variable.type):
        return pt.random.rng(variable.name)
    made: Converted = new_type(variable.type).make_variable(variable.name)
    return made


def constant_value(variable: Constant) -> Any:
    """A constant of graphc; slices and None stand for themselves."""
    if isinstance(variable.type, (NoneTypeT, SliceType)) or variable.data is None:
        return variable.data
    if is_generator(variable.type):
        return pt.random.shared_rng(variable.data)
    if isinstance(variable.type, SparseTensorType):
        return graphc.sparse.as_sparse_variable(variable.data)
    return pt.constant(np.asarray(variable.data, dtype=variable.type.dtype), name=variable.name)


def share(variable: SharedVariable, storage: Register | None = None) -> Converted:
    """A shared variable of graphc in whose place both libraries read and write the same value.

    A random generator is copied instead: graphc keeps the state of a generator as an array.

    Args:
        variable: of PyTensor.
        storage: where its value is; the variable's own place if not given.
    """
    if not is_tensor(variable.type):
        other: Converted = graphc.shared(variable.get_value(borrow=True), name=variable.name, borrow=True)
        return other
    storage = variable.container.storage if storage is None else storage
    storage[0] = np.asarray(storage[0])
    return TensorSharedVariable(new_type(variable.type), name=variable.name, container=storage)
