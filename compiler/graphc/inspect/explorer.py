# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""The explorer's page: one HTML file that holds all it shows, so that a browser needs no network.

A page has views of a function: source, graphs, IR after each pass, assembly. Their lines and boxes name the
graph's nodes by number, and so does its list of loops, on the most expensive of which it opens.

Text is what MLIR and LLVM printed of modules whose locations are numbers of nodes
(`graphc.emit.emitter.node_line`). The locations are read and removed.
"""

from __future__ import annotations

import base64
import json
import linecache
import zlib
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import field, replace
from html import escape
from importlib.resources import files
from os import PathLike
from pathlib import Path
from typing import TYPE_CHECKING

from graphc.backends import CompileLog, PassView
from graphc.emit import NODES_FILE, all_nodes
from graphc.function.compiled import Compiled
from graphc.graph.basic import Apply
from graphc.inspect.memory import Given, arguments_of, given_values
from graphc.inspect.roofline import Counts, MachineLimits, RooflineRow, row_of
from graphc.inspect.svg import draw, picture_of_graph, picture_of_module
from graphc.inspect.writers import saved
from graphc_runtime.record import record

if TYPE_CHECKING:
    from graphc.function.base import BaseFunction
    from graphc.graph.function_graph import FunctionGraph


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
                for word in iter(part.translate(_SPACES).split()):
                    if word in self._texts:
                        numbers.update(dict.fromkeys(self.of(self._texts[word])))
            self._known[text] = tuple(numbers)
        return self._known[text]


_SPACES = str.maketrans("()[],<>:", 8 * " ")


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
    """Place that closes the parenthesis which was opened before it."""
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


# Pictures of more boxes take seconds to lay out and show nothing; the lists of nodes have them all.
MOST_BOXES = 250
# Loops that a page offers to go to.
MOST_LOOPS = 12
# In estimates, sizes that are not known are the largest one that is, or this; the machine is one like many.
UNKNOWN = 1000
_MACHINE = MachineLimits(float64=2e10, float32=4e10, bandwidth=1e10, cores=1)
# Lines of a file that are shown before the first and after the last one that made a node.
AROUND = 12


@record()
class View:
    """One thing to look at.

    Attributes:
        kind: "source", "graph", "ir", "kernels", "memory", "llvm" or "asm": what it is a view of.
        title: what tells it from others of its kind.
        note: a sentence about it.
        text: its lines; None for a picture.
        first: number of the first line.
        picture: text of an SVG picture; empty for text.
        changed: for IR, whether the pass changed it; where not, there is no text, as it is that of the view
            before.
        seconds: what the pass took.
        stage: of the pipeline.
    """

    kind: str
    title: str
    note: str = ""
    text: Located | None = None
    first: int = 1
    picture: str = ""
    changed: bool = True
    seconds: float = 0.0
    stage: str = ""


@record()
class Node:
    """An application, as the page describes it."""

    op: str
    type: str
    file: str
    line: int
    part: str = ""


@record()
class Loop:
    """A loop nest or a call, and its cost.

    Attributes:
        name: its ops.
        nodes: numbers of the nodes that it computes.
        seconds: measured, or an estimate, which only compares it with others.
    """

    name: str
    nodes: list[int]
    seconds: float


@record()
class Exploration:
    """All that a page shows.

    Attributes:
        loops: what takes time, the most expensive first: a page opens on that.
        measured: whether the times are those of calls.
    """

    name: str
    mode: str
    nodes: list[Node] = field(default_factory=list)
    views: list[View] = field(default_factory=list)
    loops: list[Loop] = field(default_factory=list)
    measured: bool = False


def collect(function: BaseFunction, args: Sequence[object]) -> Exploration:
    """Compiles a function again and keeps what there is on the way.

    Args:
        function: the function.
        args: example values of inputs, or their shapes, for the memory plan.
    """
    found = Exploration(function.report.name, function.report.mode)
    whole = function.executor.whole
    segments = list(function.executor.segments())
    views: list[View] = []
    given = given_values(function, args)
    for number, segment in enumerate(segments):
        name = f"segment {number}: " if whole is None else ""
        views += _of_segment(segment, name, found, given)
    _measured(function, found)
    found.loops = sorted(found.loops, key=lambda loop: -loop.seconds)[:MOST_LOOPS]
    graph = function.fgraph
    if not segments:
        _add_nodes(found, all_nodes(graph), "")
        views += _graph_views(graph, "", 0)
    found.views = [*_sources(found.nodes), *views]
    plan = function.memory_plan(*args)
    if plan.steps and whole is not None:
        note = _SIZES if plan.workspaces and plan.peak is None and not args else _MEMORY
        found.views.append(View("memory", "memory over time", note, picture=plan.to_svg()))
    return found


_MEMORY = "time runs to the right, memory upwards"
_SIZES = f"{_MEMORY}; give example values, or shapes, for the sizes: f.explore((100, 3), (3,))"


def _add_nodes(found: Exploration, nodes: Sequence[Apply], part: str) -> int:
    """Adds nodes; returns the number of the first one."""
    first = len(found.nodes)
    for node in nodes:
        place = node.location
        types = ", ".join(str(v.type) for v in node.outputs)
        file, line = (place.file, place.line) if place is not None else ("", 0)
        found.nodes.append(Node(str(node.op), types, file, line, part))
    return first


def _loops(segment: Compiled, log: CompileLog, given: Sequence[Given], first: int) -> Iterator[Loop]:
    """The kernels of an executable, with estimates of their times."""
    nodes = all_nodes(segment.fgraph)
    shapes = [getattr(value, "shape", value) for value in given if value is not None]
    largest = max((size for shape in shapes for size in shape), default=0)
    for work in log.work or ():
        counts = Counts(work, arguments_of(segment, [*given]), largest or UNKNOWN)
        for kernel in work["kernels"]:
            row = row_of(kernel, counts, nodes, _MACHINE)
            if row.what != "scalars" and row.nodes:
                yield Loop(row.name, sorted(node + first for node in row.nodes), _estimate(row))


def _estimate(row: RooflineRow) -> float:
    """Steps of a loop wait for each other, where elements of arrays are computed side by side."""
    waits = 8 if any(op.startswith("Scan") for op in row.ops) else 1
    moved = (row.moved or row.bytes or 0) / row.limits.bandwidth
    return max(waits * row.arithmetic_seconds, moved)


def _measured(function: BaseFunction, found: Exploration) -> None:
    """Times of a function with ``profile=True`` that was called, instead of estimates."""
    profile = None if function.executor.whole is None else function.profile
    if profile is not None and profile.seconds:
        rows = [row for row in profile.rows() if row.nodes and row.seconds]
        found.loops = [Loop(row.name, sorted(row.nodes), row.seconds) for row in rows]
        found.measured = True


def _of_segment(segment: Compiled, name: str, found: Exploration, given: Sequence[Given]) -> Iterator[View]:
    nodes = all_nodes(segment.fgraph)
    first = _add_nodes(found, nodes, name)
    yield from _graph_views(segment.fgraph, name, first)
    log = segment.views(CompileLog(stages=[], views=[], work=[]))
    found.loops += _loops(segment, log, given, first)
    passes = log.views or []
    for seen in passes:
        text = None if seen.text is None else _shifted(mlir(seen.text), first)
        title = name + (seen.name or "emitted")
        note = seen.reason or "the graph as text, before the first pass" * (not seen.name)
        changed = seen.text is not None
        yield View("ir", title, note, text, changed=changed, seconds=seen.seconds, stage=seen.stage)
    yield from _kernels(passes, name, first)
    stages = dict(log.stages or ())
    for stage, title in (("llvm", "LLVM IR"), ("llvm-opt", "LLVM IR, optimised")):
        if stage in stages:
            yield View("llvm", name + title, text=_shifted(llvm(stages[stage]), first))
    if "asm" in stages:
        yield View("asm", f"{name}assembly", text=_shifted(assembly(stages["asm"]), first))
    if not passes:
        for stage, module in stages.items():
            yield View("ir", f"{name}{stage}", text=_shifted(mlir(module), first), stage=stage)


def _shifted(text: Located, first: int) -> Located:
    return replace(text, nodes=[tuple(n + first for n in nodes) for nodes in text.nodes]) if first else text


def _graph_views(graph: FunctionGraph, name: str, first: int) -> Iterator[View]:
    """Pictures of a graph and of those in its loops, and the list of all nodes."""
    nodes = all_nodes(graph)
    numbers = {node: i + first for i, node in enumerate(nodes)}
    listed = Located()
    width = max((len(str(node.op)) for node in nodes), default=0)
    for node, number in numbers.items():
        types = ", ".join(str(v.type) for v in node.outputs)
        listed.add(f"n{number:<4} {node.op!s:<{min(width, 32)}}  {types}", (number,))
    graphs = [(f"{name}graph", graph)]
    for node in nodes:
        inner = getattr(node.op, "compiled_graph", None)
        if inner is not None:
            graphs.append((f"{name}graph of a step of n{numbers[node]}", inner))
    for title, each in graphs:
        if 0 < len(each.nodes) <= MOST_BOXES:
            yield View("graph", title, picture=draw(picture_of_graph(each, True, numbers)))
    yield View("graph", f"{name}list of nodes", text=listed, first=0)


def _kernels(passes: Sequence[PassView], name: str, first: int) -> Iterator[View]:
    """The operations of the graph with a frame around those that share a loop."""
    last = ""
    for seen in passes:
        last = seen.text or last
        if seen.name.partition("{")[0] == "graphc-fusion":
            text = _shifted(mlir(last), first)
            if len(text.lines) <= 2 * MOST_BOXES:
                places = dict(zip(text.lines, text.nodes, strict=True))
                picture = draw(picture_of_module("\n".join(text.lines), False, places))
                yield View("kernels", f"{name}kernels", "a frame for each loop nest", picture=picture)


def _sources(nodes: Sequence[Node]) -> Iterator[View]:
    """The users' files, as far as they can be read, around the lines that made nodes."""
    lines: dict[str, dict[int, list[int]]] = {}
    for number, node in enumerate(nodes):
        if node.file:
            lines.setdefault(node.file, {}).setdefault(node.line, []).append(number)
    for file, made in sorted(lines.items(), key=lambda item: -sum(map(len, item[1].values()))):
        content = linecache.getlines(file)
        if not content:
            continue
        start, end = max(min(made) - AROUND, 1), min(max(made) + AROUND, len(content))
        text = Located()
        for number in range(start, end + 1):
            text.add(content[number - 1].rstrip().expandtabs(4), tuple(made.get(number, ())))
        yield View("source", file, text=text, first=start)


class Page:
    """A page of the compiler explorer; notebooks show it, ``save`` writes it.

    Attributes:
        name: of the function.
        html: the page.
    """

    def __init__(self, name: str, html: str) -> None:
        self.name, self.html = name, html

    def save(self, file: str | PathLike[str]) -> Path:
        """Writes the page; returns where."""
        saved(self.html, file)
        return Path(file)

    def _repr_html_(self) -> str:
        return (
            f'<iframe srcdoc="{escape(self.html)}" title="{escape(self.name)}" '
            'style="width: 100%; height: 640px; border: 1px solid #8888"></iframe>'
        )

    def __repr__(self) -> str:
        return f"<page of {self.name}, {len(self.html) // 1024} KB: save it with .save('page.html')>"


def explore(function: BaseFunction, args: Sequence[object]) -> Page:
    """See `Function.explore`."""
    for i, value in enumerate(args):
        if isinstance(value, (str, PathLike)):
            raise TypeError(
                f"explore(): argument {i} is the name of a file, {str(value)!r}; arguments are example "
                f"values of inputs or their shapes. A page is written with .explore().save({str(value)!r})"
            )
    found = collect(function, args)
    return Page(found.name, page_of(found))


def page_of(found: Exploration) -> str:
    """The text of the page."""
    views = [_described(view, i) for i, view in enumerate(found.views)]
    total = sum(loop.seconds for loop in found.loops)
    index = {
        "name": found.name,
        "mode": found.mode,
        "nodes": [[node.op, node.type, node.file, node.line, node.part] for node in found.nodes],
        "loops": [[loop.name, loop.nodes, loop.seconds / total] for loop in found.loops if loop.seconds],
        "measured": found.measured,
        "views": views,
    }
    stored = [
        f'<script type="application/octet-stream" id="view{i}">{_packed(_content(view))}</script>'
        for i, view in enumerate(found.views)
        if view.text is not None or view.picture
    ]
    parts = {
        "TITLE": escape(f"{found.name} ({found.mode})"),
        "STYLE": _resource("page.css"),
        "INDEX": _packed(index),
        "VIEWS": "\n".join(stored),
        "DIFF": _resource("diff.js"),
        "CODE": _resource("page.js"),
    }
    page = _resource("page.html")
    for name, text in parts.items():
        page = page.replace(f"<!--{name}-->", text)
    return page


def _described(view: View, number: int) -> dict[str, object]:
    return {
        "id": number,
        "kind": view.kind,
        "title": view.title,
        "note": view.note,
        "stage": view.stage,
        "first": view.first,
        "seconds": round(view.seconds, 6),
        "changed": view.changed,
        "picture": bool(view.picture),
    }


def _content(view: View) -> dict[str, object]:
    if view.text is None:
        return {"picture": view.picture}
    return {"text": "\n".join(view.text.lines), "nodes": [list(nodes) for nodes in view.text.nodes]}


def _packed(content: Mapping[str, object]) -> str:
    """JSON, compressed with zlib, in base64: browsers unpack it when it is first looked at."""
    data = json.dumps(content, separators=(",", ":")).encode()
    return base64.b64encode(zlib.compress(data)).decode()


def _resource(name: str) -> str:
    return (files(__package__) / name).read_text(encoding="utf-8")
