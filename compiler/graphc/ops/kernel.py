# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""``KernelOp``: base of ops that do something with each core array of a batch (see `graphc.library`)."""

from __future__ import annotations

from collections.abc import Sequence
from functools import cache
from typing import TYPE_CHECKING, Any, ClassVar

import numpy as np

from graphc.errors import VectorizeError
from graphc.graph.basic import Apply, Flags, Variable, Variables, describe
from graphc.graph.op import FieldOp, no_cotangents, no_tangents
from graphc.graph.tensor.convert import as_tensor_variable
from graphc.graph.tensor.type import TensorType
from graphc.library import find
from graphc.ops.elementwise import cast_to
from graphc.ops.shape import checked_size
from graphc.ops.shaping import all_batched, broadcast_to, shape_padleft

if TYPE_CHECKING:
    from graphc.emit.emitter import Emitter
    from graphc.graph.tensor import TensorLike
    from graphc.graph.tensor.variable import TensorVariable
    from graphc_dialects.signatures import Signature
    from graphc_runtime.thunk import Register


@cache
def _signature(kernel: str) -> Signature:
    # Building graphs of other operations must not load the dialect.
    from graphc_dialects.signatures import SIGNATURES

    return SIGNATURES[kernel]


class _CoreOp(FieldOp):
    """An op whose operands are batches of core arrays with the leading dimensions in common.

    A subclass says what the core dimensions and the dtypes are.

    Attributes:
        dtype_rule: dtypes of operands and results, as in ``0 int64 -> 0``: names, or numbers of the operands
            that have them. Other rules override `dtypes`.
        kernel: name of the operation; of a `KernelOp`, that of the dialect and of the kernel.
    """

    takes_as_stored = False

    kernel: ClassVar[str]
    dtype_rule: ClassVar[str]
    __props__: ClassVar[tuple[str, ...]] = ()

    def dtypes(self, *given: str) -> tuple[Sequence[str], Sequence[str]]:
        """Dtypes of the operands and of the results, from those of the operands given."""
        operands, results = (
            [given[int(word)] if word.isdigit() else word for word in side.split()]
            for side in self.dtype_rule.split("->")
        )
        return operands, results

    @property
    def signature(self) -> Signature:
        """Core dimensions by name."""
        raise NotImplementedError(f"{type(self).__name__} must define signature")

    def make_node(self, *inputs: TensorLike) -> Apply:
        """Takes the operands, then 0-d int64 sizes that only results have; batches broadcast."""
        signature = self.signature
        count = len(signature.operands)
        if len(inputs) != count + len(signature.given):
            raise TypeError(
                f"{self} takes {count} arrays and {len(signature.given)} sizes, got {len(inputs)} inputs"
            )
        tensors = [as_tensor_variable(x) for x in inputs[:count]]
        sizes = [cast_to(as_tensor_variable(x), "int64") for x in inputs[count:]]
        for number, (x, core) in enumerate(zip(tensors, signature.operands, strict=True)):
            if x.type.ndim < len(core):
                raise TypeError(
                    f"{self}: argument {number}, {x}{describe(x.location)}, must have at least {len(core)} "
                    f"dimensions ({', '.join(core)}), got type {x.type}"
                )
        operand_dtypes, result_dtypes = self.dtypes(*(x.type.dtype for x in tensors))
        tensors = [cast_to(x, dtype) for x, dtype in zip(tensors, operand_dtypes, strict=True)]
        tensors = self._same_batch(tensors)
        known = self._known_sizes(tensors, sizes)
        batch = range(tensors[0].type.ndim - len(signature.operands[0]))
        outputs = [
            TensorType(dtype, [known.get(dim) for dim in (*batch, *core)]).make_variable()
            for dtype, core in zip(result_dtypes, signature.results, strict=True)
        ]
        return Apply(self, [*tensors, *sizes], outputs)

    def _same_batch(self, tensors: list[TensorVariable]) -> list[TensorVariable]:
        """The operands with equal leading dimensions: broadcast where they have 1 or none."""
        ranks = [x.type.ndim - len(core) for x, core in zip(tensors, self.signature.operands, strict=True)]
        rank = max(ranks)
        if rank == 0 or len(tensors) == 1:
            return tensors
        tensors = [shape_padleft(x, rank - r) if r < rank else x for x, r in zip(tensors, ranks, strict=True)]
        wide = [[x for x in tensors if x.type.shape[axis] != 1] for axis in range(rank)]
        if all(len(w) in (0, len(tensors)) for w in wide):
            return tensors
        sizes = [(w or tensors)[0].shape[axis] for axis, w in enumerate(wide)]
        result = []
        for x in tensors:
            if all((x in w) == bool(w) for w in wide):
                result.append(x)
                continue
            core = [x.shape[axis] for axis in range(rank, x.type.ndim)]
            result.append(broadcast_to(x, [*sizes, *core]))
        return result

    def _known_sizes(
        self, tensors: list[TensorVariable], sizes: list[TensorVariable]
    ) -> dict[str | int, int | None]:
        """Static sizes of core dimensions by their names, of those of the batch by their numbers."""
        signature = self.signature
        known: dict[str | int, int | None] = {}
        for number, (x, core) in enumerate(zip(tensors, signature.operands, strict=True)):
            for dim, size in zip([*range(x.type.ndim - len(core)), *core], x.type.shape, strict=True):
                have = known.get(dim)
                if have is not None and size is not None and have != size:
                    place = f"dimension {dim} of {self._text()}" if dim in core else f"batch axis {dim}"
                    raise ValueError(
                        f"{self}: argument {number}, {x}{describe(x.location)} of type {x.type}, has size "
                        f"{size} where {have} is expected ({place})"
                    )
                known[dim] = size if have is None else have
        for dim, given in zip(signature.given, sizes, strict=True):
            known[dim] = checked_size(given)
        return known

    def _text(self) -> str:
        sides = (self.signature.operands, self.signature.results)
        return "->".join(",".join(f"({','.join(core)})" for core in side) for side in sides)

    def _check_sizes(self, inputs: Sequence[np.ndarray]) -> dict[Any, int]:
        """The sizes of the dimensions, which operands agree on."""
        signature = self.signature
        first: dict[Any, int] = {}
        for number, (x, core) in enumerate(zip(inputs, signature.operands, strict=False)):
            batch = x.ndim - len(core)
            for axis, dim in enumerate([*range(batch), *core]):
                if first.setdefault(dim, x.shape[axis]) != x.shape[axis]:
                    raise ValueError(
                        f"{self.kernel}: dimension {axis} of operand {number} must be {first[dim]}, "
                        f"but is {x.shape[axis]}"
                    )
        given = inputs[len(signature.operands) :]
        return {**first, **{dim: int(n) for dim, n in zip(signature.given, given, strict=True)}}

    def batch(self, node: Apply, inputs: Variables, batched: Flags, size: Variable | int) -> list[Variable]:
        """One more leading dimension is one more batch dimension."""
        count = len(self.signature.operands)
        if any(batched[count:]):
            raise VectorizeError(f"{self} cannot take a batch of sizes")
        tensors = all_batched(inputs[:count], batched[:count], size)
        return list(self(*tensors, *inputs[count:], return_list=True))


class KernelOp(_CoreOp):
    """Base of ops that a kernel of `graphc.library` computes: it is named, and attributes of the kernel are
    the op's ``__props__``. What else a subclass needs are its dtypes and a gradient.
    """

    @property
    def signature(self) -> Signature:
        return _signature(self.kernel)

    def perform(self, node: Apply, inputs: Sequence[np.ndarray], output_storage: Sequence[Register]) -> None:
        attributes = {name: int(value) for name, value in self._props_dict().items()}
        sizes = self._check_sizes(inputs)
        with np.errstate(all="ignore"):
            found = find(self.kernel).reference(attributes, *inputs)
        values = found if isinstance(found, tuple) else (found,)
        for value, core in zip(values, self.signature.results, strict=True):
            for have, dim in zip(np.shape(value)[np.ndim(value) - len(core) :], core, strict=True):
                if sizes.get(dim, have) != have:
                    raise ValueError(f"{self.kernel}: {sizes[dim]} elements are asked for, there are {have}")
        for cell, value, output in zip(output_storage, values, node.outputs, strict=True):
            cell[0] = np.asarray(value, output.type.dtype)

    def emit(self, node: Apply, operands: Sequence[str], e: Emitter) -> list[str]:
        count = len(self.signature.operands)
        types = [e.type_of(x) for x in node.inputs[:count]]
        sizes = [e.index(x, name) for x, name in zip(node.inputs[count:], operands[count:], strict=True)]
        attrs = ", ".join(f"{name} = {int(value)} : i64" for name, value in self._props_dict().items())
        results = [e.type_of(x) for x in node.outputs]
        return list(
            e.ops(
                f"graphc.{self.kernel}",
                [*operands[:count], *sizes],
                [*types, *["index"] * len(sizes)],
                results,
                attrs,
            )
        )


class DiscreteOp(KernelOp):
    """Base of ops that have no gradient because their results are integers."""

    depends_on: ClassVar[tuple[int, ...] | None] = ()

    pullback, pushforward = no_cotangents, no_tangents
