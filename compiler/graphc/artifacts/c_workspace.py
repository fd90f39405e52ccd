# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""LLVM IR that computes how much workspace a call from C takes, from the memory plan of the kernel."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

from graphc.artifacts.c_memory import BLOCK_BYTES
from graphc.library.workspace import workspace_table
from graphc_runtime.index_arithmetic import COMPARISONS
from graphc_runtime.manifest import Signature

_BINARY = {name: name.removesuffix("i") for name in "addi subi muli andi ori xori".split()}
_CALLS = {"maxsi": "smax", "minsi": "smin", "maxui": "umax", "minui": "umin"}
_PREDICATES = tuple(COMPARISONS)
_INTEGERS = {"bool": ("i8", "zext"), "int64": ("i64", ""), "uint64": ("i64", "")}
_INTEGERS |= {f"int{bits}": (f"i{bits}", "sext") for bits in (8, 16, 32)}
_INTEGERS |= {f"uint{bits}": (f"i{bits}", "zext") for bits in (8, 16, 32)}
# Blocks begin at any address of the workspace, whose own need not be aligned.
_SLACK = 128
DECLARATIONS = "".join(f"declare i64 @llvm.{name}.i64(i64, i64)\n" for name in sorted(_CALLS.values()))


def workspace_lines(
    memory: Sequence[dict[str, Any]], signature: Signature, starts: Sequence[int], used: int
) -> list[str]:
    """The body of a function that returns the bytes, or -1 where sizes do not tell.

    Args:
        memory: the memory plans of the kernel's functions.
        signature: of the kernel.
        starts: for each of its arrays, where its sizes begin in `%dims`; their addresses are in `%data`.
        used: how many of the signature's arguments the kernel reads; results follow in a plan's arguments,
            and have no sizes yet.
    """
    if any(entry["place"] == "arena" for record in memory for entry in record["others"]):
        return ["  ret i64 -1"]
    writer = _Writer(signature, starts, used)
    total = [str(_SLACK)]
    for number, record in enumerate(memory):
        values = writer.values(number, record["expressions"], _needed(record))
        if values is None:
            return ["  ret i64 -1"]
        for entry in record["workspaces"]:
            total += writer.workspace(entry, values)
    result = writer.sum(total)
    return [*writer.lines, f"  ret i64 {result}"]


def _needed(record: dict[str, Any]) -> set[int]:
    """The expressions that sizes of workspaces are made of."""
    stack = [number for entry in record["workspaces"] for key in entry["keys"] for number in key]
    found: set[int] = set()
    while stack:
        number = stack.pop()
        if number not in found:
            found.add(number)
            stack += _operands(record["expressions"][number])
    return found


def _operands(node: Sequence[Any]) -> list[int]:
    name, *rest = node
    if name in ("const", "dim", "value", "?"):
        return []
    return rest[1:] if name == "cmpi" else rest


class _Writer:
    def __init__(self, signature: Signature, starts: Sequence[int], used: int) -> None:
        self.lines: list[str] = []
        self._signature, self._starts, self._used = signature, starts, used
        self._count = 0

    def let(self, text: str) -> str:
        self._count += 1
        self.lines.append(f"  %v{self._count} = {text}")
        return f"%v{self._count}"

    def values(self, number: int, nodes: Sequence[Any], needed: set[int]) -> dict[int, str] | None:
        """Each expression that is needed as an operand; None if one is not known."""
        found: dict[int, str] = {}
        for i, node in enumerate(nodes):
            if i in needed:
                value = self._value(node, found)
                if value is None:
                    return None
                found[i] = value
        return found

    def _value(self, node: Sequence[Any], known: dict[int, str]) -> str | None:
        name, *rest = node
        if name == "const":
            return str(int(rest[0]))
        if name == "dim":
            if rest[0] >= self._used:
                return None  # sizes of results are not known yet
            at = self._starts[rest[0]] + rest[1]
            return self.let(f"load i64, ptr {self.let(f'getelementptr i64, ptr %dims, i64 {at}')}")
        if name == "value":
            return self._element(rest[0])
        if name in _BINARY:
            return self.let(f"{_BINARY[name]} i64 {known[rest[0]]}, {known[rest[1]]}")
        if name in _CALLS:
            return self.let(f"call i64 @llvm.{_CALLS[name]}.i64(i64 {known[rest[0]]}, i64 {known[rest[1]]})")
        if name == "cmpi":
            bit = self.let(f"icmp {_PREDICATES[rest[0]]} i64 {known[rest[1]]}, {known[rest[2]]}")
            return self.let(f"zext i1 {bit} to i64")
        if name == "select":
            bit = self.let(f"icmp ne i64 {known[rest[0]]}, 0")
            return self.let(f"select i1 {bit}, i64 {known[rest[1]]}, i64 {known[rest[2]]}")
        # Divisions may be by zero in cases that are not chosen.
        return None

    def _element(self, slot: int) -> str | None:
        if slot >= self._used or self._signature.arguments[slot].dtype not in _INTEGERS:
            return None
        spec = self._signature.arguments[slot]
        kind, extend = _INTEGERS[spec.dtype]
        at = self.let(f"getelementptr ptr, ptr %data, i64 {slot}")
        value = self.let(f"load {kind}, ptr {self.let(f'load ptr, ptr {at}')}")
        return self.let(f"{extend} {kind} {value} to i64") if extend else value

    def workspace(self, entry: dict[str, Any], values: dict[int, str]) -> Iterator[str]:
        """Parts of the bytes of a workspace."""
        counts = [self._product([values[i] for i in key]) for key in entry["keys"]]
        yield str(2 * BLOCK_BYTES)
        if entry["fixed"]:
            scale = self._aligned(counts[0]) if entry["keys"][0] else "1"
            yield self.let(f"mul i64 {scale}, {entry['peak']}")
            return
        yield str(workspace_table(entry).header)
        for buffer in entry["buffers"]:
            yield self._aligned(self.let(f"mul i64 {counts[buffer['key']]}, {buffer['units']}"))

    def _product(self, factors: Sequence[str]) -> str:
        """The product of sizes; one that is negative counts as 0."""
        result = "1"
        for factor in factors:
            size = self.let(f"call i64 @llvm.smax.i64(i64 {factor}, i64 0)")
            result = self.let(f"mul i64 {result}, {size}")
        return result

    def _aligned(self, value: str) -> str:
        return self.let(f"and i64 {self.let(f'add i64 {value}, 63')}, -64")

    def sum(self, parts: Sequence[str]) -> str:
        """The sum of all."""
        result = parts[0]
        for part in parts[1:]:
            result = self.let(f"add i64 {result}, {part}")
        return result
