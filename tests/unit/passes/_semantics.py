# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Runs a graph-stage function before and after passes and compares."""

from __future__ import annotations

from collections.abc import Sequence
from functools import cache
from typing import Any

import numpy as np

from graphc.backends.interpret.interpreter import run_function
from graphc.graph.tensor.type import tolerances
from graphc.passes.run import run_pipeline
from graphc_dialects._mlir import ir
from graphc_dialects.dialect import new_context


def outcome(module: Any, inputs: Sequence[Any]) -> list[Any] | str:
    """The results of @main, or the class of the exception it raised."""
    with np.errstate(all="ignore"):
        try:
            return run_function(module, inputs)
        except (ValueError, IndexError) as error:
            return type(error).__name__


def function(arguments: str, body: str, results: str) -> str:
    """`func.func @main` in text; `results` is `%name : type, ...`."""
    names = ", ".join(part.split(":")[0].strip() for part in results.split(";"))
    types = ", ".join(part.split(":", 1)[1].strip() for part in results.split(";"))
    return f"func.func @main({arguments}) -> ({types}) {{\n{body}\n  return {names} : {types}\n}}\n"


@cache
def context() -> Any:
    """One context for all tests of a process: loading the dialect takes longer than a test."""
    return new_context()


def assert_same(
    text: str, inputs: Sequence[Any], passes: str, rtol: float | None = None, errors: bool = True
) -> str:
    """Asserts that the passes keep what a module computes (finite values, and errors); returns the new IR.

    Without `errors`, a program that fails may do something else afterwards: unused computations that fail
    may go.
    """
    with context(), ir.Location.unknown():
        before, after = ir.Module.parse(text), ir.Module.parse(text)
        run_pipeline(after, [passes])
        want, have = outcome(before, inputs), outcome(after, inputs)
        if isinstance(want, str) and not errors:
            return str(after)
        if isinstance(want, str) or isinstance(have, str):
            assert have == want, f"{have} instead of {want}\n{after}"
            return str(after)
        for x, y in zip(want, have, strict=True):
            assert_close(x, y, rtol, str(after))
        return str(after)


def assert_close(want: Any, have: Any, rtol: float | None, ir_text: str) -> None:
    """Same dtype and shape; where `want` is finite, `have` is close to it."""
    want, have = np.asarray(want), np.asarray(have)
    assert want.dtype == have.dtype and want.shape == have.shape, ir_text
    finite = np.isfinite(want) if want.dtype.kind in "fc" else np.ones(want.shape, bool)
    relative, absolute = tolerances(want.dtype)
    np.testing.assert_allclose(
        have[finite], want[finite], relative if rtol is None else rtol, absolute, err_msg=ir_text
    )
