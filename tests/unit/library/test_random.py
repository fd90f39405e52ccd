# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""The text of draws is valid and loads on each architecture."""

from __future__ import annotations

import pytest

from graphc.library.helpers import Draws, Gemm
from graphc.library.random import define_random
from graphc.library.random.draws import DRAWS
from graphc.library.random.registers import WORDS
from graphc.library.random.vectors import VECTORS
from graphc.native.parts import Definitions
from graphc_runtime import elf, image
from graphc_runtime.generators import LENGTHS

ALL = [Draws(generator, name) for generator in WORDS for name in (*DRAWS, *VECTORS)]


def _text(*declarations):
    made = Definitions()
    made.add("", declarations)
    define_random(ALL, made)
    return made.text()


def test_states_have_the_same_length_everywhere():
    assert {name.lower(): length for name, length in LENGTHS.items()} == WORDS


def test_kernels_without_draws_stay_as_they_are():
    made = Definitions()
    define_random([Gemm("d", packs=False)], made)
    assert made.text() == ""


def test_nothing_is_declared_twice():
    cleared = "declare void @llvm.memset.p0.i64(ptr, i8, i64, i1)"
    assert _text(cleared).count(f"{cleared}\n") == 1


@pytest.mark.parametrize("triple", ["x86_64-unknown-linux-gnu", "aarch64-unknown-linux-gnu"])
def test_all_draws_compile_to_what_the_loader_knows(triple):
    import llvmlite.binding as llvm

    llvm.initialize_all_targets()
    llvm.initialize_all_asmprinters()
    module = llvm.parse_assembly(_text())
    module.verify()
    module.triple = triple
    machine = llvm.Target.from_triple(triple).create_target_machine(opt=1, reloc="pic", codemodel="default")
    parsed = elf.parse(machine.emit_object(module))
    kinds = {entry.kind for entries in parsed.relocations.values() for entry in entries}
    assert all(kind in image._FORMULAS[parsed.machine] for kind in kinds)
    external = set(elf.external_symbols(machine.emit_object(module)))
    assert {name for name in external if not name.startswith("npyrandom_")} <= {
        *("exp", "expm1", "log1p", "pow", "memset", "memcpy", "_GLOBAL_OFFSET_TABLE_", "__multi3")
    }
