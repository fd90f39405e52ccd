# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Work on constants that every call would repeat is done once, when a function is made.

Large constants are arguments of the code, so that the code does not depend on data; hence the compiler cannot
compute with them, and ``gammaln(data)`` or ``cholesky(matrix)`` would run in each call. Here such values
become constants themselves. Literals are folded by the compiler (`graphc.passes.constant_folding`).

What stays in the graph: views, which cost nothing; what is larger than the constants that it is made of, such
as outer products; what is returned, so that each call has arrays of its own; loops, branches, random numbers
and whatever has effects.

Source: PyTensor's `constant_folding`.
"""

from __future__ import annotations

from collections.abc import Iterable
from math import prod
from typing import Any

from graphc.emit.emitter import is_hidden_argument, why_not_native
from graphc.graph.basic import Apply, Constant, Variable
from graphc.graph.function_graph import FunctionGraph
from graphc.graph.replace import rebuild
from graphc.graph.tensor.type import TensorType
from graphc.graph.tensor.variable import TensorConstant
from graphc.graph.thunks import perform_node
from graphc.graph.traversal import toposort
from graphc.ops.advanced import Put, Take
from graphc.ops.create import Iota
from graphc.ops.cumulative import _Running
from graphc.ops.dimshuffle import DimShuffle
from graphc.ops.elementwise import Elementwise
from graphc.ops.join import Join
from graphc.ops.kernel import KernelOp
from graphc.ops.matrices import Matmul
from graphc.ops.reduce import ArgReduce, Reduce, _Normalized
from graphc.ops.shape import MakeVector, _Sizes
from graphc.ops.shaping import Sized
from graphc.ops.subtensor import _Basic

# What is worth doing once, and what only moves elements or makes them of a few numbers.
_WORK = (Elementwise, Reduce, ArgReduce, KernelOp, Matmul, Take, Put, _Running, _Normalized)
_MOST_ELEMENTS = 1 << 16
_VIEWS = (DimShuffle, Sized, _Basic, Join, Iota, MakeVector, _Sizes)


def with_known_values(fgraph: FunctionGraph, count: int) -> list[Variable] | None:
    """The outputs of a graph, with constants in place of what is computed of large constants alone.

    Args:
        fgraph: the graph.
        count: how many of its inputs are the user's; shared variables and large constants follow.

    Returns:
        The outputs; None if nothing is known.
    """
    if any(node.op.destroy_map for node in fgraph.nodes):
        return None
    sources = _sources(fgraph)
    chosen = list(_chosen(fgraph, sources))
    if not chosen:
        return None
    known: dict[Variable, Any] = {}
    for node in toposort(chosen):
        _perform(node, known)
    memo: dict[Variable, Variable] = {v: v for v in fgraph.inputs}
    made: dict[Variable, Variable] = {}
    equal: dict[tuple[TensorType, bytes], TensorConstant] = {}  # a value and its slope index alike
    for v in chosen:
        if v in known and isinstance(v.type, TensorType):
            found = TensorConstant(v.type, known[v], v.name)
            made[v] = equal.setdefault((v.type, found.data.tobytes()), found)
    return rebuild(fgraph.outputs, memo | made, copy_nodes=False, strict=True) if made else None


def _sources(fgraph: FunctionGraph) -> dict[Variable, frozenset[Variable]]:
    """The large constants that each variable is computed of, where it is computed of constants alone."""
    found: dict[Variable, frozenset[Variable]] = {}
    none: frozenset[Variable] = frozenset()
    for node in fgraph.nodes:
        if not isinstance(node.op, (*_WORK, *_VIEWS)) or why_not_native(node) is not None:
            continue
        if all(v in found or isinstance(v, Constant) for v in node.inputs):
            after = (found.get(v, frozenset((v,)) if is_hidden_argument(v) else none) for v in node.inputs)
            found.update(dict.fromkeys(node.outputs, none.union(*after)))
    return found


def _chosen(fgraph: FunctionGraph, sources: dict[Variable, frozenset[Variable]]) -> Iterable[Variable]:
    """The last values that are computed of constants alone and are worth keeping."""
    wanted = {v for v in fgraph.outputs if v in sources}
    returned = frozenset(wanted)
    for node in reversed(fgraph.nodes):
        if node.outputs[0] not in sources:
            wanted.update(v for v in node.inputs if v in sources)
            continue
        used = [v for v in node.outputs if v in wanted]
        if not used:
            continue
        if isinstance(node.op, _WORK) and all(v not in returned and _fits(v, sources[v]) for v in used):
            yield from used
        else:
            wanted.update(v for v in node.inputs if v in sources)


def _fits(v: Variable, after: frozenset[Variable]) -> bool:
    """True if a value has no more elements than the constants that it is computed of, or is not large and
    takes long to compute.
    """
    if not isinstance(v.type, TensorType) or None in v.type.shape or not after:
        return False
    size = prod(n for n in v.type.shape if n is not None)
    if size <= sum(c.data.size for c in after if isinstance(c, Constant)):
        return True
    return size <= _MOST_ELEMENTS and _takes_long(v, v.type.shape)


def _takes_long(v: Variable, shape: tuple[int | None, ...]) -> bool:
    """True if there is more than arithmetic in what computes so many elements."""
    node = v.owner
    if node is None or v.type.shape != shape:
        return False
    if isinstance(node.op, Elementwise):
        return not node.op.row.cheap or any(_takes_long(x, shape) for x in node.inputs)
    return isinstance(node.op, _WORK)


def _perform(node: Apply, known: dict[Variable, Any]) -> None:
    """Adds the results of a node, unless one that it needs is missing; what fails is left to calls."""
    values = [v.data if isinstance(v, Constant) else known.get(v) for v in node.inputs]
    given = [value for value in values if value is not None]
    if len(given) < len(values):
        return
    try:
        known.update(zip(node.outputs, perform_node(node, given), strict=True))
    except Exception:
        # It is raised by calls, which say where.
        return
