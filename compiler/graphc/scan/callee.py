# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""The user's function of a loop: calling it, and naming it in messages."""

from __future__ import annotations

import inspect
import os
from collections.abc import Callable, Sequence
from typing import Any

from graphc.graph.basic import Variable


class Callee:
    """A function that builds one iteration.

    Args:
        fn: the function.
        what: what takes it, for messages, as in ``"scan"``.

    Raises:
        TypeError: it cannot be called.
    """

    def __init__(self, fn: Callable[..., object], what: str) -> None:
        if not callable(fn) or isinstance(fn, Variable):
            raise TypeError(
                f"{what} needs a function that builds one iteration, got {fn!r:.80} of type "
                f"{type(fn).__name__}"
            )
        self.fn = fn
        self.what = what

    @property
    def name(self) -> str | None:
        """The function's name, if it has one of its own."""
        name = getattr(self.fn, "__name__", None)
        return None if name in (None, "<lambda>") else name

    def __str__(self) -> str:
        name = getattr(self.fn, "__name__", type(self.fn).__name__)
        code = getattr(inspect.unwrap(self.fn), "__code__", None)
        if code is None:
            return f"the function {name}"
        file = os.path.relpath(code.co_filename) if os.path.isabs(code.co_filename) else code.co_filename
        file = code.co_filename if file.startswith("..") else file
        return f"the function {name} ({file}:{code.co_firstlineno})"

    def __call__(self, args: Sequence[Any]) -> Any:
        """What the function returns.

        Raises:
            TypeError: it does not take as many arguments.
        """
        try:
            signature = inspect.signature(self.fn)
        except (TypeError, ValueError):
            return self.fn(*args)
        try:
            signature.bind(*args)
        except TypeError as error:
            given = ", ".join(map(str, args)) or "none"
            raise TypeError(
                f"{self.what} calls {self} with {len(args)} arguments ({given}), but its parameters are "
                f"{signature}: {error}. The order is: rows of the sequences, earlier rows of the states, "
                "non_sequences; each with one argument a tap"
            ) from None
        return self.fn(*args)
