# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Special functions of complex numbers, which SciPy computes. Those of real numbers are elementwise rows."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any, ClassVar

import numpy as np

from graphc.graph.basic import Apply, Flags, Maybe, Variable, Variables
from graphc.graph.op import Op
from graphc.graph.tensor.convert import as_tensor_variable
from graphc.graph.undefined import grad_not_implemented
from graphc.ops.elementwise import ROWS
from graphc.ops.external import of_scipy

if TYPE_CHECKING:
    from graphc.graph.tensor import TensorLike
    from graphc.graph.tensor.variable import TensorVariable
    from graphc_runtime.thunk import Register


_WITH_SIZES = ("airye_bi", "airye_bip")


def _wofz(z: TensorVariable, out: TensorVariable, g: TensorVariable) -> TensorVariable:
    return g * (2j / float(np.sqrt(np.pi)) - 2 * z * out)


class ComplexSpecial(Op):
    """A function of ``scipy.special`` of each element of a complex array; analytic but on cuts.

    Args:
        name: of the function, or of one of its results; and of the elementwise row that has its derivative.
    """

    takes_as_stored = False

    __props__: ClassVar[tuple[str, ...]] = ("name",)
    absent: ClassVar[dict[str, str]] = {"emit": "SciPy computes it in Python; there is no C function"}

    def __init__(self, name: str) -> None:
        self.name = name

    def __str__(self) -> str:
        return f"{self.name}{{complex}}"

    def make_node(self, x: TensorLike) -> Apply:
        x = as_tensor_variable(x)
        if x.type.kind != "c":
            raise TypeError(f"{self} takes complex numbers, got {x} of type {x.type}")
        return Apply(self, [x], [x.type.make_variable()])

    def perform(self, node: Apply, inputs: Sequence[np.ndarray], output_storage: Sequence[Register]) -> None:
        x = np.asarray(inputs[0])
        with np.errstate(all="ignore"):
            found = of_scipy(self.name)(x.astype("complex128"))
        output_storage[0][0] = np.asarray(found, dtype=x.dtype)

    def _along(self, x: Variable, out: Variable, direction: Variable | None) -> list[Variable | None]:
        """The derivative times a tangent or a cotangent: cotangents are not conjugated."""
        if direction is None:
            return [None]
        if self.name in _WITH_SIZES:
            return [grad_not_implemented(self, 0, x, "it is scaled by the size of an exponential")]
        rules: Any = (_wofz,) if self.name == "wofz" else ROWS[self.name].grad
        return [rules[0](x, out, direction)]

    def pullback(self, inputs: Variables, outputs: Variables, cotangents: Maybe) -> list[Variable | None]:
        return self._along(inputs[0], outputs[0], cotangents[0])

    def pushforward(self, inputs: Variables, outputs: Variables, tangents: Maybe) -> list[Variable | None]:
        return self._along(inputs[0], outputs[0], tangents[0])

    def batch(self, node: Apply, inputs: Variables, batched: Flags, size: TensorVariable) -> list[Variable]:
        """Elements stay elements."""
        return [self(inputs[0])]


def of_complex(name: str) -> Callable[[Any], Variable | None]:
    """The argument ``special`` of a row: the function of complex operands, None of others."""

    def special(x: TensorVariable) -> Variable | None:
        x = as_tensor_variable(x)
        return ComplexSpecial(name)(x) if x.type.kind == "c" else None

    return special
