# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Rules of one line: both sides are the same function, and a line that cannot be one is refused."""

from __future__ import annotations

import numpy as np
import pytest

from graphc.ir.patterns import Applied, Line, Operand, Variable, described, op, x, y
from graphc.ops.elementwise import ROWS
from graphc.passes.graph._lines import ALGEBRA, SIGNS, STABLE_FORMS

# Operands of one sign, so that logarithms and quotients are defined on both sides.
RANGES = {"i": (1, 9), "u": (1, 9), "f": (0.1, 0.9), "c": (0.1, 0.9)}
DTYPES = {"b": "bool", "i": "int64", "u": "uint8", "f": "float64", "c": "complex128"}


def value_of(term: Operand, values: dict[Variable, np.ndarray]) -> np.ndarray:
    if isinstance(term, Variable):
        return values[term]
    if not isinstance(term, Applied):
        return np.asarray(term, next(iter(values.values())).dtype)
    return np.asarray(ROWS[term.name].reference(*(value_of(part, values) for part in term.terms)))


@pytest.mark.parametrize("line", [*ALGEBRA, *SIGNS, *STABLE_FORMS], ids=lambda line: str(line.before))
def test_both_sides_are_the_same_function(line):
    rng = np.random.default_rng(3)
    for kind in line.of:
        numbers = (rng.uniform(*RANGES.get(kind, (0, 2)), 20).astype(DTYPES[kind]) for _ in "xy")
        values = dict(zip((x, y), numbers, strict=True))
        with np.errstate(all="ignore"):
            before, after = value_of(line.before, values), value_of(line.after, values)
        np.testing.assert_allclose(np.broadcast_to(after, before.shape), before, rtol=1e-12, atol=1e-15)


def test_refuses_operations_that_the_dialect_does_not_have():
    with pytest.raises(TypeError, match=r"graphc\.exp takes 1 operands, the pattern has 2"):
        op.exp(x, y)
    with pytest.raises(TypeError, match=r"no elementwise operation graphc\.exponential"):
        op.exponential(x)


def test_a_line_is_a_row_of_the_documentation():
    line = Line("sign", -x * op.exp(y), -(x * op.exp(y)), "if")
    assert list(described([line])) == ["| `-x * exp(y)` | `-(x * exp(y))` | signed integers, floats |"]
