# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Edge cases of the passes that move work out of scans."""

from __future__ import annotations

import numpy as np
import pytest

from graphc.backends.interpret.interpreter import run_function
from graphc.ir.affine import at
from graphc.ir.scan_view import ScanView, scans
from graphc.ir.size import Size
from graphc.passes import find
from graphc.passes.loops._consumers import LastRowUses
from graphc.passes.loops.scan_to_map import rule_of
from graphc.passes.run import run_pipeline
from graphc_dialects._mlir import ir

from ._semantics import context

ALL = [f"graphc-scan-push-out-{name}" for name in ("seq", "output", "dot1")]
RNG = np.random.default_rng(0)


def _rows(body: str, row: str, arguments: str, reverse: bool = False, end: str = "") -> str:
    """A module that collects `%y` of type `row`; the body reads rows `%xt` of `%x`."""
    return f"""
func.func @main(%n: index, {arguments}) -> tensor<?x{row}> {{
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %s = "graphc.scan"(%n) ({{
  ^bb0(%t: index):
{body}
    "graphc.scan_collect"(%y) {{state = "y", keep = "steps"}} : (tensor<{row}>) -> ()
    "graphc.scan_end"({end}) : ({"i1" if end else ""}) -> ()
  }}) {{name = "loop", reverse = {str(reverse).lower()}}} : (index) -> !graphc.loop
  %r = "graphc.scan_trace"(%s) {{state = "y"}} : (!graphc.loop) -> tensor<?x{row}>
  return %r : tensor<?x{row}>
}}
"""


def _xt(row: str, x: str = "x") -> str:
    return f'    %{x}t = "graphc.scan_seq"(%{x}, %t) : (tensor<?x{row}>, index) -> tensor<{row}>\n'


def _body(text: str) -> str:
    """What the only scan repeats."""
    return text[text.index('"graphc.scan"') : text.index("scan_end")]


def _check(text: str, inputs: list[object], passes: list[str] = ALL) -> str:
    """Asserts that the passes keep results and errors; returns the new IR."""
    with context(), ir.Location.unknown():
        before, after = ir.Module.parse(text), ir.Module.parse(text)
        run_pipeline(after, passes, verify_each=True)
        results = []
        for module in (before, after):
            try:
                results.append(run_function(module, inputs)[0])
            except (ValueError, IndexError) as error:
                results.append(type(error).__name__)
        want, have = results
        if isinstance(want, str) or isinstance(have, str):
            assert want == have
        else:
            assert want.shape == have.shape and want.dtype == have.dtype
            np.testing.assert_allclose(have, want, 1e-10, 1e-10)
        return str(after)


V, N = "tensor<?xf64>", "index"
OPERATIONS = {
    "join": (f'"graphc.join"(%e, %z) {{axis = 0 : i64}} : ({V}, {V}) -> {V}', "?xf64"),
    "reshape": (f'"graphc.reshape"(%e, %c1, %k) : ({V}, {N}, {N}) -> tensor<1x?xf64>', "1x?xf64"),
    "broadcast": (f'"graphc.broadcast_to"(%e, %c1, %k) : ({V}, {N}, {N}) -> tensor<?x?xf64>', "?x?xf64"),
    "specify": (f'"graphc.specify_shape"(%e, %k) : ({V}, {N}) -> {V}', "?xf64"),
    "argmax": (f'"graphc.argmax"(%e) {{axis = 0 : i64}} : ({V}) -> tensor<i64>', "i64"),
    "maximum": (f'"graphc.reduce_max"(%e) {{axes = array<i64: 0>}} : ({V}) -> tensor<f64>', "f64"),
    "slice": (f'"graphc.slice"(%e, %c1, %c1, %c1) : ({V}, {N}, {N}, {N}) -> tensor<1xf64>', "1xf64"),
    "update": (
        (
            '"graphc.update_slice"(%e, %one, %c0, %c1, %c1) {accumulate = true} : '
            f"({V}, tensor<1xf64>, {N}, {N}, {N}) -> {V}"
        ),
        "?xf64",
    ),
    "cast": (f'"graphc.cast"(%e) : ({V}) -> tensor<?xi64>', "?xi64"),
    "softmax": (f'"graphc.softmax"(%e) {{axes = array<i64: 0>}} : ({V}) -> {V}', "?xf64"),
}


@pytest.mark.parametrize("name", OPERATIONS)
@pytest.mark.parametrize("steps", [0, 1, 3])
@pytest.mark.parametrize("reverse", [False, True])
def test_operations(name: str, steps: int, reverse: bool) -> None:
    line, row = OPERATIONS[name]
    body = (
        _xt("?xf64")
        + '    %e = "graphc.exp"(%xt) : (tensor<?xf64>) -> tensor<?xf64>\n'
        + "    %one = arith.constant dense<1.0> : tensor<1xf64>\n"
        + '    %z = "graphc.exp"(%b) : (tensor<?xf64>) -> tensor<?xf64>\n'
        + f"    %y = {line}"
    )
    text = _rows(body, row, "%x: tensor<?x?xf64>, %b: tensor<?xf64>, %k: index", reverse)
    for size in (3, 2):
        inputs = [steps, RNG.normal(size=(3, size)), RNG.normal(size=3), size]
        new = _check(text, inputs)
        assert "graphc.exp" not in _body(new)


def test_gather_by_a_sequence() -> None:
    body = (
        '    %xt = "graphc.scan_seq"(%x, %t) : (tensor<?xi64>, index) -> tensor<i64>\n'
        '    %g = "graphc.take"(%e, %xt) {axis = 1 : i64} : (tensor<2x5xf64>, tensor<i64>) -> tensor<2xf64>\n'
        '    %y = "graphc.exp"(%g) : (tensor<2xf64>) -> tensor<2xf64>'
    )
    text = _rows(body, "2xf64", "%x: tensor<?xi64>, %e: tensor<2x5xf64>")
    table = RNG.normal(size=(2, 5))
    assert "scan_collect" not in _check(text, [3, np.array([4, 0, -1]), table])
    _check(text, [0, np.array([9, 9]), table])
    _check(text, [2, np.array([1, 9]), table])


def test_iota_with_a_start_from_a_sequence() -> None:
    body = (
        _xt("f64")
        + "    %step = arith.constant dense<0.5> : tensor<f64>\n"
        + '    %i = "graphc.iota"(%xt, %step, %k) : (tensor<f64>, tensor<f64>, index) -> tensor<?xf64>\n'
        + '    %y = "graphc.exp"(%i) : (tensor<?xf64>) -> tensor<?xf64>'
    )
    text = _rows(body, "?xf64", "%x: tensor<?xf64>, %k: index")
    assert "scan_collect" not in _check(text, [3, RNG.normal(size=3), 4])


@pytest.mark.parametrize("steps", [0, 1, 3])
def test_sizes_that_disagree_fail_only_if_there_is_an_iteration(steps: int) -> None:
    body = _xt("?xf64") + (
        '    %z = "graphc.add"(%xt, %b) : (tensor<?xf64>, tensor<?xf64>) -> tensor<?xf64>\n'
        '    %row = "graphc.dimshuffle"(%z) {order = array<i64: -1, 0>} : '
        "(tensor<?xf64>) -> tensor<1x?xf64>\n"
        '    %y = "graphc.matmul"(%row, %u) {transpose_a = false, transpose_b = false} : '
        "(tensor<1x?xf64>, tensor<?x2xf64>) -> tensor<1x2xf64>"
    )
    text = _rows(body, "1x2xf64", "%x: tensor<?x?xf64>, %b: tensor<?xf64>, %u: tensor<?x2xf64>")
    for b, u in ((3, 3), (4, 3), (3, 4), (4, 4)):
        _check(text, [steps, RNG.normal(size=(3, 3)), RNG.normal(size=b), RNG.normal(size=(u, 2))])


@pytest.mark.parametrize("reverse", [False, True])
@pytest.mark.parametrize("last", [0, 1, 7])
def test_a_stopped_scan_uses_the_rows_it_ran(reverse: bool, last: int) -> None:
    body = (
        _xt("f64")
        + '    %h = "graphc.scan_prev"(%t) {state = "h", tap = -1 : i64} : (index) -> tensor<f64>\n'
        + '    %h2 = "graphc.add"(%h, %xt) : (tensor<f64>, tensor<f64>) -> tensor<f64>\n'
        + '    "graphc.scan_carry"(%h0, %h2) {state = "h", taps = array<i64: -1>, writes = array<i64: 0>, '
        + 'keep = "all"} : (tensor<1xf64>, tensor<f64>) -> ()\n'
        + '    %hx = "graphc.mul"(%h, %xt) : (tensor<f64>, tensor<f64>) -> tensor<f64>\n'
        + '    %y = "graphc.exp"(%hx) : (tensor<f64>) -> tensor<f64>\n'
        + "    %stop = arith.cmpi eq, %t, %k : index"
    )
    text = _rows(body, "f64", "%x: tensor<?xf64>, %h0: tensor<1xf64>, %k: index", reverse, "%stop")
    new = _check(text, [5, RNG.normal(size=6), RNG.normal(size=1), last])
    inside = _body(new)
    assert "graphc.exp" not in inside


def test_taps_and_reverse_read_the_right_rows() -> None:
    for reverse in (False, True):
        body = (
            '    %a = "graphc.scan_prev"(%t) {state = "h", tap = -3 : i64} : (index) -> tensor<2xf64>\n'
            '    %b = "graphc.scan_prev"(%t) {state = "h", tap = -1 : i64} : (index) -> tensor<2xf64>\n'
            '    %c = "graphc.sub"(%a, %b) : (tensor<2xf64>, tensor<2xf64>) -> tensor<2xf64>\n'
            '    "graphc.scan_carry"(%h0, %c) {state = "h", taps = array<i64: -3, -1>, '
            'writes = array<i64: 0>, keep = "all"} : (tensor<3x2xf64>, tensor<2xf64>) -> ()\n'
            '    %d = "graphc.mul"(%a, %c) : (tensor<2xf64>, tensor<2xf64>) -> tensor<2xf64>\n'
            '    %y = "graphc.tanh"(%d) : (tensor<2xf64>) -> tensor<2xf64>'
        )
        text = _rows(body, "2xf64", "%h0: tensor<3x2xf64>", reverse)
        for steps in (0, 1, 5):
            new = _check(text, [steps, RNG.normal(size=(3, 2))])
        inside = _body(new)
        assert "graphc.tanh" not in inside


def test_rows_that_are_written_again_are_not_taken_from_the_trace() -> None:
    body = (
        '    %a = "graphc.scan_prev"(%t) {state = "h", tap = -2 : i64} : (index) -> tensor<f64>\n'
        '    %b = "graphc.scan_prev"(%t) {state = "h", tap = -1 : i64} : (index) -> tensor<f64>\n'
        '    %c = "graphc.sub"(%a, %b) : (tensor<f64>, tensor<f64>) -> tensor<f64>\n'
        '    %d = "graphc.sub"(%c, %a) : (tensor<f64>, tensor<f64>) -> tensor<f64>\n'
        '    "graphc.scan_carry"(%h0, %c, %d) {state = "h", taps = array<i64: -2, -1>, '
        'writes = array<i64: -1, 0>, keep = "all"} : (tensor<2xf64>, tensor<f64>, tensor<f64>) -> ()\n'
        '    %y = "graphc.tanh"(%d) : (tensor<f64>) -> tensor<f64>'
    )
    for steps in (0, 1, 4):
        _check(_rows(body, "f64", "%h0: tensor<2xf64>"), [steps, RNG.normal(size=2)])


def test_a_check_in_the_body_protects_slices() -> None:
    body = _xt("?xf64") + (
        "    %d = tensor.dim %x, %c1 : tensor<?x?xf64>\n"
        "    %ok = arith.cmpi slt, %k, %d : index\n"
        '    "graphc.check"(%ok, %k, %d) {message = "no", error = "IndexError"} : (i1, index, index) -> ()\n'
        '    %z = "graphc.slice"(%xt, %k, %c1, %c1) : (tensor<?xf64>, index, index, index) -> tensor<1xf64>\n'
        '    %y = "graphc.exp"(%z) : (tensor<1xf64>) -> tensor<1xf64>'
    )
    text = _rows(body, "1xf64", "%x: tensor<?x?xf64>, %k: index")
    for k in (1, 5):
        new = _check(text, [2, RNG.normal(size=(2, 3)), k])
        assert "graphc.slice" in _body(new)


def test_literal_numbers_of_iterations() -> None:
    body = _xt("2xf64") + '    %y = "graphc.exp"(%xt) : (tensor<2xf64>) -> tensor<2xf64>'
    for steps in (0, 1, 4):
        text = _rows(body, "2xf64", "%x: tensor<?x2xf64>").replace("main(%n: index, ", "main(")
        text = text.replace("  %c0 =", f"  %n = arith.constant {steps} : index\n  %c0 =", 1)
        _check(text, [RNG.normal(size=(5, 2))])


def test_a_module_without_scan_is_left_alone() -> None:
    text = "func.func @main(%x: tensor<f64>) -> tensor<f64> {\n  return %x : tensor<f64>\n}"
    with context(), ir.Location.unknown():
        for flag in ALL:
            module = ir.Module.parse(text)
            before, instance = str(module), find(flag)()
            instance.run(module)
            assert str(module) == before and not instance.statistics


def test_an_inner_loop_is_treated_and_kept() -> None:
    """Work of an inner loop moves before it, into the body of the outer one."""
    inner = (
        _xt("?x2xf64")
        + '    %i = "graphc.scan"(%m) ({\n    ^bb0(%u: index):\n'
        + '      %r = "graphc.scan_seq"(%xt, %u) : (tensor<?x2xf64>, index) -> tensor<2xf64>\n'
        + '      %p = "graphc.scan_prev"(%u) {state = "g", tap = -1 : i64} : (index) -> tensor<2xf64>\n'
        + '      %e = "graphc.exp"(%r) : (tensor<2xf64>) -> tensor<2xf64>\n'
        + '      %q = "graphc.mul"(%p, %e) : (tensor<2xf64>, tensor<2xf64>) -> tensor<2xf64>\n'
        + '      "graphc.scan_carry"(%g0, %q) {state = "g", taps = array<i64: -1>, writes = array<i64: 0>, '
        + 'keep = "last", rows = 1 : i64} : (tensor<1x2xf64>, tensor<2xf64>) -> ()\n'
        + '      "graphc.scan_end"() : () -> ()\n'
        + '    }) {name = "inner", reverse = false} : (index) -> !graphc.loop\n'
        + '    %y = "graphc.scan_trace"(%i) {state = "g"} : (!graphc.loop) -> tensor<1x2xf64>'
    )
    text = _rows(inner, "1x2xf64", "%x: tensor<?x?x2xf64>, %g0: tensor<1x2xf64>, %m: index")
    for steps, m in ((0, 3), (2, 0), (2, 3)):
        new = _check(text, [steps, RNG.normal(size=(2, 3, 2)), RNG.normal(size=(1, 2)), m])
    assert new.index("graphc.exp") < new.rindex('"graphc.scan"(')


@pytest.mark.parametrize(
    ("use", "last"),
    [
        ("%i = arith.subi %d, %c1 : index", True),
        ("%i = arith.addi %n, %c0 : index", True),
        ("%i = arith.constant 0 : index", False),
        ("%j = arith.subi %d, %c1 : index\n  %i = arith.minsi %j, %n : index", True),
        ("%i = arith.subi %n, %c1 : index", False),
    ],
)
def test_positions_of_the_last_row(use: str, last: bool) -> None:
    text = f"""
func.func @main(%n: index, %h0: tensor<1xf64>) -> tensor<f64> {{
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %s = "graphc.scan"(%n) ({{
  ^bb0(%t: index):
    %h = "graphc.scan_prev"(%t) {{state = "h", tap = -1 : i64}} : (index) -> tensor<f64>
    "graphc.scan_carry"(%h0, %h) {{state = "h", taps = array<i64: -1>, writes = array<i64: 0>,
      keep = "all"}} : (tensor<1xf64>, tensor<f64>) -> ()
    "graphc.scan_end"() : () -> ()
  }}) {{name = "loop", reverse = false}} : (index) -> !graphc.loop
  %r = "graphc.scan_trace"(%s) {{state = "h"}} : (!graphc.loop) -> tensor<?xf64>
  %d = tensor.dim %r, %c0 : tensor<?xf64>
  {use}
  %y = "graphc.scan_seq"(%r, %i) : (tensor<?xf64>, index) -> tensor<f64>
  return %y : tensor<f64>
}}
"""
    with context(), ir.Location.unknown():
        module = ir.Module.parse(text)
        assert LastRowUses(ScanView(scans(module.operation)[0]), "h").only == last


def test_there_is_a_rule_for_elementwise_operations_and_none_for_loops() -> None:
    assert rule_of("graphc.tanh") is not None and rule_of("graphc.scan") is None
    assert rule_of("graphc.put") is None and at(Size(1), 3) == 1
