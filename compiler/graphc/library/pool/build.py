# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""LLVM IR of the thread pool that compiled kernels share.

One region runs at a time. The caller of a region works on it itself and never waits for a worker that has not
begun: a worker that wakes late finds the region closed. Who finds the pool busy (a kernel called inside a
region, or by another thread) does all of its work alone.

* `graphc_share`, `graphc_share_short` and `graphc_share_blas` divide ranges among threads
  (`graphc.library.pool.share`, `graphc.library.pool.blas`).
* `graphc_parallel(body, arguments, chunks, threads)` calls `body(arguments, i)` once for each i in
  0..chunks-1, on at most `threads` threads. Chunks are claimed in order.
* `graphc_thread_count()` is the number of threads that kernels of the calling thread may use.
* `graphc_thread_default` is that number where the thread has none of its own, `graphc_thread_key` the
  pthread key of its own.
* `graphc_pool_reset()` forgets all workers: for the child of a fork, where only one thread lives on.
* `graphc_pool_workers` is the number of workers that have been started, `graphc_pool_setmask` the system's
  SIG_SETMASK.

The handshake: a worker announces itself in `inside` before it looks at `open`, and the caller closes `open`
before it looks at `inside`; both are sequentially consistent, so one of them sees the other. Sleepers are
counted the same way against `open`, so that no wake-up is lost. A worker looks for new work for some
microseconds before it sleeps: regions of one kernel follow each other within that time.

Workers compute in the floating-point environment of the region's caller (whether denormal numbers are
flushed, how results are rounded), so that results do not depend on who computes them.
"""

from __future__ import annotations

import platform

from graphc.library.float_environment import SAVE, SET, environment_ir
from graphc.library.pool.blas import POOL_BLAS
from graphc.library.pool.share import POOL_SHARE

_NUMBERS = {
    # Pauses of a worker before it sleeps: about 50 microseconds.
    "SPINS": 3000,
    # Pauses of a caller that waits for the last chunks before it lets other threads run.
    "PATIENCE": 4000,
    # The least work of a range in picoseconds, and the ranges for each thread: more of them balance the load,
    # fewer keep neighbouring memory together.
    "LEAST": 8_000_000,
    "RANGES": 4,
    # Picoseconds of short regions done alone before workers are called for the next one: ten times what that
    # costs.
    "CALL_AFTER": 100_000_000,
}
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
    name, kind, value = _PAUSE[machine]
    text = (
        _POOL.replace("PAUSE", f"call void {name}({kind}{value})").replace("SAVE", SAVE).replace("ADOPT", SET)
        + POOL_BLAS
        + POOL_SHARE
    )
    text += environment_ir(machine) + f"declare void {name}({kind})\n"
    for name, number in _NUMBERS.items():
        text = text.replace(name, str(number))
    return text


def host() -> str:
    """This machine's name in `MACHINES`."""
    return "aarch64" if platform.machine() in ("arm64", "aarch64") else "x86_64"


# pthread_mutex_t and pthread_cond_t take at most 64 bytes on Linux and macOS, sigset_t 128.
_POOL = """
@graphc_thread_default = global i64 1, align 8
@graphc_thread_key = global i64 0, align 8
@graphc_pool_workers = global i64 0, align 8
@graphc_pool_setmask = global i64 2, align 8
@mutex = internal global [128 x i8] zeroinitializer, align 64
@cond = internal global [128 x i8] zeroinitializer, align 64
@sleeping = internal global i64 0, align 64
@busy = internal global i64 0, align 64
@open = internal global i64 0, align 64
@body = internal global ptr null, align 8
@arguments = internal global ptr null, align 8
@chunks = internal global i64 0, align 8
@slots = internal global i64 0, align 8
@next = internal global i64 0, align 64
@environment = internal global i64 0, align 8
@inside = internal global i64 0, align 64
@joined = internal global i64 0, align 8

declare ptr @pthread_getspecific(i64)
declare i32 @pthread_create(ptr, ptr, ptr, ptr)
declare i32 @pthread_detach(i64)
declare i32 @pthread_sigmask(i32, ptr, ptr)
declare i32 @pthread_mutex_init(ptr, ptr)
declare i32 @pthread_mutex_lock(ptr)
declare i32 @pthread_mutex_unlock(ptr)
declare i32 @pthread_cond_init(ptr, ptr)
declare i32 @pthread_cond_wait(ptr, ptr)
declare i32 @pthread_cond_signal(ptr)
declare i32 @sigfillset(ptr)
declare i32 @sched_yield()

define i64 @graphc_thread_count() nounwind {
  %key = load i64, ptr @graphc_thread_key
  %own = call ptr @pthread_getspecific(i64 %key)
  %number = ptrtoint ptr %own to i64
  %default = load atomic i64, ptr @graphc_thread_default monotonic, align 8
  %unset = icmp eq i64 %number, 0
  %count = select i1 %unset, i64 %default, i64 %number
  ret i64 %count
}

define void @graphc_pool_reset() nounwind {
  %m = call i32 @pthread_mutex_init(ptr @mutex, ptr null)
  %c = call i32 @pthread_cond_init(ptr @cond, ptr null)
  store i64 0, ptr @graphc_pool_workers
  store i64 0, ptr @sleeping
  store i64 0, ptr @open
  store i64 0, ptr @inside
  store i64 0, ptr @joined
  call void @blas_reset()
  store atomic i64 0, ptr @busy seq_cst, align 64
  ret void
}

define internal void @work(ptr %body, ptr %arguments, i64 %chunks) nounwind {
entry:
  br label %claim
claim:
  %chunk = atomicrmw add ptr @next, i64 1 acq_rel
  %some = icmp ult i64 %chunk, %chunks
  br i1 %some, label %run, label %done
run:
  call void %body(ptr %arguments, i64 %chunk)
  br label %claim
done:
  ret void
}

define internal i1 @wanted() nounwind {
  %open = load atomic i64, ptr @open seq_cst, align 64
  %is_open = icmp ne i64 %open, 0
  %next = load atomic i64, ptr @next monotonic, align 64
  %chunks = load atomic i64, ptr @chunks monotonic, align 8
  %left = icmp ult i64 %next, %chunks
  %joined = load atomic i64, ptr @joined monotonic, align 8
  %slots = load atomic i64, ptr @slots monotonic, align 8
  %room = icmp ult i64 %joined, %slots
  %a = and i1 %is_open, %left
  %b = and i1 %a, %room
  ret i1 %b
}

define internal ptr @worker(ptr %nothing) nounwind {
entry:
  br label %watch
watch:
  br label %spin
spin:
  %i = phi i64 [0, %watch], [%j, %again]
  %now = call i1 @wanted()
  br i1 %now, label %enter, label %pause
pause:
  PAUSE
  %j = add i64 %i, 1
  %tired = icmp ugt i64 %j, SPINS
  br i1 %tired, label %sleep, label %again
again:
  br label %spin
sleep:
  %l = call i32 @pthread_mutex_lock(ptr @mutex)
  %s0 = atomicrmw add ptr @sleeping, i64 1 seq_cst
  %woken = call i1 @wanted()
  br i1 %woken, label %wake, label %wait
wait:
  %w = call i32 @pthread_cond_wait(ptr @cond, ptr @mutex)
  br label %wake
wake:
; Too late for the region that it was called for, a worker may be in time for the next one.
  %s1 = atomicrmw sub ptr @sleeping, i64 1 seq_cst
  %u = call i32 @pthread_mutex_unlock(ptr @mutex)
  br label %watch
enter:
  %in = atomicrmw add ptr @inside, i64 1 seq_cst
  %state = load atomic i64, ptr @open seq_cst, align 64
  %closed = icmp eq i64 %state, 0
  br i1 %closed, label %leave, label %join
join:
  %ticket = atomicrmw add ptr @joined, i64 1 seq_cst
  %slots = load i64, ptr @slots
  %admitted = icmp ult i64 %ticket, %slots
  br i1 %admitted, label %help, label %leave
help:
  %body = load ptr, ptr @body
  %arguments = load ptr, ptr @arguments
  %chunks = load i64, ptr @chunks
  call void @ADOPT(ptr @environment)
  call void @work(ptr %body, ptr %arguments, i64 %chunks)
  br label %leave
leave:
  %out = atomicrmw sub ptr @inside, i64 1 seq_cst
  br label %watch
}

define internal void @grow(i64 %wanted) nounwind noinline {
; Starts workers, which take no signals. Where the system gives no thread there are fewer.
entry:
  %mask = alloca [128 x i8], align 8
  %old = alloca [128 x i8], align 8
  %thread = alloca i64, align 8
  %f = call i32 @sigfillset(ptr %mask)
  %how64 = load i64, ptr @graphc_pool_setmask
  %how = trunc i64 %how64 to i32
  %b = call i32 @pthread_sigmask(i32 %how, ptr %mask, ptr %old)
  br label %next
next:
  %have = load i64, ptr @graphc_pool_workers
  %enough = icmp uge i64 %have, %wanted
  br i1 %enough, label %done, label %start
start:
  %failed = call i32 @pthread_create(ptr %thread, ptr null, ptr @worker, ptr null)
  %refused = icmp ne i32 %failed, 0
  br i1 %refused, label %done, label %started
started:
  %id = load i64, ptr %thread
  %d = call i32 @pthread_detach(i64 %id)
  %more = add i64 %have, 1
  store i64 %more, ptr @graphc_pool_workers
  br label %next
done:
  %r = call i32 @pthread_sigmask(i32 %how, ptr %old, ptr null)
  ret void
}

define internal void @rouse(i64 %number) nounwind noinline {
; The lock is taken only to let a worker that has counted itself reach its wait.
entry:
  %l = call i32 @pthread_mutex_lock(ptr @mutex)
  %u = call i32 @pthread_mutex_unlock(ptr @mutex)
  br label %signal
signal:
  %i = phi i64 [0, %entry], [%j, %signal]
  %s = call i32 @pthread_cond_signal(ptr @cond)
  %j = add i64 %i, 1
  %more = icmp ult i64 %j, %number
  br i1 %more, label %signal, label %done
done:
  ret void
}

define void @graphc_parallel(ptr %body, ptr %arguments, i64 %chunks, i64 %threads) nounwind {
  call void @region(ptr %body, ptr %arguments, i64 %chunks, i64 %threads, i1 true)
  ret void
}

define internal void @region(ptr %body, ptr %arguments, i64 %chunks, i64 %threads, i1 %calls) nounwind {
; Calls sleeping workers only if it is told to.
entry:
  %pair = cmpxchg ptr @busy, i64 0, i64 1 acq_rel monotonic
  %mine = extractvalue {i64, i1} %pair, 1
  br i1 %mine, label %prepare, label %alone
alone:
  %i = phi i64 [0, %entry], [%j, %step]
  %some = icmp ult i64 %i, %chunks
  br i1 %some, label %step, label %finished
step:
  call void %body(ptr %arguments, i64 %i)
  %j = add i64 %i, 1
  br label %alone
finished:
  ret void
prepare:
  %others = sub i64 %threads, 1
  %rest = sub i64 %chunks, 1
  %slots = call i64 @llvm.smin.i64(i64 %others, i64 %rest)
  %have = load i64, ptr @graphc_pool_workers
  %few = icmp slt i64 %have, %slots
  br i1 %few, label %hire, label %publish
hire:
  call void @grow(i64 %slots)
  br label %publish
publish:
  call void @SAVE(ptr @environment)
  store ptr %body, ptr @body
  store ptr %arguments, ptr @arguments
  store atomic i64 %chunks, ptr @chunks monotonic, align 8
  store atomic i64 %slots, ptr @slots monotonic, align 8
  store atomic i64 0, ptr @next monotonic, align 64
  store atomic i64 0, ptr @joined monotonic, align 8
  store atomic i64 1, ptr @open seq_cst, align 64
  %asleep = load atomic i64, ptr @sleeping seq_cst, align 64
  %number = call i64 @llvm.smin.i64(i64 %asleep, i64 %slots)
  %some.asleep = icmp sgt i64 %number, 0
  %any = and i1 %some.asleep, %calls
  br i1 %any, label %wake, label %help
wake:
  call void @rouse(i64 %number)
  br label %help
help:
  call void @work(ptr %body, ptr %arguments, i64 %chunks)
  store atomic i64 0, ptr @open seq_cst, align 64
  br label %wait
wait:
  %n = phi i64 [0, %help], [%n1, %pause], [%n2, %yield]
  %inside = load atomic i64, ptr @inside seq_cst, align 64
  %empty = icmp eq i64 %inside, 0
  br i1 %empty, label %close, label %still
still:
  %patient = icmp ult i64 %n, PATIENCE
  br i1 %patient, label %pause, label %yield
pause:
  PAUSE
  %n1 = add i64 %n, 1
  br label %wait
yield:
  %y = call i32 @sched_yield()
  %n2 = add i64 %n, 0
  br label %wait
close:
  store atomic i64 0, ptr @busy release, align 64
  ret void
}

declare i64 @llvm.smin.i64(i64, i64)
declare i64 @llvm.smax.i64(i64, i64)
"""
