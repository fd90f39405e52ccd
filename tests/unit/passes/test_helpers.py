# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Declarations say what the library is to define."""

from __future__ import annotations

import pytest

from graphc.backends.contexts import new_context
from graphc.ir.helpers import HELPER, attribute_of, declare_helper, declared, helper_of
from graphc.library import helpers
from graphc.library.helpers import KINDS, Gemm, Helper, of_kind
from graphc_dialects._mlir import ir

EXAMPLES = [
    helpers.BlockProduct("d", (4, 5, 6), (False, True)),
    Gemm("s", packs=True),
    helpers.KernelCall("sort", ("f64", "f64"), ("axis",), (-1,)),
    helpers.ScalarCall("zeta", 2, whole=False),
    helpers.Draws("pcg64", "normal"),
    helpers.Poll(),
    helpers.Progress("a loop"),
    helpers.LibraryFound("cusolver"),
    helpers.LibraryAsked("potrf"),
    helpers.Arena("mark"),
    helpers.Workspace(3, planned=True),
    helpers.Allocation(),
    helpers.Split(2, products=True),
    helpers.ProfileCall("enter", 3),
]


@pytest.mark.parametrize("helper", EXAMPLES, ids=lambda helper: type(helper).__name__)
def test_what_is_written_is_read(helper: Helper) -> None:
    with new_context(), ir.Location.unknown():
        module = ir.Module.create()
        declare_helper(module, helper, ["i64"], [])
        assert declared(ir.Module.parse(str(module))) == {helper.symbol: helper}


def test_every_kind_has_an_example() -> None:
    assert {type(helper) for helper in EXAMPLES} == set(KINDS.values())
    assert len({helper.symbol for helper in EXAMPLES}) == len(EXAMPLES)


def test_names() -> None:
    assert [helper.symbol for helper in EXAMPLES[:3]] == [
        "graphc_dblock_4_5_6_nt",
        "graphc_sgemm",
        "graphc_kernel.sort.f64-f64.axis-m1",
    ]


def test_a_declaration_serves_all_callers() -> None:
    with new_context(), ir.Location.unknown():
        module = ir.Module.create()
        for packs in (False, True, False):
            declare_helper(module, Gemm("d", packs), ["i64"], [])
        assert of_kind(declared(module).values(), Gemm) == [Gemm("d", packs=True)]


@pytest.mark.parametrize("text", ['"x"', "{}", '{kind = "nothing"}', '{kind = "product", letter = 1 : i64}'])
def test_other_attributes_are_refused(text: str) -> None:
    with new_context(), ir.Location.unknown():
        module = ir.Module.parse(f"func.func private @f() attributes {{{HELPER} = {text}}}")
        with pytest.raises(ValueError, match=HELPER):
            helper_of(module.body.operations[0].operation)


def test_the_attribute_is_typed() -> None:
    with new_context():
        text = '{kind = "product", letter = "d", packs = false}'
        assert attribute_of(Gemm("d", packs=False)) == ir.Attribute.parse(text)
