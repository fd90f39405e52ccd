# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Boxes and edges that `to_svg` draws, from a graph or from the text of an MLIR module."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from typing import Any

from graphc.graph.basic import Apply, Constant, Variable
from graphc.graph.shared import SharedVariable
from graphc.graph.traversal import io_toposort
from graphc.inspect.svg_layout import Box, Group, Picture

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
