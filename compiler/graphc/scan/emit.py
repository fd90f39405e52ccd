# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Scans in the graphc dialect."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from graphc.emit.conditionals import emit_graph
from graphc.emit.emitter import quoted
from graphc.graph.basic import Apply
from graphc.graph.tensor.type import TensorType
from graphc.ops.dimshuffle import emit_dimshuffle
from graphc.ops.shaping import emit_as_row

if TYPE_CHECKING:
    from graphc.emit.emitter import Emitter
    from graphc.graph.tensor.variable import TensorVariable
    from graphc.scan.op import Scan

LOOP = "!graphc.loop"


def emit(node: Apply, operands: Sequence[str], e: Emitter) -> list[str]:
    """Emits one application of a `Scan`; returns the SSA names of its outputs."""
    op: Any = node.op
    spec = op.spec
    outer = dict(zip(spec.outer_input_names(), operands, strict=True))
    variables = dict(zip(spec.outer_input_names(), node.inputs, strict=True))
    steps = e.index(variables["n_steps"], outer["n_steps"])
    _check_steps(op, steps, outer, variables, e)
    initial = {}
    for untraced in spec.untraced:
        name, type_ = outer[untraced.name], e.type_of(variables[untraced.name])
        initial[untraced.name] = _expand(name, variables[untraced.name].type, type_, e)
    with e.body() as body:
        t = e.fresh()
        for (name, tap), inner in zip(spec.inner_input_names(), op.inner_inputs, strict=True):
            e.values[inner] = _read(op, name, tap, inner, t, outer, variables, e)
        emit_graph(op.compiled_graph, e)
        e.at_node(node)
        _declare(op, outer, variables, initial, e)
    lines = [f"    ^bb0({t}: index):", *body]
    attributes = f"name = {quoted(op.name or 'scan')}, reverse = {str(op.reverse).lower()}"
    if op.unroll > 1:
        attributes += f", unroll = {op.unroll} : i64"
    if op.progress:
        attributes += ", progress"
    scan = e.raw(
        f'"graphc.scan"({steps}) ({{\n' + "\n".join(lines) + f"\n    }}) {{{attributes}}} : (index) -> {LOOP}"
    )
    return _results(node, scan, e)


def _check_steps(
    op: Scan, steps: str, outer: dict[str, str], variables: dict[str, TensorVariable], e: Emitter
) -> None:
    name = op.name or "scan"
    zero = e.const_index(0)
    e.check(
        e.compare("sge", steps, zero),
        steps,
        zero,
        f"the number of steps of scan '{name}' must be at least 0, but is {{given}}",
    )
    for sequence in op.spec.sequences:
        length = e.dim_of(variables[sequence.name], outer[sequence.name], 0)
        available = e.subtract(length, e.const_index(sequence.taps[-1]))
        if sequence.taps[-1]:
            # No step reads a row that is not there.
            available = e.arith("maxsi", available, zero)
        e.check(
            e.compare("sle", steps, available),
            steps,
            available,
            f"scan '{name}' runs {{given}} steps, but sequence '{sequence.name}' has rows for "
            "{expected} only",
        )
    for state in op.spec.states:
        rows = e.dim_of(variables[state.name], outer[state.name], 0)
        window = e.const_index(state.window)
        e.check(
            e.compare("eq", rows, window),
            rows,
            window,
            f"state '{state.name}' of scan '{name}' needs {{expected}} initial rows, but is given {{given}}",
        )


def _read(
    op: Scan,
    name: str,
    tap: int,
    inner: TensorVariable,
    t: str,
    outer: dict[str, str],
    variables: dict[str, TensorVariable],
    e: Emitter,
) -> str:
    """The value of an inner input in the body."""
    spec = op.spec
    row = e.type_of(inner)
    if any(name == role.name for role in spec.invariants):
        return str(e.cast_type(outer[name], e.type_of(variables[name]), row))
    if any(name == role.name for role in spec.sequences):
        index = e.add(t, e.const_index(tap))
        given = e.type_of(variables[name])
        natural = e.tensor_type(inner.type.dtype, variables[name].type.shape[1:])
        value = e.op("graphc.scan_seq", [outer[name], index], [given, "index"], natural)
        return str(e.cast_type(value, natural, row))
    untraced = any(name == role.name for role in spec.untraced)
    tap = -1 if untraced else tap
    shape = inner.type.shape if untraced else variables[name].type.shape[1:]
    natural = e.tensor_type(inner.type.dtype, shape)
    value = e.op("graphc.scan_prev", [t], ["index"], natural, f"state = {quoted(name)}, tap = {tap} : i64")
    return str(e.cast_type(value, natural, row))


def _declare(
    op: Scan, outer: dict[str, str], variables: dict[str, TensorVariable], initial: dict[str, str], e: Emitter
) -> None:
    """The carries, collects and the end of the body."""
    spec = op.spec
    names = [e.operand(v) for v in op.compiled_graph.outputs]
    results = dict(zip(spec.inner_output_names(), zip(names, op.inner_outputs, strict=True), strict=True))
    for state in spec.states:
        initial_type = variables[state.name].type
        row = e.tensor_type(initial_type.dtype, initial_type.shape[1:])
        values = [
            emit_as_row(e, quoted(state.name), *results[state.name, write], initial_type.shape[1:])
            for write in state.writes
        ]
        types = [e.type_of(variables[state.name]), *[row] * len(values)]
        _carry(state.name, state.taps, state.writes, [outer[state.name], *values], types, e)
    for output in spec.outputs:
        value, variable = results[output.name, 0]
        e.statement(
            f'"graphc.scan_collect"({value}) {{state = {quoted(output.name)}, keep = "steps"}} : '
            f"({e.type_of(variable)}) -> ()"
        )
    for untraced in spec.untraced:
        value, variable = results[untraced.name, 0]
        row = e.type_of(variable)
        stacked = e.tensor_type(variable.type.dtype, (1, *variables[untraced.name].type.shape))
        # Unlike those of other states, its rows cannot be asked for, however many iterations there are.
        last = 'keep = "last", rows = 1 : i64'
        _carry(untraced.name, (-1,), (0,), [initial[untraced.name], value], [stacked, row], e, last)
    if not spec.is_while:
        e.statement('"graphc.scan_end"() : () -> ()')
        return
    value, variable = results["until", 0]
    stop = e.raw(f"tensor.extract {value}[] : {e.type_of(variable)}")
    e.statement(f'"graphc.scan_end"({stop}) : (i1) -> ()')


def _carry(
    name: str,
    taps: Sequence[int],
    writes: Sequence[int],
    operands: list[str],
    types: list[str],
    e: Emitter,
    keep: str = 'keep = "all"',
) -> None:
    attributes = (
        f"state = {quoted(name)}, taps = array<i64: {', '.join(map(str, taps))}>, "
        f"writes = array<i64: {', '.join(map(str, writes))}>, {keep}"
    )
    e.statement(f'"graphc.scan_carry"({", ".join(operands)}) {{{attributes}}} : ({", ".join(types)}) -> ()')


def _results(node: Apply, scan: str, e: Emitter) -> list[str]:
    op: Any = node.op
    spec = op.spec
    types = dict(zip(spec.outer_output_names(), (v.type for v in node.outputs), strict=True))
    found = [
        _trace(scan, role.name, e.tensor_type(types[role.name].dtype, types[role.name].shape), e)
        for role in (*spec.states, *spec.outputs)
    ]
    for untraced in spec.untraced:
        type_ = types[untraced.name]
        rows = e.tensor_type(type_.dtype, (1, *type_.shape))
        trace, last = _trace(scan, untraced.name, rows, e), e.const_index(0)
        found.append(
            e.op("graphc.scan_seq", [trace, last], [rows, "index"], e.tensor_type(type_.dtype, type_.shape))
        )
    if spec.is_while:
        taken = e.op("graphc.scan_steps", [scan], [LOOP], "index")
        found.append(e.from_index(taken))
    return found


def _trace(scan: str, name: str, type_: str, e: Emitter) -> str:
    return str(e.op("graphc.scan_trace", [scan], [LOOP], type_, f"state = {quoted(name)}"))


def _expand(value: str, type_: TensorType, text: str, e: Emitter) -> str:
    """A row as a stack of one."""
    stacked = e.tensor_type(type_.dtype, (1, *type_.shape))
    return emit_dimshuffle(e, value, text, [-1, *range(type_.ndim)], stacked)
