# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Executes graph-stage IR in NumPy, operation by operation.

Slow and simple: what a module means before and after each graph-stage pass is decided here.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any, ClassVar

import numpy as np

from graphc.backends.interpret.scan import BODY, ScanRun
from graphc.backends.interpret.upstream import UPSTREAM
from graphc.backends.interpret.write import WRITES
from graphc.ir.constants import CONSTANTS, element_dtype, read_constant
from graphc.ir.references import (
    evaluate,
    has_reference,
    kernel_reference,
    random_reference,
)
from graphc.ir.walk import functions, symbol_of
from graphc_dialects._mlir import ir
from graphc_dialects.check import checks_in
from graphc_dialects.elementwise import ELEMENTWISE
from graphc_dialects.signatures import SIGNATURES
from graphc_runtime.errors import ERRORS

if TYPE_CHECKING:
    import numpy.typing as npt

# Made of addresses, which there are none of before bufferization.
_BUFFER_STAGE = frozenset({"address"})

Failed = Callable[[Any, int, int], None]


def raise_failed(check: ir.Operation, given: int, expected: int) -> None:
    """Raises the error of a `graphc.check` that has failed."""
    text = check.attributes["message"].value
    text = text.replace("{given}", str(given)).replace("{expected}", str(expected))
    raise ERRORS[check.attributes["error"].value](text)


def run_function(
    module: ir.Module, inputs: Sequence[np.ndarray | int], name: str = "main", failed: Failed = raise_failed
) -> list[np.ndarray]:
    """Runs a function of a module in the graph stage.

    Args:
        module: an `ir.Module`.
        inputs: one array (or int, for index arguments) per argument.
        name: symbol of the function.
        failed: called with a `graphc.check` that has failed, what it was given and what it expected; raises.

    Returns:
        Its results: ndarrays, and ints for index results.

    Raises:
        ValueError, IndexError, ...: the error class of a `graphc.check` that fails. ValueError: an
        operand's shape is not what an operation or a type requires. NotImplementedError: an operation is
        none of graphc's and none of the upstream ones used in this stage.
    """
    for function in functions(module):
        if symbol_of(function) == name:
            return _Frame(function, inputs, failed).run()
    raise ValueError(f"the module has no function @{name}")


def checks(module: ir.Module) -> list[Any]:
    """The `graphc.check` operations of a module, in its order."""
    return [op for function in functions(module) for op in checks_in(function)]


class _Frame:
    """One call."""

    def __init__(self, function: ir.Operation, inputs: Sequence[np.ndarray | int], failed: Failed) -> None:
        arguments = list(function.regions[0].blocks[0].arguments)
        if len(arguments) != len(inputs):
            raise ValueError(f"the function takes {len(arguments)} arguments, but was given {len(inputs)}")
        self._function, self._failed = function, failed
        self._values: dict[Any, Any] = {}
        self._scans: dict[ir.Value, ScanRun] = {}
        for argument, value in zip(arguments, inputs, strict=True):
            self._set(argument, value)

    def _set(self, value: ir.Value, data: npt.ArrayLike) -> None:
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

    def run(self) -> list[np.ndarray]:
        for op in self._function.regions[0].blocks[0].operations:
            if op.operation.name == "func.return":
                return [self._values[operand] for operand in op.operands]
            self._execute(op.operation)
        raise ValueError("the function does not return")

    def _execute(self, op: ir.Operation) -> None:
        """Runs an operation.

        Raises:
            NotImplementedError: it has no meaning here.
        """
        special = self._SPECIAL.get(op.name)
        if special is not None:
            special(self, op)
            return
        operands = [self._values[operand] for operand in op.operands]
        dialect, _, name = op.name.partition(".")
        if op.name in WRITES:
            results = WRITES[op.name](op, *operands)
            self._values.update(zip(op.results, results, strict=True))
        elif op.name in UPSTREAM:
            self._set(op.results[0], UPSTREAM[op.name](op, *operands))
        elif dialect != "graphc" or name in _BUFFER_STAGE:
            raise NotImplementedError(
                f"{op.location}: the interpreter does not know {op.name}, only operations of the graph stage"
            )
        elif name in SIGNATURES or name == "random":
            reference = random_reference if name == "random" else kernel_reference
            for result, data in zip(op.results, reference(op, operands), strict=True):
                self._set(result, data)
        else:
            self._check_elementwise(op, operands)
            dtype = element_dtype(op.results[0].type.element_type)
            self._set(op.results[0], evaluate(op, operands, dtype))

    def _constant(self, op: ir.Operation) -> None:
        self._set(op.results[0], read_constant(op))

    def _scan(self, op: ir.Operation) -> None:
        self._scans[op.results[0]] = ScanRun(op, self._values, self._execute, self._set)

    def _trace(self, op: ir.Operation) -> None:
        self._scans[op.operands[0]].trace(op)

    def _steps(self, op: ir.Operation) -> None:
        self._values[op.results[0]] = self._scans[op.operands[0]].steps

    def _branch(self, op: ir.Operation) -> None:
        """Runs the one region of a conditional that is chosen."""
        region = op.regions[0 if self._values[op.operands[0]] else 1]
        for inner in region.blocks[0].operations if len(region.blocks) else ():
            if inner.operation.name == "scf.yield":
                for result, operand in zip(op.results, inner.operands, strict=True):
                    self._set(result, self._values[operand])
            else:
                self._execute(inner.operation)

    def _check(self, op: ir.Operation) -> None:
        condition, given, expected = (self._values[operand] for operand in op.operands)
        if not condition:
            self._failed(op, given, expected)

    def _check_elementwise(self, op: ir.Operation, operands: list[Any]) -> None:
        """Only static ones broadcast: NumPy would also broadcast sizes that are 1 by chance."""
        if op.name[7:] not in ELEMENTWISE or len(operands) < 2:
            return
        shapes = zip(*(operand.type.shape for operand in op.operands), strict=True)
        for axis, static in enumerate(shapes):
            sizes = {x.shape[axis] for x, known in zip(operands, static, strict=True) if known != 1}
            if len(sizes) > 1:
                raise ValueError(f"{op.name}: operands have sizes {sorted(sizes)} in dimension {axis}")

    _SPECIAL: ClassVar[dict[str, Callable[..., None]]] = {
        "graphc.scan": _scan,
        "graphc.scan_trace": _trace,
        "graphc.scan_steps": _steps,
        "graphc.check": _check,
        "scf.if": _branch,
        **dict.fromkeys(CONSTANTS, _constant),
    }


def is_known(name: str) -> bool:
    """Whether operations of a name, such as `graphc.add`, have a meaning here."""
    dialect, _, own = name.partition(".")
    if name in _Frame._SPECIAL or name in BODY or name in WRITES or name in UPSTREAM:
        return True
    return dialect == "graphc" and (own in SIGNATURES or own == "random" or has_reference(own))
