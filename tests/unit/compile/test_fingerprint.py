# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Keys are equal exactly for graphs that compile to the same code."""

from __future__ import annotations

import subprocess
import sys

import numpy as np
import pytest

import graphc
import graphc.tensor as pt
from graphc.compile.fingerprint import fingerprint
from graphc.function.function import _cells
from graphc.graph.function_graph import FunctionGraph


def key(inputs, outputs, *parts):
    return fingerprint(FunctionGraph([*inputs, *_cells(list(inputs), outputs)], outputs), *parts)


def of(build, dtype="float64", shape=(None,), names="xy", parts=("fast_run",)):
    x, y = (pt.tensor(name, dtype=dtype, shape=shape) for name in names)
    return key([x, y], build(x, y), *parts)


def base(x, y):
    return [pt.exp(x) * y + 1.5]


def test_the_same_structure_has_the_same_key():
    assert of(base) == of(base, names=("a", "b")) is not None
    # Written on other lines, in another style.
    assert of(base) == of(lambda x, y: [pt.add(pt.mul(pt.exp(x), y), 1.5)])


VARIATIONS = {
    "op": of(lambda x, y: [pt.expm1(x) * y + 1.5]),
    "operand order": of(lambda x, y: [y * pt.exp(x) + 1.5]),
    "operands swapped": of(lambda x, y: [pt.exp(y) * x + 1.5]),
    "literal": of(lambda x, y: [pt.exp(x) * y + 2.5]),
    "literal's sign of zero": of(lambda x, y: [pt.exp(x) * y + -0.0]),
    "literal zero": of(lambda x, y: [pt.exp(x) * y + 0.0]),
    "literal nan": of(lambda x, y: [pt.exp(x) * y + np.nan]),
    "dtype": of(base, dtype="float32"),
    "static size": of(base, shape=(3,)),
    "static one": of(base, shape=(1,)),
    "rank": of(base, shape=(None, None)),
    "one more result": of(lambda x, y: [*base(x, y), x]),
    "other result": of(lambda x, y: [pt.exp(x), *base(x, y)]),
    "mode": of(base, parts=("fast_compile",)),
    "property": of(lambda x, y: [(pt.exp(x) * y + 1.5).sum(axis=0)]),
    "property, other op": of(lambda x, y: [(pt.exp(x) * y + 1.5).max(axis=0)]),
    "index": of(lambda x, y: [(pt.exp(x) * y + 1.5)[1:]]),
    "other index": of(lambda x, y: [(pt.exp(x) * y + 1.5)[2:]]),
    "open index": of(lambda x, y: [(pt.exp(x) * y + 1.5)[:2]]),
    "cast": of(lambda x, y: [(pt.exp(x) * y + 1.5).astype("int32")]),
    "other cast": of(lambda x, y: [(pt.exp(x) * y + 1.5).astype("int64")]),
}


def test_differences_change_the_key():
    keys = {"base": of(base), **VARIATIONS}
    assert None not in keys.values()
    assert len(set(keys.values())) == len(keys)


@pytest.mark.parametrize("axes", [(0,), (1,), (0, 1)])
def test_axes_are_part_of_the_key(axes):
    x = pt.dmatrix("x")
    others = {key([x], [x.sum(axis=other)]) for other in [(0,), (1,), (0, 1)] if other != axes}
    assert key([x], [x.sum(axis=axes)]) not in others


def test_shared_structure_differs_from_repeated_structure():
    x = pt.dvector("x")
    y = pt.exp(x)
    assert key([x], [y + y]) != key([x], [y + pt.exp(x)])


def test_order_of_inputs():
    x, y = pt.dvectors("x", "y")
    assert key([x, y], [x - y]) != key([y, x], [x - y])


def test_data_of_large_constants_does_not_count_but_their_places_do():
    x = pt.dvector("x")
    a, b = np.arange(20.0), np.arange(20.0) + 1
    assert key([x], [x * pt.constant(a)]) == key([x], [x * pt.constant(b)])
    assert key([x], [x * pt.constant(a)]) != key([x], [x * pt.constant(a.astype("float32"))])
    assert key([x], [x * pt.constant(a)]) != key([x], [x * pt.constant(np.arange(21.0))])
    c, d = pt.constant(a), pt.constant(b)
    assert key([x], [x * c + c]) != key([x], [x * c + d])
    assert key([x], [x * c - d]) == key([x], [x * d - c])
    small = np.arange(3.0)
    assert key([x], [x * pt.constant(small)]) != key([x], [x * pt.constant(small + 1)])


def test_what_code_relies_on_of_large_constants_counts():
    x, rows = pt.matrix("x", shape=(20, 3)), np.arange(20)

    def taken(columns, rows=rows):
        return key([x], [x.ravel()[pt.constant(rows * 3 + columns)]])

    assert taken(rows % 3) == taken(rows[::-1] % 3)
    in_range, negative = taken(rows % 3, rows[::-1]), taken(rows % 3 - 1)
    assert len({taken(rows % 3), in_range, negative}) == 3


class Doubled(graphc.Op):
    """An op whose properties the subclasses choose."""

    def make_node(self, x):
        return graphc.Apply(self, [x], [x.type()])

    def perform(self, node, inputs, output_storage):
        output_storage[0][0] = 2 * inputs[0]


class Plain(Doubled):
    __props__ = ("scale",)

    def __init__(self, scale):
        self.scale = scale


def test_ops_that_cannot_be_identified_have_no_key():
    x = pt.dvector("x")
    assert Doubled.__props__ is None and key([x], [Doubled()(x)]) is None
    assert key([x], [Plain(object())(x)]) is None
    assert key([x], [Plain(lambda: 0)(x)]) is None
    assert key([x], [Plain((1, [object()]))(x)]) is None
    assert key([x], [Plain(np.arange(3))(x)]) is None


def test_properties_of_plain_data():
    x = pt.dvector("x")
    values = [
        1,
        1.0,
        True,
        "1",
        b"1",
        None,
        (1,),
        [1],
        (1, 2),
        (2, 1),
        {1, 2},
        np.dtype("int8"),
        np.dtype("int16"),
        1j,
    ]
    keys = [key([x], [Plain(value)(x)]) for value in values]
    assert None not in keys and len(set(keys)) == len(values)
    assert key([x], [Plain({2, 1})(x)]) == key([x], [Plain({1, 2})(x)])


def test_the_key_is_the_same_in_another_process():
    code = (
        "import graphc, graphc.tensor as pt; from graphc.compile.fingerprint import fingerprint;"
        "from graphc.graph.function_graph import FunctionGraph; x, y = pt.dvectors('x', 'y');"
        "print(fingerprint(FunctionGraph([x, y], [pt.exp(x) * y + 1.5]), 'fast_run'))"
    )
    environment_path = {"PYTHONPATH": ":".join(p for p in sys.path if p), "PYTHONHASHSEED": "7"}
    import os

    out = subprocess.run(
        [sys.executable, "-c", code],
        capture_output=True,
        text=True,
        check=True,
        env={**os.environ, **environment_path},
    )
    assert out.stdout.strip() == of(base)
