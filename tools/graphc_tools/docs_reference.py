# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""The reference pages of the site: one or several for each namespace, from docstrings and rows."""

from __future__ import annotations

import ast
import inspect
from functools import cache
from pathlib import Path

import numpy as np

from graphc.ops.elementwise import ROWS, Elementwise
from graphc_tools.docs_operations import by_family, cell
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


# Namespaces with so many names that they have several pages: the title of each, and the modules that define
# what is on it. What is in none of these is on the first.
TOPICS: dict[str, dict[str, tuple[str, tuple[str, ...]]]] = {
    "graphc": {
        "graphc": ("Functions, gradients, loops", ()),
        "graphc.graphs": (
            "Variables, ops and graphs",
            (
                *("graph.basic", "graph.function_graph", "graph.op", "graph.printing", "graph.replace"),
                *("graph.shared", "graph.traversal", "graph.type", "transforms.op_from_graph"),
                "transforms.vectorize",
            ),
        ),
    },
    "graphc.tensor": {
        "graphc.tensor": ("Constructors, types and products", ()),
        "graphc.tensor.creation": ("New tensors", ("ops.create", "tensor.ranges")),
        "graphc.tensor.variables": ("Variables", ("graph.tensor.variable",)),
        "graphc.tensor.elementwise": (
            "Elementwise functions",
            ("ops.math", "tensor.arithmetic"),
        ),
        "graphc.tensor.special": ("Special functions", ("tensor.distribution_functions", "tensor.special")),
        "graphc.tensor.shapes": (
            "Shapes and joins",
            (
                *("ops.join", "ops.shaping", "tensor.dims", "tensor.padding"),
                *("tensor.rearranging", "tensor.splitting"),
            ),
        ),
        "graphc.tensor.indexing": (
            "Indices, masks and order",
            (
                *(
                    "tensor.index_arrays",
                    "tensor.indexing",
                    "tensor.masks",
                    "tensor.sets",
                ),
                "tensor.sorting",
            ),
        ),
        "graphc.tensor.reductions": (
            "Sums, extremes and statistics",
            (
                "ops.reduce",
                "tensor.accumulating",
                "tensor.reductions",
                "tensor.statistics",
            ),
        ),
    },
}
# Families of rows that are on the page of special functions.
_ELEMENTARY = ("Arithmetic", "Comparison", "Exponentials", "Trigonometric", "Rounding", "Others")


def reference_pages() -> dict[str, str]:
    """Markdown by page: ``reference/index.md``, and one page or several for each namespace that has names."""
    pages, index = {}, ["# API reference", "", "| namespace | |", "|---|---|"]
    for namespace, names in public_names().items():
        if not names:
            continue
        topics = TOPICS.get(namespace, {namespace: (NAMESPACES[namespace], ())})
        for page, (title, _) in topics.items():
            index.append(f"| [`{page if len(topics) == 1 else namespace}`]({page}.md) | {title} |")
            here = [each for each in names if len(topics) == 1 or topic_of(each) == page]
            pages[f"reference/{page}.md"] = _page(namespace, title, here)
        if len(topics) > 1:
            others = [f"[{title}]({page}.md)" for page, (title, _) in topics.items() if page != namespace]
            first, break_, rest = pages[f"reference/{namespace}.md"].partition("\n\n## ")
            pages[f"reference/{namespace}.md"] = f"{first}\n\nMore: {', '.join(others)}.{break_}{rest}"
    index += [
        "",
        "What several namespaces have is described in the first of them. Dtypes and gradients of operations",
        "are also in [one table](../operations.md).",
        "",
        "Examples begin with `import numpy as np`, `import graphc` and `import graphc.tensor as pt`.",
    ]
    pages["reference/index.md"] = "\n".join(index) + "\n"
    return pages


def inventory() -> dict[str, str]:
    """The address of each public name, for `objects.inv` and links from other sites."""
    return {
        each.shown: f"reference/{topic_of(each)}.html#{each.shown}"
        for names in public_names().values()
        for each in names
    }


def topic_of(name: PublicName) -> str:
    """The page that describes a name, without its ending."""
    if isinstance(name.value, Elementwise):
        is_elementary = _family_of()[name.value.row.name].startswith(_ELEMENTARY)
        return f"graphc.tensor.{'elementwise' if is_elementary else 'special'}"
    module = name.value.__module__.removeprefix("graphc.")
    topics = TOPICS.get(name.namespace, {})
    return next((page for page, (_, modules) in topics.items() if module in modules), name.namespace)


@cache
def _family_of() -> dict[str, str]:
    return {row: family for family, rows in by_family(list(ROWS)).items() for row in rows}


def _page(namespace: str, title: str, names: list[PublicName]) -> str:
    lines = [f"# {namespace}" if title == NAMESPACES[namespace] else f"# {namespace}: {title.lower()}"]
    lines += ["", f"{title}." if title == NAMESPACES[namespace] else f"Names of `{namespace}`."]
    elementwise = [each for each in names if isinstance(each.value, Elementwise)]
    others = [each for each in names if not isinstance(each.value, Elementwise)]
    written = [each for each in others if _is_found(each)]
    made = [each for each in others if each not in written]
    if elementwise:
        lines += ["", "Operands broadcast as in NumPy and may be numbers, arrays or variables; dtypes are"]
        lines += ["NumPy 2's. [Operations](../operations.md) has each one's dtypes and gradient."]
    families = _family_of()
    for family in dict.fromkeys(families.values()):
        rows = [each for each in elementwise if families[each.value.row.name] == family]
        if rows:
            lines += ["", f"## {family}", "", "| function | meaning | for example |", "|---|---|---|"]
            lines += map(_elementwise_row, rows)
    if made:
        lines += ["", "## Functions made from tables", "", "| function | meaning |", "|---|---|"]
        lines += [f"| {_anchor(each)}`{each.name}` | {cell(_summary(each.value))} |" for each in made]
    if written:
        lines += ["", "## Functions and classes"]
        for each in written:
            anchor = [] if each.defined == each.shown else ["", _anchor(each)]
            lines += [*anchor, "", f"::: {each.defined}", "    options:", f'      heading: "{each.shown}"']
            lines += [f'      toc_label: "{each.name}"']
    return "\n".join(lines) + "\n"


def _anchor(name: PublicName) -> str:
    """The target of links by the public name; the generator's own anchors have the name of the file."""
    return f'<span id="{name.shown}"></span>'


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
    return f"| {_anchor(each)}`{each.name}({operands})` | {cell(row.doc)} | {example_of(each)} |"


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
