# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""`to_svg`: a picture of a graph, or of a compiled module with one frame for each fused kernel.

The boxes of a directed acyclic graph are placed in layers, from top to bottom.

Layers are longest paths from the sources, the order within a layer follows the mean position of the
neighbours, and boxes then move towards their neighbours as far as the order allows. An edge that passes
layers has a narrow place of its own in each of them, so that it runs through no box; edges from one box share
these places. Groups are laid out on their own first and then count as one box.

Source: K. Sugiyama, S. Tagawa, M. Toda, "Methods for visual understanding of hierarchical system structures",
    1981.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import field
from os import PathLike
from typing import Any

from graphc.graph.basic import Apply, Constant, Variable
from graphc.graph.function_graph import FunctionGraph
from graphc.graph.shared import SharedVariable
from graphc.graph.traversal import io_toposort, toposort
from graphc.inspect.writers import group, label, rectangle, saved, svg
from graphc_runtime.record import record

_GAP_X, _GAP_Y, _PAD, _TITLE = 18.0, 34.0, 12.0, 18.0
_SWEEPS = 6
_LINE = 4.0  # the width of an edge's place in a layer that it passes


@record()
class Box:
    """A node of the picture.

    Attributes:
        key: what edges refer to.
        lines: text, one entry a line.
        kind: style class: ``input``, ``constant``, ``op``, ``output``.
        group: key of the group it belongs to, or None.
        title: text shown when the pointer rests on the box.
        nodes: numbers of the nodes that it stands for, in attributes of the picture.
        x, y, width, height: place of the top left corner, and size.
    """

    key: str
    lines: list[str]
    kind: str = "op"
    group: str | None = None
    title: str = ""
    nodes: tuple[int, ...] = ()
    x: float = 0.0
    y: float = 0.0
    width: float = 0.0
    height: float = 0.0


@record()
class Group:
    """A frame around boxes."""

    key: str
    label: str
    x: float = 0.0
    y: float = 0.0
    width: float = 0.0
    height: float = 0.0


@record()
class Picture:
    """Boxes, the edges between them as pairs of keys, and groups.

    Attributes:
        bends: the places that an edge has in the layers that it passes, from top to bottom.
    """

    boxes: dict[str, Box] = field(default_factory=dict)
    edges: list[tuple[str, str]] = field(default_factory=list)
    groups: dict[str, Group] = field(default_factory=dict)
    bends: dict[tuple[str, str], list[Box]] = field(default_factory=dict)
    width: float = 0.0
    height: float = 0.0

    def add(self, box: Box) -> None:
        """Add a box, sized for its text."""
        box.width = max(44.0, 7.0 * max(map(len, box.lines)) + 16.0)
        box.height = 14.0 * len(box.lines) + 10.0
        self.boxes[box.key] = box


def layout(picture: Picture) -> None:
    """Set the places of all boxes and groups and the size of the picture."""
    members: dict[str, list[Box]] = {}
    for box in picture.boxes.values():
        if box.group is not None:
            members.setdefault(box.group, []).append(box)
    outer: dict[str, Box | Group] = {}
    moved: dict[str, dict[str, Box]] = {}
    for key, boxes in members.items():
        group = picture.groups[key]
        inside = {box.key for box in boxes}
        edges = [(a, b) for a, b in picture.edges if a in inside and b in inside]
        width, height, bends = _place({box.key: box for box in boxes}, edges)
        picture.bends |= bends
        moved[key] = {bend.key: bend for places in bends.values() for bend in places}
        group.width = max(width, 7.0 * len(group.label)) + 2 * _PAD
        group.height = height + 2 * _PAD + _TITLE
        outer[key] = group
    home = {box.key: box.group or box.key for box in picture.boxes.values()}
    outer.update({key: box for key, box in picture.boxes.items() if box.group is None})
    pairs = dict.fromkeys((home[a], home[b]) for a, b in picture.edges if home[a] != home[b])
    width, height, bends = _place(outer, list(pairs))
    for a, b in picture.edges:
        if (home[a], home[b]) in bends:
            picture.bends[a, b] = bends[home[a], home[b]]
    for key, boxes in members.items():
        group = picture.groups[key]
        for box in (*boxes, *moved[key].values()):
            box.x += group.x + _PAD
            box.y += group.y + _PAD + _TITLE
    picture.width, picture.height = width, height


def _place(
    boxes: dict[str, Box] | dict[str, Box | Group], edges: Sequence[tuple[str, str]]
) -> tuple[float, float, dict[tuple[str, str], list[Box]]]:
    """Set x and y of the boxes; returns the size of the whole, and the bends of edges that pass layers."""
    before: dict[str, list[str]] = {key: [] for key in boxes}
    after: dict[str, list[str]] = {key: [] for key in boxes}
    for a, b in edges:
        before[b].append(a)
        after[a].append(b)
    layers = _layers(list(boxes), before, after)
    bends = _bends(layers, before, after)
    places = {bend.key: bend for passed in bends.values() for bend in passed}
    placed: dict[str, Box | Group] = {**boxes, **places}
    _order(layers, before, after)
    y = 0.0
    for layer in layers:
        height = max(placed[key].height for key in layer)
        x = 0.0
        for key in layer:
            box = placed[key]
            box.height = height if key in places else box.height
            box.x, box.y = x, y + (height - box.height) / 2
            x += box.width + _GAP_X
        y += height + _GAP_Y
    for sweep in range(_SWEEPS):
        for layer in layers if sweep % 2 == 0 else reversed(layers):
            _shift(layer, placed, before if sweep % 2 == 0 else after)
    left = min((box.x for box in placed.values()), default=0.0)
    for box in placed.values():
        box.x -= left
    width = max((box.x + box.width for box in placed.values()), default=0.0)
    return width, max(y - _GAP_Y, 0.0), bends


def _bends(
    layers: list[list[str]], before: dict[str, list[str]], after: dict[str, list[str]]
) -> dict[tuple[str, str], list[Box]]:
    """Places for edges in the layers that they pass, which become neighbours instead of the ends."""
    level = {key: i for i, layer in enumerate(layers) for key in layer}
    found: dict[tuple[str, str], list[Box]] = {}
    for source in list(level):
        readers = after[source]
        chain = [
            Box(f"{source} in layer {i}", [], width=_LINE)
            for i in range(level[source] + 1, max((level[reader] for reader in readers), default=0))
        ]
        for i, bend in enumerate(chain):
            layers[level[source] + 1 + i].append(bend.key)
            before[bend.key] = [chain[i - 1].key if i else source]
            after[bend.key] = [chain[i + 1].key] if i + 1 < len(chain) else []
        after[source] = [reader for reader in readers if level[reader] == level[source] + 1]
        after[source] += [chain[0].key] if chain else []
        for reader in readers:
            if passed := chain[: level[reader] - level[source] - 1]:
                found[source, reader] = passed
                after[passed[-1].key].append(reader)
                before[reader] = [passed[-1].key if key == source else key for key in before[reader]]
    return found


def _layers(keys: list[str], before: dict[str, list[str]], after: dict[str, list[str]]) -> list[list[str]]:
    """Keys by the length of the longest path that leads to them; sources sit directly above their first
    reader.
    """
    waiting = {key: len(before[key]) for key in keys}
    ready = [key for key in keys if not waiting[key]]
    level = dict.fromkeys(keys, 0)
    done: list[str] = []
    while ready:
        key = ready.pop(0)
        done.append(key)
        for reader in after[key]:
            level[reader] = max(level[reader], level[key] + 1)
            waiting[reader] -= 1
            if not waiting[reader]:
                ready.append(reader)
    if len(done) != len(keys):
        raise ValueError("the graph to draw has a cycle")
    for key in reversed(done):
        if not before[key] and after[key]:
            level[key] = min(level[reader] for reader in after[key]) - 1
    layers: list[list[str]] = [[] for _ in range(max(level.values(), default=-1) + 1)]
    for key in done:
        layers[level[key]].append(key)
    return [layer for layer in layers if layer]


def _order(layers: list[list[str]], before: dict[str, list[str]], after: dict[str, list[str]]) -> None:
    """Reorder each layer by the mean place of the neighbours, downwards and upwards in turn."""
    for sweep in range(_SWEEPS):
        neighbours = before if sweep % 2 == 0 else after
        place = {key: i for layer in layers for i, key in enumerate(layer)}
        for layer in layers if sweep % 2 == 0 else reversed(layers):
            layer.sort(key=lambda key: _mean((place[n] for n in neighbours[key]), place[key]))
            place.update({key: i for i, key in enumerate(layer)})


def _mean(values: Iterable[float], default: float) -> float:
    listed = list(values)
    return sum(listed) / len(listed) if listed else default


def _shift(layer: list[str], boxes: dict, neighbours: dict[str, list[str]]) -> None:
    """Move the boxes of a layer under their neighbours, keeping their order and distance.

    Boxes that want to overlap form a block that is centred on the mean of their wishes.
    """
    blocks: list[tuple[list[float], float, list[str]]] = []
    for key in layer:
        box = boxes[key]
        wish = (
            _mean((boxes[n].x + boxes[n].width / 2 for n in neighbours[key]), box.x + box.width / 2)
            - box.width / 2
        )
        wishes, width, members = [wish], box.width, [key]
        while blocks:
            last_wishes, last_width, last_members = blocks[-1]
            if sum(last_wishes) / len(last_wishes) + last_width + _GAP_X <= sum(wishes) / len(wishes):
                break
            blocks.pop()
            wishes = last_wishes + [w - last_width - _GAP_X for w in wishes]
            width, members = last_width + _GAP_X + width, last_members + members
        blocks.append((wishes, width, members))
    for wishes, _, members in blocks:
        x = sum(wishes) / len(wishes)
        for key in members:
            boxes[key].x = x
            x += boxes[key].width + _GAP_X


_LONGEST = 38


def _short(text: str) -> str:
    return text if len(text) <= _LONGEST else text[: _LONGEST - 1] + "…"


def _type(v: Variable) -> str:
    """A type as boxes show it: of a tensor, dtype and shape; the title has it whole."""
    text = str(v.type)
    if text.startswith("TensorType("):
        text = text[len("TensorType(") : -1].replace(",", "", 1)
    return _short(text)


def _is_number(v: Variable) -> bool:
    """True for constants that are written beside the op that reads them: they need no box."""
    return isinstance(v, Constant) and getattr(v.data, "size", 0) == 1


def _called(node: Apply) -> str:
    """The op, with its operands where some are numbers; a dot stands for each of the others."""
    op = str(node.op)
    if any(map(_is_number, node.inputs)):
        op += f"({', '.join(str(v) if _is_number(v) else '·' for v in node.inputs)})"
    return _short(op)


def _graph_ends(graph: Variable) -> tuple[list[Variable], list[Variable]]:
    """Inputs (empty: the roots) and outputs of what `to_svg` was given."""
    if isinstance(graph, Variable):
        return [], [graph]
    if isinstance(graph, Apply):
        return [], list(graph.outputs)
    if hasattr(graph, "outputs") and hasattr(graph, "toposort"):
        return list(graph.inputs), list(graph.outputs)
    if isinstance(graph, Iterable):
        outputs = list(graph)
        if all(isinstance(v, Variable) for v in outputs):
            return [], outputs
    raise TypeError(
        f"to_svg needs a Variable, Apply, FunctionGraph, list of variables, compiled function or MLIR text, "
        f"got {graph!r} of type {type(graph).__name__}"
    )


def picture_of_graph(graph: Any, print_type: bool, numbers: Mapping[Apply, int] | None = None) -> Picture:
    """Boxes for the nodes, roots and outputs of a graph; with ``numbers`` they say which node they are."""
    inputs, outputs = _graph_ends(graph)
    picture = Picture()
    keys: dict[Variable, str] = {}

    def root(v: Variable) -> str:
        if v not in keys:
            kind = (
                "constant"
                if isinstance(v, Constant)
                else "shared"
                if isinstance(v, SharedVariable)
                else "input"
            )
            lines = [_short(str(v))]
            if print_type and not (kind == "input" and v.name is None):
                lines.append(_type(v))
            keys[v] = f"v{len(keys)}"
            picture.add(Box(keys[v], lines, kind, title=_title(v)))
        return keys[v]

    for v in inputs:
        root(v)
    for node in io_toposort(inputs, outputs):
        key = f"n{len(picture.boxes)}"
        first = node.outputs[0]
        lines = [_called(node)] + ([first.name] if first.name else [])
        if print_type:
            lines += [_type(y) for y in node.outputs]
        sources = [keys[x] if x in keys else root(x) for x in node.inputs if not _is_number(x)]
        number = () if numbers is None else (numbers[node],)
        picture.add(Box(key, lines, title=_title(first), nodes=number))
        picture.edges += [(source, key) for source in dict.fromkeys(sources)]
        keys.update(dict.fromkeys(node.outputs, key))
    for i, y in enumerate(outputs):
        source = root(y) if y not in keys else keys[y]
        picture.add(Box(f"out{i}", [y.name or (f"output {i}" if len(outputs) > 1 else "output")], "output"))
        picture.edges.append((source, f"out{i}"))
    return picture


def _title(v: Variable) -> str:
    return f"{v.type} at {v.location}" if v.location is not None else str(v.type)


_OP = re.compile(r'^\s*(?:(%[\w#:]+(?:, *%[\w#:]+)*) *= *)?"?([\w.]+)"?(?:\((.*?)\))?(.*)$')
_VALUE = re.compile(r"%[\w]+")
_CLUSTER = re.compile(r"\bcluster = (\d+)")
_RESULT = re.compile(r"->\s*(.*?)(?:\s+loc\(.*)?$")


def _main_body(text: str) -> tuple[list[str], list[tuple[str, str]]]:
    """Lines of the body of ``@main`` (else of the first function) and its arguments with types."""
    lines = text.splitlines()
    heads = [i for i, line in enumerate(lines) if "func.func" in line]
    if not heads:
        raise ValueError("to_svg found no func.func in the given text; give the text of an MLIR module")
    start = next((i for i in heads if "@main" in lines[i] or '"main"' in lines[i]), heads[0])
    head = lines[start]
    arguments = [
        (name, kind.rstrip(" )"))
        for name, kind in re.findall(r"(%\w+): (tensor<[^>]*(?:<[^>]*>)?[^>]*>|[\w.<>?x]+)", head)
    ]
    body: list[str] = []
    depth = head.count("{") - head.count("}")
    for line in lines[start + 1 :]:
        stripped = line.strip()
        if stripped.startswith("^"):
            arguments += re.findall(r"(%\w+): (tensor<[^>]*(?:<[^>]*>)?[^>]*>|[\w.<>?x]+)", stripped)
            continue
        if depth <= 1 and stripped.startswith("}"):
            break
        # Operations inside regions belong to the one that opens the region.
        if depth <= 1:
            body.append(line)
        depth += line.count("{") - line.count("}")
    return body, arguments


def picture_of_module(
    text: str, print_type: bool, nodes: Mapping[str, tuple[int, ...]] | None = None
) -> Picture:
    """Boxes for the operations of ``@main``; operations with the same ``cluster`` attribute share a frame.

    Args:
        text: the module.
        print_type: show types in the boxes.
        nodes: of lines of the text, the numbers of the nodes that they stand for.
    """
    body, arguments = _main_body(text)
    picture = Picture()
    keys: dict[str, str] = {}
    for name, kind in arguments:
        keys[name] = f"a{len(keys)}"
        picture.add(Box(keys[name], [name, _short(kind)] if print_type else [name], "input"))
    for line in body:
        match = _OP.match(line)
        if match is None or ("." not in match.group(2) and match.group(2) != "return"):
            continue
        count = len(picture.boxes)
        _add_operation(picture, keys, line, match, print_type)
        if nodes is not None and len(picture.boxes) > count:
            next(reversed(picture.boxes.values())).nodes = nodes.get(line, ())
    return picture


def _add_operation(
    picture: Picture, keys: dict[str, str], line: str, match: re.Match[str], print_type: bool
) -> None:
    results, name, operands = match.group(1), match.group(2), match.group(3)
    right = line.split("=", 1)[1] if results else line
    used = _VALUE.findall(operands if operands is not None else right)
    key = f"o{len(picture.boxes)}"
    sources = dict.fromkeys(keys[v] for v in used if v in keys)
    if name in ("return", "func.return"):
        box = Box(key, ["return"], "output")
    else:
        kind = "constant" if name.endswith("constant") else "op"
        if kind == "constant" and right.endswith((": index", ": i64", " true", " false")):
            return  # sizes and positions
        found = _RESULT.search(line)
        shown = [_short(found.group(1).strip(" ()"))] if found and print_type else []
        box = Box(key, [_short(name.removeprefix("graphc.")), *shown], kind, title=_operation_title(line))
    cluster = _CLUSTER.search(line)
    if cluster:
        box.group = f"cluster{cluster.group(1)}"
        picture.groups.setdefault(box.group, Group(box.group, f"kernel {cluster.group(1)}"))
    picture.add(box)
    picture.edges += [(source, key) for source in sources]
    for result in _VALUE.findall(results or ""):
        keys[result] = key


def _operation_title(line: str) -> str:
    text = line.strip()
    return text if len(text) < 300 else text[:299] + "…"


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
