# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""The generator reaches the whole library, and what it runs in notices errors, crashes and hangs."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from case_text import all_cases, text_of
from checked import Checked, known
from growing import Builder, Unfit, grow
from judging import Expectation, factors_what_is_none
from op_runner import LAYOUTS, VIEWS
from processes import Dead, Worker
from program import Input, Program, Step
from recipes import RECIPES, apply_case, recipes_users
from script import script
from shrinking import Shrinker
from ways import WAYS, check

import graphc

SEEDS = range(12)
# Loops that update shared variables give their updates.
pytestmark = pytest.mark.filterwarnings("ignore:this loop is returned as")


def applied(case):
    """The line of a case, in the first program in which it works."""
    for seed in SEEDS:
        b = Builder(seed)
        b.add_input()
        try:
            return b, apply_case(b, case)
        except Unfit:
            continue
    return None


def test_every_case_becomes_a_line():
    """And so every public function, as `test_op_table` sees to it that each has a case."""
    unreached = [case.name for case in all_cases() if applied(case) is None]
    assert not unreached


def test_the_text_of_a_case_means_the_case():
    for case in all_cases()[::40]:
        assert text_of(case, [f"v{i}" for i in range(len(case.arguments))])


def test_every_recipe_is_used():
    kinds = {step.kind for seed in range(400) for step in grow(seed).steps}
    # Lines of these have the names of cases.
    assert set(RECIPES) - {"library", "extremes"} <= kinds


def test_equal_seeds_give_equal_programs():
    assert repr(grow(5)) == repr(grow(5))


# Judging ------------------------------------------------------------------------------------------


def test_rounding_is_no_error_and_everything_else_is():
    x = np.array([1.0, 1e-9, 0.0, np.nan])
    expectation = Expectation(x, [x * (1 + 1e-15)] * 3)
    assert not expectation.difference(x * (1 + 4e-15))
    assert expectation.difference(x * (1 + 1e-9))
    assert expectation.difference(x + np.array([0, 0, 1e-12, 0]))
    assert expectation.difference(np.nan_to_num(x))
    assert expectation.difference(x.astype("float32")) and expectation.difference(x[:3])


@pytest.mark.parametrize("dtype", ["int64", "uint8", "float32"])
def test_a_root_at_a_whole_number_is_as_uncertain_as_its_operand(dtype):
    (expectation,) = Checked(program("pt.sinc(x0)", values=np.array([2, 3, 0], dtype))).expected
    assert not expectation.difference(np.array([0, 0, 1], expectation.value.dtype))
    assert expectation.difference(expectation.value + 0.001)


@pytest.mark.parametrize("line", ["pt.log(pt.exp(x0) / 2 / x0.size)", "pt.log(x0.size / (0.5 * pt.exp(x0)))"])
def test_exponentials_of_narrow_numbers_may_be_logarithms_before_they_are_widened(line):
    (expected,) = Checked(program(line, values=np.zeros(1, "float32"))).expected
    narrow = np.log(expected.value.dtype.type(2)).astype("float32").astype("float64") * np.sign(
        expected.value
    )
    assert expected.value.dtype == np.float64 and not expected.difference(narrow)
    assert expected.difference(expected.value * (1 + 1e-4))
    (expected,) = Checked(program("(x0 + 1) / x0.size", values=np.zeros(1, "float32"))).expected
    assert expected.difference(expected.value * (1 + 1e-8))


def test_a_factor_of_what_is_no_number_may_be_an_error():
    """As LAPACK's routines have it; of a matrix that is finite it is none."""
    line = "pt.linalg.cholesky(x0)"
    assert not check(program(line, values=np.array([[2.0, 0], [np.inf, np.nan]])), ["fast_run", "reference"])
    made = Checked(program(line, values=np.eye(2)))
    assert not factors_what_is_none(made.targets, known(made.built))


def test_transforms_round_both_parts_by_their_largest_element():
    rows = np.array([[0.0, 2, 1, -0.0, 1e15, -1], [0, 1, 2, 3, 4, 5]])
    (large,) = Checked(program("pt.fft.ifft(x0, axis=1).imag", values=rows)).expected
    (small,) = Checked(program("pt.fft.ifft(x0, axis=1).imag", values=rows[1:])).expected
    assert not large.difference(large.value + 0.02) and small.difference(small.value + 1e-9)


def test_a_zero_that_is_a_sum_has_no_sign():
    """That of others, and a zero itself, are compared."""
    values = np.array([-0.0, 1.0])
    summed, scaled = (Checked(program(x, "1 / v0", values=values)).expected[0] for x in ("x0 + 0", "x0 * 2"))
    other = np.array([-np.inf, 1.0])
    assert not summed.difference(other) and scaled.difference(np.array([np.inf, 0.5]))
    assert summed.difference(np.array([np.inf, 2.0])) and not scaled.difference(other / [1, 2])


def test_one_variable_of_unknown_number_has_a_matrix():
    assert not check(program("pt.corrcoef(x0)", values=np.array([[1.0, 2.0, 4.0]])), ["numpy"])


def test_what_noise_flips_is_no_evidence():
    expectation = Expectation(np.array([1, 2]), [np.array([1, 3])])
    assert not expectation.difference(np.array([1, 5]))
    assert expectation.difference(np.array([0, 2]))


@pytest.mark.parametrize("depth", [0, 1, 2])
def test_what_a_stable_form_knows_better_is_no_evidence_in_loops_either(depth):
    """A logarithm that is infinite as written, since an exponential within is 0."""
    loop = "graphc.scan(lambda r: {}, sequences=[{}], return_updates=False)"
    for body, evident in (("pt.log(pt.exp({}))", False), ("pt.log({} * 0)", True)):
        text = body
        for _ in range(depth):
            text = loop.format(text.format("r"), "{}")
        checked = Checked(program(text.format("x0"), values=np.full((2, 2), -1000.0)))
        assert not np.isfinite(checked.expected[0].value).any()
        assert checked.expected[0].evidence == evident


@pytest.mark.parametrize("scale", [1e-300, 1e-144, 1e-3, 1.0, 1e5])
def test_differences_are_of_steps_that_are_small_beside_a_number(scale, monkeypatch):
    roots = program("abs(pt.roots(x0))", values=np.array([1.2, -0.5]) * scale)
    assert not check(roots, ["sloped"])
    if scale < 1e-100:  # what is lost beside other results is no evidence
        return
    right = graphc.grad
    monkeypatch.setattr(graphc, "grad", lambda *args, **how: [2 * g for g in right(*args, **how)])
    assert check(program(f"pt.sin(x0 * {1 / scale})", values=np.array([0.7, -0.4]) * scale), ["sloped"])


def test_slopes_of_a_line_with_a_closed_form_have_no_measure():
    far = program("1 - pt.sigmoid(x0)", "x0 * 2", values=np.array([37.0, 529.0]))
    exact = replace(
        far,
        steps=(replace(far.steps[0], numpy="np.exp(-x0)", exact=True), far.steps[1]),
        outputs=("v0", "v1"),
    )
    assert check(replace(far, outputs=("v0",)), ["sloped"])
    assert not check(exact, ["sloped"])


# Failures -----------------------------------------------------------------------------------------


def program(*lines: str, values: np.ndarray) -> Program:
    """Lines that compute with one input."""
    steps = tuple(Step((f"v{i}",), text, "line") for i, text in enumerate(lines))
    return Program((Input("x0", values, (None,) * values.ndim),), steps, (steps[-1].names[0],))


@pytest.mark.parametrize(
    ("text", "values"),
    [
        ("x0 * x0 - x0**2", np.array([1.1, 3.3, 0.7])),
        ("pt.exp(x0)", np.array([3, 12, 200], "uint8")),
    ],
)
def test_rounding_within_a_line_and_narrow_floats_of_numpy_are_no_error(text, values):
    assert not check(program(text, values=values), ["numpy"])


def test_a_closed_form_of_narrow_numbers_is_not_rounded_before_its_end():
    values = np.array([-20.3, -3.7], "float32")
    made = program("pt.log1p(pt.exp(x0))", values=values)
    made = replace(made, steps=(replace(made.steps[0], numpy="np.log(1 + np.exp(x0))", exact=True),))
    (expected,) = Checked(made).expected
    np.testing.assert_allclose(expected.value, np.log1p(np.exp(values.astype(float))), rtol=1e-6)


def test_a_wrong_result_is_found_and_shrunk():
    wrong = program(
        *("pt.exp(x0)", "v0 * 2", "pt.sin(v1)", "pt.concatenate([v2, v0], axis=1)", "pt.sort(v3, axis=1)"),
        *("v4[::-1]", "v5 + v3"),
        values=np.arange(12.0).reshape(3, 4),
    )

    def fails(candidate: Program) -> bool:
        texts = [step.text for step in candidate.steps]
        return any("sort" in t for t in texts) and Checked(candidate).error is None

    small = Shrinker(fails, 20).run(wrong)
    assert [step.text for step in small.steps] == ["pt.sort(x0, axis=1)"]
    assert small.inputs[0].value.shape == (1, 1)


def test_ways_that_differ_are_found():
    checked = Checked(program("x0 * 2", values=np.arange(3.0)))
    (finding,) = checked.compare("fast_run", lambda: [np.array([0.0, 2.0, 5.0])])
    assert finding.kind == "mismatch"

    def fail():
        raise KeyError("x")

    (finding,) = checked.compare("fast_run", fail)
    assert finding.signature == ("fast_run", "error KeyError")


def test_scripts_run(capsys):
    found = check(program("pt.zeros_like(x0)", "v0 + x0", values=np.arange(3.0)), ["numpy", "fast_run"])
    assert not found
    wrong = program("x0 * 2", values=np.arange(3.0))
    (finding,) = Checked(wrong).compare("fast_run", lambda: [np.zeros(3)])
    exec(script(wrong, finding, 7), {})
    assert capsys.readouterr().out.split("\n") == [
        "expected [array([0., 2., 4.])]",
        "got [array([0., 2., 4.])]",
        "",
    ]


def test_a_crash_and_a_hang_are_findings():
    worker = Worker(timeout=100)
    with pytest.raises(Dead, match="crash"):
        worker.ask("check", program("__import__('os').abort()", values=np.zeros(2)), ["fast_run"])
    assert worker.ask("check", program("x0 * 2", values=np.zeros(2)), ["reference"]).findings == []
    worker.timeout = 0.5
    with pytest.raises(Dead, match="hang"):
        worker.ask("check", program("__import__('time').sleep(60)", values=np.zeros(2)), ["fast_run"])
    worker.close()


def test_layouts_are_those_of_the_op_table():
    assert {"spaced", "negative strides"} <= set(LAYOUTS)


def test_every_way_runs():
    """On a program that all ways can evaluate."""
    lines = ("pt.tanh(x0)", "pt.concatenate([x0, v0[::-1]])", "v1 @ v1.T + v0.sum()")
    found = check(program(*lines, values=np.arange(6.0).reshape(2, 3)), [w for w in WAYS if "scan" not in w])
    assert not found


@pytest.mark.parametrize("name", recipes_users.CHANCES)
def test_lines_of_users_agree_in_every_mode(name):
    """Operations of graphs and of functions, integers that wrap around: values as inputs in odd memory."""
    for seed in (3, 8):
        b = Builder(seed)
        b.layouts = tuple(VIEWS)
        b.add_input((2, 3), "float64")
        RECIPES[name](b)
        assert not check(b.finish(), ["numpy", "reference", "interpret"])


def test_rows_of_a_batch_that_are_mixed_up_are_found(monkeypatch):
    """And so is one of which not all rows are computed."""
    made = program("x0 * 2", values=np.arange(3.0))
    right = graphc.vectorize_graph
    for wrong in (lambda y: y[::-1], lambda y: y[:1] + 0 * y, lambda y: y[..., ::-1]):
        monkeypatch.setattr(graphc, "vectorize_graph", lambda *a, w=wrong: [w(y) for y in right(*a)])
        assert check(made, ["vectorized"])


def test_functions_that_share_variables_are_called_in_turns():
    shared = Input("x0", np.arange(4.0), (None,), shared=True)
    steps = (Step(("v0",), "pt.exp(-x0)", "line"), Step(("v1",), "x0[::-1] + v0", "line"))
    assert not check(Program((shared,), steps, ("v0",), (("x0", "v1"),)), ["in turns"])


def test_values_are_the_same_in_any_memory():
    for view in VIEWS.values():
        for value in (np.arange(24.0).reshape(2, 3, 4), np.ones((2, 0)), np.array(3), np.full((3, 2), 7)):
            found = view(value)
            np.testing.assert_array_equal(found, value)
            assert found.shape == value.shape
