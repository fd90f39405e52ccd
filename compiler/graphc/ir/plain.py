# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Numbers, names, lists and records as attributes of IR, and back.

So a module says which operations are rematerialised to save memory: its attribute `graphc.recomputed`.
"""

from __future__ import annotations

from typing import Any, TypedDict

from graphc_dialects._mlir import ir

# What a manifest may contain, too: bool, int, str, and lists and dicts with names of these.
Plain = Any


def write(data: Plain) -> ir.Attribute:
    """The attribute for plain data.

    Raises:
        TypeError: there is none.
    """
    if isinstance(data, bool):
        return ir.BoolAttr.get(data)
    if isinstance(data, int):
        if -(2**63) <= data < 2**63:
            return ir.IntegerAttr.get(ir.IntegerType.get_signless(64), data)
        return ir.Attribute.parse(f"{data} : i128")
    if isinstance(data, str):
        return ir.StringAttr.get(data)
    if isinstance(data, list | tuple):
        return ir.ArrayAttr.get([write(item) for item in data])
    if isinstance(data, dict):
        return ir.DictAttr.get({name: write(item) for name, item in data.items()})
    raise TypeError(f"{data!r} is no plain data")


def read(attribute: ir.Attribute) -> Plain:
    """The data of an attribute that `write` makes.

    Raises:
        ValueError: it is another.
    """
    if isinstance(attribute, ir.BoolAttr | ir.IntegerAttr | ir.StringAttr):
        return attribute.value
    if isinstance(attribute, ir.ArrayAttr):
        return [read(item) for item in attribute]
    if isinstance(attribute, ir.DictAttr):
        return {item.name: read(item.attr) for item in attribute}
    raise ValueError(f"{attribute} is no plain data")


RECOMPUTED = "graphc.recomputed"


class Array(TypedDict):
    """An array that is computed again.

    Attributes:
        node: of the graph, such as `n12`. bytes: its size.
        times: how often it is computed again. flops: the operations that this takes.
    """

    node: str
    bytes: int
    times: int
    flops: int


class Recomputed(TypedDict, total=False):
    """Rematerialised operations; empty where no budget was given.

    Attributes:
        unknown: how many arrays have sizes that are not known.
        peak: the most bytes that the others should need at once.
        flops: how many operations are done more than before.
        arrays: what is computed again.
    """

    unknown: int
    peak: int
    flops: int
    arrays: list[Array]


def attach(module: ir.Module, record: Recomputed) -> None:
    """Stores what is computed again in a module."""
    module.operation.attributes[RECOMPUTED] = write(record)


def attached(module: ir.Module) -> Recomputed:
    """Reads the attribute of a module."""
    attributes = module.operation.attributes
    found: Recomputed = read(attributes[RECOMPUTED]) if RECOMPUTED in attributes else {}
    return found
