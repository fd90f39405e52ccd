# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Stages of compilation: plain ordered lists of passes with a reason each. Targets share those that are here.

A target lists stages. A step is one of our flags (`graphc-...`) or a piece of upstream pipeline text. It may
have a condition on the `Request`, and options that depend on it. Nothing else decides what runs: no target
looks into a stage.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import replace
from typing import NamedTuple

from graphc_runtime.record import record

# Bytes of a vector, the same in loops that compute much, whether it has masks, and whether functions of libm
# have those of vectors. No bytes stand for machines of which nothing is known, and for code for several ones.
Vectors = tuple[int, int, bool, bool]
# A flag with its options, and the reason.
Entry = tuple[str, str]


@record(frozen=True)
class Request:
    """Properties of a program, and of its compilation, on which passes depend.

    Attributes:
        has_scan: the program has loops.
        has_complex: the program has complex numbers.
        fastmath: level for `graphc-fast-math`; empty leaves the flags that lowering sets.
        profile: the time of operations is measured.
        work: the work of kernels is counted.
        budget: bytes of intermediate arrays above which some are computed again.
        device: the program is for a GPU.
        precision: of products of float32 on a GPU: "tf32", else with all digits.
        verify: reads of memory that was overwritten are looked for.
        vectors: see `Vectors`.
    """

    has_scan: bool = True
    has_complex: bool = True
    fastmath: str = ""
    profile: bool = False
    work: bool = False
    budget: int | None = None
    device: bool = False
    precision: str = ""
    verify: bool = False
    vectors: Vectors = (64, 64, True, False)


class Step(NamedTuple):
    """An entry of a stage: what runs, why, under which condition, and with which options."""

    text: str
    reason: str
    when: Callable[[Request], bool] | None = None
    options: Callable[[Request], str] | None = None


@record(frozen=True)
class Stage:
    """A named part of a pipeline, which may have a condition."""

    name: str
    steps: tuple[Step, ...]
    when: Callable[[Request], bool] | None = None

    @staticmethod
    def of(name: str, chosen: Iterable[Entry]) -> Stage:
        """A stage that always runs these entries."""
        return Stage(name, tuple(Step(*entry) for entry in chosen))


def entries(stages: Iterable[Stage], request: Request) -> list[Entry]:
    """The entries of stages that a request asks for, with their options."""
    chosen: list[Entry] = []
    for stage in stages:
        if stage.when is None or stage.when(request):
            for text, reason, when, options in stage.steps:
                if when is None or when(request):
                    given = options(request) if options is not None else ""
                    chosen.append((f"{text}{{{given}}}" if given else text, reason))
    return chosen


def request_of(text: str, request: Request | None = None) -> Request:
    """A request for the text of a module, which shows the passes that it has no use for."""
    return replace(request or Request(), has_scan=has_loops(text), has_complex="complex<" in text)


def has_loops(text: str) -> bool:
    """True if the text of a module has loops of the program."""
    return "graphc.scan" in text


def loops(request: Request) -> bool:
    """True if there are loops."""
    return request.has_scan


def numbers_are_complex(request: Request) -> bool:
    """True if there are complex numbers."""
    return request.has_complex


def memory_is_limited(request: Request) -> bool:
    """True if memory has a budget."""
    return request.budget is not None


def _conversion(request: Request) -> str:
    flags = {"device": request.device, "results": request.budget is not None}
    return " ".join(f"{flag}=true" for flag, on in flags.items() if on)


def _for_device(request: Request) -> str:
    return "device=true" if request.device else ""


# In every mode: these change values, the other ones only how they are computed.
STABLE = Stage(
    "stable forms",
    (
        Step("canonicalize,cse", "drop what is dead or repeated before looking for patterns"),
        Step("graphc-constant-folding", "known values expose further simplification"),
        Step(
            "graphc-stabilize", "safer forms first: simplification could break up the patterns it looks for"
        ),
        Step("cse", "stable forms of a value and of its slope have parts in common"),
    ),
)

SIMPLER = Stage(
    "simplification",
    (
        Step("graphc-algebraic-simplification", "fewer operations"),
        Step(
            "graphc-linear-systems",
            "no inverses, and one factorization of a matrix; before loops, so that it can leave them",
            options=_for_device,
        ),
    ),
)

LOOP_SIZES = Stage(
    "sizes of loops",
    (Step("graphc-scan-row-sizes", "sizes of results can be computed before loops"),),
    loops,
)

LOOPS = Stage(
    "loops",
    (
        Step(
            "graphc-shape-simplification",
            "row counts in terms of step counts, so that uses of rows can be told",
        ),
        Step("canonicalize,cse", "what sizes leave over"),
        Step(
            "graphc-scan-remove-constants-and-unused-inputs",
            "nothing that is not needed is looked at further",
        ),
        Step("graphc-scan-merge-inouts", "equal states and outputs are one"),
        Step("graphc-scan-merge", "siblings share their loop"),
        Step(
            "graphc-scan-merge-inouts{merged=true}", "what loops that were merged have in common is done once"
        ),
        Step("graphc-scan-push-out-non-seq", "what is the same in all iterations is done once"),
        Step("graphc-scan-push-out-seq", "work on rows becomes one operation on the stack"),
        Step("graphc-scan-to-map", "loops without states disappear"),
        Step("graphc-scan-push-out-dot1", "accumulated products become one product after the loop"),
        Step("graphc-scan-push-out-output", "work on results becomes one operation after the loop"),
        Step("graphc-scan-to-reduce", "accumulations become reductions"),
        Step("graphc-scan-unroll", "a few iterations are straight code"),
        Step("graphc-scan-remove-constants-and-unused-inputs", "what the passes before made unnecessary"),
        Step("canonicalize,cse", "leftovers"),
        Step("graphc-constant-folding", "what was unrolled or moved out of loops"),
        Step("graphc-algebraic-simplification", "the same"),
    ),
    loops,
)

SLICES = Stage(
    "slices",
    (
        Step(
            "graphc-lift-slices", "only the rows that are read are computed, also of work that has left loops"
        ),
    ),
)

COMPOSITES = Stage("composites", (Step("graphc-decompose", "composites have no lowering of their own"),))

PRODUCTS = Stage(
    "products",
    (
        Step("graphc-blas-recognition", "transposes and scalings become parts of the products"),
        Step("graphc-decompose", "composites into parts that can be fused", options=_for_device),
        Step("cse", "parts of composites repeat"),
    ),
)

LOOP_MEMORY = Stage(
    "memory of loops",
    (
        Step("graphc-shape-simplification", "row counts in terms of step counts"),
        Step("canonicalize,cse", "what sizes leave over"),
        Step("graphc-scan-save-mem", "only rows that are read are kept, only needed iterations are run"),
        Step(
            "graphc-scan-to-associative",
            "recurrences with code of their own, which keep just these rows; in parts for threads of a GPU",
            options=lambda request: "reassociate=true" if request.device else "",
        ),
        Step("graphc-scan-to-map", "what is left without a state"),
        Step("graphc-lift-slices", "what such work reads of stacks that were made for it"),
        Step("canonicalize,cse", "loops that became empty"),
        Step(
            "graphc-scan-save-mem{reread=true}",
            "rows that were read for others which are not computed any more",
        ),
    ),
    loops,
)

SHAPES = Stage(
    "shapes",
    (
        Step("graphc-shape-simplification", "sizes are computed from inputs, not from values"),
        Step("graphc-insert-checks", "every condition the loops rely on is tested first"),
        Step("graphc-outline-shapes", "result sizes and shape checks run before anything is allocated"),
        Step("canonicalize,cse", "leftovers of both functions"),
    ),
)

JOINS = Stage("joins", (Step("graphc-join-buffer-elimination", "what is joined is computed in its place"),))

SUMS = Stage("sums", (Step("graphc-wide-sums", "accumulators have more digits than what they add up"),))

# In every mode: a loop for each operation takes longer to compile than to find out which share one.
FUSION = Stage("fusion", (Step("graphc-fusion", "decides which operations share a loop"),))

IN_PLACE = Stage(
    "values in place",
    (
        Step(
            "graphc-rematerialise",
            "what would take too much memory is computed again",
            memory_is_limited,
            lambda request: f"budget={request.budget}",
        ),
        # The last one that sees tensors: what reads a value, and what lies in one buffer, is settled.
        Step("graphc-scan-inplace", "initial rows nobody else reads become the first window", loops),
    ),
)

# In tests, before and after upstream moves what is computed into destinations.
_VERIFY = Step(
    "graphc-verify-reads", "nothing is read after it has been overwritten", lambda request: request.verify
)

BUFFERS = Stage(
    "buffers",
    (
        Step(
            "graphc-convert-to-linalg",
            "one loop nest per cluster; recurrences stay whole for a GPU",
            options=_conversion,
        ),
        _VERIFY,
        # No cse here: one buffer shared by two results could not be written in both destinations.
        Step("canonicalize", "sizes and index arithmetic of the loops"),
        Step("eliminate-empty-tensors", "results are computed in their destination"),
        _VERIFY,
        Step(
            (
                "one-shot-bufferize{bufferize-function-boundaries"
                " function-boundary-type-conversion=identity-layout-map}"
            ),
            "tensors become buffers",
        ),
        Step("canonicalize,cse", "casts between buffer types"),
    ),
)

# From emitted text to known sizes, and every check there is.
GRAPH = (STABLE, SIMPLER, LOOP_SIZES, LOOPS, SLICES, PRODUCTS, LOOP_MEMORY, SHAPES)
# The rest of the graph stage that changes operations, not only which of them share a loop.
PLACES = (JOINS, SUMS)
# To buffers.
MEMORY = (FUSION, IN_PLACE, BUFFERS)
