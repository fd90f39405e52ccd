# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""LLVM IR text to ELF object bytes, with llvmlite.

Products of any size, the kernels of linear algebra, sorting and Fourier transforms in float64, and what
entries call are the same text in all functions, and take longer to compile than most graphs. They ship for
three levels of x86-64, in `shipped_parts.bin`. A part that is not there, since its text or its options are
others, is compiled: so what ships is never out of date, only missing, and `python -m graphc_tools.pool`
writes it again.

LLVM's vectoriser is told about glibc's vector functions, for the libm calls that `expand-math` leaves.

A declaration that carries `vector-function-abi-variant` lets the vectoriser call `_ZGVdN4v_sin` for four
elements instead of `sin` four times (the vector function ABI of x86-64, and glibc's libmvec, which has all
functions used here since 2.35). The runtime resolves these names from libmvec.so.1. Without libmvec the
module is left alone, and loops with these calls stay scalar.
"""

from __future__ import annotations

import hashlib
import itertools
import math
import platform
import sys
import zlib
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import field, replace
from functools import cache, partial
from pathlib import Path
from threading import Lock, Thread
from typing import NamedTuple, TypeVar

from graphc.backends import llvm
from graphc.backends.cpu.entry_calls import helpers_ir
from graphc.errors import CompileError
from graphc.library.define import kernel_parts
from graphc.library.helpers import Gemm, KernelCall
from graphc.library.products import product_parts
from graphc.native.parts import Part, PartStore, Piece, used_ir
from graphc.passes.llvm._code import FUNCTIONS
from graphc_runtime import elf, steps, symbols
from graphc_runtime.errors import SymbolError
from graphc_runtime.record import record
from graphc_runtime.threads import usable_cores
from graphc_runtime.worker import checkpoint, current_task, resting, taking_part

# Instruction set letter of the ABI, the feature it needs, and its register size in bytes.
_SETS = (("b", "+sse4.2", 16), ("d", "+avx2", 32), ("e", "+avx512f", 64))
_SUFFIXES = {"f32": "f", "f64": ""}
# What the vectoriser may do with a call.
_PURE = "nofree nosync nounwind willreturn memory(none)"


def add_vector_variants(module: llvm.Module, features: str) -> None:
    """Gives libm functions and intrinsics that a module calls their vector variants.

    Args:
        module: before optimisation. Check `is_available` first.
        features: the target's features as LLVM writes them, `+avx2,-avx512f,...`; wider variants than the
            target has registers for are not offered, because calling them would be an illegal instruction.
    """
    used = []
    symbols = {function.name: function for function in module.functions()}
    for name in FUNCTIONS:
        for kind, suffix in _SUFFIXES.items():
            symbol, intrinsic = f"{name}{suffix}", f"llvm.{name}.{kind}"
            if intrinsic in symbols and symbol not in symbols:
                symbols[symbol] = symbols[intrinsic]
                symbols[symbol].rename(symbol)
            if symbol in symbols and symbols[symbol].is_declaration:
                used.append((name, suffix))
    if used:
        lines = [_declaration(name, suffix, features) for name, suffix in used]
        module.link_to("".join([*lines, _kept(used, features)]))


def _declaration(name: str, suffix: str, features: str) -> str:
    """The declarations of a function and of its variants."""
    scalar, arity = "float" if suffix else "double", FUNCTIONS[name]
    found = list(_variants(name, suffix, features))
    listed = ",".join(f"_ZGV_LLVM_N{lanes}{'v' * arity}_{name}{suffix}({symbol})" for symbol, lanes in found)
    mapping = f' "vector-function-abi-variant"="{listed}"' if listed else ""
    lines = [f"declare {scalar} @{name}{suffix}({', '.join([scalar] * arity)}) {_PURE}{mapping}\n"]
    for symbol, lanes in found:
        vector = f"<{lanes} x {scalar}>"
        lines.append(f"declare {vector} @{symbol}({', '.join([vector] * arity)})\n")
    return "".join(lines)


def _kept(used: list[tuple[str, str]], features: str) -> str:
    """Declarations without a caller would be dropped before the vectoriser runs."""
    return used_ir(symbol for name, suffix in used for symbol, _ in _variants(name, suffix, features))


@cache
def is_available(triple: str) -> bool:
    """True if code for this target runs where libmvec is: x86-64 Linux with glibc 2.35 or newer."""
    if not triple.startswith("x86_64") or "linux" not in triple or not symbols.has_vector_math():
        return False
    try:
        symbols.resolve("_ZGVbN2v_erf")  # new in 2.35, like most of the others
    except SymbolError:
        return False
    return True


def _variants(name: str, suffix: str, features: str) -> Iterator[tuple[str, int]]:
    """Symbol and lane count of each variant that the target can run."""
    enabled = set(features.split(","))
    for letter, feature, size in _SETS:
        if feature in enabled:
            lanes = size // (4 if suffix else 8)
            yield f"_ZGV{letter}N{lanes}{'v' * FUNCTIONS[name]}_{name}{suffix}", lanes


TRIPLE = "x86_64-unknown-linux-gnu"


class Level(NamedTuple):
    """Machines that parts ship for.

    Attributes:
        cpu, features: what their code is made for, as LLVM names it.
        only: how names of these CPUs begin.
    """

    cpu: str
    features: str
    only: str = ""


_V3 = "+avx,+avx2,+bmi,+bmi2,+f16c,+fma,+lzcnt,+movbe"
_V4 = f"{_V3},+avx512bw,+avx512cd,+avx512dq,+avx512f,+avx512vl"
# The first one that a machine is counts. LLVM takes half of a register of 64 bytes for loops, but for AMD's.
LEVELS = {
    "x86-64-v4 of AMD": Level("x86-64-v4", f"{_V4},-prefer-256-bit", "znver"),
    "x86-64-v4": Level("x86-64-v4", _V4),
    "x86-64-v3": Level("x86-64-v3", _V3),
}


def level_of(triple: str, cpu: str, features: str) -> str | None:
    """The highest level of x86-64 whose code a machine runs and for which parts ship, if any."""
    if triple != TRIPLE:
        return None
    has = frozenset(features.split(","))
    for name, level in LEVELS.items():
        needed = {feature for feature in level.features.split(",") if feature.startswith("+")}
        if needed <= has and cpu.startswith(level.only):
            return name
    return None


# Of the kernels that ship: name, types of operands and results, attributes.
KERNELS: tuple[tuple[str, str, str], ...] = (
    ("cholesky", "f64-f64", "check=1 lower=0"),
    ("cholesky", "f64-f64", "check=1 lower=1"),
    ("solve", "f64-f64-f64", "assume=0 check=1 lower=0 transposed=0"),
    ("solve", "f64-f64-f64", "assume=3 check=1 lower=0 transposed=0"),
    ("solve_triangular", "f64-f64-f64", "check=1 lower=0 trans=0 unit_diagonal=0"),
    ("solve_triangular", "f64-f64-f64", "check=1 lower=1 trans=0 unit_diagonal=0"),
    ("solve_triangular", "f64-f64-f64", "check=1 lower=1 trans=1 unit_diagonal=0"),
    ("solve_triangular", "f64-f64-f64", "check=1 lower=1 trans=2 unit_diagonal=0"),
    ("solve_triangular", "f64-f64-f64", "lower=0 trans=0 unit_diagonal=0"),
    ("solve_triangular", "f64-f64-f64", "lower=0 trans=1 unit_diagonal=0"),
    ("solve_triangular", "f64-f64-f64", "lower=1 trans=0 unit_diagonal=1"),
    ("solve_triangular", "f64-f64-f64", "lower=1 trans=1 unit_diagonal=1"),
    ("lu_factor", "f64-f64-i32", ""),
    ("permute_rows", "f64-i64-f64", "inverse=0"),
    ("permute_rows", "f64-i64-f64", "inverse=1"),
    ("pivot_to_permutation", "i32-i64", ""),
    ("inv", "f64-f64", ""),
    ("det", "f64-f64", ""),
    ("slogdet", "f64-f64-f64", ""),
    ("eigh", "f64-f64-f64", "lower=1"),
    ("eigvalsh", "f64-f64", "lower=1"),
    ("svd_full", "f64-f64-f64-f64", ""),
    ("singular_values", "f64-f64", ""),
    ("pinv", "f64-f64-f64", ""),
    ("qr", "f64-f64-f64", "complete=0"),
    ("sort", "f64-f64", ""),
    ("sort", "i64-i64", ""),
    ("argsort", "f64-i64", ""),
    ("partition", "f64-i64-f64", ""),
    ("searchsorted", "f64-f64-i64", "right=0"),
    ("fft_table", "f64-i64-f64", "real=0"),
    ("fft_table", "f64-i64-f64", "real=1"),
    ("rfft_any", "f64-f64-c128", "mode=0 radices=31"),
    ("irfft_any", "c128-f64-f64", "mode=0 radices=31"),
    ("fft_any", "c128-f64-c128", "inverse=0 mode=0 radices=31"),
)
PLACE = Path(__file__).with_name("shipped_parts.bin")


def shipped_parts(level: str) -> Iterator[Part]:
    """The parts that ship for a level, a key of `LEVELS`."""
    for tier in ("struct", "buffer"):
        yield Part(helpers_ir((tier,)), finished=True, level=0)
    for letter in "sd":
        for packs in (False, True):
            yield from product_parts([Gemm(letter=letter, packs=packs)], LEVELS[level].features)
    for name, types, attributes in KERNELS:
        values = dict(word.split("=") for word in attributes.split())
        numbers = tuple(map(int, values.values()))
        yield from kernel_parts([KernelCall(name, tuple(types.split("-")), tuple(values), numbers)])


def key_of(identity: str) -> bytes:
    """The name of a part's code in the file.

    Args:
        identity: all that the code depends on (`graphc.backends.cpu.object`).
    """
    return hashlib.sha256(identity.encode()).digest()


def find_shipped(identity: str) -> bytes | None:
    """The object of a part, if it ships."""
    code = _shipped().get(key_of(identity))
    return None if code is None else zlib.decompress(code)


def write_shipped(objects: Mapping[bytes, bytes]) -> None:
    """Writes the file: for each part its key, the number of bytes, and its object, compressed."""
    packed = {key: zlib.compress(code, 9) for key, code in objects.items()}
    PLACE.write_bytes(b"".join(key + len(code).to_bytes(4, "little") + code for key, code in packed.items()))


@cache
def _shipped() -> dict[bytes, bytes]:
    content, found, at = PLACE.read_bytes(), {}, 0
    while at < len(content):
        start = at + 36
        stop = start + int.from_bytes(content[at + 32 : start], "little")
        found[content[at : at + 32]] = content[start:stop]
        at = stop
    return found


def compile_shipped(ir_text: str, machine: str) -> bytes:
    """Object code for every processor of an architecture.

    Args:
        ir_text: LLVM IR.
        machine: `x86_64` or `aarch64`.
    """
    import llvmlite.binding as llvm

    llvm.initialize_all_targets()
    llvm.initialize_all_asmprinters()
    triple = f"{machine}-unknown-linux-gnu"
    target = llvm.Target.from_triple(triple).create_target_machine(
        cpu="generic",
        features="+reserve-x18" if machine == "aarch64" else "",
        opt=2,
        reloc="pic",
        codemodel="default",
    )
    module = llvm.parse_assembly(ir_text)
    module.verify()
    module.triple = triple
    module.data_layout = str(target.target_data)
    builder = llvm.create_pass_builder(target, llvm.create_pipeline_tuning_options(2))
    builder.getModulePassManager().run(module, builder)
    return bytes(target.emit_object(module))


_Item = TypeVar("_Item")
_Result = TypeVar("_Result")


def share(function: Callable[[_Item], _Result], items: Sequence[_Item], threads: int) -> list[_Result]:
    """`[function(item) for item in items]`, by this thread and at most `threads - 1` others.

    Raises:
        The first exception of `function`, once the other threads have finished.
    """
    results: dict[int, _Result] = {}
    errors: list[BaseException] = []
    pending = list(reversed(range(len(items))))
    lock = Lock()
    task = current_task()

    def work() -> None:
        while True:
            with lock:
                if errors or not pending:
                    return
                number = pending.pop()
            try:
                checkpoint()
                results[number] = function(items[number])
            except BaseException as error:
                errors.append(error)

    def help() -> None:
        with taking_part(task):
            work()

    helpers: list[Thread] = []
    try:
        for _ in range(min(threads, len(items)) - 1):
            helper = Thread(target=help, name="graphc-codegen")
            try:
                helper.start()
            except RuntimeError:  # no more threads are to be had
                break
            helpers.append(helper)
        work()
    finally:
        with lock:
            pending.clear()
        with resting():
            for helper in helpers:
                helper.join()
    if errors:
        raise errors[0]
    return [results[number] for number in range(len(items))]


# Larger kernels, in characters of IR, are not unrolled: vectorised loops are interleaved in any case, and
# unrolling them once more was measured to double the time of code generation for no gain.
UNROLLED_SIZE = 16_000
# The level of LLVM's pipeline, at most, for the modules of a kernel that is divided, and for kernels that do
# nothing but call single loops. Level 1 vectorises like 3; what it leaves out looks for redundancies that
# MLIR's passes have removed.
LOW_LEVEL = 1
# Modules with more characters of IR are not vectorised, and take level 1; what can be moved to others is not
# in them. The vectoriser makes three to five loops of each, and what comes after it takes more than linear
# time: the second order of scans in scans in scans, a million characters, took 13 seconds with it and 4
# without.
VECTORISED_SIZE = 600_000


@record(frozen=True)
class Machine:
    """The machine for which code is made."""

    triple: str
    cpu: str
    features: str

    def to_dict(self) -> dict[str, str]:
        """For the manifest."""
        return {"triple": self.triple, "cpu": self.cpu, "features": self.features}

    def vectors(self) -> tuple[int, int, bool]:
        """Bytes of a vector in most loops, in those that compute much (see `wide`), and whether it has masks.

        None where the widest are not those of AVX2 or AVX-512.
        """
        has = self.features.split(",")
        if not {"+avx512f", "+avx512bw", "+avx512dq", "+avx512vl"} <= {*has}:
            size = 32 if {"+avx2", "+fma"} <= {*has} and "+avx512f" not in has else 0
            return size, size, False
        if self.cpu.startswith("znver"):
            return 64, 64, True
        return 32, 64 if "+avx512vbmi2" in has else 32, True

    def wide(self) -> Machine:
        """The machine with vectors of 64 bytes, where its core does not slow down for them.

        LLVM takes half of a register on all of Intel's cores with AVX-512, of which the first ones did. From
        Ice Lake on, which VBMI2 tells, a million `exp(x) * y + 1` take 864 us and not 1161, a softmax 1.1 ms
        and not 1.5. Short loops become slower with longer vectors, so that code without elementary functions
        keeps to LLVM's choice.
        """
        if "+avx512vbmi2" not in self.features.split(","):
            return self
        return replace(self, features=f"{self.features},-prefer-256-bit")


@cache
def this_machine() -> Machine:
    """This machine: its CPU and features, and the ELF triple (the runtime loads ELF on every platform)."""
    arm = platform.machine() in ("arm64", "aarch64")
    cpu, features = llvm.host_cpu()
    if (
        arm and sys.platform == "darwin"
    ):  # the system owns this register there, which the ELF ABI does not know
        features = ",".join(filter(None, [features, "+reserve-x18"]))
    return Machine(("aarch64" if arm else "x86_64") + "-unknown-linux-gnu", cpu, features)


@record()
class _Work:
    """A module to make, and how.

    Attributes:
        piece: the kernel, a piece of it, or a part.
        inlined: see `compile_to_object`.
        opt_level: of code generation.
        pass_level: of LLVM's pipeline; None for a part that is finished.
        unroll: whether loops are unrolled.
        vectorise: whether loops are vectorised.
        part: the part that it is.
        machine: what code is made for.
    """

    piece: Piece
    inlined: str
    opt_level: int
    pass_level: int | None
    unroll: bool
    vectorise: bool
    part: Part | None = None
    machine: Machine = field(default_factory=this_machine)

    def identity(self) -> str:
        """All that the object depends on, but for the toolchain."""
        passes = (self.pass_level, self.unroll, self.vectorise) if self.pass_level is not None else None
        made_for, exports = self.machine.to_dict(), sorted(self.piece.exports)
        return f"{made_for};{self.opt_level};{passes};{exports};{self.inlined};{self.piece.text}"


def compile_to_object(
    ir_text: str,
    *,
    exports: Collection[str] = (),
    pieces: Sequence[Piece] = (),
    inlined_text: str = "",
    parts: Sequence[Part] = (),
    opt_level: int = 3,
    store: PartStore | None = None,
    threads: int = 0,
    on_ir: Callable[[str, str], None] | None = None,
    machine: Machine | None = None,
    is_wide: bool = False,
    is_single: bool = False,
    is_vectorised: bool = False,
) -> bytes:
    """Optimises a kernel and its parts, and emits objects.

    Args:
        ir_text: the kernel.
        exports: the functions of the kernel that others call; all others become internal, so that they can be
            inlined and dropped. If not given, none does.
        pieces: further modules of the kernel.
        inlined_text: module of functions that are to be inlined into the modules of the kernel.
        parts: modules that the kernel calls, or that call the kernel.
        opt_level: 0 to 3.
        store: where modules that were compiled before are, and others will be; not used with `on_ir`.
        threads: how many share the work; 0 stands for the cores that this process may use.
        on_ir: called with ("llvm", IR text before optimisation), ("llvm-opt", after) and ("asm", assembly).
        machine: what code is made for; this machine by default.
        is_wide: whether the modules of the kernel compute elementary functions in loops over elements.
        is_single: whether the kernel does little but call loops that have no others in them.
        is_vectorised: whether the loops of `ir_text` are final: what is inlined is, and there is nothing else
            to do. Each piece says so of its own.

    Returns:
        An ELF object, or several joined by `graphc_runtime.elf.join`.

    Raises:
        CompileError: a text does not parse or verify, or an export is not defined.
    """
    vectorise = opt_level >= 2
    to_vectorise = vectorise and not is_vectorised and len(ir_text) <= VECTORISED_SIZE
    low = min(opt_level, LOW_LEVEL)
    is_low = pieces or is_single or vectorise != to_vectorise
    level = 0 if is_vectorised else low if is_low else opt_level
    unroll = not pieces and len(ir_text) < UNROLLED_SIZE
    kernel = Piece(ir_text, frozenset(exports))
    machine = machine or this_machine()
    works = [_Work(kernel, inlined_text, opt_level, level, unroll, to_vectorise)]
    for piece in pieces:
        own, to_vectorise = (0, False) if piece.is_final else (low, vectorise)
        works.append(_Work(piece, inlined_text, opt_level, own, unroll, to_vectorise))
    works = [replace(work, machine=machine.wide() if is_wide else machine) for work in works]
    works += [replace(_part_work(part, opt_level), machine=machine) for part in parts]
    if on_ir is not None:
        return _compile_with_views(works, threads, on_ir)
    if store is None:
        return elf.join([code for code, _ in _compile(works, threads)])
    keys = [store.key(work.identity()) for work in works]
    found = [_found(store, key, work) for key, work in zip(keys, works, strict=True)]
    made = iter(_compile([work for work, code in zip(works, found, strict=True) if code is None], threads))
    codes = []
    for key, work, code in zip(keys, works, found, strict=True):
        if code is None:
            code, _ = next(made)
            store.put(key, code, is_part=work.part is not None)
        codes.append(code)
    return elf.join(codes)


def _found(store: PartStore, key: str, work: _Work) -> bytes | None:
    """The object of a module that was compiled before, here or where graphc comes from."""
    code = store.get(key, is_part=work.part is not None)
    if code is not None or work.part is None:
        return code
    machine = work.machine
    level = level_of(machine.triple, machine.cpu, machine.features)
    if level is not None:
        # At its own level of optimisation, also where less is asked for: it has been made.
        code = find_shipped(_on_level(_part_work(work.part, 3), level).identity())
        if code is not None:
            store.put(key, code, is_part=False)
    return code


def _on_level(work: _Work, level: str) -> _Work:
    return replace(work, machine=Machine(TRIPLE, LEVELS[level].cpu, LEVELS[level].features))


def shipped_works(level: str) -> dict[bytes, Callable[[], bytes]]:
    """Makers of the objects that ship for a level, by their keys."""
    works = [_on_level(_part_work(part, 3), level) for part in shipped_parts(level)]
    return {key_of(work.identity()): partial(_object, work) for work in works}


def _object(work: _Work) -> bytes:
    return _compile_one(False, work)[0]


def _part_work(part: Part, opt_level: int) -> _Work:
    level = min(opt_level, part.level)
    pass_level = None if part.finished else level
    return _Work(Piece(part.text, part.exports), "", level, pass_level, False, opt_level >= 2, part)


def _compile_with_views(works: Sequence[_Work], threads: int, on_ir: Callable[[str, str], None]) -> bytes:
    """The object, and each stage of all modules as one text."""
    made = _compile(works, threads, views=True)
    for name, *texts in zip(("llvm", "llvm-opt", "asm"), *(views for _, views in made), strict=True):
        on_ir(name, "\n".join(texts) if name == "asm" or len(texts) == 1 else _joined(texts))
    return elf.join([code for code, _ in made])


def _compile(
    works: Sequence[_Work], threads: int = 0, *, views: bool = False
) -> list[tuple[bytes, list[str]]]:
    """Object and views of each module; several threads make them if there are several."""
    # The kernel's own module takes longest, in most cases, and then those with long texts.
    order = sorted(range(len(works)), key=lambda i: -len(works[i].piece.text) if i else -math.inf)
    tell, begun = steps.watcher(), itertools.count(1)

    def make(work: _Work) -> tuple[bytes, list[str]]:
        if tell is not None:
            tell(("LLVM, module", next(begun), len(works)))
        return _compile_one(views, work)

    made = share(make, [works[i] for i in order], threads or usable_cores())
    results = dict(zip(order, made, strict=True))
    return [results[i] for i in range(len(works))]


def _compile_one(views: bool, work: _Work) -> tuple[bytes, list[str]]:
    """Object and views of a module. Shares nothing with other threads."""
    texts: list[str] = []
    machine = work.machine
    with (
        llvm.code_generator(machine.triple, machine.cpu, machine.features, work.opt_level) as generator,
        _parsed(work.piece.text, "part" if work.part else "kernel") as module,
    ):
        if not work.part and work.opt_level >= 2 and is_available(machine.triple):
            add_vector_variants(module, machine.features)
        module.set_target(machine.triple, _data_layout(machine))
        if work.inlined:
            with _refused("inlined functions"):
                module.link_in(work.inlined)
        if work.part:
            _hide(module, work.piece.exports)
        elif work.piece.exports:
            _internalise(module, work.piece.exports)
        if views:
            texts.append(str(module))
        if work.pass_level is not None:
            generator.optimise(module, work.pass_level, vectorise=work.vectorise, unroll=work.unroll)
            checkpoint()
        if views:
            texts += [str(module), generator.emit_assembly(module)]
        return generator.emit_object(module), texts


def _joined(texts: list[str]) -> str:
    """Modules as one, to be looked at."""
    with llvm.parsed(texts[0]) as module:
        for text in texts[1:]:
            module.link_in(text)
        return str(module)


@cache
def _data_layout(machine: Machine) -> str:
    return llvm.data_layout(machine.triple, machine.cpu, machine.features)


@contextmanager
def _parsed(text: str, what: str) -> Iterator[llvm.Module]:
    with ExitStack() as stack:
        with _refused(what):
            module = stack.enter_context(llvm.parsed(text))
        yield module


@contextmanager
def _refused(what: str) -> Iterator[None]:
    """Makes LLVM's refusals compilation errors."""
    try:
        yield
    except llvm.LLVMError as error:
        raise CompileError(f"the LLVM IR of the {what} is not valid: {error}") from None


def _internalise(module: llvm.Module, exports: Collection[str]) -> None:
    """Makes all but the exports internal.

    Kernels stay exported for calls through ctypes. `kernel_wrappers` marks them noinline: a second copy in
    the entry would compile each loop twice and save a nanosecond.
    """
    missing = set(exports)
    for function in module.functions():
        if not function.is_declaration:
            if function.name in exports:
                missing.remove(function.name)
            else:
                function.internalise()
    if missing:
        raise CompileError(f"the kernel does not define {', '.join(sorted(missing))}")


def _hide(module: llvm.Module, exports: Collection[str]) -> None:
    """Makes what a part defines hidden, but for the exports: other objects of the function find it then."""
    for function in module.functions():
        if not function.is_declaration and function.is_external and function.name not in exports:
            function.hide()
