# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Machine code that ships: of the runtime, for every processor of an architecture, and of parts.

Products of any size, the kernels of linear algebra, sorting and Fourier transforms in float64, and what
entries call are the same text in all functions, and take longer to compile than most graphs. They ship for
three levels of x86-64, in `shipped_parts.bin`. A part that is not there, since its text or its options are
others, is compiled: so what ships is never out of date, only missing, and `python -m graphc_tools.pool`
writes it again.
"""

from __future__ import annotations

import hashlib
import zlib
from collections.abc import Iterator, Mapping
from functools import cache
from pathlib import Path
from typing import NamedTuple

from graphc.backends.cpu.entries.calls import helpers_ir
from graphc.library.define import kernel_parts
from graphc.library.helpers import Gemm, KernelCall
from graphc.library.products.define import product_parts
from graphc.native.parts import Part

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
