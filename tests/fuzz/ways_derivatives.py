# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Forward and reverse mode are transposes of each other: ``<c, J t> = <J' c, t>``."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np
from checked import Checked, Finding, known, said
from judging import expected

import graphc
import graphc.tensor as pt
from graphc.errors import NullTypeGradError, UndefinedGradientError


def transposed(c: Checked) -> Iterator[Finding]:
    """Both products of the first real result, in random directions."""
    xs = [x for x in c.program.inputs if x.value.dtype == "float64" and not x.shared and not x.generator]
    real = [v for v in c.built.outputs if v.type.dtype == "float64" and v.owner is not None]
    if c.error is not None or not xs or not real:
        return
    try:
        totals, values = _totals(c, [c.built.variables[x.name] for x in xs], real[0])
        backward, *forward, size = expected(totals, values)
    except (UndefinedGradientError, NullTypeGradError, NotImplementedError):
        return
    except Exception as error:
        yield Finding("transposed", "error", said(error))
        return
    scale = max(1.0, float(np.abs(size.value)))
    for sum_ in forward:
        if not (backward.evidence and sum_.evidence and np.isfinite(backward.value + sum_.value + scale)):
            continue
        if abs(backward.value - sum_.value) > 1e-6 * scale + float(backward.tolerance + sum_.tolerance):
            message = f"forward {sum_.value!r}, reverse {backward.value!r}, of size {scale!r}"
            yield Finding("transposed", "mismatch", message)
            return


def _totals(c: Checked, xs: list[Any], y: Any) -> tuple[list[Any], dict[Any, Any]]:
    """The sum by reverse mode, those by forward mode, and the size of terms; and values of all inputs."""
    rng, values = np.random.default_rng(0), known(c.built)
    tangents, cotangent = [x.type() for x in xs], y.type()
    for t, x in zip(tangents, xs, strict=True):
        values[t] = rng.normal(size=values[x].shape)
    values[cotangent] = rng.normal(
        size=next(e for v, e in zip(c.targets, c.expected, strict=True) if v is y).value.shape
    )
    back = graphc.pullback(y, xs, cotangent, disconnected_inputs="ignore")
    terms = [g * t for g, t in zip(back, tangents, strict=True)]
    totals = [sum(term.sum() for term in terms)]
    for direct in (True, False):
        options = {"disconnected_outputs": "ignore", "use_op_pushforward": direct}
        totals.append((graphc.pushforward(y, xs, tangents, **options) * cotangent).sum())
    return [*map(pt.as_tensor, totals), pt.as_tensor(sum(abs(term).sum() for term in terms))], values
