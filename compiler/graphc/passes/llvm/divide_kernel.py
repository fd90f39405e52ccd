# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Large kernels become several modules, which are compiled at the same time."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import field
from typing import Any

from graphc.ir.helpers import callee_of, declared
from graphc.ir.walk import definition, symbol_of, walk
from graphc.library.helpers import Helper, Split
from graphc.passes import Pass
from graphc.passes.llvm import _kernel as frame
from graphc.passes.llvm._inner_loops import CONSTANTS, outline_blocks
from graphc.passes.llvm._kernel import Argument, Kernel, Nest
from graphc_dialects._mlir import ir
from graphc_runtime.record import record

# What modules are called, and the attribute with the functions that they define for others.
PIECE, EXPORTS = "graphc_piece", "graphc.exports"
# Operations that name symbols.
_REFER = ("llvm.call", "llvm.mlir.addressof")
# Of globals that a module does not share.
_INNER = ("#llvm.linkage<private>", "#llvm.linkage<internal>")


@record()
class DivideKernel(Pass):
    """Moves nests of a large kernel to nested modules, `@graphc_piece_<n>`.

    Nests are what passes made functions of their own: `@graphc_part_<n>` of outline-loops, and loops that
    `@graphc_split_<n>` of parallel-loops shares. In a nested module each gets a function
    `@graphc_call_<name>(frame)`, a hidden symbol, which the runtime resolves when it loads the objects
    together. The kernel puts each value that some nest needs into the frame once, where it is defined: with
    hundreds of calls of dozens of arguments, most of its code would move pointers from one place on the stack
    to another. A call may stand in a branch, and a later one in another branch or after both: what both need
    is in the frame on all paths. Of functions with the same code one is kept, and called with a row of a
    table: where in the frame the arguments of each call are.

    Functions are moved that `@main` calls in one place, and that refer to nothing but declarations, constants
    and, if they share a loop, its body.

    In moved functions long inner loops over the elements of a block get functions of their own, and long
    loops are vectorised without a second copy of the vectorised body. A kernel that is left with little but
    calls is not optimised, which takes LLVM more than linear time in long blocks. One loop over a table puts
    the addresses of buffers that only nests read into its frame (`@graphc_place_all`).

    How a kernel is divided depends on its operations only, so that the same bytes come out whatever the
    number of cores.

    Attributes:
        large: kernels with fewer operations stay in one piece.
        size: operations of the functions in a module, about: that takes a quarter of a second, of which a
            fiftieth is the same whatever is in the module.
    """

    large: int = 1500
    size: int = 1500

    stage = "llvm"

    def run(self, module: ir.Module) -> None:
        division = _Division(module)
        if division.is_candidate() and division.measure() >= self.large:
            groups = _groups(division.nests(), self.size)
            if groups:
                division.divide(groups)
                self.count("modules", len(groups))


@record()
class _Group:
    """Functions that are compiled together."""

    nests: list[Nest] = field(default_factory=list)
    size: int = 0


class _Division:
    """The functions of one module."""

    def __init__(self, module: ir.Module) -> None:
        self._module = module
        named = [op.operation for op in module.body.operations if "sym_name" in op.operation.attributes]
        self._symbols = {symbol_of(op): op for op in named}
        self._helpers: dict[str, Helper] = declared(module)
        self._needs: dict[str, set[str]] = {}
        self._sizes: dict[str, int] = {}
        self._kinds: dict[ir.Type, str] = {}  # as they are written, which takes MLIR long

    def is_candidate(self) -> bool:
        """True if there is anything to move."""
        return "main" in self._symbols and any(map(self._is_nest, self._symbols))

    def _is_nest(self, name: str) -> bool:
        return isinstance(self._helpers.get(name), Split) or "graphc.part" in self._symbols[name].attributes

    def measure(self) -> int:
        """The number of operations of all functions."""
        for name, op in self._symbols.items():
            if _is_defined(op):
                inside = [(x.name, x) for x in walk(op)]
                self._needs[name] = {_named(x) for kind, x in inside if kind in _REFER} - {name, ""}
                self._sizes[name] = sum(kind not in CONSTANTS for kind, _ in inside)
        return sum(self._sizes.values())

    def nests(self) -> list[Nest]:
        """Nests that can be moved, in the order of the calls."""
        blocks = self._symbols["main"].regions[0].blocks
        calls = [
            op.operation for block in blocks for op in block.operations if op.operation.name == "llvm.call"
        ]
        calls = [
            call for call in calls if callee_of(call) in self._symbols and self._is_nest(callee_of(call))
        ]
        times = Counter(map(callee_of, calls))
        users = Counter(name for needs in self._needs.values() for name in needs)
        originals: dict[str, str] = {}
        found: list[Nest] = []
        for call in calls:
            name = callee_of(call)
            helper = self._helpers.get(name)
            split = helper if isinstance(helper, Split) else None
            code = name if split is None else split.body
            arguments = self._arguments(call, code, 0 if split is None else 1)
            if times[name] > 1 or users[name] > 1 or arguments is None or not self._is_free(code):
                continue
            text = name if split is not None else _code(self._symbols[name], name)
            original = originals.setdefault(text, name)
            nest = Nest(name, call, arguments, [code], original, split, len(found))
            if original == name:
                nest.size = self._sizes[code]
            else:
                nest.spared = self._sizes[code]
            found.append(nest)
        return found

    def _is_free(self, name: str) -> bool:
        """True if a function refers to nothing that stays."""
        return all(self._may_be_copied(self._symbols[other]) for other in self._needs[name])

    def _may_be_copied(self, op: ir.Operation) -> bool:
        """True if a symbol may have several copies, and needs nothing else."""
        if op.name == "llvm.func":
            return not _is_defined(op)
        inner = str(op.attributes["linkage"]) in _INNER
        return inner and "constant" in op.attributes and "value" in op.attributes

    def _arguments(self, call: ir.Operation, code: str, more: int) -> list[Argument] | None:
        """The arguments of a call; None if they do not fit the frame.

        Args:
            call: the call.
            code: the function whose parameters they become.
            more: how many of them that function does not get: the cost and the alignment of a loop, less its
                context.
        """
        parameters = list(self._symbols[code].regions[0].blocks[0].arguments)
        arguments = []
        for position, value in enumerate(call.operands):
            kind = self._kinds.get(value.type) or self._kinds.setdefault(value.type, str(value.type))
            if kind not in frame.WORDS:
                return None
            # Sizes of a loop are read by what shares it.
            read = position < 4 if more else False
            read = read or any(True for _ in parameters[position - more].uses)
            made = definition(value, "llvm.mlir.constant")
            constant = "" if made is None else str(made.attributes["value"])
            arguments.append(Argument(kind, value, constant) if read else Argument(kind))
        return arguments

    def divide(self, groups: Sequence[_Group]) -> None:
        """Moves functions to modules of their own."""
        nests = [nest for group in groups for nest in group.nests]
        nests.sort(key=lambda nest: nest.position)
        columns = _columns(nests)
        slots: dict[Any, int] = {}
        places: dict[str, dict[int, int]] = {}
        for nest in nests:
            needed = columns.get(nest.original, _values(nest.arguments))
            mine = [nest.arguments[position] for position in needed]
            for argument in mine:
                slots.setdefault(argument.slot, len(slots))
            places[nest.name] = {p: slots[nest.arguments[p].slot] for p in needed}
        Kernel(self._module, self._symbols["main"], slots).call(nests, places, columns)
        for number, group in enumerate(groups):
            self._piece(f"{PIECE}_{number}", group, places, columns)

    def _piece(
        self, name: str, group: _Group, places: dict[str, dict[int, int]], columns: dict[str, list[int]]
    ) -> None:
        """A module with the functions of a group."""
        kept = [nest for nest in group.nests if nest.name == nest.original]
        entered = [nest for nest in group.nests if nest.name == nest.original or nest.original not in columns]
        codes = [code for nest in kept for code in nest.functions]
        texts = [frame.SHARE] if any(nest.split for nest in entered) else []
        texts += [_declaration(self._symbols[code]) for code in codes]
        for nest in entered:
            if nest.split is not None:
                texts.append(frame.shared_entry(nest.split, nest.arguments, places[nest.name]))
            else:
                rows = columns.get(nest.original)
                at = {p: i for i, p in enumerate(rows)} if rows is not None else places[nest.name]
                called = nest.original
                texts.append(frame.entry(nest.name, called, nest.arguments, at, row=rows is not None))
        exports = [ir.StringAttr.get(f"{frame.ENTRY}{nest.name}") for nest in entered]
        piece = ir.Operation.create(
            "builtin.module",
            attributes={"sym_name": ir.StringAttr.get(name), EXPORTS: ir.ArrayAttr.get(exports)},
            regions=1,
            ip=ir.InsertionPoint(self._module.body),
        )
        body = ir.Block.create_at_start(piece.regions[0], [])
        for needed in sorted({other for code in codes for other in self._needs[code]}):
            with ir.InsertionPoint(body):
                self._symbols[needed].clone()
        for code in codes:
            body.append(self._symbols[code])
            outline_blocks(self._symbols[code], body)
        _append(body, ir.Module.parse("\n".join(texts)), without={*codes, *_names(body)})
        for nest in group.nests:
            if nest.name != nest.original or nest.split is not None:
                self._symbols[nest.name].erase()


def _is_defined(op: ir.Operation) -> bool:
    return op.name == "llvm.func" and len(op.regions[0].blocks) > 0


def _named(op: ir.Operation) -> str:
    """The symbol that an operation of `_REFER` names."""
    if op.name == "llvm.call":
        return callee_of(op)
    return str(ir.FlatSymbolRefAttr(op.attributes["global_name"]).value)


def _code(function: ir.Operation, name: str) -> str:
    """The text of a function without its name."""
    text: str = function.get_asm(use_local_scope=True, assume_verified=True)
    return text.replace(f"@{name}(", "@(", 1)


def _declaration(function: ir.Operation) -> str:
    """The text of a declaration of a function."""
    kinds = ", ".join(str(value.type) for value in function.regions[0].blocks[0].arguments)
    result = " -> i64" if str(function.attributes["function_type"]).startswith("!llvm.func<i64") else ""
    return f"llvm.func @{ir.StringAttr(function.attributes['sym_name']).value}({kinds}){result}"


def _values(arguments: Sequence[Argument]) -> list[int]:
    """The positions of arguments that are read and no numbers."""
    return [i for i, argument in enumerate(arguments) if argument.is_read and not argument.constant]


def _columns(nests: Iterable[Nest]) -> dict[str, list[int]]:
    """By original: the arguments of functions with several calls that are values or differ."""
    calls: dict[str, list[list[Argument]]] = {}
    for nest in nests:
        if nest.split is None:
            calls.setdefault(nest.original, []).append(nest.arguments)
    return {
        original: [i for i, column in enumerate(zip(*found, strict=True)) if frame.varies(column)]
        for original, found in calls.items()
        if len(found) > 1
    }


def _groups(nests: Sequence[Nest], size: int) -> list[_Group]:
    """Divides functions into groups of about the same size."""
    count = round(sum(nest.size for nest in nests) / size)
    if sum(nest.spared for nest in nests) > size // 2:
        count = max(count, 1)
    groups = [_Group() for _ in range(count)]
    homes: dict[str, _Group] = {}
    for nest in sorted(nests if groups else (), key=lambda nest: -nest.size):
        home = homes.get(nest.original) or min(groups, key=lambda group: group.size)
        homes[nest.name] = home
        home.nests.append(nest)
        home.size += nest.size
    return [group for group in groups if group.nests]


def _names(body: ir.Block) -> set[str]:
    return {symbol_of(op.operation) for op in body.operations}


def _append(body: ir.Block, made: ir.Module, without: set[str]) -> None:
    """Moves the operations of a module to another, but for some names."""
    for op in [op.operation for op in made.body.operations]:
        if symbol_of(op) not in without:
            op.detach_from_parent()
            body.append(op)
