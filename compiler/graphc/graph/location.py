# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Source location of a node in the user's code."""

from __future__ import annotations

import os
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from types import FrameType, TracebackType
from typing import NamedTuple

from graphc.config import config
from graphc.errors import keyword_hint, unexpected_keyword

_PACKAGE_NAMES = ("graphc", "graphc_dialects", "graphc_runtime", "graphc_tools")
_INTERNAL: dict[str, bool] = {"<frozen importlib._bootstrap>": True}


class SourceLocation(NamedTuple):
    """A line of the user's code.

    Attributes:
        file: path as Python reports it.
        line: 1-based line number.
        function: name of the function the line is in, ``<module>`` at the top level.
    """

    file: str
    line: int
    function: str

    def __str__(self) -> str:
        return f"{self.file}:{self.line} in {self.function}"

    @property
    def short(self) -> str:
        """File and line; of a file below the current folder, its path from there."""
        file = os.path.relpath(self.file) if os.path.isabs(self.file) else self.file
        return f"{self.file if file.startswith('..') else file}:{self.line}"


def _is_internal(frame: FrameType) -> bool:
    """True if the code of ``frame`` belongs to graphc, by its module's top-level package."""
    module = frame.f_globals.get("__name__") or ""
    return module.partition(".")[0] in _PACKAGE_NAMES or frame.f_code.co_filename.startswith(
        "<frozen importlib"
    )


# What `located` says.
_GIVEN: ContextVar[SourceLocation | None] = ContextVar("_GIVEN", default=None)


@contextmanager
def located(file: str, line: int, function: str = "<module>") -> Iterator[None]:
    """Gives the variables and nodes made meanwhile a place of their own, which errors name.

    For programs that write graphs from another description: a model in another language, or a graph of
    another library, whose users' lines are not those of the program.

    Examples:
        >>> with graphc.located("model.py", 7):
        ...     y = pt.exp(pt.vector("x"))
        >>> y.owner.location.file, y.owner.location.line
        ('model.py', 7)
    """
    token = _GIVEN.set(SourceLocation(file, line, function))
    try:
        yield
    finally:
        _GIVEN.reset(token)


@contextmanager
def of_node(place: SourceLocation | None) -> Iterator[None]:
    """Gives what is made meanwhile the place of a node, where it has one.

    Derivatives have the line of the operation that they are of, in profiles and errors: the one line of
    `grad` would be that of a thousand operations. Rules of users' ops keep the lines of the rules.
    """
    token = None if place is None else _GIVEN.set(place)
    try:
        yield
    finally:
        if token is not None:
            _GIVEN.reset(token)


def capture() -> SourceLocation | None:
    """The innermost frame outside graphc's own packages, or None when there is none; or what `located` says.

    Every node asks for its location, so whether a file is internal is looked up once for each file name.
    """
    given = _GIVEN.get()
    if given is not None:
        return given
    frame: FrameType | None = sys._getframe(1)
    while frame is not None:
        name = frame.f_code.co_filename
        internal = _INTERNAL.get(name)
        if internal is None:
            internal = _is_internal(frame)
            # Names such as <string> or <stdin> are shared by unrelated code, so they are judged each time.
            if not name.startswith("<"):
                _INTERNAL[name] = internal
        if not internal:
            return SourceLocation(name, frame.f_lineno, frame.f_code.co_name)
        frame = frame.f_back
    return None


def _without_own(trace: TracebackType | None) -> TracebackType | None:
    """A traceback without the frames of graphc; None where it has no others."""
    kept = []
    while trace is not None:
        if not _is_internal(trace.tb_frame):
            kept.append(trace)
        trace = trace.tb_next
    shorter: TracebackType | None = None
    for each in reversed(kept):
        shorter = TracebackType(shorter, each.tb_frame, each.tb_lasti, each.tb_lineno)
    return shorter


def shorten(error: BaseException) -> None:
    """Prepare an uncaught error for being shown: say which keyword may have been meant, and (unless
    ``config.traceback`` is ``"full"``) take out the frames of graphc, so that it ends at the user's line.

    Nothing is taken where no line of the user would be left. A note says that frames are hidden.
    """
    called = unexpected_keyword(error)
    tensor = sys.modules.get("graphc.tensor")
    if called is not None and tensor is not None:
        places = (vars(tensor), vars(tensor.TensorVariable.__mro__[1]))
        function = next((place[called[0]] for place in places if called[0] in place), print)
        if (function.__module__ or "").startswith("graphc."):
            error.add_note(f"{called[0]}() of graphc.tensor{keyword_hint(function, called[1])}")
    if config.traceback == "full":
        return
    taken, seen = False, set()
    each: BaseException | None = error
    while each is not None and id(each) not in seen:
        seen.add(id(each))
        shorter = _without_own(each.__traceback__)
        if shorter is not None and _length(shorter) < _length(each.__traceback__):
            each.__traceback__, taken = shorter, True
        each = each.__cause__ or each.__context__
    if taken and _HIDDEN not in getattr(error, "__notes__", ()):
        error.add_note(_HIDDEN)


_HIDDEN = '(frames of graphc are hidden; graphc.config.traceback = "full" shows them)'


def _length(trace: TracebackType | None) -> int:
    count = 0
    while trace is not None:
        trace, count = trace.tb_next, count + 1
    return count


def frames_inside() -> int:
    """Number of frames of graphc between the caller of this function and the user's code."""
    frame: FrameType | None = sys._getframe(1)
    depth = 0
    while frame is not None and _is_internal(frame):
        frame, depth = frame.f_back, depth + 1
    return depth


def describe(location: SourceLocation | None) -> str:
    """A clause for error messages, ``" (made at model.py:10 in loss)"``; empty when the place is unknown."""
    if location is None:
        return ""
    return f" (made at {location.short} in {location.function})"
