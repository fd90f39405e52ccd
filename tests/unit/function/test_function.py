# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Calling compiled functions: inputs, forms of outputs, buffers."""

import copy
import pickle
from collections import namedtuple

import numpy as np
import pytest

import graphc
import graphc.tensor as pt
from graphc import In, Out
from graphc.errors import MissingInputError, UnusedInputError

A = np.array([1.0, 2.0, 3.0])


def test_the_name_function_is_callable_and_a_package(mode):
    x = pt.dvector("x")
    assert graphc.function([x], x + 1, mode=mode)(A).tolist() == [2, 3, 4]
    import graphc.function.io as io

    assert io.In is In and callable(graphc.function)


def test_position_and_keyword(mode):
    x, y = pt.dvectors("x", "y")
    f = graphc.function([x, y], x - y, mode=mode, name="minus")
    for result in (f(A, 2 * A), f(A, y=2 * A), f(y=2 * A, x=A)):
        assert result.tolist() == [-1, -2, -3]


def test_array_likes(mode):
    x = pt.dmatrix("x")
    f = graphc.function([x], x * 2.0, mode=mode)
    base = np.arange(12.0).reshape(3, 4)
    readonly = base.copy()
    readonly.flags.writeable = False
    raw = np.zeros(97, "uint8")
    misaligned = raw[1:].view("float64").reshape(3, 4)
    misaligned[...] = base
    for value in (
        base,
        base[::-1, ::2],
        base.T,
        np.asfortranarray(base),
        base.astype(">f8"),
        base.astype("int32"),
        base.tolist(),
        readonly,
        misaligned,
        np.empty((0, 4)),
        np.broadcast_to(np.float64(3), (2, 2)),
    ):
        np.testing.assert_array_equal(f(value), np.asarray(value) * 2.0)


def test_scalars(mode):
    x = pt.dscalar("x")
    f = graphc.function([x], x * 2.0, mode=mode)
    result = f(3)
    assert isinstance(result, np.ndarray) and result.shape == () and result == 6


def test_forms_of_outputs(mode):
    x = pt.dvector("x")
    Point = namedtuple("Point", "a b")
    y, z = x + 1.0, x * 2.0
    assert graphc.function([x], [y], mode=mode)(A)[0].tolist() == [2, 3, 4]
    many = graphc.function([x], [y, z], mode=mode)(A)
    assert isinstance(many, list) and many[1].tolist() == [2, 4, 6]
    named = graphc.function([x], {"y": y, "z": z}, mode=mode)(A)
    assert list(named) == ["y", "z"] and named["z"].tolist() == [2, 4, 6]
    nested = graphc.function([x], {"p": Point(y, [z, Out(y)]), "q": (z,)}, mode=mode)(A)
    assert isinstance(nested["p"], Point) and nested["p"].b[0].tolist() == [2, 4, 6] and len(nested["q"]) == 1
    assert graphc.function([], [], mode=mode)() == []
    assert graphc.function([x], None, mode=mode, on_unused_input="ignore")(A) is None
    assert graphc.function([], 2.5, mode=mode)() == 2.5


def test_results_belong_to_the_caller(mode):
    x = pt.dvector("x")
    s = graphc.shared(A, "s")
    f = graphc.function([x], [x, x[::-1], s, s.reshape((3, 1)), x], mode=mode)
    a = A.copy()
    results = f(a)
    for r in results:
        r[...] = 99
    assert a.tolist() == [1, 2, 3] and s.get_value().tolist() == [1, 2, 3]
    c = graphc.function([], pt.constant(A), mode=mode)
    c()[...] = 5
    assert c().tolist() == [1, 2, 3]


def test_out(mode):
    x = pt.dvector("x")
    f = graphc.function([x], x * 2.0, mode=mode)
    buffer = np.empty(3)
    assert f(A, out=buffer) is buffer and buffer.tolist() == [2, 4, 6]
    assert f(buffer, out=buffer) is buffer and buffer.tolist() == [4, 8, 12]
    g = graphc.function([x], [x + 1.0, x * 2.0], mode=mode)
    first, second = np.empty(3), np.empty(3)
    assert g(A, out=[first, second])[1] is second and first.tolist() == [2, 3, 4]
    mixed = g(A, out=(None, second))
    assert mixed[1] is second and mixed[0].tolist() == [2, 3, 4]


@pytest.mark.parametrize(
    ("out", "error", "text"),
    [
        (np.empty(4), ValueError, r"shape \(3,\), got \(4,\)"),
        (np.empty(3, "float32"), TypeError, "dtype float32"),
        ([1.0, 2.0, 3.0], TypeError, "1 results, got 3"),
        ("text", TypeError, "must be an array"),
        (np.broadcast_to(1.0, 3), ValueError, "read-only"),
    ],
)
def test_out_errors(mode, out, error, text):
    x = pt.dvector("x")
    f = graphc.function([x], x * 2.0, mode=mode)
    with pytest.raises(error, match=text):
        f(A, out=out)


def test_argument_errors_name_input_and_line(mode):
    x = pt.dmatrix("weights")
    y = pt.dvector("y")
    f = graphc.function([x, y], x + y, mode=mode, name="loss")
    place = r"test_function.py:\d+ in test_argument_errors_name_input_and_line"
    with pytest.raises(TypeError, match=rf"(?s)loss.*input 0 'weights'.*{place}.*expected 2.*got 1"):
        f(A, A)
    with pytest.raises(TypeError, match=rf"(?s)input 1 'y'.*{place}.*float64.*complex128"):
        f(np.ones((3, 3)), A * 1j)
    with pytest.raises(TypeError, match="missing input 1 'y'"):
        f(np.ones((3, 3)))
    with pytest.raises(TypeError, match="takes 2 inputs, got 3"):
        f(A, A, A)
    with pytest.raises(TypeError, match="no input named 'z'"):
        f(np.ones((3, 3)), A, z=1)
    twins = graphc.function([x, pt.dmatrix("weights")], x, mode=mode, on_unused_input="ignore")
    with pytest.raises(TypeError, match="several inputs named 'weights'"):
        twins(weights=np.ones((1, 1)))
    with pytest.raises(TypeError, match="both by position and by name"):
        f(np.ones((3, 3)), A, y=A)


def test_static_shape_error(mode):
    x = pt.vector("x", shape=(3,))
    f = graphc.function([x], x * 2.0, mode=mode)
    assert f(A).tolist() == [2, 4, 6]
    with pytest.raises(TypeError, match=r"(?s)'x'.*dimension 0: expected 3 .*got 4"):
        f(np.ones(4))


def test_run_time_errors_name_the_op_and_line(mode):
    x, y = pt.dvectors("x", "y")
    f = graphc.function([x, y], pt.exp(x) + y, mode=mode)
    with pytest.raises(
        ValueError, match=r"test_function.py:\d+ in test_run_time_errors_name_the_op_and_line"
    ):
        f(A, np.ones(2))


def test_downcast_rules(mode):
    x = pt.fvector("x")
    with pytest.raises(TypeError, match="float64"):
        graphc.function([x], x + x, mode=mode)(A)
    assert graphc.function([x], x + x, mode=mode, allow_input_downcast=True)(A).dtype == np.float32
    assert graphc.function([In(x, allow_downcast=True)], x + x, mode=mode)(A).dtype == np.float32
    strict = graphc.function([In(x, strict=True)], x + x, mode=mode)
    assert strict(np.ones(2, "float32")).tolist() == [2, 2]
    with pytest.raises(TypeError, match="strict"):
        strict([1, 2])


def test_in_values(mode):
    x, y = pt.dvectors("x", "y")
    f = graphc.function([x, In(y, value=[1, 1, 1], name="shift")], x + y, mode=mode)
    assert f(A).tolist() == [2, 3, 4]
    assert f(A, shift=[1, 0, 0]).tolist() == [2, 2, 3] and f(A, [0, 0, 1]).tolist() == [1, 2, 4]
    assert f(A).tolist() == [2, 3, 4]
    n = pt.lscalar("n")
    counter = graphc.function([In(n, value=0, update=n + 1)], n * 10, mode=mode)
    assert [int(counter()) for _ in range(3)] == [0, 10, 20]
    given = graphc.function([In(n, update=n + 1)], n * 10, mode=mode)
    assert [int(given(k)) for k in (4, 2)] == [40, 20]


def test_wrong_inputs():
    x = pt.dvector("x")
    with pytest.raises(TypeError, match="must be a list"):
        graphc.function(x, x)
    with pytest.raises(ValueError, match="more than once"):
        graphc.function([x, x], x)
    with pytest.raises(TypeError, match="shared variable"):
        graphc.function([graphc.shared(1.0)], x)
    with pytest.raises(TypeError, match="constant"):
        graphc.function([pt.constant(1.0)], x)
    with pytest.raises(TypeError, match="must be a variable"):
        graphc.function([3], x)
    with pytest.raises(TypeError, match="outputs of the function must be a variable"):
        graphc.function([x], object())
    with pytest.raises(ValueError, match="the modes are fast_run"):
        graphc.function([x], x, mode="turbo")


def test_missing_and_unused_inputs():
    x, y = pt.dvectors("x", "y")
    with pytest.raises(MissingInputError, match=r"(?s)the input y .*test_function.py"):
        graphc.function([x], x + y)
    with pytest.raises(UnusedInputError, match=r"(?s)uses the input y .*test_function.py"):
        graphc.function([x, y], x, mode="reference")
    with pytest.warns(UserWarning, match="uses the input y"):
        graphc.function([x, y], x, on_unused_input="warn", mode="reference")
    with graphc.config.change_flags(on_unused_input="ignore"):
        assert graphc.function([x, y], x + 1, mode="reference")(A, A).tolist() == [2, 3, 4]


def test_givens(mode):
    x, y = pt.dvectors("x", "y")
    s = graphc.shared(A, "s")
    z = pt.exp(x) * y
    f = graphc.function([y], z, givens={x: s}, mode=mode)
    np.testing.assert_allclose(f(A), np.exp(A) * A)
    f = graphc.function([x], z, givens=[(y, x + 1.0)], mode=mode)
    np.testing.assert_allclose(f(A), np.exp(A) * (A + 1))
    f = graphc.function([y], z, givens={x: A}, mode=mode)
    np.testing.assert_allclose(f(A), np.exp(A) * A)
    with pytest.raises(TypeError, match="the given for x"):
        graphc.function([y], z, givens={x: pt.lvector()}, mode=mode)


def test_inputs_may_be_inside_the_graph(mode):
    x = pt.dvector("x")
    y = pt.exp(x)
    y.name = "y"
    f = graphc.function([y], y * 2.0, mode=mode)
    assert f(A).tolist() == [2, 4, 6] and f(y=A).tolist() == [2, 4, 6]


def test_large_constants(mode):
    data = np.arange(1000.0)
    x = pt.dvector("x")
    f = graphc.function([x], x + pt.constant(data), mode=mode)
    assert f(data).tolist() == (2 * data).tolist()


def test_eval():
    x, y = pt.dvectors("x", "y")
    z = x + y
    assert z.eval({x: A, "y": A}).tolist() == [2, 4, 6]
    assert z.eval({x: A, "y": A}).tolist() == [2, 4, 6] and len(z.__dict__["_compiled"]) == 1
    with pytest.raises(ValueError, match="no variable named 'q'"):
        z.eval({"q": A})
    assert (graphc.shared(2.0) * 3.0).eval() == 6


def test_eval_tells_options_apart_that_print_alike():
    y, long = pt.dvector("y"), np.arange(3000.0)
    given = [pt.constant(long), pt.constant(long * (long != 1500))]
    assert str(given[0].data) == str(given[1].data)
    with pytest.warns(UserWarning, match="compiles each time"):
        assert [y.sum().eval(givens={y: v}, mode="reference") for v in given] == [4498500, 4497000]
    total = y.sum()
    assert [total.eval(givens=((y, v),), mode="reference") for v in given] == [4498500, 4497000]
    assert len(total.__dict__["_compiled"]) == 2


def test_names_and_pairs_without_order_are_refused():
    a, b = pt.dscalar("a"), graphc.shared(1.0)
    with pytest.raises(TypeError, match="must be a str"):
        In(a, name=("a",))
    with pytest.raises(TypeError, match="list of pairs"):
        graphc.function([a], a + b, updates=[{b, a}])
    with pytest.raises(TypeError, match="got a set"):
        graphc.function({a}, a + b)


def test_copies_trust_their_input_as_the_original():
    x = pt.dscalar("x")
    f = graphc.function([x], x + 1, mode="reference")
    f.trust_input = True
    assert copy.deepcopy(f).trust_input and f.copy().trust_input and pickle.loads(pickle.dumps(f)).trust_input


def test_pickle_and_copy(mode):
    x = pt.dvector("x")
    s = graphc.shared(A, "s")
    f = graphc.function([x, In(pt.dscalar("k"), value=2.0)], {"y": x + s}, updates={s: s + x}, mode=mode,
                        on_unused_input="ignore", name="f")  # fmt: skip
    g = pickle.loads(pickle.dumps(f))
    assert g(A)["y"].tolist() == [2, 4, 6] and g(A)["y"].tolist() == [3, 6, 9]
    assert s.get_value().tolist() == [1, 2, 3]
    t = graphc.shared(10 * A, "t")
    swapped = f.copy(swap={s: t}, name="swapped")
    assert swapped(A)["y"].tolist() == [11, 22, 33] and t.get_value().tolist() == [11, 22, 33]
    frozen = f.copy(delete_updates=True)
    assert frozen(A)["y"].tolist() == [2, 4, 6] and s.get_value().tolist() == [1, 2, 3]
    copy.copy(f)(A)
    assert s.get_value().tolist() == [2, 4, 6]
    with pytest.raises(ValueError, match="does not use it"):
        f.copy(swap={graphc.shared(1.0): t})


def test_attributes(mode):
    x = pt.dvector("x")
    s = graphc.shared(A, "s")
    f = graphc.function([x], [x + s], updates=[(s, s * 2.0)], mode=mode, name="f")
    assert f.name == "f" and f.inputs[0].variable is x and len(f.outputs) == 1
    assert f.get_shared() == [s] and list(f.updates) == [s]
    assert f.maker.fgraph is f.fgraph and f.report.nodes == len(f.fgraph.nodes)
    assert "f(x)" in repr(f) and f"mode {mode}" in str(f.report)


@pytest.mark.parametrize("mode", ["fast_run", "reference"])
def test_values_between_calls_are_read_replaced_and_shared(mode):
    """By variable, name and position; functions of one cell see each other, also after they are copied."""
    x, s, w = pt.dscalar("x"), pt.dscalar("s"), pt.dvector("w")
    start = np.array([1.0, 2.0])
    grow = graphc.function([x, graphc.In(s, value=1, update=s + x)], s * x, mode=mode)
    shared = graphc.In(s, value=grow.container[s], update=s * x)
    scale = graphc.function([x, shared, graphc.In(w, "v", start)], w.sum() * s, mode=mode)
    for f, g in ((grow, scale), copy.deepcopy((grow, scale)), pickle.loads(pickle.dumps((grow, scale)))):
        assert f["s"] == g[1] == 1 and f(2.0) == 2 and f["s"] == g["s"] == 3
        assert g(10.0) == 9 and f["s"] == 30 and f(1.0, s=5) == 5 and g["s"] == 6
        g["v"] = start
        start[0], f[1] = 7.0, 1
        assert g["v"].tolist() == [1.0, 2.0] and g["s"] == 1
        start[0] = 1.0
        for key in ("x", 0, "other", x):
            with pytest.raises(KeyError):
                f[key]
        with pytest.raises(TypeError):
            f["s"] = [1.0, 2.0]
    assert grow[s] is scale[s] and sorted(map(str, scale.container)) == ["1", "2", "s", "s", "v", "w"]
    with pytest.raises(TypeError, match="cannot share"):
        graphc.In(w, value=grow.container[s])
