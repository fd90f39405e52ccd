# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Loops whose untraced states get traces, for reverse mode.

A shared variable that a loop updates is a state of which only the last value is kept. The reverse loop needs
the values of all iterations, so it is built for a second loop, which keeps them; the compiler merges the two.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

from graphc.graph.basic import Constant, Maybe, Variable, Variables
from graphc.graph.tensor.type import TensorType
from graphc.graph.traversal import ancestors
from graphc.graph.undefined import is_discrete
from graphc.ops.create import zeros_like
from graphc.scan.args import Entry, ScanArgs
from graphc.scan.mappings import sources
from graphc.scan.spec import UNBOUNDED, State

if TYPE_CHECKING:
    from graphc.scan.op import Scan

Terms = list[Variable | None]


def pullback_with_traces(op: Scan, inputs: Variables, outputs: Variables, cotangents: Maybe) -> Terms | None:
    """The pullback of a `Scan` by way of a loop that keeps the values of its untraced states.

    Returns:
        Cotangents of the outer inputs; None where no such state matters to the cotangents, or the number of
        iterations has no bound.
    """
    names = op.spec.outer_output_names()
    given = {name: g for name, g in zip(names, cotangents, strict=True) if g is not None}
    wanted = _states_to_trace(op, outputs, given)
    if not wanted or not _is_bounded(inputs[0]):
        return None
    node = outputs[0].owner
    if node is None or node.op is not op or list(node.inputs) != list(inputs):
        node = op.make_node(*inputs)
    args = ScanArgs(node)
    for entry in [entry for entry in args.entries if entry.outer_out is not None and entry.name in wanted]:
        _trace(args, entry)
    traced = args.rebuild()
    found = traced.op.pullback(traced.inputs, traced.outputs, _cotangents(traced, given, wanted))
    rebuilt: Any = traced.op
    by_name = dict(zip(rebuilt.spec.outer_input_names(), found, strict=True))
    return [_as_given(by_name[name], name in wanted) for name in op.spec.outer_input_names()]


def _states_to_trace(op: Scan, outputs: Sequence[Variable], given: Mapping[str, Variable]) -> set[str]:
    """Untraced tensors of floating point that what has cotangents depends on."""
    reached = sources(op)
    used = {name for y in given if y in reached for name in reached[y]} | set(given)
    types = dict(zip(op.spec.outer_output_names(), outputs, strict=True))
    untraced = [role.name for role in op.spec.untraced if role.name in used]
    return {name for name in untraced if _is_continuous(types[name])}


def _is_continuous(v: Variable) -> bool:
    return isinstance(v.type, TensorType) and not v.type.is_untraced and not is_discrete(v)


def _is_bounded(n_steps: Variable) -> bool:
    constants = (v for v in ancestors([n_steps]) if isinstance(v, Constant) and v.data.size == 1)
    return all(v.data < UNBOUNDED for v in constants)


def _trace(args: ScanArgs, entry: Entry) -> None:
    """Make an untraced state one that keeps all values."""
    initial = entry.outer_in[None]
    args.replace(entry, spec=State(entry.name, (-1,), (0,)), outer_in=initial)


def _cotangents(traced: Any, given: Mapping[str, Variable], wanted: set[str]) -> Terms:
    """Cotangents of the outputs of the loop with traces."""
    result: Terms = []
    for name, y in zip(traced.op.spec.outer_output_names(), traced.outputs, strict=True):
        g = given.get(name)
        if g is not None and name in wanted:
            last = 0 if traced.op.reverse else -1
            g = zeros_like(y, dtype=g.type.dtype)[last].inc(g)
        result.append(g)
    return result


def _as_given(g: Variable | None, is_row: bool) -> Variable | None:
    return g[0] if g is not None and is_row and isinstance(g.type, TensorType) else g
