# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Graphs to text of the graphc dialect."""

from graphc.emit.emitter import NODES_FILE, EmittedModule, Emitter, all_nodes, emit_module

__all__ = ["NODES_FILE", "EmittedModule", "Emitter", "all_nodes", "emit_module"]
