# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""The code of the kernels that the text of a compiled function declares.

    i64 graphc_kernel.<name>.<types>.<attributes>(operands, results, scratch?, batch, cost, bytes, sizes)

`types` are those of operands and results, `attributes` pairs of name and number, both joined by `-`. The
function goes over the batch and returns the first status that is not 0. `cost` is the time of one element in
picoseconds, `bytes` the size of the scratch memory, which other threads need, too (see
`graphc.library.define`). Each kernel is a part (`graphc.native.parts`), compiled once for all functions.

LLVM IR of the loop over the batch of a kernel operation, which several cores can share.

Three functions around the core function of a kernel, which does one element:

* `<symbol>.batch(arrays, sizes, first, past)` does a range and ends at the first error. It returns
  `position << 8 | status` of that, or -1.
* `<symbol>.range(frame, first, past)` is what a thread of the pool calls: `batch` with scratch memory of its
  own. The frame remembers the smallest result of all ranges, that is the first error in the order of the
  batch; ranges after it need not be done. If memory for scratch runs out, the frame remembers that too.
* `<symbol>(arrays, batch, cost, scratch bytes, sizes)` is what compiled functions call. It does all alone
  where the work is small, or where there was no memory.

Elements of middle size that call BLAS or LAPACK are shared with BLAS kept to one thread, so that there are
not more threads than cores. The largest ones are done one after the other, with the threads that BLAS has.
Which of these it is depends on sizes only: BLAS rounds otherwise with another number of threads.

Where elements have parts (see `graphc.library`), positions are `element * parts + part`,
and all work that is not small is done with BLAS kept to one thread.

Text, and not in the kernel language, whose functions have a fixed number of parameters: here that follows
from the signature.
"""

from __future__ import annotations

import inspect
from collections.abc import Callable, Iterable, Mapping, Sequence
from functools import cache
from typing import Any

from graphc.library import Kernel, find
from graphc.library.helpers import Helper, KernelCall, of_kind
from graphc.library.pool import SHARE, THRESHOLD_PICOSECONDS
from graphc.native import I64, Operand, Static, Type, Value
from graphc.native.parts import Part
from graphc.native.translate import Translator
from graphc_dialects.signatures import SIGNATURES, Signature

_SHARE_BLAS = SHARE.replace("share", "share_blas")
_MEMORY = ("declare ptr @malloc(i64)", "declare void @free(ptr)")
# Picoseconds of an element from which BLAS may use threads (products of 64 x 64 matrices), and from which its
# own threads share one element as well as ours share the batch.
_BLAS_SPLITS, _BLAS_SCALES = 25_000_000, 20_000_000_000


class Batches:
    """The functions of one kernel.

    Args:
        symbol: what compiled functions call.
        core: does one element.
        signature: of the operation.
        arrays: parameters of the core function: operands, results, scratch memory if it needs any.
        sizes: of all core dimensions.
        own: those among them that the core function takes.
        fails: whether it returns a status.
        calls_blas: whether it calls BLAS or LAPACK.
        parts: sizes that ``<symbol>.parts`` takes, which says how many parts an element has, where the core
            function does one part.
    """

    def __init__(
        self,
        symbol: str,
        core: str,
        signature: Signature,
        arrays: Sequence[Value],
        sizes: Sequence[Value],
        own: Sequence[Operand],
        *,
        fails: bool,
        calls_blas: bool,
        parts: Sequence[Operand] | None,
    ) -> None:
        self._symbol, self._core, self._signature = symbol, core, signature
        self._arrays, self._sizes, self._own = arrays, sizes, own
        self._fails, self._calls_blas = fails, calls_blas
        self._parts, self._has_parts = parts or (), parts is not None
        self._shapes = [*signature.operands, *signature.results]
        self._has_scratch = len(arrays) > len(self._shapes)
        self._pointers = [f"ptr {x.text}" for x in arrays]
        # The sizes, and how many parts there are.
        self._numbers = [f"i64 {x.text}" for x in sizes] + ["i64 %parts"] * self._has_parts
        # Arrays, sizes, then bytes of scratch memory, the first error, whether memory ran out.
        self._fields = ["ptr"] * len(arrays) + ["i64"] * (len(self._numbers) + 3)
        self._frame = "{ " + ", ".join(self._fields) + " }"
        self._bytes = len(arrays) + len(self._numbers)

    def text(self) -> str:
        """Definitions of the three functions."""
        return self._batch() + self._range() + self._entry()

    def declarations(self) -> set[str]:
        """Declarations of the functions that they call."""
        names = {SHARE}
        if self._calls_blas:
            names.add(_SHARE_BLAS)
        return names | set(_MEMORY) if self._has_scratch else names

    def _call(self, status: str, first: str, past: str) -> str:
        passed = ", ".join([*self._pointers, *self._numbers, f"i64 {first}", f"i64 {past}"])
        return f"  {status} = call i64 @{self._symbol}.batch({passed}) noinline\n"

    def _batch(self) -> str:
        formal = ", ".join(
            [*(f"ptr noalias {x.text}" for x in self._arrays), *self._numbers, "i64 %first", "i64 %past"]
        )
        lines, passed = [], []
        element = "%b"
        if self._has_parts:
            lines += ["  %element = udiv i64 %b, %parts", "  %part = urem i64 %b, %parts"]
            element = "%element"
        for i, array in enumerate(self._arrays):
            if i >= len(self._shapes):
                passed.append(f"ptr {array.text}")
                continue
            count = "1"
            for position, dim in enumerate(self._shapes[i]):
                lines.append(f"  %c{i}.{position} = mul i64 {count}, %n.{dim}")
                count = f"%c{i}.{position}"
            passed.append(f"ptr %at{i}")
            lines.append(f"  %o{i} = mul i64 {count}, {element}")
            lines.append(f"  %at{i} = getelementptr {array.type.element.stored}, ptr {array.text}, i64 %o{i}")
        call = f"@{self._core}({', '.join([*passed, *_passed(self._own)])})"
        if self._fails:
            lines += [
                f"  %status = call i64 {call}",
                "  %bad = icmp ne i64 %status, 0",
                "  br i1 %bad, label %failed, label %next",
                "failed:",
                "  %place = shl i64 %b, 8",
                "  %error = or i64 %place, %status",
                "  ret i64 %error",
            ]
        else:
            lines += [f"  call void {call}", "  br label %next"]
        body = "\n".join(lines)
        return f"""define internal i64 @{self._symbol}.batch({formal}) nounwind {{
entry:
  br label %head
head:
  %b = phi i64 [ %first, %entry ], [ %b.next, %next ]
  %more = icmp slt i64 %b, %past
  br i1 %more, label %body, label %done
body:
{body}
next:
  %b.next = add nsw i64 %b, 1
  br label %head
done:
  ret i64 -1
}}
"""

    def _field(self, name: str, position: int) -> str:
        return f"  {name} = getelementptr {self._frame}, ptr %frame, i64 0, i32 {position}\n"

    def _range(self) -> str:
        names = [*self._pointers, *self._numbers]
        loads = "".join(
            self._field(f"%p{i}", i) + f"  {name.split()[1]} = load {name.split()[0]}, ptr %p{i}\n"
            for i, name in enumerate(names)
            if not (self._has_scratch and i == len(self._shapes))
        )
        take = give = ""
        if self._has_scratch:
            own = self._arrays[-1].text
            take = f"""{self._field("%bytes.at", self._bytes)}  %bytes = load i64, ptr %bytes.at
  {own} = call ptr @malloc(i64 %bytes)
  %none = icmp eq ptr {own}, null
  br i1 %none, label %out, label %work
out:
{self._field("%out.at", self._bytes + 2)}  store atomic i64 1, ptr %out.at monotonic, align 8
  ret void
work:
"""
            give = f"  call void @free(ptr {own})\n"
        return f"""define internal void @{self._symbol}.range(ptr %frame, i64 %first, i64 %past) nounwind {{
{self._field("%error.at", self._bytes + 1)}  %before = load atomic i64, ptr %error.at monotonic, align 8
  %place = lshr i64 %before, 8
  %late = icmp ult i64 %place, %first
  br i1 %late, label %skip, label %do
skip:
  ret void
do:
{loads}{take}{self._call("%error", "%first", "%past")}\
  %old = atomicrmw umin ptr %error.at, i64 %error monotonic
{give}  ret void
}}
"""

    def _entry(self) -> str:
        sizes = [f"i64 {x.text}" for x in self._sizes]
        formal = [f"ptr noalias {x.text}" for x in self._arrays]
        formal += ["i64 %batch", "i64 %cost", "i64 %bytes", *sizes]
        stores = "".join(
            self._field(f"%p{i}", i) + f"  store {value}, ptr %p{i}\n"
            for i, value in enumerate([*self._pointers, *self._numbers, "i64 %bytes", "i64 -1", "i64 0"])
        )
        count, part_cost, parts = "%batch", "%cost", ""
        if self._has_parts:
            count, part_cost = "%count", "%part.cost"
            parts = f"""  %parts = call i64 @{self._symbol}.parts({", ".join(_passed(self._parts))})
  %count = mul i64 %batch, %parts
  %empty = icmp eq i64 %parts, 0
  %least = select i1 %empty, i64 1, i64 %parts
  %part.cost = udiv i64 %cost, %least
"""
        # Few parts, even one, also need BLAS with one thread, so that products round as with more threads.
        several = 0 if self._has_parts and self._calls_blas else 1
        limit = _BLAS_SCALES if self._calls_blas and not self._has_parts else (1 << 63) - 1
        return f"""define i64 @{self._symbol}({", ".join(formal)}) nounwind {{
{parts}  %frame = alloca {self._frame}, align 16
  %several = icmp sgt i64 {count}, {several}
  %nothing = icmp eq i64 {part_cost}, 0
  %unit = select i1 %nothing, i64 1, i64 {part_cost}
  %few = udiv i64 {THRESHOLD_PICOSECONDS}, %unit
  %large = icmp ugt i64 {count}, %few
  %scales = icmp ult i64 %unit, {limit}
  %some = and i1 %several, %large
  %split = and i1 %some, %scales
  br i1 %split, label %share, label %alone
share:
{stores}{self._share(count)}shared:
  %first.error = load i64, ptr %p{self._bytes + 1}
  %out = load i64, ptr %p{self._bytes + 2}
  %no.memory = icmp ne i64 %out, 0
  br i1 %no.memory, label %alone, label %end
alone:
{self._call("%all.errors", "0", count)}  br label %end
end:
  %error = phi i64 [ %first.error, %shared ], [ %all.errors, %alone ]
  %fine = icmp eq i64 %error, -1
  %number = and i64 %error, 255
  %status = select i1 %fine, i64 0, i64 %number
  ret i64 %status
}}
"""

    def _share(self, count: str) -> str:
        """Shares the positions; BLAS is limited where it might use threads."""
        passed = f"ptr @{self._symbol}.range, ptr %frame, i64 0, i64 {count}, i64 %unit, i64 1"
        share = f"  call void @graphc_share({passed})\n  br label %shared\n"
        limited = f"  call void @graphc_share_blas({passed})\n  br label %shared\n"
        if not self._calls_blas:
            return share
        if self._has_parts:
            return limited
        return f"""  %middle = icmp ugt i64 %unit, {_BLAS_SPLITS}
  br i1 %middle, label %limited, label %free
limited:
{limited}free:
{share}"""


_LETTERS = {"f32": "s", "f64": "d", "c64": "c", "c128": "z"}


def kernel_call(name: str, types: Sequence[Type], attributes: Mapping[str, int]) -> KernelCall:
    """A kernel for types and attributes."""
    keywords = tuple(sorted(attributes))
    return KernelCall(
        name, tuple(t.name for t in types), keywords, tuple(int(attributes[k]) for k in keywords)
    )


class _Attributes:
    """Those of a kernel, by name."""

    def __init__(self, given: Mapping[str, int]) -> None:
        vars(self).update(given)


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
    sizes = {dim: Value(f"%n.{dim}", I64) for dim in signature.dims}
    keywords = _attributes(kernel, dict(zip(call.keywords, call.values, strict=True)))
    known: dict[str, Operand] = {**sizes, "part": Value("%part", I64), **keywords}
    core = f"{symbol}.core"
    own = _named(kernel.function, known, len(arrays))
    result = translator.define(kernel.function, core, [*arrays, *own], "internal ")
    parts = None
    if kernel.parts is not None:
        parts = _named(kernel.parts, known)
        translator.define(kernel.parts, f"{symbol}.parts", parts, "internal ")
    batches = Batches(
        symbol,
        core,
        signature,
        arrays,
        [*sizes.values()],
        own,
        fails=result is not None,
        calls_blas=any(name.startswith(("lapack_", "blas_")) for name in translator.called),
        parts=parts,
    )
    declarations = translator.declarations | batches.declarations()
    return "\n".join([translator.definitions() + batches.text(), *sorted(declarations), ""])


def _passed(operands: Iterable[Operand]) -> list[str]:
    return [f"i64 {x.text}" for x in operands if isinstance(x, Value)]


def _named(function: Callable[..., Any], known: Mapping[str, Operand], skipped: int = 0) -> list[Operand]:
    """Values of the parameters of a function but the first ones, by their names."""
    return [known[name] for name in [*inspect.signature(function).parameters][skipped:]]


def _attributes(kernel: Kernel, given: Mapping[str, int]) -> dict[str, Operand]:
    """Values of the keyword parameters; those with defaults need not be given, `attributes` are all."""
    parameters = inspect.signature(kernel.function).parameters
    if "attributes" in parameters:
        return {**{name: Static(x) for name, x in given.items()}, "attributes": Static(_Attributes(given))}
    return {
        name: Static(given[name] if name in given or p.default is p.empty else p.default)
        for name, p in parameters.items()
        if p.kind is p.KEYWORD_ONLY
    }
