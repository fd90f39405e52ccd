# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Graphs with conditionals in the dialect: nodes in the regions of ``scf.if``.

`graphc.emit.conditional_plan` decides which regions there are; this module writes them.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from graphc.emit.conditional_blocks import Alias, Block, Conditional, Formula, NoOrder
from graphc.emit.conditional_plan import plan
from graphc.errors import CompileError
from graphc.graph.basic import Apply, Variable
from graphc.graph.demand import is_conditional
from graphc.graph.function_graph import FunctionGraph
from graphc.graph.location import describe

if TYPE_CHECKING:
    from graphc.emit.emitter import Emitter


def obstacle(graph: FunctionGraph) -> str | None:
    """Why a graph with conditionals cannot be one piece of compiled code; None if it can, as far as its
    conditionals are concerned.
    """
    try:
        if any(is_conditional(node) for node in graph.nodes):
            plan(graph.nodes, graph.outputs)
    except NoOrder as reason:
        return str(reason)
    return None


def emit_graph(graph: FunctionGraph, e: Emitter) -> None:
    """Emits the nodes of a graph whose inputs have values; what its outputs need gets values, too.

    Args:
        graph: a graph whose ops all have ``emit``.
        e: the `Emitter`.

    Raises:
        CompileError: an op has no ``emit``, or there is an `obstacle`.
    """
    conditional = next((node for node in graph.nodes if is_conditional(node)), None)
    if conditional is None:
        for node in graph.nodes:
            e.node(node)
        return
    try:
        block = plan(graph.nodes, graph.outputs)
    except NoOrder as reason:
        raise CompileError(
            f"the conditionals of the graph, such as {conditional}{describe(conditional.location)}, cannot "
            f"be compiled: {reason}"
        ) from None
    _emit_block(block, e)


def emit_choice(node: Apply, operands: Sequence[str], e: Emitter) -> list[str]:
    """An `IfElse` between values that exist already; returns the SSA names of its outputs."""
    n = len(node.outputs)
    types = [e.type_of(v) for v in node.outputs]
    texts = []
    for start in (1, 1 + n):
        with e.body() as lines:
            given = zip(operands[start : start + n], node.inputs[start : start + n], types, strict=True)
            _yield([e.cast_type(name, e.type_of(x), type_) for name, x, type_ in given], types, e)
        texts.append("\n".join(lines))
    return _if(e.truth_of(node.inputs[0], operands[0]), texts, types, e)


def _if(test: str, regions: Sequence[str], types: Sequence[str], e: Emitter) -> list[str]:
    body = "}, {\n".join(f"{text}\n    " for text in regions)
    return list(e.several(f'"scf.if"({test}) ({{\n{body}}}) : (i1) -> ({", ".join(types)})', len(types)))


def _yield(names: Sequence[str], types: Sequence[str], e: Emitter) -> None:
    e.statement(f'"scf.yield"({", ".join(names)}) : ({", ".join(types)}) -> ()')


def _emit_block(block: Block, e: Emitter) -> None:
    for step in block.steps:
        if isinstance(step, Apply):
            e.node(step)
        elif isinstance(step, Alias):
            e.values[step.output] = _as(step.value, step.output, e)
        else:
            _emit_conditional(step, e)


def _emit_conditional(step: Conditional, e: Emitter) -> None:
    e.at_node(step.node)
    test = _test(step.test, e)
    results = [*(choice[0] for choice in step.choices), *step.exports]
    types = [e.type_of(v) for v in results]
    regions = []
    for side, block in enumerate(step.sides):
        with e.body() as lines:
            _emit_block(block, e)
            e.at_node(step.node)
            names = [_as(choice[1 + side], choice[0], e) for choice in step.choices]
            names += [e.operand(v) if v in block.defined else _nothing(v, e) for v in step.exports]
            _yield(names, types, e)
        regions.append("\n".join(lines))
    e.values.update(zip(results, _if(test, regions, types, e), strict=True))


def _as(value: Variable, wanted: Variable, e: Emitter) -> str:
    """A value in the type of the result that it becomes, which may know less about its shape."""
    return str(e.cast_type(e.operand(value), e.type_of(value), e.type_of(wanted)))


def _nothing(v: Variable, e: Emitter) -> str:
    """What a side yields for a value of the other side, which nobody reads."""
    type_ = e.type_of(v)
    if v.type.dtype == "bool" and not v.type.ndim:
        # It may be a condition in a product with the one that it depends on.
        return str(e.raw(f"arith.constant dense<false> : {type_}"))
    sizes = [e.const_index(0) for size in v.type.shape if size is None]
    return str(e.raw(f"tensor.empty({', '.join(sizes)}) : {type_}"))


def _test(formula: Formula, e: Emitter) -> str:
    """A sum of products as an ``i1``."""
    products = []
    for path in formula:
        bits = []
        for condition, side in path:
            bit = e.truth_of(condition, e.operand(condition))
            bits.append(bit if side else e.raw(f"arith.xori {bit}, {e.truth(True)} : i1"))
        product = bits[0]
        for bit in bits[1:]:
            product = e.both(product, bit)
        products.append(product)
    result = products[0]
    for product in products[1:]:
        result = e.raw(f"arith.ori {result}, {product} : i1")
    return str(result)
