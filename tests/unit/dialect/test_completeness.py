# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""The dialect and the compiler's operation table describe the same operations."""

from __future__ import annotations

from pathlib import Path

import pytest

import graphc.tensor  # noqa: F401  (fills the table)
from graphc.backends.contexts import shared_context
from graphc.ops.elementwise import ROWS
from graphc_dialects.dialect import operation_classes
from graphc_dialects.elementwise import ELEMENTWISE

LIT = Path(__file__).parents[2] / "lit" / "dialect"


def test_elementwise_tables_agree() -> None:
    # cast has a class of its own in the compiler, because its dtype is a parameter.
    expected = {name: row.arity for name, row in ROWS.items()}
    assert {name: arity for name, (arity, _) in ELEMENTWISE.items() if name != "cast"} == expected


@pytest.mark.parametrize("name", sorted(set(operation_classes())))
def test_operation_is_documented_and_registered(name: str) -> None:
    cls = operation_classes()[name]
    assert cls.__doc__, f"{name} has no docstring"
    assert shared_context().is_registered_operation(name)


@pytest.mark.parametrize("name", sorted(name for name in operation_classes() if name[7:] not in ELEMENTWISE))
def test_structured_operation_has_valid_and_invalid_tests(name: str) -> None:
    cls = operation_classes()[name]
    valid = "".join(path.read_text() for path in LIT.glob("*.mlir") if not path.stem.endswith("_invalid"))
    invalid = "".join(path.read_text() for path in LIT.glob("*_invalid.mlir"))
    family = [
        f'"{other.OPERATION_NAME}"'
        for other in operation_classes().values()
        if other.__bases__ == cls.__bases__
    ]
    assert any(member in valid for member in family), f"no valid use of {name} in {LIT}"
    assert any(member in invalid for member in family), f"no invalid use of {name} in {LIT}"
