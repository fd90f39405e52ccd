# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""The user's line that made a node of PyTensor: errors of graphc name it instead of a line of the bridge."""

from __future__ import annotations

import functools
import os
import sys
from collections.abc import Iterator
from contextlib import contextmanager, nullcontext
from typing import TYPE_CHECKING

from graphc.graph import location
from graphc.graph.location import SourceLocation

if TYPE_CHECKING:
    from pytensor.graph.basic import Apply

_LIBRARIES = ("pytensor", "pymc", "pymc_extras", "graphc", "nutpie", "bambi")


@contextmanager
def located(node: Apply) -> Iterator[None]:
    """Nodes of graphc made in the block have the place of PyTensor's node, if PyTensor knows it."""
    place = place_of(node)
    with nullcontext() if place is None else location.located(*place):
        yield


def place_of(node: Apply) -> SourceLocation | None:
    """The innermost line outside of libraries in the trace that PyTensor keeps of the node's first output."""
    for output in node.outputs:
        for trace in getattr(output.tag, "trace", None) or ():
            for file, line, function, _ in reversed([tuple(frame)[:4] for frame in trace]):
                if not _is_library(file):
                    return SourceLocation(file, line, function)
    return None


def _is_library(file: str) -> bool:
    return any(file.startswith(folder) for folder in _folders(len(sys.modules)))


@functools.lru_cache(maxsize=1)
def _folders(modules: int) -> tuple[str, ...]:
    """Folders of the libraries that build graphs for users, as far as these are loaded.

    Args:
        modules: how many modules are loaded; the answer is kept as long as that does not change.
    """
    loaded = (sys.modules.get(name) for name in _LIBRARIES)
    files = (getattr(module, "__file__", None) for module in loaded)
    return tuple(os.path.dirname(file) + os.sep for file in files if file)
