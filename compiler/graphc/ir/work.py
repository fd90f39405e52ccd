# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Arithmetic and traffic of kernels, as plain data that sizes are put into later.

`graphc.passes.buffer.count_work` makes it, `graphc.inspect.roofline` evaluates it. Sizes and bounds are
numbers of expressions (`graphc.passes.buffer._expressions`).
"""

from __future__ import annotations

from typing import TypedDict


class Block(TypedDict, total=False):
    """Operations that run one after the other, or something that has a count of its own.

    Attributes:
        flops: floating-point operations by element type.
        functions: functions such as `exp f64` by name and element type.
        moved: bytes that loads and stores move, as `read` and `written`, each time that they do.
        parts: what has a count of its own.
        loop, bounds, body: a loop by the number of its variable; first value, end and step.
        either: the blocks of a conditional.
        repeated: what runs an unknown number of times.
        times: sizes that the block's counts are multiplied with.
        unknown: the name of a call whose work nobody counts.
    """

    flops: dict[str, int]
    functions: dict[str, int]
    moved: dict[str, int]
    parts: list[Block]
    loop: int
    bounds: list[int]
    body: Block
    either: list[Block]
    repeated: Block
    times: list[int]
    unknown: str


def parts_of(block: Block) -> list[Block]:
    """The records in a record."""
    inner = [*block.get("parts", ()), *block.get("either", ())]
    inner += [block["body"]] if "body" in block else []
    return inner + ([block["repeated"]] if "repeated" in block else [])


class Place(TypedDict):
    """Elements that a kernel reads or writes.

    Attributes:
        root: the number of their buffer.
        written: whether they are written, or read.
        item: bytes of an element.
        count: sizes of what is read or written at once.
        loops: variable, first value, end and step of each loop that the address changes with, the outermost
            first.
    """

    root: int
    written: bool
    item: int
    count: list[int]
    loops: list[list[int]]


class Kernel(TypedDict):
    """A loop nest, a call, or what stands between them.

    Attributes:
        what: `loop`, `copy`, `scalars` or the function called.
        nodes: of the graph, such as `n12`.
        body: what it computes.
        places: what it reads and writes.
    """

    what: str
    nodes: list[str]
    body: Block
    places: list[Place]


class Work(TypedDict):
    """The work of a function.

    Attributes:
        expressions: of sizes.
        roots: the sizes of each buffer.
        kernels: in the order of the code.
        weights: how many operations the inline code of a function has, by name and element type.
    """

    expressions: list[list[int | str]]
    roots: list[list[int]]
    kernels: list[Kernel]
    weights: dict[str, int]
