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
from collections.abc import Iterable, Mapping, Sequence
from functools import cache

from graphc.library.batches import Batches
from graphc.library.helpers import Helper, KernelCall, of_kind
from graphc.library.registry import Kernel, find
from graphc.native.parts import Part
from graphc.native.translate import Translator
from graphc.native.types import I64, Static, Type, Value
from graphc_dialects.signatures import SIGNATURES

_LETTERS = {"f32": "s", "f64": "d", "c64": "c", "c128": "z"}


def kernel_call(name: str, types: Sequence[Type], attributes: Mapping[str, int]) -> KernelCall:
    """A kernel for types and attributes."""
    keywords = tuple(sorted(attributes))
    return KernelCall(
        name, tuple(t.name for t in types), keywords, tuple(int(attributes[k]) for k in keywords)
    )


def kernel_parts(helpers: Iterable[Helper]) -> list[Part]:
    """The kernels among what a kernel of a function declares."""
    return [Part(_definition(call)) for call in of_kind(helpers, KernelCall)]


@cache
def _definition(call: KernelCall) -> str:
    symbol = call.symbol
    kernel, signature = find(call.name), SIGNATURES[call.name]
    kinds = [Type(t, True) for t in call.types]
    translator = Translator(_LETTERS.get(call.types[0], "d"), kernel.flags)
    arrays = [Value(f"%a{i}", kind) for i, kind in enumerate(kinds)]
    if kernel.scratch is not None:
        arrays.append(Value("%scratch", Type("u8", True)))
    sizes = [Value(f"%n.{dim}", I64) for dim in signature.dims]
    keywords = _attributes(kernel, dict(zip(call.keywords, call.values, strict=True)))
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
        calls_blas=any(name.startswith(("lapack_", "blas_")) for name in translator.called),
        has_parts=kernel.parts is not None,
    )
    declarations = translator.declarations | batches.declarations()
    return "\n".join([translator.definitions() + batches.text(), *sorted(declarations), ""])


def _attributes(kernel: Kernel, given: Mapping[str, int]) -> list[Static]:
    """Values of the keyword parameters, in their order; those with defaults need not be given."""
    parameters = inspect.signature(kernel.function).parameters.values()
    return [
        Static(given[p.name] if p.name in given or p.default is p.empty else p.default)
        for p in parameters
        if p.kind is p.KEYWORD_ONLY
    ]
