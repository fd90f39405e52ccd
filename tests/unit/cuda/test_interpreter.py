# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""The interpreter of kernels: results of kernels that are right, and what it says of those that are wrong."""

from __future__ import annotations

from collections import Counter
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from graphc_tools.gpu.kernels import Kernels, run_kernel
from graphc_tools.gpu.memory import (
    Access,
    BoundsError,
    DivergenceError,
    KernelError,
    LaunchError,
    RaceError,
    Region,
    UninitialisedError,
)

KERNELS = Path(__file__).with_name("kernels")
SIZES = (1, 2, 31, 32, 37, 64, 65, 200)


@pytest.fixture(scope="module")
def right():
    return Kernels((KERNELS / "right.mlir").read_text())


@pytest.fixture(scope="module")
def wrong():
    return Kernels((KERNELS / "wrong.mlir").read_text())


def normal(*shape, dtype=np.float32):
    return np.random.default_rng(0).normal(size=shape).astype(dtype)


@pytest.mark.parametrize("n", SIZES)
def test_a_loop_over_the_grid(right, n):
    x, y = normal(n), normal(n)[::-1].copy()
    expected = (np.float64(np.float32(0.3)) * x + y).astype(np.float32)
    run_kernel(right["axpy"], (2, 1, 1), (32, 1, 1), [0.3, x, y])
    np.testing.assert_array_equal(y, expected)


@pytest.mark.parametrize("n", SIZES)
def test_vectors_and_the_rest(right, n):
    x, y = normal(n, dtype=np.float64), np.zeros(n)
    blocks = -(-n // 64)
    run_kernel(right["square"], (blocks, 1, 1), (32, 1, 1), [x, y], initialised=[True, False])
    np.testing.assert_array_equal(y, x * x)


@pytest.mark.parametrize("n", SIZES)
def test_sums_of_rows_by_shuffles(right, n):
    x, y = normal(3, n), np.zeros(3, np.float32)
    run_kernel(right["row_sums"], (3, 1, 1), (64, 1, 1), [x, y], initialised=[True, False])
    padded = np.zeros((3, -(-n // 64) * 64), np.float32)
    padded[:, :n] = x
    own = np.zeros((3, 64), np.float32)
    for part in np.split(padded, padded.shape[1] // 64, axis=1):
        own += part
    tree = own.reshape(3, 2, 32)
    for distance in (16, 8, 4, 2, 1):
        tree = tree + tree[..., np.arange(32) ^ distance]
    np.testing.assert_array_equal(y, tree[:, 0, 0] + tree[:, 1, 0])


@pytest.mark.parametrize("shape", [(1, 1), (8, 8), (9, 7), (20, 3), (13, 17)])
def test_transposition_through_shared_memory(right, shape):
    x, y = normal(*shape), np.zeros(shape[::-1], np.float32)
    grid = (-(-shape[1] // 8), -(-shape[0] // 8), 1)
    run_kernel(right["transpose"], grid, (8, 8, 1), [x, y], initialised=[True, False])
    np.testing.assert_array_equal(y, x.T)


def test_atomics_of_several_blocks(right):
    x = np.random.default_rng(1).integers(0, 5, 300).astype(np.int32)
    counts = np.zeros(5, np.int32)
    run_kernel(right["histogram"], (5, 1, 1), (64, 1, 1), [x, counts])
    np.testing.assert_array_equal(counts, np.bincount(x, minlength=5))


def test_threads_take_their_own_ways(right):
    x, y = np.arange(1, 41), np.zeros(40, np.int64)
    run_kernel(right["collatz"], (1, 1, 1), (40, 1, 1), [x, y])

    def steps(n):
        return 0 if n == 1 else 1 + steps(3 * n + 1 if n % 2 else n // 2)

    assert y.tolist() == [steps(int(n)) for n in x]


def test_views(right):
    x, y = normal(4, 6), np.zeros(12, np.float32)
    run_kernel(right["views"], (1, 1, 1), (12, 1, 1), [x, y])
    rows = np.arange(12) // 3
    expected = ((x[:, 3:].ravel() + x[rows, 0]) + x[rows, 1]) + x[0, 2]
    np.testing.assert_array_equal(y, expected + expected)


@pytest.mark.parametrize(
    ("name", "grid", "error", "parts"),
    [
        ("race_in_global", 1, RaceError, ["memref.store", "memref.load", "thread 1 of block 0 writes"]),
        ("race_in_shared", 1, RaceError, ["shared memory", "memref.load", "memref.store", "writes it"]),
        ("race_of_blocks", 2, RaceError, ["thread 0 of block 1", "of block 0"]),
        ("race_of_lanes", 1, RaceError, ["memref.store", "thread 0"]),
        ("divergent_barrier", 1, DivergenceError, ["16 of 64 threads", "thread 16 does not"]),
        ("divergent_shuffle", 1, DivergenceError, ["16 of 32 threads of warp 0"]),
        ("outside", 2, BoundsError, ["index [65]", "shape [65]"]),
        ("outside_of_memory", 1, BoundsError, ["bytes 400 to 403", "which has 260"]),
        ("never_written", 1, UninitialisedError, ["shared memory at byte 0"]),
        ("unaligned", 1, KernelError, ["no multiple of 16"]),
        ("copy_without_wait", 1, UninitialisedError, ["shared memory at byte 0", "memref.load"]),
        ("copy_without_barrier", 1, RaceError, ["memref.load", "nvgpu.device_async_wait", "writes it"]),
        ("unaligned_copy", 1, KernelError, ["no multiple of 16"]),
        ("unaligned_rows", 1, KernelError, ["nvgpu.ldmatrix", "no multiple of 16"]),
        ("divergent_product", 1, DivergenceError, ["a part of a warp"]),
    ],
)
def test_what_is_wrong_is_found(wrong, name, grid, error, parts):
    with pytest.raises(error) as caught:
        run_kernel(wrong[name], (grid, 1, 1), (64, 1, 1), [normal(65)])
    assert all(part in str(caught.value) for part in parts), caught.value
    assert "loc(" in str(caught.value)


def test_one_block_does_not_race_with_itself(wrong):
    x = np.zeros(3, np.float32)
    run_kernel(wrong["race_of_blocks"], (1, 1, 1), (64, 1, 1), [x])
    assert x[0] == 1


def test_loops_of_different_lengths_with_barriers(wrong):
    run_kernel(wrong["divergent_loop"], (1, 1, 1), (8, 1, 1), [np.full(8, 3)])
    with pytest.raises(DivergenceError, match="7 of 8 threads"):
        run_kernel(wrong["divergent_loop"], (1, 1, 1), (8, 1, 1), [np.array([3] * 7 + [2])])


def test_division_by_zero(wrong):
    with pytest.raises(KernelError, match="division by 0"):
        run_kernel(wrong["division"], (1, 1, 1), (8, 1, 1), [np.ones(8, np.int32)])


def test_memory_that_nobody_has_written_is_not_read(right):
    with pytest.raises(UninitialisedError, match="argument 2"):
        run_kernel(
            right["axpy"], (1, 1, 1), (32, 1, 1), [1.0, normal(5), normal(5)], initialised=[True, True, False]
        )


@pytest.mark.parametrize(
    ("grid", "block", "message"),
    [
        ((1, 1, 1), (32, 1, 1), "is for blocks of"),
        ((1, 1, 1), (2048, 1, 1), "a grid of"),
        ((1, 70_000, 1), (64, 1, 1), "65535"),
    ],
)
def test_launches_that_devices_refuse(right, grid, block, message):
    with pytest.raises(LaunchError, match=message):
        run_kernel(right["row_sums"], grid, block, [normal(1, 5), normal(1)])


def test_arguments_are_counted(right):
    with pytest.raises(LaunchError, match="takes 11 arguments, given 6"):
        run_kernel(right["axpy"], (1, 1, 1), (32, 1, 1), [1.0, normal(5)])


_TURNS = """gpu.module @kernels {
  gpu.func @turns(%x: memref<64xi32>) workgroup(%s: memref<2xi32, #gpu.address_space<workgroup>>) kernel {
    %zero = arith.constant 0 : i32
    %c32 = arith.constant 32 : index
    %thread = gpu.thread_id x
    %warp = arith.divui %thread, %c32 : index
    %lane = arith.remui %thread, %c32 : index
    %value = memref.load %x[%thread] : memref<64xi32>
    %odd = arith.trunci %value : i32 to i1
    %who = gpu.ballot %odd : i32
    %c0 = arith.constant 0 : index
    %c1 = arith.constant 1 : index
    %first = arith.cmpi eq, %lane, %c0 : index
    scf.if %first { memref.store %who, %s[%warp] : memref<2xi32, #gpu.address_space<workgroup>> }
    BARRIER
    %seen = memref.load %s[%warp] : memref<2xi32, #gpu.address_space<workgroup>>
    BARRIER
    %last = arith.cmpi eq, %lane, %c1 : index
    scf.if %last { memref.store %zero, %s[WHERE] : memref<2xi32, #gpu.address_space<workgroup>> }
    memref.store %seen, %x[%thread] : memref<64xi32>
    gpu.return
  }
}"""


@pytest.mark.parametrize(
    ("barrier", "where", "races"),
    [
        ("gpu.barrier scope <subgroup>", "%warp", False),
        ("gpu.barrier scope <subgroup>", "%c0", True),
        ("", "%warp", True),
    ],
)
def test_warps_have_barriers_of_their_own(barrier, where, races):
    """What a warp reads and writes in turns is ordered by them; what two warps do is not."""
    kernels = Kernels(_TURNS.replace("BARRIER", barrier).replace("WHERE", where))
    x = np.random.default_rng(0).integers(0, 9, 64).astype(np.int32)
    bits = [int(sum(1 << i for i in np.flatnonzero(part & 1))) for part in (x[:32], x[32:])]
    if races:
        with pytest.raises(RaceError, match="with no barrier between"):
            run_kernel(kernels["turns"], (1, 1, 1), (64, 1, 1), [x])
        return
    run_kernel(kernels["turns"], (1, 1, 1), (64, 1, 1), [x])
    np.testing.assert_array_equal(x.view(np.uint32), np.repeat(np.array(bits, np.uint32), 32))


def _accesses(rng, n):
    """Accesses of any threads of two blocks, of different widths: what is done, and by whom."""
    interval = 0
    for k in range(n):
        interval += int(rng.random() < 0.5)
        threads = np.sort(rng.choice(64, rng.integers(1, 9), replace=False))
        dtype, count = np.dtype(rng.choice(["u1", "u2", "f4", "f8", "c16"])), int(rng.choice([1, 1, 2, 4]))
        width = dtype.itemsize * count
        start = rng.integers(0, 512 // width, len(threads)) * width
        if rng.random() < 0.5:
            start = threads * width % (512 - width + 1)
        block = int(rng.random() < 0.1)
        access = Access(f"access {k}", block, interval, threads, threads // 32 * int(rng.integers(0, 3)))
        yield rng.choice(["load", "load", "store", "reserve", "update"]), start, dtype, count, access


def _done(region, what, start, dtype, count, access):
    if what == "load":
        return region.load(start, dtype, count, access).tobytes()
    if what == "store":
        values = np.repeat(access.threads[:, None], count, axis=1).astype(dtype)
        return region.store(start, values, access)
    if what == "reserve":
        return region.reserve(start, dtype.itemsize * count, access)
    chosen = np.unique(start, return_index=True)[1]
    access = replace(access, threads=access.threads[chosen], phases=access.phases[chosen])
    region.update(start[chosen], dtype, access)
    return region.put(start[chosen], access.threads.astype(dtype))


def _outcome(region, *access):
    try:
        return _done(region, *access)
    except KernelError as error:
        return type(error), str(error)


def test_bytes_that_are_looked_at_together_are_as_if_alone():
    outcomes = Counter()
    for seed in range(150):
        rng = np.random.default_rng(seed)
        together, alone = (Region(0, np.zeros(520, np.uint8), "memory", initialised=True) for _ in range(2))
        gap = slice(first := int(rng.integers(0, 512)), first + int(rng.integers(0, 4)))
        together.initialised[gap] = alone.initialised[gap] = False
        # After an access of one byte all are looked at alone.
        alone.load(
            np.array([519]), np.dtype("u1"), 1, Access("first", 0, -1, np.zeros(1, int), np.zeros(1, int))
        )
        for access in _accesses(rng, 12):
            found = _outcome(together, *access)
            assert found == _outcome(alone, *access)
            outcomes[found[0].__name__ if isinstance(found, tuple) else "right"] += 1
            if isinstance(found, tuple):
                break
        np.testing.assert_array_equal(together.data, alone.data)
        np.testing.assert_array_equal(together.initialised, alone.initialised)
    assert outcomes["right"] > 300 and outcomes["RaceError"] > 50 and outcomes["UninitialisedError"] > 10
