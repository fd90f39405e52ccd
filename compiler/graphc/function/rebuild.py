# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Compiling a function's graph again with other shared variables or without its updates."""

from __future__ import annotations

import copy
from dataclasses import replace
from typing import Any

from graphc.function.modes import build_executor
from graphc.function.report import CompileReport
from graphc.function.shared import SharedVariable
from graphc.function.types import Function
from graphc.graph.basic import Variable
from graphc.graph.function_graph import FunctionGraph
from graphc.graph.replace import rebuild


def rebuild_function(
    f: Function, swap: dict[SharedVariable, SharedVariable], delete_updates: bool, name: str | None
) -> Function:
    """See `Function.copy`.

    Raises:
        ValueError: a key of ``swap`` is not used by the function.
        TypeError: a swapped variable has another type.
    """
    memo: dict[Variable, Variable] = dict(swap.items())
    used = f.get_shared()
    for old, new in swap.items():
        if old not in used:
            raise ValueError(f"cannot swap {old}: the function does not use it; it uses {used}")
        if not isinstance(new, SharedVariable) or old.type != new.type:
            raise TypeError(
                f"cannot swap {old} of type {old.type} for {new}; give a shared variable of the same type"
            )
    outputs = rebuild(f.fgraph.outputs, dict(memo), copy_nodes=False, strict=True)
    targets: list[Any] = [swap.get(t, t) if isinstance(t, SharedVariable) else t for t in f.signature.targets]
    if delete_updates:
        outputs, targets = outputs[: f.signature.form.count], []
    given = [item.variable for item in f.inputs]
    cells = [memo.get(v, v) for v in f.fgraph.inputs[len(given) :]]
    fgraph = FunctionGraph([*given, *dict.fromkeys(cells)], outputs)
    report = CompileReport(name or "function", f.report.mode)
    executor = build_executor(fgraph, f.report.mode, report.name, report)
    inputs, targets = _own_defaults(f, targets)
    return Function(replace(f.signature, name=name, targets=targets, inputs=inputs), fgraph, executor, report)


def _own_defaults(f: Function, targets: list[Any]) -> tuple[list[Any], list[Any]]:
    """Inputs whose default values are independent of the original's, and targets that name their cells."""
    inputs = [copy.copy(item) for item in f.inputs]
    for item in inputs:
        item.default = copy.deepcopy(item.default)
    originals = {id(old.default): new.default for old, new in zip(f.inputs, inputs, strict=True)}
    return inputs, [originals.get(id(t), t) for t in targets]
