# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""``Matmul``: the matrix product. ``dot``, ``matmul``, ``outer`` and ``tensordot`` are written with it."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

import numpy as np

from graphc.graph.basic import Apply, Maybe, Variable, Variables
from graphc.graph.location import describe
from graphc.graph.op import Op
from graphc.graph.tensor.convert import as_tensor_variable
from graphc.graph.tensor.type import TensorType
from graphc.ops.elementwise import cast_to, is_discrete
from graphc.ops.rows_arithmetic import promote
from graphc.ops.shaping import specify_shape, swapaxes

if TYPE_CHECKING:
    from graphc.emit.emitter import Emitter
    from graphc.graph.tensor.like import TensorLike
    from graphc.graph.tensor.variable import TensorVariable
    from graphc_runtime.thunk import Register


def _transposed(x: Variable) -> TensorVariable:
    return swapaxes(x, -1, -2)


def _with_size(x: Variable, axis: int, size: int | None) -> Variable:
    """x with a size that its type does not know."""
    if size is None or x.type.shape[axis] is not None:
        return x
    sizes: list[int | None] = [None] * x.type.ndim
    sizes[axis] = size
    return specify_shape(x, sizes)


class Matmul(Op):
    """Product over the last axis of a and the last but one of b; leading axes are a batch and agree."""

    takes_as_stored = False

    __props__ = ()

    def make_node(self, a: TensorLike, b: TensorLike) -> Apply:
        a, b = as_tensor_variable(a), as_tensor_variable(b)
        if a.type.ndim < 2 or a.type.ndim != b.type.ndim:
            raise TypeError(f"Matmul takes operands of equal rank of at least 2, got {a.type} and {b.type}")
        dtype = promote(a.type.numpy_dtype, b.type.numpy_dtype).name
        a, b = cast_to(a, dtype), cast_to(b, dtype)
        left, right = a.type.shape, b.type.shape
        self._agree(a, b, left[-1], right[-2], f"the last of {left}, the last but one of {right}")
        batch = []
        for m, n in zip(left[:-2], right[:-2], strict=True):
            self._agree(a, b, m, n, f"leading dimensions of {left} and {right}")
            batch.append(n if m is None else m)
        return Apply(self, [a, b], [TensorType(dtype, (*batch, left[-2], right[-1])).make_variable()])

    def _agree(self, a: Variable, b: Variable, m: int | None, n: int | None, where: str) -> None:
        if m is not None and n is not None and m != n:
            raise ValueError(
                f"matrix product of {a}{describe(a.location)} and {b}{describe(b.location)}: sizes {m} and "
                f"{n} differ "
                f"({where})"
            )

    def perform(self, node: Apply, inputs: Sequence[np.ndarray], output_storage: Sequence[Register]) -> None:
        a, b = inputs
        if a.shape[-1] != b.shape[-2] or a.shape[:-2] != b.shape[:-2]:
            raise ValueError(
                f"matrix product of arrays of shapes {a.shape} and {b.shape}{describe(node.location)}"
            )
        with np.errstate(all="ignore"):
            output_storage[0][0] = np.matmul(a, b)

    def pullback(self, inputs: Variables, outputs: Variables, cotangents: Maybe) -> list[Variable | None]:
        (a, b), (g,) = inputs, cotangents
        if g is None or is_discrete(outputs[0]):
            return [None, None]
        # Cotangents know the sizes that their operands know, and the axes that are summed over are equal.
        size_a, size_b = a.type.shape[-1], b.type.shape[-2]
        return [
            self(g, _transposed(_with_size(b, -2, size_a))),
            self(_transposed(_with_size(a, -1, size_b)), g),
        ]

    def pushforward(self, inputs: Variables, outputs: Variables, tangents: Maybe) -> list[Variable | None]:
        (a, b), (t_a, t_b) = inputs, tangents
        if is_discrete(outputs[0]) or (t_a is None and t_b is None):
            return [None]
        terms = [self(t_a, b)] if t_a is not None else []
        terms += [self(a, t_b)] if t_b is not None else []
        return [terms[0] if len(terms) == 1 else terms[0] + terms[1]]

    def emit(self, node: Apply, operands: Sequence[str], e: Emitter) -> list[str]:
        names, types = self._refined(node, operands, e)
        attrs = "transpose_a = false, transpose_b = false"
        out = node.outputs[0].type
        if out.dtype != "float16":
            return [e.op("graphc.matmul", names, types, e.type_of(node.outputs[0]), attrs)]
        # Products of float16 are added up in float32, as NumPy's are.
        wide = [kind.replace("f16", "f32") for kind in types]
        names = [e.op("graphc.cast", [x], [t], w) for x, t, w in zip(names, types, wide, strict=True)]
        single = e.tensor_type("float32", out.shape)
        product = e.op("graphc.matmul", names, wide, single, attrs)
        return [e.op("graphc.cast", [product], [single], e.type_of(node.outputs[0]))]

    def _refined(self, node: Apply, operands: Sequence[str], e: Emitter) -> tuple[list[str], list[str]]:
        """The operands, and their types, with what each knows of sizes that they have in common: a product
        is rewritten into operations that would broadcast a static 1.
        """
        shapes: list[list[int | None]] = [list(x.type.shape) for x in node.inputs]
        rank = len(shapes[0])
        for axes in (*((i, i) for i in range(rank - 2)), (rank - 1, rank - 2)):
            for side, axis in enumerate(axes):
                known = shapes[1 - side][axes[1 - side]]
                if shapes[side][axis] is None and known is not None:
                    given, expected = e.dim_of(node.inputs[side], operands[side], axis), e.const_index(known)
                    message = (
                        f"matrix product: the {('left', 'right')[side]} operand has size {{given}} in "
                        f"dimension {axis}, the other one needs {{expected}}"
                    )
                    e.check(e.compare("eq", given, expected), given, expected, message)
                    shapes[side][axis] = known
        types = [e.tensor_type(x.type.dtype, shape) for x, shape in zip(node.inputs, shapes, strict=True)]
        names = [
            e.cast_type(operand, e.type_of(x), wanted)
            for x, operand, wanted in zip(node.inputs, operands, types, strict=True)
        ]
        return names, types
