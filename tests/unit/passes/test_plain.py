# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Plain data as attributes."""

from __future__ import annotations

import pytest

from graphc.backends.contexts import new_context
from graphc.ir import plain
from graphc_dialects._mlir import ir

RECORD = {"sizes": [["const", 3], ["?"]], "fixed": True, "peak": 2**65}
NUMBERS = (0, -1, 2**63 - 1, -(2**63), 2**63, 2**70)


@pytest.mark.parametrize("data", [*NUMBERS, True, False, "", 'a "name"', [], {}, [1, "x", [False]], RECORD])
def test_what_is_written_is_read(data: plain.Plain) -> None:
    with new_context():
        attribute = plain.write(data)
        assert plain.read(attribute) == data
        assert type(plain.read(attribute)) is type(data)
        assert plain.read(ir.Attribute.parse(str(attribute))) == data


def test_other_things_are_refused() -> None:
    with new_context():
        with pytest.raises(TypeError, match="plain"):
            plain.write(1.5)
        with pytest.raises(ValueError, match="plain"):
            plain.read(ir.Attribute.parse("f64"))
