# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Inheritance of memory: the values that may take over the memory of another one.

A destination is passed on to what its value is made from: of `s / n`, written to a buffer, also the sum `s`
is computed there. It is passed on along one path: of `s + t` one operand alone is there, and what that one is
made from. `Destinations.lend` holds it, whoever asks first.
"""

from __future__ import annotations

from graphc.ir.kinds import REDUCTIONS
from graphc.ir.scan_view import is_trace
from graphc.ir.views import GATHERS, INLINED, UPDATES
from graphc_dialects._mlir import ir
from graphc_dialects.write import is_write, reads_buffer, root_of


def heirs(value: ir.Value) -> list[ir.Value]:
    """The values that take over a value's memory, one from the other, the last one at the end."""
    found = []
    following = successor(value)
    while following is not None:
        found.append(following)
        following = successor(following)
    return found


def successor(value: ir.Value) -> ir.Value | None:
    """The value that takes over the memory of this one, or None.

    It is the update of a value that has no other reader; or of the elementwise results of a cluster that is
    the only reader, and reads each element where it writes it, the one that is written to a buffer.
    """
    owner = value.owner
    if isinstance(owner, ir.Block):
        return None
    users = _only_readers(value, owner.operation.block)
    if not users:
        return None
    if len(users) == 1 and users[0].name in UPDATES:
        read_once = list(users[0].operands).count(value) == 1
        return users[0].results[0] if read_once and users[0].operands[0] == value else None
    number = _cluster(users[0])
    if number is None or _cluster(owner.operation) == number or owner.name in INLINED:
        return None
    if any(op.name in REDUCTIONS or op.name in GATHERS for op in users):
        return None
    if any(list(op.results[0].type.shape) != list(value.type.shape) for op in users):
        return None
    return _written(users, value)


def _only_readers(value: ir.Value, block: ir.Block) -> list[ir.Operation]:
    """The operation, or the operations of one cluster, that alone read a value, in its block; else none.

    The first reader that does not fit ends the search: a number may be read by every part of a join.
    """
    users: dict[ir.Operation, None] = {}
    number = None
    for use in value.uses:
        op = use.owner.operation
        if op in users:
            continue
        if op.block != block or (users and (number is None or _cluster(op) != number)):
            return []
        if not users:
            number = _cluster(op)
        users[op] = None
    return list(users)


def computed_with(value: ir.Value) -> list[ir.Value]:
    """Results of the operations that take part in computing a value in memory that is given beforehand."""
    owner = value.owner
    if isinstance(owner, ir.Block):
        return []
    if reads_buffer(owner):
        return [root_of(owner.operands[0]).results[0]]
    if is_trace(owner):
        return [owner.operands[0]]
    found = [value]
    for x in _read_with(owner):
        following = successor(x)
        if following is not None and following == value:
            found += computed_with(x)
    return found


def _read_with(op: ir.Operation) -> list[ir.Value]:
    """Operands of an operation, or of the cluster that it is the last of."""
    number = _cluster(op.operation)
    found: dict[ir.Value, None] = {}
    pending = [op.operation]
    seen = set(pending)
    while pending:
        for x in pending.pop().operands:
            owner = x.owner
            if isinstance(owner, ir.Block):
                continue
            if number is None or _cluster(owner.operation) != number:
                found[x] = None
            elif owner.operation not in seen:
                seen.add(owner.operation)
                pending.append(owner.operation)
    return list(found)


def _written(pending: list[ir.Operation], value: ir.Value) -> ir.Value | None:
    """The first result of members of a cluster that is written to a buffer, if it has the value's type."""
    number = _cluster(pending[0])
    seen = set(pending)
    while pending:
        op = pending.pop(0)
        for use in op.results[0].uses:
            user = use.owner.operation
            if is_write(user) and op.name not in REDUCTIONS:
                return op.results[0] if op.results[0].type == value.type else None
            if _cluster(user) == number and user not in seen:
                seen.add(user)
                pending.append(user)
    return None


def _cluster(op: ir.Operation) -> int | None:
    return ir.IntegerAttr(op.attributes["cluster"]).value if "cluster" in op.attributes else None
