# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Runs functions of the buffer stage, with memory, and notes which buffers each operation really accesses."""

from __future__ import annotations

import operator
from collections.abc import Sequence
from typing import Any

import numpy as np

from graphc.library.places import Interval, aligned, pack
from graphc.passes.buffer.plan_memory import attached
from graphc_dialects._mlir import ir

_ARITH = {
    "addi": operator.add,
    "subi": operator.sub,
    "muli": operator.mul,
    "andi": operator.and_,
    "maxsi": max,
    "addf": operator.add,
    "mulf": operator.mul,
}
_SAME = ("memref.cast", "arith.index_cast", "llvm.inttoptr", "memref.extract_aligned_pointer_as_index")


class Workspace:
    """Memory of a workspace, poisoned like that of compiled code, and the offsets of its buffers."""

    def __init__(self, size: int, offsets: Sequence[int] = ()) -> None:
        self.bytes = np.full(size, 0xFF, np.uint8)
        self.offsets = offsets

    def buffer(self, offset: int, size: int) -> np.ndarray:
        """A part of it, whose lifetime begins."""
        assert 0 <= offset <= offset + size <= len(self.bytes), "outside of the workspace"
        assert offset % 64 == 0, "not aligned"
        part = self.bytes[offset : offset + size]
        part[:] = 0xFF
        return part


class Machine:
    """Runs the functions of a module.

    Attributes:
        accesses: for each allocation of the function's block, in order, the positions of the operations of
            the block that read or write its memory.
    """

    def __init__(self, module: Any) -> None:
        self._functions = {op.operation.attributes["sym_name"].value: op.operation for op in module.body}
        self._records = attached(module)
        self._values: dict[Any, Any] = {}
        self._position = 0
        self._owner: dict[int, int] = {}
        self._keep: list[np.ndarray] = []
        self.accesses: list[set[int]] = []

    def run(self, name: str, arguments: Sequence[Any]) -> None:
        """Runs a function whose results are written to its arguments."""
        block = self._functions[name].regions[0].blocks[0]
        self._values.update(zip(block.arguments, arguments, strict=True))
        for position, op in enumerate(block.operations):
            self._position = position
            if op.operation.name == "memref.alloc":
                self.accesses.append(set())
            self._step(op.operation)

    def _block(self, block: Any, arguments: Sequence[Any]) -> list[Any]:
        """Runs a block; the operands of its terminator."""
        self._values.update(zip(block.arguments, arguments, strict=True))
        operations = [op.operation for op in block.operations]
        for op in operations[:-1]:
            self._step(op)
        return [self._values[x] for x in operations[-1].operands]

    def _step(self, op: Any) -> None:
        results = self._results(op, [self._values[x] for x in op.operands])
        for value, result in zip(op.results, results, strict=True):
            self._values[value] = result

    def _results(self, op: Any, x: list[Any]) -> list[Any]:
        name = op.name
        if name in _SAME:
            return x[:1]
        if name.startswith("arith."):
            return [self._arith(op, name[6:], x)]
        if name.startswith("memref."):
            return self._memref(op, name[7:], x)
        if name == "scf.for":
            values = x[3:]
            for i in range(x[0], x[1], x[2]):
                values = self._block(op.regions[0].blocks[0], [i, *values])
            return values
        if name == "scf.if":
            return self._block(op.regions[0 if x[0] else 1].blocks[0], [])
        if name == "func.call":
            return self._call(ir.FlatSymbolRefAttr(op.attributes["callee"]).value, x)
        assert name == "func.return", name
        return []

    def _arith(self, op: Any, name: str, x: list[Any]) -> Any:
        if name == "constant":
            return op.attributes["value"].value
        if name == "select":
            return x[1] if x[0] else x[2]
        if name == "cmpf":
            return x[0] <= x[1]
        return float(x[0]) if name == "sitofp" else _ARITH[name](*x)

    def _memref(self, op: Any, name: str, x: list[Any]) -> list[Any]:
        if name in ("alloc", "alloca"):
            dynamic = iter(x)
            shape = [size if size >= 0 else next(dynamic) for size in op.results[0].type.shape]
            return [self._allocate(shape, _dtype(op.results[0].type), tracked=name == "alloc")]
        if name == "dim":
            return [x[0].shape[x[1]]]
        if name == "load":
            self._access(x[0])
            return [x[0][tuple(x[1:])]]
        if name == "store":
            self._access(x[1])
            x[1][tuple(x[2:])] = x[0]
            return []
        if name == "copy":
            self._access(*x)
            x[1][...] = x[0]
            return []
        if name == "subview":
            return [x[0][x[1] : x[1] + 4]]
        if name == "collapse_shape":
            return [x[0].reshape(-1)]
        assert name == "view", name
        dynamic = iter(x[2:])
        kind = op.results[0].type
        shape = [size if size >= 0 else next(dynamic) for size in kind.shape]
        return [x[0].view(_dtype(kind)).reshape(shape)]

    def _allocate(self, shape: list[int], dtype: Any, *, tracked: bool) -> np.ndarray:
        array = np.full(shape, -1).astype(dtype)
        array.view(np.uint8)[...] = 0xFF
        if tracked:
            self._owner[id(array)] = len(self.accesses) - 1
            self._keep.append(array)
        return array

    def _access(self, *arrays: np.ndarray) -> None:
        for array in arrays:
            while array.base is not None:
                array = array.base
            owner = self._owner.get(id(array))
            if owner is not None:
                self.accesses[owner].add(self._position)

    def _call(self, name: str, x: list[Any]) -> list[Any]:
        if name.startswith("graphc_part_"):
            return self._block(self._functions[name].regions[0].blocks[0], x)
        if name.startswith("graphc_workspace_"):
            return [Workspace(x[0])]
        if name.startswith("graphc_plan_"):
            return [self._plan(int(name.rpartition("_")[2]), x[0])]
        if name == "graphc_buffer":
            return [x[0].buffer(x[1], x[2])]
        if name == "graphc_planned_buffer":
            return [x[0].buffer(x[0].offsets[x[1]], x[2])]
        if name == "graphc_end":
            x[0][:] = 0xFF
            return []
        assert name == "use", name
        self._access(x[0])
        x[0].reshape(-1)[:2] += 1.0
        return []

    def _plan(self, number: int, sizes: np.ndarray) -> Workspace:
        entry = next(w for record in self._records for w in record["workspaces"] if w["number"] == number)
        lengths = [aligned(b["units"] * int(sizes[b["key"]])) for b in entry["buffers"]]
        layout = pack(lengths, [Interval(b["first"], b["last"]) for b in entry["buffers"]])
        return Workspace(layout.size, [0] * len(entry["keys"]) + layout.offsets)


def _dtype(kind: Any) -> Any:
    return {"f64": np.float64, "f32": np.float32, "i64": np.int64}[str(kind.element_type)]
