# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Printing: ``Print``, an op that shows a value as it is computed, and what prints graphs.

Source: PyTensor's ``pytensor.printing``.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING

import graphc.tensor as pt
from graphc.graph.basic import Apply, Flags, Maybe, Variable, Variables
from graphc.graph.op import Op
from graphc.graph.printing import debugprint as debugprint
from graphc.graph.printing import dprint as dprint
from graphc.graph.printing import pprint as pprint

if TYPE_CHECKING:
    import numpy as np

    from graphc.graph.tensor import TensorLike
    from graphc_runtime.thunk import Register

pp = pprint


def print_attributes(op: Print, value: np.ndarray) -> None:
    """Prints the message and each attribute of the value; methods are called."""
    for name in op.attrs:
        attribute = getattr(value, name)
        shown = attribute() if callable(attribute) else attribute
        print(op.message, name, "=", shown, flush=True)


class Print(Op):
    """``Print("x")(x)`` is x, and prints its value whenever it is computed.

    The op runs in Python, so a graph with it is compiled in parts around it (``f.report`` says where).

    Args:
        message: printed before the value.
        attrs: attributes of the value to print, or methods to call: ``("__str__",)``, ``("shape", "min")``.
        global_fn: prints instead: ``global_fn(op, value)``.
    """

    __props__ = ("message", "attrs", "global_fn")
    view_map = {0: [0]}
    body_obstacle = "it prints, which only Python can"

    def __init__(
        self,
        message: str = "",
        attrs: Sequence[str] = ("__str__",),
        global_fn: Callable[[Print, np.ndarray], None] = print_attributes,
    ) -> None:
        if isinstance(attrs, str):
            raise TypeError(f"attrs must be a tuple of names, got the string {attrs!r}; write ({attrs!r},)")
        self.message, self.attrs, self.global_fn = message, tuple(attrs), global_fn

    def make_node(self, x: TensorLike) -> Apply:
        x = x if isinstance(x, Variable) else pt.as_tensor_variable(x)
        return Apply(self, [x], [x.type()])

    def perform(self, node: Apply, inputs: Sequence[np.ndarray], output_storage: Sequence[Register]) -> None:
        output_storage[0][0] = inputs[0]
        self.global_fn(self, inputs[0])

    def pullback(self, inputs: Variables, outputs: Variables, cotangents: Maybe) -> list[Variable | None]:
        return list(cotangents)

    def pushforward(self, inputs: Variables, outputs: Variables, tangents: Maybe) -> list[Variable | None]:
        return list(tangents)

    def batch(self, node: Apply, inputs: Variables, batched: Flags, size: Variable | int) -> list[Variable]:
        """Prints the whole batch at once."""
        return [self(inputs[0])]

    def __str__(self) -> str:
        return f"Print{{{self.message!r}}}"
