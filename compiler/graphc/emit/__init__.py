# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Graphs to text of the graphc dialect. What emits loads when first used: code may be in the disk cache."""

from __future__ import annotations

import importlib
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from graphc.emit.conditionals import obstacle
    from graphc.emit.emitter import NODES_FILE, Emitter
    from graphc.emit.module import EmittedModule, all_nodes, emit_module, node_named

__all__ = ["NODES_FILE", "EmittedModule", "Emitter", "all_nodes", "emit_module", "node_named", "obstacle"]
_HOMES = {"NODES_FILE": "emitter", "Emitter": "emitter", "obstacle": "conditionals"}


def __getattr__(name: str) -> object:
    if name not in __all__:
        raise AttributeError(f"module 'graphc.emit' has no attribute {name!r}")
    home = _HOMES.get(name, "module")
    return getattr(importlib.import_module(f"graphc.emit.{home}"), name)
