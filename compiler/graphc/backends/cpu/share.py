# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Work that several threads share."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from threading import Lock, Thread
from typing import TypeVar

from graphc_runtime.worker import checkpoint, current_task, resting, taking_part

_Item = TypeVar("_Item")
_Result = TypeVar("_Result")


def share(function: Callable[[_Item], _Result], items: Sequence[_Item], threads: int) -> list[_Result]:
    """`[function(item) for item in items]`, by this thread and at most `threads - 1` others.

    Raises:
        The first exception of `function`, once the other threads have finished.
    """
    results: dict[int, _Result] = {}
    errors: list[BaseException] = []
    pending = list(reversed(range(len(items))))
    lock = Lock()
    task = current_task()

    def work() -> None:
        while True:
            with lock:
                if errors or not pending:
                    return
                number = pending.pop()
            try:
                checkpoint()
                results[number] = function(items[number])
            except BaseException as error:
                errors.append(error)

    def help() -> None:
        with taking_part(task):
            work()

    helpers: list[Thread] = []
    try:
        for _ in range(min(threads, len(items)) - 1):
            helper = Thread(target=help, name="graphc-codegen")
            try:
                helper.start()
            except RuntimeError:  # no more threads are to be had
                break
            helpers.append(helper)
        work()
    finally:
        with lock:
            pending.clear()
        with resting():
            for helper in helpers:
                helper.join()
    if errors:
        raise errors[0]
    return [results[number] for number in range(len(items))]
