# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""The key of a graph in the on-disk cache.

Two graphs get one key exactly if they would compile to the same code: same structure, ops, types, literals,
and whatever else the caller names. Names, source lines and the data of large constants do not count, but for
what `Op.known` says of these. Neither MLIR nor LLVM is loaded.
"""

from __future__ import annotations

import hashlib
from typing import Any

import numpy as np

from graphc.emit.emitter import MAX_LITERAL
from graphc.graph.basic import Constant, Variable
from graphc.graph.function_graph import FunctionGraph

_PLAIN = (bool, int, float, complex, str, bytes, type(None))


def fingerprint(fgraph: FunctionGraph, *parts: object) -> str | None:
    """Hexadecimal SHA-256 key of a graph.

    Args:
        fgraph: the graph to compile.
        parts: anything else the code depends on, by its `repr` (signature, options, identity of the target).

    Returns:
        The key, or None if the graph cannot be identified: an op has no ``__props__``, or one that is not
            plain data.
    """
    lines = _lines(fgraph)
    if lines is None:
        return None
    return hashlib.sha256("\n".join([repr(parts), *lines]).encode()).hexdigest()


def _lines(fgraph: FunctionGraph) -> list[str] | None:
    """One line for each input and node; None if an op cannot be identified."""
    numbers: dict[Variable, str] = {v: f"i{k}" for k, v in enumerate(fgraph.inputs)}
    lines = [_type(v) for v in fgraph.inputs]
    for k, node in enumerate(fgraph.nodes):
        op = _op(node.op)
        if op is None:
            return None
        inputs = [_reference(v, numbers) for v in node.inputs]
        lines.append(f"{op}({','.join(inputs)}){node.op.known(node)}:{','.join(map(_type, node.outputs))}")
        numbers.update((v, f"n{k}.{j}") for j, v in enumerate(node.outputs))
    lines.append(",".join(_reference(v, numbers) for v in fgraph.outputs))
    return lines


def _type(v: Variable) -> str:
    return f"{v.type.dtype}{v.type.shape}"


def _reference(v: Variable, numbers: dict[Variable, str]) -> str:
    if v in numbers:
        return numbers[v]
    if not isinstance(v, Constant):
        return "?"
    if v.data.size > MAX_LITERAL:
        # A hidden argument: its place in the order of first use is what the code depends on.
        numbers[v] = f"c{len(numbers)}"
        return f"{numbers[v]}={_type(v)}"
    return f"{_type(v)}{v.data.tobytes().hex()}"


def _op(op: Any) -> str | None:
    inner = getattr(op, "compiled_graph", None)
    if inner is not None:
        body = _lines(inner)
        return None if body is None else f"loop{op.identity()!r}[{chr(10).join(body)}]"
    props = op.__props__
    if props is None:
        return None
    values = [_plain(getattr(op, prop)) for prop in props]
    if None in values:
        return None
    cls = type(op)
    return f"{cls.__module__}.{cls.__qualname__}[{';'.join(map(str, values))}]"


def _plain(value: Any) -> str | None:
    """`repr` of plain data; None for anything whose `repr` might not identify it."""
    if isinstance(value, _PLAIN):
        return repr(value)
    if isinstance(value, (tuple, list, frozenset, set)):
        ordered = sorted(value, key=repr) if isinstance(value, (set, frozenset)) else value
        items = [_plain(item) for item in ordered]
        return None if None in items else f"{type(value).__name__}({','.join(map(str, items))})"
    if isinstance(value, np.dtype):
        return f"dtype({value.str})" if value.names is None else None
    return None
