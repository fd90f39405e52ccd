# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""The picture of the layers in docs/architecture, from the import contract of pyproject.toml."""

from __future__ import annotations

import tomllib
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
_WIDTH, _HEIGHT, _GAP = 560, 26, 6


def layers() -> list[list[str]]:
    """Packages by layer, the highest first; those of one layer do not know each other."""
    settings = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))
    contracts = settings["tool"]["importlinter"]["contracts"]
    (contract,) = (each for each in contracts if each["type"] == "layers")
    return [[name.strip() for name in layer.split("|")] for layer in contract["layers"]]


def layers_picture() -> str:
    """SVG with a row of boxes for each layer."""
    rows = layers()
    height = len(rows) * (_HEIGHT + _GAP) + _GAP
    lines = [
        (
            f'<svg xmlns="http://www.w3.org/2000/svg" width="{_WIDTH}" height="{height}" '
            'font-family="sans-serif" font-size="13">'
        ),
        "<title>Layers: each package may import those below it</title>",
        '<rect width="100%" height="100%" fill="#ffffff"/>',
    ]
    for number, row in enumerate(rows):
        width = (_WIDTH - _GAP * (len(row) + 1)) / len(row)
        top = _GAP + number * (_HEIGHT + _GAP)
        for place, name in enumerate(row):
            left = _GAP + place * (width + _GAP)
            lines.append(
                f'<rect x="{left:g}" y="{top}" width="{width:g}" height="{_HEIGHT}" rx="4" fill="#eef2f7" '
                'stroke="#5b6b7f"/>'
            )
            lines.append(
                f'<text x="{left + width / 2:g}" y="{top + 18}" text-anchor="middle">'
                f"{name.removeprefix('graphc.')}</text>"
            )
    return "\n".join([*lines, "</svg>", ""])
