# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""`debugprint` (`dprint`): a graph as text, and `pprint`: an expression as a formula.

Formulas have infix operators where Python has them.
"""

from __future__ import annotations

import sys
from collections import Counter
from collections.abc import Callable, Collection, Iterable, Iterator, Sequence
from dataclasses import field
from io import StringIO
from typing import TYPE_CHECKING, Any, TextIO

from graphc.graph.basic import Apply, Constant, Variable
from graphc.graph.traversal import io_toposort, toposort
from graphc_runtime.record import record

if TYPE_CHECKING:
    from graphc.graph.op import Op


# Symbol and binding strength; both operands of an operator bind stronger, except the left one of these.
_BINARY = {
    "or": ("|", 1),
    "bitwise_or": ("|", 1),
    "bitwise_xor": ("^", 2),
    "bitwise_and": ("&", 3),
    "lt": ("<", 0),
    "le": ("<=", 0),
    "gt": (">", 0),
    "ge": (">=", 0),
    "eq": ("==", 0),
    "neq": ("!=", 0),
    "add": ("+", 4),
    "sub": ("-", 4),
    "mul": ("*", 5),
    "true_div": ("/", 5),
    "int_div": ("//", 5),
    "mod": ("%", 5),
    "matmul": ("@", 5),
    "dot": ("@", 5),
    "pow": ("**", 7),
}
_UNARY = {"neg": ("-", 6), "bitwise_not": ("~", 6)}
_ATOM = 9

Text = tuple[str, int]


def _bracket(text: Text, strength: int) -> str:
    return text[0] if text[1] >= strength else f"({text[0]})"


def _is_number(v: Variable) -> bool:
    """True if ``v`` is a constant with a single element."""
    return isinstance(v, Constant) and v.name is None and getattr(v.data, "size", 0) == 1 and v.data.ndim == 0


def _node_text(node: Apply, inputs: list[Text]) -> Text:
    name = str(getattr(node.op, "name", None) or node.op).lower()
    if len(inputs) == 2 and name in _BINARY:
        symbol, strength = _BINARY[name]
        left = strength + 1 if name == "pow" else strength
        return f"{_bracket(inputs[0], left)} {symbol} {_bracket(inputs[1], strength + 1)}", strength
    if len(inputs) == 1 and name in _UNARY:
        symbol, strength = _UNARY[name]
        return f"{symbol}{_bracket(inputs[0], strength)}", strength
    if len(inputs) == 1 and "dimshuffle" in name:
        # Only a change of layout: it would hide the formula.
        return inputs[0]
    return f"{node.op}({', '.join(text for text, _ in inputs)})", _ATOM


def pprint(variable: Variable, *, max_length: int = 10_000) -> str:
    """The expression of a variable as a formula such as ``exp(x) * 2.0 + y``.

    Args:
        variable: what to print; shared subexpressions are repeated, named intermediate variables are
            expanded.
        max_length: subexpressions longer than this print as ``...``.
    """
    texts: dict[Variable, Text] = {}

    def of(v: Variable) -> Text:
        if v.owner is None:
            text = str(v.data.tolist()) if isinstance(v, Constant) and _is_number(v) else str(v)
            return text, 6 if text.startswith("-") else _ATOM
        return texts[v]

    for node in toposort([variable]):
        text = _node_text(node, [of(x) for x in node.inputs])
        if len(text[0]) > max_length:
            text = ("...", _ATOM)
        for y in node.outputs:
            texts[y] = text if len(node.outputs) == 1 else (f"{_bracket(text, _ATOM)}.{y.index}", _ATOM)
    return of(variable)[0]


__all__ = ["as_string", "debugprint", "dprint", "pprint"]

_REPEATED = "···"


def letters(n: int) -> str:
    """``A, B, ..., Z, AA, AB, ...`` for 0, 1, 2, ..."""
    text = ""
    n += 1
    while n:
        n, digit = divmod(n - 1, 26)
        text = chr(ord("A") + digit) + text
    return text


@record()
class _Options:
    """Contents of each printed line; the fields are arguments of `debugprint`."""

    depth: int
    print_type: bool
    print_shape: bool
    id_type: str
    stop_on_name: bool
    print_destroy_map: bool
    print_view_map: bool
    print_location: bool
    inner_graphs: bool
    used_ids: dict[Variable | Apply, str]
    done: dict[Variable | Apply, str]
    order: dict[Apply, int] = field(default_factory=dict)
    inner: list[Apply] = field(default_factory=list)


def _identifier(key: Variable | Apply, options: _Options) -> str:
    """``[id A]``: nodes are numbered in the order in which they are first printed."""
    if options.id_type == "":
        return ""
    if key not in options.used_ids:
        count = len(options.used_ids)
        makers: dict[str, Callable[[int], str]] = {
            "CHAR": letters,
            "int": str,
            "id": lambda _: str(id(key)),
            "auto": lambda _: key.auto_name if isinstance(key, Variable) else key.outputs[0].auto_name,
        }
        options.used_ids[key] = f"[id {makers[options.id_type](count)}]"
    return options.used_ids[key]


def _line(v: Variable, options: _Options) -> str:
    """Text of one variable."""
    node = v.owner
    if node is None:
        # A root without a name prints as its type already.
        parts = [str(v), _identifier(v, options)]
    else:
        suffix = f".{v.index}" if len(node.outputs) > 1 else ""
        parts = [f"{node.op}{suffix}", _identifier(node, options)]
    if options.print_type and not (node is None and v.name is None and not isinstance(v, Constant)):
        parts.append(f"<{v.type}>")
    if options.print_shape and hasattr(v.type, "shape"):
        parts.append(f"shape=({', '.join('?' if d is None else str(d) for d in v.type.shape)})")
    if node is not None:
        if v.name is not None:
            parts.append(f"'{v.name}'")
        if options.print_destroy_map and node.op.destroy_map:
            parts.append(f"d={node.op.destroy_map}")
        if options.print_view_map and node.op.view_map:
            parts.append(f"v={node.op.view_map}")
        if node in options.order:
            parts.append(str(options.order[node]))
    if options.print_location and v.location is not None:
        parts.append(f"at {v.location.file}:{v.location.line}")
    return " ".join(part for part in parts if part)


def _tree(root: Variable, options: _Options, first: str = "", rest: str = "") -> Iterator[str]:
    """Lines of the graph below ``root``; ``first`` and ``rest`` come before the first and the other lines."""
    stack: list[tuple[Variable | None, str, str, int]] = [(root, first, rest, 1)]
    while stack:
        v, head, tail, level = stack.pop()
        if v is None:
            yield head + _REPEATED
            continue
        yield head + _line(v, options)
        node = v.owner
        if node is None or (options.stop_on_name and v.name is not None) or level == options.depth:
            continue
        if node in options.done:
            stack.append((None, f"{tail} └─ ", "", level + 1))
            continue
        options.done[node] = ""
        if options.inner_graphs and hasattr(node.op, "inner_outputs"):
            options.inner.append(node)
        for i in reversed(range(len(node.inputs))):
            last = i == len(node.inputs) - 1
            branch, column = (" └─ ", "   ") if last else (" ├─ ", " │ ")
            stack.append((node.inputs[i], tail + branch, tail + column, level + 1))


def _graphs(graph_like: Any) -> Iterator[tuple[list[Variable], list[Variable], dict[Apply, int]]]:
    """Inputs, outputs and node numbers of each graph in the argument."""
    if isinstance(graph_like, Variable):
        yield [], [graph_like], {}
    elif isinstance(graph_like, Apply):
        yield [], list(graph_like.outputs), {}
    elif hasattr(graph_like, "outputs") and hasattr(graph_like, "toposort"):
        yield (
            list(graph_like.inputs),
            list(graph_like.outputs),
            {n: i for i, n in enumerate(graph_like.toposort())},
        )
    elif hasattr(graph_like, "graph") or hasattr(graph_like, "fgraph"):
        yield from _graphs(getattr(graph_like, "graph", None) or graph_like.fgraph)
    elif isinstance(graph_like, Iterable) and not isinstance(graph_like, str | bytes):
        for item in graph_like:
            yield from _graphs(item)
    else:
        raise TypeError(
            f"debugprint needs a Variable, Apply, FunctionGraph, compiled function or a list of them, "
            f"got {graph_like!r} of type {type(graph_like).__name__}"
        )


def _inner_graphs(options: _Options) -> Iterator[str]:
    """The graphs inside ops, each after the first node that uses it."""
    if options.inner:
        yield from ("", "Inner graphs:")
    shown: set[Op] = set()
    while options.inner:
        node = options.inner.pop(0)
        if node.op in shown:
            continue
        shown.add(node.op)
        yield ""
        yield f"{node.op} {_identifier(node, options)}".rstrip()
        sources = getattr(node.op, "inner_sources", None)
        outside = node.inputs if sources is None else sources(node)
        for inner, outer in zip(node.op.inner_inputs, outside, strict=True):
            yield f" → {_line(inner, options)} = {_line(outer, options)}"
        for output in node.op.inner_outputs:
            yield from _tree(output, options, " ← ", "   ")


def _call_text(node: Apply, arguments: Sequence[str]) -> str:
    return f"{node.op}({', '.join(arguments)})"


def as_string(
    inputs: Collection[Variable],
    outputs: Sequence[Variable],
    leaf_formatter: Callable[[Variable], str] = str,
    node_formatter: Callable[[Apply, Sequence[str]], str] = _call_text,
) -> list[str]:
    """The graph between two lists of variables as nested calls.

    Args:
        inputs: variables to stop at.
        outputs: variables to describe.
        leaf_formatter: the text of a variable that nothing below is shown of.
        node_formatter: the text of a node, from those of its inputs.

    Returns:
        One text for each output. A node with several uses is written as ``*n -> text`` where it comes first
        and as ``*n`` where it comes again.
    """
    given = set(inputs)

    def node_of(v: Variable) -> Apply | None:
        return None if v in given else v.owner

    nodes = io_toposort(inputs, outputs)
    uses = Counter(node_of(v) for v in [*outputs, *(x for node in nodes for x in node.inputs)])
    numbers: dict[Apply, int] = {}

    def text(v: Variable) -> str:
        node = node_of(v)
        if node is None:
            return leaf_formatter(v)
        which = f"::{node.outputs.index(v)}" if len(node.outputs) > 1 else ""
        if node in numbers:
            return f"*{numbers[node]}{which}"
        if uses[node] == 1:
            return node_formatter(node, [text(x) for x in node.inputs]) + which
        number = numbers[node] = len(numbers) + 1
        return f"*{number}{which} -> {node_formatter(node, [text(x) for x in node.inputs])}"

    return [text(v) for v in outputs]


def debugprint(
    graph_like: object,
    depth: int = -1,
    print_type: bool = False,
    print_shape: bool = False,
    file: str | TextIO | None = None,
    id_type: str = "CHAR",
    stop_on_name: bool = False,
    done: dict[Variable | Apply, str] | None = None,
    used_ids: dict[Variable | Apply, str] | None = None,
    print_destroy_map: bool = False,
    print_view_map: bool = False,
    print_memory_map: bool = False,
    print_inner_graphs: bool | str = "auto",
    print_fgraph_inputs: bool = False,
    print_location: bool = False,
) -> str | TextIO | None:
    """Print a graph as text.

    Each line is a variable: its op or name, an identifier, and what the options add; what it is computed from
    is
    indented below it. A node that was printed before shows ``···`` instead. Nodes of function graphs and
    compiled functions end with their position in the order of execution.

    Args:
        graph_like: a Variable, Apply, `FunctionGraph`, compiled function, or a list of them.
        depth: number of levels to print; -1 prints all.
        print_type: add the types. print_shape: add the static shapes.
        file: where to print; None is standard output, ``"str"`` returns the text.
        id_type: ``"CHAR"`` (A, B, ...), ``"int"``, ``"id"`` (Python's id), ``"auto"`` (``auto_name``) or
            ``""`` for none.
        stop_on_name: print nothing below variables that have a name.
        done: nodes printed by earlier calls, to share between calls. used_ids: the same for identifiers.
        print_destroy_map, print_view_map: add these maps of the ops. print_memory_map: add both.
        print_inner_graphs: print the graphs of ops such as `OpFromGraph` below; ``"auto"`` does.
        print_fgraph_inputs: print the inputs of function graphs first.
        print_location: add the user's line that made each node.

    Returns:
        The text with ``file="str"``, otherwise ``file``.

    Raises:
        TypeError: ``graph_like`` or ``depth`` is of the wrong kind.
        ValueError: ``id_type`` is unknown.

    Examples:
        >>> graphc.dprint(pt.exp(pt.vector("x")))
        exp [id A]
         └─ x [id B]
    """
    if not isinstance(depth, int):
        raise TypeError(f"depth must be an int, got {depth!r}")
    if id_type not in ("CHAR", "int", "id", "auto", ""):
        raise ValueError(f"id_type must be 'CHAR', 'int', 'id', 'auto' or '', got {id_type!r}")
    options = _Options(
        depth,
        print_type,
        print_shape,
        id_type,
        stop_on_name,
        print_destroy_map or print_memory_map,
        print_view_map or print_memory_map,
        print_location,
        bool(print_inner_graphs),
        {} if used_ids is None else used_ids,
        {} if done is None else done,
    )
    out: Any = StringIO() if file == "str" else sys.stdout if file is None else file
    if depth != 0:
        for line in _lines(graph_like, options, print_fgraph_inputs):
            print(line, file=out)
    return out.getvalue() if file == "str" else file


def _lines(graph_like: object, options: _Options, inputs_too: bool) -> Iterator[str]:
    for inputs, outputs, order in _graphs(graph_like):
        options.order.update(order)
        if inputs_too:
            for x in inputs:
                yield f"-{_line(x, options)}"
        for output in outputs:
            yield from _tree(output, options)
    yield from _inner_graphs(options)


dprint = debugprint
