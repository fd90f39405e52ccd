# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Lowered kernels to artifacts, with the disk cache for their parts.

Text around the translated kernel gives it the uniform kernel ABI over MLIR's expanded memref arguments.
"""

from __future__ import annotations

from collections.abc import Collection, Sequence
from dataclasses import replace

from graphc.backends import CompileLog, CompileOptions, Resources, toolchain
from graphc.backends.cpu.entry import EXPORTS as ENTRY_EXPORTS
from graphc.backends.cpu.entry import entry_ir
from graphc.backends.cpu.entry_calls import helpers_ir
from graphc.backends.cpu.lower import Lowered
from graphc.backends.cpu.object import Machine, compile_to_object, this_machine
from graphc.backends.cpu.pipeline import OPT_LEVEL
from graphc.library.define import kernel_parts
from graphc.library.float_environment import FLUSH, SAVE, SET, environment_ir
from graphc.library.helpers import Allocation, Arena
from graphc.library.interrupts import poll_ir, polls, tick_ir
from graphc.library.markers import places_ir
from graphc.library.products import product_parts
from graphc.library.profile import EXPORTS, profile_ir
from graphc.library.random import define_random
from graphc.library.scalars import define_scalars
from graphc.library.workspace import NOTHING, memory_ir, workspace_table
from graphc.native.parts import Definitions, Part, PartStore, Piece
from graphc_runtime import elf, layout
from graphc_runtime.artifact import Artifact
from graphc_runtime.cache import disk_cache
from graphc_runtime.interrupts import ENVIRONMENT_WORD
from graphc_runtime.manifest import Manifest, Signature
from graphc_runtime.record import record
from graphc_runtime.symbols import DESCRIPTORS

Shape = Sequence[int | None]
# What the runtime and the entry look up.
KERNEL_EXPORTS = ("graphc_run", "graphc_shapes")
MEMORY_EXPORTS = frozenset({"graphc_release", "graphc_unload"})
# Kernels with more arguments, five for a vector, get them in memory.
MANY_ARGUMENTS = 256
# The first line of functions that load them: without a label, the block would take the first number.
LOADING = "load:"


def kernel_wrappers(
    inputs: Sequence[Shape],
    outputs: Sequence[Shape],
    *,
    has_shapes: bool,
    plain: Collection[str] = (),
    unused: Sequence[Shape] = (),
    poison: Sequence[int] | None = None,
    donated: Sequence[int] = (),
    flush: str = "",
    interruptible: bool = False,
) -> str:
    """Defines `graphc_run` and `graphc_shapes` on top of `main` and `shapes`.

    Args:
        inputs: static shapes of the inputs (None where dynamic).
        outputs: static shapes of the results.
        has_shapes: whether the module defines `@shapes`; otherwise `graphc_shapes` only returns success.
        plain: those of `main` and `shapes` whose wrappers LLVM does not optimise. Such a wrapper with what is
            inlined into it is code without loops, which runs once a call.
        unused: static shapes of arguments between inputs and results that the kernel does not read (cells
            that are only written).
        poison: bytes of an element of each result: fill results with 0xFF first, and test at the end that
            nothing was written next to a workspace.
        donated: positions of results that the kernel computes in an argument.
        flush: the triple of the target, to compute with denormal numbers flushed to zero; else empty.
        interruptible: whether the kernel polls for signals: handlers run in the caller's environment.

    Returns:
        IR text. `data` holds a pointer per input and result; `dims` all their sizes, flattened in the same
        order. Static sizes are constants in the calls, whatever `dims` says.
    """
    first = len(inputs) + len(unused)
    run = _run_call(inputs, outputs, unused, donated)
    names = _NAMES if not flush else [f"{name}_flushed" for name in _NAMES]
    how = {name: f"{_PLAIN if name in plain else 'noinline'} {{" for name in ("main", "shapes")}
    text = [
        f"define i64 @{names[0]}(ptr %ctx, ptr %data, ptr %dims) {how['main']}",
        *(run.setup if not run.is_long or poison is not None else ()),
        *([] if poison is None else run.fill(first, poison)),
        f"  %status = call i64 @main({run.passed()})",
        *(["  ret i64 %status"] if poison is None else _TESTED),
        "}",
        f"define i64 @{names[1]}(ptr %ctx, ptr %data, ptr %dims, ptr %out) {how['shapes']}",
    ]
    if has_shapes:
        shapes = _shapes_call(inputs, outputs)
        text += [
            *(() if shapes.is_long else shapes.setup),
            f"  %status = call i64 @shapes({shapes.passed()})",
            "  ret i64 %status",
        ]
    else:
        text.append("  ret i64 0")
    text.append("}")
    if poison is not None:
        text += ["declare i64 @graphc_intact(ptr)", "declare void @llvm.memset.p0.i64(ptr, i8, i64, i1)"]
    if flush:
        text += [environment_ir(flush), *_flushing(names, interruptible)]
    return "\n".join([*text, ""])


# Nothing is thrown, which LLVM would find out itself.
_PLAIN = "noinline optnone nounwind"
_UNIT = "!llvm.dbg.cu = !{"


def with_scope(text: str) -> str:
    """Gives `graphc_run` and its call of `main` a place in the debug information of a module, if it has any:
    the lines of what is inlined into a function without one are lost.

    Args:
        text: the module, with what `kernel_wrappers` defines.
    """
    _, mark, rest = text.partition(_UNIT)
    if not mark:
        return text
    unit = rest.partition(",")[0].partition("}")[0]
    lines = text.split("\n")
    first = 1 + max(
        int(line[1:].partition(" ")[0]) for line in lines if line[:1] == "!" and line[1:2].isdigit()
    )
    for i, line in enumerate(lines):
        if line.startswith("define i64 @graphc_run"):
            lines[i] = f"{line.removesuffix('{')}!dbg !{first} {{"
        elif line.startswith("  %status = call i64 @main("):
            lines[i] = f"{line}, !dbg !{first + 1}"
    lines += [
        (
            f'!{first} = distinct !DISubprogram(name: "graphc_run", scope: !{first + 2}, '
            f"file: !{first + 2}, type: !{first + 3}, spFlags: DISPFlagDefinition | DISPFlagOptimized, "
            f"unit: {unit})"
        ),
        f"!{first + 1} = !DILocation(line: 0, scope: !{first})",
        f'!{first + 2} = !DIFile(filename: "-", directory: "")',
        f"!{first + 3} = !DISubroutineType(types: !{{}})",
        "",
    ]
    return "\n".join(lines)


def load_arguments(
    text: str,
    inputs: Sequence[Shape],
    outputs: Sequence[Shape],
    *,
    unused: Sequence[Shape] = (),
    donated: Sequence[int] = (),
) -> str:
    """Kernels with very many arguments get them in memory, and load them themselves.

    LLVM takes time n squared for a function of n arguments.

    Args:
        text: defines `main`, and perhaps `shapes`.
        inputs, outputs, unused, donated: see `kernel_wrappers`.
    """
    for name, call in (
        ("main", _run_call(inputs, outputs, unused, donated)),
        ("shapes", _shapes_call(inputs, outputs)),
    ):
        start = text.find(f"define internal i64 @{name}(")
        if call.is_long and start >= 0:
            end = text.index("{\n", start)
            text = f"{text[:start]}{_loading(name, text[start:end], call)}{text[end + 2 :]}"
    return text


def _loading(name: str, header: str, call: _Call) -> str:
    """The beginning of a function that defines what were its parameters, with their numbers.

    They are known not to overlap no longer, which matters in loops; in such kernels these have functions of
    their own.
    """
    attributes = header[header.rindex(")") + 1 :]
    lines = [
        f"define internal i64 @{name}({', '.join(call.parameters)}){attributes}{{",
        LOADING,
        *call.setup,
    ]
    for number, argument in enumerate(call.arguments):
        kind, value = argument.split(" ")
        copy = f"getelementptr i8, ptr {value}, i64 0" if kind == "ptr" else f"add i64 {value}, 0"
        lines.append(f"  %{number} = {copy}")
    count = header[header.index("(") :].count("%")
    assert count == len(call.arguments)
    return "\n".join([*lines, f"  br label %{count}", "", f"{count}:", ""])


def _run_call(
    inputs: Sequence[Shape], outputs: Sequence[Shape], unused: Sequence[Shape], donated: Sequence[int]
) -> _Call:
    """The call of `main`."""
    first = len(inputs) + len(unused)
    skip = [*range(len(inputs), first), *(first + position for position in donated)]
    return _Call([*inputs, *unused, *outputs], skip)


def _shapes_call(inputs: Sequence[Shape], outputs: Sequence[Shape]) -> _Call:
    """The call of `shapes`."""
    call = _Call(inputs)
    if any(None in shape for shape in outputs):
        call.arguments.append("ptr %out")
        call.parameters.append("ptr %out")
    return call


_NAMES = ("graphc_run", "graphc_shapes")


def _flushing(names: Sequence[str], interruptible: bool) -> list[str]:
    """`graphc_run` and `graphc_shapes` around functions that are to compute without denormal numbers.

    Kernels return from errors too, so there is one way out.
    """
    parameters = "ptr %ctx, ptr %data, ptr %dims"
    lines = []
    for name, inner, more in zip(_NAMES, names, ("", ", ptr %out"), strict=True):
        lines += [
            f"define i64 @{name}({parameters}{more}) noinline {{",
            "  %callers = alloca i64, align 8",
            f"  call void @{SAVE}(ptr %callers)",
        ]
        if interruptible and name == "graphc_run":
            lines += [
                "  %word = load i64, ptr %callers",
                f"  %kept = getelementptr i64, ptr %ctx, i64 {ENVIRONMENT_WORD}",
                "  store i64 %word, ptr %kept",
            ]
        lines += [
            f"  call void @{FLUSH}(ptr %callers)",
            f"  %status = call i64 @{inner}({parameters}{more})",
            f"  call void @{SET}(ptr %callers)",
            "  ret i64 %status",
            "}",
        ]
    return lines


# What was written next to a workspace counts for more than success, but not for more than a failed check.
_TESTED = (
    "  %damage = call i64 @graphc_intact(ptr %ctx)",
    "  %failed = icmp ne i64 %status, 0",
    "  %verdict = select i1 %failed, i64 %status, i64 %damage",
    "  ret i64 %verdict",
)


class _Call:
    """Loads of pointers and sizes, and the expanded argument list of a call."""

    def __init__(self, shapes: Sequence[Shape], skip: Sequence[int] = ()) -> None:
        self.setup: list[str] = []
        self.arguments = ["ptr %ctx"]
        self.parameters = ["ptr %ctx", "ptr %data", "ptr %dims"]
        self.sizes: dict[int, list[str]] = {}
        position = 0
        for number, shape in enumerate(shapes):
            if number in skip:
                position += len(shape)
                continue
            self.setup += [
                f"  %a{number} = getelementptr ptr, ptr %data, i64 {number}",
                f"  %p{number} = load ptr, ptr %a{number}",
            ]
            sizes = []
            for axis, size in enumerate(shape):
                if size is None:
                    self.setup += [
                        f"  %e{number}_{axis} = getelementptr i64, ptr %dims, i64 {position}",
                        f"  %d{number}_{axis} = load i64, ptr %e{number}_{axis}",
                    ]
                sizes.append(f"%d{number}_{axis}" if size is None else str(size))
                position += 1
            self.sizes[number] = sizes
            strides = self._strides(number, sizes)
            pointer = f"ptr %p{number}"
            self.arguments += [pointer, pointer, "i64 0", *(f"i64 {x}" for x in (*sizes, *strides))]

    @property
    def is_long(self) -> bool:
        """True if the function has its arguments in memory (see `load_arguments`)."""
        return len(self.arguments) > MANY_ARGUMENTS

    def passed(self) -> str:
        """The arguments of the call."""
        return ", ".join(self.parameters if self.is_long else self.arguments)

    def fill(self, first: int, items: Sequence[int]) -> list[str]:
        """Writes 0xFF to the arrays from number `first` on, whose elements have these sizes."""
        lines = []
        for number, item in enumerate(items, first):
            if number not in self.sizes:
                continue
            bytes_ = str(item)
            for axis, size in enumerate(self.sizes[number]):
                lines.append(f"  %f{number}_{axis} = mul i64 {bytes_}, {size}")
                bytes_ = f"%f{number}_{axis}"
            lines.append(f"  call void @llvm.memset.p0.i64(ptr %p{number}, i8 -1, i64 {bytes_}, i1 false)")
        return lines

    def _strides(self, number: int, sizes: list[str]) -> list[str]:
        """Row-major strides in elements."""
        strides = ["1"] * len(sizes)
        for axis in range(len(sizes) - 2, -1, -1):
            name = f"%s{number}_{axis}"
            self.setup.append(f"  {name} = mul nsw i64 {strides[axis + 1]}, {sizes[axis + 1]}")
            strides[axis] = name
        return strides


@record(frozen=True)
class Wrapped:
    """A kernel as LLVM IR.

    Attributes:
        text: defines `graphc_run` and `graphc_shapes`.
        pieces: modules of functions that it calls.
        inlined: module of functions that are inlined into these.
        parts: what it calls, but for what gives it memory.
        signature: of the call, with what became of donations.
    """

    text: str
    pieces: tuple[Piece, ...]
    inlined: str
    parts: list[Part]
    signature: Signature


def generate(
    lowered: Lowered,
    signature: Signature,
    options: CompileOptions,
    resources: Resources,
    log: CompileLog,
    *,
    machine: Machine | None = None,
    tiers: tuple[str, ...] | None = None,
) -> Artifact:
    """Wraps, optimises and emits the kernel.

    Args:
        lowered: the kernel.
        signature: how calls look.
        options: how code is made.
        resources: what may be used for it.
        log: gains the stages.
        machine: what code is made for; this machine by default.
        tiers: see `entry_parts`.
    """
    made_for = machine or this_machine()
    wrapped = wrap(lowered, signature, options, made_for)
    stages = log.stages
    tables = (workspace_table(entry) for record in lowered.memory for entry in record["workspaces"])
    memory = memory_ir(
        tuple(tables),
        keep_bytes=options.workspace_limit_mb << 20,
        poison=options.poison_memory,
        arena=any(isinstance(helper, (Allocation, Arena)) for helper in lowered.helpers),
    )
    ticks = poll_ir(polls(lowered.helpers), made_for.triple if options.flush_denormals else "")
    entries, parts = entry_parts(wrapped.signature, tiers, memory, ticks)
    code = compile_to_object(
        wrapped.text,
        exports=KERNEL_EXPORTS,
        pieces=wrapped.pieces,
        inlined_text=wrapped.inlined,
        parts=[*parts, *wrapped.parts],
        opt_level=OPT_LEVEL[options.mode],
        store=_part_store(resources, machine),
        threads=resources.threads,
        on_ir=None if stages is None else lambda name, ir: stages.append((name, ir)),
        machine=machine,
        is_wide=lowered.is_wide,
        is_single=lowered.is_single,
        is_vectorised=lowered.is_vectorised,
    )
    extra = {"kept": [*lowered.donated.kept], "profile": lowered.slots, "recomputed": lowered.recomputed}
    manifest = Manifest(
        wrapped.signature,
        sites=tuple(lowered.sites),
        symbols=tuple(elf.external_symbols(code)),
        target=made_for.to_dict(),
        entries=entries,
        tuple_items=layout.tuple_items(),
        extra={name: value for name, value in extra.items() if value},
        memory=tuple(lowered.memory),
    )
    return Artifact(manifest, code)


def entry_parts(
    signature: Signature, tiers: tuple[str, ...] | None, memory: str, ticks: str = ""
) -> tuple[tuple[str, ...], list[Part]]:
    """The native entries to a kernel, and the modules that call it and give it memory.

    Args:
        signature: arguments and results.
        tiers: native entries to include; the one this process uses if not given.
        memory: what gives it memory (see `graphc.library.workspace.memory_ir`).
        ticks: by what it notices Ctrl-C, if it does.
    """
    best = layout.tier()
    entries = tiers if tiers is not None else (best,) if best != "python" else ()
    specs = (*signature.inputs, *signature.cells, *signature.results)
    if any(DESCRIPTORS[spec.dtype].kind == "V" for spec in specs):
        # Python's buffers have no format for numbers that NumPy does not have.
        entries = tuple(name for name in entries if name != "buffer")
    parts = []
    text = memory + ticks
    if entries:
        entry = entry_ir(signature, entries, interruptible=bool(ticks), releases=memory != NOTHING)
        if text == NOTHING:  # too little for a module
            entry, text = entry + text, ""
        parts = [
            Part(entry, ENTRY_EXPORTS | MEMORY_EXPORTS, finished=True, level=0),
            Part(helpers_ir(entries), finished=True, level=0),
        ]
    return entries, [Part(text, MEMORY_EXPORTS, finished=True, level=0), *parts] if text else parts


def wrap(lowered: Lowered, signature: Signature, options: CompileOptions, machine: Machine) -> Wrapped:
    """The kernel with the uniform kernel ABI, and what it calls.

    Args:
        lowered, signature, options: see `generate`.
        machine: what code is made for.
    """
    used = lowered.n_arguments
    arguments = [spec.shape for spec in signature.arguments]
    results = [spec.shape for spec in signature.results]
    text = lowered.llvm_ir
    polling = polls(lowered.helpers)
    donated = [result for _, result in lowered.donated.pairs]
    text = load_arguments(text, arguments[:used], results, unused=arguments[used:], donated=donated)
    text += kernel_wrappers(
        arguments[:used],
        results,
        has_shapes=lowered.has_shapes,
        plain=lowered.plain,
        unused=arguments[used:],
        poison=[DESCRIPTORS[spec.dtype].itemsize for spec in signature.results]
        if options.poison_memory
        else None,
        donated=donated,
        flush=machine.triple if options.flush_denormals else "",
        interruptible=bool(polling),
    )
    text = with_scope(text)
    parts = kernel_parts(lowered.helpers)
    parts += product_parts(lowered.helpers, machine.features)
    draws = Definitions()
    define_random(lowered.helpers, draws)
    if draws.text():
        parts.append(Part(draws.text(), finished=True))
    measuring = profile_ir(lowered.helpers, machine.triple)
    if measuring:
        parts.append(Part(measuring, EXPORTS, finished=True, level=1))
    inlined = tick_ir(polling) + define_scalars(lowered.helpers)
    if any(record["workspaces"] or _lends_results(record["others"]) for record in lowered.memory):
        inlined += places_ir(poison=options.poison_memory, framed=bool(lowered.pieces))
    outcome = lowered.donated
    return Wrapped(
        text, lowered.pieces, inlined, parts, replace(signature, donated=outcome.pairs, spares=outcome.spares)
    )


def _lends_results(others: list[dict[str, object]]) -> bool:
    """True if buffers lie in the memory of results."""
    return any(str(buffer["place"]).startswith("result") for buffer in others)


def _part_store(resources: Resources, machine: Machine | None) -> PartStore:
    """The store for objects of parts: without a disk cache, in this process alone."""
    target = "" if machine is None else f";{machine}"
    if not resources.cache_dir:
        return PartStore(target)
    cache = disk_cache(resources.cache_dir, resources.cache_size_mb)
    return PartStore(f"{toolchain()}{target}", cache, resources.renew)
