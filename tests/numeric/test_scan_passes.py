# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Each scan pass, and all of them in the pipeline's order, compute what the module computed before."""

from __future__ import annotations

from random import Random
from typing import Any

import pytest
from fuzzing import examples
from hypothesis import given, settings
from scan_modules import Limits, ScanCase, assert_close, generate, scan_cases

from graphc.backends.cpu.pipeline import PIPELINES, pipeline
from graphc.backends.interpret.interpreter import run_function
from graphc.passes import discover
from graphc.passes.run import run_pipeline
from graphc_dialects._mlir import ir
from graphc_dialects.dialect import new_context
from graphc_tools.legality import check

PASSES = [flag for flag in discover() if "scan-" in flag]
TIDY = "canonicalize,cse"


def _pipeline_order() -> list[str]:
    """The scan passes in the order of the first pipeline that has them, those of no pipeline last."""
    listed = [text for mode in PIPELINES for text, _ in pipeline(mode) if "scan-" in text]
    return [*dict.fromkeys(listed), *(flag for flag in PASSES if flag not in listed)]


def _assert_same(case: ScanCase, *entries: list[str]) -> str:
    """Runs passes on a case, and compares its results after each list of them; returns the module."""
    with new_context(), ir.Location.unknown():
        module = ir.Module.parse(case.text)
        want, text = _run(case.text, case), case.text
        for passes in entries:
            run_pipeline(module, passes, verify_each=True, check=check)
            before, text = text, str(module)
            if text != before:
                assert_close(_run(text, case), want)
        return text


def _assert_unchanged(text: str, entries: list[str]) -> None:
    """Passes must not change anything any more."""
    with new_context(), ir.Location.unknown():
        module = ir.Module.parse(text)
        before = str(module)
        run_pipeline(module, entries, verify_each=True)
        assert str(module) == before


def _run(text: str, case: ScanCase) -> list[Any]:
    """Interprets a module of its own: the interpreter may leave size computations in it."""
    return run_function(ir.Module.parse(text), case.inputs)


@pytest.mark.parametrize("flag", PASSES)
@settings(max_examples=examples(6))
@given(case=scan_cases())
def test_a_pass_alone(flag: str, case: ScanCase) -> None:
    _assert_same(case, [flag])


@pytest.mark.parametrize("flag", PASSES)
@settings(max_examples=examples(6))
@given(case=scan_cases())
def test_a_pass_on_tidy_modules_changes_nothing_the_second_time(flag: str, case: ScanCase) -> None:
    text = _assert_same(case, [TIDY, flag], [TIDY, flag, TIDY])
    _assert_unchanged(text, [flag, TIDY])


@pytest.mark.parametrize("seed", range(20))
def test_all_passes_in_order(seed: int) -> None:
    rng = Random(seed)
    for _ in range(5):
        _assert_same(generate(rng, Limits()), [TIDY, *_pipeline_order(), TIDY])


@given(case=scan_cases())
def test_all_passes_with_tidying_between(case: ScanCase) -> None:
    _assert_same(case, [entry for flag in _pipeline_order() for entry in (flag, TIDY)])


def test_cases_cover_what_scans_can_be() -> None:
    found = set().union(*(generate(Random(seed)).features for seed in range(60)))
    wanted = "reverse while nested mit-sot mit-mot zero-steps one-step broadcast twins"
    assert set(wanted.split()) <= found
