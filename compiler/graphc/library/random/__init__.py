# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Defines the functions of random draws that a kernel declares.

    graphc_random_<generator>_<distribution>(state, next, n, out, p0, step0, p1, step1, ...)
    graphc_random_<generator>_<distribution>(state, next, n, k, scratch, out, p0, step0, ...)

fills `out` with n draws and stores the state of the generator after them in `next`, which may be `state`.
Parameters are arrays, from which every draw takes `step` elements: none where all draws share them. The
second form is that of draws over vectors of length k (`graphc.library.random.vectors`).

The loops are text, and not in the kernel language, whose functions have a fixed number of parameters.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable

from graphc.library.helpers import Draws, Helper, of_kind
from graphc.library.random.draws import DRAWS, TYPES, DrawWriter, load_parameters
from graphc.library.random.registers import FAST, WORDS, fast_fill, generator_functions
from graphc.library.random.vectors import VECTORS
from graphc.native.parts import Definitions

# Bytes that NumPy keeps between draws of a call (its structure binomial_t is the largest such).
_CACHE = 256


def define_random(helpers: Iterable[Helper], made: Definitions) -> None:
    """Adds the draws among what a kernel declares.

    They are made for code generation without optimisation: loops keep the state in registers as they are
    written.

    Args:
        helpers: what the kernel declares.
        made: gains their definitions.
    """
    wanted = of_kind(helpers, Draws)
    for generator in sorted({draws.generator for draws in wanted}):
        made.add(generator_functions(generator))
    for draws in wanted:
        made.add(*fill(draws))


# What every definition uses.
_COMMON = (
    "declare void @llvm.memcpy.p0.p0.i64(ptr, ptr, i64, i1)",
    "declare void @llvm.memset.p0.i64(ptr, i8, i64, i1)",
    "declare i64 @llvm.fshr.i64(i64, i64, i64)",
    "declare double @llvm.fabs.f64(double)",
    "declare i1 @llvm.expect.i1(i1, i1)",
)


def fill(draws: Draws) -> tuple[str, set[str]]:
    """The definition of one function, and the declarations that it needs.

    Args:
        draws: the generator is a key of `WORDS`, the distribution one of `DRAWS` or `VECTORS`.
    """
    name, generator, distribution = draws.symbol, draws.generator, draws.distribution
    if distribution in VECTORS:
        return _fill_vectors(name, generator, distribution)
    draw = DRAWS[distribution]
    w = DrawWriter()
    _begin(w, generator)
    parameters = ["ptr %state", "ptr %next", "i64 %n", "ptr noalias %out", *_parameters(draw.parameters)]
    if generator == "pcg64" and distribution in FAST:
        fast_fill(w, distribution)
    else:
        _loop(w, draw.parameters, lambda values, at: _store(w, draw.result, draw.body(w, *values), at))
    _end(w, generator)
    return _function(name, parameters, w), {*w.declarations, *_COMMON}


def _function(name: str, parameters: list[str], w: DrawWriter) -> str:
    return f"define void @{name}({', '.join(parameters)}) nounwind {{\n{w.text()}}}\n"


def _parameters(kinds: str) -> list[str]:
    return [text for i in range(len(kinds)) for text in (f"ptr noalias readonly %p{i}", f"i64 %step{i}")]


def _begin(w: DrawWriter, generator: str) -> None:
    """Copies the state, so that it may be overwritten, and makes NumPy's `bitgen_t` for the copy."""
    w.label("entry")
    w.line(f"  %copy = alloca [{WORDS[generator]} x i64], align 16")
    w.line("  %bitgen = alloca [5 x ptr], align 8")
    w.line(f"  %scratch = alloca [{_CACHE} x i8], align 16")
    w.line(f"  call void @llvm.memcpy.p0.p0.i64(ptr %copy, ptr %state, i64 {8 * WORDS[generator]}, i1 false)")
    w.clear("%scratch", _CACHE)
    w.store("ptr", "%copy", "%bitgen", 0)
    for i, function in enumerate(("next64", "next32", "double", "next64"), 1):
        w.store("ptr", f"@graphc_{generator}_{function}", "%bitgen", 8 * i)


def _end(w: DrawWriter, generator: str) -> None:
    w.label("done")
    w.line(f"  call void @llvm.memcpy.p0.p0.i64(ptr %next, ptr %copy, i64 {8 * WORDS[generator]}, i1 false)")
    w.line("  ret void")


def _store(w: DrawWriter, kind: str, value: str, at: str) -> None:
    pointer = w.let(f"getelementptr {TYPES[kind]}, ptr %out, i64 {at}")
    w.line(f"  store {TYPES[kind]} {value}, ptr {pointer}")


def _loop(w: DrawWriter, kinds: str, body: Callable[[list[str], str], None]) -> None:
    w.line("  br label %loop")
    w.label("loop")
    w.line("  %i = phi i64 [ 0, %entry ], [ %i.next, %draw ]")
    w.line(f"  br i1 {w.let('icmp slt i64 %i, %n')}, label %draw, label %done")
    w.label("draw")
    body(load_parameters(w, kinds), "%i")
    w.line("  %i.next = add nuw nsw i64 %i, 1")
    w.line("  br label %loop")


def _fill_vectors(name: str, generator: str, distribution: str) -> tuple[str, set[str]]:
    """Calls of a function of one draw. Sums are kept while the vector stays the same."""
    draw = VECTORS[distribution]
    types = ["ptr" if kind.isupper() else TYPES[kind] for kind in draw.parameters]
    one = draw.define(f"graphc_draw_{generator}_{distribution}")
    w = DrawWriter()
    _begin(w, generator)

    def body(values: list[str], i: str) -> None:
        steps = [f"%step{j}" for j, kind in enumerate(draw.parameters) if kind.isupper()]
        start = w.let(f"icmp eq i64 {i}, 0")
        moves = w.let(f"icmp ne i64 {steps[0] if steps else '0'}, 0")
        first = w.let(f"or i1 {start}, {moves}")
        at = w.let(f"mul i64 {i}, %k") if draw.result.isupper() else i
        out = w.let(f"getelementptr {TYPES[draw.result.lower()]}, ptr %out, i64 {at}")
        given = [f"{type_} {value}" for type_, value in zip(types, values, strict=True)]
        arguments = [
            "ptr %bitgen",
            "i64 %k",
            "ptr %room",
            "ptr %scratch",
            f"i1 {first}",
            f"ptr {out}",
            *given,
        ]
        w.line(f"  call void @graphc_draw_{generator}_{distribution}({', '.join(arguments)})")

    _loop(w, draw.parameters, body)
    _end(w, generator)
    parameters = ["ptr %state", "ptr %next", "i64 %n", "i64 %k", "ptr noalias %room", "ptr noalias %out"]
    text = one.definitions() + _function(name, [*parameters, *_parameters(draw.parameters)], w)
    return text, {*(f"{line} nounwind" for line in one.declarations), *_COMMON}
