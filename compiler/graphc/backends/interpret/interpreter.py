# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Executes graph-stage IR in NumPy, operation by operation.

Slow and simple: what a module means before and after each graph-stage pass is decided here.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from graphc.backends.interpret.scan import ScanRun
from graphc.backends.interpret.write import WRITES
from graphc.ir.constants import CONSTANTS, element_dtype, read_constant
from graphc.ir.references import (
    elementwise_reference,
    evaluate,
    kernel_reference,
    random_reference,
)
from graphc.ir.walk import functions
from graphc_dialects._mlir import ir
from graphc_dialects.signatures import SIGNATURES
from graphc_runtime.errors import ERRORS

_BROADCAST_FREE = (
    "dimshuffle",
    "reshape",
    "broadcast_to",
    "specify_shape",
    "reduce_",
    "arg",
    "join",
    "slice",
    "update_",
    "take",
    "put",
    "matmul",
    "scan_seq",
    "cumulative",
    "linear_recurrence",
    "iota",
    "softmax",
    "log_softmax",
    "check",
    "constant",
    "cast",
)


def run_function(module: Any, inputs: Sequence[Any], name: str = "main") -> list[Any]:
    """Runs a function of a module in the graph stage.

    Args:
        module: an `ir.Module`.
        inputs: one array (or int, for index arguments) per argument.
        name: symbol of the function.

    Returns:
        Its results: ndarrays, and ints for index results.

    Raises:
        ValueError, IndexError, ...: the error class of a `graphc.check` that fails. ValueError: an
        operand's shape is not what an operation or a type requires. NotImplementedError: an operation is
        none of graphc's and none of the upstream ones used in this stage.
    """
    for function in functions(module):
        if function.attributes["sym_name"].value == name:
            return _Frame(function, inputs).run()
    raise ValueError(f"the module has no function @{name}")


class _Frame:
    """One call."""

    def __init__(self, function: Any, inputs: Sequence[Any]) -> None:
        arguments = list(function.regions[0].blocks[0].arguments)
        if len(arguments) != len(inputs):
            raise ValueError(f"the function takes {len(arguments)} arguments, but was given {len(inputs)}")
        self._function = function
        self._values: dict[Any, Any] = {}
        self._scans: dict[Any, ScanRun] = {}
        for argument, value in zip(arguments, inputs, strict=True):
            self._set(argument, value)

    def _set(self, value: Any, data: Any) -> None:
        type_ = value.type
        if isinstance(type_, ir.RankedTensorType):
            dtype = element_dtype(type_.element_type)
            if isinstance(data, np.ndarray) and data.dtype != dtype:
                raise TypeError(f"a value of type {type_} was given dtype {data.dtype}")
            data = np.asarray(data, dtype)
            static = [size if size >= 0 else None for size in type_.shape]
            if len(static) != data.ndim or any(
                s not in (None, n) for s, n in zip(static, data.shape, strict=True)
            ):
                raise ValueError(f"a value of type {type_} was given shape {data.shape}")
        self._values[value] = data

    def run(self) -> list[Any]:
        for op in self._function.regions[0].blocks[0].operations:
            if op.operation.name == "func.return":
                return [self._values[operand] for operand in op.operands]
            self._execute(op.operation)
        raise ValueError("the function does not return")

    def _execute(self, op: Any) -> None:
        if op.name == "graphc.scan":
            self._scans[op.results[0]] = ScanRun(op, self._values, self._execute, self._set)
            return
        if op.name in ("graphc.scan_trace", "graphc.scan_steps"):
            run = self._scans[op.operands[0]]
            if op.name == "graphc.scan_trace":
                run.trace(op)
            else:
                self._values[op.results[0]] = run.steps
            return
        if op.name == "scf.if":
            self._branch(op)
            return
        operands = [self._values[operand] for operand in op.operands]
        if op.name in CONSTANTS:
            self._set(op.results[0], read_constant(op))
        elif op.name == "graphc.check":
            self._check(op, *operands)
        elif op.name in WRITES:
            results = WRITES[op.name](op, *operands)
            self._values.update(zip(op.results, results, strict=True))
        elif op.name[7:] in SIGNATURES:
            for result, data in zip(op.results, kernel_reference(op, operands), strict=True):
                self._set(result, data)
        elif op.name == "graphc.random":
            for result, data in zip(op.results, random_reference(op, operands), strict=True):
                self._set(result, data)
        elif op.name.startswith("graphc."):
            result = op.results[0]
            self._check_elementwise(op, operands)
            self._set(result, evaluate(op, operands, element_dtype(result.type.element_type)))
        elif op.name in _UPSTREAM:
            self._set(op.results[0], _UPSTREAM[op.name](op, *operands))
        else:
            raise NotImplementedError(f"the interpreter does not know {op.name}")

    def _branch(self, op: Any) -> None:
        """Runs the one region of a conditional that is chosen."""
        region = op.regions[0 if self._values[op.operands[0]] else 1]
        for inner in region.blocks[0].operations if len(region.blocks) else ():
            if inner.operation.name == "scf.yield":
                for result, operand in zip(op.results, inner.operands, strict=True):
                    self._set(result, self._values[operand])
            else:
                self._execute(inner.operation)

    def _check(self, op: Any, condition: Any, given: Any, expected: Any) -> None:
        if not condition:
            text = op.attributes["message"].value
            text = text.replace("{given}", str(given)).replace("{expected}", str(expected))
            raise ERRORS[op.attributes["error"].value](text)

    def _check_elementwise(self, op: Any, operands: list[Any]) -> None:
        """Only static ones broadcast: NumPy would also broadcast sizes that are 1 by chance."""
        if op.name[7:].startswith(_BROADCAST_FREE) or len(operands) < 2:
            return
        shapes = zip(*(operand.type.shape for operand in op.operands), strict=True)
        for axis, static in enumerate(shapes):
            sizes = {x.shape[axis] for x, known in zip(operands, static, strict=True) if known != 1}
            if len(sizes) > 1:
                raise ValueError(f"{op.name}: operands have sizes {sorted(sizes)} in dimension {axis}")


def _index_cast(op: Any, x: Any) -> Any:
    return np.asarray(x)[()].item()


_PREDICATES: list[Callable[[Any, Any], Any]] = [
    lambda a, b: a == b,
    lambda a, b: a != b,
    lambda a, b: a < b,
    lambda a, b: a <= b,
    lambda a, b: a > b,
    lambda a, b: a >= b,
]


def _compare(op: Any, a: Any, b: Any) -> bool:
    predicate = op.attributes["predicate"].value
    return bool(_PREDICATES[predicate if predicate < 6 else predicate - 4](a, b))


def _select(op: Any, condition: Any, a: Any, b: Any) -> Any:
    return a if condition else b


def _truncated_division(op: Any, a: int, b: int) -> int:
    return abs(a) // abs(b) * (1 if (a < 0) == (b < 0) else -1)


def _from_elements(op: Any, *xs: Any) -> np.ndarray:
    type_ = op.results[0].type
    return np.array(xs, element_dtype(type_.element_type)).reshape(type_.shape)


def _empty(op: Any, *sizes: int) -> Any:
    """Contents that are seen in the result of whatever reads them."""
    dynamic = iter(sizes)
    shape = [size if size >= 0 else next(dynamic) for size in op.results[0].type.shape]
    dtype = element_dtype(op.results[0].type.element_type)
    return np.full(shape, np.nan if dtype.kind in "fc" else np.ones((), dtype), dtype)


_UPSTREAM: dict[str, Callable[..., Any]] = {
    "tensor.dim": lambda op, x, axis: x.shape[axis],
    "tensor.cast": lambda op, x: x,
    "tensor.extract": lambda op, x, *indices: x[tuple(indices)].item(),
    "tensor.from_elements": _from_elements,
    "tensor.empty": _empty,
    "arith.index_cast": _index_cast,
    "arith.addi": lambda op, a, b: a + b,
    "arith.subi": lambda op, a, b: a - b,
    "arith.muli": lambda op, a, b: a * b,
    "arith.divsi": _truncated_division,
    "arith.remsi": lambda op, a, b: a - b * _truncated_division(op, a, b),
    "arith.floordivsi": lambda op, a, b: a // b,
    "arith.ceildivsi": lambda op, a, b: -(-a // b),
    "arith.maxsi": lambda op, a, b: max(a, b),
    "arith.minsi": lambda op, a, b: min(a, b),
    "arith.andi": lambda op, a, b: a & b,
    "arith.ori": lambda op, a, b: a | b,
    "arith.xori": lambda op, a, b: a ^ b,
    "arith.extsi": lambda op, a: -int(a) if isinstance(a, bool) else a,
    "arith.extui": lambda op, a: int(a),
    "arith.cmpi": _compare,
    "arith.select": _select,
}

__all__ = ["elementwise_reference", "run_function"]
