# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Index arithmetic in regions, and what scan-save-mem, scan-inplace and scan-unroll do with odd scans."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from graphc.backends.interpret.interpreter import run_function
from graphc.ir.affine import Evaluator, Range, Region, Split, X, at, exactly, is_negative, over
from graphc.ir.diagnostics import PassError
from graphc.ir.scan_view import ScanView, retention, scans
from graphc.ir.size import Size
from graphc.passes import find
from graphc.passes.loops._consumers import Length
from graphc.passes.run import run_pipeline
from graphc_dialects._mlir import ir

from ._semantics import assert_same, context, function

V, H = "tensor<?xf64>", "tensor<2xf64>"
SAVE, INPLACE, UNROLL = "graphc-scan-save-mem", "graphc-scan-inplace", "graphc-scan-unroll"


def loop(
    n: str = "%n",
    *,
    reverse: bool = False,
    stop: bool = False,
    keep: str = '"all"',
    writes: str = "0",
    attributes: str = "",
) -> str:
    """A scan over %x with a state h (two initial rows %h0) and an output y."""
    flag = "%flag = tensor.extract %late[] : tensor<i1>" if stop else ""
    given = "%flag) : (i1)" if stop else ") : ()"
    new = "%e, %e" if writes != "0" else "%e"
    types = ", ".join(["tensor<f64>"] * len(new.split(",")))
    return f"""  %s = "graphc.scan"({n}) ({{
  ^bb0(%t: index):
    %x_t = "graphc.scan_seq"(%x, %t) : ({V}, index) -> tensor<f64>
    %a = "graphc.scan_prev"(%t) {{state = "h", tap = -2 : i64}} : (index) -> tensor<f64>
    %b = "graphc.scan_prev"(%t) {{state = "h", tap = -1 : i64}} : (index) -> tensor<f64>
    %c = "graphc.sub"(%a, %b) : (tensor<f64>, tensor<f64>) -> tensor<f64>
    %e = "graphc.add"(%c, %x_t) : (tensor<f64>, tensor<f64>) -> tensor<f64>
    %late = "graphc.gt"(%e, %x_t) : (tensor<f64>, tensor<f64>) -> tensor<i1>
    {flag}
    "graphc.scan_carry"(%h0, {new}) {{state = "h", taps = array<i64: -2, -1>,
      writes = array<i64: {writes}>, keep = {keep}}} : ({H}, {types}) -> ()
    "graphc.scan_collect"(%e) {{state = "y", keep = "steps"}} : (tensor<f64>) -> ()
    "graphc.scan_end"({given} -> ()
  }}) {{name = "loop", reverse = {str(reverse).lower()}{attributes}}} : (index) -> !graphc.loop
  %h = "graphc.scan_trace"(%s) {{state = "h"}} : (!graphc.loop) -> {V}
  %y = "graphc.scan_trace"(%s) {{state = "y"}} : (!graphc.loop) -> {V}
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %rows = tensor.dim %h, %c0 : {V}
  %steps = "graphc.scan_steps"(%s) : (!graphc.loop) -> index"""


ARGUMENTS = f"%n: index, %x: {V}, %h0: {H}"


def calls(*lengths: int) -> list[list[Any]]:
    rng = np.random.default_rng(0)
    return [[n, rng.normal(size=n), rng.normal(size=2)] for n in lengths]


def kept(text: str) -> dict[str, tuple[str, int | None]]:
    with context():
        module = ir.Module.parse(text)
        scan = scans(module.operation)[0]
        return {name: retention(op) for name, op in ScanView(scan).declarations().items()}


# -- index arithmetic ----------------------------------------------------------------------------------------


def test_regions_split_where_signs_change() -> None:
    for f in (X - 3, -1 * X + 3, 2 * X - 7, -2 * X + 7, X, -3 * X + 1):
        answers = over(Region(-20, 20), lambda region, f=f: is_negative(f, region))
        assert answers is not None
        for region, negative in answers:
            assert region.start is not None and region.stop is not None
            assert all((at(f, x) < 0) == negative for x in range(region.start, region.stop + 1))


def test_too_many_regions_give_up() -> None:
    def ask(region: Region) -> None:
        raise Split((region.start or 0) + 1)

    assert over(Region(0), ask) is None


def test_bounds_in_regions() -> None:
    region = Region(2, 5)
    assert region.least(2 * X + 1) == 5 and region.most(2 * X + 1) == 11
    assert region.least(-2 * X + 1) == -9 and region.most(-2 * X + 1) == -3
    assert Region(2).most(2 * X + 1) is None and Region(2).most(Size(1)) == 1
    assert Region().least(X) is None


EXPRESSIONS = [
    "arith.addi %n, %c3",
    "arith.subi %c3, %n",
    "arith.muli %n, %c3",
    "arith.muli %c3, %n",
    "arith.minsi %n, %c3",
    "arith.maxsi %n, %c3",
    "arith.divsi %n, %c3",
    "arith.select %lt, %n, %c3",
    "arith.select %le, %n, %c3",
    "arith.select %gt, %n, %c3",
    "arith.select %ge, %n, %c3",
    "arith.select %eq, %n, %c0",
    "arith.select %ne, %n, %c0",
    "arith.select %both, %n, %c0",
    "arith.select %either, %n, %c0",
]


@pytest.mark.parametrize("expression", EXPRESSIONS)
def test_evaluation(expression: str) -> None:
    compares = "\n".join(
        f"  %{name} = arith.cmpi {predicate}, %n, %c3 : index"
        for name, predicate in (
            ("lt", "slt"), ("le", "sle"), ("gt", "sgt"), ("ge", "sge"), ("eq", "eq"), ("ne", "ne"),
        )
    )  # fmt: skip
    body = f"""  %c0 = arith.constant 0 : index
  %c3 = arith.constant 3 : index
{compares}
  %both = arith.andi %ge, %ne : i1
  %either = arith.ori %lt, %eq : i1
  %r = {expression} : index"""
    with context(), ir.Location.unknown():
        module = ir.Module.parse(function("%n: index", body, "%r : index"))
        block = next(iter(module.body.operations)).regions[0].blocks[0]
        n, result = block.arguments[0], list(block.operations)[-1].operands[0]
        known = lambda e, key: exactly(X) if key == n else None  # noqa: E731
        answers = over(Region(0), lambda region: (region, Evaluator(region, known).range(result)))
        assert answers is not None
        for x in range(12):
            value = run_function(module, [x])[0]
            (range_,) = [r for region, r in (a for _, a in answers) if holds(region, x)]
            assert range_.low is None or at(range_.low, x) <= value
            assert range_.high is None or at(range_.high, x) >= value
            assert range_.exact is not None or "divsi" in expression
            assert range_ != Range()


def holds(region: Region, x: int) -> bool:
    return (region.start is None or region.start <= x) and (region.stop is None or x <= region.stop)


# -- scan-save-mem -------------------------------------------------------------------------------------------


def last_row(of: str, rows: str) -> str:
    return f"""
  %last = arith.subi {rows}, %c1 : index
  %r = "graphc.scan_seq"({of}, %last) : ({V}, index) -> tensor<f64>"""


@pytest.mark.parametrize("reverse", [False, True])
@pytest.mark.parametrize("stop", [False, True])
def test_last_row_of_a_state(reverse: bool, stop: bool) -> None:
    text = function(ARGUMENTS, loop(reverse=reverse, stop=stop) + last_row("%h", "%rows"), "%r : tensor<f64>")
    for inputs in calls(0, 1, 2, 5):
        after = assert_same(text, inputs, SAVE)
    assert kept(after)["h"] == (("all", None) if reverse else ("last", 1))


def test_rows_that_are_written_again_need_later_iterations() -> None:
    """Row 2 is computed in iteration 0 and replaced in iteration 1."""
    body = (
        loop(writes="-1, 0")
        + f"""
  %c2 = arith.constant 2 : index
  %r = "graphc.scan_seq"(%h, %c2) : ({V}, index) -> tensor<f64>"""
    )
    text = function(ARGUMENTS, body, "%r : tensor<f64>")
    for inputs in calls(1, 2, 5):
        after = assert_same(text, inputs, SAVE)
    assert "arith.minsi" in after


def test_last_row_of_an_output_with_a_condition_is_not_certain_to_exist() -> None:
    text = function(ARGUMENTS, loop(stop=True) + last_row("%y", "%steps"), "%r : tensor<f64>")
    for inputs in calls(1, 5):
        after = assert_same(text, inputs, SAVE)
    assert kept(after)["y"] == ("last", 1)
    assert "padded" in after


def test_bound_of_a_condition_says_that_a_step_is_run() -> None:
    body = "  %c4 = arith.constant 4 : index\n" + loop("%c4", stop=True) + last_row("%y", "%steps")
    text = function(f"%x: {V}, %h0: {H}", body, "%r : tensor<f64>")
    after = assert_same(text, [np.arange(4.0), np.ones(2)], SAVE)
    assert kept(after)["y"] == ("last", 1)


def test_number_of_steps_stays_what_it_was() -> None:
    body = (
        loop()
        + f"""
  %r = "graphc.slice"(%y, %c0, %c1, %c1) : ({V}, index, index, index) -> tensor<1xf64>"""
    )
    text = function(ARGUMENTS, body, "%r : tensor<1xf64>; %steps : index")
    for inputs in calls(1, 5):
        after = assert_same(text, inputs, SAVE)
    assert "arith.minsi" in after


@pytest.mark.parametrize("reverse", [False, True])
def test_results_read_by_another_scan(reverse: bool) -> None:
    """The second scan reads one row less than there are steps."""
    body = (
        loop(reverse=reverse)
        + f"""
  %m = arith.subi %n, %c1 : index
  %z = "graphc.scan"(%m) ({{
  ^bb0(%u: index):
    %r = "graphc.scan_seq"(%y, %u) : ({V}, index) -> tensor<f64>
    "graphc.scan_collect"(%r) {{state = "z", keep = "steps"}} : (tensor<f64>) -> ()
    "graphc.scan_end"() : () -> ()
  }}) {{name = "copy", reverse = false}} : (index) -> !graphc.loop
  %zs = "graphc.scan_trace"(%z) {{state = "z"}} : (!graphc.loop) -> {V}"""
    )
    text = function(ARGUMENTS, body, f"%zs : {V}")
    for inputs in calls(1, 2, 5):
        assert_same(text, inputs, SAVE)


@pytest.mark.parametrize("keep", ['"steps"', '"last", rows = 2 : i64'])
def test_what_is_kept_already(keep: str) -> None:
    body = loop(keep=keep) + last_row("%h", "%rows")
    text = function(ARGUMENTS, body, "%r : tensor<f64>")
    for inputs in calls(1, 2, 5):
        after = assert_same(text, inputs, SAVE)
    assert kept(after)["h"] == ("last", 1)


def test_what_does_not_change_a_scan_is_no_reason_to_read_it_again(monkeypatch: pytest.MonkeyPatch) -> None:
    """All rows are asked for: once for initial rows, steps and the tail each, and twice for what is kept."""
    made: list[Length] = []
    make = Length.__init__
    monkeypatch.setattr(Length, "__init__", lambda self, *given: made.append(self) or make(self, *given))
    text = function(ARGUMENTS, loop(), f"%h : {V}; %y : {V}")
    with context(), ir.Location.unknown():
        run_pipeline(ir.Module.parse(text), [SAVE])
    assert len(made) <= 5


def test_differentiable_is_refused() -> None:
    text = function(ARGUMENTS, loop(attributes=", differentiable"), "%rows : index")
    with context(), ir.Location.unknown(), pytest.raises(PassError, match="differentiate first"):
        run_pipeline(ir.Module.parse(text), [SAVE])


# -- scan-inplace --------------------------------------------------------------------------------------------


def is_marked(definitions: str, again: str = "") -> bool:
    body = f"  %h0 = {definitions}\n" + loop() + again
    text = function(
        f"%n: index, %x: {V}, %g: {H}, %f: tensor<2x1xf64>",
        body,
        f"%h : {V}; %h0 : {H}" if again else f"%h : {V}",
    )
    with context(), ir.Location.unknown():
        module = ir.Module.parse(text)
        run_pipeline(module, [INPLACE, INPLACE])
        return "inplace" in str(module)


def test_what_may_be_overwritten() -> None:
    exp = f'"graphc.exp"(%g) : ({H}) -> {H}'
    assert is_marked(exp)
    assert not is_marked(exp, "\n")
    assert not is_marked("arith.constant dense<1.0> : tensor<2xf64>")
    assert not is_marked(f'"graphc.dimshuffle"(%f) {{order = array<i64: 0>}} : (tensor<2x1xf64>) -> {H}')


def test_marks_that_do_not_hold_go() -> None:
    text = function(ARGUMENTS, loop(), f"%h : {V}").replace('keep = "all"', 'keep = "all", inplace')
    assert "inplace" not in assert_same(text, calls(3)[0], INPLACE)


# -- scan-unroll ---------------------------------------------------------------------------------------------


@pytest.mark.parametrize("steps", [0, 1, 2, 3])
@pytest.mark.parametrize("reverse", [False, True])
@pytest.mark.parametrize("writes", ["0", "-1, 0"])
@pytest.mark.parametrize("keep", ['"all"', '"steps"', '"last", rows = 0 : i64', '"last", rows = 2 : i64'])
def test_unrolled(steps: int, reverse: bool, writes: str, keep: str) -> None:
    body = f"  %m = arith.constant {steps} : index\n" + loop("%m", reverse=reverse, writes=writes, keep=keep)
    text = function(f"%x: {V}, %h0: {H}", body, f"%h : {V}; %y : {V}; %rows : index; %steps : index")
    after = assert_same(text, [np.arange(3.0), np.array([0.5, -1.0])], UNROLL)
    assert '"graphc.scan"' not in after


def test_one_step_with_a_condition() -> None:
    body = "  %m = arith.constant 1 : index\n" + loop("%m", stop=True)
    text = function(f"%x: {V}, %h0: {H}", body, f"%h : {V}; %steps : index")
    assert '"graphc.scan"' not in assert_same(text, [np.arange(1.0), np.ones(2)], UNROLL)


def test_limits() -> None:
    body = "  %m = arith.constant 3 : index\n" + loop("%m")
    text = function(f"%x: {V}, %h0: {H}", body, f"%h : {V}")
    inputs = [np.arange(3.0), np.ones(2)]
    for options in ("max-steps=2", "max-operations=20"):
        assert '"graphc.scan"' in assert_same(text, inputs, f"{UNROLL}{{{options}}}")
    asked = text.replace("reverse = false", "reverse = false, unroll = 3 : i64")
    assert '"graphc.scan"' not in assert_same(asked, inputs, f"{UNROLL}{{max-steps=0}}")


def test_a_state_that_changes_its_shape_is_an_error() -> None:
    """Without the loop nothing else would compare the rows of different iterations."""
    body = f"""  %m = arith.constant 1 : index
  %s = "graphc.scan"(%m) ({{
  ^bb0(%t: index):
    %a = "graphc.scan_prev"(%t) {{state = "h", tap = -1 : i64}} : (index) -> {V}
    %b = "graphc.join"(%a, %a) {{axis = 0 : i64}} : ({V}, {V}) -> {V}
    "graphc.scan_carry"(%h0, %b) {{state = "h", taps = array<i64: -1>, writes = array<i64: 0>,
      keep = "last", rows = 1 : i64}} : (tensor<1x?xf64>, {V}) -> ()
    "graphc.scan_end"() : () -> ()
  }}) {{name = "grows", reverse = false}} : (index) -> !graphc.loop
  %h = "graphc.scan_trace"(%s) {{state = "h"}} : (!graphc.loop) -> tensor<1x?xf64>"""
    text = function("%h0: tensor<1x?xf64>", body, "%h : tensor<1x?xf64>")
    for size in (0, 2):
        assert "graphc.check" in assert_same(text, [np.ones((1, size))], UNROLL)


def test_checks_stay_with_each_iteration() -> None:
    check = """%below = arith.cmpi slt, %t, %m : index
    "graphc.check"(%below, %t, %m) {message = "no", error = "ValueError"} : (i1, index, index) -> ()
    %a ="""
    body = "  %m = arith.constant 2 : index\n" + loop("%m").replace("%a =", check, 1)
    text = function(f"%x: {V}, %h0: {H}", body, f"%h : {V}")
    assert assert_same(text, [np.arange(2.0), np.ones(2)], UNROLL).count("graphc.check") == 2


@pytest.mark.parametrize("flag", [SAVE, INPLACE, UNROLL])
def test_modules_without_scans_are_left_alone(flag: str) -> None:
    text = function(f"%x: {V}", f'  %y = "graphc.exp"(%x) : ({V}) -> {V}', f"%y : {V}")
    with context(), ir.Location.unknown():
        module = ir.Module.parse(text)
        step = find(flag)()
        before = str(module)
        step.run(module)
        assert str(module) == before and not step.statistics
