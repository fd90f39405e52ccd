# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""scan-to-map, scan-to-reduce and scan-to-associative: same results, and what is and is not rewritten."""

from __future__ import annotations

import re
from typing import Any

import numpy as np
import pytest

from graphc.passes.run import run_pipeline
from graphc_dialects._mlir import ir
from graphc_tools.legality import check

from ._semantics import assert_close, context, outcome

ALL = ["graphc-scan-to-associative", "graphc-scan-to-reduce", "graphc-scan-to-map", "canonicalize,cse"]
DTYPES = {"f64": np.float64, "f32": np.float32, "i32": np.int32, "ui8": np.uint8, "i1": np.bool_}
STEPS = [0, 1, 2, 9]


def _tensor(shape: str, element: str) -> str:
    return f"tensor<{shape}x{element}>" if shape else f"tensor<{element}>"


class Loop:
    """The text of a module with one scan of a state `h` over a sequence `%x` and an invariant `%w`, both of
    rows of one shape; `body` computes `%h1` from `%h`, `%xt` and `%w`.
    """

    def __init__(
        self, body: str, element: str = "f64", row: str = "", keep: str = "steps", rows: int | None = None,
        reverse: bool = False, collect: str | None = None, stop: str = "", initial: str = "%h0",
    ) -> None:  # fmt: skip
        self.element, self.row = element, row
        t, lead = _tensor(row, element), "x" + row if row else ""
        stack, one = f"tensor<?{lead}x{element}>", f"tensor<1{lead}x{element}>"
        kept = f"tensor<{'?' if rows is None else rows}{lead}x{element}>"
        self.types = {"T": t}
        retention = f'keep = "{keep}"' + (f", rows = {rows} : i64" if rows is not None else "")
        body = re.sub(r"= (\w+)\(", r'= "graphc.\1"(', body)
        body = body.replace(":2", f": ({t}, {t}) -> {t}").replace(":1", f": ({t}) -> {t}")
        results, types = ["%r"], [kept]
        extra, trace = "", ""
        if collect:
            extra = f'"graphc.scan_collect"({collect}) {{state = "y", keep = "steps"}} : ({t}) -> ()'
            trace = f'%ys = "graphc.scan_trace"(%s) {{state = "y"}} : (!graphc.loop) -> {stack}'
            results.append("%ys")
            types.append(stack)
        constant = ""
        if initial != "%h0":
            constant = f"%one = arith.constant dense<{initial}> : {one}"
            initial = "%one"
        self.text = f"""
func.func @main(%x: {stack}, %w: {t}, %h0: {one}) -> ({", ".join(types)}) {{
  %c0 = arith.constant 0 : index
  {constant}
  %n = tensor.dim %x, %c0 : {stack}
  %s = "graphc.scan"(%n) ({{
  ^bb0(%t: index):
    %xt = "graphc.scan_seq"(%x, %t) : ({stack}, index) -> {t}
    %h = "graphc.scan_prev"(%t) {{state = "h", tap = -1 : i64}} : (index) -> {t}
    {body}
    "graphc.scan_carry"({initial}, %h1) {{
      state = "h", taps = array<i64: -1>, writes = array<i64: 0>, {retention}}} : ({one}, {t}) -> ()
    {extra}
    {stop or '"graphc.scan_end"() : () -> ()'}
  }}) {{name = "loop", reverse = {str(reverse).lower()}}} : (index) -> !graphc.loop
  %r = "graphc.scan_trace"(%s) {{state = "h"}} : (!graphc.loop) -> {kept}
  {trace}
  return {", ".join(results)} : {", ".join(types)}
}}"""

    def inputs(self, steps: int, seed: int = 0) -> list[Any]:
        rng, dtype = np.random.default_rng(seed), DTYPES[self.element]
        row = [int(size) if size != "?" else 3 for size in self.row.split("x")] if self.row else []

        def array(*shape: int) -> Any:
            if dtype == np.bool_:
                return rng.random(shape) < 0.5
            return np.asarray(np.round(rng.uniform(0 if dtype == np.uint8 else -3, 3, shape), 2)).astype(
                dtype
            )

        return [array(steps, *row), array(*row), array(1, *row)]


def rewritten(loop: Loop, passes: list[str] = ALL, steps: list[int] = STEPS) -> str:
    """Asserts that passes keep what a loop computes; returns the new IR."""
    with context(), ir.Location.unknown():
        before, after = ir.Module.parse(loop.text), ir.Module.parse(loop.text)
        run_pipeline(after, passes, verify_each=True, check=check)
        for n in steps:
            inputs = loop.inputs(n, seed=n)
            want, have = outcome(before, inputs), outcome(after, inputs)
            for x, y in zip(want, have, strict=True):
                assert_close(x, y, None, str(after))
        return str(after)


FOLDS = {
    "add": "%h1 = add(%h, %xt) :2",
    "swapped": "%h1 = add(%xt, %h) :2",
    "difference": "%h1 = sub(%h, %xt) :2",
    "mul": "%h1 = mul(%xt, %h) :2",
    "max": "%h1 = maximum(%h, %xt) :2",
    "min": "%h1 = minimum(%xt, %h) :2",
    "two terms": "%a = add(%h, %xt) :2\n %h1 = add(%w, %a) :2",
    "computed": "%a = mul(%xt, %w) :2\n %h1 = add(%h, %a) :2",
    "invariant": "%h1 = add(%h, %w) :2",
}
LOGIC = {
    "and": "%h1 = and(%h, %xt) :2",
    "or": "%h1 = or(%xt, %h) :2",
    "logical": "%h1 = logical_or(%xt, %h) :2",
    "sum": "%h1 = add(%xt, %h) :2",
    "product": "%h1 = mul(%xt, %h) :2",
}


@pytest.mark.parametrize("reverse", [False, True])
@pytest.mark.parametrize("row", ["", "3", "2x2", "?"])
@pytest.mark.parametrize("element", ["f64", "f32", "i32", "ui8"])
@pytest.mark.parametrize("form", FOLDS)
def test_last_row_becomes_a_reduction(form: str, element: str, row: str, reverse: bool) -> None:
    loop = Loop(FOLDS[form], element, row, "last", 1, reverse)
    new = rewritten(loop, ["graphc-scan-to-reduce{reassociate=true}", *ALL])
    fits = row != "?"  # rows of unknown size might not fit the initial one
    assert ("graphc.scan" in new) != fits and ("graphc.reduce_" in new) == fits


@pytest.mark.parametrize("form", LOGIC)
def test_booleans_become_reductions(form: str) -> None:
    new = rewritten(Loop(LOGIC[form], "i1", "2", "last", 1))
    assert "graphc.scan" not in new and ("graphc.reduce_or" in new or "graphc.reduce_and" in new)


@pytest.mark.parametrize("keep", ["steps", "all"])
@pytest.mark.parametrize("reverse", [False, True])
@pytest.mark.parametrize("row", ["", "3", "2x2"])
@pytest.mark.parametrize("element", ["f64", "f32", "i32"])
@pytest.mark.parametrize("form", FOLDS)
def test_all_rows_become_a_running_sum(form: str, element: str, row: str, reverse: bool, keep: str) -> None:
    new = rewritten(Loop(FOLDS[form], element, row, keep, reverse=reverse))
    gains = row or (element != "i32" and form != "mul")
    assert ("graphc.cumulative" in new) == bool(gains)
    assert ("graphc.scan" in new) != bool(gains)


LINEAR = {
    "plain": "%a = mul(%w, %h) :2\n %h1 = add(%a, %xt) :2",
    "swapped": "%a = mul(%h, %xt) :2\n %h1 = add(%w, %a) :2",
    "minus b": "%a = mul(%w, %h) :2\n %h1 = sub(%a, %xt) :2",
    "minus a": "%a = mul(%w, %h) :2\n %h1 = sub(%xt, %a) :2",
    "negated": "%a = mul(%w, %h) :2\n %b = add(%a, %xt) :2\n %h1 = neg(%b) :1",
    "negated product": "%a = mul(%w, %h) :2\n %b = neg(%a) :1\n %h1 = add(%b, %xt) :2",
}


@pytest.mark.parametrize("reverse", [False, True])
@pytest.mark.parametrize("element", ["f64", "i32"])
@pytest.mark.parametrize("form", LINEAR)
def test_linear_recurrence(form: str, element: str, reverse: bool) -> None:
    assert "graphc.linear_recurrence" in rewritten(Loop(LINEAR[form], element, "3", reverse=reverse))
    scalar = Loop(LINEAR[form], element, reverse=reverse)
    assert "graphc.scan" in rewritten(scalar)
    new = rewritten(scalar, ["graphc-scan-to-associative{reassociate=true}"])
    assert ("graphc.linear_recurrence" in new) == (element == "f64")


def test_products_are_reordered_only_on_demand() -> None:
    product = "%h1 = mul(%h, %xt) :2"
    assert "graphc.scan" in rewritten(Loop(product, keep="last", rows=1))
    assert "graphc.reduce_prod" in rewritten(Loop(product, keep="last", rows=1, initial="1.0"))
    assert "graphc.scan" in rewritten(Loop(product))
    assert "graphc.cumulative" in rewritten(Loop(product), ["graphc-scan-to-associative{reassociate=true}"])


@pytest.mark.parametrize("reverse", [False, True])
@pytest.mark.parametrize("keep", [("steps", None), ("all", None), ("last", 1), ("last", 0)])
@pytest.mark.parametrize(
    "body",
    [
        "%h1 = add(%h, %xt) :2\n %y = exp(%h) :1",
        "%h1 = add(%h, %xt) :2\n %y = exp(%h1) :1",
        "%a = add(%h, %xt) :2\n %y = exp(%a) :1\n %h1 = add(%a, %w) :2",
        "%h1 = add(%h, %xt) :2\n %y = mul(%h, %h1) :2",
    ],
)
def test_rest_of_the_body_reads_rows_of_the_running_sum(body: str, keep: Any, reverse: bool) -> None:
    new = rewritten(Loop(body, keep=keep[0], rows=keep[1], reverse=reverse, collect="%y"))
    assert "graphc.cumulative" in new and "graphc.scan" not in new


@pytest.mark.parametrize(
    "loop",
    [
        Loop("%a = exp(%h) :1\n %h1 = add(%h, %a) :2"),
        Loop("%a = exp(%h) :1\n %h1 = add(%a, %xt) :2", keep="last", rows=1),
        Loop("%h1 = add(%h, %h) :2"),
        Loop("%h1 = sub(%xt, %h) :2", keep="last", rows=1),
        Loop("%a = maximum(%h, %xt) :2\n %h1 = add(%a, %w) :2"),
        Loop("%h1 = maximum(%h, %xt) :2", keep="last", rows=1, collect="%h1"),
        Loop("%h1 = add(%h, %xt) :2", keep="last", rows=2),
    ],
)
def test_what_stays_a_loop(loop: Loop) -> None:
    passes = ["graphc-scan-to-reduce", "graphc-scan-to-map"]
    passes += [] if "rows = 1" in loop.text else ["graphc-scan-to-associative"]
    assert "graphc.scan_carry" in rewritten(loop, passes, [1, 2, 9])


def test_while_scans_are_left_alone() -> None:
    stop = '%f = arith.cmpi eq, %t, %n : index\n "graphc.scan_end"(%f) : (i1) -> ()'
    body = "%h1 = add(%h, %xt) :2\n %y = exp(%xt) :1"
    new = rewritten(Loop(body, stop=stop, collect="%y"))
    assert new.count("graphc.scan_collect") == 1 and new.count("graphc.scan_carry") == 1


def test_nan_wins_in_loops_and_in_what_they_become() -> None:
    with context(), ir.Location.unknown():
        for keep, rows in (("steps", None), ("last", 1)):
            loop = Loop("%h1 = maximum(%h, %xt) :2", keep=keep, rows=rows)
            module = ir.Module.parse(loop.text)
            inputs = [np.array([1.0, np.nan, 2.0]), np.array(0.0), np.array([0.5])]
            want = outcome(module, inputs)
            run_pipeline(module, ALL)
            assert "graphc.scan" not in str(module)
            np.testing.assert_array_equal(outcome(module, inputs)[0], want[0])


def test_states_are_rewritten_together_or_not_at_all() -> None:
    def module(second: str) -> str:
        return f"""
func.func @main(%x: tensor<?xf64>, %h0: tensor<1xf64>) -> (tensor<?xf64>, tensor<?xf64>) {{
  %c0 = arith.constant 0 : index
  %n = tensor.dim %x, %c0 : tensor<?xf64>
  %s = "graphc.scan"(%n) ({{
  ^bb0(%t: index):
    %xt = "graphc.scan_seq"(%x, %t) : (tensor<?xf64>, index) -> tensor<f64>
    %h = "graphc.scan_prev"(%t) {{state = "h", tap = -1 : i64}} : (index) -> tensor<f64>
    %g = "graphc.scan_prev"(%t) {{state = "g", tap = -1 : i64}} : (index) -> tensor<f64>
    %h1 = "graphc.add"(%h, %xt) : (tensor<f64>, tensor<f64>) -> tensor<f64>
    {second}
    "graphc.scan_carry"(%h0, %g1) {{
      state = "g", taps = array<i64: -1>, writes = array<i64: 0>, keep = "steps"
    }} : (tensor<1xf64>, tensor<f64>) -> ()
    "graphc.scan_carry"(%h0, %h1) {{
      state = "h", taps = array<i64: -1>, writes = array<i64: 0>, keep = "all"
    }} : (tensor<1xf64>, tensor<f64>) -> ()
    "graphc.scan_end"() : () -> ()
  }}) {{name = "loop", reverse = false}} : (index) -> !graphc.loop
  %a = "graphc.scan_trace"(%s) {{state = "h"}} : (!graphc.loop) -> tensor<?xf64>
  %b = "graphc.scan_trace"(%s) {{state = "g"}} : (!graphc.loop) -> tensor<?xf64>
  return %a, %b : tensor<?xf64>, tensor<?xf64>
}}"""

    from ._semantics import assert_same

    inputs = [np.arange(5.0), np.array([0.5])]
    pair = "(tensor<f64>, tensor<f64>) -> tensor<f64>"
    chained = module(f'%g1 = "graphc.maximum"(%g, %h) : {pair}')
    assert assert_same(chained, inputs, "graphc-scan-to-associative").count("graphc.cumulative") == 2
    sine = '%e = "graphc.sin"(%g) : (tensor<f64>) -> tensor<f64>\n'
    apart = module(f'{sine} %g1 = "graphc.add"(%e, %xt) : {pair}')
    assert "graphc.cumulative" not in assert_same(apart, inputs, "graphc-scan-to-associative")


MAPS = {
    "iteration": """%i = arith.index_cast %t : index to i64
      %k = tensor.from_elements %i : tensor<i64>
      %y = "graphc.cast"(%k) : (tensor<i64>) -> tensor<f64>""",
    "sequence": '%y = "graphc.exp"(%xt) : (tensor<f64>) -> tensor<f64>',
    "invariant": '%y = "graphc.exp"(%w) : (tensor<f64>) -> tensor<f64>',
    "both": '%y = "graphc.mul"(%xt, %w) : (tensor<f64>, tensor<f64>) -> tensor<f64>',
}


@pytest.mark.parametrize("keep", ['keep = "steps"', 'keep = "last", rows = 2 : i64'])
@pytest.mark.parametrize("reverse", ["true", "false"])
@pytest.mark.parametrize("form", MAPS)
def test_loop_without_states_vanishes(form: str, reverse: str, keep: str) -> None:
    rows = "2" if "last" in keep else "?"
    text = f"""
func.func @main(%x: tensor<?xf64>, %w: tensor<f64>) -> tensor<{rows}xf64> {{
  %c0 = arith.constant 0 : index
  %n = tensor.dim %x, %c0 : tensor<?xf64>
  %s = "graphc.scan"(%n) ({{
  ^bb0(%t: index):
    %xt = "graphc.scan_seq"(%x, %t) : (tensor<?xf64>, index) -> tensor<f64>
    {MAPS[form]}
    "graphc.scan_collect"(%y) {{state = "y", {keep}}} : (tensor<f64>) -> ()
    "graphc.scan_end"() : () -> ()
  }}) {{name = "loop", reverse = {reverse}}} : (index) -> !graphc.loop
  %a = "graphc.scan_trace"(%s) {{state = "y"}} : (!graphc.loop) -> tensor<{rows}xf64>
  return %a : tensor<{rows}xf64>
}}"""
    from ._semantics import assert_same

    for steps in (2, 5) if rows == "2" else (0, 1, 5):
        new = assert_same(text, [np.arange(float(steps)), np.array(0.5)], "graphc-scan-to-map")
        assert "graphc.scan" not in new


@pytest.mark.parametrize("reverse", ["true", "false"])
def test_last_row_is_found_after_slices(reverse: str) -> None:
    text = f"""
func.func @main(%x: tensor<?xf64>, %h0: tensor<1xf64>) -> tensor<f64> {{
  %c0 = arith.constant 0 : index
  %n = tensor.dim %x, %c0 : tensor<?xf64>
  %s = "graphc.scan"(%n) ({{
  ^bb0(%t: index):
    %xt = "graphc.scan_seq"(%x, %t) : (tensor<?xf64>, index) -> tensor<f64>
    %h = "graphc.scan_prev"(%t) {{state = "h", tap = -1 : i64}} : (index) -> tensor<f64>
    %h1 = "graphc.add"(%h, %xt) : (tensor<f64>, tensor<f64>) -> tensor<f64>
    "graphc.scan_carry"(%h0, %h1) {{
      state = "h", taps = array<i64: -1>, writes = array<i64: 0>, keep = "all"
    }} : (tensor<1xf64>, tensor<f64>) -> ()
    "graphc.scan_end"() : () -> ()
  }}) {{name = "loop", reverse = {reverse}}} : (index) -> !graphc.loop
  %r = "graphc.scan_trace"(%s) {{state = "h"}} : (!graphc.loop) -> tensor<?xf64>
  %last = {"arith.addi %c0, %c0" if reverse == "true" else "arith.addi %n, %c0"} : index
  %y = "graphc.scan_seq"(%r, %last) : (tensor<?xf64>, index) -> tensor<f64>
  return %y : tensor<f64>
}}"""
    from ._semantics import assert_same

    for steps in (0, 1, 6):
        new = assert_same(text, [np.arange(float(steps)), np.array([0.5])], "graphc-scan-to-reduce")
        assert "graphc.reduce_sum" in new and "graphc.scan" not in new
        assert "graphc.scan_carry" in assert_same(
            text, [np.arange(float(steps)), np.array([0.5])], "graphc-scan-to-associative"
        )
