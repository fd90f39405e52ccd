# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Executes graph-stage IR in NumPy, operation by operation.

Slow and simple: what a module means before and after each graph-stage pass is decided here.

A buffer is an array, and its parts are views of it.

Integers of `arith` have the width of their type and no sign; here they are signed, as they print.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any, ClassVar

import numpy as np

from graphc.ir.build import predicate_of
from graphc.ir.constants import CONSTANTS, element_dtype, read_constant
from graphc.ir.references import (
    evaluate,
    has_reference,
    kernel_reference,
    random_reference,
)
from graphc.ir.scan_view import (
    ScanView,
    is_padded,
    is_read,
    is_state,
    name_of,
    new_rows_of,
    retention,
    tap_of,
    window_of,
    writes_of,
)
from graphc.ir.views import axes_order, axis_of
from graphc.ir.walk import functions, symbol_of
from graphc_dialects._mlir import ir
from graphc_dialects.check import checks_in
from graphc_dialects.elementwise import ELEMENTWISE
from graphc_dialects.scan_shapes import outside_size
from graphc_dialects.signatures import SIGNATURES
from graphc_runtime.errors import ERRORS

if TYPE_CHECKING:
    import numpy.typing as npt


# What stands in bodies, and is part of what a scan does.
BODY = frozenset(f"graphc.scan_{name}" for name in ("seq", "prev", "carry", "collect", "end"))


class ScanRun:
    """One execution of a `graphc.scan`.

    Args:
        scan: the operation.
        values: values of everything that is visible to its body; gains those of the body.
        execute: runs one operation of the body.
        set_value: stores a result, checked against its type.
    """

    def __init__(
        self,
        scan: ir.Operation,
        values: dict[ir.Value, Any],
        execute: Callable[[Any], None],
        set_value: Callable[[Any, Any], None],
    ) -> None:
        self.scan = scan
        self._values = values
        self._execute = execute
        self._set = set_value
        self._view = ScanView(scan)
        self._declared = self._view.declarations()
        self._rows: dict[str, list[Any]] = {}
        self.steps = 0
        self.run()

    def run(self) -> None:
        """Runs all iterations."""
        for name, op in self._declared.items():
            self._rows[name] = list(self._values[op.operands[0]]) if is_state(op) else []
        view, body, stop = self._view, self._view.work(), self._view.stop
        n = self._values[view.steps]
        for step in range(n):
            self._values[view.index] = n - 1 - step if view.reverse else step
            for op in body:
                if is_read(op):
                    self._read(op, step)
                else:
                    self._execute(op)
            for name, op in self._declared.items():
                self._write(name, op, step)
            self.steps = step + 1
            if stop is not None and self._values[stop]:
                break

    def _read(self, op: ir.Operation, step: int) -> None:
        name = name_of(op)
        self._set(op.results[0], self._rows[name][window_of(self._declared[name]) + step + tap_of(op)])

    def _write(self, name: str, op: ir.Operation, step: int) -> None:
        rows = self._rows[name]
        if not is_state(op):
            rows.append(self._values[op.operands[0]])
            return
        rows.append(None)
        for write, value in zip(writes_of(op), new_rows_of(op), strict=True):
            row = self._values[value]
            if row.shape != self._values[op.operands[0]].shape[1:]:
                raise ValueError(
                    f"state '{name}' starts with rows of shape {self._values[op.operands[0]].shape[1:]}, "
                    f"but iteration {step} computes {row.shape}"
                )
            rows[window_of(op) + step + write] = row

    def trace(self, op: ir.Operation) -> None:
        """Sets the result of a `scan_trace`."""
        name = name_of(op)
        declared = self._declared[name]
        rows = self._rows[name]
        keep, count = retention(declared)
        if keep == "steps":
            rows = rows[window_of(declared) :]
        if count is not None:
            missing = max(count - len(rows), 0) if is_padded(declared) else 0
            rows = [self._nothing(declared)] * missing + rows[len(rows) + missing - count :]
        if self._view.reverse:
            rows = rows[::-1]
        type_ = op.results[0].type
        shape = self._row_shape(declared, type_)
        data = np.stack(rows) if rows else np.empty((0, *shape), element_dtype(type_.element_type))
        self._set(op.results[0], data)

    def _nothing(self, declared: Any) -> Any:
        """A row that stands for one that there is none of."""
        type_ = declared.operands[0].type
        if is_state(declared):
            return np.zeros_like(self._values[declared.operands[0]][0])
        shape = [
            size if size >= 0 else self._size(declared.operands[0], axis)
            for axis, size in enumerate(type_.shape)
        ]
        return np.zeros(shape, element_dtype(type_.element_type))

    def _row_shape(self, declared: Any, type_: ir.Type) -> tuple[int, ...]:
        """The shape of a row when there are none."""
        if is_state(declared):
            return tuple(self._values[declared.operands[0]].shape[1:])
        shape = []
        for axis, size in enumerate(list(type_.shape)[1:]):
            shape.append(size if size >= 0 else self._size(declared.operands[0], axis))
        return tuple(shape)

    def _size(self, value: ir.Value, axis: int) -> int:
        """The size of a row of an output, evaluated outside of the body by the dialect's own rule."""
        before = {op.operation for op in self.scan.block.operations}
        with ir.InsertionPoint(self.scan), self.scan.location:
            size = outside_size(self.scan, value, axis)
        created = [op.operation for op in self.scan.block.operations if op.operation not in before]
        for op in created:
            self._execute(op)
        result = self._values[size]
        for op in reversed(created):
            op.erase()
        return int(result)


def _width(op: ir.Operation) -> int:
    type_ = op.operands[-1].type
    return type_.width if isinstance(type_, ir.IntegerType) else 64


def _wrapped(op: ir.Operation, value: int) -> int:
    """An integer as the result's type holds it."""
    type_ = op.results[0].type
    width = type_.width if isinstance(type_, ir.IntegerType) else 64
    if width == 1:
        return bool(value & 1)
    value &= (1 << width) - 1
    return value - (1 << width) if value >> (width - 1) else value


def _unsigned(op: Any, value: Any) -> int:
    return int(value) & ((1 << _width(op)) - 1)


def _signed(function: Callable[[int, int], int]) -> Callable[..., Any]:
    return lambda op, a, b: _wrapped(op, function(int(a), int(b)))


def _on_unsigned(function: Callable[[int, int], int]) -> Callable[..., Any]:
    return lambda op, a, b: _wrapped(op, function(_unsigned(op, a), _unsigned(op, b)))


def _quotient(a: int, b: int) -> int:
    return abs(a) // abs(b) * (1 if (a < 0) == (b < 0) else -1)


def _cast(op: ir.Operation, x: int) -> Any:
    """A scalar, or a tensor of them, of another width."""
    type_ = op.results[0].type
    if isinstance(type_, ir.RankedTensorType):
        return np.asarray(x).astype(element_dtype(type_.element_type))
    return _wrapped(op, int(np.asarray(x)[()]))


def _unsigned_extended(op: ir.Operation, x: Any) -> Any:
    return _wrapped(op, _unsigned(op, x))


_PREDICATES: list[Callable[[Any, Any], Any]] = [
    lambda a, b: a == b,
    lambda a, b: a != b,
    lambda a, b: a < b,
    lambda a, b: a <= b,
    lambda a, b: a > b,
    lambda a, b: a >= b,
]


def _compare(op: ir.Operation, a: int, b: int) -> bool:
    predicate = predicate_of(op)
    if predicate < 6:
        # A truth value is the number -1.
        a, b = (-int(x) if isinstance(x, bool) else x for x in (a, b))
        return bool(_PREDICATES[predicate](a, b))
    return bool(_PREDICATES[predicate - 4](_unsigned(op, a), _unsigned(op, b)))


def _from_elements(op: ir.Operation, *xs: int) -> np.ndarray:
    type_ = op.results[0].type
    return np.array(xs, element_dtype(type_.element_type)).reshape(type_.shape)


def _splat(op: ir.Operation, x: Any, *sizes: int) -> np.ndarray:
    return np.full(_shape(op, sizes), x, element_dtype(op.results[0].type.element_type))


def _empty(op: ir.Operation, *sizes: int) -> np.ndarray:
    """Contents that are seen in the result of whatever reads them."""
    dtype = element_dtype(op.results[0].type.element_type)
    return np.full(_shape(op, sizes), np.nan if dtype.kind in "fc" else np.ones((), dtype), dtype)


def _shape(op: ir.Operation, sizes: tuple[int, ...]) -> list[int]:
    dynamic = iter(sizes)
    return [size if size >= 0 else next(dynamic) for size in op.results[0].type.shape]


UPSTREAM: dict[str, Callable[..., Any]] = {
    "tensor.dim": lambda op, x, axis: x.shape[axis],
    "tensor.cast": lambda op, x: x,
    "tensor.extract": lambda op, x, *indices: x[tuple(indices)].item(),
    "tensor.from_elements": _from_elements,
    "tensor.splat": _splat,
    "tensor.empty": _empty,
    "arith.index_cast": _cast,
    "arith.index_castui": _unsigned_extended,
    "arith.extsi": lambda op, x: _wrapped(op, -int(x) if isinstance(x, bool) else int(x)),
    "arith.extui": _unsigned_extended,
    "arith.trunci": _cast,
    "arith.addi": _signed(lambda a, b: a + b),
    "arith.subi": _signed(lambda a, b: a - b),
    "arith.muli": _signed(lambda a, b: a * b),
    "arith.divsi": _signed(_quotient),
    "arith.remsi": _signed(lambda a, b: a - b * _quotient(a, b)),
    "arith.floordivsi": _signed(lambda a, b: a // b),
    "arith.ceildivsi": _signed(lambda a, b: -(-a // b)),
    "arith.divui": _on_unsigned(lambda a, b: a // b),
    "arith.remui": _on_unsigned(lambda a, b: a % b),
    "arith.ceildivui": _on_unsigned(lambda a, b: -(-a // b)),
    "arith.maxsi": _signed(max),
    "arith.minsi": _signed(min),
    "arith.maxui": _on_unsigned(max),
    "arith.minui": _on_unsigned(min),
    "arith.andi": _signed(lambda a, b: a & b),
    "arith.ori": _signed(lambda a, b: a | b),
    "arith.xori": _signed(lambda a, b: a ^ b),
    "arith.shli": _signed(lambda a, b: a << b),
    "arith.shrsi": _signed(lambda a, b: a >> b),
    "arith.shrui": _on_unsigned(lambda a, b: a >> b),
    "arith.cmpi": _compare,
    "arith.select": lambda op, condition, a, b: a if condition else b,
}


_POISON = 0xA5  # in every byte that has not been written


def _buffer(op: ir.Operation, *sizes: int) -> list[np.ndarray]:
    dtype = element_dtype(op.attributes["type"].value.element_type)
    if dtype == np.bool_:
        return [np.ones(sizes, dtype)]
    count = int(np.prod(sizes, dtype=np.int64)) * dtype.itemsize
    return [np.full(count, _POISON, np.uint8).view(dtype).reshape(sizes)]


def _split(op: ir.Operation, buffer: np.ndarray, *sizes: int) -> list[np.ndarray]:
    axis = axis_of(op)
    if sum(sizes) != buffer.shape[axis] or min(sizes) < 0:
        raise ValueError(f"write_split: parts of sizes {sizes} are not axis {axis} of {buffer.shape}")
    return np.split(buffer, np.cumsum(sizes)[:-1], axis)


def _view(op: ir.Operation, buffer: np.ndarray, *sizes: int) -> list[np.ndarray]:
    if "order" in op.attributes:
        order = axes_order(op)
        dropped = tuple(axis for axis in range(buffer.ndim) if axis not in order)
        ranks = {axis: position for position, axis in enumerate(sorted(x for x in order if x >= 0))}
        moved = np.squeeze(buffer, dropped).transpose([ranks[axis] for axis in order if axis >= 0])
        # The ellipsis makes it a view also where no axis is left.
        return [moved[(..., *(np.newaxis if axis < 0 else slice(None) for axis in order))]]
    if not buffer.flags.c_contiguous:
        raise ValueError(f"write_view: a part with strides {buffer.strides} cannot be reshaped")
    view = buffer.reshape(sizes)
    if buffer.size and not np.shares_memory(view, buffer):
        raise ValueError("write_view: the reshaped part is a copy")
    return [view]


def _write(op: ir.Operation, value: np.ndarray, buffer: np.ndarray) -> list[None]:
    if value.shape != buffer.shape:
        raise ValueError(f"write: a value of shape {value.shape} does not fit {buffer.shape}")
    buffer[...] = value
    return [None]


def _join(op: ir.Operation, buffer: np.ndarray, *tokens: None) -> list[np.ndarray]:
    return [buffer]


WRITES: dict[str, Callable[..., list[Any]]] = {
    "graphc.write_buffer": _buffer,
    "graphc.write_split": _split,
    "graphc.write_view": _view,
    "graphc.write": _write,
    "graphc.write_join": _join,
}


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
    """True if operations of a name, such as `graphc.add`, have a meaning here."""
    dialect, _, own = name.partition(".")
    if name in _Frame._SPECIAL or name in BODY or name in WRITES or name in UPSTREAM:
        return True
    return dialect == "graphc" and (own in SIGNATURES or own == "random" or has_reference(own))
