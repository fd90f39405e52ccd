# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Bridges to other libraries. Each is an optional extra that needs no other, and nothing else in graphc
imports them. Here is what several need: the derivatives that a library asks for by cotangents.
"""

from __future__ import annotations

import graphc
from graphc.graph.basic import Variable, Variables


def is_smooth(variable: Variable) -> bool:
    """True if derivatives by it are numbers: its dtype is floating point or complex."""
    return variable.type.kind in "fc"


def pullback_graph(inputs: Variables, outputs: Variables) -> tuple[list[Variable], list[Variable], list[int]]:
    """Cotangents of inputs from inputs and cotangents of outputs.

    Returns:
        The inputs followed by one cotangent for each output, the cotangents of the inputs that have one,
        and the positions of these inputs.
    """
    cotangents = [output.type.make_variable() for output in outputs]
    positions = [i for i, variable in enumerate(inputs) if is_smooth(variable)]
    smooth = [i for i, variable in enumerate(outputs) if is_smooth(variable)]
    slopes = graphc.pullback(
        [outputs[i] for i in smooth],
        [inputs[i] for i in positions],
        [cotangents[i] for i in smooth],
        disconnected_inputs="ignore",
    )
    return [*inputs, *cotangents], slopes, positions
