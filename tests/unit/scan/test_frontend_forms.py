# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""``graphc.scan``: updates of shared variables, forms of arguments and results, states of other types."""

import pickle
import warnings

import numpy as np
import pytest

import graphc
import graphc.tensor as pt
from graphc.graph import equal_computations
from graphc.graph.tensor.type import TensorType
from graphc.scan import Scan, ScanArgs, roles, until
from graphc.transforms.op_from_graph import OpFromGraph


def scan_node(v):
    """The scan that computes a variable."""
    while not isinstance(v.owner.op, Scan):
        v = v.owner.inputs[0]
    return v.owner


class TestUpdates:
    def test_returned(self, mode):
        a = graphc.shared(1.0, name="a")
        y, updates = graphc.scan(lambda x: (x * a, {a: a + 1}), pt.arange(3.0), return_updates=True)
        assert list(updates) == [a] and a.default_update is None
        np.testing.assert_allclose(graphc.function([], y, mode=mode, updates=updates)(), [0, 2, 6])
        assert a.get_value() == 4.0

    def test_attached(self, mode):
        a = graphc.shared(1.0, name="a")
        y = graphc.scan(lambda x: (x * a, [(a, a + 1)]), pt.arange(3.0), return_updates=False)
        f = graphc.function([], y, mode=mode)
        np.testing.assert_allclose(f(), [0, 2, 6])
        np.testing.assert_allclose(f(), [0, 5, 12])
        assert a.get_value() == 7.0
        graphc.function([], y, mode=mode, no_default_updates=True)()
        assert a.get_value() == 7.0

    def test_updates_only(self, mode):
        a = graphc.shared(1.0, name="a")
        n = pt.lscalar("n")
        y, updates = graphc.scan(lambda: {a: a * 2}, n_steps=n, return_updates=True)
        assert y is None
        graphc.function([n], [], updates=updates, mode=mode)(5)
        assert a.get_value() == 32.0

    def test_nested(self, mode):
        a = graphc.shared(0.0, name="a")

        def outer(x):
            graphc.scan(lambda: {a: a + x}, n_steps=2, return_updates=False)
            return a.default_update

        y = graphc.scan(outer, pt.arange(3.0), return_updates=False)
        np.testing.assert_allclose(graphc.function([], y, mode=mode)(), [0, 2, 6])
        assert a.get_value() == 6.0

    def test_default_update_made_before_is_of_the_function(self, mode):
        a = graphc.shared(1.0, name="a")
        a.default_update = a + 1
        y = graphc.scan(lambda x: x * a, pt.arange(3.0), return_updates=False)
        f = graphc.function([], y, mode=mode)
        np.testing.assert_allclose(f(), [0, 1, 2])
        np.testing.assert_allclose(f(), [0, 2, 4])


class TestForms:
    """What a function may return, and in which form the results come."""

    def test_forms(self):
        x, a = pt.vector("x"), graphc.shared(0.0)
        update, stop = {a: a + 1}, lambda x: until(x > 1)
        for returned, count in [
            (lambda x: x, 1),
            (lambda x: [x], 1),
            (lambda x: (x, x), 2),
            (lambda x: ([x, x], update), 2),
            (lambda x: (update, [x, x]), 2),
            (lambda x: (x, update, stop(x)), 1),
            (lambda x: ([x], stop(x)), 1),
            (lambda x: (x, x, stop(x)), 2),
            (lambda x: (update, stop(x)), 0),
            (lambda x: [(a, a + 1)], 0),
            (lambda x: update, 0),
        ]:
            assert len(graphc.scan(returned, x, return_list=True, return_updates=False)) == count

    def test_result_forms(self):
        x = pt.vector("x")
        assert isinstance(graphc.scan(lambda x: x, x, return_updates=False), pt.TensorVariable)
        assert isinstance(graphc.scan(lambda x: [x, x], x, return_updates=False), list)
        assert len(graphc.scan(lambda x: x, x, return_list=True, return_updates=False)) == 1
        assert graphc.scan(lambda x: x, x, return_updates=True)[1] == {}

    def test_names(self):
        x, h0 = pt.vector("x"), pt.scalar("h0")

        def step(x, y, h):
            new = h + x
            double = new * 2
            double.name = "double"
            return new, double, y

        outputs = graphc.scan(step, [x, x], [h0, None, None], return_updates=False)
        assert roles(scan_node(outputs[0])) == {
            "x": "sequence",
            "x_2": "sequence",
            "h0": "sit-sot",
            "double": "nit-sot",
            "out1": "nit-sot",
        }
        assert scan_node(outputs[0]).op.name == "step"
        args = ScanArgs(scan_node(outputs[0]))
        assert [v.name for v in args["x"].inner_in] == ["x[t]"]
        assert [v.name for v in args["h0"].inner_in] == ["h0[t-1]"]

    def test_printing(self):
        text = graphc.dprint(
            graphc.scan(lambda x, h: h + x, pt.vector("x"), 0.0, return_updates=False), file="str"
        )
        assert "x[t]" in text and "state0[t-1]" in text and "Inner graphs" in text

    @pytest.mark.parametrize("nothing", [None, {}, {"initial": None}, {"initial": None, "taps": None}])
    def test_outputs_without_start(self, nothing):
        x = pt.vector("x")
        y, _ = graphc.scan(lambda x, h: (x, h + x), x, [nothing, {"initial": 0.0}], return_updates=False)
        assert roles(scan_node(y)) == {"x": "sequence", "out0": "nit-sot", "state0": "sit-sot"}

    def test_empty_lists_and_plain_values(self, compute):
        y = graphc.scan(lambda h, k: h * k, [], [[1.0, 2.0]], [3], n_steps=np.int64(2), return_updates=False)
        np.testing.assert_allclose(compute(y), [[3, 6], [9, 18]])
        z = graphc.scan(
            lambda h: (h, 7, True),
            outputs_info=[pt.as_tensor(2), None, None],
            n_steps=graphc.shared(3),
            return_updates=False,
        )
        for found, expected in zip(compute(z), ([2] * 3, [7] * 3, [True] * 3), strict=True):
            np.testing.assert_array_equal(found, expected)

    def test_constants_of_other_dtypes(self, compute):
        k = pt.lvector("k")
        y = graphc.scan(lambda k, h: h + k, k, True, return_updates=False)
        assert y.type.dtype == "int64"
        np.testing.assert_array_equal(compute(y, {k: [1, 2]}), [2, 4])
        z = graphc.scan(lambda h: h * 1j, outputs_info=1, n_steps=3, return_updates=False)
        np.testing.assert_array_equal(compute(z), [1j, -1, -1j])

    def test_in_an_op_from_graph(self, compute):
        x, w = pt.vector("x"), pt.scalar("w")
        op = OpFromGraph([x, w], [graphc.scan(lambda x, h: h * w + x, x, 0.0, return_updates=False)])
        a, b = pt.vector("a"), pt.scalar("b")
        np.testing.assert_allclose(compute(op(a, b), {a: np.ones(3), b: 2.0}), [1, 3, 7])
        y = graphc.scan(lambda v: op(a, v)[-1], a, return_updates=False)
        np.testing.assert_allclose(compute(y, {a: np.array([1.0, 2.0])}), [3, 4])

    def test_clone_on_other_types(self, compute):
        x, narrow = pt.vector("x"), pt.tensor("narrow", dtype="float64", shape=(4,))
        y = graphc.scan(lambda x, h: h + x, x, 0.0, return_updates=False)
        again = graphc.clone_replace(y, {x: narrow})
        np.testing.assert_allclose(compute(again, {narrow: np.ones(4)}), [1, 2, 3, 4])

    def test_compatibility_arguments(self):
        assert (
            graphc.scan(
                lambda x: x, pt.vector(), mode=None, profile=False, allow_gc=True, return_updates=False
            )
            is not None
        )


class BoxType(graphc.graph.type.Type):
    """A Python int that is no tensor."""

    def filter(self, value, strict=False, allow_downcast=None):
        if isinstance(value, int):
            return value
        raise TypeError(f"no int: {value!r}")


class Advance(graphc.Op):
    """A box, one further, and its content as a tensor."""

    __props__ = ()

    def make_node(self, box):
        return graphc.Apply(self, [box], [box.type(), TensorType("int64", ())()])

    def perform(self, node, inputs, outputs):
        outputs[0][0] = inputs[0] + 1
        outputs[1][0] = np.asarray(inputs[0] * 10)


class TestUntraced:
    @pytest.mark.parametrize("n", [0, 1, 4])
    def test_state_that_is_no_tensor(self, compute, n):
        box, steps = BoxType()("box"), pt.lscalar("steps")
        last, seen = graphc.scan(
            lambda b: Advance()(b), outputs_info=[box, None], n_steps=steps, return_updates=False
        )
        assert roles(scan_node(seen))["box"] == "untraced"
        value, rows = compute([last, seen], {box: 3, steps: n})
        assert value == 3 + n
        np.testing.assert_array_equal(rows, 10 * np.arange(3, 3 + n))

    def test_only_the_last_value_can_be_read(self):
        with pytest.raises(ValueError, match="only the last value is kept"):
            graphc.scan(
                lambda b: b,
                outputs_info={"initial": BoxType()("box"), "taps": [-2]},
                n_steps=2,
                return_updates=False,
            )


class TestPair:
    """What loops return is used as it is, and unpacks as `(outputs, updates)`, PyTensor's form."""

    @pytest.mark.filterwarnings("error")
    def test_unpacked(self):
        x, s = pt.vector("x"), graphc.shared(1.0, name="s")
        y, updates = graphc.scan(lambda v: (v * s, {s: s * 2}), x)
        (p, q), empty = graphc.scan(lambda v: [v, v + 1], x)
        doubled, _ = graphc.map(lambda v: 2 * v, x)
        folds = [
            next(iter(f(lambda v, t: v - t, x, 0.0))) for f in (graphc.reduce, graphc.foldl, graphc.foldr)
        ]
        assert list(updates) == [s] and empty == {} and s.default_update is None
        found = graphc.function([x], [y, p, q, doubled, *folds], updates=updates)([1.0, 2.0])
        for got, wanted in zip(found, [[1, 4], [1, 2], [2, 3], [2, 4], 1, 1, -1], strict=True):
            np.testing.assert_allclose(got, wanted)
        assert s.get_value() == 4.0

    @pytest.mark.filterwarnings("error")
    def test_as_it_is(self):
        x = pt.vector("x")
        y = graphc.scan(lambda v, h: v + h, x, 0.0)
        cost = y.sum()
        f = graphc.function([x], [y * 2, y[-1], y.shape[0], graphc.grad(cost, x)])
        assert pickle.loads(pickle.dumps(y)).type == y.type
        for got, wanted in zip(f([1.0, 2.0])[:4], [[2, 6], 3, 2, [2, 1]], strict=True):
            np.testing.assert_allclose(got, wanted)

    def test_updates_are_applied_until_they_are_taken(self):
        x, s = pt.vector("x"), graphc.shared(1.0, name="s")
        s.default_update = s + 5
        y = graphc.scan(lambda v: (v * s, {s: s * 2}), x)
        graphc.function([x], y)([1.0, 1.0])
        assert s.get_value() == 4.0
        _, updates = y
        graphc.function([x], y)([1.0, 1.0])
        assert s.get_value() == 9.0 and list(updates) == [s]

    def test_several(self):
        x = pt.vector("x")
        both = graphc.scan(lambda v: [v, v + 1], x)
        assert len(both) == 2 and both[-1].owner is not None
        np.testing.assert_allclose(graphc.function([x], both)([1.0])[1], [2.0])
        for wrong in (lambda: both * 2, lambda: 1 + both, lambda: -both):
            with pytest.raises(TypeError, match=r"2 outputs.*updates = scan"):
                wrong()
        (p, q) = graphc.scan(lambda v: [v, v + 1], x, return_updates=False)
        assert isinstance(p, pt.TensorVariable) and isinstance(q, pt.TensorVariable)

    def test_the_first_part_of_a_pair_that_is_none(self):
        """PyTensor's `scan(...)[0]` means all outputs, so it is not taken for the first row in silence."""
        x = pt.vector("x")
        one, several = (lambda: graphc.scan(lambda v: v, x)), (lambda: graphc.scan(lambda v: [v, v], x))
        for build, found in ((one, "the first row"), (several, "the first of 2 outputs")):
            with pytest.warns(UserWarning, match=rf"{found}.*updates = scan") as caught:
                build()[0]
            assert [each.filename for each in caught] == [__file__]
            with warnings.catch_warnings():
                warnings.simplefilter("error")
                unpacked, _ = build()
                unpacked[0], build()[-1], build()[:1], build()[1:]

    def test_tuple(self):
        with pytest.warns(DeprecationWarning, match="unpacks as the pair") as caught:
            assert type(graphc.scan(lambda v: v, pt.vector("x"), return_updates=True)) is tuple
        assert caught[0].filename == __file__


def _doubling(s, x, **options):
    return graphc.scan(lambda v: (v * s * s, {s: s * 2}), x, return_updates=False, **options)


@pytest.mark.parametrize("options", [{}, {"checkpoint_every": 2}, {"go_backwards": True}])
def test_gradient_through_updates(options, mode):
    """The value of a shared variable in an iteration depends on its first value."""
    s, x = graphc.shared(1.5, name="s"), pt.vector("x")
    y = _doubling(s, x, **options)
    final = s.default_update
    s.default_update = None
    rows = np.array([1.0, 2.0, 3.0])
    f = graphc.function([x], [*graphc.grad(y.sum(), [s, x]), graphc.grad(final * y[0], s)], mode=mode)
    weights = 4.0 ** np.arange(3)
    used = rows[::-1] if "go_backwards" in options else rows
    g_s, g_x, g_final = f(rows)
    np.testing.assert_allclose(g_s, 2 * 1.5 * (used * weights).sum())
    np.testing.assert_allclose(g_x, 1.5**2 * (weights[::-1] if "go_backwards" in options else weights))
    np.testing.assert_allclose(g_final, 3 * 8 * used[0] * 1.5**2)


def test_gradient_through_updates_that_end_early(mode):
    s = graphc.shared(1.5, name="s")
    y = graphc.scan(lambda: (s, {s: s * 2}, graphc.until(s > 5)), n_steps=9, return_updates=False)
    s.default_update = None
    assert graphc.function([], graphc.grad((y**2).sum(), s), mode=mode)() == 2 * 1.5 * (1 + 4 + 16)


def test_equal_loops_are_equal_ops():
    x, y = pt.dvectors("xy")

    def loop(v, function, **options):
        return graphc.scan(function, v, return_updates=False, **options).owner.op

    same = loop(x, lambda v: v + 1)
    others = [
        loop(x, lambda v: v + 2),
        loop(x, lambda v: v + 1, truncate_gradient=2),
        loop(x, lambda v, w: v + w, non_sequences=[pt.dscalar()]),
    ]
    assert same == loop(y, lambda v: v + 1) and hash(same) == hash(loop(y, lambda v: v + 1))
    assert len({same, *others}) == 4
    graphs = [graphc.scan(lambda v: v + 1, x, return_updates=False)[-1] for _ in range(2)]
    assert equal_computations(graphs[:1], graphs[1:])
