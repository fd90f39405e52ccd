# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""A kernel under construction: written in the place of what it replaces, then moved to the gpu module."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from contextlib import contextmanager

from graphc.ir import build
from graphc.ir.helpers import callee_of
from graphc.ir.value import as_index, parts_of, smaller
from graphc.ir.walk import (
    blocks_of,
    copied,
    copy_with,
    definition,
    inputs_of,
    named_attributes,
    symbol_of,
    use_instead,
    walk,
)
from graphc.lowering.carried import span
from graphc.passes.gpu._notation import global_position
from graphc_dialects._base import constant_value
from graphc_dialects._mlir import ir
from graphc_runtime.record import record

MODULE = "kernels"
_SHARED, _ALIGNMENTS = "builtin.unrealized_conversion_cast", "workgroup_attrib_attrs"
_LOADED = ("gpu", "vector", "nvgpu", "nvvm")


# So many threads of a block may have all the registers that a thread can have.
_UNLIMITED = 256
# The most blocks of a grid along y and z, and, of those along x, as many as are worth it: threads stride over
# what is left.
GRID_ROWS, GRID = 65535, 1 << 20


@record(frozen=True)
class Machine:
    """A device: by these numbers passes choose grids and forms of kernels, in the call where sizes are not
    known, and `graphc_tools.gpu.performance` predicts times.

    Attributes:
        processors: multiprocessors.
        clock: cycles a microsecond.
        bandwidth: bytes of memory a microsecond, as copies reach it.
        cache: bytes of the second-level cache.
        narrow: part of the bandwidth that warps reach whose requests are of 4 sectors, 4 bytes a thread.
        sectors: of 32 bytes that a multiprocessor gets a cycle from the second-level cache.
        operations: of warps that a multiprocessor begins a cycle, as kernels reach it.
        latency: microseconds from a request to its data, on a busy device.
        launch: microseconds from one kernel's end to the next one's beginning.
        threads, blocks, registers, shared: what a multiprocessor has room for; bytes of shared memory.
        step, read: nanoseconds of a step of a loop that a block runs, besides reading a matrix, of which it
            reads so many bytes a nanosecond.
        kept_step: nanoseconds of such a step where the matrix is kept on the multiprocessor.
        product, others: nanoseconds of a product as a launch in a loop, at least, and of what else a step
            launches.
        multiplied: numbers of float32 that the device multiplies in a nanosecond.
        request, request_rows: microseconds that a library takes for a matrix; rows that make it one more.
        matrices: that our kernels work on at a time.
        row, cubes: microseconds that such a kernel takes for a row; how many cubes of rows take one. Both, as
            those of requests, follow from factors of 2048 and of 32 rows.
    """

    processors: int = 132
    clock: float = 1980.0
    bandwidth: float = 4.2e6
    cache: float = 50e6
    narrow: float = 0.75
    sectors: float = 2.0
    operations: float = 2.2
    latency: float = 0.8
    launch: float = 2.0
    threads: int = 2048
    blocks: int = 32
    registers: int = 65536
    shared: int = 227 << 10
    step: int = 2000
    read: int = 42
    kept_step: int = 1100
    product: int = 12_000
    others: int = 6000
    multiplied: int = 15_000
    request: int = 60
    request_rows: int = 2
    matrices: int = 512
    row: int = 4
    cubes: int = 3600


H200 = Machine()


class Kernel:
    """A `gpu.func`, and its launch from the host function.

    Its body may use values of the host function: constants are made again, all else becomes an argument.

    Args:
        anchor: the operation that the launch stands before; it has to be erased by the caller.
        kind: the first part of the kernel's name.
    """

    def __init__(self, anchor: ir.Operation, kind: str) -> None:
        self._anchor, self._kind = anchor, kind
        self._shared: list[ir.Operation] = []
        self._alignments: list[int | None] = []
        self._limits: dict[str, ir.Attribute] = {}
        with ir.InsertionPoint(anchor), anchor.location:
            self._place = ir.Operation.create("scf.execute_region", regions=1)
            self._block = ir.Block.create_at_start(self._place.regions[0], [])

    @contextmanager
    def body(self) -> Iterator[None]:
        """Operations that are made inside belong to the kernel."""
        with ir.InsertionPoint(self._block), self._anchor.location:
            yield

    @contextmanager
    def host(self) -> Iterator[None]:
        """Operations that are made inside run on the host, before the launch."""
        with ir.InsertionPoint(self._place), self._anchor.location:
            yield

    def take(self, op: ir.Operation) -> None:
        """Moves an operation of the host to the end of the body."""
        self._block.append(op)

    def shared(self, shape: Sequence[int], element: ir.Type, *, alignment: int | None = None) -> ir.Value:
        """A buffer in shared memory, one a block of threads; the alignment of its address is in bytes, if it
        has to be more than that of elements.
        """
        space = ir.Attribute.parse("#gpu.address_space<workgroup>")
        memref = ir.MemRefType.get(list(shape), element, None, space)
        with ir.InsertionPoint.at_block_begin(self._block), self._anchor.location:
            made = ir.Operation.create(_SHARED, results=[memref])
        self._shared.append(made)
        self._alignments.append(alignment)
        return made.results[0]

    def copy(self, function: ir.Operation, arguments: Sequence[ir.Value]) -> None:
        """The body of another kernel, of these arguments, at the insertion point, with its limits."""
        named, block = named_attributes(function), function.regions[0].blocks[0]
        self._limits |= {name: value for name, value in named.items() if name.startswith("nvvm.")}
        given, count = list[ir.Value](block.arguments), len(arguments)
        new = dict(zip(given, arguments, strict=False))
        said = named.get(_ALIGNMENTS, ir.ArrayAttr.get([ir.DictAttr.get({})] * len(given[count:])))
        for attribution, attributes in zip(given[count:], ir.ArrayAttr(said), strict=True):
            kind, known = ir.MemRefType(attribution.type), ir.DictAttr(attributes)
            alignment = ir.IntegerAttr(known["llvm.align"]).value if "llvm.align" in known else None
            new[attribution] = self.shared(kind.shape, kind.element_type, alignment=alignment)
        for op in list(block.operations)[:-1]:
            copy_with(op.operation, new)

    def limit(self, threads: int, blocks: int = 1) -> None:
        """Registers of a thread are so few that some blocks of so many threads are on a multiprocessor.

        Without that, a device refuses blocks of many threads whose registers are more than it has.
        """
        word = ir.IntegerType.get_signless(32)
        self._limits["nvvm.maxntid"] = ir.DenseI32ArrayAttr.get([threads, 1, 1])
        self._limits["nvvm.minctasm"] = ir.IntegerAttr.get(word, blocks)

    @contextmanager
    def each(self, count: ir.Value, threads: int, most: int = GRID) -> Iterator[ir.Value]:
        """The body and the launch of a kernel whose threads, so many a block, share the numbers below a count
        of the host, in at most so many blocks.
        """
        with self.host():
            grid = blocks_for(count, threads, most)
        with self.body(), span(count, *global_position()) as number:
            yield number
        self.launch([grid], [threads])

    def launch(self, grid: Sequence[ir.Value | int], threads: Sequence[ir.Value | int]) -> ir.Operation:
        """Ends the kernel; gives its launch. Axes of grid and blocks that are left out have size 1."""
        sizes = [x if isinstance(x, int) else build.constant_value(x) for x in threads]
        known = [size for size in sizes if size is not None]
        if len(known) == len(sizes) and math.prod(known) > _UNLIMITED and not self._limits:
            self.limit(math.prod(known))
        kernels = _kernels(module_of(self._anchor))
        name = f"{self._kind}_{len(kernels.operations)}"
        captured = inputs_of(self._place)
        constants = [value for value in captured if _is_constant(value)]
        arguments = [value for value in captured if not _is_constant(value)]
        with self._anchor.location:
            self._define(kernels, name, arguments, constants)
            with ir.InsertionPoint(self._place):
                given = [as_index(x) for side in (grid, threads) for x in [*side, 1, 1, 1][:3]]
                segments = [0, 1, 1, 1, 1, 1, 1, 0, 0, 0, 0, len(arguments), 0]
                attributes = {
                    "kernel": ir.Attribute.parse(f"@{MODULE}::@{name}"),
                    "operandSegmentSizes": ir.DenseI32ArrayAttr.get(segments),
                }
                operands = [*given, *arguments]
                launch = ir.Operation.create("gpu.launch_func", operands=operands, attributes=attributes)
        self._place.erase()
        return launch

    def _define(
        self, kernels: ir.Block, name: str, arguments: list[ir.Value], constants: list[ir.Value]
    ) -> None:
        types = [value.type for value in arguments]
        word = ir.IntegerType.get_signless(64)
        attributes = {
            "sym_name": ir.StringAttr.get(name),
            "function_type": ir.TypeAttr.get(ir.FunctionType.get(types, [])),
            "kernel": ir.UnitAttr.get(),
            "workgroup_attributions": ir.IntegerAttr.get(word, len(self._shared)),
        }
        attributes |= self._limits
        if any(self._alignments):
            attributes[_ALIGNMENTS] = ir.ArrayAttr.get(
                [
                    ir.DictAttr.get({} if size is None else {"llvm.align": ir.IntegerAttr.get(word, size)})
                    for size in self._alignments
                ]
            )
        with ir.InsertionPoint(kernels):
            function = ir.Operation.create("gpu.func", attributes=attributes, regions=1)
        shared = [op.results[0] for op in self._shared]
        block = ir.Block.create_at_start(function.regions[0], [*types, *(value.type for value in shared)])
        new: dict[ir.Value, ir.Value] = dict(zip([*arguments, *shared], block.arguments, strict=True))
        with ir.InsertionPoint(block):
            for value in constants:
                copied(value, new, lambda op: True)
            end = ir.Operation.create("gpu.return")
        for op in [op.operation for op in self._block.operations]:
            if op not in self._shared:
                op.move_before(end)
        use_instead(function, new)
        calls = {callee_of(op) for op in walk(function) if op.name == "func.call"}
        missing = calls - {symbol_of(op.operation) for op in kernels.operations}
        for op in module_of(self._anchor).regions[0].blocks[0].operations if missing else ():
            if op.operation.name == "func.func" and symbol_of(op.operation) in missing:
                with ir.InsertionPoint.at_block_begin(kernels):
                    op.operation.clone()


def _is_constant(value: ir.Value) -> bool:
    """True if a value is a constant, or a complex number of two."""
    op = definition(value, "arith.constant", "complex.constant", "complex.create")
    return op is not None and all(map(_is_constant, op.operands))


def module_of(op: ir.Operation) -> ir.Operation:
    module = op
    while module.name != "builtin.module":
        module = module.parent.operation
    return module


def kernels_of(module: ir.Operation) -> list[ir.Operation]:
    """The kernels of a module, and what these call."""
    outer = [op.operation for op in module.regions[0].blocks[0].operations]
    blocks = [block for op in outer if op.name == "gpu.module" for block in blocks_of(op)]
    return [op.operation for block in blocks for op in block.operations]


def _kernels(module: ir.Operation) -> ir.Block:
    """The block of the gpu module, which is made if there is none."""
    body = module.regions[0].blocks[0]
    for op in body.operations:
        if op.operation.name == "gpu.module":
            return op.operation.regions[0].blocks[0]
    for dialect in _LOADED:
        # Nothing that was parsed may have used them.
        _ = module.context.dialects[dialect]
    module.attributes["gpu.container_module"] = ir.UnitAttr.get()
    with ir.InsertionPoint.at_block_begin(body), module.location:
        made = ir.Operation.create(
            "gpu.module", attributes={"sym_name": ir.StringAttr.get(MODULE)}, regions=1
        )
        return ir.Block.create_at_start(made.regions[0], [])


def blocks_for(count: ir.Value, each: ir.Value | int, limit: int) -> ir.Value:
    """Number of blocks of `each` that make `count`, at most `limit`."""
    return smaller(parts_of(count, each), limit)


def block_shape(columns: ir.Value, threads: int) -> tuple[ir.Value, ir.Value]:
    """Threads of a block along the columns and along the rows: few of them idle where rows are short."""
    width = build.const_index(4)
    for least, wide in ((16, 32), (128, threads)):
        width = build.select(columns > least, wide, width)
    return width, build.const_index(threads) // width


def allocate(sizes: Sequence[ir.Value | int], element: ir.Type) -> ir.Value:
    """A new array of the device."""
    known = [constant_value(size) for size in sizes]
    shape = [build.DYNAMIC if size is None else size for size in known]
    dynamic = [size for size, found in zip(sizes, known, strict=True) if found is None]
    segments = ir.DenseI32ArrayAttr.get([len(dynamic), 0])
    memref = ir.MemRefType.get(shape, element)
    return build.create("memref.alloc", [memref], dynamic, operandSegmentSizes=segments).result
