# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Code that takes the arguments of functions from a frame, in kernels that are divided.

The frame has a slot of eight bytes for each value that some function needs. A function that is called once
knows its slots. One that is called several times gets a row of numbers with each call, and copies the slots
that they name to a frame of its own.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence

# Type and text of an argument of a call; the text is empty where the function does not read it.
Argument = tuple[str, str]
COPY_NAME = "@llvm.memcpy.p0.p0.i64("
COPY = f"declare void {COPY_NAME}ptr, ptr, i64, i1)\n"
# Instructions that compute: what else stands in a function passes values on.
_ARITHMETIC = re.compile(
    r"^  %[\w.]+ = (?!call|getelementptr|extractvalue|insertvalue|load|phi|alloca|add i64 [\w.%]+, 0$)",
    re.MULTILINE,
)
_CALLS = re.compile(r"^  (?:%[\w.]+ = )?(?:tail )?call ", re.MULTILINE)
_LABELS = re.compile(r"^([\w.]+):|label %([\w.]+)", re.MULTILINE)


def is_glue(body: str) -> bool:
    """Whether a function's body does little but call others, once each.

    LLVM's code generator takes more than linear time for long blocks, unless it is told not to optimise,
    which makes it two hundred times as fast and costs such code nothing that could be measured.
    """
    seen = set()
    for label, target in _LABELS.findall(body):
        if target and target in seen:
            return False  # a loop
        seen.add(label)
    return len(_ARITHMETIC.findall(body)) <= 2 * len(_CALLS.findall(body))


def varies(column: Sequence[Argument]) -> bool:
    """Whether an argument is not the same number in all calls."""
    return column[0][1].startswith("%") or any(argument != column[0] for argument in column)


def slot(argument: Argument) -> str:
    """What a place in the frame is for: a value by its name, a number with its type."""
    kind, value = argument
    return value if value.startswith("%") else f"{kind} {value}"


def gather(count: int) -> str:
    """Code that copies what a row names from the frame of the kernel to one of the function."""
    copies = [
        f"  %at{i} = getelementptr i32, ptr %row, i64 {i}\n"
        f"  %slot{i} = load i32, ptr %at{i}\n"
        f"  %from{i} = getelementptr i64, ptr %all, i32 %slot{i}\n"
        f"  %to{i} = getelementptr i64, ptr %frame, i64 {i}\n"
        f"  call void {COPY_NAME}ptr %to{i}, ptr %from{i}, i64 8, i1 false)\n"
        for i in range(count)
    ]
    return "".join([f"  %frame = alloca [{max(count, 1)} x i64]\n", *copies])


def loads(arguments: Sequence[Argument], names: Sequence[str], slots: Mapping[str, int]) -> str:
    """Code that gives names to what is in the frame."""
    return "".join(
        f"  %{name}.slot = getelementptr i64, ptr %frame, i64 {slots[value]}\n"
        f"  %{name} = load {kind}, ptr %{name}.slot\n"
        for name, (kind, value) in zip(names, arguments, strict=True)
        if value in slots
    )


def names(arguments: Sequence[Argument]) -> list[str]:
    """Names for arguments that come from the frame."""
    return [f"a{position}" for position in range(len(arguments))]


def passed(arguments: Sequence[Argument]) -> list[str]:
    """Arguments as they are passed, with these names."""
    return [
        f"{kind} " + (f"%a{position}" if value.startswith("%") else value or "poison")
        for position, (kind, value) in enumerate(arguments)
    ]
