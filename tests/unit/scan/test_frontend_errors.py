# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Messages of ``graphc.scan`` name the state, the function, what was given and expected, and the fix."""

import re

import numpy as np
import pytest

import graphc
import graphc.tensor as pt
from graphc.scan import until

x = pt.vector("x")
h0 = pt.vector("h0")
five = pt.tensor("five", dtype="float64", shape=(5,))


def step(row, h):
    return h + row


HERE = r"the function step \(.*test_frontend_errors\.py:\d+\)"


def raises(error, *parts):
    return pytest.raises(error, match="(?s)" + ".*".join(parts))


def test_not_callable():
    with raises(TypeError, "needs a function", "got 3 of type int"):
        graphc.scan(3, x, return_updates=False)


def test_wrong_number_of_arguments():
    with raises(
        TypeError, HERE, r"with 1 arguments \(x\[t\]\)", r"parameters are \(row, h\)", "non_sequences"
    ):
        graphc.scan(step, x, return_updates=False)


def test_no_length():
    with raises(ValueError, "number of steps", HERE, "unknown", "n_steps"):
        graphc.scan(step, outputs_info=[0.0], return_updates=False)


@pytest.mark.parametrize("n", [-1, np.int32(-3)])
def test_negative_length(n):
    with raises(ValueError, "n_steps of", HERE, "at least 0", str(int(n)), "go_backwards"):
        graphc.scan(step, x, 0.0, n_steps=n, return_updates=False)


def test_negative_length_at_run_time(compute):
    n = pt.lscalar("n")
    y = graphc.scan(lambda h: h * 2, outputs_info=1.0, n_steps=n, return_updates=False)
    with raises(ValueError, "number of steps", "at least 0", "-2"):
        compute(y, {n: -2})


@pytest.mark.parametrize("n", [2.5, x, "three"])
def test_length_of_another_kind(n):
    with raises(TypeError, "integer scalar|expected a number"):
        graphc.scan(step, x, 0.0, n_steps=n, return_updates=False)


def test_too_many_steps():
    with raises(
        ValueError,
        "n_steps=6",
        HERE,
        r"'five' of type TensorType\(float64, \(5,\)\)",
        "allows: 5",
        "leave n_steps out",
    ):
        graphc.scan(step, five, 0.0, n_steps=6, return_updates=False)
    with raises(ValueError, "n_steps=4", "allows: 3"):
        graphc.scan(lambda a, b: a, {"input": five, "taps": [-1, 1]}, n_steps=4, return_updates=False)


def test_too_many_steps_at_run_time(compute):
    n = pt.lscalar("n")
    y = graphc.scan(lambda a, b: a + b, {"input": x, "taps": [0, 2]}, n_steps=n, return_updates=False)
    np.testing.assert_allclose(compute(y, {x: np.arange(5.0), n: 3}), [2, 4, 6])
    with raises(ValueError, "runs 4 steps", "sequence 'x' has rows for 3 only"):
        compute(y, {x: np.arange(5.0), n: 4})
    np.testing.assert_allclose(compute(y, {x: np.arange(1.0), n: 0}), [])


def test_sequence_without_rows():
    with raises(TypeError, r"sequences\[1\] is s of type", "no rows", "non_sequences"):
        graphc.scan(step, [x, pt.scalar("s")], return_updates=False)


def test_dtype_changes():
    start = pt.fscalar("start")
    with raises(
        TypeError,
        r"the state 'start' \(outputs_info\[0\]\) starts as TensorType\(float32, \(\)\)",
        HERE,
        r"returns TensorType\(float64, \(\)\)",
        r"Give an initial value of dtype float64, or return .astype\('float32'\)",
    ):
        graphc.scan(step, x, start, return_updates=False)


def test_constant_whose_value_would_change():
    with raises(
        TypeError, "starts as TensorType.float64", "returns TensorType.int64", "initial value of dtype int64"
    ):
        graphc.scan(lambda h: (h * 2).astype("int64"), outputs_info=0.5, n_steps=3, return_updates=False)


def test_rank_changes():
    with raises(
        TypeError,
        "the state 'state0'",
        r"\(float64, \(\)\)",
        r"returns TensorType\(float64, \(\?,\)\)",
        "number of dimensions",
        "full shape",
    ):
        graphc.scan(lambda h: h + h0, outputs_info=0.0, n_steps=2, return_updates=False)
    with raises(TypeError, "number of dimensions"):
        graphc.scan(lambda h: h.sum(), outputs_info=h0, n_steps=2, return_updates=False)


def test_size_changes():
    with raises(
        TypeError, "'five'", r"\(5,\)", r"\(3,\)", "Size 5 of axis 0 must stay the same, but becomes 3"
    ):
        graphc.scan(lambda h: h[:3], outputs_info=five, n_steps=2, return_updates=False)
    one = pt.tensor("one", dtype="float64", shape=(1,))
    with raises(
        TypeError,
        "'one'",
        r"\(1,\)",
        r"\(\?,\)",
        "Axis 0 starts with size 1, which broadcasts",
        "specify_shape",
    ):
        graphc.scan(lambda h: h + h0, outputs_info=one, n_steps=2, return_updates=False)


def test_number_of_outputs():
    with raises(ValueError, HERE, "returns 1 outputs", "has 2 entries", "None for each"):
        graphc.scan(step, x, [0.0, None], return_updates=False)


def test_outputs_info():
    for given, error, parts in [
        (
            {"taps": [-2, -1]},
            ValueError,
            [r"outputs_info\[0\]", r"taps \[-2, -1\]", "no 'initial'", "2 rows, oldest first"],
        ),
        ({"initial": h0, "taps": [0]}, ValueError, [r"taps \[0\]", "below 0"]),
        ({"initial": h0, "taps": [-1, -1]}, ValueError, ["tap twice"]),
        ({"initial": h0, "taps": []}, ValueError, ["empty list of taps"]),
        ({"initial": h0, "taps": ["a"]}, TypeError, ["list of integers"]),
        ({"initial": h0, "tap": -1}, ValueError, [r"unknown keys \['tap'\]", "takes"]),
        (
            {"initial": five, "taps": [-6]},
            ValueError,
            ["'five'", "needs 6 initial rows", "oldest first", "has 5"],
        ),
        (
            {"initial": pt.scalar("s"), "taps": [-2]},
            TypeError,
            ["needs 2 initial rows", "scalar", "first axis counts"],
        ),
    ]:
        with raises(error, *parts):
            graphc.scan(step, x, given, return_updates=False)


def test_too_few_initial_rows_at_run_time(compute):
    y = graphc.scan(
        lambda a, b: a + b, outputs_info={"initial": h0, "taps": [-3, -1]}, n_steps=2, return_updates=False
    )
    with raises(ValueError, "state 'h0'", "needs 3 initial rows", "given 2"):
        compute(y, {h0: np.ones(2)})


def test_sequences():
    with raises(ValueError, r"sequences\[0\] has no 'input'"):
        graphc.scan(step, {"taps": [0]}, return_updates=False)
    with raises(ValueError, r"sequences\[0\] has unknown keys \['tap'\]"):
        graphc.scan(step, {"input": x, "tap": 0}, return_updates=False)


def test_returned_values():
    def nothing(row):
        pass

    shared = graphc.shared(0.0)
    for returned, problem in [
        (None, "None where an output is expected"),
        ("a", "'a' of type str"),
        ({x: x}, "updates x, which is no shared variable"),
        ((x, {shared: x}, {shared: x}), "updates twice"),
        ((x, until(x.sum()), until(x.sum())), "a condition twice"),
        (([x], x), "an output beside a list of outputs"),
        ((x, [x]), "a list of outputs beside an output"),
        (([x], [x]), "outputs twice"),
        ([x, None], "None where"),
    ]:
        with raises(TypeError, "<lambda>", "must return variables, a dict of updates", re.escape(problem)):
            graphc.scan(lambda row, returned=returned: returned, x, return_updates=False)
    with raises(TypeError, r"the function nothing \(", "None where an output is expected"):
        graphc.scan(nothing, x, return_updates=False)


def test_condition_that_is_no_scalar():
    with raises(TypeError, "condition of until must be a scalar", r"all\(\) or any\(\)"):
        until(x > 0)


def test_update_of_another_type():
    a = graphc.shared(np.zeros(2), name="a")
    with raises(TypeError, "update of the shared variable a", r"\(\?,\)", "<lambda>", "int64"):
        graphc.scan(lambda row: (row, {a: pt.zeros(2, dtype="int64")}), x, return_updates=False)
