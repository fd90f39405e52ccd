# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""`pprint`: an expression as a formula, with infix operators where Python has them."""

from __future__ import annotations

from graphc.graph.basic import Apply, Constant, Variable
from graphc.graph.traversal import toposort

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
    """Whether ``v`` is a constant with a single element."""
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
