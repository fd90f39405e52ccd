# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Each line of a program is compared with NumPy, on the values that the interpreter found for its operands.

So rounding does not add up. Lines that are cases of the table are compared with the reference of the case.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np
from checked import Checked, Finding, known, operands_of, said, value_of
from judging import Expectation, Noise, expected, interpret
from numpy_space import case_of, run_numpy
from op_table import TOLERANCES
from program import Step

# NumPy drops the axes of the matrix of one variable, which takes a size that is known.
_OF_VARIABLES = ("pt.cov(", "pt.corrcoef(")


def by_numpy(c: Checked) -> Iterator[Finding]:
    """Each line on its own, on the values that the interpreter found."""
    variables = [c.built.variables[name] for step in c.program.steps for name in step.names]
    values = known(c.built)
    try:
        interpret(variables, values)
    except Exception:
        if not c.program.raises:
            return
        last = c.program.steps[-1]
        interpret([c.built.variables[name] for name in last.reads], values)
        yield from _numpy_error(c, last, values)
        return
    for step in c.program.steps:
        if not step.exact:
            yield from _numpy_step(c, step, values)


def _numpy_error(c: Checked, step: Step, values: dict[Any, Any]) -> Iterator[Finding]:
    """A line that raises must raise in NumPy too, but for broadcasting of sizes not known to be 1, and for
    sizes of reshape below -1.
    """
    operands = operands_of(c.built, step, values)
    try:
        found = run_numpy(step, operands)
    except Exception:
        return
    hollow = any(x.size == 0 for x in operands.values())  # NumPy warns, and gives NaN
    told = str(c.error)
    stricter = "roadcast" in told or "static" in told or ("reshape" in told and "-" in told)
    if found is not None and not hollow and not stricter:
        yield Finding("numpy", "no error", f"{step.line}\n{said(c.error or ValueError())}")


def _numpy_step(c: Checked, step: Step, values: dict[Any, Any]) -> Iterator[Finding]:
    operands = operands_of(c.built, step, values)
    try:
        want = run_numpy(step, operands)
    except Exception as error:
        gave_up = isinstance(error, np.linalg.LinAlgError) and "converge" in str(error)
        if _is_about_values(error) and not gave_up and all(x.size for x in operands.values()):
            yield Finding("numpy", "error", f"{said(error)}\n{step.line}")
        return
    try:
        moved = [
            run_numpy(step, {k: Noise(seed).relative(v) for k, v in operands.items()}) for seed in range(2)
        ]
    except Exception:
        return  # refused by rounding only
    if want is None:
        return
    case = case_of(step.kind) if step.operands else None
    for i, name in enumerate(step.names):
        got = np.asarray(value_of(c.built, name, values))
        precision = want[i].dtype.name
        if case is not None and got.dtype != want[i].dtype:
            want[i] = want[i].astype(got.dtype) if got.dtype.kind in "fc" else want[i]
        if case is None and (_sizes(step) or (got.dtype.kind == "f" and _integers(operands))):
            narrow = want[i].dtype == np.float16 and got.dtype != np.float16
            with np.errstate(over="ignore"):
                want[i] = (_of_wide_integers(step, operands) if narrow else want)[i].astype(got.dtype)
        others = [m[i].astype(want[i].dtype) for m in moved if m is not None and len(m) == len(want)]
        if got.shape == (1, 1) and any(name in step.text for name in _OF_VARIABLES):
            want[i], *others = (x.reshape(x.shape or got.shape) for x in (want[i], *others))
        expectation = Expectation(want[i], others)
        if hasattr(expectation, "tolerance"):
            dtypes = [precision, *(x.dtype.name for x in (got, *operands.values()))]
            unit = max((TOLERANCES.get(dtype, 0.0) for dtype in dtypes), default=0.0)
            finite = np.abs(want[i][np.isfinite(want[i])])
            expectation.tolerance += unit * (case.tolerance if case else 10) * float(finite.max(initial=0.0))
        difference = expectation.difference(got)
        if difference and not _is_rounding(c, step, name, values, want[i], got):
            yield Finding("numpy", "mismatch", f"{name} = {step.text}: {difference}")
            return


def _is_rounding(c: Checked, step: Step, name: str, values: dict[Any, Any], want: Any, got: Any) -> bool:
    """Whether noise within the line moves its result as much: ``x * x - x**2`` is what rounding leaves."""
    given = {c.built.variables[x]: value_of(c.built, x, values) for x in step.reads}
    try:
        (found,) = expected([c.built.variables[name]], given)
    except Exception:
        return False
    if not hasattr(found, "tolerance") or found.value.shape != want.shape or want.dtype != got.dtype:
        return False
    found.value = want
    return not found.difference(got)


def _sizes(step: Step) -> bool:
    """Whether sizes are operands, which are Python's integers in NumPy."""
    return any(word in step.text for word in ("shape", "size"))


def _of_wide_integers(step: Step, operands: dict[str, Any]) -> list[np.ndarray]:
    """NumPy's results for 64 bits, which are no float16: that holds nothing above 65504."""
    wide = {k: x.astype("int64") if x.dtype.kind in "biu" else x for k, x in operands.items()}
    found = run_numpy(step, wide)
    assert found is not None
    return found


def _integers(operands: dict[str, Any]) -> bool:
    """Whether SciPy chooses the float dtype of the result."""
    return any(x.dtype.kind in "biu" for x in operands.values())


def _is_about_values(error: Exception) -> bool:
    """NumPy refuses the operands, and not just how the line is written."""
    about_numbers = "infs or NaNs" in str(error)  # SciPy looks for them, LAPACK gives NaN
    return isinstance(error, ValueError | IndexError) and not about_numbers
