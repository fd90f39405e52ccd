# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""The reference pages of the site: one for each namespace, from docstrings and the table of rows."""

from __future__ import annotations

import ast
import inspect
from functools import cache
from pathlib import Path

import numpy as np

from graphc.ops.elementwise import Elementwise
from graphc_tools.docs_operations import cell
from graphc_tools.public_names import NAMESPACES, PublicName, public_names

ROOT = Path(__file__).resolve().parents[2]
FOLDERS = {"graphc": "compiler", "graphc_runtime": "runtime"}
# Operands of examples: the first of these for which a function is defined and finite.
_SAMPLES: tuple[tuple[list[float], ...], ...] = (
    ([0.25, 0.5], [0.5, 0.75], [1.0, 2.0], [2.0, 3.0]),
    ([1.5, 2.5], [2.0, 3.0], [3.0, 4.0], [4.0, 5.0]),
    ([0.5, 0.75], [0.5, 0.75], [0.5, 0.75], [0.5, 0.25]),
    ([-1.5, -0.5], [2.0, 3.0], [3.0, 4.0], [4.0, 5.0]),
)
_INTEGERS = ([6, 3], [5, 2], [4, 1], [2, 2])


def reference_pages() -> dict[str, str]:
    """Markdown by page: ``reference/index.md`` and one page for each namespace that has names."""
    pages, index = {}, ["# API reference", "", "| namespace | |", "|---|---|"]
    for namespace, names in public_names().items():
        if names:
            file = f"{namespace}.md"
            index.append(f"| [`{namespace}`]({file}) | {NAMESPACES[namespace]} |")
            pages[f"reference/{file}"] = _page(namespace, names)
    index += [
        "",
        "What several namespaces have is described in the first of them. Dtypes and gradients of operations",
        "are also in [one table](../operations.md).",
        "",
        "Examples begin with `import numpy as np`, `import graphc` and `import graphc.tensor as pt`.",
    ]
    pages["reference/index.md"] = "\n".join(index) + "\n"
    return pages


def _page(namespace: str, names: list[PublicName]) -> str:
    lines = [f"# {namespace}", "", NAMESPACES[namespace] + "."]
    elementwise = [each for each in names if isinstance(each.value, Elementwise)]
    others = [each for each in names if not isinstance(each.value, Elementwise)]
    written = [each for each in others if _is_found(each)]
    made = [each for each in others if each not in written]
    if elementwise:
        lines += ["", "## Elementwise functions", ""]
        lines += [
            "Operands broadcast as in NumPy and may be numbers, arrays or variables; dtypes are NumPy 2's.",
            "[Operations](../operations.md) has each one's dtypes and gradient.",
            "",
            "| function | meaning | for example |",
            "|---|---|---|",
            *map(_elementwise_row, elementwise),
        ]
    if made:
        lines += ["", "## Functions made from tables", "", "| function | meaning |", "|---|---|"]
        lines += [f"| `{each.name}` | {cell(_summary(each.value))} |" for each in made]
    if written:
        lines += ["", "## Functions and classes"]
        for each in written:
            lines += ["", f"::: {each.defined}", "    options:", f'      heading: "{each.shown}"']
            lines += [f'      toc_label: "{each.name}"']
    return "\n".join(lines) + "\n"


def _summary(value: object) -> str:
    return (inspect.getdoc(value) or "").partition("\n\n")[0]


@cache
def _defined(module: str) -> frozenset[str]:
    """The functions and classes that the file of a module defines; none where there is no such file."""
    package, *parts = module.split(".")
    if package not in FOLDERS:
        return frozenset()
    place = ROOT / FOLDERS[package] / package / Path(*parts)
    file = place / "__init__.py" if place.is_dir() else place.with_suffix(".py")
    if not file.is_file():
        return frozenset()
    kinds = ast.FunctionDef | ast.ClassDef
    return frozenset(node.name for node in ast.parse(file.read_bytes()).body if isinstance(node, kinds))


def _is_found(name: PublicName) -> bool:
    """True if the sources define it by that name; what is made in loops over tables they do not."""
    module, _, last = name.defined.rpartition(".")
    return last in _defined(module)


def _elementwise_row(each: PublicName) -> str:
    row = each.value.row
    operands = ", ".join("xyzw"[: row.arity]) if row.arity <= 4 else "..."
    return f"| `{each.name}({operands})` | {cell(row.doc)} | {example_of(each)} |"


def example_of(each: PublicName) -> str:
    """A call of an elementwise function and its value, from the NumPy function that defines it."""
    row = each.value.row
    candidates = [[np.array(sample) for sample in samples[: row.arity]] for samples in _SAMPLES]
    candidates.append([np.array(sample) for sample in _INTEGERS[: row.arity]])
    found = ""
    for operands in candidates:
        if len(operands) < row.arity:
            continue
        try:
            row.resolve(tuple(operand.dtype for operand in operands))
            with np.errstate(all="ignore"):
                value = np.asarray(row.reference(*operands))
        except (TypeError, ValueError):
            continue
        shown = ", ".join(str(operand.tolist()) for operand in operands)
        text = f"`{each.name}({shown})` is `{np.array2string(value, precision=4, separator=', ')}`"
        if np.isfinite(value).all():
            return text
        found = found or text
    return found
