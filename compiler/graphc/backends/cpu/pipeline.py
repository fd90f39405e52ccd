# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""The pipelines of the CPU: stages of `graphc.backends.stages`, and those after bufferization."""

from __future__ import annotations

from graphc.backends import CompileOptions
from graphc.backends.stages import (
    COMPOSITES,
    GRAPH,
    LOOP_MEMORY,
    LOOP_SIZES,
    MEMORY,
    PLACES,
    SHAPES,
    STABLE,
    SUMS,
    Entry,
    Request,
    Stage,
    Step,
    Vectors,
    entries,
    loops,
    memory_is_limited,
    numbers_are_complex,
    request_of,
)

_IN_PLACE = "what a loop computes lies where its operand was, if nobody needs that"

_LOOP_NESTS = Stage(
    "loop nests",
    (
        Step("graphc-kernel-pointers", "what is called with pointers reads elements that lie side by side"),
        Step("graphc-matmul-to-blas", "large products go to BLAS"),
        Step("graphc-linalg-to-loops", "loops the vectoriser understands"),
        Step("canonicalize,cse,loop-invariant-code-motion", "index arithmetic leaves the loops"),
        Step("graphc-hoist-allocations", "one buffer serves all iterations; no stack is taken in a loop"),
        Step("graphc-reuse-operands", _IN_PLACE, memory_is_limited),
        Step(
            "graphc-loop-fusion",
            "row-wise work visits each row once",
            # A hundredth of the budget, for sums of rows and the like.
            options=lambda request: "" if request.budget is None else f"overlap={request.budget // 100}",
        ),
        Step("func.func(promote-buffers-to-stack{max-alloc-size-in-bytes=256})", "scalars need no heap"),
        Step("graphc-reuse-operands", _IN_PLACE),
        Step(
            "graphc-count-work",
            "kernels as they will run, and buffers that are allocations",
            lambda request: request.work,
        ),
        Step(
            "graphc-plan-memory",
            "other buffers share one block of memory",
            options=lambda request: "record=true" if request.budget is None else "record=true results=true",
        ),
        Step("graphc-poll-interrupts", "long loops notice Ctrl-C, where that costs nothing"),
    ),
)

_PARALLEL = Stage("threads", (Step("graphc-parallel-loops", "large loops are shared by several cores"),))

_PARTS = Stage(
    "parts",
    (
        Step(
            "graphc-profile-operations",
            "loops as they will run; before they become parts",
            lambda request: request.profile,
        ),
        Step("graphc-outline-loops", "LLVM takes time n squared for n loops in one function"),
    ),
)

_FAST_MATH = Stage(
    "fast math",
    (
        Step(
            "graphc-fast-math",
            "the liberties that config.fastmath gives; none to the expansions after it",
            options=lambda request: f"level={request.fastmath}" if request.fastmath else "",
        ),
    ),
)

# The passes before have settled if sums may be reordered.
_RECURRENCES = Stage(
    "recurrences",
    (Step("graphc-settle-recurrences", "what does not change any more is not computed again"),),
    loops,
)

# Also where nothing is vectorised: upstream lowers log1p(x) to log(1 + x) and expm1(x) to exp(x) - 1.
_FUNCTIONS = Stage(
    "elementary functions",
    (
        Step("convert-complex-to-standard", "complex functions become real ones", numbers_are_complex),
        Step("graphc-expand-math", "inline math that vectorises and is accurate near 0"),
    ),
)

_LLVM = Stage(
    "llvm",
    (
        Step("convert-scf-to-cf", "structured loops into branches"),
        Step("graphc-kernel-abi", "status result, early return of failed checks"),
        Step("expand-strided-metadata,lower-affine", "subviews into pointer arithmetic"),
        Step(
            "graphc-unpack-arguments",
            "calls of loops pass what is read of a buffer, a fifth of its descriptor",
        ),
        Step("convert-complex-to-llvm", "complex numbers as pairs", numbers_are_complex),
        Step("convert-math-to-llvm,convert-math-to-libm", "intrinsics, and libm for the rest"),
        Step(
            (
                "convert-to-llvm{filter-dialects=arith,cf,complex,func,index,memref,vector},"
                "reconcile-unrealized-casts"
            ),
            "the llvm dialect, all at once",
        ),
        Step(
            # Bottom up, what takes a struct of sizes apart is seen before what builds it: one round is
            # enough.
            "canonicalize{region-simplify=disabled top-down=false max-iterations=1},cse",
            "what conversion left over, three of four operations",
        ),
        Step("graphc-noalias-buffers", "loops are vectorised without comparing addresses"),
        Step("graphc-arena-allocation", "heap buffers belong to the call and are freed with it"),
        Step("graphc-divide-kernel", "several threads compile a large kernel"),
    ),
)

_SPLITS = Stage(
    "splits",
    (
        Step("graphc-define-splits", "what shares the ranges of loops is inlined where it is called"),
        Step(
            "graphc-vectorise-bodies",
            "single loops are final: LLVM makes three loops of each, and takes most of the time",
            options=lambda request: "bytes={} widest={} masks={:d} libmvec={:d}".format(*request.vectors),
        ),
    ),
)

PIPELINES: dict[str, tuple[Stage, ...]] = {
    "fast_run": (
        *GRAPH,
        *PLACES,
        *MEMORY,
        _LOOP_NESTS,
        _PARALLEL,
        _PARTS,
        _FAST_MATH,
        _RECURRENCES,
        _FUNCTIONS,
        _LLVM,
        _SPLITS,
    ),
    "fast_compile": (
        STABLE,
        COMPOSITES,
        LOOP_SIZES,
        LOOP_MEMORY,
        SHAPES,
        SUMS,
        *MEMORY,
        _LOOP_NESTS,
        _PARTS,
        _FAST_MATH,
        _FUNCTIONS,
        _LLVM,
    ),
}

# LLVM optimisation level of each pipeline.
OPT_LEVEL = {"fast_run": 3, "fast_compile": 1}


def pipeline(mode: str, request: Request | None = None) -> list[Entry]:
    """The entries of a mode; by default for a program with loops and complex numbers.

    Args:
        mode: a key of `PIPELINES`.
        request: properties of the program and of its compilation.
    """
    return entries(PIPELINES[mode], Request() if request is None else request)


def pipeline_of(
    text: str, options: CompileOptions, *, work: bool = False, vectors: Vectors = (0, 0, False, False)
) -> list[Entry]:
    """The pipeline of a compilation, without what the text of a module shows it has no use for.

    Args:
        text: the module.
        options: the mode, a key of `PIPELINES`, and what else passes depend on.
        work: count the work of kernels.
        vectors: see `Request`.
    """
    request = Request(
        fastmath=options.fastmath,
        profile=options.profile,
        work=work,
        budget=options.memory_budget,
        verify=options.verify_memory,
        vectors=vectors,
    )
    return pipeline(options.mode, request_of(text, request))


# For programs with loops and complex numbers.
FAST_RUN = pipeline("fast_run")
FAST_COMPILE = pipeline("fast_compile")
