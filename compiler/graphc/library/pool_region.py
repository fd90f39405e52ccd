# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Regions of the thread pool, and its workers.

One region runs at a time. The caller of a region works on it itself and never waits for a worker that has not
begun: a worker that wakes late finds the region closed. Who finds the pool busy (a kernel called inside a
region, or by another thread) does all of its work alone.

The handshake: a worker announces itself in `inside` before it looks at `open`, and the caller closes `open`
before it looks at `inside`; both are sequentially consistent, so one of them sees the other. Sleepers are
counted the same way against `open`, so that no wake-up is lost. A worker looks for new work for some
microseconds before it sleeps: regions of one kernel follow each other within that time.

Workers compute in the floating-point environment of the region's caller (whether denormal numbers are
flushed, how results are rounded), so that results do not depend on who computes them.

An OpenMP region ends when every thread has arrived: a caller waits 40 to 100 us for threads that sleep, and
milliseconds on a busy machine, longer than most work worth splitting; threads kept awake burn the other
cores, and the setting for it belongs to the whole process. Regions 300 ms apart cost, on two cores under KVM,
160 us with libiomp5, 7970 with libgomp (whose regions hang in a child of a fork) and 13 here. TBB ends
regions in the same way and has no C interface.

Ranges that the thread pool divides among threads.

* `graphc_share(body, frame, lower, upper, cost, alignment)` calls `body(frame, first, past)` for ranges that
  cover lower..upper, several for each thread, multiples of the alignment but for the last. `cost` is the time
  of one position in picoseconds. With one thread, or not enough work for two ranges, there is one call.
* `graphc_share_short(body, frame, count, cost)` is for regions that are shorter than the time to wake a
  thread; ranges cover 0..count, which takes `cost` picoseconds in all. The steps of a loop that each multiply
  a vector with the same matrix are such regions: worth sharing with workers that still look for work after
  the step before, not worth waking any. So regions are done alone while all workers sleep, until that has
  taken ten times as long as calling them; the region after that calls them. A loop has their help from then
  on, and single calls lose at most a tenth.

The part of the thread pool that keeps BLAS from using threads of its own.

`graphc_share_blas` is `graphc_share` for bodies that call BLAS: BLAS is told to use one thread until all
callers that asked for it are done. `graphc_blas_get` and `graphc_blas_set` are the library's functions, null
where it has none.

`graphc_ask(records)` calls functions of C one after the other until one gives a status, for the
runtime of devices, which would need a call of Python for each.
"""

# mypy: ignore-errors

from __future__ import annotations

from graphc.library.float_environment import SAVE, SET
from graphc.native.builtins import (
    address,
    apart,
    at,
    atomic_load,
    atomic_store,
    call,
    cast,
    choose,
    compare_exchange,
    fetch_add,
    function,
    inlined,
    invoke,
    local,
    variable,
    view,
)

# Tells the processor that a loop waits.
PAUSE = "pause"
# Pauses of a worker before it sleeps: about 50 microseconds.
SPINS = 3000
# Pauses of a caller that waits for the last chunks before it lets other threads run.
PATIENCE = 4000


@inlined
def word(name):
    """A variable that threads share."""
    return variable(name, "i64")


@inlined
def pause():
    invoke(variable(PAUSE, "u8"))


@inlined
def set_threads(number):
    """Tells BLAS how many threads to use."""
    invoke(at(word("graphc_blas_set")[0], "u8"), number)


def thread_count():
    """The number of threads that kernels of the calling thread may use."""
    own = address(call("pthread_getspecific", word("graphc_thread_key")[0], returns="u8*"))
    default = atomic_load(word("graphc_thread_default"), 0, "monotonic")
    return own if own != 0 else default


def reset():
    """Forgets all workers, and who asked for BLAS with one thread."""
    call("pthread_mutex_init", variable("mutex", "u8"), at(0, "u8"), returns="i32")
    call("pthread_cond_init", variable("cond", "u8"), at(0, "u8"), returns="i32")
    word("graphc_pool_workers")[0] = 0
    word("sleeping")[0] = 0
    word("open")[0] = 0
    word("inside")[0] = 0
    word("joined")[0] = 0
    call("pthread_mutex_init", variable("blas_mutex", "u8"), at(0, "u8"), returns="i32")
    users = word("blas_users")[0]
    word("blas_users")[0] = 0
    if users != 0:
        set_threads(variable("blas_before", "i32")[0])
    atomic_store(word("busy"), 0, 0, "seq_cst")


def work(body, arguments, chunks):
    """Does chunks until none is left."""
    while True:
        chunk = fetch_add(word("next"), 0, 1, "acq_rel")
        if chunk >= chunks:
            return
        invoke(body, arguments, chunk)


def is_wanted():
    """True if a region is open that has chunks left, and room for a worker."""
    is_open = atomic_load(word("open"), 0, "seq_cst") != 0
    left = atomic_load(word("next"), 0, "monotonic") < atomic_load(word("chunks"), 0, "monotonic")
    room = atomic_load(word("joined"), 0, "monotonic") < atomic_load(word("slots"), 0, "monotonic")
    return is_open & left & room


def worker(nothing):
    """Endless loop of a thread of the pool."""
    while True:
        tries = 0
        while tries <= SPINS and not is_wanted():
            pause()
            tries += 1
        if tries <= SPINS:
            help_out()
        else:
            sleep()


@inlined
def help_out():
    """Joins a region if that is still open and has room."""
    fetch_add(word("inside"), 0, 1, "seq_cst")
    if atomic_load(word("open"), 0, "seq_cst") != 0:
        ticket = fetch_add(word("joined"), 0, 1, "seq_cst")
        if ticket < word("slots")[0]:
            body, arguments, chunks = word("body")[0], word("arguments")[0], word("chunks")[0]
            invoke(variable(SET, "u8"), word("environment"))
            work(at(body, "u8"), at(arguments, "u8"), chunks)
    fetch_add(word("inside"), 0, -1, "seq_cst")


@inlined
def sleep():
    """Waits for a region. Too late for the one it was called for, a worker may be in time for the next."""
    call("pthread_mutex_lock", variable("mutex", "u8"), returns="i32")
    fetch_add(word("sleeping"), 0, 1, "seq_cst")
    if not is_wanted():
        call("pthread_cond_wait", variable("cond", "u8"), variable("mutex", "u8"), returns="i32")
    fetch_add(word("sleeping"), 0, -1, "seq_cst")
    call("pthread_mutex_unlock", variable("mutex", "u8"), returns="i32")


@apart
def grow(wanted):
    """Starts workers, which take no signals. Where the system gives no thread there are fewer."""
    # sigset_t takes at most 128 bytes.
    mask, old, thread = local(128, "u8"), local(128, "u8"), local(1, "i64")
    call("sigfillset", mask, returns="i32")
    how = cast(word("graphc_pool_setmask")[0], "i32")
    call("pthread_sigmask", how, mask, old, returns="i32")
    have = word("graphc_pool_workers")[0]
    while have < wanted:
        code = function(worker, "u8*")
        if call("pthread_create", thread, at(0, "u8"), code, at(0, "u8"), returns="i32") != 0:
            break
        call("pthread_detach", thread[0], returns="i32")
        have += 1
        word("graphc_pool_workers")[0] = have
    call("pthread_sigmask", how, old, at(0, "u8"), returns="i32")


@apart
def rouse(number):
    """Wakes workers. The lock is taken only to let one that has counted itself reach its wait."""
    call("pthread_mutex_lock", variable("mutex", "u8"), returns="i32")
    call("pthread_mutex_unlock", variable("mutex", "u8"), returns="i32")
    for _ in range(number):
        call("pthread_cond_signal", variable("cond", "u8"), returns="i32")


def parallel(body, arguments, chunks, threads):
    """Calls `body(arguments, i)` for each chunk."""
    region(body, arguments, chunks, threads, cast(True, "bool"))


def region(body, arguments, chunks, threads, calls):
    """As `parallel`; calls sleeping workers only if it is told to."""
    if not compare_exchange(word("busy"), 0, 0, 1, "acq_rel"):
        for i in range(chunks):
            invoke(body, arguments, i)
        return
    slots = min(threads - 1, chunks - 1)
    if word("graphc_pool_workers")[0] < slots:
        grow(slots)
    invoke(variable(SAVE, "u8"), word("environment"))
    word("body")[0] = address(body)
    word("arguments")[0] = address(arguments)
    atomic_store(word("chunks"), 0, chunks, "monotonic")
    atomic_store(word("slots"), 0, slots, "monotonic")
    atomic_store(word("next"), 0, 0, "monotonic")
    atomic_store(word("joined"), 0, 0, "monotonic")
    atomic_store(word("open"), 0, 1, "seq_cst")
    number = min(atomic_load(word("sleeping"), 0, "seq_cst"), slots)
    if number > 0 and calls:
        rouse(number)
    work(body, arguments, chunks)
    atomic_store(word("open"), 0, 0, "seq_cst")
    wait()
    atomic_store(word("busy"), 0, 0, "release")


@inlined
def wait():
    """Waits until no worker is inside."""
    tries = 0
    while atomic_load(word("inside"), 0, "seq_cst") != 0:
        if tries < PATIENCE:
            pause()
            tries += 1
        else:
            call("sched_yield", returns="i32")


# The least work of a range in picoseconds, and the ranges for each thread: more of them balance the load,
# fewer keep neighbouring memory together.
LEAST, RANGES = 8_000_000, 4
# Picoseconds of short regions done alone before workers are called for the next one: ten times what that
# costs.
CALL_AFTER = 100_000_000


@inlined
def described(body, frame, lower, upper, size):
    """The description that a chunk is given."""
    task = local(5, "i64")
    task[0] = address(body)
    task[1] = address(frame)
    task[2] = lower
    task[3] = upper
    task[4] = size
    return view(task, "u8")


def do_range(given, i):
    """A chunk: the range of this number."""
    task = view(given, "i64")
    first = task[2] + task[4] * i
    invoke(at(task[0], "u8"), at(task[1], "u8"), first, min(first + task[4], task[3]))


def share(body, frame, lower, upper, cost, alignment):
    """Calls a function for ranges; the smallest size is a multiple of the alignment."""
    threads = cast(thread_count(), "u64")
    extent = upper - lower
    size = (max(extent // (threads * RANGES), LEAST // cost) // alignment + 1) * alignment
    last = (extent - 1) // size
    if last > 0 and threads > 1:
        task = described(body, frame, lower, upper, size)
        parallel(function(do_range, "u8*", "i64"), task, cast(last + 1, "i64"), cast(threads, "i64"))
    else:
        invoke(body, frame, lower, upper)


def share_short(body, frame, count, cost):
    """As `share`, for regions that are shorter than the time to wake a thread."""
    threads, calls = cast(thread_count(), "u64"), False
    helpers = cast(0, "u64")
    if threads > 1:
        workers = atomic_load(word("graphc_pool_workers"), 0, "monotonic")
        asleep = atomic_load(word("sleeping"), 0, "monotonic")
        if workers > asleep:
            helpers = cast(workers - asleep, "u64")
        else:
            before = cast(atomic_load(word("unshared"), 0, "monotonic"), "u64")
            calls = before + cost > CALL_AFTER
            atomic_store(word("unshared"), 0, choose(calls, 0, before + cost), "monotonic")
    if helpers == 0 and not calls:
        invoke(body, frame, cast(0, "i64"), count)
        return
    most = threads if calls else min(helpers + 1, threads)
    size = (count + most - 1) // most
    chunks = (count - 1) // size + 1
    task = described(body, frame, 0, count, size)
    region(function(do_range, "u8*", "i64"), task, cast(chunks, "i64"), cast(most, "i64"), calls)


def share_blas(body, frame, lower, upper, cost, alignment):
    """Shares ranges, with BLAS on one thread."""
    if word("graphc_blas_set")[0] == 0:
        share(body, frame, lower, upper, cost, alignment)
        return
    mutex = variable("blas_mutex", "u8")
    call("pthread_mutex_lock", mutex, returns="i32")
    word("blas_users")[0] += 1
    if word("blas_users")[0] == 1:
        variable("blas_before", "i32")[0] = invoke(at(word("graphc_blas_get")[0], "u8"), returns="i32")
        set_threads(cast(1, "i32"))
    call("pthread_mutex_unlock", mutex, returns="i32")
    share(body, frame, lower, upper, cost, alignment)
    call("pthread_mutex_lock", mutex, returns="i32")
    word("blas_users")[0] -= 1
    if word("blas_users")[0] == 0:
        set_threads(variable("blas_before", "i32")[0])
    call("pthread_mutex_unlock", mutex, returns="i32")


# Words of a record: more arguments than a function takes do no harm in C.
RECORD = 16


def ask(records):
    """Calls the functions of records; 0, or the number of the one that failed, from 1 on, above its status.

    After the number of records, each has the address of a function, whether its first two arguments are read
    where they point at, and 12 arguments.
    """
    for number in range(records[0]):
        r = records[1 + number * RECORD :]
        one, two = r[2], r[3]
        if r[1] != 0:
            one, two = at(one, "i64")[0], at(two, "i64")[0]
        code = at(r[0], "u8")
        a, b, c, d, e = r[4], r[5], r[6], r[7], r[8]
        status = invoke(code, one, two, a, b, c, d, e, r[9], r[10], r[11], r[12], r[13], returns="i32")
        if status != 0:
            return (number + 1) * 4294967296 + cast(status, "i64")
    return 0
