# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Builds one `linalg.generic` from a cluster of fused operations.

The body is emitted by walking from the members towards their operands with *coordinates*: one per dimension
of the value that is read, either a loop dimension, the constant 0 (a broadcast or dropped dimension), or an
index computed in the body (a slice or gather). Views only change coordinates. A value read at affine
coordinates becomes an input of the generic with that indexing map; one read at computed coordinates is loaded
with `tensor.extract`.

Work on one element in the body of a loop is straight scalar code, without buffers.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial
from typing import TYPE_CHECKING, Any

import numpy as np

from graphc.ir import build
from graphc.ir.build import dtype_of, fill, storage_name
from graphc.ir.constants import CONSTANTS, read_constant
from graphc.ir.kinds import REDUCTIONS, reduced_axes, static_shape
from graphc.ir.views import GATHERS, INLINED, axes_order, axis_of, is_in_range
from graphc.lowering.partial_reductions import first_of, generic
from graphc.lowering.scalar_builder import Scalar, ScalarBuilder
from graphc.ops.elementwise import ROWS
from graphc.ops.reduce import extreme_of_nothing
from graphc_dialects._mlir import ir
from graphc_runtime.record import record

if TYPE_CHECKING:
    from graphc.lowering.rules import Conversion


_INT64 = np.dtype("int64")


_lowest, _highest = (partial(extreme_of_nothing, kind) for kind in ("max", "min"))


@record(frozen=True)
class Reducer:
    """One reduction.

    Attributes:
        accumulators: from the operand's dtype, the (dtype, initial value) of each accumulator; the last is
            the result.
        combine: (builder, value, accumulators, position) -> new accumulators.
        finds: "gt" or "lt": `position` (an int64 Scalar, the index along the reduced axis) is that of the
            first extreme, which is before it among the accumulators; else empty.
    """

    accumulators: Callable[[np.dtype], list[tuple[np.dtype, Any]]]
    combine: Callable[[Any, Any, list[Any], Any], list[Any]]
    finds: str = ""


def _simple(initial: Callable[[np.dtype], object], method: str) -> Reducer:
    def combine(
        b: ScalarBuilder, value: Scalar, accumulators: list[Scalar], position: object
    ) -> list[Scalar]:
        return [getattr(b, method)(accumulators[0], value)]

    return Reducer(lambda dtype: [(dtype, initial(dtype))], combine)


def _arg(initial: Callable[[np.dtype], object], method: str) -> Reducer:
    """First position of the extreme; a NaN beats every number and the first NaN stays."""

    def combine(
        b: ScalarBuilder, value: Scalar, accumulators: list[Scalar], position: Scalar
    ) -> list[Scalar]:
        best, index = accumulators
        better = getattr(b, method)(value, best)
        if value.dtype.kind in "fc":
            better = b.logical_or(better, b.isnan(value))
            better = b.logical_and(better, b.logical_not(b.isnan(best)))
        return [b.select(better, value, best), b.select(better, position, index)]

    return Reducer(lambda dtype: [(dtype, initial(dtype)), (_INT64, 0)], combine, method)


REDUCERS: dict[str, Reducer] = {
    "graphc.reduce_sum": _simple(lambda dtype: 0, "add"),
    "graphc.reduce_prod": _simple(lambda dtype: 1, "mul"),
    "graphc.reduce_max": _simple(_lowest, "maximum"),
    "graphc.reduce_min": _simple(_highest, "minimum"),
    "graphc.reduce_and": _simple(lambda dtype: True, "logical_and"),
    "graphc.reduce_or": _simple(lambda dtype: False, "logical_or"),
    "graphc.argmax": _arg(_lowest, "gt"),
    "graphc.argmin": _arg(_highest, "lt"),
}


ZERO = "0"  # the coordinate of a broadcast or dropped dimension
Coordinates = tuple[Any, ...]  # int: loop dimension; ZERO; or an ir.Value of index type


class GenericBuilder:
    """One cluster.

    Args:
        context: the function conversion, which knows what is already materialised (`tensor_of`) and sizes
            (`sizes_of`).
        domain: static shape of the iteration space (None where dynamic).
        sizes: one index value per loop dimension.
        members: the operations of the cluster in program order.
    """

    def __init__(
        self,
        context: Conversion,
        domain: tuple[int | None, ...],
        sizes: list[ir.Value],
        members: list[ir.Operation],
    ) -> None:
        self._context = context
        self._rank = len(domain)
        self._domain = domain
        self._sizes = sizes
        self._members, self._inside = members, frozenset(members)
        self._computed = {result: op for op in members if op.name not in REDUCTIONS for result in op.results}
        self._scalars: dict[Any, Scalar] = {}
        self._inputs: list[ir.Value] = []
        self._donors: list[ir.Value] = []
        self._maps: list[Any] = []
        self._identity: Coordinates = tuple(range(self._rank))
        self.scalar = ScalarBuilder(ir)

    def build(self, outputs: list[Any]) -> list[Any]:
        """Emits the generic; returns the new tensor of each output.

        Args:
            outputs: results of members that are needed outside, each elementwise or a reduction.
        """
        scratch = ir.Operation.create("scf.execute_region", results=[], operands=[], regions=1)
        self._block = ir.Block.create_at_start(scratch.regions[0], [])
        with ir.InsertionPoint(self._block):
            for op in self._members:
                if op.name not in REDUCTIONS:
                    with op.location:
                        self.read(op.results[0], self._identity)
                else:
                    self.read(op.operands[0], self._identity)
        # A tensor whose memory is the destination of one output already cannot be lent to another one.
        inherited = {self._context.destinations.inherited(output) for output in outputs}
        self._donors = [tensor for tensor in self._donors if tensor not in inherited]
        targets = [self._target(output) for output in outputs]
        flat = [tensor for tensors, _ in targets for tensor in tensors]
        self._cover_domain([axes for _, axes in targets])
        with ir.InsertionPoint(self._block):
            yields = self._yields(outputs, flat)
            build.create("linalg.yield", [], yields)
        if any(axes is not None for _, axes in targets):
            self._read_where_written(flat)
        predicates = self._predicates(outputs) if self._context.device else []
        made = self._create(flat, [axes for tensors, axes in targets for _ in tensors], predicates)
        self._block.append_to(made.regions[0])
        scratch.erase()
        results, position = [], 0
        for tensors, _ in targets:
            results.append(made.results[position + len(tensors) - 1])
            position += len(tensors)
        return results

    def copy(self, value: ir.Value) -> ir.Value:
        """Emits a generic that writes a view's elements; returns the new tensor."""
        return self._copy(value, self._identity, build.storage_type(value.type))

    def copy_row(self, value: ir.Value, index: ir.Value) -> ir.Value:
        """Emits a generic that writes the elements of row `index` of a value; returns the new tensor."""
        stack = build.storage_type(value.type)
        row = ir.RankedTensorType.get(list(stack.shape)[1:], stack.element_type)
        return self._copy(value, (index, *self._identity), row)

    def _copy(self, value: ir.Value, coordinates: Coordinates, tensor_type: ir.Type) -> ir.Value:
        scratch = ir.Operation.create("scf.execute_region", results=[], operands=[], regions=1)
        self._block = ir.Block.create_at_start(scratch.regions[0], [])
        with ir.InsertionPoint(self._block):
            element = self.scalar.stored(self.read(value, coordinates))
        target = self._context.destinations.start(value, tensor_type, self._sizes)
        self._cover_domain([None])
        with ir.InsertionPoint(self._block):
            self._block.add_argument(element.type, ir.Location.unknown())
            build.create("linalg.yield", [], [element])
        made = self._create([target], [None])
        self._block.append_to(made.regions[0])
        scratch.erase()
        return made.results[0]

    # -- outputs ---------------------------------------------------------------------------------------------

    def _target(self, output: ir.Value) -> tuple[list[ir.Value], tuple[int, ...] | None]:
        """Destination tensors of an output and, for a reduction, the removed axes.

        The last tensor is the output itself; argmax and argmin carry the extreme value in another one before
        it.
        """
        op, destinations = output.owner, self._context.destinations
        if op.name not in REDUCTIONS:
            tensor_type = build.storage_type(output.type)
            placed = destinations.is_open(output) or self._context.lent(output) is not None
            donated = destinations.inherited(output) if placed else self._donated(tensor_type)
            return [donated or destinations.start(output, tensor_type, self._sizes)], None
        axes = reduced_axes(op)
        kept = [size for axis, size in enumerate(self._sizes) if axis not in axes]
        shape = list(ir.RankedTensorType(output.type).shape)
        tensors = []
        accumulators = REDUCERS[op.name].accumulators(dtype_of(op.operands[0].type.element_type))
        for number, (dtype, initial) in enumerate(accumulators, 1):
            tensor_type = ir.RankedTensorType.get(shape, ir.Type.parse(storage_name(dtype)))
            value = self.scalar.stored(self.scalar.const(initial, dtype))
            if number == len(accumulators):
                tensors.append(fill(value, destinations.start(output, tensor_type, kept)))
            else:
                tensors.append(fill(value, build.empty(tensor_type, kept)))
        return tensors, axes

    def _donated(self, tensor_type: ir.Type) -> ir.Value | None:
        """A tensor read for the last time here, at the loop's own position: it can hold the result."""
        for position, tensor in enumerate(self._donors):
            if tensor.type == tensor_type:
                return self._donors.pop(position)
        return None

    def _yields(self, outputs: list[ir.Value], tensors: list[ir.Value]) -> list[ir.Value]:
        location = ir.Location.unknown()
        arguments = [
            self._block.add_argument(ir.RankedTensorType(t.type).element_type, location) for t in tensors
        ]
        yields: list[Any] = []
        for output in outputs:
            op = output.owner
            if op.name not in REDUCTIONS:
                yields.append(self.scalar.stored(self.read(output, self._identity)))
                continue
            value = self.read(op.operands[0], self._identity)
            reducer = REDUCERS[op.name]
            accumulators = [
                self.scalar.loaded(arguments[len(yields) + i], dtype)
                for i, (dtype, _) in enumerate(reducer.accumulators(value.dtype))
            ]
            position = None
            if reducer.finds:
                position = self._as_int64(self._index(reduced_axes(op)[0]))
            combined = reducer.combine(self.scalar, value, accumulators, position)
            yields += map(self.scalar.stored, combined)
        return yields

    def _read_where_written(self, tensors: list[ir.Value]) -> None:
        """Lets the body read a tensor that is both input and output as the output's old element.

        Bufferization allows both at one position only where nothing is reduced.
        """
        arguments = list(self._block.arguments)
        identity = ir.AffineMap.get_identity(self._rank)
        own = [position for position, affine in enumerate(self._maps) if affine == identity]
        for number, tensor in enumerate(tensors, len(self._inputs)):
            for position in own:
                if self._inputs[position] == tensor:
                    arguments[position].replace_all_uses_with(arguments[number])

    def _create(
        self,
        tensors: list[ir.Value],
        axes: list[tuple[int, ...] | None],
        predicates: Sequence[str] = (),
    ) -> ir.Operation:
        removed = next((a for a in axes if a is not None), ())
        maps = list(self._maps)
        for target in axes:
            kept = [axis for axis in range(self._rank) if target is None or axis not in target]
            maps.append(ir.AffineMap.get(self._rank, 0, [ir.AffineExpr.get_dim(axis) for axis in kept]))
        reduced = [axis in removed for axis in range(self._rank)]
        return generic(self._inputs, tensors, maps, reduced, **first_of(predicates))

    def _predicates(self, outputs: list[ir.Value]) -> list[str]:
        """By which predicate elements of each result win that is an extreme with its position after it."""
        found: list[str] = []
        for op in [output.owner for output in outputs]:
            finds = REDUCERS[op.name].finds if op.name in REDUCERS else ""
            kind = dtype_of(op.operands[0].type.element_type).kind if finds else ""
            predicate = "" if kind == "c" else f"u{finds}" if kind and kind in "ub" else finds
            found += [predicate, ""] if finds else [""]
        return found

    def _cover_domain(self, axes: list[tuple[int, ...] | None]) -> None:
        """Adds a shape-only input when no operand tells the extent of some loop dimension."""
        covered: set[int] = set()
        for affine in self._maps:
            covered |= {e.position for e in affine.results if isinstance(e, ir.AffineDimExpr)}
        for target in axes:
            covered |= {axis for axis in range(self._rank) if target is None or axis not in target}
        if len(covered) == self._rank:
            return
        shape = [build.DYNAMIC if size is None else size for size in self._domain]
        tensor_type = ir.RankedTensorType.get(shape, ir.IntegerType.get_signless(8))
        self._add_input(build.empty(tensor_type, self._sizes), self._identity)

    # -- reading ---------------------------------------------------------------------------------------------

    def read(self, value: ir.Value, coordinates: Coordinates) -> Scalar:
        """The scalar of a graph-stage value at the given coordinates."""
        key = (value, coordinates)
        if key not in self._scalars:
            self._scalars[key] = self._read(value, coordinates)
        return self._scalars[key]

    def _read(self, value: Any, coordinates: Coordinates) -> Scalar:
        known = self._context.scalar_of(value)
        if known is not None:
            return known
        member = self._computed.get(value)
        if member is not None:
            return self._compute(member, value, coordinates)
        owner = value.owner
        if not isinstance(owner, ir.Block):
            if owner.name in CONSTANTS:
                splat = self._splat(value, owner)
                if splat is not None:
                    return splat
            if owner.name in INLINED and not self._context.is_materialised(value):
                return getattr(self, "_" + owner.name[7:])(owner, coordinates)
        tensor = self._context.tensor_of(value)
        if self._is_donor(value, coordinates):
            self._donors.append(tensor)
        return self._load(tensor, dtype_of(value.type.element_type), coordinates)

    def _is_donor(self, value: ir.Value, coordinates: Coordinates) -> bool:
        return coordinates == self._identity and self._context.is_last_use(value, self._inside)

    def _scan_seq(self, op: ir.Operation, coordinates: Coordinates) -> Scalar:
        return self.read(op.operands[0], (self._context.index_of(op.operands[1]), *coordinates))

    def _compute(self, op: ir.Operation, value: ir.Value, coordinates: Coordinates) -> Scalar:
        name, kind = op.name, value.type
        dtype = dtype_of(kind.element_type)
        if name in GATHERS:
            return self._take(op, coordinates)
        operands = [self.read(x, _broadcast(x.type, kind, coordinates)) for x in op.operands]
        if name == "graphc.cast":
            return self.scalar.cast(operands[0], dtype)
        return self.scalar.cast(ROWS[name[7:]].scalar(self.scalar, *operands), dtype)

    def _splat(self, value: ir.Value, owner: ir.Operation) -> Scalar | None:
        array = read_constant(owner)
        if not array.size or not np.array_equal(array, np.full_like(array, array.flat[0]), equal_nan=True):
            return None
        return self.scalar.const(array.flat[0], dtype_of(value.type.element_type))

    def _dimshuffle(self, op: ir.Operation, coordinates: Coordinates) -> Scalar:
        source: list[object] = [ZERO] * len(static_shape(op.operands[0]))
        for position, axis in enumerate(axes_order(op)):
            if axis >= 0:
                source[axis] = coordinates[position]
        return self.read(op.operands[0], tuple(source))

    def _broadcast_to(self, op: ir.Operation, coordinates: Coordinates) -> Scalar:
        source, result = op.operands[0], op.results[0]
        shape = static_shape(source)
        skip = len(coordinates) - len(shape)
        whole = static_shape(result)[skip:]
        return self.read(
            source,
            tuple(
                ZERO if size == 1 and full != 1 else coordinate
                for size, full, coordinate in zip(shape, whole, coordinates[skip:], strict=True)
            ),
        )

    def _iota(self, op: ir.Operation, coordinates: Coordinates) -> Scalar:
        dtype = dtype_of(op.results[0].type.element_type)
        start, step = (self.read(x, ()) for x in op.operands[:2])
        position = self.scalar.cast(self._as_int64(self._index(coordinates[0])), dtype)
        return self.scalar.add(start, self.scalar.mul(step, position))

    def _slice(self, op: ir.Operation, coordinates: Coordinates) -> Scalar:
        rank = len(coordinates)
        operands = [self._context.index_of(x) for x in list(op.operands)[1:]]
        offsets, strides = operands[:rank], operands[2 * rank :]
        source = []
        for axis, (coordinate, offset, stride) in enumerate(zip(coordinates, offsets, strides, strict=True)):
            if build.constant_value(offset) == 0 and build.constant_value(stride) == 1:
                # An input's dimension is the extent of the loop, so a prefix is read at computed positions.
                whole = self._takes_whole(op, axis, operands[rank + axis])
                source.append(coordinate if whole else self._index(coordinate))
                continue
            scaled = self._index(coordinate) * stride
            source.append(scaled + offset)
        return self.read(op.operands[0], tuple(source))

    def _takes_whole(self, op: ir.Operation, axis: int, size: ir.Value) -> bool:
        """True if a slice from 0 in steps of 1 provably reaches the end of the axis."""
        have, want = static_shape(op.operands[0])[axis], static_shape(op.results[0])[axis]
        if have is not None or want is not None:
            return have == want
        return size == self._context.sizes_of(op.operands[0])[axis]

    def _take(self, op: ir.Operation, coordinates: Coordinates) -> Scalar:
        source, indices = op.operands
        axis = axis_of(op)
        rank = len(static_shape(indices))
        position = self.read(indices, coordinates[axis : axis + rank])
        index = build.create("arith.index_cast", [build.index_type()], [position.value]).result
        if not is_in_range(op):
            negative = build.compare_index(2, index, build.const_index(0))
            index = build.select(negative, index + self._context.sizes_of(source)[axis], index)
        return self.read(source, (*coordinates[:axis], index, *coordinates[axis + rank :]))

    def _index(self, coordinate: Any) -> ir.Value:
        """The coordinate as an index value inside the body."""
        if isinstance(coordinate, int):
            attribute = ir.IntegerAttr.get(ir.IntegerType.get_signless(64), coordinate)
            return build.create("linalg.index", [build.index_type()], [], dim=attribute).result
        return build.const_index(0) if isinstance(coordinate, str) else coordinate

    def _as_int64(self, index: ir.Value) -> Scalar:
        i64 = ir.IntegerType.get_signless(64)
        return Scalar(build.create("arith.index_cast", [i64], [index]).result, np.dtype("int64"))

    def _load(self, tensor: ir.Value, dtype: np.dtype, coordinates: Coordinates) -> Scalar:
        if all(isinstance(c, (int, str)) for c in coordinates):
            return self.scalar.loaded(self._add_input(tensor, coordinates), dtype)
        return self._extracted(tensor, dtype, coordinates)

    def _extracted(self, tensor: ir.Value, dtype: np.dtype, coordinates: Coordinates) -> Scalar:
        return self.scalar.loaded(tensor[[self._index(c) for c in coordinates]], dtype)

    def _add_input(self, tensor: ir.Value, coordinates: Coordinates) -> ir.Value:
        results = [
            ir.AffineExpr.get_dim(c) if isinstance(c, int) else ir.AffineExpr.get_constant(0)
            for c in coordinates
        ]
        self._inputs.append(tensor)
        self._maps.append(ir.AffineMap.get(self._rank, 0, results))
        return self._block.add_argument(ir.RankedTensorType(tensor.type).element_type, ir.Location.unknown())


def _broadcast(operand: ir.Type, result: ir.Type, coordinates: Coordinates) -> Coordinates:
    """Coordinates in an operand, given types: dimensions that are statically 1 are read at 0."""
    if operand == result:
        return coordinates
    sizes = zip(operand.shape, result.shape, coordinates, strict=True)
    return tuple(ZERO if size == 1 and whole != 1 else coordinate for size, whole, coordinate in sizes)


def is_one_element(value: ir.Value) -> bool:
    """True if a tensor value statically has exactly one element."""
    return all(size == 1 for size in static_shape(value))


class ScalarWork(GenericBuilder):
    """Reads and computes single elements at the current insertion point.

    Args:
        context: the function conversion.
        members: operations of a body whose results have one element each.
    """

    def __init__(self, context: Conversion, members: list[ir.Operation]) -> None:
        super().__init__(context, (), [], members)

    def define(self) -> None:
        """Computes the members' results as SSA scalars."""
        for op in self._members:
            with op.location:
                for result in op.results:
                    coordinates = (ZERO,) * len(static_shape(result))
                    self._context.define_scalar(result, self.read(result, coordinates))

    def element(self, value: ir.Value, coordinates: Coordinates = ()) -> Scalar:
        """One element of any graph-stage value; missing coordinates are 0."""
        missing = len(static_shape(value)) - len(coordinates)
        return self.read(value, (*coordinates, *[ZERO] * missing))

    def as_tensor(self, scalar: Scalar, tensor_type: ir.Type) -> ir.Value:
        """A one-element tensor of a scalar."""
        storage = build.storage_type(tensor_type)
        return build.create("tensor.from_elements", [storage], [self.scalar.stored(scalar)]).result

    _load = GenericBuilder._extracted

    def _is_donor(self, value: ir.Value, coordinates: Coordinates) -> bool:
        return False
