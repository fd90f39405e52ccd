# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""The passes of the target for devices, as plain ordered lists: (pass, reason)."""

from __future__ import annotations

from graphc.backends.stages import (
    GRAPH,
    MEMORY,
    PLACES,
    Entry,
    Request,
    Stage,
    Step,
    entries,
    request_of,
)

_PLACEMENT = Stage(
    "placement", (Step("graphc-gpu-placement", "what has no kernel becomes functions of the host"),)
)

_HALVES = Stage(
    "halves", (Step("graphc-gpu-half-products", "tensor cores multiply halves, and add up in float32"),)
)


def _digits(request: Request) -> str:
    """Another kernel for products of float32, if factors may be rounded to 10 bits."""
    return "precision=tf32" if request.precision == "tf32" else ""


# One kernel a nest; what is special before what takes everything.
KERNELS = Stage(
    "kernels",
    (
        Step("graphc-gpu-running", "calls that no other pass looks into"),
        Step("graphc-gpu-sort", "calls of another kind"),
        Step("graphc-gpu-select", "calls of another kind"),
        Step(
            "graphc-gpu-library",
            "libraries, where they are there, have large ones of the next pass, and what the host would do",
            None,
            _digits,
        ),
        Step("graphc-gpu-factor", "and another; what they note of matrices is reduced by passes below"),
        Step("graphc-gpu-scan", "whole loops, before what is inside becomes launches"),
        Step("graphc-gpu-batch", "loops with products, for the rows of a batch"),
        Step("graphc-gpu-scatter", "of loops with no nests those whose writes meet"),
        Step("graphc-gpu-loops", "loops over elements that have no nests"),
        Step("graphc-gpu-matmul", "products, before they are taken for reductions", None, _digits),
        Step(
            "graphc-gpu-sweep", "rows that are read for two things at a time, before one of them is a kernel"
        ),
        Step("graphc-gpu-parts", "one block would take long for a reduction of everything, or over rows"),
        Step("graphc-gpu-rows", "reductions along rows, with what is done to the rows before and after"),
        Step("graphc-gpu-transpose", "reads and writes of neighbouring threads are side by side"),
        Step("graphc-gpu-constants", "elements that the program has, or the host computes"),
        Step("graphc-gpu-elementwise", "all that is left: elementwise work, fills and copies"),
        Step("graphc-gpu-numbers", "what the host has no arithmetic for, of what it needs"),
        Step("canonicalize,cse", "index arithmetic of kernels and launches"),
    ),
)

# Views of the host become one operation, whose operands are all that a schedule needs.
HOST = Stage(
    "host",
    (
        Step(
            "func.func(expand-strided-metadata,lower-affine)",
            "offsets, sizes and strides of views are values",
        ),
        Step("canonicalize,cse", "what is not read of them"),
        Step(
            "graphc-gpu-steps", "loops that launch the same in each step can be captured once, and replayed"
        ),
    ),
)

MATH: list[Entry] = [
    ("convert-complex-to-standard", "complex functions become real ones"),
    ("graphc-expand-math{limit=1000000}", "no library of elementary functions is needed on the device"),
    ("graphc-gpu-functions", "calls of functions of our own for what has no expansion"),
]

# Thread numbers, barriers and shuffles of a vendor's devices.
NVIDIA, AMD = "convert-nvgpu-to-nvvm,convert-gpu-to-nvvm", "convert-gpu-to-rocdl{chipset=gfx90a}"

# Within the gpu module.
DEVICE: list[Entry] = [
    ("convert-scf-to-cf", "structured loops into branches"),
    ("expand-strided-metadata,lower-affine", "views into pointer arithmetic"),
    (NVIDIA, "thread numbers, barriers and shuffles"),
    ("convert-math-to-llvm", "what is left of math are instructions for integers"),
    ("convert-complex-to-llvm", "complex numbers as pairs"),
    ("convert-vector-to-llvm,convert-to-llvm", "the llvm dialect"),
    ("canonicalize,cse,reconcile-unrealized-casts", "what conversions left over"),
]


def placed(text: str) -> list[Entry]:
    """From emitted text to a module in which functions of the host have what has no kernel."""
    return entries([*GRAPH, _PLACEMENT], request_of(text, Request(device=True)))


def after_placement(text: str, precision: str = "") -> list[Entry]:
    """From there to kernels in the gpu dialect, before math is expanded.

    Args:
        text: the module.
        precision: of products of float32: "tf32", else with all digits.
    """
    stages = (_HALVES, *PLACES, *MEMORY, KERNELS, HOST)
    return entries(stages, request_of(text, Request(device=True, precision=precision)))


def kernels(text: str, precision: str = "") -> list[Entry]:
    """From emitted text to kernels; arguments as `after_placement`."""
    return [*placed(text), *after_placement(text, precision)]


def device(conversion: str = NVIDIA) -> list[Entry]:
    """From kernels with expanded math to the llvm dialect, for the gpu module.

    Args:
        conversion: upstream's pass for the devices of a vendor.
    """
    inner = ",".join(conversion if entry == NVIDIA else entry for entry, _ in DEVICE)
    return [(f"gpu.module({inner})", "the llvm dialect")]
