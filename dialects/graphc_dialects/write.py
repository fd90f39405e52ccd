# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Destinations: memory of a tensor, its disjoint parts, and what is computed in them.

A buffer is used up by what is done to it: it is split, or seen with another shape, or written, once. A tensor
is made of it by `write_join`, which takes the tokens of all writes.
"""

from collections.abc import Callable, Sequence
from math import prod
from typing import Any

from graphc_dialects._base import (
    Graphc,
    GraphcOp,
    Operation,
    Tensor,
    array,
    attribute_of,
    check_axis,
    const_index,
    constant_value,
    fail,
    shape_text,
)
from graphc_dialects._mlir import ext, ir
from graphc_dialects.shape import same_elements

# The bindings make this class when the namespace is defined, so type checkers do not know it.
_Type: Any = Graphc.Type  # type: ignore[attr-defined]
_DYNAMIC = ir.ShapedType.get_dynamic_size()
_REFINES = ("graphc.write_split", "graphc.write_view")


class BufferType(_Type, name="buffer"):
    """Memory that is being written."""


class TokenType(_Type, name="token"):
    """That something has been written."""


class WriteBufferOp(Operation, name="write_buffer"):
    """Memory for a tensor of the attribute `type`, whose sizes are the operands.

    It is not pure: two buffers of one size are two.
    """

    sizes: Sequence[ext.Operand[ir.IndexType]]
    type: ir.TypeAttr
    res: ext.Result[BufferType]

    def verify_invariants(self) -> bool:
        """Checks the sizes against the type."""
        return _counts(self, 0, 1) and _check_sizes(self, list(self.operands))


class WriteSplitOp(Operation, name="write_split", traits=[ext.Pure]):
    """The parts of a buffer along an axis, in order, one for each size; together they are all of it."""

    buffer: ext.Operand[BufferType]
    sizes: Sequence[ext.Operand[ir.IndexType]]
    axis: ir.IntegerAttr
    parts: Sequence[ext.Result[BufferType]]

    def verify_invariants(self) -> bool:
        """Checks the axis, and that parts of static sizes are disjoint, within the buffer and cover it."""
        if not _counts(self, 1, None) or not _check_unused(self):
            return False
        sizes, parts = list(self.operands)[1:], len(self.results)
        if len(sizes) != parts or not parts:
            return fail(self, f"needs one size for each of its parts, but has {len(sizes)} for {parts}")
        kind = _type_of(self, self.operands[0])
        axis = None if kind is None else check_axis(self, "axis", len(kind.shape))
        if axis is None:
            return False
        whole = kind.shape[axis]
        known = [constant_value(size) for size in sizes]
        static = [size for size in known if size is not None]
        if any(size < 0 for size in static):
            return fail(self, f"sizes of parts must not be negative, but are {known}")
        if 0 <= whole < sum(static):
            return fail(self, f"parts take {sum(static)} of axis {axis}, which has size {whole}")
        if len(static) == parts and whole >= 0 and sum(static) != whole:
            return fail(self, f"parts cover {sum(static)} of axis {axis}, which has size {whole}")
        return True


class WriteViewOp(Operation, name="write_view", traits=[ext.Pure]):
    """The buffer with another shape: the inverse of the views between a value and its part of a join.

    With `order`, a permutation of its axes as `dimshuffle` has it; otherwise a row-major reshape to the
    sizes, which needs a buffer that is contiguous.
    """

    buffer: ext.Operand[BufferType]
    sizes: Sequence[ext.Operand[ir.IndexType]]
    type: ir.TypeAttr
    res: ext.Result[BufferType]

    def verify_invariants(self) -> bool:
        """Checks the order, or the sizes and the element counts where they are static."""
        if not _counts(self, 1, 1) or not _check_unused(self):
            return False
        source, kind = _type_of(self, self.operands[0]), _declared_type(self)
        if source is None or kind is None or not same_elements(self, [source, kind]):
            return False
        if "order" in self.attributes:
            return self._check_order(list(source.shape), list(kind.shape))
        if not _check_sizes(self, list(self.operands)[1:]):
            return False
        shapes = source.shape, kind.shape
        if all(size >= 0 for shape in shapes for size in shape) and prod(shapes[0]) != prod(shapes[1]):
            return fail(self, f"cannot reshape {prod(shapes[0])} elements to {prod(shapes[1])}")
        return True

    def _check_order(self, source: list[int], shape: list[int]) -> bool:
        order = array(self, "order")
        if order is None:
            return False
        if len(self.operands) != 1:
            return fail(self, "takes no sizes beside 'order'")
        used = [axis for axis in order if axis != -1]
        if len(set(used)) != len(used) or any(not 0 <= axis < len(source) for axis in used):
            return fail(
                self,
                f"order {order} must name each axis of a rank {len(source)} buffer at most once, or be -1",
            )
        for axis, size in enumerate(source):
            if axis not in used and size != 1:
                return fail(self, f"dropped axis {axis} must have static size 1")
        return _agree(self, shape, [1 if axis == -1 else source[axis] for axis in order], "type")


class WriteOp(Operation, name="write"):
    """The value is computed in the buffer, or copied there where it lives elsewhere."""

    value: ext.Operand[Tensor]
    buffer: ext.Operand[BufferType]
    res: ext.Result[TokenType]

    def verify_invariants(self) -> bool:
        """Checks that the value has the type of the buffer."""
        if not _counts(self, 2, 1) or not _check_unused(self, 1):
            return False
        if len(self.operands) != 2:
            return fail(self, f"expects 2 operands, but has {len(self.operands)}")
        kind = self.operands[0].type
        if type(kind) is not ir.RankedTensorType:
            return fail(self, f"writes a ranked tensor, but is given {kind}")
        target = _type_of(self, self.operands[1])
        if target is None or not same_elements(self, [target, kind]):
            return False
        return _agree(self, kind.shape, target.shape, "value")


class WriteJoinOp(GraphcOp, name="write_join", traits=[ext.Pure]):
    """The tensor in a buffer, all parts of which have been written: nothing before has it."""

    buffer: ext.Operand[BufferType]
    tokens: Sequence[ext.Operand[TokenType]]
    res: ext.Result[Tensor]

    def verify_invariants(self) -> bool:
        """Checks the type, and that the tokens are those of all writes to the parts of the buffer."""
        if not _counts(self, 1, 1):
            return False
        kind = self.results[0].type
        if type(kind) is not ir.RankedTensorType:
            return fail(self, f"result must be a ranked tensor, but is {kind}")
        target = _type_of(self, self.operands[0])
        if target is None or not same_elements(self, [target, kind]):
            return False
        if self.operands[0].owner.name != "graphc.write_buffer":
            return fail(self, "takes a whole buffer, not a part or view of one")
        return _agree(self, kind.shape, target.shape, "result") and self._check_tokens()

    def _check_tokens(self) -> bool:
        given = list(self.operands)[1:]
        written = _tokens_below(self.operands[0])
        if written is None:
            return fail(self, "a part of the buffer is never written")
        if set(written) != set(given) or len(given) != len(set(given)):
            return fail(self, f"needs the tokens of all {len(written)} writes to its buffer, each once")
        return True

    def reify_dynamic(self, dim: int) -> Any:
        """The size of the buffer."""
        return buffer_sizes(self.operands[0])[dim]


# -- what is known about buffers -------------------------------------------------------------------


def is_write(op: Any) -> bool:
    """True if an operation writes a tensor to a buffer."""
    return bool(op.name == "graphc.write")


def reads_buffer(op: Any) -> bool:
    """True if an operation gives what has been written to a buffer as a tensor."""
    return bool(op.name == "graphc.write_join")


def new_buffer(kind: ir.Type, sizes: list[ir.Value]) -> ir.Value:
    """A buffer for a tensor of a type and these sizes, at the current insertion point."""
    types = [ir.Type.parse("!graphc.buffer")]
    attributes = {"type": ir.TypeAttr.get(kind)}
    return ir.Operation.create("graphc.write_buffer", types, sizes, attributes).result


def write_to(value: ir.Value, buffer: ir.Value) -> ir.Value:
    """The token of a write, at the current insertion point."""
    return ir.Operation.create("graphc.write", [ir.Type.parse("!graphc.token")], [value, buffer]).result


def read_buffer(
    buffer: ir.Value, tokens: list[ir.Value], type_: ir.Type, create: Callable[..., ir.Value] | None = None
) -> ir.Value:
    """Contents that have been written to a buffer.

    Args:
        buffer: that, whole. tokens: of the writes. type_: of the tensor.
        create: makes the operation from name, operands and type; by default at the current insertion point.
    """
    name, operands = "graphc.write_join", [buffer, *tokens]
    if create is not None:
        return create(name, operands, type_)
    return ir.Operation.create(name, [type_], operands).result


def root_of(buffer: Any) -> Any:
    """The `write_buffer` operation whose memory a buffer is part of."""
    op = buffer.owner
    while op.name in _REFINES:
        op = op.operands[0].owner
    return op


def buffer_type(buffer: Any) -> Any:
    """The tensor type of what is written to a buffer, None if the operations that made it are malformed.

    Args:
        buffer: a value of type `!graphc.buffer`.
    """
    op = buffer.owner
    if isinstance(op, ir.Block) or op.name not in (*_REFINES, "graphc.write_buffer"):
        return None
    if op.name != "graphc.write_split":
        attribute = attribute_of(op, "type")
        kind = attribute.value if isinstance(attribute, ir.TypeAttr) else None
        return kind if type(kind) is ir.RankedTensorType else None
    whole, axis = buffer_type(op.operands[0]), attribute_of(op, "axis")
    number = 1 + _part_number(buffer)
    if whole is None or not isinstance(axis, ir.IntegerAttr) or number >= len(op.operands):
        return None
    shape = list(whole.shape)
    if not 0 <= axis.value < len(shape):
        return None
    size = constant_value(op.operands[number])
    shape[axis.value] = _DYNAMIC if size is None or size < 0 else size
    with whole.context:
        return ir.RankedTensorType.get(shape, whole.element_type, loc=ir.Location.unknown())


def buffer_sizes(buffer: Any) -> list[Any]:
    """Index values of the sizes of a buffer; constants are made at the current insertion point."""
    op = buffer.owner
    operands = list(op.operands)
    if op.name == "graphc.write_buffer":
        return operands
    if op.name == "graphc.write_split":
        sizes = buffer_sizes(operands[0])
        sizes[ir.IntegerAttr(op.attributes["axis"]).value] = operands[1 + _part_number(buffer)]
        return sizes
    if "order" not in op.attributes:
        return operands[1:]
    source = buffer_sizes(operands[0])
    return [source[axis] if axis >= 0 else const_index(1) for axis in op.attributes["order"]]


def _part_number(buffer: Any) -> int:
    return int(ir.OpResult(buffer).result_number)


def _tokens_below(buffer: Any) -> list[Any] | None:
    """The tokens of the writes to a buffer or to its parts; None if a part is not written."""
    for use in buffer.uses:
        op = use.owner.operation
        if is_write(op):
            return list(op.results)
        if op.name in _REFINES:
            below = [_tokens_below(part) for part in op.results]
            return None if None in below else [token for tokens in below for token in tokens or ()]
    return None


# -- verification ----------------------------------------------------------------------------------


def _counts(op: Any, operands: int, results: int | None) -> bool:
    """True if there are enough operands, and these results: verifiers run before the generated checks."""
    if len(op.operands) < operands:
        return fail(op, f"expects at least {operands} operands, but has {len(op.operands)}")
    if results is not None and len(op.results) != results:
        return fail(op, f"expects {results} result, but has {len(op.results)}")
    return True


def _check_unused(op: Any, position: int = 0) -> bool:
    """True if this operation is the only one that splits, views or writes its buffer operand."""
    buffer = op.operands[position]
    if "!graphc.buffer" not in str(buffer.type):
        return fail(op, f"operand #{position} must be a !graphc.buffer, but is {buffer.type}")
    users = [use.owner.operation for use in buffer.uses]
    taking = [user for user in users if user.name in (*_REFINES, "graphc.write")]
    if len(taking) > 1:
        return fail(op, "its buffer is split, viewed or written a second time")
    return True


def _type_of(op: Any, buffer: Any) -> Any:
    """The type of a buffer operand, None after reporting that it is not made by one of these operations."""
    kind = buffer_type(buffer)
    if kind is None:
        fail(op, "its buffer must be made by a graphc.write_buffer, write_split or write_view")
    return kind


def _declared_type(op: Any) -> Any:
    attribute = attribute_of(op, "type")
    kind = attribute.value if isinstance(attribute, ir.TypeAttr) else None
    if type(kind) is ir.RankedTensorType:
        return kind
    fail(op, "needs an attribute 'type' that is a ranked tensor type")
    return None


def _check_sizes(op: Any, sizes: list[Any]) -> bool:
    kind = _declared_type(op)
    if kind is None:
        return False
    if len(sizes) != len(kind.shape):
        return fail(
            op, f"needs one size for each of {len(kind.shape)} dimensions of its type, but has {len(sizes)}"
        )
    for axis, (value, known) in enumerate(zip(sizes, kind.shape, strict=True)):
        if not isinstance(value.type, ir.IndexType):
            return fail(op, f"sizes must be of type index, but one is {value.type}")
        size = constant_value(value)
        if size is not None and (size < 0 or known not in (size, _DYNAMIC)):
            want = known if known >= 0 else "not negative"
            return fail(op, f"size of dimension {axis} must be {want}, but is {size}")
    return True


def _agree(op: Any, shape: list[int], expected: list[int], what: str) -> bool:
    """True if two shapes do not contradict each other."""
    if len(shape) == len(expected) and all(
        have == want or have < 0 or want < 0 for have, want in zip(shape, expected, strict=True)
    ):
        return True
    return fail(op, f"{what} must have shape {shape_text(expected)}, but has {shape_text(shape)}")
