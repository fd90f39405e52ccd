# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""LLVM IR of the thread pool that compiled kernels share: its functions and variables.

* `graphc_share`, `graphc_share_short` and `graphc_share_blas` divide ranges among threads
  (`graphc.library.pool_region`).
* `graphc_parallel(body, arguments, chunks, threads)` calls `body(arguments, i)` once for each i in
  0..chunks-1, on at most `threads` threads. Chunks are claimed in order.
* `graphc_thread_count()` is the number of threads that kernels of the calling thread may use.
* `graphc_thread_default` is that number where the thread has none of its own, `graphc_thread_key` the
  pthread key of its own.
* `graphc_ask(records)` calls functions of C one after the other until one fails.
* `graphc_pool_reset()` forgets all workers: for the child of a fork, where only one thread lives on.
* `graphc_pool_workers` is the number of workers that have been started, `graphc_pool_setmask` the system's
  SIG_SETMASK.

`decision` is the threshold above which a loop is split, for the passes that write the functions which do it.
"""

from __future__ import annotations

import platform

from graphc.library import pool_region
from graphc.library.float_environment import environment_ir
from graphc.library.helpers import Split
from graphc.native import BYTE, I64, Type, Value
from graphc.native.translate import Translator

# Work below this stays on one core: several times what it costs to wake a sleeping thread.
THRESHOLD_PICOSECONDS = 40_000_000
SHARE = "declare void @graphc_share(ptr, ptr, i64, i64, i64, i64) cold nounwind"
# Picoseconds of a product from which it is divided itself rather than the batch
# (`graphc.library.products.blas`): some hundred rows and columns.
_LARGE_PRODUCT = 5_000_000_000
# The first arguments of a function that splits a loop.
SIZES = ("lower", "upper", "cost", "alignment")


def decision(split: Split) -> list[str]:
    """Code of the llvm dialect that makes `%large`: whether the work is worth sharing."""
    lines = [
        "%extent = llvm.sub %upper, %lower : i64",
        "%work = llvm.mul %extent, %cost : i64",
        f"%threshold = llvm.mlir.constant({THRESHOLD_PICOSECONDS} : i64) : i64",
    ]
    if not split.products:
        return [*lines, '%large = llvm.icmp "sgt" %work, %threshold : i64']
    return [
        *lines,
        '%long = llvm.icmp "sgt" %work, %threshold : i64',
        f"%most = llvm.mlir.constant({_LARGE_PRODUCT} : i64) : i64",
        '%middle = llvm.icmp "ult" %cost, %most : i64',
        "%large = llvm.and %long, %middle : i1",
    ]


_PAUSE = {
    "x86_64": ("@llvm.x86.sse2.pause", "", ""),
    "aarch64": ("@llvm.aarch64.isb", "i32", " 15"),
}
MACHINES = tuple(_PAUSE)


def pool_ir(machine: str) -> str:
    """The module's text.

    Args:
        machine: `x86_64` or `aarch64`.
    """
    t = Translator(prefix="graphc_pool", apart=False)
    code, frame = Value("%body", BYTE.to), Value("%frame", BYTE.to)
    chunks, threads = Value("%chunks", I64), Value("%threads", I64)
    # Positions are divided without a sign, which takes fewer instructions.
    names = ("lower", "upper", "cost", "alignment")
    lower, upper, cost, alignment = (Value(f"%{name}", Type("u64")) for name in names)
    ranges = [code, frame, lower, upper, cost, alignment]
    t.define(pool_region.thread_count, "graphc_thread_count", [])
    t.define(pool_region.reset, "graphc_pool_reset", [])
    t.define(pool_region.parallel, "graphc_parallel", [code, frame, chunks, threads])
    t.define(pool_region.share, "graphc_share", ranges)
    t.define(pool_region.share_short, "graphc_share_short", [code, frame, upper, cost])
    t.define(pool_region.share_blas, "graphc_share_blas", ranges)
    t.define(pool_region.ask, "graphc_ask", [Value("%records", I64.to)])
    name, kind, value = _PAUSE[machine]
    pause = f"call void {name}({kind}{value})"
    return (
        _VARIABLES
        + t.text()
        + f"define internal void @{pool_region.PAUSE}() alwaysinline nounwind {{\n  {pause}\n  ret void\n}}\n"
        + f"declare void {name}({kind})\n"
        + environment_ir(machine)
    )


def host() -> str:
    """This machine's name in `MACHINES`."""
    return "aarch64" if platform.machine() in ("arm64", "aarch64") else "x86_64"


# pthread_mutex_t and pthread_cond_t take at most 64 bytes on Linux and macOS.
_VARIABLES = """
@graphc_thread_default = global i64 1, align 8
@graphc_thread_key = global i64 0, align 8
@graphc_pool_workers = global i64 0, align 8
@graphc_pool_setmask = global i64 2, align 8
@graphc_blas_get = global ptr null, align 8
@graphc_blas_set = global ptr null, align 8
@mutex = internal global [128 x i8] zeroinitializer, align 64
@cond = internal global [128 x i8] zeroinitializer, align 64
@blas_mutex = internal global [128 x i8] zeroinitializer, align 64
@sleeping = internal global i64 0, align 64
@busy = internal global i64 0, align 64
@open = internal global i64 0, align 64
@body = internal global i64 0, align 8
@arguments = internal global i64 0, align 8
@chunks = internal global i64 0, align 8
@slots = internal global i64 0, align 8
@next = internal global i64 0, align 64
@environment = internal global i64 0, align 8
@inside = internal global i64 0, align 64
@joined = internal global i64 0, align 8
@unshared = internal global i64 0, align 64
@blas_users = internal global i64 0, align 8
@blas_before = internal global i32 0, align 8
"""
