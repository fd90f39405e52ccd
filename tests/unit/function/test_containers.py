# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Dicts, lists, tuples and dataclasses as inputs and outputs, and what gradients are taken by."""

import pickle
from collections import OrderedDict, namedtuple
from dataclasses import dataclass
from types import MappingProxyType

import numpy as np
import pytest

import graphc
import graphc.tensor as pt


@dataclass
class Layer:
    w: object
    b: object


Pair = namedtuple("Pair", "w b")
w, b, x = pt.vector("w"), pt.scalar("b"), pt.vector("x")
VALUES = np.array([1.0, 2.0]), np.array(3.0)
FORMS = {
    "dict": lambda w, b: {"w": w, "b": b},
    "list": lambda w, b: [w, b],
    "tuple": lambda w, b: (w, b),
    "named tuple": Pair,
    "dataclass": Layer,
    "nested": lambda w, b: {"layers": [Layer(w, (b,))], "none": {"a": None}},
}


@pytest.fixture(params=FORMS)
def form(request):
    return FORMS[request.param]


def flat(tree):
    return graphc.graph.pytree.flatten(tree)[0]


def test_both_ways(form, mode):
    tree = form(w, b)
    f = graphc.function([tree, x], [form(w * x, b + 1), w.sum()], mode=mode)
    for call in (f, pickle.loads(pickle.dumps(f))):
        for values in (VALUES, ([1, 2], 3)):
            found, total = call(form(*values), np.ones(2))
            assert type(found) is type(tree) and total == 3.0
            by_size = sorted(flat(found), key=np.ndim)
            np.testing.assert_allclose(by_size[0], 4.0)
            np.testing.assert_allclose(by_size[1], [1.0, 2.0])


def test_gradients_have_the_form(form):
    tree = form(w, b)
    f = graphc.function([tree], graphc.value_and_grad((w**2).sum() * b, tree))
    value, gradients = f(form(*VALUES))
    assert value == 15.0 and type(gradients) is type(tree)
    by_size = sorted(flat(gradients), key=np.ndim)
    np.testing.assert_allclose(by_size[0], 5.0)
    np.testing.assert_allclose(by_size[1], [6.0, 12.0])


def test_named_arguments(mode):
    f = graphc.function({"params": {"w": w, "b": b}, "x": x}, (w * x).sum() + b, mode=mode)
    params, out = {"b": 1.0, "w": [1.0, 2.0]}, np.zeros(())
    assert f(params, [3.0, 4.0]) == f(params, x=[3.0, 4.0]) == f(x=[3.0, 4.0], params=params) == 12.0
    assert f(params, [3.0, 4.0], out=out) is out and out == 12.0


def test_a_part_of_the_outputs():
    f = graphc.function([[w, b]], Layer(w * 2, {"b": b}))
    assert f([[1.0], 2.0], outputs_wanted=["b"]).w is None
    assert f([[1.0], 2.0], outputs_wanted=None).b == {"b": 2.0}


def test_forms_are_kept_without_what_was_in_them():
    """Results have the class of a dict and the order of its entries; no form holds on to variables."""
    given = OrderedDict(z=Layer(w, None), a=[b, (w, b)])
    f = graphc.function([w, b], given)
    found = f(*VALUES)
    assert type(found) is OrderedDict and list(found) == ["z", "a"] and found["z"].b is None
    form = f.signature.form.structure
    assert list(form.example.values()) == [None, None] and form.children[0].example.w is None
    assert given["z"].w is w and [v is w for v in f.outputs] == [True, False, True, False]
    assert type(graphc.function([w], MappingProxyType({"w": w}))(VALUES[0])) is dict


def test_lists_of_outputs_have_no_gaps():
    with pytest.raises(TypeError, match=r"outputs\['a'\]\[1\] of the function must be a variable, got None"):
        graphc.function([w], {"a": [w, None]})
    with pytest.raises(TypeError, match=r"outputs\[0\] of the function must be a variable, got None"):
        graphc.function([w], [None, w], on_unused_input="ignore")


def test_donated_and_updated():
    state = graphc.shared(0.0)
    f = graphc.function({"p": {"w": w}, "x": x}, w + x, updates={state: state + w.sum()}, donate=[w])
    np.testing.assert_allclose(f({"w": np.ones(2)}, np.ones(2)), [2.0, 2.0])
    assert state.get_value() == 2.0


def test_parts_are_named_in_errors():
    f = graphc.function({"params": {"w": w, "layers": [b]}, "x": x}, w * x + b)
    wrong = {
        r"params must be a dict with the keys .'layers', 'w'., got a dict with the keys .'w'.": (
            ({"w": 1},),
            {"x": 1},
        ),
        r"params.'layers'. must be a list of 1 items, got a list of 2": (
            ({"w": [1], "layers": [1, 2]}, [1]),
            {},
        ),
        r"params\['layers'\]\[0\]\" of type": (({"w": [1], "layers": [[1]]}, [1]), {}),
        r"missing the argument x": (({"w": [1], "layers": [1]},), {}),
        r"takes 2 arguments, got 3": ((1, 2, 3), {}),
        r"'x' both by position and by name": (({"w": [1], "layers": [1]}, [1]), {"x": [1]}),
    }
    for message, (args, kwargs) in wrong.items():
        with pytest.raises(TypeError, match=message):
            f(*args, **kwargs)
    with pytest.raises(TypeError, match=r"must be a Layer, got .* of type int"):
        graphc.function([Layer(w, b)], w + b)(3)
    with pytest.raises(
        TypeError, match=r"input inputs\[0\]\['a'\] must be a variable, got 3.0 of type float"
    ):
        graphc.function([{"a": 3.0}], w)
    with pytest.raises(TypeError, match="got the key 3"):
        graphc.function({3: w}, w)
    with pytest.raises(TypeError, match=r"graphc.jit\(lambda"):
        graphc.value_and_grad(lambda w: w.sum(), w)
