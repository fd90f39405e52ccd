# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Operations of tensor cores, and copies to shared memory that go on while threads compute.

Which lane has which elements is as in the PTX ISA; sums are made in float64 and rounded once, where devices
say of float32 no more than that they have its digits.
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from graphc_dialects._mlir import ir
from graphc_tools.gpu.interpreter import AsyncCopy, Decoder, Frame, Run, describe, require_aligned
from graphc_tools.gpu.memory import WARP, DivergenceError, KernelError
from graphc_tools.gpu.values import spread

_LANES = np.arange(WARP)
_G, _T = _LANES // 4, _LANES % 4


def _require_whole_warps(frame: Frame, lanes: np.ndarray, where: str) -> np.ndarray:
    """The warps that are there, each with all of its lanes; the first lane of each."""
    first = lanes[lanes % WARP == 0]
    if frame.threads % WARP or len(first) * WARP != len(lanes):
        raise DivergenceError(f"{where}: a part of a warp reaches it")
    return first


def _load_matrices(decoder: Decoder, op: ir.Operation) -> Run:
    """`nvgpu.ldmatrix`: matrices of 8 by 8; each lane has the address of one row."""
    array, *indices = decoder.slots_of(list(op.operands))
    result, where = decoder.slot(op.results[0]), describe(op)
    count, across = op.attributes["numTiles"].value, op.attributes["transpose"].value

    def run(frame: Frame, lanes: np.ndarray) -> None:
        warps = _require_whole_warps(frame, lanes, where)
        memref = frame.memref(array)
        asked = (warps[:, None] + np.arange(8 * count)).ravel()
        region, starts = memref.starts([frame.array(i) for i in indices], asked, 8, where)
        if ((starts + region.address) % 16).any():
            raise KernelError(f"{where}: the address of a row is no multiple of 16")
        rows = region.load(starts, memref.dtype, 8, frame.access(where, asked))
        matrices = rows.reshape(len(warps), count, 8, 8)
        if across:
            matrices = matrices.swapaxes(2, 3)
        values = np.zeros((frame.threads, count, 2), memref.dtype)
        parts = np.stack([matrices[:, :, _G, 2 * _T + i] for i in range(2)], axis=-1)
        values[(warps[:, None] + _LANES).ravel()] = parts.swapaxes(1, 2).reshape(-1, count, 2)
        frame.values[result] = values

    return run


def _places(shape: tuple[int, int], depth: int) -> tuple[np.ndarray, np.ndarray]:
    """Row (or column) and depth of what each lane has of one side: an axis of lanes, and the vector's two."""
    count, pairs = shape
    groups = count * 4 * pairs // depth
    register, pair = np.arange(count)[:, None], np.arange(pairs)[None, :]
    wide = _G[:, None, None] + 8 * (register % groups) + 0 * pair
    deep = pairs * _T[:, None, None] + pair + 4 * pairs * (register // groups)
    return wide, deep


def _multiply(decoder: Decoder, op: ir.Operation) -> Run:
    """`nvgpu.mma.sync`."""
    slots, result, where = decoder.slots_of(list(op.operands)), decoder.slot(op.results[0]), describe(op)
    rows, columns, depth = (size.value for size in op.attributes["mmaShape"])
    shorter = "tf32Enabled" in op.attributes
    shapes = [(operand.type.shape[0], operand.type.shape[1]) for operand in op.operands]
    left, right = (_places(shape, depth) for shape in shapes[:2])
    group, pair = np.arange(rows // 8)[:, None], np.arange(2)[None, :]
    of_row, of_column = _G[:, None, None] + 8 * group + 0 * pair, 2 * _T[:, None, None] + pair + 0 * group

    def run(frame: Frame, lanes: np.ndarray) -> None:
        warps = _require_whole_warps(frame, lanes, where)
        asked = warps[:, None] + _LANES
        a, b, sums = (spread(frame.array(slot), frame.all)[asked] for slot in slots)
        if shorter:
            a, b = (_digits_of_tf32(x) for x in (a, b))
        x, y = np.zeros((len(warps), rows, depth)), np.zeros((len(warps), depth, columns))
        x[:, left[0], left[1]] = a
        y[:, right[1], right[0]] = b
        total = (x @ y)[:, of_row, of_column] + sums
        values = np.zeros((frame.threads, *sums.shape[2:]), sums.dtype)
        values[asked.ravel()] = total.astype(sums.dtype).reshape(-1, *sums.shape[2:])
        frame.values[result] = values

    return run


def _digits_of_tf32(values: np.ndarray) -> np.ndarray:
    """Without the digits that the instruction does not look at."""
    return (np.ascontiguousarray(values).view(np.uint32) & np.uint32(0xFFFFE000)).view(np.float32)


def _to_tf32(decoder: Decoder, op: ir.Operation) -> Run:
    """`nvvm.convert.float.to.tf32`: to nearest, ties away from 0."""
    operand, result = decoder.slot(op.operands[0]), decoder.slot(op.results[0])
    assert "rna" in str(op.attributes["rnd"])

    def run(frame: Frame, lanes: np.ndarray) -> None:
        value = np.ascontiguousarray(frame.array(operand))
        bits = value.view(np.uint32)
        rounded = np.where(
            np.isfinite(value), bits + np.uint32(0x1000), bits | np.isnan(value) * np.uint32(0x2000)
        )
        frame.values[result] = (rounded & np.uint32(0xFFFFE000)).view(np.int32)

    return run


def _start_copy(decoder: Decoder, op: ir.Operation) -> Run:
    """`nvgpu.device_async_copy`: what is copied is read now, and written when a thread waits for it."""
    _, into, _, of, _ = op.attributes["operandSegmentSizes"]
    slots, where = decoder.slots_of(list(op.operands)), describe(op)
    target, to, source, place = (
        slots[0],
        slots[1 : 1 + into],
        slots[1 + into],
        slots[2 + into : 2 + into + of],
    )
    count = op.attributes["dstElements"].value
    given = slots[2 + into + of :]

    def run(frame: Frame, lanes: np.ndarray) -> None:
        memref, shared = frame.memref(source), frame.memref(target)
        size = count * memref.dtype.itemsize
        wanted = spread(frame.array(given[0]), lanes) if given else np.full(len(lanes), count)
        if size not in (4, 8, 16) or ("bypassL1" in op.attributes and size != 16):
            raise KernelError(f"{where}: {size} bytes cannot be copied")
        if ((wanted < 0) | (wanted > count)).any():
            raise KernelError(f"{where}: more or fewer elements are asked for than are written")
        region, starts = shared.starts([frame.array(i) for i in to], lanes, count, where)
        require_aligned(region, starts, size, where)
        values = np.zeros((len(lanes), count), memref.dtype)
        for number in np.unique(wanted[wanted > 0]):
            asked = wanted == number
            at = [frame.array(i) for i in place]
            memory, first = memref.starts(at, lanes[asked], int(number), where)
            require_aligned(memory, first, size, where)
            values[asked, :number] = memory.load(
                first, memref.dtype, int(number), frame.access(where, lanes[asked])
            )
        region.reserve(starts, size, frame.access(where, lanes))
        frame.copies.append(AsyncCopy(region, starts, values, lanes, where))

    return run


def _group(decoder: Decoder, op: ir.Operation) -> Run:
    """`nvgpu.device_async_create_group`: a thread waits for groups; there is one here, of all copies."""
    return lambda frame, lanes: None


def _wait(decoder: Decoder, op: ir.Operation) -> Run:
    """`nvgpu.device_async_wait`: what these threads have copied is there."""
    where = describe(op)
    if "numGroups" in op.attributes and op.attributes["numGroups"].value:
        raise NotImplementedError(f"{where}: the interpreter of kernels waits for all groups")

    def run(frame: Frame, lanes: np.ndarray) -> None:
        left = []
        for copy in frame.copies:
            mine = np.isin(copy.threads, lanes)
            done = copy.of(mine)
            done.region.store(done.starts, done.values, frame.access(where, done.threads))
            if not mine.all():
                left.append(copy.of(~mine))
        frame.copies = left

    return run


MATRICES: dict[str, Callable[[Decoder, ir.Operation], Run]] = {
    "nvgpu.ldmatrix": _load_matrices,
    "nvgpu.mma.sync": _multiply,
    "nvvm.convert.float.to.tf32": _to_tf32,
    "nvgpu.device_async_copy": _start_copy,
    "nvgpu.device_async_create_group": _group,
    "nvgpu.device_async_wait": _wait,
}
