# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Defines the kernels that the text of a compiled function declares.

    i64 graphc_kernel.<name>.<types>.<attributes>(operands, results, scratch?, batch, cost, bytes, sizes)

`types` are those of operands and results, `attributes` pairs of name and number, both joined by `-`. The
function goes over the batch and returns the first status that is not 0. `cost` is the time of one element in
picoseconds, `bytes` the size of the scratch memory, which other threads need, too (see
`graphc.kernels.batches`).
"""

from __future__ import annotations

import inspect
import re
from collections.abc import Mapping, Sequence
from functools import cache

from graphc.kernels import Kernel, find
from graphc.kernels.batches import Batches
from graphc.kernels.translate import Translator
from graphc.kernels.types import I64, Static, Type, Value
from graphc_dialects.signatures import SIGNATURES

_DECLARATION = re.compile(r"^declare i64 @(graphc_kernel\.(\w+)\.([\w-]+)\.([\w-]*))\(.*\n", re.MULTILINE)
_LETTERS = {"f32": "s", "f64": "d", "c64": "c", "c128": "z"}


def symbol_of(name: str, types: Sequence[Type], attributes: Mapping[str, int]) -> str:
    """The symbol of a kernel for types and attributes."""
    flags = "-".join(f"{key}-{_number(value)}" for key, value in sorted(attributes.items()))
    return f"graphc_kernel.{name}.{'-'.join(t.name for t in types)}.{flags}"


def _number(value: int) -> str:
    return str(int(value)).replace("-", "m")


def define_kernels(ir_text: str) -> str:
    """The text with definitions in place of declarations of kernels."""
    found = sorted(set(_DECLARATION.findall(ir_text)))
    if not found:
        return ir_text
    text = _DECLARATION.sub("", ir_text)
    definitions: list[str] = []
    declarations: set[str] = set()
    for symbol, name, types, flags in found:
        pieces = flags.split("-") if flags else []
        pairs = zip(pieces[::2], pieces[1::2], strict=True)
        attributes = {key: int(value.replace("m", "-")) for key, value in pairs}
        more, needed = _definition(symbol, name, tuple(types.split("-")), tuple(attributes.items()))
        definitions.append(more)
        declarations |= needed
    have = set(re.findall(r"^declare .*?@([\w.$]+)\(", text, re.MULTILINE))
    new = (line for line in sorted(declarations) if _declared(line) not in have)
    return "\n".join([text, *definitions, *new, ""])


def _declared(line: str) -> str:
    return line[line.index("@") + 1 : line.index("(")]


@cache
def _definition(
    symbol: str, name: str, types: tuple[str, ...], attributes: tuple[tuple[str, int], ...]
) -> tuple[str, frozenset[str]]:
    kernel, signature = find(name), SIGNATURES[name]
    kinds = [Type(t, True) for t in types]
    translator = Translator(_LETTERS.get(types[0], "d"), kernel.flags)
    arrays = [Value(f"%a{i}", kind) for i, kind in enumerate(kinds)]
    if kernel.scratch is not None:
        arrays.append(Value("%scratch", Type("u8", True)))
    sizes = [Value(f"%n.{dim}", I64) for dim in signature.dims]
    keywords = _attributes(kernel, attributes)
    part = [] if kernel.parts is None else [Value("%part", I64)]
    formal: list[Value | Static] = [*arrays, *sizes, *part, *keywords]
    core = f"{symbol}.core"
    result = translator.define(kernel.function, core, formal, "internal ")
    if kernel.parts is not None:
        translator.define(kernel.parts, f"{symbol}.parts", [*sizes, *keywords], "internal ")
    batches = Batches(
        symbol,
        core,
        signature,
        arrays,
        sizes,
        fails=result is not None,
        calls_blas=any(re.search(r"@(lapack|blas)_", line) for line in translator.declarations),
        has_parts=kernel.parts is not None,
    )
    # Routines of two kernels in one module must not have one symbol.
    text = translator.text().replace("@graphc_routine.", f"@{symbol}.routine.")
    lines = text.splitlines(keepends=True)
    body = "".join(line for line in lines if not line.startswith("declare "))
    return body + batches.text(), frozenset(translator.declarations | batches.declarations())


def _attributes(kernel: Kernel, attributes: tuple[tuple[str, int], ...]) -> list[Static]:
    """Values of the keyword parameters, in their order."""
    given = dict(attributes)
    parameters = inspect.signature(kernel.function).parameters.values()
    return [Static(given[p.name]) for p in parameters if p.kind is p.KEYWORD_ONLY]
