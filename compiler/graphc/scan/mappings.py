# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Correspondence between the variables of a scan and of its inner graph.

Four lists of variables have positions: outer inputs, inner inputs, inner outputs and outer outputs. What ties
them together is the name of a role: a sequence, a state, an output, an untraced state or a non-sequence.
"""

from __future__ import annotations

from collections.abc import Collection, Sequence
from typing import TYPE_CHECKING, Any

from graphc.gradient.connectivity import pattern_of
from graphc.graph.basic import Variable
from graphc.graph.traversal import io_toposort
from graphc.scan.spec import RoleName, ScanSpec

if TYPE_CHECKING:
    from graphc.scan.op import Scan

_SIDES = ("outer_inp", "inner_inp", "inner_out", "outer_out")
Positions = dict[str, dict[str, list[int]]]
Mapping = dict[int, int] | dict[int, list[int]]


def roles(spec: ScanSpec) -> dict[str, RoleName]:
    """The role of each name, in the order of the spec.

    A name that is an input and an output of two different things, such as a sequence and an output, stands
    for the output.
    """
    listed = (*spec.sequences, *spec.states, *spec.outputs, *spec.untraced, *spec.invariants)
    return {role.name: role.role for role in listed}


def names_of(spec: ScanSpec, role: RoleName) -> list[str]:
    """The names that have a role.

    Args:
        spec: the roles of a scan.
        role: ``"sequence"``, ``"sit-sot"``, ``"mit-sot"``, ``"mit-mot"``, ``"nit-sot"``, ``"untraced"``,
            ``"non-sequence"``, or ``"condition"`` (that of a while scan, named ``until``).
    """
    if role == "condition":
        return ["until"] if spec.is_while else []
    listed = (*spec.sequences, *spec.states, *spec.outputs, *spec.untraced, *spec.invariants)
    return [entry.name for entry in listed if entry.role == role]


def positions(spec: ScanSpec) -> Positions:
    """Positions of each role in the four lists: ``positions[role][side]``.

    The sides are ``outer_inp``, ``inner_inp``, ``inner_out`` and ``outer_out``. An input and a result may
    have the same name, so the keys are ``"in NAME"`` and ``"out NAME"``, and ``"NAME"`` for states, which are
    both. The number of steps and the condition of a while scan belong to no role.
    """
    both = {role.name for role in (*spec.states, *spec.untraced)}
    result: Positions = {}

    def add(side: str, prefix: str, names: Sequence[str]) -> None:
        for position, name in enumerate(names):
            key = name if name in both else f"{prefix} {name}"
            found = result.setdefault(key, {s: [] for s in _SIDES})
            found[side].append(position)

    outer_outputs = spec.outer_output_names()
    inner_outputs = [name for name, _ in spec.inner_output_names()]
    if spec.is_while:
        outer_outputs, inner_outputs = outer_outputs[:-1], inner_outputs[:-1]
    # Position 0 of the outer inputs is the number of steps.
    add("outer_inp", "in", spec.outer_input_names())
    add("inner_inp", "in", [name for name, _ in spec.inner_input_names()])
    add("inner_out", "out", inner_outputs)
    add("outer_out", "out", outer_outputs)
    result.pop("in n_steps", None)
    return result


def mappings(spec: ScanSpec) -> dict[str, Mapping]:
    """The twelve mappings between the four lists, with PyTensor's names.

    ``mappings(spec)["inner_inp_from_outer_inp"][3]`` are the positions of the inner inputs that read outer
    input 3. A role has at most one outer input and one outer output: mappings to these give a position, -1
    where the role has none. Mappings to inner inputs and outputs give lists: one element a tap or a write.
    The number of steps (outer input 0), the condition of a while scan and the number of steps taken have no
    partners: -1 or an empty list.

    Source: ``get_oinp_iinp_iout_oout_mappings`` of PyTensor's ``ScanMethodsMixin``.
    """
    counts = {
        "outer_inp": len(spec.outer_input_names()),
        "inner_inp": len(list(spec.inner_input_names())),
        "inner_out": len(list(spec.inner_output_names())),
        "outer_out": len(spec.outer_output_names()),
    }
    found = positions(spec).values()
    result: dict[str, Mapping] = {}
    for source in _SIDES:
        for target in _SIDES:
            if source != target:
                lists: dict[int, list[int]] = {i: [] for i in range(counts[source])}
                for sides in found:
                    for position in sides[source]:
                        lists[position] = list(sides[target])
                result[f"{target}_from_{source}"] = lists if target.startswith("inner") else _single(lists)
    return result


def _single(lists: dict[int, list[int]]) -> dict[int, int]:
    return {position: partners[0] if partners else -1 for position, partners in lists.items()}


# -- connectivity ------------------------------------------------------------------------------------------


def reach(inputs: Sequence[Variable], outputs: Sequence[Variable]) -> list[int]:
    """For each output, the inputs whose elements it depends on, as a set of bits: bit i is input i.

    One walk over the graph, by the connection patterns of its ops.
    """
    bits: dict[Variable, int] = {}
    for i, x in enumerate(inputs):
        bits[x] = bits.get(x, 0) | 1 << i
    given = set(bits)
    for node in io_toposort(given, outputs):
        active = [(i, bits[x]) for i, x in enumerate(node.inputs) if bits.get(x)]
        if not active:
            continue
        pattern = pattern_of(node)
        for j, y in enumerate(node.outputs):
            if y not in given:
                bits[y] = 0
                for i, reached in active:
                    if pattern[i][j]:
                        bits[y] |= reached
    return [bits.get(y, 0) for y in outputs]


def inner_reach(op: Any) -> list[int]:
    """`reach` of the inner graph, computed once for each op."""
    if "_inner_reach" not in op.__dict__:
        op._inner_reach = reach(op.inner_inputs, op.inner_outputs)
    return op._inner_reach


def inner_sources(op: Scan) -> dict[str, set[str]]:
    """For each result of an iteration (and ``"until"``), the names of what it depends on directly."""
    names = [name for name, _ in op.spec.inner_input_names()]
    found: dict[str, set[str]] = {}
    for (result, _), bits in zip(op.spec.inner_output_names(), inner_reach(op), strict=True):
        sources = {name for i, name in enumerate(names) if bits >> i & 1}
        found.setdefault(result, set()).update(sources)
    return found


def sources(op: Scan) -> dict[str, set[str]]:
    """For each result of the loop, the names of all that it depends on, through any number of iterations."""
    direct = inner_sources(op)
    carried = {role.name for role in (*op.spec.states, *op.spec.untraced)}
    return {result: closure({result}, direct, carried) for result in direct}


def closure(results: Collection[str], direct: dict[str, set[str]], carried: Collection[str]) -> set[str]:
    """Variables on which ``results`` depend through any number of iterations.

    Args:
        results: names of results of an iteration.
        direct: what each result depends on within an iteration.
        carried: names that are handed from iteration to iteration, and may be followed.

    Returns:
        Names of inputs; a state among ``results`` is its own input.
    """
    found: set[str] = set()
    todo = list(results)
    found.update(name for name in results if name in carried)
    seen = set(todo)
    while todo:
        for name in direct[todo.pop()]:
            found.add(name)
            if name in carried and name not in seen:
                seen.add(name)
                todo.append(name)
    return found


def connection_pattern(op: Any) -> list[list[bool]]:
    """``pattern[i][j]``: whether outer output j depends on the elements of outer input i.

    A state depends on its initial rows, and on whatever its inner output depends on, directly or through the
    other states. Nothing depends on the elements of the number of steps. The pattern is kept with the op, so
    that loops nested in loops are looked at once each.
    """
    if "_connection_pattern" not in op.__dict__:
        found = sources(op)
        outputs = op.spec.outer_output_names()
        results = [
            "until" if op.spec.is_while and i == len(outputs) - 1 else y for i, y in enumerate(outputs)
        ]
        rows = [[False] * len(outputs)]
        rows += [[name in found[y] for y in results] for name in op.spec.outer_input_names()[1:]]
        op._connection_pattern = rows
    return [list(row) for row in op._connection_pattern]
