# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Graphs with conditionals in the dialect: nodes in the regions of ``scf.if``.

A plan says which regions there are, where the nodes stand and in which order; then the plan is written.

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

import heapq
from collections.abc import Iterable, Sequence
from dataclasses import field

from graphc.emit.emitter import Emitter
from graphc.errors import CompileError
from graphc.graph.basic import Apply, Variable, describe
from graphc.graph.demand import Demands, Literal, Product, is_conditional, sides
from graphc.graph.function_graph import FunctionGraph
from graphc.graph.tensor.type import TensorType
from graphc_runtime.record import record

Path = tuple[Literal, ...]
Formula = tuple[Path, ...]
ALWAYS: Formula = ((),)


class NoOrder(Exception):
    """There is no plan; the text says why."""


@record(eq=False)
class Alias:
    """A variable that is another one where it is needed.

    Attributes:
        output: the output of an `IfElse` whose condition is known there.
        value: the chosen value.
        node: the `IfElse`.
    """

    output: Variable
    value: Variable
    node: Apply


@record(eq=False)
class Reached:
    """A bit that is true where this place is reached, and false elsewhere.

    Attributes:
        output: the bit.
        node: what stands deeper, in messages.
    """

    output: Variable
    node: Apply


@record(eq=False)
class Block:
    """Steps that run one after the other.

    Attributes:
        owner: the conditional whose side this is; None for the outermost block.
        steps: what runs.
        defined: variables that have a value in the block, and not in the block around it.
    """

    owner: Conditional | None = None
    steps: list[Apply | Alias | Reached | Conditional] = field(default_factory=list)
    defined: dict[Variable, None] = field(default_factory=dict)


@record(eq=False)
class Conditional:
    """Runs one of two blocks.

    Attributes:
        block: where it stands.
        test: a sum of products; one of a single literal ``(condition, True)`` is the condition itself.
        sides: the blocks if the test holds, and otherwise.
        choices: outputs of `IfElse` nodes, with their values by the sides.
        exports: variables of a side that are needed outside.
        node: what it is made for, in messages.
    """

    block: Block
    test: Formula
    node: Apply
    sides: tuple[Block, Block] = field(init=False)
    choices: list[tuple[Variable, Variable, Variable]] = field(default_factory=list)
    exports: dict[Variable, None] = field(default_factory=dict)

    def __post_init__(self) -> None:
        self.sides = Block(self), Block(self)


_CIRCLE = "a value is needed under a condition that depends on it"


class Unit:
    """A unit of scheduling: a node, an output of an `IfElse`, an alias, or a bit.

    Attributes:
        position: place in the order of the graph.
        step: the node, alias or bit; for an output of an `IfElse` the node.
        choice: the output with its two values, for an output of an `IfElse`.
        inputs, outputs: variables.
        formula: when it is needed, where its block runs.
    """

    __slots__ = ("choice", "formula", "inputs", "outputs", "position", "step")

    def __init__(
        self,
        position: int,
        step: Apply | Alias | Reached,
        inputs: Sequence[Variable],
        outputs: Sequence[Variable],
        formula: Formula,
        choice: tuple[Variable, Variable, Variable] | None = None,
    ) -> None:
        self.position, self.step, self.choice = position, step, choice
        self.inputs, self.outputs, self.formula = inputs, outputs, formula

    def __lt__(self, other: Unit) -> bool:
        return self.position < other.position


@record(eq=False)
class Group:
    """Units of one conditional.

    Attributes:
        test: as in `Conditional`.
        position: place among the groups of the block.
        missing: how many dependences on units outside are not met yet.
        left: how many units are not scheduled yet.
        ready: units that can run, a heap.
        side: for each unit its side, and its formula there; none for choices.
    """

    test: Formula
    position: int
    missing: int = 0
    left: int = 0
    ready: list[Unit] = field(default_factory=list)
    side: dict[Unit, tuple[bool, Formula]] = field(default_factory=dict)


class Scheduler:
    """Fills one block.

    Args:
        block: the block.
        units: what is needed somewhere in it.
    """

    def __init__(self, block: Block, units: Sequence[Unit]) -> None:
        self._block = block
        self._maker = {v: unit for unit in units for v in unit.outputs}
        self._groups: dict[object, Group] = {}
        self._group: dict[Unit, Group] = {}
        for unit in units:
            self._assign(unit)
        self._readers: dict[Unit, list[Unit]] = {unit: [] for unit in units}
        self._waiting: dict[Unit, int] = {}
        self._ready: list[Unit] = []
        # Groups of which units became ready since they were looked at in vain.
        self._awake: dict[Group, None] = {}
        for unit in units:
            self._count(unit)

    # -- groups ----------------------------------------------------------------------------------------------

    def _assign(self, unit: Unit) -> None:
        if unit.formula == ALWAYS:
            if unit.choice is not None:
                self._join(unit, unit.inputs[0], (((unit.inputs[0], True),),))
            return
        path = unit.formula[0]
        if len(unit.formula) == 1 and self._here(path[0][0]):
            condition, side = path[0]
            group = self._join(unit, condition, (((condition, True),),))
            group.side[unit] = (side, (path[1:],))
            return
        common = frozenset.intersection(*map(frozenset, unit.formula))
        first = next((literal for literal in path if literal in common and self._here(literal[0])), None)
        if first is not None:
            condition, side = first
            group = self._join(unit, condition, (((condition, True),),))
            group.side[unit] = (side, _without(unit.formula, {first}))
            return
        test = _without(unit.formula, common)
        if () in test:
            raise NoOrder(f"{unit.step} is needed under a condition that is not known in time")
        group = self._join(unit, frozenset(map(frozenset, test)), test)
        group.side[unit] = (True, (tuple(literal for literal in path if literal in common),))

    def _join(self, unit: Unit, key: object, test: Formula) -> Group:
        group = self._groups.get(key)
        if group is None:
            group = self._groups[key] = Group(test, len(self._groups))
        group.left += 1
        self._group[unit] = group
        return group

    def _here(self, condition: Variable) -> bool:
        """True if a condition is known in this block, outside of all groups, or a bit that one hands on."""
        unit = self._maker.get(condition)
        return unit is None or unit.formula == ALWAYS or isinstance(unit.step, Reached)

    # -- order -----------------------------------------------------------------------------------------------

    def _count(self, unit: Unit) -> None:
        """Notes what a unit has to wait for."""
        group = self._group.get(unit)
        # Conditions of regions inside a group have to be known, too, where they are computed outside of it.
        needs = [*unit.inputs, *(condition for path in unit.formula for condition, _ in path)]
        makers = dict.fromkeys(self._maker[v] for v in needs if v in self._maker)
        for maker in makers:
            self._readers[maker].append(unit)
            if group is not None and self._group.get(maker) is not group:
                group.missing += 1
        self._waiting[unit] = len(makers)
        if not makers:
            self._enqueue(unit)

    def _enqueue(self, unit: Unit) -> None:
        group = self._group.get(unit)
        if group is not None:
            self._awake[group] = None
        heapq.heappush(self._ready if group is None else group.ready, unit)

    def _done(self, unit: Unit) -> None:
        group = self._group.get(unit)
        for reader in self._readers[unit]:
            self._waiting[reader] -= 1
            other = self._group.get(reader)
            if other is not None and other is not group:
                other.missing -= 1
            if not self._waiting[reader]:
                self._enqueue(reader)

    def run(self) -> None:
        """Orders everything.

        Raises:
            NoOrder: units wait for each other.
        """
        while True:
            while self._ready:
                self._place(heapq.heappop(self._ready))
            if not any(group.left for group in self._awake):
                break
            self._open(*self._next())
        if any(self._waiting.values()):
            raise NoOrder(_CIRCLE)

    def _next(self) -> tuple[Group, list[Unit]]:
        """The group to open, and its units that run then: all of them, or what others wait for."""
        for group in sorted(self._awake, key=lambda g: (g.missing > 0, g.position)):
            chunk = self._chunk(group) if group.left else []
            if chunk:
                return group, chunk
            del self._awake[group]
        raise NoOrder(_CIRCLE)

    def _chunk(self, group: Group) -> list[Unit]:
        ready, found = list(group.ready), []
        waiting: dict[Unit, int] = {}
        while ready:
            unit = heapq.heappop(ready)
            found.append(unit)
            for reader in self._readers[unit]:
                if self._group.get(reader) is group:
                    waiting[reader] = waiting.get(reader, self._waiting[reader]) - 1
                    if not waiting[reader]:
                        heapq.heappush(ready, reader)
        if len(found) == group.left:
            return found
        # What only later parts of the group read is computed there, so that it need not be handed on.
        wanted: set[Unit] = set()
        for unit in reversed(found):
            if any(r in wanted or self._group.get(r) is not group for r in self._readers[unit]):
                wanted.add(unit)
        return [unit for unit in found if unit in wanted]

    def _place(self, unit: Unit) -> None:
        self._block.steps.append(unit.step)
        self._block.defined.update(dict.fromkeys(unit.outputs))
        self._done(unit)

    def _open(self, group: Group, chunk: Sequence[Unit]) -> None:
        """A conditional with some units of a group."""
        for unit in chunk:
            self._done(unit)
        gone = set(chunk)
        group.left -= len(chunk)
        group.ready = sorted(unit for unit in group.ready if unit not in gone)
        node = next((u.step for u in chunk if u.choice is not None and u not in group.side), chunk[0].step)
        node = node if isinstance(node, Apply) else node.node
        conditional = Conditional(self._block, group.test, node)
        self._block.steps.append(conditional)
        for unit in chunk:
            if unit not in group.side:
                assert unit.choice is not None
                conditional.choices.append(unit.choice)
                self._block.defined.update(dict.fromkeys(unit.outputs))
        for side, block in zip((True, False), conditional.sides, strict=True):
            self._fill(block, group, chunk, side)

    def _fill(self, block: Block, group: Group, chunk: Sequence[Unit], side: bool) -> None:
        inside = []
        for unit in chunk:
            if unit not in group.side:
                assert unit.choice is not None and isinstance(unit.step, Apply)
                output, a, b = unit.choice
                value = a if side else b
                alias = Alias(output, value, unit.step)
                inside.append(Unit(unit.position, alias, [value], [output], ALWAYS))
            elif group.side[unit][0] is side:
                formula = group.side[unit][1]
                inside.append(Unit(unit.position, unit.step, unit.inputs, unit.outputs, formula, unit.choice))
        if inside:
            Scheduler(block, inside).run()


def _without(formula: Formula, literals: Iterable[Literal]) -> Formula:
    gone = set(literals)
    return tuple(tuple(literal for literal in path if literal not in gone) for path in formula)


# Regions nest little deeper: MLIR recurses over them, and what an inner one needs from an outer one, or gives
# to it, costs each pass something for every region between.
DEEPEST = 8


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
    Scheduler(block, _Units(nodes, demands).found).run()
    _Exports(block).add(outputs)
    return block


class _Units:
    """The units of a graph.

    What is nested deeper than `DEEPEST` stands in the block of the graph again, under a bit which says that
    this place was reached. So regions nest no deeper than that in whatever depth conditionals nest, and
    what is done with a path is proportional to its length.

    Args:
        nodes: the nodes of a graph, each after those it needs.
        demands: when they are needed.
    """

    def __init__(self, nodes: Sequence[Apply], demands: Demands) -> None:
        self.found: list[Unit] = []
        self._demands = demands
        self._bits: dict[Product, Variable] = {}
        for node in nodes:
            if not is_conditional(node):
                formula = self._formula(node, node.outputs[0]) if node.outputs else ()
                if formula:
                    self._add(node, node.inputs, node.outputs, formula)
                continue
            for k, output in enumerate(node.outputs):
                formula = self._formula(node, output)
                if not formula:
                    continue
                a, b = sides(node, k)
                known = {demands.side(product, node.inputs[0]) for product in demands.of(output).products}
                if known <= {True} or known <= {False}:
                    value = a if True in known else b
                    self._add(Alias(output, value, node), [value], [output], formula)
                else:
                    self._add(node, [node.inputs[0], a, b], [output], formula, (output, a, b))

    def _add(
        self,
        step: Apply | Alias | Reached,
        inputs: Sequence[Variable],
        outputs: Sequence[Variable],
        formula: Formula,
        choice: tuple[Variable, Variable, Variable] | None = None,
    ) -> None:
        self.found.append(Unit(len(self.found), step, inputs, outputs, formula, choice))

    def _formula(self, node: Apply, output: Variable) -> Formula:
        demand = self._demands.of(output)
        if demand.unknown:
            raise NoOrder(f"{node.op} is needed under too many combinations of conditions")
        return tuple(self._path(product, node) for product in demand.products)

    def _path(self, product: Product, node: Apply) -> Path:
        """The literals of a product, or those after the last bit."""
        literals: list[Literal] = []
        each = product
        while each.parent is not None and each.literal is not None:
            if each.depth % DEEPEST == 0 and literals:
                literals.append((self._reached(each, node), True))
                break
            literals.append(each.literal)
            each = each.parent
        return tuple(reversed(literals))

    def _reached(self, product: Product, node: Apply) -> Variable:
        """The bit of a place."""
        missing, each = [], product
        while each.depth and each not in self._bits:
            missing.append(each)
            each = each.first(each.depth - DEEPEST)
        for each in reversed(missing):
            bit = self._bits[each] = TensorType("bool", ())()
            self._add(Reached(bit, node), (), (bit,), (self._path(each, node),))
        return self._bits[product]


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
                elif isinstance(step, Reached):
                    self._made[step.output] = block
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
            if v in self._made and not any(v in each.defined for each in _chain(block)):
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


def obstacle(graph: FunctionGraph) -> str | None:
    """Reason for which a graph with conditionals cannot be one piece of compiled code; None if it can, as far
    as its conditionals are concerned.
    """
    try:
        if any(map(is_conditional, graph.nodes)):
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
    conditional = next(filter(is_conditional, graph.nodes), None)
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
        elif isinstance(step, Reached):
            e.values[step.output] = e.raw("arith.constant dense<true> : tensor<i1>")
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
    """The value that a side yields for a value of the other side, which nobody reads."""
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
