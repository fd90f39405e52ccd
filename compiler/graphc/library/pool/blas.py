# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""The part of the thread pool that keeps BLAS from using threads of its own.

`graphc_share_blas` is `graphc_share` for bodies that call BLAS: BLAS is told to use one thread until all
callers that asked for it are done. `graphc_blas_get` and `graphc_blas_set` are the library's functions, null
where it has none.
"""
# mypy: ignore-errors

from __future__ import annotations

from graphc.library.pool.region import set_threads, word
from graphc.library.pool.share import share
from graphc.native.builtins import at, call, cast, invoke, variable


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
