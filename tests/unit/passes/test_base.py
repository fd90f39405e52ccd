# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Options, pipeline texts and the pipeline runner."""

from __future__ import annotations

import pkgutil
import subprocess
import sys
from dataclasses import dataclass
from typing import Any

import pytest

import graphc.passes
from graphc.ir.diagnostics import PassError, fail
from graphc.names import modules_below
from graphc.passes import Pass, discover, find
from graphc.passes.run import parse_pipeline, run_pipeline, split_top_level
from graphc_dialects._mlir import ir
from graphc_dialects.diagnostics import collect
from graphc_dialects.dialect import new_context
from graphc_tools.legality import check


@dataclass
class Sample(Pass):
    """A pass for tests."""

    stage = "graph"
    max_size: int = 4
    fast: bool = False
    ratio: float = 0.5
    name: str = "x"

    def run(self, module: Any) -> None:
        self.count("runs")


def test_options_are_read_and_printed() -> None:
    step = Sample.from_options("max-size=8 fast ratio=0.25 name=abc")
    assert step == Sample(8, True, 0.25, "abc")
    assert str(step).endswith("{max-size=8 fast=true ratio=0.25 name=abc}")
    assert Sample.from_options(str(step).partition("{")[2][:-1]) == step
    assert "{" not in str(Sample())


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("size=1", "has no option 'size'; its options are: fast, max-size, name, ratio"),
        ("max-size=big", "option 'max-size' expects int, but was given 'big'"),
        ("fast=maybe", "option 'fast' expects bool, but was given 'maybe'"),
        ("ratio=half", "option 'ratio' expects float, but was given 'half'"),
    ],
)
def test_wrong_options(text: str, message: str) -> None:
    with pytest.raises(ValueError, match=message):
        Sample.from_options(text)


def test_split_top_level() -> None:
    assert split_top_level("a{b=1,2},c(d,e{f=(g,h)}), i") == ["a{b=1,2}", "c(d,e{f=(g,h)})", "i"]
    with pytest.raises(ValueError, match="unmatched"):
        split_top_level("a),b")
    with pytest.raises(ValueError, match="expected '}'"):
        split_top_level("a{b")


def test_parse_pipeline_mixes_both_kinds() -> None:
    entries = parse_pipeline(
        "builtin.module(graphc-fusion{max-inputs=2},func.func(cse,canonicalize),canonicalize)"
    )
    assert isinstance(entries[0], Pass)
    assert str(entries[0]) == "graphc-fusion{max-inputs=2}"
    assert entries[1:] == ["func.func(cse,canonicalize)", "canonicalize"]


@pytest.mark.parametrize(
    "text", ["graphc-nope", "builtin.module(graphc-fusion", "func.func(graphc-fusion)", "(cse)"]
)
def test_malformed_pipeline(text: str) -> None:
    with pytest.raises(ValueError):
        parse_pipeline(text)


def test_runner_groups_upstream_passes_and_counts() -> None:
    module = ir.Module.parse("func.func @f() { return }", context=new_context())
    step = Sample()
    report = run_pipeline(module, ["cse", ("canonicalize", "reason"), step, "cse"])
    assert [run.name for run in report.runs] == ["cse,canonicalize", str(step), "cse"]
    assert report.runs[1].statistics == {"runs": 1}
    assert report.seconds >= 0


def test_pass_managers_are_kept_and_passes_are_not() -> None:
    context = new_context()
    managers: dict[str, Any] = {}
    reports = []
    for _ in range(2):
        module = ir.Module.parse("func.func @f() { %0 = arith.constant 1 : index return }", context=context)
        entries = ["canonicalize", "graphc-constant-folding"]
        reports.append(run_pipeline(module, entries, managers=managers))
        assert "constant" not in str(module)
    assert list(managers) == ["canonicalize"]
    # Each run counts for itself.
    assert reports[0].runs[1].statistics == reports[1].runs[1].statistics


def test_instrument_sees_each_pass() -> None:
    class Watch:
        def __init__(self) -> None:
            self.seen: list[str] = []

        def before(self, name: str, module: Any) -> None:
            self.seen.append(f"before {name}")

        def after(self, name: str, module: Any) -> None:
            self.seen.append(f"after {name}")

        def failed(self, name: str, module: Any) -> None:
            self.seen.append(f"failed {name}")

    watch = Watch()
    module = ir.Module.parse("func.func @f() { return }", context=new_context())
    run_pipeline(module, ["cse,canonicalize"], instrument=watch)
    assert watch.seen == ["before cse", "after cse", "before canonicalize", "after canonicalize"]


@dataclass
class Refuses(Sample):
    """Refuses every function."""

    def run(self, module: Any) -> None:
        fail(module.body.operations[0], "no functions, please")


@dataclass
class Breaks(Sample):
    """Leaves an invalid module."""

    def run(self, module: Any) -> None:
        block = module.body.operations[0].regions[0].blocks[0]
        block.operations[0].operation.erase()


def test_failures_are_diagnostics_with_positions() -> None:
    context = new_context()
    module = ir.Module.parse("\nfunc.func @f() { return }", context=context)
    with collect(context) as diagnostics, pytest.raises(PassError, match="no functions"):
        run_pipeline(module, [Refuses()])
    assert str(diagnostics[0]) == "-:2:1: error: no functions, please"


@pytest.mark.parametrize("verify_each", [True, False])
def test_invalid_ir_is_found(verify_each: bool) -> None:
    module = ir.Module.parse("func.func @f() { return }", context=new_context())
    with pytest.raises(ir.MLIRError):
        run_pipeline(module, [Breaks()], verify_each=verify_each)


def test_no_upstream_folder_sees_an_invalid_module() -> None:
    module = ir.Module.parse("func.func @f() { return }", context=new_context())
    seen: list[str] = []

    class Watch:
        def before(self, name: str, module: Any) -> None:
            pass

        def after(self, name: str, module: Any) -> None:
            seen.append(name)

        def failed(self, name: str, module: Any) -> None:
            pass

    with pytest.raises(ir.MLIRError):
        run_pipeline(module, ["canonicalize", Breaks(), "canonicalize"], instrument=Watch())
    assert len(seen) == 2


@dataclass
class Later(Sample):
    """A pass of the next stage."""

    stage = "tensor"


@pytest.mark.parametrize(("folded", "expected"), [(True, 4), (False, 3)])
def test_modules_are_verified_once_a_stage(folded: bool, expected: int) -> None:
    """And at the end; with `verify_folded`, before each upstream pass that folds what ours have changed."""
    context = new_context()
    module, found = ir.Module.parse("func.func @f() { return }", context=context), []

    class Counted:
        """The module; counts verifications."""

        def __init__(self) -> None:
            self.context, self.operation = context, self

        def __getattr__(self, name: str) -> Any:
            return getattr(module.operation, name)

        def verify(self) -> bool:
            found.append(1)
            return module.operation.verify()

    steps = ["canonicalize", Sample(), "canonicalize", Sample(), "cse", Sample(), "canonicalize", Later()]
    managers = {text: Skipped() for text in ("canonicalize", "cse", "canonicalize,cse")}
    run_pipeline(Counted(), [*steps, "canonicalize"], verify_folded=folded, managers=managers)
    assert len(found) == expected


class Skipped:
    """An upstream pass that does nothing."""

    def enable_verifier(self, enabled: bool) -> None:
        pass

    def run(self, operation: Any) -> None:
        pass


def test_pass_at_the_wrong_stage_is_refused() -> None:
    module = ir.Module.parse(
        "func.func @f(%x: memref<3xf64>) { memref.dealloc %x : memref<3xf64>\n return }",
        context=new_context(),
    )
    with pytest.raises(PassError, match=r"'memref\.dealloc' is not legal before the graph pass"):
        run_pipeline(module, [Sample()], check=check)


def test_discovery_imports_no_pass_and_no_mlir() -> None:
    code = (
        "import sys; from graphc.passes import discover; assert discover();"
        "assert not [n for n in sys.modules if 'mlir' in n], 'MLIR was loaded';"
        "assert 'graphc.passes.graph.fusion' not in sys.modules"
    )
    subprocess.run([sys.executable, "-c", code], check=True)


def test_unknown_flag_names_the_known_ones() -> None:
    with pytest.raises(ValueError, match="graphc-fusion"):
        find("graphc-nope")
    assert "graphc-legality" not in discover()


def test_modules_are_those_that_pkgutil_finds():
    path, prefix = graphc.passes.__path__, "graphc.passes."
    found = pkgutil.walk_packages(path, prefix)
    assert set(modules_below("graphc.passes")) == {info.name for info in found if not info.ispkg}
    found = pkgutil.iter_modules(path, prefix)
    assert set(modules_below("graphc.passes", folders=False)) == {i.name for i in found if not i.ispkg}
