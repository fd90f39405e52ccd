# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""The language of device kernels: operators of `graphc.ir.value`, loops, and the names of this module.

| Python | operations |
|---|---|
| `i * width + j < n`, `memory[i, j] = x` | `arith`, `memref` (`graphc/ir/value.py`) |
| `with span(n) as i:`, `with when(i < n):` | `scf.for`, `scf.if` (`graphc/lowering/carried.py`) |
| `carry(n, sums, body)`, `carry_while`, `either` | the same with iter_args and results |
| `with share(n) as i:`, `with cells(rows, columns) as (i, j):` | the same, shared by the threads of a block |
| `thread_id()`, `block_id(1)`, `barrier()`, `shuffled(x, 1)`, `lanes_where(flag)` | `gpu` |
| `added(counts, 1, i)` | `memref.atomic_rmw`: of integers in shared memory, whose sum no order changes |
| `read_vector(memory, place, 4)`, `copy(...)`, `arrived()` | `vector`, asynchronous copies of `nvgpu` |

Shared memory is asked of the kernel that is written, `Kernel.shared`. What is written is checked as it is: by
the interpreter that finds races, and by the assemblers of the vendors.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import AbstractContextManager, contextmanager

from graphc.ir import build
from graphc.ir.build import select
from graphc.ir.value import as_index, bits_as, converted, flag, larger, literal
from graphc.lowering.carried import carry, span, when
from graphc_dialects._mlir import ir

# What kernels of the library (`by_block.py` in its folders) get of it besides what is here.
__all__ = ["as_index", "carry", "flag", "larger", "select", "span", "when"]

WARP = 32
# Indices of x, y and z in attributes of the gpu dialect.
_AXES = ("x", "y", "z")
_LOADS = ("memref.load", "vector.load")
# In the enumeration of what is done to memory at once.
_ADD = 1


def thread_id(axis: int = 0) -> ir.Value:
    """Number of the thread in its block."""
    return _position("thread_id", axis)


def block_id(axis: int = 0) -> ir.Value:
    """Number of the block in the grid."""
    return _position("block_id", axis)


def block_dim(axis: int = 0) -> ir.Value:
    """Threads of a block."""
    return _position("block_dim", axis)


def grid_dim(axis: int = 0) -> ir.Value:
    """Blocks of the grid."""
    return _position("grid_dim", axis)


def _position(kind: str, axis: int) -> ir.Value:
    dimension = ir.Attribute.parse(f"#gpu<dim {_AXES[axis]}>")
    return build.create(f"gpu.{kind}", [build.index_type()], [], dimension=dimension).result


def global_position(axis: int = 0) -> tuple[ir.Value, ir.Value]:
    """Number of a thread in the grid along an axis, and how many there are."""
    width = block_dim(axis)
    return block_id(axis) * width + thread_id(axis), grid_dim(axis) * width


def barrier() -> None:
    """All threads of the block arrive, and see what the others have written."""
    build.create("gpu.barrier", [], [])


def on_first_thread() -> AbstractContextManager[None]:
    """Code of thread 0 of the block alone."""
    return when(thread_id().equals(0))


def split(number: ir.Value, sizes: Sequence[ir.Value]) -> list[ir.Value]:
    """The indices that a number of an element in row-major order stands for."""
    indices: list[ir.Value] = []
    for size in reversed(sizes[1:]):
        indices.insert(0, number % size)
        number = number // size
    return [number, *indices] if sizes else []


@contextmanager
def share(stop: ir.Value, start: ir.Value | int = 0) -> Iterator[ir.Value]:
    """Numbers of a range, shared by the threads of a block."""
    with span(stop, thread_id() + start, block_dim()) as number:
        yield number


@contextmanager
def cells(rows: ir.Value, columns: ir.Value) -> Iterator[tuple[ir.Value, ir.Value]]:
    """Places of a matrix, shared by the threads of a block."""
    with share(rows * columns) as number:
        yield number // columns, number % columns


def zero(kind: ir.Type) -> ir.Value:
    """The number 0."""
    return literal(0, kind)


# -- other lanes of a warp ----------------------------------------------------------------------------------


def shuffled(value: ir.Value, lane: int | ir.Value, mode: str = "xor") -> ir.Value:
    """The value of another lane; whole warps have to get here. Modes are "xor", "up", "down" and "idx"; lanes
    that do not exist give the thread's own value.
    """
    kind = value.type
    lane = word(lane)
    if isinstance(kind, ir.ComplexType):
        parts = [
            shuffled(build.create(f"complex.{part}", [kind.element_type], [value]).result, lane, mode)
            for part in ("re", "im")
        ]
        return build.create("complex.create", [kind], parts).result
    if not isinstance(kind, ir.IntegerType):
        bits = _integer(int(kind.width))
        return bits_as(shuffled(bits_as(value, bits), lane, mode), kind)
    if kind.width < WARP:
        moved = shuffled(converted(value, _integer(32)), lane, mode)
        return converted(moved, kind)
    if kind.width == WARP:
        attribute = ir.Attribute.parse(f"#gpu<shuffle_mode {mode}>")
        results = [_integer(32), _integer(1)]
        return build.create("gpu.shuffle", results, [value, lane, word(WARP)], mode=attribute).results[0]
    # 64 bits as two halves.
    half = literal(32, kind)
    halves = converted(value, _integer(32)), converted(value >> half, _integer(32))
    low, high = [converted(shuffled(part, lane, mode), kind) for part in halves]
    return low | (high << half)


def word(number: ir.Value | int) -> ir.Value:
    """A number with 32 bits."""
    return literal(number, _integer(32)) if isinstance(number, int) else converted(number, _integer(32))


def lanes_where(flag: ir.Value) -> ir.Value:
    """The lanes of the warp for which a flag holds, a bit each of 32; whole warps have to get here."""
    return build.create("gpu.ballot", [_integer(32)], [flag]).result


def lanes_alike(number: ir.Value, bits: int) -> ir.Value:
    """The lanes of the warp whose numbers, of 32 bits, have the same low bits; whole warps get here."""
    alike = word(-1)
    for bit in range(bits):
        clear = (number & (1 << bit)).equals(0)
        # Where the lane's bit is 1, those whose bit is 0 are turned into those whose is not.
        alike = alike & (lanes_where(clear) ^ build.select(clear, word(0), -1))
    return alike


def lanes_before() -> ir.Value:
    """The lanes of the warp before the thread's own, as bits."""
    return (word(1) << converted(thread_id() % WARP, _integer(32))) - 1


def bits_set(number: ir.Value) -> ir.Value:
    """Number of bits that are 1 (population count)."""
    return build.create("math.ctpop", [number.type], [number]).result


def warp_barrier() -> None:
    """All threads of the warp arrive, and see what the others have written."""
    build.create("gpu.barrier", [], [], scope=ir.Attribute.parse("#gpu.barrier_scope<subgroup>"))


def added(counts: ir.Value, number: ir.Value, place: ir.Value) -> ir.Value:
    """Adds an integer to one in shared memory, all at once; gives that before.

    What is before depends on the order of threads, and the sum does not.
    """
    kind = ir.IntegerAttr.get(_integer(64), _ADD)
    operands = [number, counts, place]
    return build.create("memref.atomic_rmw", [number.type], operands, kind=kind).result


def _integer(width: int) -> ir.Type:
    return ir.IntegerType.get_signless(width)


# -- several elements at once -------------------------------------------------------------------------------


def read_vector(memory: ir.Value, place: Sequence[ir.Value | int], lanes: int, alignment: int) -> ir.Value:
    """Neighbouring elements, from a place on, whose address is a multiple of `alignment` bytes."""
    kind = ir.VectorType.get([lanes], memory.type.element_type)
    return build.create(
        "vector.load", [kind], [memory, *map(as_index, place)], alignment=_bytes(alignment)
    ).result


def write_vector(
    values: Sequence[ir.Value], memory: ir.Value, place: Sequence[ir.Value], alignment: int
) -> None:
    """Writes neighbouring elements, from a place on, whose address is a multiple of `alignment` bytes."""
    operands = [vector_of([len(values)], values), memory, *place]
    build.create("vector.store", [], operands, alignment=_bytes(alignment))


def loads_first(block: ir.Block) -> None:
    """Moves all loads of a block, with what they need, before everything else, so that they are under way
    together; nothing of it may write what they read. Loads of shared memory stay where they are.

    An assembler that is short of registers keeps the order in which it finds loads and arithmetic.
    """
    operations = [op.operation for op in block.operations]
    needed: set[ir.Operation] = set()
    for op in reversed(operations):
        is_load = op.name in _LOADS and ir.MemRefType(op.operands[0].type).memory_space is None
        if is_load or op in needed:
            needed.add(op)
            needed.update(x.owner for x in op.operands if not isinstance(x.owner, ir.Block))
    rest = next((op for op in operations if op not in needed), None)
    past = False
    for op in operations:
        if op == rest:
            past = True
        elif past and rest is not None and op in needed:
            op.move_before(rest)


def vector_of(shape: Sequence[int], values: Sequence[ir.Value]) -> ir.Value:
    """A vector of elements."""
    kind = ir.VectorType.get(list(shape), values[0].type)
    return build.create("vector.from_elements", [kind], list(values)).result


def extract(vector: ir.Value, *lane: int) -> ir.Value:
    """An element of a vector."""
    static = ir.DenseI64ArrayAttr.get(list(lane))
    element = vector.type.element_type
    return build.create("vector.extract", [element], [vector], static_position=static).result


def itemsize(memory: ir.Value) -> int:
    """Bytes of an element."""
    return int(build.dtype_of(memory.type.element_type).itemsize)


def _bytes(count: int) -> ir.Attribute:
    return ir.IntegerAttr.get(ir.IntegerType.get_signless(64), count)


# -- from global to shared memory, while threads compute ----------------------------------------------------

# Bytes of a copy, at most and at least.
BYTES, LEAST = 16, 4


def copy(
    source: ir.Value,
    place: Sequence[ir.Value],
    target: ir.Value,
    to: Sequence[ir.Value],
    elements: int,
    wanted: ir.Value,
) -> None:
    """Starts a copy of the thread's to shared memory; `arrived` waits for it.

    So many elements are written in a row: 4, 8 or 16 bytes, at addresses that are multiples of that. Of these
    some are wanted, and read; the others are 0. The place has to be in the source even if none are.
    """
    width = itemsize(source) * elements
    segments = [1, len(to), 1, len(place), 1]
    attributes = {
        "dstElements": ir.IntegerAttr.get(build.index_type(), elements),
        "operandSegmentSizes": ir.DenseI32ArrayAttr.get(segments),
    }
    if width == BYTES:
        # What a block reads once needs no place in the first-level cache.
        attributes["bypassL1"] = ir.UnitAttr.get()
    token = ir.Type.parse("!nvgpu.device.async.token")
    build.create("nvgpu.device_async_copy", [token], [target, *to, source, *place, wanted], **attributes)


def arrived() -> None:
    """The thread waits for all copies that it has started; other threads see them after a barrier."""
    token = ir.Type.parse("!nvgpu.device.async.token")
    group = build.create("nvgpu.device_async_create_group", [token], []).result
    none = ir.IntegerAttr.get(ir.IntegerType.get_signless(32), 0)
    build.create("nvgpu.device_async_wait", [], [group], numGroups=none)
