# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Divides the IR text of a large kernel into modules that can be compiled at the same time.

Loop nests that passes made functions of their own (`graphc_part_<n>` of outline-loops, and `graphc_split_<n>`
around the `graphc_body_<n>` of parallel-loops) go to other modules. There each gets a function
`graphc_call_<name>(frame)`, a hidden symbol, which the runtime resolves when it loads the objects together
(`graphc_runtime.elf.join`). The kernel puts each value that some nest needs into the frame once, where it is
defined: with hundreds of calls of dozens of arguments, most of its code would move pointers from one place on
the stack to another. A call may stand in a branch, and a later one in another branch or after both: what
both need is in the frame on all paths. Of functions with the same text one is kept, and called with a row of
a table: where in the frame the arguments of each call are.

How a text is divided depends on the text only, so that the same bytes come out whatever the number of cores.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field
from functools import cached_property, partial

from graphc.backends.cpu import frames
from graphc.backends.cpu.inner_loops import LONG_BODY, outline
from graphc.backends.cpu.kernel import LOADING
from graphc.library.pool.splits import define_call

# Characters of IR: smaller kernels stay in one piece.
LARGE = 130_000
# Characters of the functions in a module, about: that takes a quarter of a second, of which a fiftieth is the
# same whatever is in the module.
MODULE_SIZE = 80_000
_DEFINITION = re.compile(r"^define [^\n]*?@([\w.$-]+)\([^\n]*\{\n.*?^\}\n", re.MULTILINE | re.DOTALL)
_DEFINED = re.compile(r"^define [^\n]*?@([\w.$-]+)\(", re.MULTILINE)
_GLOBAL = re.compile(r"^@([\w.$-]+) = ([^\n]*)\n", re.MULTILINE)
_REFERENCE = re.compile(r"@([\w.$-]+)")
_CALL = re.compile(r"^  call void @(graphc_(?:part|split)_\w+)\(([^()\n]*)\)[^()\n]*\n", re.MULTILINE)
# Functions that belong to one of those: they are moved, all others are copied.
_OWNED = re.compile(r"graphc_(?:body|range)_\d+")
_ARGUMENT = re.compile(r"(ptr|i\d+|half|float|double) (%?)([-+\w.]+)")
_PARAMETER = re.compile(r" %([\w.]+)(?=,|$)")
_VALUE = re.compile(r" %([\w.]+)")
# What defines values: all phis at the beginning of a block, after which other code may stand, or one line.
_DEFINITIONS = re.compile(r"^(?:  %[\w.]+ = phi [^\n]*\n)+|^  %[\w.]+ = [^\n]*\n", re.MULTILINE)
_DEFINED_VALUE = re.compile(r"^  %([\w.]+) =", re.MULTILINE)
# The first arguments of a split function.
_SIZES = ("lower", "upper", "cost", "alignment")
_METADATA = re.compile(r"^!(\d+) =", re.MULTILINE)
# After `graphc.backends.cpu.inner_loops`, some functions have names in the place of numbers.
_LOOP = re.compile(
    r"^(v?\d+):[^\n]*\n(?:  %v?\d+ = phi [^\n]*\n)+  %v?\d+ = icmp [^\n]*\n"
    r"  br i1 %v?\d+, label %(v?\d+), label %\w+\n\n"
    rf"\2:[^\n]*\n(?:  (?!br )[^\n]*\n){{{LONG_BODY},}}  br label %\1$",
    re.MULTILINE,
)


@dataclass
class Piece:
    """A module.

    Attributes:
        source: its text, or what makes that.
        exports: the functions that it defines for the others.
    """

    source: str | Callable[[], str]
    exports: frozenset[str] = frozenset()

    @cached_property
    def text(self) -> str:
        """The text, made when it is first asked for: threads share that work too."""
        return self.source if isinstance(self.source, str) else self.source()


@dataclass
class _Nest:
    """A function that is moved.

    Attributes:
        name: its name.
        arguments: type and text of each argument of its call; the text is empty where it is not read.
        helpers: the functions that it calls, directly or not.
        original: the first function with the same text, often itself: the others call that one.
        size: characters of all that are kept.
        spared: characters that are not, as another function has the same text.
    """

    name: str
    arguments: list[frames.Argument]
    helpers: set[str]
    original: str
    size: int = 0
    spared: int = 0

    @property
    def replaced(self) -> frozenset[str]:
        """The functions of a split loop that `graphc.library.pool.splits.define_call` makes again."""
        split_range = f"graphc_range_{self.name.rpartition('_')[2]}"
        return frozenset({self.name, split_range} if split_range in self.helpers else ())


@dataclass
class _Group:
    """Functions that are compiled together."""

    nests: list[_Nest] = field(default_factory=list)
    size: int = 0


def divide(text: str, linked: Sequence[str] = ()) -> list[Piece]:
    """The modules for a kernel's text; the first one has what is not moved.

    Functions are moved that `main` calls in one place, and that refer to nothing but declarations, constants
    and functions for which the same is true.

    Args:
        text: IR of the kernel.
        linked: texts of the modules that are linked with it; nothing is moved that refers to functions there.

    Returns:
        The whole text as one piece, where there is no gain.
    """
    # No pass makes names in quotation marks.
    if len(text) < LARGE or '@"' in text:
        return [Piece(text)]
    return _Division(text, frozenset(name for other in linked for name in _DEFINED.findall(other))).pieces()


class _Division:
    """The functions of one text."""

    def __init__(self, text: str, elsewhere: frozenset[str]) -> None:
        self._text, self._elsewhere = text, elsewhere
        self._bodies = {found[1]: found[0] for found in _DEFINITION.finditer(text)}
        self._outside = _DEFINITION.sub("", text)
        self._globals = dict(_GLOBAL.findall(text))
        self._needs = {name: set(_REFERENCE.findall(body)) - {name} for name, body in self._bodies.items()}
        self._users = Counter(other for needs in self._needs.values() for other in needs)
        self._slots: dict[str, int] = {}
        # By original, of functions that are called with rows: what differs between the calls.
        self._columns: dict[str, list[int]] = {}

    def pieces(self) -> list[Piece]:
        nests = self._nests()
        groups = _groups(list(nests.values()))
        if not groups or "\ndefine " in self._outside:
            return [Piece(self._text)]
        self._columns = _columns(nests.values())
        values = [argument for nest in nests.values() for argument in self._in_frame(nest)]
        self._slots = {slot: i for i, slot in enumerate(dict.fromkeys(map(frames.slot, values)))}
        kernel = self._kernel(nests)
        return [Piece(kernel), *map(self._piece, groups)]

    def _in_frame(self, nest: _Nest) -> list[frames.Argument]:
        """The arguments of a call that it finds in the frame: values, and numbers that its row has."""
        columns = self._columns.get(nest.original)
        if columns is not None:
            return [nest.arguments[column] for column in columns]
        return [argument for argument in nest.arguments if argument[1].startswith("%")]

    def _nests(self) -> dict[str, _Nest]:
        """What can be moved, in the order of the calls."""
        calls = _CALL.findall(self._bodies.get("main", ""))
        times = Counter(name for name, _ in calls)
        found = {}
        originals: dict[str, str] = {}
        for name, text in calls:
            helpers = self._helpers(name)
            arguments = self._arguments(name, text) if helpers is not None else None
            if times[name] == 1 and self._users[name] == 1 and helpers is not None and arguments is not None:
                original = originals.setdefault(self._bodies[name].replace(f"@{name}(", "@(", 1), name)
                nest = found[name] = _Nest(name, arguments, helpers, original)
                if name != original:
                    nest.spared = len(self._bodies[name])
                else:
                    nest.size = sum(len(self._bodies[kept]) for kept in {name, *helpers} - nest.replaced)
        return found

    def _helpers(self, name: str) -> set[str] | None:
        """The functions that a function calls, directly or not; None if it cannot be moved."""
        found: set[str] = set()
        pending = [name]
        while pending:
            for other in self._needs.get(pending.pop(), ("main",)):
                if other == "main" or other in self._elsewhere:
                    return None
                if other in self._globals and not self._is_constant(other):
                    return None
                if other in self._bodies and other not in found:
                    found.add(other)
                    pending.append(other)
        owned = Counter(other for user in (name, *found) for other in self._needs[user])
        is_shared = any(_OWNED.fullmatch(x) and owned[x] < self._users[x] for x in found)
        return None if is_shared else found

    def _is_constant(self, name: str) -> bool:
        """Whether a global may have several copies, and needs nothing else."""
        value = self._globals[name]
        return (
            "@" not in value and re.match(r"(private|internal) (unnamed_addr )?constant ", value) is not None
        )

    def _arguments(self, name: str, text: str) -> list[frames.Argument] | None:
        """The arguments of a call; None if they are not plain."""
        header, _, body = self._bodies[name].partition("{\n")
        parameters = _parameters(header)
        found = [_ARGUMENT.fullmatch(argument) for argument in text.split(", ")]
        if len(found) != len(parameters):
            return None
        used = set(_VALUE.findall(body))
        arguments = []
        for parameter, argument in zip(parameters, found, strict=True):
            if argument is None:
                return None
            arguments.append((argument[1], argument[2] + argument[3] if parameter in used else ""))
        return arguments

    def _kernel(self, nests: dict[str, _Nest]) -> str:
        """The text of the kernel without the functions that are moved."""
        moved = {*nests, *(x for nest in nests.values() for x in nest.helpers if _OWNED.fullmatch(x))}
        kinds = {value: kind for nest in nests.values() for kind, value in self._in_frame(nest)}

        def stores(names: Sequence[str]) -> str:
            return "".join(self._store(f"%{x}", kinds[f"%{x}"], f"%{x}") for x in names if f"%{x}" in kinds)

        header, _, main = self._bodies["main"].partition("{\n")
        label = f"{LOADING}\n" if main.startswith(LOADING) else ""
        main = main.removeprefix(label)
        main = _CALL.sub(lambda found: self._call(nests[found[1]]) if found[1] in nests else found[0], main)
        main = _DEFINITIONS.sub(lambda found: found[0] + stores(_DEFINED_VALUE.findall(found[0])), main)
        if frames.is_glue(main):
            header += "optnone noinline "
        parameters = stores(_parameters(header))
        numbers = "".join(self._store(x, *x.split(" ")) for x in self._slots if not x.startswith("%"))
        frame = f"  %graphc.frame = alloca [{max(len(self._slots), 1)} x i64]\n"
        bodies = {**self._bodies, "main": f"{header}{{\n{label}{frame}{parameters}{numbers}{main}"}
        text = _DEFINITION.sub(lambda found: "" if found[1] in moved else bodies[found[1]], self._text)
        rows = "".join(self._row(nest) for nest in nests.values() if nest.original in self._columns)
        entries = dict.fromkeys(
            nest.original if nest.original in self._columns else nest.name for nest in nests.values()
        )
        declared = (
            f"declare hidden void @graphc_call_{name}(ptr{', ptr' * (name in self._columns)})\n"
            for name in entries
        )
        return "".join([text, rows, *declared])

    def _call(self, nest: _Nest) -> str:
        """The call of a function through the frame."""
        if nest.original in self._columns:
            return (
                f"  call void @graphc_call_{nest.original}(ptr %graphc.frame, ptr @graphc_row_{nest.name})\n"
            )
        return f"  call void @graphc_call_{nest.name}(ptr %graphc.frame)\n"

    def _row(self, nest: _Nest) -> str:
        """Where in the frame the arguments of a call are."""
        slots = [f"i32 {self._slots[frames.slot(argument)]}" for argument in self._in_frame(nest)]
        value = f"[{', '.join(slots)}]" if slots else "zeroinitializer"
        return f"@graphc_row_{nest.name} = private unnamed_addr constant [{len(slots)} x i32] {value}\n"

    def _store(self, key: str, kind: str, value: str) -> str:
        """Code that puts a value into its slot of the frame."""
        slot = self._slots[key]
        return (
            f"  %graphc.slot.{slot} = getelementptr i64, ptr %graphc.frame, i64 {slot}\n"
            f"  store {kind} {value}, ptr %graphc.slot.{slot}\n"
        )

    def _piece(self, group: _Group) -> Piece:
        exports = frozenset(f"graphc_call_{nest.name}" for nest in self._entered(group))
        return Piece(partial(self._piece_text, group), exports)

    def _entered(self, group: _Group) -> list[_Nest]:
        """The functions of a group that have entries of their own."""
        return [x for x in group.nests if x.name == x.original or x.original not in self._columns]

    def _piece_text(self, group: _Group) -> str:
        """A module: what is outside of functions, but for globals nobody here refers to, and functions."""
        nests = [nest for nest in group.nests if nest.name == nest.original]
        names = sorted({x for nest in nests for x in {nest.name, *nest.helpers} - nest.replaced})
        needed = {x for nest in nests for name in (nest.name, *nest.helpers) for x in self._needs[name]}
        outside = _GLOBAL.sub(lambda found: found[0] if self._is_kept(found, needed) else "", self._outside)
        loops = _Loops(max(map(int, _METADATA.findall(outside)), default=-1) + 1)
        functions = [loops.mark(outline(name, self._bodies[name]) or self._bodies[name]) for name in names]
        entries = [self._entry(nest) for nest in self._entered(group)]
        copies = [frames.COPY] if self._columns and frames.COPY_NAME not in outside else []
        return "".join([outside, *copies, *functions, *entries, loops.metadata()])

    def _is_kept(self, found: re.Match[str], needed: set[str]) -> bool:
        """Whether a module has a global: one that it needs, or a list such as @llvm.used of declarations."""
        special = found[1].startswith("llvm.")
        return found[1] in needed or (
            special and self._bodies.keys().isdisjoint(_REFERENCE.findall(found[2]))
        )

    def _entry(self, nest: _Nest) -> str:
        """The function that takes a nest's arguments from the frame, if there are rows from a part of it."""
        arguments, slots, rows = nest.arguments, self._slots, ""
        columns = self._columns.get(nest.original)
        if columns is not None:
            slots = {f"%{column}": position for position, column in enumerate(columns)}
            arguments = [
                (kind, f"%{column}" if column in columns else value)
                for column, (kind, value) in enumerate(arguments)
            ]
            rows = frames.gather(len(columns))
        if nest.replaced:
            sizes, captured = arguments[:4], arguments[4:]
            passed = ", ".join(["ptr null", "i64 %lower", "i64 %upper", *frames.passed(captured)])
            constants = "".join(
                f"  %{name} = add i64 {value}, 0\n"
                for name, (_, value) in zip(_SIZES, sizes, strict=True)
                if value not in slots
            )
            return define_call(
                nest.name,
                constants + frames.loads(sizes, _SIZES, slots),
                frames.loads(captured, frames.names(captured), slots),
                passed,
            )
        call = f"  call void @{nest.original}({', '.join(frames.passed(arguments))})\n"
        parameters = "ptr %all, ptr %row" if rows else "ptr %frame"
        header = f"define hidden void @graphc_call_{nest.name}({parameters}) {{\n"
        return "".join(
            [header, rows, frames.loads(arguments, frames.names(arguments), slots), call, "  ret void\n}\n"]
        )


def _columns(nests: Iterable[_Nest]) -> dict[str, list[int]]:
    """By original: the arguments of functions with several calls that are values or differ."""
    calls: dict[str, list[list[frames.Argument]]] = {}
    for nest in nests:
        if not nest.replaced:  # its entry is another
            calls.setdefault(nest.original, []).append(nest.arguments)
    return {
        original: [i for i, column in enumerate(zip(*found, strict=True)) if frames.varies(column)]
        for original, found in calls.items()
        if len(found) > 1
    }


def _parameters(header: str) -> list[str]:
    """The names of a function's parameters."""
    return _PARAMETER.findall(header[header.index("(") + 1 : header.rindex(")")])


def _groups(nests: list[_Nest]) -> list[_Group]:
    """Divides functions into groups of about the same size."""
    count = round(sum(nest.size for nest in nests) / MODULE_SIZE)
    if sum(nest.spared for nest in nests) > MODULE_SIZE // 2:
        count = max(count, 1)
    groups = [_Group() for _ in range(count)]
    homes: dict[str, _Group] = {}
    for nest in sorted(nests if groups else (), key=lambda nest: -nest.size):
        home = homes.get(nest.original) or min(groups, key=lambda group: group.size)
        homes[nest.name] = home
        home.nests.append(nest)
        home.size += nest.size
    return [group for group in groups if group.nests]


class _Loops:
    """Metadata of loops with long bodies: they are vectorised without a second copy of the vectorised body.

    That hides latencies of short bodies, and only makes more code of long ones.

    Args:
        number: the first number for metadata that is free.
    """

    def __init__(self, number: int) -> None:
        self._setting = number
        self._count = 0

    def mark(self, function: str) -> str:
        """The text of a function with references to the metadata."""
        return _LOOP.sub(self._reference, function)

    def metadata(self) -> str:
        """Lines for the end of the module."""
        first = self._setting
        nodes = [f"!{i} = distinct !{{!{i}, !{first}}}\n" for i in range(first + 1, first + 1 + self._count)]
        setting = f'!{first} = !{{!"llvm.loop.interleave.count", i32 1}}\n'
        return "".join([setting, *nodes] if nodes else [])

    def _reference(self, found: re.Match[str]) -> str:
        self._count += 1
        return f"{found[0]}, !llvm.loop !{self._setting + self._count}"
