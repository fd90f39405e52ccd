# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Where the nodes of a graph with conditionals stand: in which regions, and in which order.

The demand of a node (`graphc.graph.demand`) says under which conditions it runs. In a block stand the nodes
that are needed whenever the block runs; what else is needed there belongs to groups, each a condition with
two sides, or a sum of products of several conditions with one side. A group becomes a *conditional* step,
with a block for each side; an output of an `IfElse` is a result of the conditional of its condition.

Steps are ordered by list scheduling: nodes of the block itself as soon as they can run, then a group of which
everything can run, so that all conditionals of one condition become one where dependences allow. Else a group
is split: first what can run now. What regions elsewhere need from a side, such as the backward part of a
gradient from the forward part, becomes a further result.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from graphc.emit.conditional_blocks import Alias, Block, Conditional, Formula, NoOrder
from graphc.emit.conditional_order import Scheduler, Unit
from graphc.graph.basic import Apply, Variable
from graphc.graph.demand import Demands, is_conditional, sides

# Regions nest no deeper: MLIR's parser and passes recurse over them.
MAX_DEPTH = 64


def plan(nodes: Sequence[Apply], outputs: Iterable[Variable]) -> Block:
    """The order in which nodes run.

    Args:
        nodes: the nodes of a graph, each after those it needs.
        outputs: the variables that it computes.

    Raises:
        NoOrder: there is none, or none that is known; the text says why.
    """
    outputs = list(outputs)
    demands = Demands(nodes, outputs)
    block = Block()
    Scheduler(block, _units(nodes, demands), {}).run()
    _Exports(block).add(outputs)
    return block


def _units(nodes: Sequence[Apply], demands: Demands) -> list[Unit]:
    units: list[Unit] = []
    for node in nodes:
        if not is_conditional(node):
            formula = _formula(node, demands, node.outputs[0]) if node.outputs else ()
            if formula:
                units.append(Unit(len(units), node, node.inputs, node.outputs, formula))
            continue
        for k, output in enumerate(node.outputs):
            formula = _formula(node, demands, output)
            if formula:
                a, b = sides(node, k)
                choice = (output, a, b)
                units.append(Unit(len(units), node, [node.inputs[0], a, b], [output], formula, choice))
    return units


def _formula(node: Apply, demands: Demands, output: Variable) -> Formula:
    demand = demands.of(output)
    if demand.unknown:
        raise NoOrder(f"{node.op} is needed under too many combinations of conditions")
    if any(product.depth > MAX_DEPTH for product in demand.products):
        raise NoOrder(f"{node.op} is nested in more than {MAX_DEPTH} conditionals")
    return demand.literals


class _Exports:
    """Finds what regions need from other regions.

    Args:
        root: the outermost block.
    """

    def __init__(self, root: Block) -> None:
        self._root = root
        self._made: dict[Variable, Block] = {}
        self._uses: list[tuple[Variable, Block]] = []
        stack = [root]
        while stack:
            block = stack.pop()
            for step in block.steps:
                if isinstance(step, Apply):
                    self._made.update(dict.fromkeys(step.outputs, block))
                    self._uses += [(v, block) for v in step.inputs]
                elif isinstance(step, Alias):
                    # A result of the conditional around, if it was its choice; made here otherwise.
                    self._made.setdefault(step.output, block)
                    self._uses.append((step.value, block))
                else:
                    stack += step.sides
                    self._visit(step)

    def _visit(self, step: Conditional) -> None:
        self._uses += [(condition, step.block) for path in step.test for condition, _ in path]
        for output, a, b in step.choices:
            self._made[output] = step.block
            self._uses += [(a, step.sides[0]), (b, step.sides[1])]

    def add(self, outputs: Iterable[Variable]) -> None:
        """Adds exports to the conditionals."""
        for v, block in [*self._uses, *((v, self._root) for v in outputs)]:
            if v in self._made and not _visible(v, block):
                self._carry_out(v, block)

    def _carry_out(self, v: Variable, user: Block) -> None:
        around = set(_chain(user))
        block = self._made[v]
        while block not in around:
            assert block.owner is not None
            block.owner.exports[v] = None
            block = block.owner.block
            block.defined[v] = None


def _chain(block: Block) -> list[Block]:
    """A block and those around it."""
    found = [block]
    while found[-1].owner is not None:
        found.append(found[-1].owner.block)
    return found


def _visible(v: Variable, block: Block) -> bool:
    return any(v in each.defined for each in _chain(block))
