# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""`to_svg`: a picture of a graph, or of a compiled module with one frame for each fused kernel."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from os import PathLike
from typing import Any

from graphc.graph.basic import Variable
from graphc.graph.function_graph import FunctionGraph
from graphc.graph.traversal import toposort
from graphc.inspect.svg_layout import Box, Picture, layout
from graphc.inspect.svg_sources import picture_of_graph, picture_of_module
from graphc.inspect.writers import group, label, rectangle, saved, svg

_MARGIN = 14.0
_STYLE = """
text { text-anchor: middle }
.box { stroke: #57606a; stroke-width: 1 }
.op { fill: #ddf4ff } .input { fill: #dafbe1 } .constant { fill: #f6f8fa; stroke-dasharray: 3 2 }
.shared { fill: #fff8c5 } .output { fill: #ffebe9 }
.group { fill: #fbefff; stroke: #8250df; stroke-width: 1; fill-opacity: 0.6 }
.label { text-anchor: start; fill: #8250df; font-weight: bold }
.edge { fill: none; stroke: #57606a; stroke-width: 1.1 }
"""


def to_svg(
    graph: Any,
    file: str | PathLike[str] | None = None,
    *,
    print_type: bool = True,
    stage: str = "graph (optimised)",
) -> str:
    """Draw a graph.

    Args:
        graph: a Variable, Apply, `FunctionGraph`, list of variables; or a compiled function or the text of an
            MLIR module, which are drawn as compiled: one box for each operation, one frame for each loop nest
            that they were fused into.
        file: also write the picture to this path.
        print_type: show types in the boxes.
        stage: for compiled functions, which of their ``ir_stages`` to draw.

    Returns:
        The text of a self-contained SVG picture. Inputs are green, shared variables yellow, constants grey,
        outputs red.

    Raises:
        TypeError: ``graph`` is none of these.

    Examples:
        >>> picture = graphc.to_svg(pt.exp(pt.vector("x")).sum())
        >>> picture[:4]
        '<svg'
    """
    if isinstance(graph, str):
        picture = picture_of_module(graph, print_type)
    elif hasattr(graph, "ir_stages"):
        module = _stage_of(graph, stage)
        # Reference mode has no module: what it runs is the graph itself.
        picture = (
            picture_of_module(module, print_type) if module else picture_of_graph(graph.fgraph, print_type)
        )
    else:
        picture = picture_of_graph(graph, print_type)
    return saved(draw(picture), file)


# Graphs of more nodes are text in notebooks.
MOST_NODES = 100


def notebook_picture(graph: Variable | FunctionGraph) -> str | None:
    """The picture that a notebook shows of a graph; None, and so text, where there is none or it is large."""
    nodes = graph.nodes if isinstance(graph, FunctionGraph) else list(toposort([graph]))
    return to_svg(graph) if 0 < len(nodes) <= MOST_NODES else None


def draw(picture: Picture) -> str:
    """The text of a picture whose boxes have no places yet."""
    layout(picture)
    return svg((picture.width, picture.height), _MARGIN, _STYLE, _draw(picture))


def _stage_of(function: Any, stage: str) -> str:
    """The text of a stage of a compiled function."""
    stages = dict(function.ir_stages())
    if not stages:
        return ""
    if stage not in stages:
        raise ValueError(f"the stage must be one of {', '.join(map(repr, stages))}, got {stage!r}")
    return str(stages[stage])


def _draw(picture: Picture) -> Iterator[str]:
    yield (
        '<defs><marker id="arrow" viewBox="0 0 8 8" refX="7" refY="4" markerWidth="7" markerHeight="7" '
        'orient="auto">'
        '<path d="M0 0 L8 4 L0 8 z" fill="#57606a"/></marker></defs>'
    )
    for each in picture.groups.values():
        if each.width:
            yield rectangle("group", (each.x, each.y, each.width, each.height), ' rx="8"')
            yield label("label", each.x + 10, each.y + 16, each.label)
    for a, b in picture.edges:
        yield _edge(picture.boxes[a], picture.boxes[b], picture.bends.get((a, b), ()))
    for box in picture.boxes.values():
        yield from group(box.title, box.nodes, _box(box))


def _edge(a: Box, b: Box, bends: Sequence[Box]) -> str:
    """Curves between layers, straight down through those that the edge passes."""
    x, y = a.x + a.width / 2, a.y + a.height
    path = [f"M{x:.1f} {y:.1f}"]
    for place in (*bends, b):
        to = place.x + place.width / 2
        bend = max((place.y - y) / 2, 10.0)
        path.append(f"C{x:.1f} {y + bend:.1f} {to:.1f} {place.y - bend:.1f} {to:.1f} {place.y:.1f}")
        if place is not b:
            path.append(f"V{place.y + place.height:.1f}")
        x, y = to, place.y + place.height
    return f'<path class="edge" marker-end="url(#arrow)" d="{" ".join(path)}"/>'


def _box(box: Box) -> Iterator[str]:
    radius = 10 if box.kind != "op" else 3
    yield rectangle(f"box {box.kind}", (box.x, box.y, box.width, box.height), f' rx="{radius}"')
    for i, line in enumerate(box.lines):
        yield label("line", box.x + box.width / 2, box.y + 16 + 14 * i, line)
