# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""What a page of the explorer shows: views of a function, whose lines and boxes name nodes by number."""

from __future__ import annotations

import linecache
from collections.abc import Iterator, Sequence
from dataclasses import field, replace
from typing import TYPE_CHECKING

from graphc.backends.target import CompileLog, PassView
from graphc.emit import all_nodes
from graphc.function.compiled import Compiled
from graphc.function.explorer import located
from graphc.function.explorer.located import Located
from graphc.graph.basic import Apply
from graphc.graph.svg import draw
from graphc.graph.svg_sources import picture_of_graph, picture_of_module
from graphc_runtime.record import record

if TYPE_CHECKING:
    from graphc.function.types import Function
    from graphc.graph.function_graph import FunctionGraph

# Pictures of more boxes take seconds to lay out and show nothing; the lists of nodes have them all.
MOST_BOXES = 250
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
class Exploration:
    """All that a page shows."""

    name: str
    mode: str
    nodes: list[Node] = field(default_factory=list)
    views: list[View] = field(default_factory=list)


def collect(function: Function, args: Sequence[object]) -> Exploration:
    """Compiles a function again and keeps what there is on the way.

    Args:
        function: the function.
        args: example values of inputs, or their shapes, for the memory plan.
    """
    found = Exploration(function.report.name, function.report.mode)
    whole = function.executor.whole
    segments = [whole] if whole is not None else list(function.executor.segments())
    views: list[View] = []
    for number, segment in enumerate(segments):
        name = f"segment {number}: " if whole is None else ""
        views += _of_segment(segment, name, found)
    graph = function.fgraph
    if not segments:
        _add_nodes(found, all_nodes(graph), "")
        views += _graph_views(graph, "", 0)
    found.views = [*_sources(found.nodes), *views]
    plan = function.memory_plan(*args)
    if plan.steps and whole is not None:
        note = _SIZES if plan.workspaces and plan.peak is None else _MEMORY
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


def _of_segment(segment: Compiled, name: str, found: Exploration) -> Iterator[View]:
    nodes = all_nodes(segment.fgraph)
    first = _add_nodes(found, nodes, name)
    yield from _graph_views(segment.fgraph, name, first)
    log = segment.views(CompileLog(stages=[], views=[]))
    passes = log.views or []
    for seen in passes:
        text = None if seen.text is None else _shifted(located.mlir(seen.text), first)
        title = name + (seen.name or "emitted")
        note = seen.reason or "the graph as text, before the first pass" * (not seen.name)
        changed = seen.text is not None
        yield View("ir", title, note, text, changed=changed, seconds=seen.seconds, stage=seen.stage)
    yield from _kernels(passes, name, first)
    stages = dict(log.stages or ())
    for stage, title in (("llvm", "LLVM IR"), ("llvm-opt", "LLVM IR, optimised")):
        if stage in stages:
            yield View("llvm", name + title, text=_shifted(located.llvm(stages[stage]), first))
    if "asm" in stages:
        yield View("asm", f"{name}assembly", text=_shifted(located.assembly(stages["asm"]), first))
    if not passes:
        for stage, module in stages.items():
            yield View("ir", f"{name}{stage}", text=_shifted(located.mlir(module), first), stage=stage)


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
            text = _shifted(located.mlir(last), first)
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
