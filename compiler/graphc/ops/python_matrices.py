# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""``_PythonMatrices``: base of ops on batches of matrices that SciPy computes and that have no C function."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, ClassVar

import numpy as np

from graphc.graph.basic import Apply, Variable
from graphc.graph.location import describe
from graphc.graph.op import Op
from graphc.graph.tensor.convert import as_tensor_variable
from graphc.graph.tensor.type import TensorType
from graphc.ops.elementwise import cast_to
from graphc.ops.matrices import float_dtype
from graphc.ops.shaping import repeat, shape_padleft

if TYPE_CHECKING:
    from graphc.graph.tensor.like import TensorLike
    from graphc.graph.tensor.variable import TensorVariable
    from graphc_runtime.thunk import Register


class _PythonMatrices(Op):
    """An op whose operands are batches of core arrays with the leading dimensions in common.

    It runs in Python, one core after the other. A subclass defines ``compute``.

    Attributes:
        signature: core dimensions in the notation of NumPy's gufuncs; results have no others than operands.
    """

    signature: ClassVar[str]
    __props__: ClassVar[tuple[str, ...]] = ()
    absent: ClassVar[dict[str, str]] = {
        "emit": "SciPy computes it in Python; there is no C function",
        "pushforward": "the gradient module transposes the pullback",
    }

    def compute(self, *cores: Any) -> np.ndarray | tuple[np.ndarray, ...]:
        """The results for one element of the batch."""
        raise NotImplementedError(f"{type(self).__name__} must define compute")

    def result_dtypes(self, dtype: str) -> Sequence[str]:
        """Dtypes of the results, from that of the operands."""
        return [dtype] * len(self._sides()[1])

    def _sides(self) -> tuple[Any, Any]:
        from graphc_dialects.signatures import Signature

        parsed = Signature.parse(self.signature)
        return parsed.operands, parsed.results

    def make_node(self, *inputs: TensorLike) -> Apply:
        operands, results = self._sides()
        xs = [as_tensor_variable(x) for x in inputs]
        if len(xs) != len(operands):
            raise TypeError(f"{self} takes {len(operands)} arrays, got {len(xs)}")
        dtype = float_dtype(*(x.type.dtype for x in xs))
        rank = max(x.type.ndim - len(core) for x, core in zip(xs, operands, strict=True))
        aligned, known = [], dict[int | str, int]()
        for number, (x, core) in enumerate(zip(xs, operands, strict=True)):
            if x.type.ndim < len(core):
                raise TypeError(
                    f"{self}: argument {number}, {x}{describe(x.location)}, must have at least {len(core)} "
                    f"dimensions, got type {x.type}"
                )
            x = cast_to(x, dtype)
            short = rank + len(core) - x.type.ndim
            aligned.append(shape_padleft(x, short) if short else x)
            for dim, size in zip([*range(rank), *core], aligned[-1].type.shape, strict=True):
                have = known.get(dim)
                if size is None or (isinstance(dim, int) and size == 1):
                    continue
                if have not in (None, size):
                    raise ValueError(
                        f"{self}: argument {number}, {x}{describe(x.location)} of type {x.type}, has size "
                        f"{size} where {have} is expected (in {self.signature})"
                    )
                known[dim] = size
        batch = [self._batch_size(aligned, axis, known) for axis in range(rank)]
        outputs = [
            TensorType(kind, (*batch, *(known.get(dim) for dim in core))).make_variable()
            for kind, core in zip(self.result_dtypes(dtype), results, strict=True)
        ]
        return Apply(self, aligned, outputs)

    @staticmethod
    def _batch_size(xs: Sequence[TensorVariable], axis: int, known: dict[int | str, int]) -> int | None:
        return 1 if all(x.type.shape[axis] == 1 for x in xs) else known.get(axis)

    def perform(self, node: Apply, inputs: Sequence[np.ndarray], output_storage: Sequence[Register]) -> None:
        operands, results = self._sides()
        batches = [x.shape[: x.ndim - len(core)] for x, core in zip(inputs, operands, strict=True)]
        batch = np.broadcast_shapes(*batches)
        sizes = {
            dim: size
            for x, core in zip(inputs, operands, strict=True)
            for dim, size in zip(core, x.shape[x.ndim - len(core) :], strict=True)
        }
        cores = [
            np.broadcast_to(x, (*batch, *x.shape[x.ndim - len(core) :]))
            for x, core in zip(inputs, operands, strict=True)
        ]
        values = [
            np.zeros((*batch, *(sizes[dim] for dim in core)), output.type.dtype)
            for core, output in zip(results, node.outputs, strict=True)
        ]
        if all(sizes.values()):
            for index in np.ndindex(*batch):
                found = self.compute(*(x[index] for x in cores))
                parts = found if isinstance(found, tuple) else (found,)
                for value, part in zip(values, parts, strict=True):
                    value[index] = part
        for cell, value in zip(output_storage, values, strict=True):
            cell[0] = value

    def batch(
        self, node: Apply, inputs: Sequence[TensorVariable], batched: Sequence[bool], size: TensorVariable
    ) -> list[Variable]:
        """One more leading dimension is one more batch dimension."""
        tensors = [x if b else repeat(x, size) for x, b in zip(inputs, batched, strict=True)]
        return list(self(*tensors, return_list=True))
