# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Copies of functions: with other shared variables, or without updates. Code is shared where it can be."""

from __future__ import annotations

import copy
from dataclasses import replace
from typing import TYPE_CHECKING, Any

from graphc.function.modes import build_program
from graphc.function.program import Program
from graphc.graph.basic import Variable
from graphc.graph.function_graph import FunctionGraph
from graphc.graph.replace import rebuild
from graphc.graph.shared import SharedVariable

if TYPE_CHECKING:
    from graphc.function.base import AnyFunction
    from graphc.function.io import In


Swap = dict[SharedVariable, SharedVariable]


def rebuild_function(f: AnyFunction, swap: Swap, delete_updates: bool, name: str | None) -> AnyFunction:
    """See `Function.copy`.

    Raises:
        ValueError: a key of ``swap`` is not used by the function.
        TypeError: a swapped variable has another type.
    """
    _check(f, swap)
    inputs, targets = _own_defaults(f, swap)
    if delete_updates:
        targets = []
    signature = replace(f.signature, name=name, targets=targets, inputs=inputs, trust_input=f.trust_input)
    if (delete_updates and f.signature.targets) or not _keeps_roles(f, swap):
        return _compiled_again(f, swap, delete_updates, signature)
    # Code takes the values of shared variables as arguments: it does not know which variables they are of.
    fgraph = f.fgraph if not swap else _swapped(f, swap, len(f.fgraph.outputs))
    report = copy.copy(f.report)
    report.name = name or "function"
    return type(f)(signature, Program(fgraph, f.executor, report))


def _check(f: AnyFunction, swap: Swap) -> None:
    used = f.get_shared()
    for old, new in swap.items():
        if old not in used:
            raise ValueError(f"cannot swap {old}: the function does not use it; it uses {used}")
        if not isinstance(new, SharedVariable) or old.type != new.type:
            raise TypeError(
                f"cannot swap {old} of type {old.type} for {new}; give a shared variable of the same type"
            )


def _keeps_roles(f: AnyFunction, swap: Swap) -> bool:
    """True if different variables stay different, so that the swapped graph has as many inputs."""
    after = [swap.get(v, v) for v in f.get_shared()]
    return (
        len({id(v.container) for v in after}) == len({id(v.container) for v in f.get_shared()}) == len(after)
    )


def _swapped(f: AnyFunction, swap: Swap, n_outputs: int) -> FunctionGraph:
    memo: dict[Variable, Variable] = dict(swap.items())
    outputs = rebuild(f.fgraph.outputs[:n_outputs], dict(memo), copy_nodes=False, strict=True)
    given = [item.variable for item in f.inputs]
    cells = [memo.get(v, v) for v in f.fgraph.inputs[len(given) :]]
    return FunctionGraph([*given, *dict.fromkeys(cells)], outputs)


def _compiled_again(f: AnyFunction, swap: Swap, delete_updates: bool, signature: Any) -> AnyFunction:
    fgraph = _swapped(f, swap, f.signature.form.count if delete_updates else len(f.fgraph.outputs))
    program = build_program(fgraph, signature, f.report.again(signature.name or "function"))
    return type(f)(signature, program)


def _own_defaults(f: AnyFunction, swap: Swap) -> tuple[list[In], list[Any]]:
    """Inputs whose default values are independent of the original's, and targets that name their cells."""
    inputs = [copy.copy(item) for item in f.inputs]
    for item in inputs:
        item.default = copy.deepcopy(item.default)
    originals = {id(old.default): new.default for old, new in zip(f.inputs, inputs, strict=True)}
    targets: list[Any] = [swap.get(t, t) if isinstance(t, SharedVariable) else t for t in f.signature.targets]
    return inputs, [originals.get(id(t), t) for t in targets]
