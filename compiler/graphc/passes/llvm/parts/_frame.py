# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Text of the functions that take the arguments of nests from the frame of the kernel.

The frame has a word for each value that some nest needs. A nest that is called once knows its words; one that
is called several times gets a row of numbers with each call, which says where they are.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

from graphc.library.helpers import Split
from graphc.library.pool.splits import SIZES, decision

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
