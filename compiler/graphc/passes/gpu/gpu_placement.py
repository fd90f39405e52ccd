# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""What runs on the host, and what on the device."""

from __future__ import annotations

from graphc.ir.constants import CONSTANTS
from graphc.ir.walk import functions, inputs_of, symbol_of
from graphc.passes.gpu._cut import second_side
from graphc.passes.gpu._host_work import is_movable, reason
from graphc.passes.gpu._outlining import HOST, outline
from graphc.passes.manager.base import Pass
from graphc_dialects._mlir import ir
from graphc_dialects.check import raises
from graphc_runtime.record import record

# Arrays that need not be moved.
_EVERYWHERE = (*CONSTANTS, "tensor.from_elements")


@record()
class GpuPlacement(Pass):
    """Moves operations that have no kernel to functions of the host, `@graphc_host_0` and so on.

    That is done in `@main`, and in `@shapes`, where sizes of results depend on values. Arguments and results
    are on the device. An operation without a kernel (a factorization, SciPy's code, a
    random draw), a loop or a conditional that contains one, runs on the host. Others run there, too, where
    that saves transfers: elementwise work between two factorizations, for instance, but neither products nor
    loops. Which do is a minimum cut: each array that is needed on both sides is moved once.

    A function takes as many operations as it can: its number is that of the changes of side on the longest
    way to it. What comes after a check in the program stays after it. Numbers are passed as numbers; sizes of
    arrays that a function is given, or makes itself, are computed in it.

    The attribute `graphc.host` of a function lists its operations that have no kernel, the reasons, and the
    nodes of the graph.
    """

    stage = "graph"

    def run(self, module: ir.Module) -> None:
        count = 0
        for function in functions(module):
            if symbol_of(function) in ("main", "shapes"):
                count += self._place(function, count)

    def _place(self, function: ir.Operation, first: int) -> int:
        """Divides a function; gives how many functions of the host are new, numbered from `first`."""
        block = function.regions[0].blocks[0]
        operations = [op.operation for op in block.operations]
        reasons = {op: reason(op) for op in operations}
        bound = {op for op in operations if reasons[op] and len(op.results)}
        if not bound:
            return 0
        host = _host_side(operations, bound)
        stages = _stages(operations, host)
        # A stable order by stage: what an operation needs is of its own stage, or of an earlier one.
        *rest, end = operations
        for op in sorted(rest, key=stages.__getitem__):
            op.move_before(end)
        groups: dict[int, list[ir.Operation]] = {}
        for op in rest:
            if op in host:
                groups.setdefault(stages[op], []).append(op)
        for number, stage in enumerate(sorted(groups), first):
            outline(function, groups[stage], f"{HOST}_{number}", reasons)
        self.count("functions of the host", len(groups))
        self.count("operations of the host", len(host))
        return len(groups)


def _host_side(operations: list[ir.Operation], bound: set[ir.Operation]) -> set[ir.Operation]:
    """The operations that run on the host."""
    fixed: dict[ir.Operation | ir.Block, bool] = {}
    users: dict[ir.Value, list[ir.Operation | ir.Block]] = {}
    for op in operations:
        if op in bound or not is_movable(op):
            # What reads the results of a loop is where the loop is.
            if not any(map(_is_loop, op.operands)):
                fixed[op] = op in bound
        for value in inputs_of(op):
            users.setdefault(value, []).append(op)
    arrays = {value: found for value, found in users.items() if _is_array(value)}
    values = [(_producer(value), found) for value, found in arrays.items()]
    fixed.update((producer, False) for producer, _ in values if isinstance(producer, ir.Block))
    ties = [(_producer(x), user) for x, found in users.items() if _is_loop(x) for user in found]
    return {op for op in second_side(fixed, values, ties) if isinstance(op, ir.Operation)}


def _producer(value: ir.Value) -> ir.Operation | ir.Block:
    owner = value.owner
    return owner if isinstance(owner, ir.Block) else owner.operation


def _is_loop(value: ir.Value) -> bool:
    """Whether a value stands for a loop that has run, whose results are asked for."""
    return str(value.type) == "!graphc.loop"


def _is_array(value: ir.Value) -> bool:
    """Whether a value would have to be moved: constants are on both sides."""
    if not isinstance(value.type, ir.RankedTensorType):
        return False
    owner = value.owner
    return isinstance(owner, ir.Block) or owner.name not in _EVERYWHERE


def _stages(operations: list[ir.Operation], host: set[ir.Operation]) -> dict[ir.Operation, int]:
    """The number of changes of side on the longest way to each operation; those of the host are odd.

    Numbers and constants, which both sides may have, are where their operands are.
    """
    stages: dict[ir.Operation, int] = {}
    after = 0
    for op in operations:
        operands = [v.owner.operation for v in inputs_of(op) if not isinstance(v.owner, ir.Block)]
        least = max((stages[other] for other in operands if other in stages), default=0)
        if any(map(_is_loop, op.operands)):
            stage = least
        elif op in host:
            stage = max(least, after)
            stage += stage % 2 == 0
        elif raises(op) or any(_is_array(r) or _is_loop(r) for r in op.results):
            stage = max(least, after)
            stage += stage % 2
        else:
            stage = least
        if raises(op):
            after = stage
        stages[op] = stage
    return stages
