# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Graph core: types, variables, operations and the walks over them."""

from graphc.graph import pickling as pickling
from graphc.graph.basic import Apply as Apply
from graphc.graph.basic import Constant as Constant
from graphc.graph.basic import Variable as Variable
from graphc.graph.function_graph import FunctionGraph as FunctionGraph
from graphc.graph.op import Op as Op
from graphc.graph.replace import clone as clone
from graphc.graph.replace import clone_replace as clone_replace
from graphc.graph.replace import equal_computations as equal_computations
from graphc.graph.replace import graph_replace as graph_replace
from graphc.graph.traversal import ancestors as ancestors
from graphc.graph.traversal import explicit_graph_inputs as explicit_graph_inputs
from graphc.graph.traversal import graph_inputs as graph_inputs
from graphc.graph.traversal import toposort as toposort
from graphc.graph.type import Type as Type
from graphc.hooks import publish as _publish

_publish(globals(), imported=True)
