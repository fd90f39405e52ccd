# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""What tensor cores multiply: small matrices that the lanes of a warp hold in parts.

Which lane has which elements is in the PTX ISA, "Matrix multiply-accumulate operation using mma instruction":
with `g` = lane / 4 and `t` = lane % 4, rows go with `g`, columns of sums and the summed dimension with `t`.
"""

from __future__ import annotations

from collections.abc import Sequence

from graphc.ir import build
from graphc.passes.gpu._kernel import position
from graphc.passes.gpu._shuffle import WARP
from graphc_dialects._mlir import ir
from graphc_runtime.record import record

# Rows, or columns, that a warp has in one register of a lane.
_GROUP = 8


@record(frozen=True)
class Instruction:
    """An instruction of tensor cores.

    Attributes:
        rows, columns, depth: of the matrices.
        element, total: types of what is multiplied and of sums, as text.
        pairs: whether a lane has elements in pairs along the depth, which are loaded as whole matrices.
        rounds: whether elements are rounded to the digits that are multiplied.
    """

    rows: int
    columns: int
    depth: int
    element: str
    total: str
    pairs: bool = False
    rounds: bool = False

    @property
    def sums(self) -> int:
        """How many numbers of the result a lane has."""
        return self.rows * self.columns // WARP


HALF = Instruction(16, 8, 16, "f16", "f32", pairs=True)
TF32 = Instruction(16, 8, 8, "f32", "f32", rounds=True)
DOUBLE = Instruction(8, 8, 4, "f64", "f64")


@record()
class Side:
    """One operand of a product in shared memory, in two halves.

    Attributes:
        buffer: of three axes: the half, then either what is summed over or the rows (columns) of the result.
        deep_last: whether the last axis is the one that is summed over.
    """

    buffer: ir.Value
    deep_last: bool

    def indices(self, half: ir.Value, wide: ir.Value, deep: ir.Value) -> list[ir.Value]:
        """Where an element is."""
        return [half, wide, deep] if self.deep_last else [half, deep, wide]


class Fragments:
    """Loads parts of both sides, multiplies them, and knows where sums belong; for the thread at hand."""

    def __init__(self, instruction: Instruction) -> None:
        self._of = instruction
        thread, width = position("thread_id"), build.const_index(WARP)
        self.warp = build.index_op("divui", thread, width)
        self._lane = build.index_op("remui", thread, width)
        self._g = build.index_op("divui", self._lane, build.const_index(4))
        self._t = build.index_op("remui", self._lane, build.const_index(4))
        self._total = ir.Type.parse(instruction.total)

    def nothing(self) -> ir.Value:
        """Sums of a lane that are 0."""
        kind = ir.VectorType.get([self._of.rows // _GROUP, 2], self._total)
        value = ir.DenseElementsAttr.get_splat(kind, ir.FloatAttr.get(self._total, 0.0))
        return build.create("arith.constant", [kind], [], value=value).result

    def left(self, side: Side, half: ir.Value, row: ir.Value, deep: ir.Value) -> ir.Value:
        """The lane's part of a matrix of the left side, which begins at a row and a depth."""
        return self._part(side, half, row, deep, self._of.rows // _GROUP, rows_first=True)

    def right(self, side: Side, half: ir.Value, column: ir.Value, deep: ir.Value) -> ir.Value:
        """The same of the right side."""
        return self._part(side, half, column, deep, self._of.columns // _GROUP, rows_first=False)

    def _part(
        self, side: Side, half: ir.Value, wide: ir.Value, deep: ir.Value, groups: int, *, rows_first: bool
    ) -> ir.Value:
        if self._of.pairs:
            return self._matrices(side, half, wide, deep, groups, rows_first=rows_first)
        found = []
        for start in range(0, self._of.depth, 4):
            for group in range(groups):
                at = _sum(wide, self._g, group * _GROUP), _sum(deep, self._t, start)
                element = ir.MemRefType(side.buffer.type).element_type
                operands = [side.buffer, *side.indices(half, *at)]
                found.append(self._rounded(build.create("memref.load", [element], operands).result))
        kind = ir.VectorType.get([len(found), 1], found[0].type)
        return build.create("vector.from_elements", [kind], found).result

    def _rounded(self, value: ir.Value) -> ir.Value:
        """Rounded to nearest: the instruction itself would only drop digits."""
        if not self._of.rounds:
            return value
        word = ir.IntegerType.get_signless(32)
        mode = ir.Attribute.parse("#nvvm.fp_rnd_mode<rna>")
        bits = build.create("nvvm.convert.float.to.tf32", [word], [value], rnd=mode).result
        return build.create("arith.bitcast", [value.type], [bits]).result

    def _matrices(
        self, side: Side, half: ir.Value, wide: ir.Value, deep: ir.Value, groups: int, *, rows_first: bool
    ) -> ir.Value:
        """Matrices of 8 by 8 halves at once; each lane has the address of a row of one of them."""
        row = build.index_op("remui", self._lane, build.const_index(_GROUP))
        number = build.index_op("divui", self._lane, build.const_index(_GROUP))
        two, width = build.const_index(2), build.const_index(_GROUP)
        first, second = build.index_op("remui", number, two), build.index_op("divui", number, two)
        across, along = (
            build.index_op("muli", x, width) for x in ((first, second) if rows_first else (second, first))
        )
        if groups == 1:
            # Addresses of the second half of the warp are not looked at, but have to be some.
            across = build.const_index(0)
        wide, deep = _sum(wide, across), _sum(deep, along)
        wide, deep = (_sum(wide, row), deep) if side.deep_last else (wide, _sum(deep, row))
        count = groups * self._of.depth // _GROUP
        kind = ir.VectorType.get([count, 2], ir.MemRefType(side.buffer.type).element_type)
        return build.create(
            "nvgpu.ldmatrix",
            [kind],
            [side.buffer, *side.indices(half, wide, deep)],
            numTiles=ir.IntegerAttr.get(ir.IntegerType.get_signless(32), count),
            transpose=ir.BoolAttr.get(not side.deep_last),
        ).result

    def multiply(self, left: ir.Value, right: ir.Value, sums: ir.Value) -> ir.Value:
        """Adds the product of two parts to sums."""
        word = ir.IntegerType.get_signless(64)
        shape = [self._of.rows, self._of.columns, self._of.depth]
        attributes: dict[str, ir.Attribute] = {
            "mmaShape": ir.ArrayAttr.get([ir.IntegerAttr.get(word, size) for size in shape])
        }
        if self._of.rounds:
            attributes["tf32Enabled"] = ir.UnitAttr.get()
        return build.create("nvgpu.mma.sync", [sums.type], [left, right, sums], **attributes).result

    def places(self, row: ir.Value, column: ir.Value) -> Sequence[tuple[ir.Value, ir.Value, tuple[int, int]]]:
        """Row and column of each of the lane's sums of a matrix, and where it is in the vector."""
        twice = build.index_op("muli", self._t, build.const_index(2))
        return [
            (_sum(row, self._g, group * _GROUP), _sum(column, twice, lane), (group, lane))
            for group in range(self._of.rows // _GROUP)
            for lane in range(2)
        ]

    def extract(self, sums: ir.Value, where: tuple[int, int]) -> ir.Value:
        """One of the sums."""
        place = ir.DenseI64ArrayAttr.get(list(where))
        return build.create("vector.extract", [self._total], [sums], static_position=place).result


def _sum(first: ir.Value, second: ir.Value, number: int = 0) -> ir.Value:
    total = build.index_op("addi", first, second)
    return build.index_op("addi", total, build.const_index(number)) if number else total
