# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""The pipelines, as plain ordered lists: (pass, reason).

An entry is one of our flags (`graphc-...`) or a piece of upstream pipeline text. Nothing else decides what
runs.
"""

from __future__ import annotations

Entry = tuple[str, str]

# In every mode: these change values, the other ones only how they are computed.
_STABLE: list[Entry] = [
    ("canonicalize,cse", "drop what is dead or repeated before looking for patterns"),
    ("graphc-constant-folding", "known values expose further simplification"),
    ("graphc-stabilize", "safer forms first: simplification could break up the patterns it looks for"),
]

_SIMPLIFY: list[Entry] = [
    *_STABLE,
    ("graphc-algebraic-simplification", "fewer operations"),
    (
        "graphc-linear-systems",
        "no inverses, and one factorization of a matrix; before loops, so that it can leave them",
    ),
]

_PRODUCTS: list[Entry] = [
    ("graphc-blas-recognition", "transposes and scalings become parts of the products"),
    ("graphc-decompose", "composites into parts that can be fused"),
    ("cse", "parts of composites repeat"),
]

_SCAN_SIZES: list[Entry] = [("graphc-scan-row-sizes", "sizes of results can be computed before loops")]

# Left out where a module has no scan.
_SCAN: list[Entry] = [
    *_SCAN_SIZES,
    ("graphc-shape-simplification", "row counts in terms of step counts, so that uses of rows can be told"),
    ("canonicalize,cse", "what sizes leave over"),
    ("graphc-scan-remove-constants-and-unused-inputs", "nothing that is not needed is looked at further"),
    ("graphc-scan-merge-inouts", "equal states and outputs are one"),
    ("graphc-scan-merge", "siblings share their loop"),
    ("graphc-scan-merge-inouts{merged=true}", "what loops that were merged have in common is done once"),
    ("graphc-scan-push-out-non-seq", "what is the same in all iterations is done once"),
    ("graphc-scan-push-out-seq", "work on rows becomes one operation on the stack"),
    ("graphc-scan-to-map", "loops without states disappear"),
    ("graphc-scan-push-out-dot1", "accumulated products become one product after the loop"),
    ("graphc-scan-push-out-output", "work on results becomes one operation after the loop"),
    ("graphc-scan-to-reduce", "accumulations become reductions"),
    ("graphc-scan-unroll", "a few iterations are straight code"),
    ("graphc-scan-remove-constants-and-unused-inputs", "what the passes before made unnecessary"),
    ("canonicalize,cse", "leftovers"),
    ("graphc-constant-folding", "what was unrolled or moved out of loops"),
    ("graphc-algebraic-simplification", "the same"),
]

_SCAN_MEMORY: list[Entry] = [
    ("graphc-shape-simplification", "row counts in terms of step counts"),
    ("canonicalize,cse", "what sizes leave over"),
    ("graphc-scan-save-mem", "only rows that are read are kept, only needed iterations are run"),
    ("graphc-scan-to-associative", "recurrences with code of their own, which keep just these rows"),
    ("graphc-scan-to-map", "what is left without a state"),
    ("graphc-lift-slices", "what such work reads of stacks that were made for it"),
    ("canonicalize,cse", "loops that became empty"),
    ("graphc-scan-save-mem{reread=true}", "rows that were read for others which are not computed any more"),
]

# The last one that sees tensors: what reads a value, and what lies in one buffer, is settled.
_SCAN_IN_PLACE: Entry = ("graphc-scan-inplace", "initial rows nobody else reads become the first window")

_SHAPES: list[Entry] = [
    ("graphc-shape-simplification", "sizes are computed from inputs, not from values"),
    ("graphc-insert-checks", "every condition the loops rely on is tested first"),
    ("graphc-outline-shapes", "result sizes and shape checks run before anything is allocated"),
    ("canonicalize,cse", "leftovers of both functions"),
]

_WIDE_SUMS: Entry = ("graphc-wide-sums", "accumulators have more digits than what they add up")

# In every mode: a loop for each operation takes longer to compile than to find out which share one.
_FUSION: Entry = ("graphc-fusion", "decides which operations share a loop")

# Before them where memory has a budget.
_AGAIN = "what would take too much memory is computed again"

_TENSOR: list[Entry] = [
    ("graphc-convert-to-linalg", "one loop nest per cluster"),
    # No cse here: one buffer shared by two results could not be written in both destinations.
    ("canonicalize", "sizes and index arithmetic of the loops"),
    ("eliminate-empty-tensors", "results are computed in their destination"),
    (
        (
            "one-shot-bufferize{bufferize-function-boundaries"
            " function-boundary-type-conversion=identity-layout-map}"
        ),
        "tensors become buffers",
    ),
    ("canonicalize,cse", "casts between buffer types"),
]

_PLAN: Entry = ("graphc-plan-memory{record=true}", "other buffers share one block of memory")
# Before that where work is counted.
_WORK: Entry = ("graphc-count-work", "kernels as they will run, and buffers that are allocations")

_ROWS: Entry = ("graphc-loop-fusion", "row-wise work visits each row once")
_IN_PLACE: Entry = (
    "graphc-reuse-operands",
    "what a loop computes lies where its operand was, if nobody needs that",
)

_BUFFER: list[Entry] = [
    ("graphc-kernel-pointers", "what is called with pointers reads elements that lie side by side"),
    ("graphc-matmul-to-blas", "large products go to BLAS"),
    ("graphc-linalg-to-loops", "loops the vectoriser understands"),
    ("canonicalize,cse,loop-invariant-code-motion", "index arithmetic leaves the loops"),
    ("graphc-hoist-allocations", "one buffer serves all iterations; no stack is taken in a loop"),
    _ROWS,
    ("func.func(promote-buffers-to-stack{max-alloc-size-in-bytes=256})", "scalars need no heap"),
    _IN_PLACE,
    _PLAN,
    ("graphc-poll-interrupts", "long loops notice Ctrl-C, where that costs nothing"),
]

_PARTS: list[Entry] = [("graphc-outline-loops", "LLVM takes time n squared for n loops in one function")]
# Before them where the time of operations is measured.
_PROFILE: Entry = ("graphc-profile-operations", "loops as they will run; before they become parts")

_FAST_MATH: Entry = (
    "graphc-fast-math",
    "the liberties that config.fastmath gives; none to the expansions after it",
)
# Left out where a module has no scan. Whether sums may be reordered has to be known.
_SETTLED: Entry = ("graphc-settle-recurrences", "what does not change any more is not computed again")

# Left out where a module has no complex numbers.
_COMPLEX_FUNCTIONS: Entry = ("convert-complex-to-standard", "complex functions become real ones")
_COMPLEX_NUMBERS: Entry = ("convert-complex-to-llvm", "complex numbers as pairs")

# Also where nothing is vectorised: upstream lowers log1p(x) to log(1 + x) and expm1(x) to exp(x) - 1.
_MATH: list[Entry] = [
    _COMPLEX_FUNCTIONS,
    ("graphc-expand-math", "inline math that vectorises and is accurate near 0"),
]

_LLVM: list[Entry] = [
    ("convert-scf-to-cf", "structured loops into branches"),
    ("graphc-kernel-abi", "status result, early return of failed checks"),
    ("expand-strided-metadata,lower-affine", "subviews into pointer arithmetic"),
    ("graphc-unpack-arguments", "calls of loops pass what is read of a buffer, a fifth of its descriptor"),
    _COMPLEX_NUMBERS,
    ("convert-math-to-llvm,convert-math-to-libm", "intrinsics, and libm for the rest"),
    (
        ("convert-to-llvm{filter-dialects=arith,cf,complex,func,index,memref},reconcile-unrealized-casts"),
        "the llvm dialect, all at once",
    ),
    (
        # Bottom up, what takes a struct of sizes apart is seen before what builds it: one round is enough.
        "canonicalize{region-simplify=disabled top-down=false max-iterations=1},cse",
        "what conversion left over, three of four operations",
    ),
    ("graphc-noalias-buffers", "loops are vectorised without comparing addresses"),
    ("graphc-arena-allocation", "heap buffers belong to the call and are freed with it"),
]

_DIVIDE: Entry = ("graphc-divide-kernel", "several threads compile a large kernel")

FAST_RUN: list[Entry] = [
    *_SIMPLIFY,
    *_SCAN,
    ("graphc-lift-slices", "only the rows that are read are computed, also of work that has left loops"),
    *_PRODUCTS,
    *_SCAN_MEMORY,
    *_SHAPES,
    ("graphc-join-buffer-elimination", "what is joined is computed in its place"),
    _WIDE_SUMS,
    _FUSION,
    _SCAN_IN_PLACE,
    *_TENSOR,
    *_BUFFER,
    ("graphc-parallel-loops", "large loops are shared by several cores"),
    *_PARTS,
    _FAST_MATH,
    _SETTLED,
    *_MATH,
    *_LLVM,
    _DIVIDE,
    ("graphc-define-splits", "what shares the ranges of loops is inlined where it is called"),
]

FAST_COMPILE: list[Entry] = [
    *_STABLE,
    ("graphc-decompose", "composites have no lowering of their own"),
    *_SCAN_SIZES,
    *_SCAN_MEMORY,
    *_SHAPES,
    _WIDE_SUMS,
    _FUSION,
    _SCAN_IN_PLACE,
    *_TENSOR,
    *_BUFFER,
    *_PARTS,
    _FAST_MATH,
    *_MATH,
    *_LLVM,
    _DIVIDE,
]

PIPELINES: dict[str, list[Entry]] = {"fast_run": FAST_RUN, "fast_compile": FAST_COMPILE}

# LLVM optimisation level of each pipeline.
OPT_LEVEL = {"fast_run": 3, "fast_compile": 1}


def pipeline(
    mode: str,
    *,
    has_scan: bool,
    has_complex: bool = True,
    fastmath: str = "",
    profile: bool = False,
    work: bool = False,
    budget: int | None = None,
) -> list[Entry]:
    """The entries of a mode, less those that only concern loops or complex numbers if there are none.

    Args:
        mode: a key of `PIPELINES`.
        has_scan: whether there are loops.
        has_complex: whether there are complex numbers.
        fastmath: level for `graphc-fast-math`; empty leaves the flags that lowering sets.
        profile: whether the time of operations is measured.
        work: whether the work of kernels is counted.
        budget: bytes of intermediate arrays above which some are computed again.
    """
    entries = PIPELINES[mode]
    if fastmath:
        flag = f"graphc-fast-math{{level={fastmath}}}"
        entries = [(flag, entry[1]) if entry[0] == "graphc-fast-math" else entry for entry in entries]
    if profile:
        parts = entries.index(_PARTS[0])
        entries = [*entries[:parts], _PROFILE, *entries[parts:]]
    if work:
        plan = entries.index(_PLAN)
        entries = [*entries[:plan], _WORK, *entries[plan:]]
    if budget is not None:
        entries = _with_budget(entries, budget)
    left_out: list[Entry] = []
    if not has_scan:
        left_out += [*_SCAN, *_SCAN_MEMORY, _SCAN_IN_PLACE, _SETTLED]
    if not has_complex:
        left_out += [_COMPLEX_FUNCTIONS, _COMPLEX_NUMBERS]
    identities = {id(entry) for entry in left_out}
    return [entry for entry in entries if id(entry) not in identities]


def _with_budget(entries: list[Entry], budget: int) -> list[Entry]:
    """The entries with those that keep intermediate arrays within some bytes."""
    again = (f"graphc-rematerialise{{budget={budget}}}", _AGAIN)
    # A hundredth of the budget, for sums of rows and the like.
    rows = (f"graphc-loop-fusion{{overlap={budget // 100}}}", _ROWS[1])
    convert = (f"{_TENSOR[0][0]}{{results=true}}", _TENSOR[0][1])
    plan = ("graphc-plan-memory{record=true results=true}", _PLAN[1])
    instead = {
        _SCAN_IN_PLACE[0]: [again, _SCAN_IN_PLACE],
        _TENSOR[0][0]: [convert],
        _ROWS[0]: [_IN_PLACE, rows],
        _PLAN[0]: [plan],
    }
    return [new for entry in entries for new in instead.get(entry[0], [entry])]


def has_loops(text: str) -> bool:
    """Whether the text of a module has loops of the program."""
    return "graphc.scan" in text


def pipeline_of(
    text: str,
    mode: str,
    fastmath: str = "",
    *,
    profile: bool = False,
    work: bool = False,
    budget: int | None = None,
) -> list[Entry]:
    """The pipeline of a mode, without what the text of a module shows it has no use for."""
    return pipeline(
        mode,
        has_scan=has_loops(text),
        has_complex="complex<" in text,
        fastmath=fastmath,
        profile=profile,
        work=work,
        budget=budget,
    )
