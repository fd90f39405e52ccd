# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""The rest of `@main` and `@shapes` once there are kernels, as a schedule: one operation, one step.

After which operation of a block an array of it is not needed any more.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import ClassVar

from graphc.errors import CompileError, UnsupportedError
from graphc.ir import build
from graphc.ir.build import dtype_of
from graphc.ir.diagnostics import node_of
from graphc.ir.helpers import callee_of, declared
from graphc.ir.lifetimes import VIEWS
from graphc.ir.walk import definition, functions, seen_through, symbol_of, walk
from graphc.library.helpers import Helper, LibraryAsked, LibraryFound
from graphc.lowering.calls import ADDRESS
from graphc.lowering.random import BUFFERS
from graphc.passes.gpu._host import (
    ARITHMETIC,
    PREDICATES,
    SAME,
    UNSIGNED,
    groups,
    is_address,
    is_of_host,
    product_of,
)
from graphc_dialects._mlir import ir
from graphc_runtime.cuda import schedule as sc
from graphc_runtime.errors import Site
from graphc_runtime.index_arithmetic import muli

_VIEWS = VIEWS | {"memref.extract_strided_metadata", ADDRESS}
_PASS_ON = frozenset({"scf.for", "scf.while", "scf.if", "scf.yield", "scf.condition", "func.return"})


def last_uses(block: ir.Block) -> dict[ir.Operation, list[ir.Value]]:
    """For each operation of a block, the arrays made in it that nothing after it uses.

    Arrays that loops or branches pass on are not among them; they live until the call ends.
    """
    operations = [op.operation for op in block.operations]
    position = {op: number for number, op in enumerate(operations)}
    found: dict[ir.Operation, list[ir.Value]] = {}
    for op in operations:
        # Functions of the host give new arrays.
        for result in op.results if op.name in ("memref.alloc", "func.call") else ():
            if not isinstance(result.type, ir.MemRefType):
                continue
            last = _last(result, position, position[op])
            if last is not None:
                found.setdefault(operations[last], []).append(result)
    return found


def _last(array: ir.Value, position: dict[ir.Operation, int], last: int) -> int | None:
    """Place in the block at which a value or a view of it is used last; None if it is passed on."""
    for use in array.uses:
        user = use.owner.operation
        if user.name in _PASS_ON:
            return None
        around = user
        while around not in position:
            around = around.parent.operation
        last = max(last, position[around])
        if user.name in _VIEWS or user.name == "arith.select":
            for result in user.results:
                if isinstance(result.type, ir.MemRefType) or user.name == ADDRESS:
                    inner = _last(result, position, last)
                    if inner is None:
                        return None
                    last = inner
    return last


# Steps that ask something of the device.
_ASKING = (
    *(sc.Allocate, sc.Launch, sc.Copy, sc.Upload, sc.Download, sc.HostCall, sc.Read, sc.Product, sc.Ask),
)


def checks(module: ir.Module) -> list[ir.Operation]:
    """The checks of a module, in the order of their sites."""
    return [op for function in functions(module) for op in walk(function) if op.name == "graphc.check"]


def site_of(check: ir.Operation) -> Site:
    """Message and origin of a check that fails."""
    message, error = (ir.StringAttr(check.attributes[name]).value for name in ("message", "error"))
    return Site(message, error, node_of(check))


def schedule_of(module: ir.Module, host: Sequence[str] = ()) -> sc.Schedule:
    """The schedule of a module whose nests are launches.

    Args:
        module: the module.
        host: names of the functions that it calls on the host.

    Raises:
        UnsupportedError: something in it cannot be done on a device, and has no kernel.
    """
    status = {check: number for number, check in enumerate(checks(module), 1)}
    called = {name + BUFFERS: number for number, name in enumerate(host)}
    helpers = declared(module)
    programs = {
        symbol_of(function): _Program(function, status, called, helpers).program()
        for function in functions(module)
    }
    shapes = programs.get("shapes", sc.Program(parameters=0, registers=0, steps=()))
    return sc.Schedule(main=programs["main"], shapes=shapes, functions=len(host))


class _Program:
    """One function."""

    def __init__(
        self,
        function: ir.Operation,
        status: dict[ir.Operation, int],
        called: dict[str, int],
        helpers: dict[str, Helper],
    ) -> None:
        self._block = function.regions[0].blocks[0]
        self._status, self._called, self._helpers = status, called, helpers
        self._registers: dict[ir.Value, int] = {}
        self._count = 0
        self._steps: list[sc.Step] = []
        self._on_host: set[int] = set()
        # Launches of products that a library may compute.
        self._products: dict[ir.Operation, list[ir.Operation]] = {}
        for argument in self._block.arguments:
            self._define(argument)

    def program(self) -> sc.Program:
        parameters = self._count
        results = self._run(self._block)
        return sc.Program(parameters, self._count, tuple(self._steps), results)

    def _define(self, value: ir.Value) -> int:
        self._registers[value] = self._count
        self._count += 1
        return self._count - 1

    def _fresh(self) -> int:
        self._count += 1
        return self._count - 1

    def _all(self, values: Sequence[ir.Value]) -> tuple[int, ...]:
        return tuple(self._registers[value] for value in values)

    def _run(self, block: ir.Block) -> tuple[int, ...]:
        """Appends the steps of a block; returns what its terminator passes on."""
        ends = last_uses(block)
        operations = [op.operation for op in block.operations]
        self._products |= groups(operations)
        for op in operations:
            if op.name in ("func.return", "scf.yield", "scf.condition"):
                return self._all(list(op.operands))
            first = len(self._steps)
            self._one(op)
            node = node_of(op)
            # What may fail says for which operation: steps in blocks have been here before.
            self._steps[first:] = [
                replace(step, op=node) if isinstance(step, _ASKING) and not step.op else step
                for step in self._steps[first:]
            ]
            for buffer in ends.get(op, ()):
                if self._registers[buffer] not in self._on_host:
                    self._steps.append(sc.Free(self._registers[buffer]))
        return ()

    def _one(self, op: ir.Operation) -> None:
        dialect, _, name = op.name.partition(".")
        rule = self._RULES.get(op.name)
        if rule is not None:
            rule(self, op)
        elif op.name == "memref.cast" or (op.name in SAME and is_of_host(op)):
            self._registers[op.results[0]] = self._registers[op.operands[0]]
        elif dialect == "arith" and (name in ARITHMETIC or name in UNSIGNED) and is_of_host(op):
            self._compute(op, UNSIGNED.get(name, name))
        else:
            raise self._refusal(op)

    def _refusal(self, op: ir.Operation) -> UnsupportedError:
        # Kernels of the library are called with the addresses of buffers.
        users = [use.owner for result in op.results for use in result.uses]
        callee = next(filter(None, map(callee_of, [op, *users])), "")
        name = callee.removeprefix("graphc_kernel.").partition(".")[0] or op.name
        return UnsupportedError(
            f"there is no kernel for {name}, and it cannot run on the host here; compute this part with a "
            "function of mode 'fast_run', and give its result to the function of mode 'cuda'",
            node_of(op),
        )

    def _compute(self, op: ir.Operation, name: str) -> None:
        operands = self._all(list(op.operands))
        self._steps.append(sc.Compute(self._define(op.results[0]), name, operands))

    # -- numbers -------------------------------------------------------------------------------------------

    def _constant(self, op: ir.Operation) -> None:
        value = op.attributes["value"]
        if isinstance(value, ir.BoolAttr | ir.IntegerAttr | ir.FloatAttr):
            self._steps.append(sc.Constant(self._define(op.results[0]), value.value))
            return
        raise CompileError(f"{op.location}: a constant array in host code; please report this")

    def _number(self, value: float) -> int:
        result = self._fresh()
        self._steps.append(sc.Constant(result, value))
        return result

    def _compare(self, op: ir.Operation) -> None:
        self._compute(op, PREDICATES[ir.IntegerAttr(op.attributes["predicate"]).value])

    def _dim(self, op: ir.Operation) -> None:
        axis = build.constant_value(op.operands[1])
        assert axis is not None, "axes are constants"
        result, array = self._define(op.results[0]), self._registers[op.operands[0]]
        self._steps.append(sc.Dim(result, array, axis))

    def _read(self, op: ir.Operation) -> None:
        array, *indices = self._all(list(op.operands))
        self._steps.append(sc.Read(self._define(op.results[0]), array, tuple(indices)))

    def _check(self, op: ir.Operation) -> None:
        self._steps.append(sc.Check(self._status[op], *self._all(list(op.operands))))

    # -- arrays --------------------------------------------------------------------------------------------

    def _allocate(self, op: ir.Operation) -> None:
        memref = ir.MemRefType(op.results[0].type)
        dynamic = iter(self._all(list(op.operands)))
        sizes = tuple(self._number(size) if size >= 0 else next(dynamic) for size in memref.shape)
        dtype = dtype_of(memref.element_type).name
        self._steps.append(sc.Allocate(self._define(op.results[0]), dtype, sizes))

    def _metadata(self, op: ir.Operation) -> None:
        """Of arguments and allocations, which are contiguous, and of what loops and branches give."""
        array = self._registers[op.operands[0]]
        rank = ir.MemRefType(op.operands[0].type).rank
        base, offset, *rest = op.results
        self._registers[base] = array
        if any(use.owner.operation.name != "memref.reinterpret_cast" for use in base.uses):
            # What is used itself is the first element of the memory, an array without axes.
            self._steps.append(sc.View(self._define(base), array, self._number(0), (), ()))
        if not self._is_whole(op.operands[0]):
            self._steps.append(sc.Offset(self._define(offset), array))
            for axis in range(rank):
                self._steps.append(sc.Dim(self._define(rest[axis]), array, axis))
                self._steps.append(sc.Stride(self._define(rest[rank + axis]), array, axis))
            return
        self._registers[offset] = self._number(0)
        stride = self._number(1)
        for axis in reversed(range(rank)):
            size = self._define(rest[axis])
            self._steps.append(sc.Dim(size, array, axis))
            self._registers[rest[rank + axis]] = stride
            if axis:
                wider = self._fresh()
                self._steps.append(sc.Compute(wider, muli.__name__, (stride, size)))
                stride = wider

    def _is_whole(self, value: ir.Value) -> bool:
        """True if an array is an argument of the function, or what was allocated for it."""
        source = seen_through(value, ("memref.cast",))
        made = definition(source, "memref.alloc", "func.call")
        return made is not None or bool(source.owner == self._block)

    def _reinterpret(self, op: ir.Operation) -> None:
        counts = list(ir.DenseI32ArrayAttr(op.attributes["operandSegmentSizes"]))
        array, *rest = self._all(list(op.operands))
        groups = []
        for name, count in zip(("offsets", "sizes", "strides"), counts[1:], strict=True):
            given, rest = iter(rest[:count]), rest[count:]
            static = list(ir.DenseI64ArrayAttr(op.attributes[f"static_{name}"]))
            groups.append([next(given) if x == build.DYNAMIC else self._number(x) for x in static])
        result = self._define(op.results[0])
        (offset,), sizes, strides = groups
        self._steps.append(sc.View(result, array, offset, tuple(sizes), tuple(strides)))

    def _address(self, op: ir.Operation) -> None:
        """Of an array that a library is given, which is passed as it is."""

    def _copy(self, op: ir.Operation) -> None:
        self._steps.append(sc.Copy(*self._all(list(op.operands))))

    def _launch(self, op: ir.Operation) -> None:
        launches = self._products.get(op, [op])
        steps = [self._launch_step(launch) for launch in launches]
        product = product_of(op) if op in self._products else None
        if product is None:
            self._steps += steps
        elif steps:
            named = tuple(replace(step, op=node_of(op)) for step in steps)
            left, right, target = self._all(product.arrays)
            kernels = sc.Block((), named, ())
            self._steps.append(
                sc.Product(left, right, target, product.form, kernels, product.short, product.adds)
            )

    def _launch_step(self, op: ir.Operation) -> sc.Launch:
        counts = list(ir.DenseI32ArrayAttr(op.attributes["operandSegmentSizes"]))
        values = list(op.operands)
        x, y, z, *threads = self._all(values[:6])
        given = values[6 : 6 + counts[11]]
        if any(isinstance(value.type, ir.ComplexType) for value in given):
            raise UnsupportedError(
                "kernels take no complex numbers that are computed apart from arrays; compute this part with "
                "a function of mode 'fast_run', and give its result to the function of mode 'cuda'",
                node_of(op),
            )
        kernel = ir.SymbolRefAttr(op.attributes["kernel"]).value[-1]
        types = tuple(_type_name(value.type) for value in given)
        block = (threads[0], threads[1], threads[2])
        return sc.Launch(kernel, (x, y, z), block, self._all(given), types)

    def _call(self, op: ir.Operation) -> None:
        """Of a function of the host; what only other such functions read stays there."""
        function, helper = self._called.get(callee_of(op)), self._helpers.get(callee_of(op))
        if isinstance(helper, LibraryFound):
            self._steps.append(sc.Has(self._define(op.results[0]), helper.library))
            return
        if isinstance(helper, LibraryAsked):
            *given, count = op.operands
            arrays = [x.owner.operands[0] for x in given if is_address(x)]
            numbers = self._all(given[len(arrays) :])
            self._steps.append(sc.Ask(helper.routine, self._all(arrays), numbers, self._registers[count]))
            return
        if function is None:
            raise self._refusal(op)
        arguments = []
        for operand in op.operands:
            value = self._registers[operand]
            if isinstance(operand.type, ir.MemRefType) and value not in self._on_host:
                here = self._fresh()
                self._steps.append(sc.Download(here, value))
                value = here
            arguments.append(value)
        found = tuple(self._fresh() for _ in op.results)
        self._steps.append(sc.HostCall(function, tuple(arguments), found))
        for result, here in zip(op.results, found, strict=True):
            if all(self._is_host_use(use.owner.operation) for use in result.uses):
                self._registers[result] = here
                self._on_host.add(here)
            else:
                self._steps.append(sc.Upload(self._define(result), here))

    def _is_host_use(self, op: ir.Operation) -> bool:
        """True if an operation takes an array of the host."""
        if op.name == "memref.cast":
            return all(self._is_host_use(use.owner.operation) for use in op.results[0].uses)
        return op.name in ("memref.dim", "memref.load") or callee_of(op) in self._called

    # -- regions -------------------------------------------------------------------------------------------

    def _region(self, block: ir.Block) -> sc.Block:
        arguments = tuple(self._define(argument) for argument in block.arguments)
        outer, self._steps = self._steps, []
        yields = self._run(block)
        steps, self._steps = tuple(self._steps), outer
        return sc.Block(arguments, steps, yields)

    def _if(self, op: ir.Operation) -> None:
        blocks = [self._region(r.blocks[0]) if len(r.blocks) else sc.Block((), (), ()) for r in op.regions]
        results = tuple(self._define(result) for result in op.results)
        self._steps.append(sc.If(self._registers[op.operands[0]], blocks[0], blocks[1], results))

    def _for(self, op: ir.Operation) -> None:
        lower, upper, step, *initial = self._all(list(op.operands))
        body = self._region(op.regions[0].blocks[0])
        results = tuple(self._define(result) for result in op.results)
        self._steps.append(sc.Loop(lower, upper, step, tuple(initial), body, results))

    def _while(self, op: ir.Operation) -> None:
        initial = self._all(list(op.operands))
        before, after = (self._region(region.blocks[0]) for region in op.regions)
        results = tuple(self._define(result) for result in op.results)
        self._steps.append(sc.While(initial, before, after, results))

    _RULES: ClassVar[dict[str, Callable[[_Program, ir.Operation], None]]] = {
        "arith.constant": _constant,
        "arith.cmpi": _compare,
        "func.call": _call,
        "graphc.check": _check,
        "gpu.launch_func": _launch,
        ADDRESS: _address,
        "memref.alloc": _allocate,
        "memref.copy": _copy,
        "memref.dim": _dim,
        "memref.extract_strided_metadata": _metadata,
        "memref.load": _read,
        "memref.reinterpret_cast": _reinterpret,
        "scf.for": _for,
        "scf.if": _if,
        "scf.while": _while,
    }


def _type_name(kind: ir.Type) -> str:
    """The dtype of an argument that is a number; nothing for arrays."""
    if isinstance(kind, ir.MemRefType):
        return ""
    return "int64" if isinstance(kind, ir.IndexType) else dtype_of(kind).name
