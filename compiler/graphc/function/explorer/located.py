# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Printed IR whose lines know the nodes they come from.

The text is what printers of MLIR and LLVM wrote of modules whose locations are numbers of nodes
(`graphc.emit.emitter.node_line`); the locations leave it.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import field

from graphc.emit import NODES_FILE
from graphc_runtime.record import record

_LOC = " loc("


@record()
class Located:
    """Text, and the nodes of each line.

    Attributes:
        lines: the text.
        nodes: for each line the numbers of the nodes that it comes from.
    """

    lines: list[str] = field(default_factory=list)
    nodes: list[tuple[int, ...]] = field(default_factory=list)

    def add(self, line: str, nodes: tuple[int, ...] = ()) -> None:
        """Adds a line."""
        self.lines.append(line)
        self.nodes.append(nodes)


def mlir(text: str) -> Located:
    """A module that MLIR printed with its locations.

    The location of an operation with regions stands after them: it is given to the line where it begins, too.
    """
    lines = text.splitlines()
    nodes = _Aliases(lines)
    found = Located()
    open_at: dict[int, int] = {}
    for line in lines:
        if line.startswith("#loc"):
            continue
        plain, locations = _without_locations(line)
        numbers = tuple(dict.fromkeys(n for location in locations for n in nodes.of(location)))
        indent = len(plain) - len(plain.lstrip(" "))
        closes = plain[indent : indent + 1] == "}"
        if closes and numbers and indent in open_at:
            found.nodes[open_at[indent]] = numbers
        if not closes and plain.endswith("{"):
            open_at[indent] = len(found.lines)
        found.add(plain, numbers)
    return found


class _Aliases:
    """Nodes of locations, which the printer names ``#loc12`` and defines on lines of their own."""

    def __init__(self, lines: list[str]) -> None:
        self._texts = dict(line.split(" = ", 1) for line in lines if line.startswith("#loc"))
        self._known: dict[str, tuple[int, ...]] = {}

    def of(self, text: str) -> tuple[int, ...]:
        """The nodes that the text of a location names, itself or through aliases."""
        if text not in self._known:
            numbers: dict[int, None] = {}
            for i, part in enumerate(text.split('"')):
                # Every second part is a string: the name of a node, or a file.
                if i % 2:
                    if part[:1] == "n" and part[1:].isdigit():
                        numbers[int(part[1:])] = None
                    continue
                for word in _words(part):
                    if word in self._texts:
                        numbers.update(dict.fromkeys(self.of(self._texts[word])))
            self._known[text] = tuple(numbers)
        return self._known[text]


_SPACES = str.maketrans("()[],<>:", 8 * " ")


def _words(text: str) -> Iterator[str]:
    return iter(text.translate(_SPACES).split())


def _without_locations(line: str) -> tuple[str, list[str]]:
    """A line without what ``loc(...)`` says, and what that is."""
    locations: list[str] = []
    start = line.find(_LOC)
    while start >= 0:
        end = _closing(line, start + len(_LOC))
        locations.append(line[start + len(_LOC) : end])
        line = line[:start] + line[end + 1 :]
        start = line.find(_LOC, start)
    return line, locations


def _closing(line: str, place: int) -> int:
    """Where the parenthesis that was opened before a place is closed."""
    if line[place] == "#":  # an alias
        return line.find(")", place)
    depth, quoted = 1, False
    while place < len(line):
        char = line[place]
        if char == '"':
            quoted = not quoted
        elif not quoted:
            depth += (char == "(") - (char == ")")
            if not depth:
                return place
        place += 1
    return len(line) - 1


_DEBUG = ", !dbg !"


def llvm(text: str) -> Located:
    """A module of LLVM IR; debug information leaves it."""
    lines = text.splitlines()
    metadata = dict(line.split(" = ", 1) for line in lines if line.startswith("!") and " = " in line)
    known: dict[str, tuple[int, ...]] = {}
    found = Located()
    for line in lines:
        name = line.partition(" = ")[0]
        if "!DI" in metadata.get(name, "") or line.startswith("!llvm.dbg"):
            continue
        is_function = line.startswith(("define", "declare"))
        plain, mark, rest = line.partition(_DEBUG.removeprefix("," * is_function))
        number = rest.partition(",")[0].partition(" ")[0]
        key = f"!{number}" if mark and not is_function else ""
        if key not in known:
            known[key] = _line_of(key, metadata)
        found.add(plain + rest[len(number) :], known[key])
    return found


def _line_of(key: str, metadata: dict[str, str]) -> tuple[int, ...]:
    """The node of a `DILocation`; of code that was inlined, the node that calls it."""
    while key:
        fields = _fields(metadata.get(key, ""))
        line = int(fields.get("line", "0"))
        if line and _file_of(fields.get("scope", ""), metadata) == NODES_FILE:
            return (line - 1,)
        key = fields.get("inlinedAt", "")
    return ()


def _file_of(scope: str, metadata: dict[str, str]) -> str:
    file = _fields(metadata.get(scope, "")).get("file", "")
    return _fields(metadata.get(file, "")).get("filename", "").strip('"')


def _fields(text: str) -> dict[str, str]:
    inner = text.partition("(")[2].rpartition(")")[0]
    pairs = (item.partition(": ") for item in inner.split(", "))
    return {name: value for name, _, value in pairs}


_LEFT_OUT = (".cfi_", ".loc", ".Ltmp", ".Lfunc", ".p2align", ".addrsig", ".ident")


def assembly(text: str) -> Located:
    """Assembly of one or more modules; debug sections and directives of unwinding leave it."""
    found = Located()
    node: tuple[int, ...] = ()
    file, debug = "", False
    for line in text.splitlines():
        words = line.split()
        head = words[0] if words else ""
        if head in (".section", ".text", ".data"):
            debug = head == ".section" and words[1].startswith((".debug", '".note'))
        if head == ".file":
            if len(words) > 2:
                file = words[1] if words[-1] == f'"{NODES_FILE}"' else file
            else:
                file, node = "", ()
            continue
        if head == ".loc":
            is_node = words[1] == file and words[2] != "0"
            node = (int(words[2]) - 1,) if is_node else ()
        if debug or not head or head.startswith(_LEFT_OUT):
            continue
        if head == ".type" and "@function" in line:
            node = ()
        is_code = line[:1] == "\t" and head[:1] not in ".#"
        found.add(line.expandtabs(8), node if is_code else ())
    return found
