# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""A memory plan as a picture: time runs to the right, memory upwards."""

from __future__ import annotations

from collections.abc import Iterator
from html import escape
from os import PathLike
from pathlib import Path
from typing import TYPE_CHECKING

from graphc.function.memory_text import budget, human, kind, short

if TYPE_CHECKING:
    from graphc.function.memory_plan import MemoryPlan, PlannedBuffer, Workspace

_MARGIN, _LEFT, _HEAD, _GAP = 14.0, 74.0, 36.0, 22.0
_HEIGHT, _LANE, _LETTER = 260.0, 22.0, 6.7
_FOOT = 92.0
_COLOURS = ("#ddf4ff", "#dafbe1", "#fff8c5", "#ffebe9", "#fbefff", "#ffe2cc", "#d1f0ec", "#e6e7ff")
_STYLE = """
text { font: 11px ui-monospace, Menlo, Consolas, monospace; fill: #1f2328 }
.title { font-weight: bold } .axis { fill: #57606a }
.right { text-anchor: end } .middle { text-anchor: middle }
.buffer { stroke: #57606a; stroke-width: 1 }
.memory { fill: #f6f8fa; stroke: #d0d7de; stroke-width: 1 } .grid { stroke: #d0d7de; stroke-width: 1 }
.alive { stroke: #8250df; stroke-width: 1.4; stroke-dasharray: 4 3 } .alive-text { fill: #8250df }
"""


def draw(plan: MemoryPlan, file: str | PathLike[str] | None) -> str:
    """See `MemoryPlan.to_svg`."""
    text = "\n".join(_Drawing(plan).lines())
    if file is not None:
        Path(file).write_text(text, encoding="utf-8")
    return text


class _Drawing:
    def __init__(self, plan: MemoryPlan) -> None:
        self._plan = plan
        count = max(len(plan.steps), 1)
        self._step = min(max(640.0 / count, 26.0), 90.0)
        self._width = self._step * count
        self._y = _HEAD

    def lines(self) -> Iterator[str]:
        body = [line for workspace in self._plan.workspaces for line in self._workspace(workspace)]
        others = [buffer for buffer in self._plan.buffers if buffer.place != "workspace"]
        if others:
            lent = any(buffer.place.startswith("result") for buffer in others)
            body += self._lanes(others, "stack, arena, results" if lent else "stack and arena")
        body += self._steps()
        width, height = _LEFT + self._width + 2 * _MARGIN, self._y + _FOOT + 2 * _MARGIN
        yield (
            f'<svg xmlns="http://www.w3.org/2000/svg" width="{width:.0f}" height="{height:.0f}" '
            f'viewBox="0 0 {width:.1f} {height:.1f}">'
        )
        yield f"<style>{_STYLE}</style>"
        yield f'<rect width="{width:.1f}" height="{height:.1f}" fill="#ffffff"/>'
        yield f'<g transform="translate({_MARGIN:g} {_MARGIN:g})">'
        yield f'<text class="title" x="0" y="10">{escape(self._title())}</text>'
        yield from body
        yield "</g></svg>"

    def _title(self) -> str:
        plan = self._plan
        if not plan.workspaces:
            return f"memory plan of {plan.name}: no workspace"
        limit = "" if plan.budget is None else f"; {budget(plan)}"
        if plan.peak is None:
            return f"memory plan of {plan.name}{limit}"
        return (
            f"memory plan of {plan.name}: peak {human(plan.peak)}, {human(plan.total)} without reuse{limit}"
        )

    def _workspace(self, workspace: Workspace) -> Iterator[str]:
        buffers = [buffer for buffer in self._plan.buffers if buffer.workspace == workspace.number]
        if not workspace.peak:
            yield from self._lanes(buffers, f"workspace {workspace.number}")
            return
        top, scale = self._y, _HEIGHT / workspace.peak
        yield _rectangle("memory", (_LEFT, top, self._width, _HEIGHT))
        yield _label("axis right", _LEFT - 6, top + 10, human(workspace.peak))
        yield _label("axis right", _LEFT - 6, top + _HEIGHT, "0")
        for buffer in buffers:
            height = (buffer.bytes or 0) * scale
            y = top + _HEIGHT - (buffer.offset or 0) * scale - height
            yield from self._buffer(buffer, y, height)
        if workspace.alive:
            y = top + _HEIGHT - workspace.alive * scale
            end = _LEFT + self._width
            yield f'<line class="alive" x1="{_LEFT}" y1="{y:.1f}" x2="{end:.1f}" y2="{y:.1f}"/>'
            if y > top + 14:
                yield _label("alive-text right", _LEFT - 6, y + 4, human(workspace.alive))
        self._y += _HEIGHT + _GAP

    def _lanes(self, buffers: list[PlannedBuffer], title: str) -> Iterator[str]:
        """One line for each buffer, where sizes are not known or places do not matter."""
        yield _label("axis", _LEFT, self._y - 6, title)
        height = _LANE * len(buffers)
        yield _rectangle("memory", (_LEFT, self._y, self._width, height))
        for i, buffer in enumerate(buffers):
            yield from self._buffer(buffer, self._y + i * _LANE + 2, _LANE - 4)
        self._y += height + _GAP

    def _buffer(self, buffer: PlannedBuffer, y: float, height: float) -> Iterator[str]:
        number = self._plan.buffers.index(buffer)
        x = _LEFT + buffer.first * self._step
        width = (buffer.last - buffer.first + 1) * self._step
        place = f"{number}: {kind(buffer)}, {human(buffer.bytes)}, steps {buffer.first} to {buffer.last}"
        origin = f"{buffer.op} at {short(buffer.location)}" if buffer.location else buffer.op
        yield f"<g{_node(buffer.node)}><title>{escape(place)}\n{escape(origin)}</title>"
        colour = _COLOURS[number % len(_COLOURS)]
        box = (x + 1, y, max(width - 2, 2), max(height, 1))
        yield _rectangle("buffer", box, f' rx="2" style="fill:{colour}"')
        if height >= 12:
            name = f"{number} {_op(buffer.op)}"
            size = "" if buffer.bytes is None else f" {human(buffer.bytes)}"
            texts = (name + size, name, str(number))
            fitting = next((text for text in texts if len(text) * _LETTER <= width - 6), "")
            yield _label("middle", x + width / 2, y + height / 2 + 4, fitting)
        yield "</g>"

    def _steps(self) -> Iterator[str]:
        """The names of the steps below the picture."""
        y = self._y - _GAP + 12
        for i, step in enumerate(self._plan.steps):
            x = _LEFT + (i + 0.5) * self._step
            name = _op(step.op) or step.what
            text = name if len(name) <= 12 else name[:11] + "…"
            title = f"step {i}: {step.what}, {step.op} {short(step.location)}"
            place = f'x="{x:.1f}" y="{y:.1f}" transform="rotate(-55 {x:.1f} {y:.1f})"'
            yield f"<g{_node(step.node)}><title>{escape(title)}</title>"
            yield f'<text class="axis right" {place}>{escape(f"{i} {text}")}</text></g>'


def _node(number: int | None) -> str:
    return "" if number is None else f' data-n="{number}"'


def _op(text: str) -> str:
    """The name of an op without its parameters."""
    return text.partition("{")[0]


def _rectangle(style: str, box: tuple[float, float, float, float], more: str = "") -> str:
    x, y, width, height = box
    return f'<rect class="{style}" x="{x:.1f}" y="{y:.1f}" width="{width:.1f}" height="{height:.1f}"{more}/>'


def _label(style: str, x: float, y: float, text: str) -> str:
    return f'<text class="{style}" x="{x:.1f}" y="{y:.1f}">{escape(text)}</text>'
