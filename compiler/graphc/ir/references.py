# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""NumPy semantics of the graph-stage operations, for constant folding and for the interpreter.

Elementwise operations use the reference of their row (graphc.ops); the structural ones are written out here.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any

import numpy as np

import graphc.ops  # noqa: F401  (fills the table of rows)
from graphc.ir.constants import element_dtype
from graphc.ir.traits import REFERENCE
from graphc.library import find
from graphc.ops.elementwise import ROWS, converted

if TYPE_CHECKING:
    from graphc_dialects._mlir import ir


_NOT_ATTRIBUTES = ("cluster",)


def attributes_of(op: ir.Operation) -> dict[str, int]:
    """The attributes of a kernel operation as numbers."""
    return {name: int(op.attributes[name].value) for name in op.attributes if name not in _NOT_ATTRIBUTES}


Reference = Callable[..., Any]


def evaluate(op: ir.Operation, operands: list[Any], dtype: np.dtype) -> np.ndarray:
    """The result of a graphc operation for concrete operands.

    Args:
        op: a graphc-dialect operation with one tensor result.
        operands: ndarrays for tensors, ints for index values.
        dtype: dtype of the result.

    Raises:
        NotImplementedError: the operation has no NumPy semantics (checks, structured operations).
        ValueError: the operands' shapes do not fit.
    """
    name = op.name.removeprefix("graphc.")
    structural = REFERENCE.get(op.name)
    with np.errstate(all="ignore"):
        if structural is not None:
            return np.asarray(structural(op, *operands), dtype)
        if name == "cast":
            return converted(operands[0], dtype)
        return np.asarray(elementwise_reference(name)(*operands), dtype)


def has_reference(name: str) -> bool:
    """True if `evaluate` knows `graphc.<name>`."""
    return f"graphc.{name}" in REFERENCE or name == "cast" or name in ROWS


def elementwise_reference(name: str) -> Reference:
    """The NumPy function of an elementwise row.

    Raises:
        NotImplementedError: there is no such row.
    """
    if name not in ROWS:
        raise NotImplementedError(f"graphc.{name} has no NumPy reference")
    return ROWS[name].reference


def kernel_reference(op: ir.Operation, operands: list[ir.Value]) -> list[Any]:
    """The results of a kernel operation, in the dtypes of its result types."""
    found = find(op.name[7:]).reference(attributes_of(op), *operands)
    values = found if isinstance(found, tuple) else (found,)
    types = [element_dtype(result.type.element_type) for result in op.results]
    return [np.asarray(value, dtype) for value, dtype in zip(values, types, strict=True)]


def random_reference(op: ir.Operation, operands: list[Any]) -> tuple[np.ndarray, np.ndarray]:
    """The draws of `graphc.random`, and the state of the generator after them."""
    cores = list(op.attributes["cores"])
    state, *rest = operands
    parameters, sizes = rest[: len(cores)], rest[len(cores) :]
    # The distributions, and NumPy's generators with them, take as long to import as the passes.
    from graphc.tensor.random.native import draw_native

    return draw_native(op.attributes["distribution"].value, state, parameters, sizes)
