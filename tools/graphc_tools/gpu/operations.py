# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Functions that run the operations of a kernel."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from graphc.ir.constants import element_dtype
from graphc_dialects._mlir import ir
from graphc_tools.gpu import arithmetic
from graphc_tools.gpu.control import CONTROL
from graphc_tools.gpu.device_functions import device_function
from graphc_tools.gpu.interpreter import Decoder, Frame, Run, describe
from graphc_tools.gpu.matrices import MATRICES
from graphc_tools.gpu.memory import WARP, DivergenceError, KernelError
from graphc_tools.gpu.memrefs import MEMREFS
from graphc_tools.gpu.values import Memref, merged, one, spread, uniform
from graphc_tools.gpu.vectors import VECTORS

_AXES = {"x": 0, "y": 1, "z": 2}


def _constant(decoder: Decoder, op: ir.Operation) -> Run:
    result, type_ = decoder.slot(op.results[0]), op.results[0].type
    attribute = op.attributes["value"]
    if isinstance(attribute, ir.DenseElementsAttr):
        values = np.array(attribute).astype(arithmetic.dtype_of(type_)).reshape(1, *type_.shape)
    elif isinstance(attribute, ir.ArrayAttr):
        values = np.array([complex(*(part.value for part in attribute))], element_dtype(type_))
    else:
        values = np.array([attribute.value]).astype(element_dtype(type_))
    return _set(result, values)


def _set(result: int, values: np.ndarray) -> Run:
    def run(frame: Frame, lanes: np.ndarray) -> None:
        frame.values[result] = values

    return run


def _compute(decoder: Decoder, op: ir.Operation) -> Run:
    function = arithmetic.function_of(op)
    if function is None:
        raise NotImplementedError(f"{op.location}: the interpreter of kernels does not know {op.name}")
    result, operands = decoder.slot(op.results[0]), decoder.slots_of(list(op.operands))
    divides, where, compute = arithmetic.is_division(op.name), describe(op), function

    def run(frame: Frame, lanes: np.ndarray) -> None:
        values = [frame.array(operand) for operand in operands]
        if divides and (spread(values[1], lanes) == 0).any():
            raise KernelError(f"{where}: division by 0")
        frame.values[result] = compute(*values)

    return run


def _select(decoder: Decoder, op: ir.Operation) -> Run:
    result, (condition, a, b) = decoder.slot(op.results[0]), decoder.slots_of(list(op.operands))

    def run(frame: Frame, lanes: np.ndarray) -> None:
        first, second = frame.values[a], frame.values[b]
        assert first is not None and second is not None
        chosen = frame.array(condition)
        if chosen.ndim == 1 and uniform(chosen, lanes):
            frame.values[result] = first if spread(chosen, lanes)[0] else second
        elif chosen.ndim > 1:
            frame.values[result] = np.where(chosen, frame.array(a), frame.array(b))
        else:
            frame.values[result] = merged(chosen, first, second)

    return run


def _extended_multiply(decoder: Decoder, op: ir.Operation) -> Run:
    """`arith.mulsi_extended` and `mului_extended`: the low and the high half of a product."""
    low, high = decoder.slots_of(list(op.results))
    operands = decoder.slots_of(list(op.operands))
    signed = op.name == "arith.mulsi_extended"

    def run(frame: Frame, lanes: np.ndarray) -> None:
        a, b = (frame.array(operand) for operand in operands)
        width = 8 * a.dtype.itemsize
        wide = [(x if signed else x.view(f"u{a.dtype.itemsize}")).astype(object) for x in (a, b)]
        product = wide[0] * wide[1]
        mask, half = (1 << width) - 1, f"u{a.dtype.itemsize}"
        frame.values[low] = (product & mask).astype(half).view(a.dtype)
        frame.values[high] = ((product >> width) & mask).astype(half).view(a.dtype)

    return run


def _id(decoder: Decoder, op: ir.Operation) -> Run:
    result, name = decoder.slot(op.results[0]), op.name
    axis = next(
        number for letter, number in _AXES.items() if f"dim {letter}>" in str(op.attributes["dimension"])
    )

    def run(frame: Frame, lanes: np.ndarray) -> None:
        launch = frame.launch
        values = {
            "gpu.thread_id": launch.ids[axis],
            "gpu.block_id": one(frame.position[axis]),
            "gpu.block_dim": one(launch.shape[axis]),
            "gpu.grid_dim": one(launch.grid[axis]),
            "gpu.global_id": launch.ids[axis] + frame.position[axis] * launch.shape[axis],
        }
        frame.values[result] = values[name]

    return run


def _warp(decoder: Decoder, op: ir.Operation) -> Run:
    """Places within warps."""
    result, name = decoder.slot(op.results[0]), op.name

    def run(frame: Frame, lanes: np.ndarray) -> None:
        values = {
            "gpu.lane_id": frame.all % WARP,
            "gpu.subgroup_id": frame.all // WARP,
            "gpu.subgroup_size": one(WARP),
            "gpu.num_subgroups": one(-(-frame.threads // WARP)),
        }
        frame.values[result] = values[name]

    return run


def _barrier(decoder: Decoder, op: ir.Operation) -> Run:
    where = describe(op)
    if "scope" in op.attributes and "subgroup" in str(op.attributes["scope"]):
        return _warp_barrier(where)

    def run(frame: Frame, lanes: np.ndarray) -> None:
        if len(lanes) != frame.threads:
            missing = int(np.setdiff1d(frame.all, lanes)[0])
            raise DivergenceError(
                f"{where}: {len(lanes)} of {frame.threads} threads of block {frame.block} reach the barrier; "
                f"thread {missing} does not"
            )
        frame.next_interval()

    return run


def _shuffle(decoder: Decoder, op: ir.Operation) -> Run:
    (value, offset, width), (result, valid) = (
        decoder.slots_of(list(op.operands)),
        decoder.slots_of(list(op.results)),
    )
    mode = str(op.attributes["mode"]).removeprefix("#gpu<shuffle_mode ").removesuffix(">")
    where = describe(op)

    def run(frame: Frame, lanes: np.ndarray) -> None:
        _require_warps(frame, lanes, where)
        given = spread(frame.array(value), frame.all)
        by, wide = (spread(frame.array(slot), frame.all).astype(np.int64) for slot in (offset, width))
        lane, first = frame.all % WARP, frame.all - frame.all % WARP
        segment = lane & ~(wide - 1)
        source = {
            "xor": lane ^ by,
            "down": lane + by,
            "up": lane - by,
            "idx": segment | (by & (wide - 1)),
        }[mode]
        good = source >= segment if mode == "up" else source < segment + wide
        source = first + np.where(good, source, lane)
        if (source[lanes] >= frame.threads).any():
            raise DivergenceError(f"{where}: a lane is asked for that the block of {frame.threads} has not")
        frame.values[result] = given[np.minimum(source, frame.threads - 1)]
        frame.values[valid] = good

    return run


def _warp_barrier(where: str) -> Run:
    def run(frame: Frame, lanes: np.ndarray) -> None:
        _require_warps(frame, lanes, where)
        frame.phases[np.unique(lanes // WARP)] += 1

    return run


def _ballot(decoder: Decoder, op: ir.Operation) -> Run:
    """The lanes of each warp for which a condition holds, as bits."""
    flag, result = decoder.slot(op.operands[0]), decoder.slot(op.results[0])
    where = describe(op)

    def run(frame: Frame, lanes: np.ndarray) -> None:
        _require_warps(frame, lanes, where)
        holds = np.zeros(-(-frame.threads // WARP) * WARP, bool)
        holds[lanes] = spread(frame.array(flag), lanes)
        words = np.packbits(holds.reshape(-1, WARP), axis=1, bitorder="little").view(np.int32)
        frame.values[result] = words[frame.all // WARP, 0]

    return run


def _require_warps(frame: Frame, lanes: np.ndarray, where: str) -> None:
    """All threads of each warp have to be there that one is there of."""
    if len(lanes) == frame.threads:
        return
    counts = np.bincount(lanes // WARP, minlength=-(-frame.threads // WARP))
    sizes = np.bincount(frame.all // WARP)
    if ((counts != 0) & (counts != sizes)).any():
        warp = int(np.argmax((counts != 0) & (counts != sizes)))
        raise DivergenceError(f"{where}: {counts[warp]} of {sizes[warp]} threads of warp {warp} reach it")


def _subgroup_reduce(decoder: Decoder, op: ir.Operation) -> Run:
    """A reduction over the threads of each warp, in the order of a tree by `xor`."""
    operand, result = decoder.slot(op.operands[0]), decoder.slot(op.results[0])
    kind = str(op.attributes["op"]).removeprefix("#gpu<all_reduce_op ").removesuffix(">")
    where = describe(op)
    combine = arithmetic.REDUCTIONS[kind]

    def run(frame: Frame, lanes: np.ndarray) -> None:
        _require_warps(frame, lanes, where)
        if frame.threads % WARP:
            raise DivergenceError(f"{where}: a block of {frame.threads} threads has a warp that is not full")
        values = spread(frame.array(operand), frame.all)
        for distance in (16, 8, 4, 2, 1):
            values = combine(values, values[frame.all ^ distance])
        frame.values[result] = values

    return run


def _dynamic_shared(decoder: Decoder, op: ir.Operation) -> Run:
    result = decoder.slot(op.results[0])

    def run(frame: Frame, lanes: np.ndarray) -> None:
        region = frame.shared
        size = region.data.size
        frame.values[result] = Memref(region, one(0), one(0), (one(size),), (one(1),), np.dtype("int8"))

    return run


def _call(decoder: Decoder, op: ir.Operation) -> Run:
    """A function of the module; each call has values of its own."""
    function = decoder.call(op.attributes["callee"].value)
    if not len(function.regions[0].blocks):
        return _external(decoder, op)
    block = function.regions[0].blocks[0]
    operands, results = decoder.slots_of(list(op.operands)), decoder.slots_of(list(op.results))
    inner = Decoder(decode, decoder.call)
    arguments = inner.slots_of(list(block.arguments))
    body, yields = inner.block(block)

    def run(frame: Frame, lanes: np.ndarray) -> None:
        outer = frame.values
        frame.values = [None] * inner.slots
        for argument, operand in zip(arguments, operands, strict=True):
            frame.values[argument] = outer[operand]
        body(frame, lanes)
        found = [frame.values[slot] for slot in yields]
        frame.values = outer
        for result, value in zip(results, found, strict=True):
            frame.values[result] = value

    return run


def _external(decoder: Decoder, op: ir.Operation) -> Run:
    """A function of numbers that the module only declares: what devices get for it."""
    operands, result = decoder.slots_of(list(op.operands)), decoder.slot(op.results[0])
    dtype = arithmetic.dtype_of(op.results[0].type).name
    function = device_function(op.attributes["callee"].value, dtype, len(operands))

    def run(frame: Frame, lanes: np.ndarray) -> None:
        frame.values[result] = function(*(frame.array(operand) for operand in operands))

    return run


DECODERS: dict[str, Callable[[Decoder, ir.Operation], Run]] = {
    **dict.fromkeys(("arith.constant", "complex.constant", "index.constant"), _constant),
    "arith.select": _select,
    **dict.fromkeys(("arith.mulsi_extended", "arith.mului_extended"), _extended_multiply),
    **dict.fromkeys(("gpu.thread_id", "gpu.block_id", "gpu.block_dim", "gpu.grid_dim", "gpu.global_id"), _id),
    **dict.fromkeys(("gpu.lane_id", "gpu.subgroup_id", "gpu.subgroup_size", "gpu.num_subgroups"), _warp),
    "gpu.barrier": _barrier,
    "gpu.shuffle": _shuffle,
    "gpu.ballot": _ballot,
    "gpu.subgroup_reduce": _subgroup_reduce,
    "gpu.dynamic_shared_memory": _dynamic_shared,
    **dict.fromkeys(("func.call", "llvm.call"), _call),
    **CONTROL,
    **MATRICES,
    **MEMREFS,
    **VECTORS,
}


def decode(decoder: Decoder, op: ir.Operation) -> Run:
    """The function that runs an operation.

    Raises:
        NotImplementedError: it has no meaning here.
    """
    return DECODERS.get(op.name, _compute)(decoder, op)
