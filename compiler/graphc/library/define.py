# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""The code of the kernels that the text of a compiled function declares.

    i64 graphc_kernel.<name>.<types>.<attributes>(operands, results, scratch?, batch, cost, bytes, sizes)

`types` are those of operands and results, `attributes` pairs of name and number, both joined by `-`. The
function goes over the batch and returns the first status that is not 0. `cost` is the time of one element in
picoseconds, `bytes` the size of the scratch memory, which other threads need, too (see
`graphc.library.batches`). Each kernel is a part (`graphc.native.parts`), compiled once for all functions.
"""

from __future__ import annotations

import inspect
import re
from collections.abc import Mapping, Sequence
from functools import cache

from graphc.library.batches import Batches
from graphc.library.registry import Kernel, find
from graphc.native.parts import Part
from graphc.native.translate import Translator
from graphc.native.types import I64, Static, Type, Value
from graphc_dialects.signatures import SIGNATURES

_DECLARATION = re.compile(r"^declare i64 @(graphc_kernel\.(\w+)\.([\w-]+)\.([\w-]*))\(.*\n", re.MULTILINE)
_LETTERS = {"f32": "s", "f64": "d", "c64": "c", "c128": "z"}


def symbol_of(name: str, types: Sequence[Type], attributes: Mapping[str, int]) -> str:
    """The symbol of a kernel for types and attributes."""
    flags = "-".join(f"{key}-{_number(value)}" for key, value in sorted(attributes.items()))
    return f"graphc_kernel.{name}.{'-'.join(t.name for t in types)}.{flags}"


def _number(value: int) -> str:
    return str(int(value)).replace("-", "m")


def kernel_parts(ir_text: str) -> list[Part]:
    """The kernels that a text declares."""
    parts = []
    for symbol, name, types, flags in sorted(set(_DECLARATION.findall(ir_text))):
        pieces = flags.split("-") if flags else []
        pairs = zip(pieces[::2], pieces[1::2], strict=True)
        attributes = {key: int(value.replace("m", "-")) for key, value in pairs}
        parts.append(Part(_definition(symbol, name, tuple(types.split("-")), tuple(attributes.items()))))
    return parts


@cache
def _definition(
    symbol: str, name: str, types: tuple[str, ...], attributes: tuple[tuple[str, int], ...]
) -> str:
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
    lines = translator.text().splitlines(keepends=True)
    body = "".join(line for line in lines if not line.startswith("declare "))
    declarations = translator.declarations | batches.declarations()
    return "\n".join([body + batches.text(), *sorted(declarations), ""])


def _attributes(kernel: Kernel, attributes: tuple[tuple[str, int], ...]) -> list[Static]:
    """Values of the keyword parameters, in their order; those with defaults need not be given."""
    given = dict(attributes)
    parameters = inspect.signature(kernel.function).parameters.values()
    return [
        Static(given[p.name] if p.name in given or p.default is p.empty else p.default)
        for p in parameters
        if p.kind is p.KEYWORD_ONLY
    ]
