# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Mode "tiered": calls run in NumPy until their code is there, which is made in the background.

Code is made in a helper process, on another core and without this interpreter's lock; a thread waits for it,
loads it and puts it in the place of what runs in NumPy. Where the disk cache has the code, there is no
first tier.
"""

from __future__ import annotations

import os
import threading
import warnings
import weakref
from collections.abc import Callable
from typing import TYPE_CHECKING

from graphc.function.program import Program
from graphc_runtime.threads import usable_cores

if TYPE_CHECKING:
    from graphc.function.types import Function

# More processes than cores would make the first of several functions later.
_SLOTS = threading.BoundedSemaphore(usable_cores())


class Pending:
    """A program that is being made.

    Args:
        build: makes it.
        is_loop: calls wait for it: in NumPy they would take longer for most loops.

    Attributes:
        error: why there is none.
        has_warned: a call has said so.
    """

    def __init__(self, build: Callable[[], Program], is_loop: bool) -> None:
        self._build, self.is_loop = build, is_loop
        self._process = os.getpid()
        self._done = threading.Event()
        self.error: Exception | None = None
        self.has_warned = False

    def start(self, function: Function) -> None:
        """Makes the program for a function, as long as somebody has it."""
        wanted = weakref.ref(function)
        threading.Thread(target=self._work, args=(wanted,), name="graphc-tiered", daemon=True).start()

    def _work(self, wanted: weakref.ref[Function]) -> None:
        with _SLOTS:
            self._make(wanted)

    def _make(self, wanted: weakref.ref[Function]) -> None:
        try:
            if wanted() is not None:
                program = self._build()
                function = wanted()
                if function is not None:
                    function.replace_program(program)
        except Exception as error:
            self.error = error
        finally:
            self._done.set()

    def wait(self, function: Function, seconds: float | None = None) -> bool:
        """True if the program, or the error, is there after at most so many seconds; None for no limit."""
        if os.getpid() != self._process and not self._done.is_set():
            # The thread has stayed in the process that this one was forked from.
            self._make(weakref.ref(function))
        return self._done.wait(seconds)

    def warn(self, name: str) -> None:
        """Says once that calls go on in NumPy, and why."""
        self.has_warned = True
        warnings.warn(
            f"{name} stays in NumPy: compiling it in the background failed: {self.error}; "
            f"{name}.wait() raises the error",
            RuntimeWarning,
            stacklevel=4,
        )
