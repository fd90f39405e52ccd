# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""The CPython entry of a compiled function, as LLVM IR text: `graphc_entry(self, args, nargs, kwnames)`.

Everything that is not the common case (other types, layouts, keywords, overlapping `out=`) goes to the Python
fallback in `self`, so a mistake made here in doubt costs time, never an answer.

Text, and not in the kernel language: it is one check after the other, which ones follows from the signature.

A result must share no memory with an argument or with another result: what does goes to the fallback.

Many inputs of one kind are read in a loop, so that the code does not grow with their number.

A kernel computes such a result in the argument's memory: both have one address. That is

* the donated array itself, if it is writable and shares no memory with another argument; the call returns it;
* the array given by `out=`, or a new one, after the argument has been copied there;
* the array of a cell, if nothing but the cell refers to it; else a new array, as before.

A spare, which the kernel does not read, is the result where it has the same sizes, on the same conditions.

The array of a cell can be read by other threads, so the GIL is kept while it changes.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import lru_cache
from typing import Any

from graphc.backends.cpu.entry_calls import DECLARED, VECTORCALL
from graphc.backends.cpu.tiers import VIEW_SIZE, BufferTier, StructTier, Tier
from graphc.native.vector_ir import Writer
from graphc_runtime import interrupts
from graphc_runtime.layout import tuple_items
from graphc_runtime.manifest import ArraySpec, Signature
from graphc_runtime.symbols import DESCRIPTORS

COPY = "declare void @llvm.memcpy.p0.p0.i64(ptr, ptr, i64, i1)\n"


class Lender:
    """Writes the code for the donated arguments of one entry.

    Args:
        entry: the entry that is being written; its arguments have been read.
        values: the objects of inputs and cells.
    """

    def __init__(self, entry: Any, values: list[str]) -> None:
        self._entry, self._values = entry, values
        self._w = entry.w
        self.source = {result: argument for argument, result in entry.s.donated}
        self.spare = {result: argument for argument, result in entry.s.spares}
        self.inputs = {
            result: argument for result, argument in self.source.items() if argument < len(entry.s.inputs)
        }

    def require_free(self) -> None:
        """Goes slow, with nothing owned, unless the donated inputs may be overwritten."""
        if self.inputs or self.spare:
            self._entry.measure(len(self._entry.s.arguments))
        for argument in self.inputs.values():
            for fact in self._may_change(argument):
                self._w.require(fact, "bail")

    def _may_change(self, argument: int) -> list[str]:
        """That an array is writable, and that it shares no memory with another argument."""
        w = self._w
        writeable = self._entry.tier.writeable(argument, self._values[argument])
        shared = w.let(
            "call i1 @graphc_shares(ptr %data, ptr %bytes, "
            f"i64 {argument}, i64 {len(self._entry.s.arguments)})"
        )
        return [writeable, w.let(f"xor i1 {shared}, true")]

    def give(self, result: int) -> None:
        """Makes the array of a donated argument the result, a new one where there is none."""
        if result in self.source:
            self._own(result, self.source[result])
        elif result in self.spare:
            self._offer(result, self.spare[result])
        else:
            self._entry.make(result)

    def _offer(self, result: int, argument: int) -> None:
        """Makes the array of a spare the result if it fits, else a new one."""
        w, first = self._w, self._entry.starts[argument]
        facts = [
            w.let(f"icmp eq i64 {w.load('i64', '%dims', 8 * (first + axis))}, {size}")
            for axis, size in enumerate(self._entry.sizes[result])
        ]
        self._own_or_new(w.all([*facts, *self._may_change(argument)]), result, argument, copies=False)

    def copy(self, result: int) -> None:
        """Copies a donated argument to where its result is, and lets the kernel work there."""
        w, argument = self._w, self.source[result]
        position = len(self._entry.s.arguments) + result
        target = w.load("ptr", "%data", 8 * position)
        w.line(
            f"  call void @llvm.memcpy.p0.p0.i64(ptr {target}, ptr {w.load('ptr', '%data', 8 * argument)}, "
            f"i64 {self._entry.bytes_of(argument)}, i1 false)"
        )
        w.store("ptr", target, "%data", 8 * argument)

    def update(self, result: int) -> None:
        """Makes the array of the new value of a cell: its own, or a copy."""
        argument = self.source[result]
        exclusive = self._entry.tier.exclusive(self._values[argument])
        if exclusive is None:
            self._entry.make(result)
            self.copy(result)
            return
        self._own_or_new(exclusive, result, argument, copies=True)
        self._entry.exclusive.append(exclusive)

    def _own_or_new(self, is_own: str, result: int, argument: int, *, copies: bool) -> None:
        """Makes the array of an argument the result under a condition, else a new one, perhaps a copy."""
        w = self._w
        w.line(f"  br i1 {is_own}, label %own{result}, label %share{result}, !prof !0")
        w.label(f"own{result}")
        self._own(result, argument)
        w.line(f"  br label %ready{result}")
        w.label(f"share{result}")
        self._entry.make(result)
        if copies:
            self.copy(result)
        w.line(f"  br label %ready{result}")
        w.label(f"ready{result}")

    def _own(self, result: int, argument: int) -> None:
        w, value = self._w, self._values[argument]
        w.line(f"  call void @Py_IncRef(ptr {value})")
        w.store("ptr", value, "%owned", 8 * result)
        data = w.load("ptr", "%data", 8 * argument)
        w.store("ptr", data, "%data", 8 * (len(self._entry.s.arguments) + result))


# Shorter runs are written out, which is a little faster to call.
MANY_EQUAL = 24


def sizes_of(spec: ArraySpec) -> list[str | None]:
    """The sizes of an array that are known, as text."""
    return [None if size is None else str(size) for size in spec.shape]


def runs(signature: Signature) -> list[tuple[int, int]]:
    """First and end of each run of inputs of one dtype and shape; of donated ones each is its own."""
    lent = {argument for argument, _ in (*signature.donated, *signature.spares)}
    found: list[tuple[int, int]] = []
    for i, spec in enumerate(signature.inputs):
        if found and not {i - 1, i} & lent and _kind(signature.inputs[i - 1]) == _kind(spec):
            found[-1] = found[-1][0], i + 1
        else:
            found.append((i, i + 1))
    return found


def _kind(spec: ArraySpec) -> tuple[str, tuple[int | None, ...]]:
    return spec.dtype, tuple(spec.shape)


class Readers:
    """Functions that read one array each.

    Args:
        tier: its name.
        make: an entry of the same tier, by its signature.

    Attributes:
        texts: the functions that are needed.
    """

    def __init__(self, tier: str, make: Callable[[Signature], Any]) -> None:
        self._tier, self._make = tier, make
        self.texts: list[str] = []
        self._names: dict[tuple[str, tuple[int | None, ...]], str] = {}

    def read(self, entry: Any, first: int, end: int) -> str:
        """Writes the loop over some inputs; the number of all their elements."""
        w, before = entry.w, entry.w.block
        spec = entry.s.inputs[first]
        name = self._names.get(_kind(spec)) or self._define(spec)
        loop, done = f"read{first}", f"done{first}"
        w.line(f"  br label %{loop}")
        w.label(loop)
        step, total = f"%next{first}", f"%total{first}"
        i = w.let(f"phi i64 [{first}, %{before}], [{step}, %{loop}_more]")
        elements = w.let(f"phi i64 [0, %{before}], [{total}, %{loop}_more]")
        value = w.let(f"load ptr, ptr {w.let(f'getelementptr ptr, ptr %args, i64 {i}')}")
        data = w.let(f"getelementptr ptr, ptr %data, i64 {i}")
        count = w.let(f"getelementptr i64, ptr %bytes, i64 {i}")
        # The sizes of inputs of the run lie one after the other.
        position = w.let(f"mul i64 {w.let(f'sub i64 {i}, {first}')}, {spec.rank}")
        dims = w.let(f"getelementptr i64, ptr {w.address('%dims', 8 * entry.starts[first])}, i64 {position}")
        views = "null"
        if entry.tier.has_views:
            views = w.let(f"getelementptr [{VIEW_SIZE} x i8], ptr %views, i64 {i}")
        found = w.let(f"call i64 @{name}(ptr {value}, ptr {data}, ptr {dims}, ptr {count}, ptr {views})")
        good = w.let(f"icmp sge i64 {found}, 0")
        w.line(f"  br i1 {good}, label %{loop}_more, label %{entry.tier.unlike}, !prof !0")
        w.label(f"{loop}_more")
        w.line(f"  {total} = add i64 {elements}, {found}")
        w.line(f"  {step} = add i64 {i}, 1")
        w.line(f"  br i1 {w.let(f'icmp eq i64 {step}, {end}')}, label %{done}, label %{loop}")
        w.label(done)
        return total

    def _define(self, spec: ArraySpec) -> str:
        """Writes the function for a dtype and shape: how many elements, or -1 if the array does not fit."""
        name = self._names[_kind(spec)] = f"graphc_read_{self._tier}_{len(self._names)}"
        reader = self._make(Signature((spec,), returns="none", needs_shapes=False))
        w = reader.w
        parameters = "ptr %value, ptr %data, ptr %dims, ptr %bytes, ptr %views"
        w.line(f"define internal i64 @{name}({parameters}) noinline {{")
        w.label("begin")
        reader.array(0, "%value", sizes_of(spec))
        reader.measure(1)
        w.line(f"  ret i64 {reader.counts[0]}")
        w.label(reader.tier.unlike)
        w.line("  ret i64 -1")
        w.line("}")
        self.texts.append(w.text())
        return name


# Up to so many pairs of arrays are compared in place; a call takes as long as three of them.
_PAIRS = 3


def require_apart(
    w: Writer, first: int, end: int, bytes_of: Callable[[int], str], measure: Callable[[int], None]
) -> None:
    """Goes slow unless each array from `first` on shares no memory with those before it.

    Args:
        w: the entry that is being written; addresses and sizes of these arrays have been read.
        first: the first result.
        end: how many arguments and results there are.
        bytes_of: writes the size of an array in bytes.
        measure: stores the sizes of so many arrays.
    """
    pairs = [(i, j) for i in range(first, end) for j in range(i)]
    if len(pairs) > _PAIRS:
        measure(end)
        overlap = w.let(f"call i1 @graphc_overlap(ptr %data, ptr %bytes, i64 {first}, i64 {end})")
        w.require(w.let(f"xor i1 {overlap}, true"), "bail")
        return
    starts = [w.load("i64", "%data", 8 * i) for i in range(end)]
    ends = [w.let(f"add i64 {start}, {bytes_of(i)}") for i, start in enumerate(starts)]
    for i, j in pairs:
        before = w.let(f"icmp ule i64 {ends[i]}, {starts[j]}")
        w.line(f"  br i1 {before}, label %apart{i}_{j}, label %after{i}_{j}")
        w.label(f"after{i}_{j}")
        after = w.let(f"icmp ule i64 {ends[j]}, {starts[i]}")
        w.line(f"  br i1 {after}, label %apart{i}_{j}, label %bail, !prof !0")
        w.label(f"apart{i}_{j}")


_ENTRIES = {"struct": "graphc_entry", "buffer": "graphc_entry_buffer"}
EXPORTS = frozenset({*_ENTRIES.values(), "graphc_vectorcall"})
_CALL = "call i64 @graphc_run(ptr %ctx, ptr %data, ptr %dims)"


# The text depends on these alone, and many functions of a program have one signature.
@lru_cache(maxsize=16)
def entry_ir(
    signature: Signature,
    tiers: tuple[str, ...] = ("struct",),
    *,
    interruptible: bool = False,
    releases: bool = True,
) -> str:
    """IR text of the entries, and declarations of the kernels and helpers (`helpers_ir`) they call.

    Written for the lowest level of code generation, which takes a sixth of the time of the next one. That
    keeps nothing in registers from one block to the next, and branches well on what the same block has just
    compared: so there is a branch for each fact, and what several blocks read is in memory from the start.

    Args:
        signature: arguments and results of the function.
        tiers: "struct" defines `graphc_entry` and `graphc_vectorcall`, "buffer"
            `graphc_entry_buffer`.
        interruptible: whether the kernel polls for signals (see `graphc.library.interrupts`).
        releases: whether the kernel takes memory, which calls give back.
    """
    text = [DECLARED]
    if signature.donated:
        text.append(COPY)
    for name in tiers:
        text += _entry(name, signature, interruptible, releases)
    if "struct" in tiers:
        text.append(VECTORCALL)
    if releases:
        text.append("declare void @graphc_release(ptr)\n")
    if interruptible:
        text.append(f"@{interrupts.SYMBOL} = external global i8\n")
    if signature.updates:
        text.append("@graphc_turn = external global i64\n")
    used = {spec.dtype for spec in (*signature.arguments, *signature.results)}
    text += [f"@descr_{dtype} = external global i8\n" for dtype in sorted(used)]
    return "".join(text)


def _entry(name: str, signature: Signature, interruptible: bool, releases: bool) -> list[str]:
    """The entry of a tier, after what it calls."""

    def make(signature: Signature) -> _Entry:
        writer = Writer()
        tier: Tier = StructTier(writer, tuple_items()) if name == "struct" else BufferTier(writer)
        return _Entry(signature, writer, tier, readers, interruptible=interruptible, releases=releases)

    readers = Readers(name, make)
    text = make(signature).define(_ENTRIES[name])
    return [*readers.texts, text]


class _Entry:
    """Writes one entry.

    Labels: `slow` owns nothing, `bail` releases and goes slow, `fail` releases and raises.
    """

    def __init__(
        self,
        signature: Signature,
        writer: Writer,
        tier: Tier,
        readers: Readers,
        *,
        interruptible: bool,
        releases: bool,
    ) -> None:
        self.s, self.w, self.tier, self.readers = signature, writer, tier, readers
        self.interruptible, self.releases = interruptible, releases
        # The number of elements of each array, and of all arrays of a run together.
        self.counts: list[str] = []
        self.totals: list[str] = []
        self.exclusive: list[str] = []
        self.errors: list[tuple[str, str]] = []
        self.repeats = False
        specs = (*signature.arguments, *signature.results)
        self.starts = [sum(spec.rank for spec in specs[:i]) for i in range(len(specs) + 1)]

    def define(self, name: str) -> str:
        w = self.w
        w.line(f"define ptr @{name}(ptr %self, ptr %args, i64 %nargs, ptr %kwnames) {{")
        w.label("begin")
        self._allocas()
        self._keywords()
        self._arguments()
        self._shapes()
        self._results()
        self._run()
        self._finish()
        self._cold()
        w.line("}")
        return w.text()

    def _allocas(self) -> None:
        w, s = self.w, self.s
        arrays = len(s.arguments) + len(s.results)
        w.line(f"  %data = alloca [{max(arrays, 1)} x ptr]")
        w.line(f"  %bytes = alloca [{max(arrays, 1)} x i64]")
        w.line(f"  %dims = alloca [{max(self.starts[-1], 1)} x i64]")
        w.line(f"  %given = alloca [{max(len(s.outputs), 1)} x ptr]")
        w.line(f"  %fresh = alloca [{max(self.starts[-1], 1)} x i64]")
        words = interrupts.CONTEXT_WORDS if self.interruptible else 3
        w.line(f"  %ctx = alloca [{words} x i64], align 8")
        w.clear("%ctx", 8 * words)
        if self.interruptible:
            w.store("ptr", f"@{interrupts.SYMBOL}", "%ctx", 8 * interrupts.HOOKS_WORD)
        # One array that escapes: separate slots would become a quadratic number of phis in `fail`.
        # After the results there is room for the list of them.
        w.line(f"  %owned = alloca [{len(s.results) + 1} x ptr]")
        w.clear("%owned", 8 * (len(s.results) + 1))
        self.tier.begin(arrays)

    def _keywords(self) -> None:
        """Checks the argument count; stores the objects given by `out=` (null without it)."""
        w, count = self.w, len(self.s.inputs)
        w.require(w.let(f"icmp eq i64 %nargs, {count}"), "slow")
        plain = w.let("icmp eq ptr %kwnames, null")
        if not self.s.outputs:
            w.require(plain, "slow")
            return
        w.line("  store ptr null, ptr %given")
        w.line(f"  br i1 {plain}, label %ready, label %keyword")
        w.label("keyword")
        self.tier.require_out_keyword("%kwnames")
        given = w.load("ptr", "%args", 8 * count)
        single = self.s.returns == "single"
        values = [given] if single else self.tier.sequence(given, len(self.s.outputs))
        for i, value in enumerate(values):
            w.store("ptr", value, "%given", 8 * i)
        w.line("  br label %ready")
        w.label("ready")

    def _arguments(self) -> None:
        w, s = self.w, self.s
        if s.updates:
            self._require_no_turn("slow")
        given = []
        for first, end in runs(s):
            if end - first >= MANY_EQUAL:
                self.totals.append(self.readers.read(self, first, end))
                given += [""] * (end - first)
                self.counts += [""] * (end - first)
                continue
            for i in range(first, end):
                given.append(w.load("ptr", "%args", 8 * i))
                self.array(i, given[-1], sizes_of(s.inputs[i]))
        self.cells = [self.tier.cell("%self", i) for i in range(len(s.cells))]
        values = []
        for i, spec in enumerate(s.cells):
            values.append(self.tier.cell_value(self.cells[i]))
            self.array(len(s.inputs) + i, values[-1], sizes_of(spec))
        self.tier.hold(values)
        self.values = values
        self.lender = Lender(self, given + values)

    def array(self, index: int, value: str, shape: list[str | None], *, writeable: bool = False) -> None:
        """Checks one array object, and stores its pointer and sizes."""
        w = self.w
        spec = (*self.s.arguments, *self.s.results)[index]
        data, dims = self.tier.array(index, value, spec, writeable=writeable)
        w.store("ptr", data, "%data", 8 * index)
        sizes = []
        for axis, expected in enumerate(shape):
            sizes.append(w.load("i64", dims, 8 * axis))
            if expected is not None:
                w.require(w.let(f"icmp eq i64 {sizes[-1]}, {expected}"), self.tier.unlike)
            w.store("i64", sizes[-1], "%dims", 8 * (self.starts[index] + axis))
        if not writeable:
            self.counts.append(w.product(sizes))

    def _shapes(self) -> None:
        """Fills in the sizes of the results."""
        w, s = self.w, self.s
        first = len(s.arguments)
        # Where no size is known, they go where they are wanted.
        wanted = all(size is None for spec in s.results for size in spec.shape)
        if s.needs_shapes:
            fresh = w.address("%dims", 8 * self.starts[first]) if wanted else "%fresh"
            status = w.let(f"call i64 @graphc_shapes(ptr %ctx, ptr %data, ptr %dims, ptr {fresh})")
            self._require_success(status)
        dynamic = 0
        self.sizes: list[list[str]] = []
        for i, spec in enumerate(s.results, first):
            sizes = []
            for axis, size in enumerate(spec.shape):
                place = 8 * (self.starts[i] + axis)
                value = str(size)
                if size is None:
                    value = w.load("i64", "%dims", place) if wanted else w.load("i64", "%fresh", 8 * dynamic)
                    dynamic += 1
                if not wanted:
                    w.store("i64", value, "%dims", place)
                sizes.append(value)
            self.sizes.append(sizes)
            self.counts.append(w.product(sizes))

    def _require_success(self, status: str) -> None:
        good = self.w.let(f"icmp eq i64 {status}, 0")
        self.errors.append((status, self.w.block))
        self.w.require(good, "error")

    def _results(self) -> None:
        """Takes the arrays given by `out=`, or makes new ones; updates are always new."""
        w, s = self.w, self.s
        if s.outputs:
            given = w.let(f"icmp ne ptr {w.load('ptr', '%given', 0)}, null")
            w.line(f"  br i1 {given}, label %take, label %make, !prof !1")
            w.label("take")
            self._take()
            w.line("  br label %have")
            w.label("make")
            self.lender.require_free()
            for i in range(len(s.outputs)):
                self.lender.give(i)
            w.line("  br label %have")
            w.label("have")
        for i in range(len(s.outputs), len(s.results)):
            (self.lender.update if i in self.lender.source else self.make)(i)
        if self._makes_list_first():
            self._make_list()

    def _take(self) -> None:
        w, first = self.w, len(self.s.arguments)
        outs = [w.load("ptr", "%given", 8 * i) for i in range(len(self.s.outputs))]
        for i, value in enumerate(outs):
            self.array(first + i, value, list(self.sizes[i]), writeable=True)
        require_apart(w, first, first + len(outs), self.bytes_of, self.measure)
        for i, value in enumerate(outs):
            w.line(f"  call void @Py_IncRef(ptr {value})")
            w.store("ptr", value, "%owned", 8 * i)
        for i in self.lender.inputs:
            self.lender.copy(i)

    def bytes_of(self, i: int) -> str:
        """The size in bytes of an argument or a result."""
        spec = (*self.s.arguments, *self.s.results)[i]
        return self.w.let(f"mul i64 {self.counts[i]}, {DESCRIPTORS[spec.dtype].itemsize}")

    def measure(self, count: int) -> None:
        """Stores the sizes in bytes of the first arguments and results; those of runs are there already."""
        for i in range(count):
            if self.counts[i]:
                self.w.store("i64", self.bytes_of(i), "%bytes", 8 * i)

    def make(self, i: int) -> None:
        """Makes a new array for a result."""
        w, index = self.w, len(self.s.arguments) + i
        spec = self.s.results[i]
        shape = w.address("%dims", 8 * self.starts[index])
        w.line(f"  call void @Py_IncRef(ptr @descr_{spec.dtype})")
        new = w.let(
            f"call ptr @PyArray_NewFromDescr(ptr @PyArray_Type, ptr @descr_{spec.dtype}, i32 {spec.rank}, "
            f"ptr {shape}, ptr null, ptr null, i32 0, ptr null)"
        )
        w.store("ptr", new, "%owned", 8 * i)
        w.require(w.let(f"icmp ne ptr {new}, null"), "fail")
        w.store("ptr", self.tier.data(new), "%data", 8 * index)

    def _run(self) -> None:
        """Calls the kernel, without the GIL when there is enough to do."""
        w = self.w
        work = w.sum([*filter(None, self.counts), *self.totals])
        big = w.let(f"icmp sge i64 {work}, {self.s.gil_threshold}")
        if self.interruptible:
            fuel = w.let(f"select i1 {big}, i64 0, i64 {interrupts.FUEL}")
            w.store("i64", fuel, "%ctx", 8 * interrupts.FUEL_WORD)
        for exclusive in self.exclusive:
            big = w.let(f"and i1 {big}, {w.let(f'xor i1 {exclusive}, true')}")
        keeps = bool(self.s.updates) and bool(self.lender.inputs or self.lender.spare)
        if keeps:
            big = "false"
        if self.interruptible:
            held = interrupts.GIL_KEPT if self.exclusive or keeps else interrupts.GIL_SHARED
            gil = w.let(f"select i1 {big}, i64 {interrupts.GIL_RELEASED}, i64 {held}")
            w.store("i64", gil, "%ctx", 8 * interrupts.GIL_WORD)
        w.line(f"  br i1 {big}, label %unlock, label %run")
        w.label("unlock")
        saved = w.let("call ptr @PyEval_SaveThread()")
        status = w.let(_CALL)
        w.line(f"  call void @PyEval_RestoreThread(ptr {saved})")
        self._end_of_run(status)
        w.label("run")
        self._end_of_run(w.let(_CALL))
        w.label("ran")

    def _end_of_run(self, status: str) -> None:
        good = self.w.let(f"icmp eq i64 {status}, 0")
        self.errors.append((status, self.w.block))
        self.w.line(f"  br i1 {good}, label %ran, label %error, !prof !0")

    def _require_unchanged(self) -> None:
        """Starts anew if another thread has replaced a value that the updates were computed from.

        That can only be while the GIL was released, or handed on by a poll. Donated inputs cannot be read
        again; calls with such keep the GIL.
        """
        w = self.w
        if not self.s.updates or self.lender.inputs or self.lender.spare:
            return
        self._require_no_turn("again")
        for cell, value in zip(self.cells, self.values, strict=True):
            now = self.tier.cell_value(cell, "again")
            w.require(w.let(f"icmp eq ptr {now}, {value}"), "again")
            self.repeats = True

    def _require_no_turn(self, otherwise: str) -> None:
        """Leaves updates to the fallback, which waits, while a call has a turn (`graphc_runtime.commit`)."""
        w = self.w
        w.require(w.let(f"icmp eq i64 {w.load('i64', '@graphc_turn', 0)}, 0"), otherwise)

    def _finish(self) -> None:
        """Builds what is returned, then stores the updates: nothing can fail after the first of them."""
        w, s = self.w, self.s
        if s.returns == "list" and not self._makes_list_first():
            self._make_list()
        self._require_unchanged()
        if s.returns == "list":
            result = w.load("ptr", "%owned", 8 * len(s.results))
            for i in range(len(s.outputs)):
                item = w.load("ptr", "%owned", 8 * i)
                w.let(f"call i32 @PyList_SetItem(ptr {result}, i64 {i}, ptr {item})")
        elif s.returns == "none":
            w.line("  call void @Py_IncRef(ptr @_Py_NoneStruct)")
            result = "@_Py_NoneStruct"
        else:
            result = w.load("ptr", "%owned", 0)
        for i, update in enumerate(s.updates, len(s.outputs)):
            item = w.load("ptr", "%owned", 8 * i)
            w.let(f"call i32 @PyList_SetItem(ptr {self.cells[update.cell]}, i64 0, ptr {item})")
        self._release()
        w.line(f"  ret ptr {result}")

    def _makes_list_first(self) -> bool:
        """True if nothing may fail once the kernel has run."""
        return self.s.returns == "list" and any(i >= len(self.s.outputs) for i in self.lender.source)

    def _make_list(self) -> None:
        w = self.w
        result = w.let(f"call ptr @PyList_New(i64 {len(self.s.outputs)})")
        w.store("ptr", result, "%owned", 8 * len(self.s.results))
        w.require(w.let(f"icmp ne ptr {result}, null"), "fail")

    def _release(self) -> None:
        if self.releases:
            self.w.line("  call void @graphc_release(ptr %ctx)")
        self.tier.release()

    def _cold(self) -> None:
        w = self.w
        if self.errors:
            w.label("error")
            status = w.let("phi i64 " + ", ".join(f"[{value}, %{block}]" for value, block in self.errors))
            handler = self.tier.item("%self", 1)
            w.line(f"  call void @graphc_raise(ptr {handler}, i64 {status}, ptr %ctx)")
            w.line("  br label %fail")
        w.label("fail")
        w.line(f"  call void @graphc_drop(ptr %owned, i64 {len(self.s.results) + 1})")
        self._release()
        w.line("  ret ptr null")
        if self.repeats:
            w.label("again")
            w.line(f"  call void @graphc_drop(ptr %owned, i64 {len(self.s.results) + 1})")
            w.line("  br label %bail")
        w.label("bail")
        self._release()
        w.line("  br label %slow")
        w.label("slow")
        fallback = self.tier.item("%self", 0)
        slow = w.let(f"call ptr @PyObject_Vectorcall(ptr {fallback}, ptr %args, i64 %nargs, ptr %kwnames)")
        w.line(f"  ret ptr {slow}")
