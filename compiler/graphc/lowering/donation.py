# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Donated arguments: which of them lend their memory to which results, and why the others do not.

A result is computed in the memory of an argument of the same type when what starts its computation is

* an elementwise loop that reads the argument, if at all, only at the position that it writes, or
* a chain of slice updates that begins with the argument or with the result of such a loop,

and everything else that reads the argument can come before. These are the conditions for it to pay;
bufferisation tests again what makes it right, and copies where it has doubts.
"""

from __future__ import annotations

import json
from collections.abc import Iterable
from typing import Any, NamedTuple

from graphc.lowering.kinds import REDUCTIONS, VIEWS, is_elementwise, static_shape
from graphc.lowering.scan import declared_sizes
from graphc.lowering.units import Units, ancestors
from graphc.passes._scan import scans
from graphc.passes._walk import walk
from graphc_dialects._mlir import ir

_ALIASES = VIEWS | {"tensor.cast", "graphc.reshape", "graphc.specify_shape"}
_UPDATES = ("graphc.update_slice", "graphc.put")


class Request(NamedTuple):
    """An argument that may be overwritten.

    Attributes:
        argument: its position.
        results: positions of the results that may have its memory.
        keeps_on_failure: whether it must be as before if a check fails.
    """

    argument: int
    results: list[int]
    keeps_on_failure: bool


class _Refused(Exception):
    """A result cannot be computed in an argument; the message says why."""


class Donations:
    """The decisions for one function.

    Args:
        function: a graph-stage `func.func`.
        requests: what may be overwritten.

    Attributes:
        pairs: result position by argument position.
        lent: for the first value that is computed in an argument's memory, the argument.
        behind: pairs of operations; the first must come behind the second.
        notes: for each argument that stays as it is, the reason.
    """

    def __init__(self, function: Any, requests: Iterable[Request]) -> None:
        self.pairs: dict[int, int] = {}
        self.lent: dict[Any, Any] = {}
        self.behind: list[tuple[Any, Any]] = []
        self.notes: dict[int, str] = {}
        requests = list(requests)
        if not requests:
            return
        self._extra = {
            op.results[0]: [size for row in declared_sizes(op).values() for size in row]
            for op in scans(function)
        }
        self._block = function.regions[0].blocks[0]
        self._results = list(list(self._block.operations)[-1].operands)
        for request in requests:
            self._decide(request)

    @classmethod
    def of_module(cls, module: Any, function: Any) -> Donations:
        """The decisions for a function by the attribute `graphc.donate` of its module, about `@main`."""
        given = "graphc.donate" in module.operation.attributes
        if not given or ir.StringAttr(function.attributes["sym_name"]).value != "main":
            return cls(function, ())
        text = ir.StringAttr(module.operation.attributes["graphc.donate"]).value
        return cls(function, [Request(*item) for item in json.loads(text)])

    def to_json(self) -> str:
        """What the entry has to know, and the reader of the report."""
        return json.dumps({"pairs": sorted(self.pairs.items()), "notes": sorted(self.notes.items())})

    def _decide(self, request: Request) -> None:
        x = self._block.arguments[request.argument]
        reasons = []
        for position in request.results:
            value = self._results[position]
            if value.type != x.type or position in self.pairs.values():
                continue
            try:
                self._try(x, value, request.keeps_on_failure)
            except _Refused as refusal:
                reasons.append(str(refusal))
            else:
                self.pairs[request.argument] = position
                return
        self.notes[request.argument] = next(iter(reasons), "no result has its type")

    def _try(self, x: Any, value: Any, keeps_on_failure: bool) -> None:
        """Lends x to a result.

        Raises:
            _Refused: it is not possible, or it would take a copy.
        """
        if value == x:
            return
        start = self._start(value, x)
        if start in self.lent:
            raise _Refused("its result is computed in another argument already")
        writer = start.owner.operation
        units = Units(self._block, self._extra, self.behind)
        own = set(units.members_with(writer))
        if None in static_shape(x) and not _have_same_sizes(start, x):
            raise _Refused("the sizes of the result may differ")
        earlier = [op for op in self._readers(x, own) if op not in own]
        if keeps_on_failure:
            earlier += [op for op in self._failing() if op not in own]
        needs, unit = units.needs(), units.unit_of(writer)
        for op in earlier:
            if unit in ancestors(needs, units.unit_of(op)):
                what = "can fail" if op.name == "graphc.check" else "reads it"
                raise _Refused(f"{op.name} {what} after the result has been computed")
        self.behind += [(writer, op) for op in earlier]
        self.lent[start] = x

    def _start(self, value: Any, x: Any) -> Any:
        """The first of the values that are computed in the memory of a result, one from the other."""
        while True:
            owner = value.owner
            if isinstance(owner, ir.Block) or owner.operation.block != self._block:
                raise _Refused("the result of its type is not computed here")
            if any(use.owner.operation.name == "graphc.write" for use in value.uses):
                raise _Refused("the result of its type is part of a joined array")
            if owner.name not in _UPDATES:
                break
            source = owner.operands[0]
            if source == x:
                return value
            if len(list(source.uses)) != 1:
                raise _Refused("the array that is updated for the result is needed elsewhere")
            value = source
        if not Units.is_loop(owner.operation) or owner.name in (*REDUCTIONS, "graphc.take"):
            raise _Refused(f"the result of its type comes from {owner.name}, which is not elementwise")
        return value

    def _readers(self, x: Any, own: set[Any]) -> list[Any]:
        """The operations that read x or a view of it.

        Raises:
            _Refused: one of `own` reads anything but the element that it writes, or it is not known when one
                reads.
        """
        found, pending = [], [x]
        while pending:
            value = pending.pop()
            for use in value.uses:
                op = use.owner.operation
                if op.name == "tensor.dim":
                    continue
                if op.block != self._block:
                    raise _Refused("a loop reads it")
                if op in own:
                    _require_same_position(use, value, x)
                found.append(op)
                if op.name in _ALIASES:
                    pending += list(op.results)
        return found

    def _failing(self) -> list[Any]:
        """The operations of the block in which a check is."""
        return [
            op.operation
            for op in self._block.operations
            if any(inner.name == "graphc.check" for inner in [op.operation, *walk(op.operation)])
        ]


def _have_same_sizes(value: Any, x: Any) -> bool:
    """Whether elementwise operations and updates, whose sizes agree, lead from x to a value."""
    pending, seen = [value], {value}
    while pending:
        value = pending.pop()
        if value == x:
            return True
        owner = value.owner
        if isinstance(owner, ir.Block) or owner.name == "graphc.take":
            continue
        if owner.name in _UPDATES:
            sources = [owner.operands[0]]
        else:
            sources = list(owner.operands) if is_elementwise(owner.name) else []
        new = [v for v in sources if static_shape(v) == static_shape(x) and v not in seen]
        seen.update(new)
        pending += new
    return False


def _require_same_position(use: Any, value: Any, x: Any) -> None:
    """Refuses an operation that does not read x just where it writes."""
    op = use.owner.operation
    if op.name in _UPDATES:
        # A view of it is copied before the update.
        if value == x and use.operand_number:
            raise _Refused(f"{op.name} reads it while it is updated")
        return
    domain = x if op.name in REDUCTIONS else op.results[0]
    if value != x or op.name == "graphc.take" or static_shape(domain) != static_shape(x):
        raise _Refused(f"{op.name} reads other elements of it than the one it writes")
