# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Operations of memref: elements, views, addresses."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace

import numpy as np

from graphc.ir.constants import element_dtype
from graphc_dialects._mlir import ir
from graphc_runtime.index_arithmetic import addi, muli
from graphc_tools.gpu.interpreter import Decoder, Frame, Run, describe, local, require_aligned
from graphc_tools.gpu.memory import BoundsError, KernelError
from graphc_tools.gpu.values import Memref, one, spread

_DYNAMIC = ir.ShapedType.get_dynamic_size()
# In the order of arith's enumeration of kinds.
_ATOMICS: dict[str, Callable[..., np.ndarray]] = {
    **dict.fromkeys(("addf", addi.__name__), np.add),
    "andi": np.bitwise_and,
    "assign": lambda old, new: new,
    "maximumf": np.maximum,
    "maxnumf": np.fmax,
    "maxs": np.maximum,
    "maxu": np.maximum,
    "minimumf": np.minimum,
    "minnumf": np.fmin,
    "mins": np.minimum,
    "minu": np.minimum,
    **dict.fromkeys(("mulf", muli.__name__), np.multiply),
    "ori": np.bitwise_or,
    "xori": np.bitwise_xor,
}


def _access(op: ir.Operation, kind: ir.Type) -> tuple[str, int, int]:
    """Of a load or a store: what it is, the elements of a vector (0 of none), and their alignment."""
    count = kind.shape[0] if isinstance(kind, ir.VectorType) else 0
    alignment = int(op.attributes["alignment"].value) if "alignment" in op.attributes else 1
    return describe(op), count, alignment


def _load(decoder: Decoder, op: ir.Operation) -> Run:
    array, *indices = decoder.slots_of(list(op.operands))
    result, (where, count, alignment) = decoder.slot(op.results[0]), _access(op, op.results[0].type)

    def run(frame: Frame, lanes: np.ndarray) -> None:
        memref, several = frame.memref(array), max(count, 1)
        region, starts = memref.starts([frame.array(i) for i in indices], lanes, several, where)
        require_aligned(region, starts, alignment, where)
        values = np.zeros((frame.threads, several), memref.dtype)
        values[lanes] = region.load(starts, memref.dtype, several, frame.access(where, lanes))
        frame.values[result] = values if count else values[:, 0]

    return run


def _store(decoder: Decoder, op: ir.Operation) -> Run:
    value, array, *indices = decoder.slots_of(list(op.operands))
    where, count, alignment = _access(op, op.operands[0].type)

    def run(frame: Frame, lanes: np.ndarray) -> None:
        memref = frame.memref(array)
        region, starts = memref.starts([frame.array(i) for i in indices], lanes, max(count, 1), where)
        require_aligned(region, starts, alignment, where)
        values = spread(frame.array(value), lanes).astype(memref.dtype, copy=False)
        region.store(starts, values if count else values[:, None], frame.access(where, lanes))

    return run


def _atomic(decoder: Decoder, op: ir.Operation) -> Run:
    value, array, *indices = decoder.slots_of(list(op.operands))
    result, where = decoder.slot(op.results[0]), describe(op)
    kind = list(_ATOMICS)[op.attributes["kind"].value]
    combine, unsigned = _ATOMICS[kind], kind in ("maxu", "minu")

    def run(frame: Frame, lanes: np.ndarray) -> None:
        memref = frame.memref(array)
        region, starts = memref.starts([frame.array(i) for i in indices], lanes, 1, where)
        given = spread(frame.array(value), lanes)
        old = np.zeros(frame.threads, memref.dtype)
        left = np.arange(len(lanes))
        # In turns, of one thread for each element.
        while len(left):
            turn = left[np.unique(starts[left], return_index=True)[1]]
            left = np.setdiff1d(left, turn)
            cell = region.update(starts[turn], memref.dtype, frame.access(where, lanes[turn]))
            old[lanes[turn]] = cell
            new = given[turn]
            if unsigned:
                width = f"u{memref.dtype.itemsize}"
                found = combine(cell.view(width), new.view(width)).view(memref.dtype)
            else:
                found = combine(cell, new).astype(memref.dtype)
            region.put(starts[turn], found)
        frame.values[result] = old

    return run


def _dim(decoder: Decoder, op: ir.Operation) -> Run:
    (array, axis), result = decoder.slots_of(list(op.operands)), decoder.slot(op.results[0])

    def run(frame: Frame, lanes: np.ndarray) -> None:
        numbers = set(spread(frame.array(axis), lanes).tolist())
        if len(numbers) != 1:
            raise KernelError(f"{describe(op)}: the axis differs between threads")
        frame.values[result] = frame.memref(array).sizes[numbers.pop()]

    return run


def _mixed(decoder: Decoder, op: ir.Operation) -> list[Callable[[Frame], list[np.ndarray]]]:
    """Offsets, sizes and strides: static ones in attributes, dynamic ones among the operands."""
    segments = list(op.attributes["operandSegmentSizes"])
    dynamic = iter(decoder.slots_of(list(op.operands))[segments[0] :])
    found = []
    for name in ("static_offsets", "static_sizes", "static_strides"):
        parts = [next(dynamic) if number == _DYNAMIC else one(number) for number in op.attributes[name]]
        found.append(_reader(parts))
    return found


def _reader(parts: Sequence[int | np.ndarray]) -> Callable[[Frame], list[np.ndarray]]:
    return lambda frame: [frame.array(part) if isinstance(part, int) else part for part in parts]


def _subview(decoder: Decoder, op: ir.Operation) -> Run:
    array, result = decoder.slot(op.operands[0]), decoder.slot(op.results[0])
    offsets, sizes, strides = _mixed(decoder, op)
    kept, where = _kept(list(op.attributes["static_sizes"]), op.results[0].type), describe(op)

    def run(frame: Frame, lanes: np.ndarray) -> None:
        memref = frame.memref(array)
        at, lengths, steps = offsets(frame), sizes(frame), strides(frame)
        offset = memref.offset
        for axis, (first, length, step) in enumerate(zip(at, lengths, steps, strict=True)):
            last = first + (length - 1) * step
            wrong = (length > 0) & ((first < 0) | (last < 0) | (last >= memref.sizes[axis]))
            if spread(np.atleast_1d(wrong), lanes).any():
                raise BoundsError(f"{where}: a part along axis {axis} is not within the array")
            offset = offset + first * memref.strides[axis]
        new = [step * memref.strides[axis] for axis, step in enumerate(steps)]
        frame.values[result] = replace(
            memref,
            offset=offset,
            sizes=tuple(lengths[axis] for axis in kept),
            strides=tuple(new[axis] for axis in kept),
        )

    return run


def _kept(sizes: Sequence[int], type_: ir.Type) -> list[int]:
    """The axes that a part keeps: those that are dropped have one element."""
    wanted = list(type_.shape)
    kept: list[int] = []
    dropped = len(sizes) - len(wanted)
    for axis, size in enumerate(sizes):
        if dropped and size == 1 and (len(kept) == len(wanted) or wanted[len(kept)] != 1):
            dropped -= 1
        else:
            kept.append(axis)
    return kept


def _reinterpret(decoder: Decoder, op: ir.Operation) -> Run:
    array, result = decoder.slot(op.operands[0]), decoder.slot(op.results[0])
    offsets, sizes, strides = _mixed(decoder, op)

    def run(frame: Frame, lanes: np.ndarray) -> None:
        (offset,) = offsets(frame)
        frame.values[result] = replace(
            frame.memref(array), offset=offset, sizes=tuple(sizes(frame)), strides=tuple(strides(frame))
        )

    return run


def _groups(op: ir.Operation) -> list[list[int]]:
    return [[axis.value for axis in group] for group in op.attributes["reassociation"]]


def _collapse(decoder: Decoder, op: ir.Operation) -> Run:
    array, result, groups = decoder.slot(op.operands[0]), decoder.slot(op.results[0]), _groups(op)

    def run(frame: Frame, lanes: np.ndarray) -> None:
        memref = frame.memref(array)
        sizes, strides = [], []
        for group in groups:
            size = one(1)
            for axis in group:
                size = size * memref.sizes[axis]
            sizes.append(size)
            # Axes of one element have any stride: the last one that is longer tells.
            stride = memref.strides[group[-1]]
            for axis in group[:-1][::-1]:
                longer = np.ones(1, bool)
                for later in group[group.index(axis) + 1 :]:
                    longer = longer & (memref.sizes[later] == 1)
                stride = np.where(longer, memref.strides[axis], stride)
            strides.append(stride)
        frame.values[result] = replace(memref, sizes=tuple(sizes), strides=tuple(strides))

    return run


def _expand(decoder: Decoder, op: ir.Operation) -> Run:
    array, *dynamic = decoder.slots_of(list(op.operands))
    result, groups = decoder.slot(op.results[0]), _groups(op)
    given: Iterator[int] = iter(dynamic)
    shape = _reader([next(given) if n == _DYNAMIC else one(n) for n in op.attributes["static_output_shape"]])

    def run(frame: Frame, lanes: np.ndarray) -> None:
        memref, sizes = frame.memref(array), shape(frame)
        strides = list(sizes)
        for old, group in enumerate(groups):
            stride = memref.strides[old]
            for axis in reversed(group):
                strides[axis] = stride
                stride = stride * sizes[axis]
        frame.values[result] = replace(memref, sizes=tuple(sizes), strides=tuple(strides))

    return run


def _view(decoder: Decoder, op: ir.Operation) -> Run:
    """Bytes as elements of another type."""
    array, shift, *dynamic = decoder.slots_of(list(op.operands))
    result, type_ = decoder.slot(op.results[0]), op.results[0].type
    given = iter(dynamic)
    shape = _reader([next(given) if n == _DYNAMIC else one(n) for n in type_.shape])
    dtype = element_dtype(type_.element_type)

    def run(frame: Frame, lanes: np.ndarray) -> None:
        memref, sizes = frame.memref(array), tuple(shape(frame))
        strides: list[np.ndarray] = []
        stride = one(1)
        for size in reversed(sizes):
            strides.insert(0, stride)
            stride = stride * size
        base = memref.base + memref.offset + frame.array(shift)
        frame.values[result] = Memref(memref.region, base, one(0), sizes, tuple(strides), dtype)

    return run


def _pointer(decoder: Decoder, op: ir.Operation) -> Run:
    array, result = decoder.slot(op.operands[0]), decoder.slot(op.results[0])

    def run(frame: Frame, lanes: np.ndarray) -> None:
        frame.values[result] = frame.memref(array).pointer()

    return run


def _metadata(decoder: Decoder, op: ir.Operation) -> Run:
    array, (base, offset, *rest) = decoder.slot(op.operands[0]), decoder.slots_of(list(op.results))

    def run(frame: Frame, lanes: np.ndarray) -> None:
        memref = frame.memref(array)
        frame.values[base] = replace(memref, offset=one(0), sizes=(), strides=())
        values = (memref.offset, *memref.sizes, *memref.strides)
        for slot, value in zip((offset, *rest), values, strict=True):
            frame.values[slot] = value

    return run


def _alloca(decoder: Decoder, op: ir.Operation) -> Run:
    result, type_ = decoder.slot(op.results[0]), op.results[0].type

    def run(frame: Frame, lanes: np.ndarray) -> None:
        frame.values[result] = local(frame, type_)

    return run


def _same(decoder: Decoder, op: ir.Operation) -> Run:
    operand, result = decoder.slot(op.operands[0]), decoder.slot(op.results[0])

    def run(frame: Frame, lanes: np.ndarray) -> None:
        frame.values[result] = frame.values[operand]

    return run


MEMREFS: dict[str, Callable[[Decoder, ir.Operation], Run]] = {
    **dict.fromkeys(("memref.load", "vector.load"), _load),
    **dict.fromkeys(("memref.store", "vector.store"), _store),
    "memref.atomic_rmw": _atomic,
    "memref.dim": _dim,
    "memref.subview": _subview,
    "memref.reinterpret_cast": _reinterpret,
    "memref.collapse_shape": _collapse,
    "memref.expand_shape": _expand,
    "memref.view": _view,
    "memref.extract_aligned_pointer_as_index": _pointer,
    "memref.extract_strided_metadata": _metadata,
    "memref.alloca": _alloca,
    **dict.fromkeys(("memref.cast", "memref.memory_space_cast", "memref.assume_alignment"), _same),
}
