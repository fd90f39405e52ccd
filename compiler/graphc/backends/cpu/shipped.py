# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Machine code that ships: of the runtime, for every processor of an architecture, and of parts.

The parts that hold products of any size and what entries call are the same text in all functions, and take
longer to compile than most kernels. `shipped_parts.py` has them for two levels of x86-64. A part that is not
there, since its text or its options are others, is compiled: so what is shipped is never out of date, only
missing, and `python -m graphc_tools.pool` writes it again.
"""

from __future__ import annotations

import base64
import hashlib
import zlib
from collections.abc import Iterator

from graphc.backends.cpu.entries.calls import helpers_ir
from graphc.backends.cpu.shipped_parts import OBJECT
from graphc.library.helpers import Gemm
from graphc.library.products.define import product_parts
from graphc.native.parts import Part

_V3 = "+avx,+avx2,+bmi,+bmi2,+f16c,+fma,+lzcnt,+movbe"
# Features of the levels of x86-64, the highest one first.
LEVELS = {"x86-64-v4": f"{_V3},+avx512bw,+avx512cd,+avx512dq,+avx512f,+avx512vl", "x86-64-v3": _V3}
TRIPLE = "x86_64-unknown-linux-gnu"


def level_of(triple: str, features: str) -> str | None:
    """The highest level of x86-64 whose code a machine runs and for which parts are shipped, if any."""
    if triple != TRIPLE:
        return None
    has = frozenset(features.split(","))
    return next((level for level, needed in LEVELS.items() if has.issuperset(needed.split(","))), None)


def shipped_parts(level: str) -> Iterator[Part]:
    """The parts that are shipped for a level of x86-64."""
    for tier in ("struct", "buffer"):
        yield Part(helpers_ir((tier,)), finished=True, level=0)
    for letter in "sd":
        for packs in (False, True):
            yield from product_parts([Gemm(letter=letter, packs=packs)], LEVELS[level])


def key_of(identity: str) -> str:
    """The name of a part's code in `shipped_parts.py`.

    Args:
        identity: all that the code depends on (`graphc.backends.cpu.object`).
    """
    return hashlib.sha256(identity.encode()).hexdigest()


def find_shipped(identity: str) -> bytes | None:
    """The object of a part, if it is shipped."""
    code = OBJECT.get(key_of(identity))
    return None if code is None else zlib.decompress(base64.b64decode(code))


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
