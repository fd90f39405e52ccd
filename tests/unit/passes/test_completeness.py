# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Every pass has documentation, a stage and its three kinds of tests."""

from __future__ import annotations

from pathlib import Path

import pytest

from graphc.passes import STAGES, discover, find

LIT = Path(__file__).parents[2] / "lit" / "passes"


@pytest.mark.parametrize("flag", discover())
def test_pass_is_documented(flag: str) -> None:
    cls = find(flag)
    assert cls.stage in STAGES
    assert cls.__doc__ and "\n" in cls.__doc__.strip(), (
        f"{flag} needs a docstring with a summary and the details"
    )
    assert cls.__doc__.strip().partition("\n")[0].endswith("."), f"the summary of {flag} is one sentence"
    for option in cls.options():
        assert f"{option}:" in cls.__doc__, f"option {option} of {flag} is not documented"


@pytest.mark.parametrize("flag", discover())
@pytest.mark.parametrize("kind", ["basic", "invalid", "doctest"])
def test_pass_has_lit_test(flag: str, kind: str) -> None:
    path = LIT / flag.removeprefix("graphc-") / f"{kind}.mlir"
    assert path.is_file(), f"missing {path.relative_to(LIT.parents[1])}"
    assert f"--{flag}" in path.read_text(), f"{path.name} of {flag} does not run it"


def test_lit_folders_belong_to_passes() -> None:
    assert {path.name for path in LIT.iterdir() if path.is_dir()} <= {
        flag.removeprefix("graphc-") for flag in discover()
    }
