# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Graphs to text of the graphc dialect."""

# The tensor package imports this one at its end; whichever is asked for first, it has to come first.
import graphc.tensor  # noqa: F401
from graphc.emit.emitter import EmittedModule, Emitter, all_nodes, emit_module

__all__ = ["EmittedModule", "Emitter", "all_nodes", "emit_module"]
