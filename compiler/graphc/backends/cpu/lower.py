# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Runs a pipeline on emitted text and hands the result over as LLVM IR.

With a limit on the memory of intermediate arrays, lowering is tried until the plan of buffers is within it.

What `graphc-rematerialise` counts are arrays of the graph. Buffers are what later passes make of them, so
that a plan can need a little more, or less.
"""

from __future__ import annotations

from collections.abc import Callable, Container, Iterator
from dataclasses import replace
from itertools import groupby
from time import perf_counter
from typing import Any

from graphc.backends import CompileLog, CompileOptions, PassView
from graphc.backends.contexts import pooled_context
from graphc.backends.cpu.pipeline import pipeline_of
from graphc.backends.handoff import to_llvmlite
from graphc.backends.stages import Entry, Vectors
from graphc.errors import CompileError
from graphc.ir.donations import Donated, donated, with_donations
from graphc.ir.helpers import callee_of, declared
from graphc.ir.plain import Recomputed
from graphc.ir.plain import attached as attached_recomputed
from graphc.ir.walk import definition, seen_through, symbol_of
from graphc.library.helpers import Helper
from graphc.library.places import planned_bytes
from graphc.native.parts import Piece
from graphc.passes.buffer import count_work, expand_math, profile_operations
from graphc.passes.buffer.plan_memory import attached
from graphc.passes.llvm.define_splits import SINGLE
from graphc.passes.llvm.divide_kernel import EXPORTS
from graphc.passes.llvm.vectorise_bodies import INLINED, VECTORISED
from graphc.passes.run import normalise, run_pipeline
from graphc_dialects._mlir import ir, translate_module_to_llvmir
from graphc_runtime.collecting import paused
from graphc_runtime.errors import Site
from graphc_runtime.record import record

# Lowering again takes as long as the first time.
_TRIES = 3
# Buffers may lie in the memory of results, but nothing is computed again.
_ENOUGH = 1 << 62


def within(budget: int, lowered: Callable[[int | None], Lowered]) -> Lowered:
    """The first module whose planned buffers are within a budget, else the one that needs the least.

    Args:
        budget: bytes.
        lowered: lowers with a budget for `graphc-rematerialise`; None is for the pipeline without it.
    """
    search = _Search(lowered)
    if not search.is_known():
        # Some sizes are known in calls only; the pass works with the others.
        return lowered(budget)
    for first in (None, _ENOUGH):
        if search.needed(first) <= budget:
            return search.result(first)
    # What lies in the memory of results is not counted by the pass, and does not count.
    target = budget + max(search.promised(_ENOUGH) - search.needed(_ENOUGH), 0)
    for _ in range(_TRIES):
        over = search.needed(target) - budget
        if over <= 0 or search.promised(target) > target or target < 2 * over:
            break
        # Some of what is not held any more was in the memory of results.
        target -= 2 * over
    if search.needed(search.best(budget)) > budget:
        search.needed(budget)
    return search.result(search.best(budget))


class _Search:
    """Modules that were lowered with some budgets for the pass."""

    def __init__(self, lowered: Callable[[int | None], Lowered]) -> None:
        self._lower = lowered
        self._found: dict[int | None, Lowered] = {}

    def _lowered(self, target: int | None) -> Lowered:
        if target not in self._found:
            self._found[target] = self._lower(target)
        return self._found[target]

    def is_known(self) -> bool:
        """True if the bytes of the workspaces are known."""
        return planned_bytes(self._lowered(None).memory) is not None

    def needed(self, target: int | None) -> int:
        """The bytes of the workspaces."""
        return planned_bytes(self._lowered(target).memory) or 0

    def promised(self, target: int | None) -> int:
        """The bytes that the pass has counted."""
        return self._lowered(target).recomputed.get("peak", 0)

    def best(self, budget: int) -> int | None:
        """With what the least is computed again that keeps to a budget, or else the least is needed."""

        def cost(target: int | None) -> tuple[int, int]:
            return max(self.needed(target), budget), self._lowered(target).recomputed.get("flops", 0)

        return min(self._found, key=cost)

    def result(self, target: int | None) -> Lowered:
        """The lowered module, with a budget; lowered again if that was not the last one, as a log is
        about that.
        """
        is_last = list(self._found)[-1] == target
        return self._found[target] if is_last else self._lower(target)


_COPIES = frozenset(
    f"llvm.intr.{name}" for name in "memcpy memcpy.inline memmove memset memset.inline".split()
)
# Whoever has an address as a number may write there.
_CALLS = "llvm.store llvm.atomicrmw llvm.cmpxchg llvm.call llvm.call_intrinsic llvm.ptrtoint".split()
_WRITES = frozenset((*_COPIES, *_CALLS, "llvm.intr.masked.store", "llvm.intr.masked.scatter"))


def takes_memory_first(module: ir.Module, n_arguments: int, cells: Container[int]) -> bool:
    """True if no way through `@main` writes to some of its arguments or to results, or calls what may, and
    takes memory after that.

    Args:
        module: an `ir.Module` in the llvm dialect.
        n_arguments: how many arguments `@main` has, without its results.
        cells: the positions of those that must not change where memory runs out.
    """
    takers = frozenset(name for name, helper in declared(module).items() if helper.takes_memory)
    (main,) = (op for op in module.body.operations if symbol_of(op.operation) == "main")
    blocks = list(main.regions[0].blocks)
    # Two pointers for each argument and result, before its numbers.
    runs = [list(run) for yes, run in groupby(blocks[0].arguments, key=_is_pointer) if yes]
    others: set[ir.Value] = {x for i, run in enumerate(runs[:n_arguments]) if i not in cells for x in run}
    return _Order(takers, others).is_safe(blocks)


def _is_pointer(value: ir.Value) -> bool:
    return "ptr" in str(value.type)


class _Order:
    """Summary of the operations of a function.

    Args:
        takers: the functions that take memory.
        others: parameters that point at what is not written, or may change.
    """

    def __init__(self, takers: frozenset[str], others: set[ir.Value]) -> None:
        self._takers, self._others = takers, others

    def is_safe(self, blocks: list[ir.Block]) -> bool:
        """True if nothing is taken after something was written."""
        taking = [block for block in blocks if any(self._takes(op) for op in block.operations)]
        if not taking:
            return True
        writing = [block for block in blocks if any(self._writes(op) for op in block.operations)]
        reached = set(_reached(writing))
        return not any(block in reached or self._writes_then_takes(block) for block in taking)

    def _writes_then_takes(self, block: ir.Block) -> bool:
        written = False
        for op in block.operations:
            if written and self._takes(op):
                return True
            written = written or self._writes(op)
        return False

    def _takes(self, op: ir.Operation) -> bool:
        return op.operation.name == "llvm.call" and callee_of(op.operation) in self._takers

    def _writes(self, op: ir.Operation) -> bool:
        if op.operation.name not in _WRITES or self._takes(op):
            return False
        # A pointer that is stored may be written to by whoever is told where.
        used = list(op.operands)[:1] if op.operation.name in _COPIES else op.operands
        return any(_is_pointer(x) and not self._is_other(x) for x in used)

    def _is_other(self, pointer: ir.Value) -> bool:
        """True of a pointer to memory of `@main` or of what it calls, and to arguments that may change."""
        root = seen_through(pointer, ("llvm.getelementptr", "llvm.extractvalue"))
        made = definition(root)
        if made is None or made.name != "llvm.call":
            return root in self._others or (made is not None and made.name == "llvm.alloca")
        return all(self._is_other(x) for x in made.operands if _is_pointer(x))


def _reached(blocks: list[ir.Block]) -> Iterator[Any]:
    """The blocks that control may pass to after one of these."""
    seen, pending = set(), [after for block in blocks for after in block.successors]
    while pending:
        block = pending.pop()
        if block not in seen:
            seen.add(block)
            yield block
            pending += block.successors


@record(frozen=True)
class Lowered:
    """A module at the end of its pipeline.

    Attributes:
        llvm_ir: text that llvmlite parses; defines `main` and perhaps `shapes`.
        pieces: modules of functions that `main` calls.
        n_arguments: how many arguments `main` has, without its results.
        sites: where checks fail.
        has_shapes: whether `shapes` is defined.
        plain: those of `main` and `shapes` that LLVM leaves as they are, or inlines as they are.
        is_single: whether `main` does nothing but call loops without others in them.
        is_vectorised: whether these are final (see `graphc.passes.llvm.vectorise_bodies`).
        memory: the memory plan of each function (see `graphc.passes.buffer.plan_memory`).
        donated: what became of the arguments that were offered to results.
        helpers: what it calls that `graphc.library` defines.
        takes_memory_first: whether no memory is taken, which can fail, once cells may have been overwritten.
        slots: what is measured (see `graphc.passes.buffer.profile_operations`).
        recomputed: what is computed again (see `graphc.ir.plain`).
        is_wide: whether loops over elements compute elementary functions.
    """

    llvm_ir: str
    pieces: tuple[Piece, ...]
    n_arguments: int
    sites: tuple[Site, ...]
    has_shapes: bool
    plain: frozenset[str]
    is_single: bool
    is_vectorised: bool
    memory: list[dict[str, Any]]
    donated: Donated
    helpers: tuple[Helper, ...]
    takes_memory_first: bool
    slots: list[dict[str, object]]
    recomputed: Recomputed
    is_wide: bool


class _Snapshots:
    """An instrument that keeps the IR at the end of each stage, and after each pass.

    Args:
        module: before the first pass.
        entries: the passes and why they run.
        log: says whether the IR after each pass is kept, too.
    """

    def __init__(self, module: ir.Module, entries: list[Entry], log: CompileLog) -> None:
        self.stages: list[tuple[str, str]] = [("graph", str(module))]
        self._stage = "graph"
        self._reasons = ["", *(reason for text, reason in entries for _ in normalise([text]))]
        self._views, self._start, self._last = log.views, 0.0, ""
        self._view("", module)

    def _view(self, name: str, module: ir.Module, seconds: float = 0.0) -> None:
        if self._views is None:
            return
        text = module.operation.get_asm(enable_debug_info=True)
        changed = None if text == self._last else text
        self._last = text
        reason = self._reasons[len(self._views)]
        self._views.append(PassView(name, reason, self._stage, seconds, changed))

    def before(self, name: str, module: ir.Module) -> None:
        """A pass that leads into another stage closes the one before it."""
        self._start = perf_counter()
        stage = _ENTERED.get(name.split("{")[0], self._stage)
        if stage != self._stage:
            self.stages.append(
                (f"{self._stage} (optimised)" if self._stage == "graph" else self._stage, str(module))
            )
            self._stage = stage

    def after(self, name: str, module: ir.Module) -> None:
        """Keeps the result; for stages, the next `before` sees it."""
        self._view(name, module, perf_counter() - self._start)

    def failed(self, name: str, module: ir.Module) -> None:
        """Keeps what there is."""

    def finish(self, module: ir.Module) -> list[tuple[str, str]]:
        return [*self.stages, (self._stage, str(module))]


_ENTERED = {
    "graphc-convert-to-linalg": "tensor",
    "graphc-kernel-pointers": "buffer",
    "convert-scf-to-cf": "llvm",
}
_LINES: Entry = (
    "ensure-debug-info-scope-on-llvm-func{emission-kind=LineTablesOnly}",
    "LLVM IR and assembly say which operation they come from",
)


def lower(
    text: str, options: CompileOptions, log: CompileLog | None = None, vectors: Vectors = (0, 0, False, False)
) -> Lowered:
    """Compiles graph-stage text to LLVM IR.

    Memory of cells is not used where it could run out while they change.

    Args:
        text: a module with `@main`.
        options: the mode, a key of `graphc.backends.cpu.pipeline.PIPELINES`, and what else passes depend on.
        log: gains times, and stages if it has any (slower: upstream passes run one by one then).
        vectors: those of the only machine that code is made for.

    Raises:
        CompileError: a pass or the verifier refused the module; the message carries MLIR's diagnostics.
    """
    log = CompileLog() if log is None else log

    def lowered(budget: int | None) -> Lowered:
        _forget(log)
        return _lower_donating(text, replace(options, memory_budget=budget), log, vectors)

    # Wrapping operations makes many objects, none of them in cycles: collecting would double the time.
    with paused():
        budget = options.memory_budget
        return _lower_donating(text, options, log, vectors) if budget is None else within(budget, lowered)


def _forget(log: CompileLog) -> None:
    """Drops what a log has of a module that is lowered again."""
    for kept_views in (log.stages, log.views, log.work):
        if kept_views:
            kept_views.clear()


def _lower_donating(text: str, options: CompileOptions, log: CompileLog, vectors: Vectors) -> Lowered:
    lowered = _lower(text, options, log, vectors)
    if lowered.takes_memory_first:
        return lowered
    _forget(log)
    cells = [donation.argument for donation in options.donations if donation.keeps_on_failure]
    others = tuple(donation for donation in options.donations if not donation.keeps_on_failure)
    lowered = _lower(text, replace(options, donations=others), log, vectors)
    kept = tuple((argument, "memory could run out later") for argument in sorted(cells))
    return replace(lowered, donated=replace(lowered.donated, kept=(*lowered.donated.kept, *kept)))


def _lower(text: str, options: CompileOptions, log: CompileLog, vectors: Vectors) -> Lowered:
    try:
        with pooled_context() as (context, managers), context, ir.Location.unknown():
            with log.phase("parse"):
                module = ir.Module.parse(with_donations(text, options.donations))
                n_arguments = len(ir.SymbolTable(module.operation)["main"].regions[0].blocks[0].arguments)
            with log.phase("passes"):
                entries = pipeline_of(text, options, work=log.work is not None, vectors=vectors)
                if log.views is not None:
                    entries.append(_LINES)
                snapshots = _Snapshots(module, entries, log) if log.stages is not None else None
                report = run_pipeline(
                    module,
                    entries,
                    instrument=snapshots,
                    verify_folded=options.verify_memory,
                    managers=managers,
                )
            log.passes += [(run.name, run.seconds) for run in report.runs]
            if snapshots is not None and log.stages is not None:
                log.stages += snapshots.finish(module)
            if log.work is not None:
                log.work += count_work.attached(module)
            with log.phase("translate"):
                helpers = tuple(declared(module).values())
                pieces = tuple(_pieces(module))
                llvm_ir = to_llvmlite(translate_module_to_llvmir(module.operation))
            outcome = donated(module)
            cells = {donation.argument for donation in options.donations if donation.keeps_on_failure}
            return Lowered(
                llvm_ir,
                pieces,
                n_arguments,
                tuple(_site(site) for site in module.operation.attributes["graphc.sites"]),
                "@shapes(" in llvm_ir,
                frozenset(filter(None, map(_plain, module.body.operations))),
                any(SINGLE in op.operation.attributes for op in module.body.operations),
                any(VECTORISED in op.operation.attributes for op in module.body.operations),
                attached(module),
                outcome,
                helpers,
                cells.isdisjoint(argument for argument, _ in outcome.pairs)
                or takes_memory_first(module, n_arguments, cells),
                profile_operations.attached(module),
                attached_recomputed(module),
                expand_math.is_wide(module),
            )
    except ir.MLIRError as error:
        raise CompileError(
            f"the compiler rejected a module of its own making; please report this\n{error}"
        ) from error


def _pieces(module: ir.Module) -> Iterator[Piece]:
    """Takes the modules out of a module (see `graphc.passes.llvm.divide_kernel`)."""
    for op in [op.operation for op in module.body.operations]:
        if op.name == "builtin.module":
            exports = frozenset(ir.StringAttr(name).value for name in op.attributes[EXPORTS])
            yield Piece(to_llvmlite(translate_module_to_llvmir(op)), exports, VECTORISED in op.attributes)
            op.erase()


def _plain(op: ir.Operation) -> str:
    """The name of a function for whose wrapper LLVM has nothing to do; else empty."""
    attributes = op.operation.attributes
    is_plain = "always_inline" in attributes or "optimize_none" in attributes
    return symbol_of(op.operation) if is_plain and INLINED not in attributes else ""


def _site(site: ir.Attribute) -> Site:
    message, error, node = (ir.StringAttr(site[name]).value for name in ("message", "error", "node"))
    return Site(message, error, node)
