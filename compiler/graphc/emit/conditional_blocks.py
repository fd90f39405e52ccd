# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""What a plan for a graph with conditionals is made of (see `graphc.emit.conditional_plan`)."""

from __future__ import annotations

from dataclasses import field

from graphc.graph.basic import Apply, Variable
from graphc.graph.demand import Literal
from graphc_runtime.record import record

Path = tuple[Literal, ...]
Formula = tuple[Path, ...]
ALWAYS: Formula = ((),)


class NoOrder(Exception):
    """There is no plan; the text says why."""


@record(eq=False)
class Alias:
    """A variable that is another one in this block.

    Attributes:
        output: the output of an `IfElse` whose condition is known in the block.
        value: the chosen value.
    """

    output: Variable
    value: Variable


@record(eq=False)
class Block:
    """Steps that run one after the other.

    Attributes:
        owner: the conditional whose side this is; None for the outermost block.
        steps: what runs.
        defined: variables that have a value in the block, and not in the block around it.
    """

    owner: Conditional | None = None
    steps: list[Apply | Alias | Conditional] = field(default_factory=list)
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
