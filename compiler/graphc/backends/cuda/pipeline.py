# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""The passes of the target for devices, as plain ordered lists: (pass, reason)."""

from __future__ import annotations

from itertools import takewhile

from graphc.backends.cpu.pipeline import Entry, pipeline_of

# The first pass after bufferization that is for CPUs.
_CPU = "graphc-kernel-pointers"

# What is on the host, once sizes of results are known and all checks are there.
_SHAPES = "graphc-outline-shapes"
PLACEMENT: Entry = ("graphc-gpu-placement", "what has no kernel becomes functions of the host")

# Then what is only done for devices.
_HALVES: Entry = ("graphc-gpu-half-products", "tensor cores multiply halves, and add up in float32")

# What the passes before bufferization do otherwise than for CPUs.
_INSTEAD: dict[str, Entry] = {
    "graphc-scan-to-associative": (
        "graphc-scan-to-associative{reassociate=true}",
        "recurrences in parts: threads work on them together",
    ),
    "graphc-convert-to-linalg": (
        "graphc-convert-to-linalg{device=true}",
        "one loop nest per cluster; recurrences stay whole",
    ),
}

# Another kernel for products of float32, if they may have fewer digits.
_PRODUCTS = "graphc-gpu-matmul"
_SHORT: Entry = ("graphc-gpu-matmul{precision=tf32}", "factors of float32 may be rounded to 10 bits")

# One kernel a nest; what is special before what takes everything.
KERNELS: list[Entry] = [
    ("graphc-gpu-host-calls", "transfers are of what lies side by side"),
    ("graphc-gpu-running", "calls that no other pass looks into"),
    ("graphc-gpu-sort", "calls of another kind"),
    ("graphc-gpu-extreme", "calls of another kind"),
    ("graphc-gpu-factor", "and another; what they note of matrices is reduced by passes below"),
    ("graphc-gpu-scan", "whole loops, before what is inside becomes launches"),
    ("graphc-gpu-batch", "loops with products, for the rows of a batch"),
    ("graphc-gpu-scatter", "of loops with no nests those whose writes meet"),
    ("graphc-gpu-loops", "loops over elements that have no nests"),
    (_PRODUCTS, "products, before they are taken for reductions"),
    ("graphc-gpu-whole", "one block would take long for a reduction of everything"),
    ("graphc-gpu-columns", "reductions over rows, with neighbouring columns side by side"),
    ("graphc-gpu-rows", "reductions along rows, with what is done to the rows before and after"),
    ("graphc-gpu-transpose", "reads and writes of neighbouring threads are side by side"),
    ("graphc-gpu-constants", "arrays that are in the program"),
    ("graphc-gpu-scalars", "numbers that become elements are computed where the array is"),
    ("graphc-gpu-elementwise", "all that is left: elementwise work, fills and copies"),
    ("graphc-gpu-numbers", "what the host has no arithmetic for, of what it needs"),
    ("canonicalize,cse", "index arithmetic of kernels and launches"),
]

# Views of the host become one operation, whose operands are all that a schedule needs.
HOST: list[Entry] = [
    ("func.func(expand-strided-metadata,lower-affine)", "offsets, sizes and strides of views are values"),
    ("canonicalize,cse", "what is not read of them"),
    ("graphc-gpu-steps", "loops that launch the same in each step can be captured once, and replayed"),
]

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


def kernels(text: str, fastmath: str = "", precision: str = "") -> list[Entry]:
    """From emitted text to kernels in the gpu dialect, before math is expanded.

    Args:
        text: the module.
        fastmath: level of `graphc-fast-math`; empty leaves the flags that lowering sets.
        precision: of products of float32: "tf32", else with all digits.
    """
    entries = list(takewhile(lambda entry: entry[0] != _CPU, pipeline_of(text, "fast_run", fastmath)))
    place = 1 + [name for name, _ in entries].index(_SHAPES)
    # Simplification follows it.
    entries[place + 1 : place + 1] = [PLACEMENT, _HALVES]
    instead = {**_INSTEAD, **({_PRODUCTS: _SHORT} if precision == "tf32" else {})}
    return [instead.get(entry[0], entry) for entry in [*entries, *KERNELS, *HOST]]


def device(conversion: str = NVIDIA) -> list[Entry]:
    """From kernels with expanded math to the llvm dialect, for the gpu module.

    Args:
        conversion: upstream's pass for the devices of a vendor.
    """
    inner = ",".join(conversion if entry == NVIDIA else entry for entry, _ in DEVICE)
    return [(f"gpu.module({inner})", "the llvm dialect")]
