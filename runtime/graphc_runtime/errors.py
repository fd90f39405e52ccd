# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Exceptions of the runtime, and those that a kernel's status code stands for."""

from __future__ import annotations

from collections.abc import Callable, Sequence

import numpy as np

from graphc_runtime.record import record

OUT_OF_MEMORY = -1
DAMAGED_MEMORY = -2


class ShapeError(ValueError, AssertionError):
    """An array has another shape than `specify_shape` says."""


# By the name in a check: what it raises.
ERRORS: dict[str, type[Exception]] = {
    "ValueError": ValueError,
    "TypeError": TypeError,
    "IndexError": IndexError,
    "ZeroDivisionError": ZeroDivisionError,
    "OverflowError": OverflowError,
    "AssertionError": AssertionError,
    "RuntimeError": RuntimeError,
    "ShapeError": ShapeError,
    "LinAlgError": np.linalg.LinAlgError,
}


@record(frozen=True)
class Site:
    """A place in the graph that a check can fail at. `node` is the position in the emitted toposort."""

    message: str
    error: str = "ValueError"
    node: str = ""


@record(frozen=True)
class Origin:
    """Facts about a node that the graph knows, and an artifact does not.

    Attributes:
        line: the user's line, for example ``model.py:12 in loss``.
        operands: what the operation was applied to, in words.
        error: the class of the exception, where it is not one that a manifest names.
        op: the operation.
    """

    line: str | None = None
    operands: str | None = None
    error: type[Exception] | None = None
    op: str | None = None


class LoadError(RuntimeError):
    """Object code cannot be loaded: it is corrupt, for another machine, or needs what is not here."""


class LinkError(RuntimeError):
    """Thunks cannot be linked, or break their contract."""


class SymbolError(LoadError):
    """An external symbol of an object is not known to this process."""


class ArtifactError(ValueError):
    """The bytes are not an artifact, or not what was once written."""


def status_error(
    sites: Sequence[Site],
    status: int,
    given: int,
    expected: int,
    where: Callable[[str], Origin] | None = None,
) -> Exception:
    """The exception that a kernel's nonzero status stands for.

    Args:
        sites: check sites of the manifest; status k + 1 is site k, -1 is out of memory, -2 damage that
            poisoned code found.
        status: what the kernel returned.
        given: the value the check saw; replaces `{given}` in the message.
        expected: the value it wanted; replaces `{expected}`.
        where: gives what is known of a node of the graph.
    """
    if status == OUT_OF_MEMORY:
        return MemoryError("out of memory for the temporaries of a compiled function")
    if status == DAMAGED_MEMORY:
        return RuntimeError(
            "a compiled function wrote outside of its workspace (found because of config.poison_memory); "
            "please report this"
        )
    if not 1 <= status <= len(sites):
        return RuntimeError(
            f"a compiled function returned status {status}; its check sites are 1 to {len(sites)}"
        )
    site = sites[status - 1]
    message = site.message.replace("{given}", str(given)).replace("{expected}", str(expected))
    origin = where(site.node) if where is not None and site.node else Origin()
    if origin.operands:
        message = f"{message}\n  operands: {origin.operands}"
    if origin.line:
        message = f"{message}\n  made at {origin.line}"
    return (origin.error or ERRORS.get(site.error, ValueError))(message)
