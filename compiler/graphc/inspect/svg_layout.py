# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Places the boxes of a directed acyclic graph in layers, from top to bottom.

Layers are longest paths from the sources, the order within a layer follows the mean position of the
neighbours, and boxes then move towards their neighbours as far as the order allows. An edge that passes
layers has a narrow place of its own in each of them, so that it runs through no box; edges from one box share
these places. Groups are laid out on their own first and then count as one box.

Source: K. Sugiyama, S. Tagawa, M. Toda, "Methods for visual understanding of hierarchical system structures",
    1981.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import field

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
