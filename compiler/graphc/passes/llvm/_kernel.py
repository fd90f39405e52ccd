# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""The rest of a kernel whose nests are in other modules: a frame, and calls with it.

One loop over a table puts the addresses of buffers that only nests read into the frame.

A kernel with hundreds of nests has hundreds of buffers. To find the place of one, put it into the frame and
end its lifetime takes LLVM a fifth of a millisecond, a row of a table nothing.

The frame has a word for each value that some nest needs. A nest that is called once knows its words; one that
is called several times gets a row of numbers with each call, which says where they are.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

from graphc.ir.helpers import callee_of
from graphc.library.helpers import Split
from graphc.library.markers import END, END_IN_FRAME, PLACE_ALL, PLANNED
from graphc.library.pool import SIZES, decision
from graphc.passes.llvm._code import add_to, call_of, constant_of, create, table_in, word, word_at
from graphc.passes.llvm._inner_loops import CONSTANTS
from graphc_dialects._mlir import ir
from graphc_runtime.record import record

# Types that fit a word of the frame.
WORDS = frozenset(("!llvm.ptr", "i1", "i8", "i16", "i32", "i64", "f16", "f32", "f64"))
ENTRY = "graphc_call_"
SHARE = (
    "llvm.func @graphc_share(!llvm.ptr, !llvm.ptr, i64, i64, i64, i64)"
    ' attributes {no_unwind, passthrough = ["cold"]}'
)


class Argument(NamedTuple):
    """An argument of a call.

    Attributes:
        kind: text of its type.
        value: what is passed; None if the function does not read it.
        constant: text of the attribute that it is; empty if it is none.
    """

    kind: str
    value: Any = None
    constant: str = ""

    @property
    def is_read(self) -> bool:
        return self.value is not None

    @property
    def slot(self) -> Any:
        """Meaning of a word of the frame: a value, or a number with its type."""
        return (self.kind, self.constant) if self.constant else self.value


def varies(column: Sequence[Argument]) -> bool:
    """True if an argument is read, and not the same number in all calls."""
    if not column[0].is_read:
        return False
    return any(not argument.constant or argument.slot != column[0].slot for argument in column)


class Words:
    """Code that gives the arguments of a call names.

    Args:
        arguments: of the call.
        names: for those that are read.
        places: where in the frame they are, by position; the others that are read are constants.
        row: whether the places are positions in a row that says where in the frame they are.
    """

    def __init__(
        self,
        arguments: Sequence[Argument],
        names: Sequence[str],
        places: Mapping[int, int],
        *,
        row: bool = False,
    ) -> None:
        self._arguments, self._names, self._places, self._row = arguments, names, places, row

    def lines(self) -> list[str]:
        """The code."""
        found = []
        for position, (name, argument) in enumerate(zip(self._names, self._arguments, strict=True)):
            kind = argument.kind
            if not argument.is_read:
                found.append(f"%{name} = llvm.mlir.poison : {kind}")
            elif position in self._places:
                found += self._address(name, self._places[position])
                found.append(f"%{name} = llvm.load %{name}.at : !llvm.ptr -> {kind}")
            else:
                found.append(f"%{name} = llvm.mlir.constant({argument.constant}) : {kind}")
        return found

    def _address(self, name: str, place: int) -> list[str]:
        if not self._row:
            return [f"%{name}.at = llvm.getelementptr %frame[{place}] : (!llvm.ptr) -> !llvm.ptr, i64"]
        return [
            f"%{name}.row = llvm.getelementptr %row[{place}] : (!llvm.ptr) -> !llvm.ptr, i32",
            f"%{name}.place = llvm.load %{name}.row : !llvm.ptr -> i32",
            f"%{name}.at = llvm.getelementptr %frame[%{name}.place] : (!llvm.ptr, i32) -> !llvm.ptr, i64",
        ]


def entry(
    name: str, called: str, arguments: Sequence[Argument], places: Mapping[int, int], *, row: bool
) -> str:
    """The function that calls a nest.

    Args:
        name: of the nest that the entry is named after.
        called: the function.
        arguments, places, row: see `Words`.
    """
    names = [f"a{position}" for position in range(len(arguments))]
    parameters = "%frame: !llvm.ptr, %row: !llvm.ptr" if row else "%frame: !llvm.ptr"
    types = ", ".join(argument.kind for argument in arguments)
    return function(
        f"hidden @{ENTRY}{name}({parameters})",
        *Words(arguments, names, places, row=row).lines(),
        f"llvm.call @{called}({', '.join(f'%{each}' for each in names)}) : ({types}) -> ()",
        "llvm.return",
    )


def shared_entry(split: Split, arguments: Sequence[Argument], places: Mapping[int, int]) -> str:
    """As `entry`, for a loop whose ranges threads share, and the function of a range."""
    sizes, captured = arguments[:4], arguments[4:]
    names = [f"a{position}" for position in range(len(captured))]
    moved = {position - 4: place for position, place in places.items() if position >= 4}
    operands = ", ".join(["%nothing", "%lower", "%upper", *(f"%{name}" for name in names)])
    types = ", ".join(["!llvm.ptr", "i64", "i64", *(argument.kind for argument in captured)])
    chosen = function(
        f"hidden @{ENTRY}{split.symbol}(%frame: !llvm.ptr)",
        *Words(sizes, SIZES, places).lines(),
        *decision(split),
        "llvm.cond_br %large, ^share, ^alone",
        "^alone:",
        f"llvm.call @{split.range}(%frame, %lower, %upper) : (!llvm.ptr, i64, i64) -> ()",
        "llvm.return",
        "^share:",
        *split_call(split),
    )
    body = function(
        f"internal @{split.range}(%frame: !llvm.ptr, %lower: i64, %upper: i64) attributes {{no_inline}}",
        "%nothing = llvm.mlir.zero : !llvm.ptr",
        *Words(captured, names, moved).lines(),
        f"%status = llvm.call @{split.body}({operands}) {{no_inline}} : ({types}) -> i64",
        "llvm.return",
    )
    return f"{body}\n{chosen}"


def split_call(split: Split) -> list[str]:
    """The call of the pool with what `%frame` has, and the end of the function."""
    operands = ", ".join(f"%{name}" for name in ("range", "frame", *SIZES))
    return [
        f"%range = llvm.mlir.addressof @{split.range} : !llvm.ptr",
        f"llvm.call @graphc_share({operands}) : (!llvm.ptr, !llvm.ptr, i64, i64, i64, i64) -> ()",
        "llvm.return",
    ]


def function(head: str, *lines: str) -> str:
    """The text of a function."""
    return "\n".join([f"llvm.func {head} {{", *(f"  {line}" for line in lines), "}"])


# With fewer, the loop is not worth it.
_FEWEST = 4
_KINDS = {PLACE_ALL: "!llvm.ptr, i64, !llvm.ptr, i64", END_IN_FRAME: "!llvm.ptr, i64, i64"}


@record(frozen=True)
class _Buffer:
    """A buffer that nests alone read.

    Attributes:
        place: the call that finds its place.
        read: the operation that takes the address out of the result.
        store: puts it into the frame.
        ends: the calls that end its lifetime.
        slot: the word of the frame.
        number: of the row of the workspace's table.
    """

    place: ir.Operation
    read: ir.Operation
    store: ir.Operation
    ends: tuple[ir.Operation, ...]
    slot: int
    number: int


def place_together(module: ir.Module, main: ir.Operation, slots: Mapping[object, int], to: ir.Value) -> None:
    """Finds the places of buffers at once, which are in a workspace with a table.

    That is done where the first of them was found: the workspace has memory for all, and the frame a word for
    each.

    Args:
        module: gains a table.
        main: the kernel, which has no loops.
        slots: what the words of the frame are for.
        to: the frame.
    """
    for block in main.regions[0].blocks:
        by_workspace: dict[ir.Value, list[_Buffer]] = {}
        for op in block.operations:
            buffer = _buffer(op.operation, slots)
            if buffer is not None:
                by_workspace.setdefault(buffer.place.operands[0], []).append(buffer)
        for workspace, buffers in by_workspace.items():
            if len(buffers) >= _FEWEST:
                _place(module, workspace, buffers, to)


def _buffer(op: ir.Operation, slots: Mapping[object, int]) -> _Buffer | None:
    if op.name != "llvm.call" or callee_of(op) != PLANNED:
        return None
    number, reads = constant_of(op.operands[1]), [use.owner.operation for use in op.result.uses]
    if number is None or len(reads) != 1 or reads[0].name != "llvm.extractvalue":
        return None
    slot = slots.get(reads[0].result)
    stores, ends = [], []
    for use in reads[0].result.uses:
        user = use.owner.operation
        if user.name == "llvm.store" and use.operand_number == 0 and user.block == op.block:
            stores.append(user)
        elif user.name == "llvm.call" and callee_of(user) == END:
            ends.append(user)
        else:
            return None
    if slot is None or len(stores) != 1:
        return None
    return _Buffer(op, reads[0], stores[0], tuple(ends), slot, number)


def _place(module: ir.Module, workspace: ir.Value, buffers: Sequence[_Buffer], to: ir.Value) -> None:
    count = sum(1 for op in module.body.operations if op.operation.name == "llvm.mlir.global")
    first = buffers[0].place
    with first.location, ir.InsertionPoint(first):
        words = [word for buffer in buffers for word in (buffer.slot, buffer.number)]
        table = table_in(module, f"graphc_places_{count}", words)
        call_of(PLACE_ALL, [to, workspace, table, word(len(buffers))])
    for callee, kinds in _KINDS.items():
        _declare(module, callee, kinds)
    for buffer in buffers:
        for end in buffer.ends:
            with end.location, ir.InsertionPoint(end):
                call_of(END_IN_FRAME, [to, word(buffer.slot), end.operands[1]])
            end.erase()
        address = buffer.store.operands[1].owner
        for op in (buffer.store, address, buffer.read, buffer.place):
            op.operation.erase()


def _declare(module: ir.Module, name: str, kinds: str) -> None:
    """Declares a function, once."""
    table = ir.SymbolTable(module.operation)
    if name not in table:
        add_to(module, f"llvm.func @{name}({kinds})")


# What passes values on, or control: other instructions compute.
_GLUE = CONSTANTS | frozenset(
    "llvm.call llvm.getelementptr llvm.extractvalue llvm.insertvalue llvm.load llvm.store llvm.alloca "
    "llvm.br llvm.cond_br llvm.return llvm.intr.lifetime.start".split()
)


@record()
class Nest:
    """A function that is moved.

    Attributes:
        name: its name.
        call: the one call of it.
        arguments: of the call.
        functions: it and what goes with it, or the body of a loop that is shared.
        original: the first function with the same code, often itself: the others call that one.
        split: what it is, if threads share it.
        position: of the call among those that were looked at.
        size: operations of all that are kept.
        spared: operations that are not, as another function has the same code.
    """

    name: str
    call: Any
    arguments: list[Argument]
    functions: list[str]
    original: str
    split: Split | None
    position: int
    size: int = 0
    spared: int = 0


class Kernel:
    """The rest of a kernel.

    Args:
        module: it is in.
        main: its function.
        slots: what the words of the frame are for.
    """

    def __init__(self, module: Any, main: Any, slots: dict[Any, int]) -> None:
        self._module, self._main, self._slots = module, main, slots

    def call(
        self, nests: Sequence[Nest], places: dict[str, dict[int, int]], columns: dict[str, list[int]]
    ) -> None:
        """Fills a frame, and calls nests with it."""
        entry = self._main.regions[0].blocks[0]
        with self._main.location, ir.InsertionPoint.at_block_begin(entry):
            kind = ir.Type.parse(f"!llvm.array<{max(len(self._slots), 1)} x i64>")
            attributes = {"elem_type": ir.TypeAttr.get(kind)}
            pointer = ir.Type.parse("!llvm.ptr")
            self._frame = ir.Operation.create("llvm.alloca", [pointer], [word(1)], attributes)
        last = self._frame
        for key, slot in self._slots.items():
            is_number = isinstance(key, tuple)
            if is_number or (isinstance(key.owner, ir.Block) and key.owner == entry):
                last = self._store(key, slot, ir.InsertionPoint.after(last))
            elif isinstance(key.owner, ir.Block):
                self._store(key, slot, ir.InsertionPoint.at_block_begin(key.owner))
            else:
                self._store(key, slot, ir.InsertionPoint.after(key.owner))
        declared: set[str] = set()
        for nest in nests:
            self._replace(nest, list(places[nest.name].values()), nest.original in columns, declared)
        if is_glue(self._main):
            place_together(self._module, self._main, self._slots, self._frame.result)
            self._main.attributes["optimize_none"] = ir.UnitAttr.get()
            self._main.attributes["no_inline"] = ir.UnitAttr.get()

    def _store(self, key: ir.Value, slot: int, at: ir.InsertionPoint) -> ir.Operation:
        """Puts a value or a number into its word."""
        with self._main.location, at:
            value = key
            if isinstance(key, tuple):
                attributes = {"value": ir.Attribute.parse(key[1])}
                value = create("llvm.mlir.constant", ir.Type.parse(key[0]), [], attributes)
            return ir.Operation.create("llvm.store", [], [value, word_at(self._frame.result, slot)])

    def _replace(self, nest: Nest, row: list[int], has_row: bool, declared: set[str]) -> None:
        """Makes the call of a nest one of its entry."""
        name = f"{ENTRY}{nest.original if has_row else nest.name}"
        if name not in declared:
            declared.add(name)
            kinds = "!llvm.ptr, !llvm.ptr" if has_row else "!llvm.ptr"
            add_to(self._module, f"llvm.func hidden @{name}({kinds})")
        with self._main.location, ir.InsertionPoint(nest.call):
            operands: list[ir.Value] = [self._frame.result]
            if has_row:
                # Where in the frame the arguments of the call are.
                operands.append(table_in(self._module, f"graphc_row_{nest.name}", row or [0]))
            call_of(name, operands)
        nest.call.erase()


def is_glue(function: ir.Operation) -> bool:
    """True if a function's body does little but call others, once each.

    LLVM's code generator takes more than linear time for long blocks, unless it is told not to optimise,
    which makes it two hundred times as fast and costs such code nothing that could be measured.
    """
    calls = computing = 0
    seen: list[object] = []
    for block in function.regions[0].blocks:
        seen.append(block)
        if any(after in seen for after in block.successors):
            return False  # a loop
        for op in block.operations:
            calls += op.operation.name == "llvm.call"
            computing += op.operation.name not in _GLUE
    return computing <= 2 * calls
