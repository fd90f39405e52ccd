# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Scalar kernels that seldom have anything to do, in loops of all lengths, and what they are made of."""

from __future__ import annotations

import re
from fractions import Fraction

import numpy as np
import pytest

import graphc
import graphc.tensor as pt
from graphc.library import scalars
from graphc.library.helpers import ScalarCall
from graphc.library.scalars import zeta
from graphc.native.builtins import fma

# psi next to its zeros, to 17 digits.
ZEROS = {
    -0.5040830082644554: 7.289763902976895e-17,
    -1.5734984731623904: 1.5649788481838454e-16,
    -2.6107208684441447: -1.0720275936410002e-15,
    -5.6671624415568855: 4.1867794464524804e-17,
    -22.75024298430606: 2.222887737120895e-14,
    -23.752362937385183: -1.6310324112690182e-14,
}


def test_every_lane_is_corrected() -> None:
    x = pt.vector()
    function = graphc.function([x], pt.digamma(x))
    rng = np.random.default_rng(0)
    for length in (1, 2, 7, 8, 9, 31, 64):
        for share in (0.0, 0.2, 1.0):
            chosen = rng.random(length) < share
            at = rng.choice(list(ZEROS), length)
            values = np.where(chosen, at, rng.uniform(0.5, 9, length))
            got = function(values)
            np.testing.assert_allclose(got[chosen], [ZEROS[z] for z in at[chosen]], rtol=1e-15)
            one_by_one = [function(values[i : i + 1])[0] for i in range(length)]
            np.testing.assert_allclose(got, one_by_one, rtol=1e-15)


def test_the_reference_runs_as_python() -> None:
    kernel = scalars.find("digamma_below")
    assert kernel(3.0, 0.0, -1.5) == 3.0
    for x, value in ZEROS.items():
        assert kernel(zeta.digamma_positive(1.0 - x), 1.0, x) == pytest.approx(value, rel=1e-15)


def test_definition_has_vector_forms() -> None:
    text = scalars.define_scalars([ScalarCall("digamma_below", 3, whole=False)])
    for lanes in scalars.LANES:
        assert f"define internal <{lanes} x double> @graphc_scalar.digamma_below.x{lanes}(" in text
    (head,) = re.findall(r"^define double @graphc_scalar.digamma_below\(.*", text, re.MULTILINE)
    assert "noinline" in head and "_ZGV_LLVM_N8vvv_graphc_scalar.digamma_below" in head
    # Routines write through pointers, and must not be called free of effects.
    for line in re.findall(r"^define .*\bptr\b.*\{$", text, re.MULTILINE):
        assert "memory(none)" not in line


def test_vector_forms_are_kept() -> None:
    kept = scalars.keep_vector_forms(["f", "g"])
    assert kept.count("@llvm.compiler.used") == 1
    assert f"[{2 * len(scalars.LANES)} x ptr] [ptr @f.x2, " in kept and "ptr @g.x2, " in kept
    assert scalars.keep_vector_forms([]) == ""


def test_double_double() -> None:
    a, b = Fraction(1, 3), Fraction(2, 7)
    (high, other), (low, other_low) = zeta.table([a, b])
    for operation, exact in (
        (zeta.add, a + b),
        (zeta.multiply, a * b),
        (zeta.divide, a / b),
    ):
        t = np.array([high, low])
        operation(t, other, other_low)
        assert abs(Fraction(t[0]) + Fraction(t[1]) - exact) < exact * Fraction(1, 2**100)
    assert fma(1 / 3, 3.0, -1.0) == -(2.0**-54)
