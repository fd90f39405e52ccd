# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Graph core: types, variables, operations and the walks over them."""

from graphc.graph import pickling as pickling
from graphc.graph.basic import Apply, Constant, Variable
from graphc.graph.function_graph import FunctionGraph
from graphc.graph.op import Op
from graphc.graph.replace import clone, clone_replace, equal_computations, graph_replace
from graphc.graph.traversal import ancestors, explicit_graph_inputs, graph_inputs, toposort
from graphc.graph.type import Type

__all__ = [
    "Apply",
    "Constant",
    "FunctionGraph",
    "Op",
    "Type",
    "Variable",
    "ancestors",
    "clone",
    "clone_replace",
    "equal_computations",
    "explicit_graph_inputs",
    "graph_inputs",
    "graph_replace",
    "toposort",
]
