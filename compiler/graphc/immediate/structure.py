# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Graphs of functions that are traced at each call, by what identifies them."""

from __future__ import annotations

import numpy as np

from graphc.compile.fingerprint import fingerprint
from graphc.emit.native import MAX_LITERAL
from graphc.function.io import OutputForm
from graphc.graph.basic import Constant, Variable
from graphc.graph.function_graph import FunctionGraph
from graphc.graph.replace import rebuild
from graphc.graph.shared import SharedVariable
from graphc.graph.tensor.type import TensorType
from graphc.graph.traversal import ancestors
from graphc.immediate.executable import Executable


def with_inputs(executable: Executable) -> tuple[Executable, list[np.ndarray], str | None]:
    """An executable whose large constants are inputs, their values, and a key for its graph.

    The key is None where the graph cannot be identified: it has shared variables, or ops of a user without
    ``__props__``.
    """
    found = list(ancestors(executable.outputs, set(executable.inputs)))
    large = [
        v
        for v in found
        if isinstance(v, Constant) and isinstance(v.type, TensorType) and v.data.size > MAX_LITERAL
    ]
    if large:
        places: dict[Variable, Variable] = {v: v.type.make_variable() for v in large}
        outputs = rebuild(executable.outputs, dict(places), copy_nodes=False, strict=True)
        inputs = [*executable.inputs, *places.values()]
        executable = Executable(
            executable.name,
            inputs,
            _replaced(executable.form, outputs),
            executable.kinds,
            place=executable.place,
        )
    key = None
    if not any(isinstance(v, SharedVariable) for v in found):
        key = fingerprint(FunctionGraph(executable.inputs, executable.outputs), len(executable.inputs))
    return executable, [v.data for v in large], key


def _replaced(form: OutputForm, variables: list[Variable]) -> OutputForm:
    form = form.without_variables()
    form.variables = variables
    return form
