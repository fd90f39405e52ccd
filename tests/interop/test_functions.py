# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""PyTensor's functions in graphc's modes: shared variables, updates, generators, copies, pickles, errors."""

from __future__ import annotations

import copy
import inspect
import pickle
import subprocess
import sys

import numpy as np
import pymc as pm
import pytensor
import pytensor.tensor as pt
import pytest
from pymc.logprob.utils import ParameterValueError
from pymc.pytensorf import compile
from pytensor.compile.mode import Mode, get_mode
from pytensor.compile.ops import wrap_py
from pytensor.graph.basic import Apply
from pytensor.graph.fg import FunctionGraph
from pytensor.graph.op import Op
from pytensor.ifelse import ifelse
from pytensor.raise_op import Assert

import graphc
from graphc.interop.pytensor import GraphcLinker, from_pytensor, to_pytensor
from graphc.interop.pytensor.identity import key_of
from graphc.interop.pytensor.linker import StoredFunction


def line() -> int:
    return inspect.currentframe().f_back.f_lineno


def test_the_bridge_needs_pytensor_alone():
    # This environment has every library that a bridge leads to; a user's has one of them.
    program = """if True:
        import sys
        sys.modules.update(dict.fromkeys(["jax", "pymc", "nutpie", "arviz", "blackjax"]))
        import pytensor, pytensor.tensor as pt
        from graphc.interop.pytensor import to_pytensor
        x = pt.dvector("x")
        print(pytensor.function([x], pytensor.grad((x**2).sum(), x), mode="GRAPHC")([1.0, 2.0]))
        for name in ("jax", "nutpie"):
            try:
                __import__(f"graphc.interop.{name}")
            except ImportError as error:
                print(str(error).rpartition(": ")[2])
    """
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True)
    said = ["[2. 4.]", "pip install 'graphc[jax]'", "pip install 'graphc[nutpie]'"]
    assert done.stdout.splitlines() == said, done.stderr


@pytest.mark.parametrize("mode", ["GRAPHC", "GRAPHC_REWRITTEN"])
def test_shared_variables_updates_and_givens(mode):
    w = pytensor.shared(np.arange(3.0), name="w")
    x = pt.dvector("x")
    f = pytensor.function([x], [w * x, w.sum()], updates={w: w + x}, mode=mode)
    product, total = f(np.ones(3))
    np.testing.assert_array_equal(product, [0, 1, 2])
    assert total == 3
    np.testing.assert_array_equal(w.get_value(), [1, 2, 3])
    w.set_value(np.array([5.0, 6.0]))
    np.testing.assert_array_equal(f(np.ones(2))[0], [5, 6])
    g = pytensor.function([x], w * 2, givens={w: x * x}, mode=mode)
    np.testing.assert_array_equal(g([1.0, 3.0]), [2, 18])


def test_results_do_not_share_memory_with_shared_values():
    w = pytensor.shared(np.zeros(3))
    f = pytensor.function([], [w, w + 1], mode="GRAPHC")
    first, _ = f()
    first[:] = 7
    np.testing.assert_array_equal(w.get_value(), np.zeros(3))


@pytest.mark.parametrize("mode", ["GRAPHC", "GRAPHC_REWRITTEN"])
def test_generators_advance_as_numpys(mode):
    rng = pytensor.shared(np.random.default_rng(5), name="rng")
    draw = pt.random.normal(size=(2,), rng=rng)
    f = pytensor.function([], draw, updates={rng: draw.owner.outputs[0]}, mode=mode)
    expected = np.random.default_rng(5).normal(size=(2, 2))
    np.testing.assert_array_equal([f(), f()], expected)
    state = rng.get_value().bit_generator.state
    twin = np.random.default_rng(5)
    twin.normal(size=4)
    assert state == twin.bit_generator.state


def test_copies_and_pickles_compute_the_same():
    w, x = pytensor.shared(np.ones(2)), pt.dvector("x")
    f = pytensor.function([x], w + x, updates={w: w * 2}, mode="GRAPHC")
    other = pytensor.shared(np.full(2, 10.0))
    copied, swapped = f.copy(), f.copy(swap={w: other})
    np.testing.assert_array_equal(f([1.0, 1.0]), [2, 2])
    np.testing.assert_array_equal(copied([1.0, 1.0]), [3, 3])
    np.testing.assert_array_equal(swapped([1.0, 1.0]), [11, 11])
    np.testing.assert_array_equal(w.get_value(), [4, 4])
    loaded = pickle.loads(pickle.dumps(f))
    np.testing.assert_array_equal(loaded([1.0, 1.0]), [5, 5])


def test_modes_by_configuration_and_profile():
    x = pt.dscalar("x")
    with pytensor.config.change_flags(mode="GRAPHC"):
        f = pytensor.function([x], pt.exp(x), profile=True)
    assert f(0.0) == 1
    assert isinstance(f.maker.linker, GraphcLinker) and f.vm.jit_fn.report.fast_call
    assert f.profile.fct_callcount == 1


class Doubled(Op):
    """An op that graphc does not know."""

    def make_node(self, x):
        x = pt.as_tensor(x)
        return Apply(self, [x], [x.type()])

    def perform(self, node, inputs, output_storage):
        output_storage[0][0] = 2 * inputs[0]


def test_an_unknown_op_runs_in_python_and_is_named():
    x = pt.dvector("x")
    f = pytensor.function([x], Doubled()(x + 1) * 3, mode="GRAPHC")
    np.testing.assert_array_equal(f([0.0, 1.0]), [6, 12])
    (fallback,) = f.vm.jit_fn.report.fallbacks
    assert "Doubled" in fallback.op


class Masked(Doubled):
    def perform(self, node, inputs, output_storage):
        output_storage[0][0] = np.ma.masked_greater(inputs[0], 0)


def test_masks_that_an_unknown_op_gives_are_refused():
    x = pt.dvector("x")
    with pytest.raises(NotImplementedError, match="no masks"):
        pytensor.function([x], Masked()(x) * 3, mode="GRAPHC")([0.0, 1.0])


def test_errors_name_the_line_of_the_model():
    x, y = pt.dvectors("x", "y")
    total, where = x + y, line()
    f = pytensor.function([x, y], total, mode="GRAPHC")
    with pytest.raises(ValueError, match=rf"{__name__}\.py:{where}|test_functions\.py:{where}"):
        f([1.0, 2.0], [1.0, 2.0, 3.0])


def test_a_graph_of_graphc():
    w = pytensor.shared(np.array([1.0, 2.0]), name="w")
    x = pt.tensor("x", dtype="float64", shape=(2,))
    inputs, result = from_pytensor([x], (w * x).sum())
    assert inputs[0].name == "x" and inputs[0].type.shape == (2,)
    f = graphc.function(inputs, [result, graphc.grad(result, inputs[0])])
    value, slope = f([3.0, 4.0])
    assert value == 11
    np.testing.assert_array_equal(slope, [1, 2])
    w.set_value(np.array([5.0, 5.0]))
    assert f([1.0, 1.0])[0] == 10
    with pytest.raises(TypeError, match="needs the variable"):
        from_pytensor([x], x.sum() * pt.dscalar("y"))


def test_branches_are_lazy_and_checks_raise():
    x = pt.dvector("x")
    checked = Assert("x must be positive")(pt.log(x), pt.all(x > 0))
    f = pytensor.function([x], ifelse(x.sum() > 0, checked, -x), mode="GRAPHC")
    np.testing.assert_array_equal(f([-1.0, -2.0]), [1, 2])
    with pytest.raises(AssertionError, match="x must be positive"):
        f([3.0, -1.0])


@pytest.mark.parametrize("shape", [(), (3,), (None,)])
def test_slopes_read_the_shape_of_a_check_alone(shape):
    """A check is made where its value is read; gradients begin with ones of its shape."""
    x = pt.tensor("x", shape=shape)
    checked = Assert("second")(Assert("first")(x * 3, pt.all(x > 0)), pt.all(x > 1))
    f = pytensor.function([x], pytensor.grad(checked.sum(), x), mode="GRAPHC")
    assert (f(np.full([n or 4 for n in shape], -1.0)) == 3).all()
    with pytest.raises(AssertionError, match="first"):
        pytensor.function([x], checked, mode="GRAPHC")(np.full([n or 4 for n in shape], -1.0))


@pytest.mark.parametrize("mode", ["GRAPHC", "GRAPHC_REWRITTEN"])
def test_checks_are_made_of_what_is_asked_for(mode):
    """Elements of a vector do not ask for the others; loops check in each iteration, whatever is read of them."""
    i, x = pt.lscalar("i"), pt.dvector("x")
    checked = Assert("not five")(pt.constant(2), pt.eq(i, 5))
    vector = pt.stack([i, checked, 3 * i])
    assert [
        int(r) for r in pytensor.function([i], [vector[0], vector[-1], vector[::2][1]], mode=mode)(4)
    ] == [4, 12, 12]
    for asked in (vector[1], vector.sum(), vector[1:][0]):
        f = pytensor.function([i], asked, mode=mode)
        assert f(5) in (2, 22)
        with pytest.raises(AssertionError, match="not five"):
            f(4)

    def step(row, state):
        return 0.5 * state + Assert("negative")(row, row > 0)

    rows = pytensor.scan(step, sequences=[x], outputs_info=[np.zeros(())], return_updates=False)
    for asked in (rows, rows[-1], pytensor.grad(rows[-1] ** 2, x)):
        f = pytensor.function([x], asked, mode=mode)
        assert np.isfinite(f([1.0, 2.0])).all()
        with pytest.raises(AssertionError, match="negative"):
            f([-1.0, 2.0])


@pytest.mark.parametrize("mode", ["GRAPHC", "GRAPHC_REWRITTEN"])
def test_checks_in_the_density_of_a_loop(mode):
    def step(state):
        return pm.Normal.dist(Assert("negative")(state, state > 0))

    walk = pytensor.scan(step, outputs_info=[pt.ones(())], n_steps=10, return_updates=False)
    value = pt.dvector("value")
    f = pytensor.function([value], pm.logp(walk, value), mode=mode)
    assert f(np.ones(10)).sum() == pytest.approx(-5 * np.log(2 * np.pi))
    with pytest.raises(AssertionError, match="negative"):
        f(np.full(10, -1.0))


@pytest.mark.parametrize("cached", [False, True])
@pytest.mark.parametrize("mode", ["GRAPHC", "GRAPHC_REWRITTEN"])
def test_checks_of_parameters_are_what_the_caller_asks_for(mode, cached, tmp_path):
    """PyTensor's functions raise, PyMC's give minus infinity or, without bounds, the formula."""
    sigma, value = pt.dscalar("sigma"), pt.dvector("value")
    density = pm.logp(pm.Normal.dist(0.0, sigma), value).sum()
    slope = pytensor.grad(density, sigma)
    with graphc.config.change_flags(cache_dir=str(tmp_path) if cached else ""):
        for _ in range(1 + cached):
            f = pytensor.function([sigma, value], [density, slope], mode=mode)
            assert np.isfinite(f(1.0, [1.0, 2.0])).all()
            with pytest.raises(ParameterValueError, match="sigma > 0"):
                f(-1.0, [1.0, 2.0])
            for bounds in (True, False):
                found = []
                for compiled in (mode, Mode("py", "fast_compile")):
                    with pm.Model(check_bounds=bounds):
                        g = compile([sigma, value], [density, slope], mode=compiled)
                    found.append([g(s, [1.0, 2.0]) for s in (-1.0, 1.0)])
                np.testing.assert_allclose(*found, rtol=1e-10)
    inputs, converted = from_pytensor([sigma, value], density)
    assert graphc.function(inputs, converted)(-1.0, [1.0, 2.0]) == -np.inf


def test_a_singular_system_is_nan_as_in_pytensor():
    a = pt.dmatrix("a")
    f = pytensor.function([a], [pt.linalg.solve(a, a[0]), pt.linalg.cholesky(-a)], mode="GRAPHC")
    solution, factor = f(np.ones((2, 2)))
    assert np.isnan(solution).all() and np.isnan(factor).all()


@pytest.mark.parametrize("mode", ["GRAPHC", "GRAPHC_REWRITTEN", Mode("py", "minimum_compile")])
def test_a_function_of_graphc_inside_a_graph_of_pytensor(mode):
    a, i = graphc.tensor.dvector("a"), graphc.tensor.lscalar("i")
    scale = graphc.shared(2.0, name="scale")
    decay = graphc.scan(lambda r, h: 0.5 * h + r, sequences=[a], outputs_info=[0.0], return_updates=False)
    wrapped = to_pytensor(graphc.function([a, i], [(decay * scale).sum() + i, decay]))
    x = pt.dvector("x")
    total, path = wrapped(x**2, 3)
    value = total * 2 + path[-1]
    f = pytensor.function([x], [value, pytensor.grad(value, x)], mode=mode)
    given = np.array([1.0, 2.0, -1.0])
    got, slope = f(given)

    def by_hand(x):
        h, out = 0.0, []
        for r in x**2:
            h = 0.5 * h + r
            out.append(h)
        return 2 * (2 * sum(out) + 3) + out[-1]

    np.testing.assert_allclose(got, by_hand(given))
    step = 1e-6 * np.eye(3)
    expected = [(by_hand(given + e) - by_hand(given - e)) / 2e-6 for e in step]
    np.testing.assert_allclose(slope, expected, rtol=1e-6)


def test_what_cannot_be_an_op_of_pytensor():
    state = graphc.shared(0.0, name="state")
    with pytest.raises(TypeError, match=r"cannot update.*state"):
        to_pytensor(graphc.function([], state, updates={state: state + 1}))
    a = graphc.tensor.dvector("a")
    wrapped = to_pytensor(graphc.function([a], a.sum()))
    with pytest.raises(TypeError, match="the input a"):
        wrapped(pt.dmatrix("m"))
    with pytest.raises(TypeError, match="takes 1 inputs, given 2"):
        wrapped(pt.dvector("x"), pt.dvector("y"))


def test_from_pytensor_names_what_is_no_variable():
    x = pt.dvector("x")
    with pytest.raises(TypeError, match=r"takes variables of PyTensor, given ndarray array\(\[1\.\]\)"):
        from_pytensor([np.ones(1)], x)


def compiled_twice(build):
    """Two functions of equal graphs: the second has to come from the disk cache."""
    with pytensor.config.change_flags(mode="GRAPHC"):
        made = [build(), build()]
    assert isinstance(made[1].vm.jit_fn, StoredFunction)
    return made


def test_a_graph_that_the_disk_knows_is_not_rewritten_before_somebody_looks(tmp_path):
    def build():
        w = pytensor.shared(np.arange(3.0), name="w")
        x = pt.dvector("x")
        value = pt.log(1 - pt.sigmoid(x)) + w * pt.constant(np.linspace(0, 1, 3)) ** 2 + w.sum()
        return pytensor.function([x], [value, value.sum()], updates={w: w + x})

    with graphc.config.change_flags(cache_dir=str(tmp_path)):
        first, second = compiled_twice(build)
        assert second.vm.jit_fn.report.cache == ["hit"] and "made" not in vars(second.vm.jit_fn)
        copied = pickle.loads(pickle.dumps(second)).copy()
    x = np.array([1.0, -800.0, 800.0])
    for given in (x, x[::-1]):  # the second is not contiguous
        for want, *rest in zip(*(f(given) for f in (first, second, copied)), strict=True):
            for got in rest:
                np.testing.assert_array_equal(got, want)
    nodes = [sorted(str(node.op) for node in f.maker.fgraph.apply_nodes) for f in (first, second)]
    assert nodes[0] == nodes[1]
    frozen = [second.copy(share_memory=share, delete_updates=True)(x) for share in (False, True)]
    np.testing.assert_array_equal(frozen[0][0], frozen[1][0])


def test_an_error_of_a_function_from_the_disk_names_its_own_line(tmp_path):
    lines = []

    def build():
        x, y = pt.dvectors("x", "y")
        total, where = x + y, line()
        lines.append(where)
        return pytensor.function([x, y], total)

    with graphc.config.change_flags(cache_dir=str(tmp_path)):
        _, f = compiled_twice(build)
        with pytest.raises(ValueError, match=rf"test_functions\.py:{lines[1]}"):
            f([1.0, 2.0], [1.0, 2.0, 3.0])


def test_what_graphs_are_told_apart_by():
    x = pt.dvector("x")
    big = np.arange(50.0)

    def key(*outputs, inputs=(x,), mode="GRAPHC", **settings):
        graph = FunctionGraph(list(inputs), list(outputs), clone=True)
        with graphc.config.change_flags(settings):
            return key_of(graph, get_mode(mode), ())

    def scanned(scale):
        return pytensor.scan(lambda s: s * scale, outputs_info=[x], n_steps=3, return_updates=False)

    again, other = pt.dvector("x"), pt.dvector("other")
    assert key(x + 1) == key(again + 1, inputs=[again])
    assert key(x + 1) != key(other + 1, inputs=[other])  # errors name it
    keys = [
        key(x + 1), key(x + 2), key(x * 1), key(x + 1, x + 1), key(x + big), key(x + (big + 1)), key(x[1:]),
        key(x[2:]), key(x.sum()), key(x.prod()), key(scanned(2.0)), key(scanned(3.0)), key(x.astype("float32")),
        key(x + 1, mode="GRAPHC_REWRITTEN"), key(x + 1, fastmath="fast"),
    ]  # fmt: skip
    assert None not in keys and len(set(keys)) == len(keys)
    assert key(x + 1) == key(x + 1) and key(scanned(2.0)) == key(scanned(2.0))
    # Nobody knows whether the op of this module is the one that it was.
    assert key(Doubled()(x)) is None


def test_equal_constants_are_one():
    x = pt.dvector("x")
    big = np.arange(50.0)
    inputs, result = from_pytensor([x], (x + pt.constant(big)) * pt.constant(big.copy()))
    f = graphc.function(inputs, result)
    assert len(f.fgraph.inputs) == 2
    np.testing.assert_array_equal(f(big), 2 * big * big)


def test_calls_that_trust_their_inputs():
    """They skip PyTensor's storage; copies and pickles do, too."""
    x, w = pt.dvector("x"), pytensor.shared(np.ones(3), name="w")
    f = pytensor.function([x], x * w, mode="GRAPHC", trust_input=True)
    for g in (f, f.copy(), pickle.loads(pickle.dumps(f))):
        np.testing.assert_array_equal(g(np.arange(3.0)), np.arange(3.0))
        with pytest.raises(ValueError, match="mul"):
            g(np.ones(4))
    w.set_value(np.full(3, 2.0))
    np.testing.assert_array_equal(f(np.arange(3.0)), 2 * np.arange(3.0))


def _called_by_python(function):
    """The names of the functions in Python that a call goes through."""
    names = []

    def trace(frame, event, arg):
        if event == "call":
            names.append(frame.f_code.co_name)

    sys.setprofile(trace)
    try:
        function(np.arange(3.0))
    finally:
        sys.setprofile(None)
    return names


@pytest.mark.parametrize("returns", ["one", "all"])
def test_calls_that_trust_their_inputs_are_machine_code(returns):
    x = pt.dvector("x")
    f = pytensor.function([x], 2 * x if returns == "one" else [2 * x], mode="GRAPHC")
    assert len(_called_by_python(f)) > 3
    f.trust_input = True
    for g in (f, copy.copy(f), pickle.loads(pickle.dumps(f))):
        assert g.trust_input
        assert isinstance(g, pytensor.compile.Function)
        assert len(_called_by_python(g)) <= (2 if returns == "one" else 0)
        # A list, a keyword and an array of another type go PyTensor's way.
        for given in (g([1.0, 2.0]), g(x=np.array([1.0, 2.0])), g(np.array([1, 2]))):
            np.testing.assert_array_equal(given if returns == "one" else given[0], [2.0, 4.0])
        with pytest.raises(TypeError):
            g()
        g.trust_input = False
        assert len(_called_by_python(g)) > 3
        with pytest.raises(TypeError):
            g(np.ones((2, 2)))


def test_quick_calls_read_shared_arrays_where_they_are():
    x, w = pt.dvector("x"), pytensor.shared(np.ones(3), name="w")
    f = pytensor.function([x], [x * w], mode="GRAPHC", trust_input=True)
    other = pytensor.shared(np.full(3, 5.0))
    swapped, copied = f.copy(swap={w: other}), f.copy()
    loaded = pickle.loads(pickle.dumps(f))
    for value in (2.0, 3.0):
        w.set_value(np.full(3, value), borrow=True)
        assert _called_by_python(f) == []
        for g, factor in ((f, value), (copied, value), (swapped, 5.0), (loaded, 1.0)):
            np.testing.assert_array_equal(g(np.arange(3.0))[0], factor * np.arange(3.0))
    w.set_value(np.ones(6)[::2], borrow=True)
    np.testing.assert_array_equal(f(np.arange(3.0))[0], np.arange(3.0))


def test_an_argument_and_a_shared_array_are_not_one_function_on_disk(tmp_path):
    def build(shared):
        x, y = pt.dvector("x"), pytensor.shared(np.ones(3)) if shared else pt.dvector("y")
        return pytensor.function([x] if shared else [x, y], x * y + 1, mode="GRAPHC", trust_input=True)

    x = np.arange(3.0)
    with graphc.config.change_flags(cache_dir=str(tmp_path)):
        for shared in (False, True, False, True):
            f = build(shared)
            np.testing.assert_array_equal(f(x) if shared else f(x, np.ones(3)), x + 1)


def test_errors_of_quick_calls_are_told_as_pytensor_tells_them():
    x, y = pt.dvectors("x", "y")
    f = pytensor.function([x, y], [x * y], mode="GRAPHC")
    told = []
    for trust in (False, True):
        f.trust_input = trust
        with pytest.raises(ValueError, match="mul") as caught:
            f(np.ones(2), np.ones(3))
        error = caught.value
        text = "\n".join([str(error), *getattr(error, "__notes__", [])])
        assert "HINT" in text
        told.append(text.splitlines()[0])
    assert told[0] == told[1]


def test_python_ops_keep_their_inputs():
    """Ops that run in Python cannot write into arguments that they do not declare, nor return views of them."""
    x = pt.dvector("x")

    @wrap_py([pt.dvector], [pt.dvector])
    def write(x):
        x[0] = 9.0
        return x + 1

    @wrap_py([pt.dvector], [pt.dvector])
    def view(x):
        return x[::-1]

    class Sorted(Op):
        __props__ = ()
        destroy_map = {0: [0]}

        def make_node(self, x):
            return Apply(self, [x], [x.type()])

        def perform(self, node, inputs, outputs):
            inputs[0].sort()
            outputs[0][0] = inputs[0]

    given = np.array([2.0, 1.0])
    with pytest.raises(ValueError, match="may not write into its inputs"):
        pytensor.function([x], write(x), mode="GRAPHC")(given)
    pytensor.function([x], view(x), mode="GRAPHC")(given)[0] = 7.0
    order, after = pytensor.function([x], [Sorted()(x * 1), x + 1], mode="GRAPHC", accept_inplace=True)(given)
    np.testing.assert_array_equal(given, [2, 1])
    np.testing.assert_array_equal([order, after], [[1, 2], [3, 2]])


def _groups(op, node):
    """Ranks and dtypes of what the methods of a loop pick, by method."""
    names = "seqs mitmot mitsot sitsot non_seqs".split()
    found = {}
    for side, inputs, outputs in (
        ("inner", op.inner_inputs, op.inner_outputs),
        ("outer", node.inputs, node.outputs),
    ):
        for name in (*names, "mitmot_outs", "mitsot_outs", "sitsot_outs", "nitsot_outs"):
            picked = getattr(op, f"{side}_{name}")(outputs if name.endswith("outs") else inputs)
            found[f"{side}_{name}"] = [(v.type.ndim, v.type.dtype) for v in picked]
    partners = {
        name: [len(p) if isinstance(p, list) else p >= 0 for _, p in sorted(mapping.items())]
        for name, mapping in op.get_oinp_iinp_iout_oout_mappings().items()
        if "outer_inp" not in name  # nit-sots have none in graphc
    }
    info = op.info
    slices = (info.mit_mot_in_slices, info.mit_mot_out_slices, info.mit_sot_in_slices)
    return found, partners, (*slices, info.sit_sot_in_slices, info.n_seqs, info.n_nit_sot, info.n_non_seqs)


@pytest.mark.parametrize("kind", ["state", "output", "two taps", "all"])
def test_methods_of_loops_are_pytensors(kind):
    """graphc's loops have PyTensor's methods, which pick the same variables."""

    def loop(pt, scan):
        x, m, w = pt.vector("x"), pt.matrix("m"), pt.scalar("w")
        first, two = pt.as_tensor(np.array(0.0)), {"initial": pt.zeros(2), "taps": [-2, -1]}
        step, sequences, states = {
            "state": (lambda a, h, w: h * w + a, [x], [first]),
            "output": (lambda a, r, w: r * w + a, [x, m], [None]),
            "two taps": (lambda a, h2, h1, w: h2 + h1 * w + a, [x], [two]),
            "all": (lambda a, r, h2, h1, g, w: [h2 * a, g + h1 * w, r * g], [x, m], [two, first, None]),
        }[kind]
        rows = scan(step, sequences, states, [w], return_updates=False, n_steps=5)
        rows = rows[0] if isinstance(rows, list | tuple) else rows
        todo = [rows]
        while type(todo[0].owner.op).__name__ != "Scan":
            todo = [todo[0].owner.inputs[0]]
        return todo[0].owner

    import graphc.tensor as gt

    theirs, ours = loop(pt, pytensor.scan), loop(gt, graphc.scan)
    assert _groups(ours.op, ours) == _groups(theirs.op, theirs)
