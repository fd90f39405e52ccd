# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Draws of Philox as kernels make them, many of them: NumPy's numbers, and the state after them.

The interpreter would take minutes. The nests that become kernels are compiled for this machine instead, with
a loop for running sums and for positions; `gpu_cases` has draws of each kind as kernels.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import pytest
from simulation import generator

import graphc
import graphc.tensor as pt
from graphc.ir import build
from graphc.ir.value import as_index, converted
from graphc.lowering.carried import carry
from graphc.lowering.converter import FunctionConverter
from graphc.lowering.device_code import philox as device_philox
from graphc.lowering.device_code import streams as device_streams
from graphc.lowering.rules import LOWERING, ON_DEVICES
from graphc.tensor.random.native import draw_native
from graphc_dialects._mlir import ir
from graphc_runtime.generators import state_of

RANDOM = "graphc.random"
SCALE, SHARE = np.array([1.0, 0.5, 3.0]), np.array([0.0, 0.3, 0.9])


def _running(op: ir.Operation, values: ir.Value, size: ir.Value) -> ir.Value:
    def body(place: ir.Value, carried: list[ir.Value]) -> list[ir.Value]:
        found, so_far = carried
        so_far = so_far + values[place]
        return [build.create("tensor.insert", [found.type], [so_far, found, place]).result, so_far]

    start = build.empty(ir.RankedTensorType(values.type), [size])
    found: ir.Value = carry(size, [start, build.const_i64(0)], body)[0]
    return found


def _positions(op: ir.Operation, mask: ir.Value, size: ir.Value) -> ir.Value:
    def body(place: ir.Value, carried: list[ir.Value]) -> list[ir.Value]:
        found, count = carried
        number = converted(place, ir.IntegerType.get_signless(64))
        # What is not chosen is written where the next one that is will be.
        found = build.create("tensor.insert", [found.type], [number, found, as_index(count)]).result
        return [found, count + converted(mask[place], number.type)]

    kind = ir.RankedTensorType.get([build.DYNAMIC], ir.IntegerType.get_signless(64))
    start = build.empty(kind, [size])
    found: ir.Value = carry(size, [start, build.const_i64(0)], body)[0]
    return found


@pytest.fixture
def as_on_devices(monkeypatch: pytest.MonkeyPatch) -> list[ir.Operation]:
    """Draws are lowered as for devices; gives those that are."""
    seen = []
    rule = ON_DEVICES.get(RANDOM)
    assert rule is not None

    def lowers(context: FunctionConverter, op: ir.Operation) -> None:
        seen.append(op)
        rule(context, op)

    LOWERING.get(RANDOM)  # now its rule is there
    monkeypatch.setitem(LOWERING._rules, RANDOM, lowers)
    for module in (device_philox, device_streams):
        monkeypatch.setattr(module, "running", _running)
    monkeypatch.setattr(device_philox, "positions", _positions)
    return seen


# The numbers of bits of a position in a block, where that is another one: draws leap over blocks.
_SHIFT = {"beta": 1, "poisson": 2, "geometric": 3}
_DRAWS: list[tuple[str, list[tuple[float, ...]]]] = [
    ("standard_gamma", [(2.5,), (0.3,), (1.0,), (0.0,), (1.01,), (1e5,)]),
    ("beta", [(0.5, 0.9), (1.0, 1.0), (2.0, 0.4), (1e-104, 1e-105), (1e-3, 2e-3)]),
    ("poisson", [(3.5,), (9.9,), (10.0,), (0.0,), (1e5,)]),
    ("geometric", [(0.2,), (0.6,), (1.0,), (1e-19,)]),
    ("negative_binomial", [(2.5, 0.3), (0.5, 0.9), (1e4, 0.5), (3.0, 1.0)]),
    ("logseries", [(0.2,), (0.0,), (0.999,)]),
]


@pytest.mark.parametrize(("name", "given"), _DRAWS)
def test_numbers_and_state(
    name: str,
    given: Sequence[tuple[float, ...]],
    as_on_devices: list[ir.Operation],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(device_philox, "SHIFT", _SHIFT.get(name, device_philox.SHIFT))
    n, parameters = pt.lscalar("n"), [pt.dscalar() for _ in given[0]]
    rng = graphc.shared(generator(3))
    after, draws = getattr(pt.random, name)(*parameters, size=(n,), rng=rng, return_next_rng=True)
    f = graphc.function([n, *parameters], draws, updates={rng: after})
    assert as_on_devices
    expected = generator(3)
    for values in given:
        for count in (5_000, 0, 1, 2):
            wanted = getattr(expected, name)(*values, size=count)
            np.testing.assert_allclose(f(count, *values), wanted, rtol=1e-12, atol=1e-300)
            np.testing.assert_array_equal(state_of(rng.get_value()), state_of(expected))


# With the parameters of the reference, where these are others. Gamma numbers of shape 1 are exponential ones.
_FORMULAS: list[tuple[str, tuple[object, ...], tuple[object, ...]]] = [
    ("gamma", (1.0, SCALE), (1.0, 1 / SCALE)),
    ("invgamma", (1.0, SCALE), ()),
    ("gengamma", (3.0, 3.0, SCALE), ()),
    ("t", (2.0, SCALE, 2.0), ()),
    ("halfcauchy", (SCALE, 2.0), ()),
    ("weibull", (0.0,), ()),
    ("chisquare", (2.0,), ()),
    ("f", (3.0, 0.5), ()),
    ("poisson", (0.5,), ()),
    ("negative_binomial", (1.0, 0.25), ()),
    ("binomial", (10, SHARE), ()),
    ("binomial", (60, 1 - SHARE), ()),
    ("rayleigh", (SCALE,), ()),
    ("power", (SCALE,), ()),
]


def test_formulas(as_on_devices: list[ir.Operation]) -> None:
    """What is made of a number may differ from draw to draw; for a known rate, there are fewer words."""
    rng, outputs = graphc.shared(generator()), []
    after = rng
    for name, given, _ in _FORMULAS:
        after, draws = getattr(pt.random, name)(*given, size=(60, 3), rng=after, return_next_rng=True)
        outputs.append(draws)
    f = graphc.function([], outputs, updates={rng: after})
    state = state_of(generator())
    for (name, given, native), found in zip(_FORMULAS, f(), strict=True):
        wanted, state = draw_native(name, state, list(map(np.asarray, native or given)), (60, 3))
        np.testing.assert_allclose(found, wanted, rtol=1e-13, atol=1e-15)
    assert len(as_on_devices) == len(_FORMULAS)
    np.testing.assert_array_equal(state_of(rng.get_value()), state)


@pytest.mark.parametrize("dtype", ["int8", "uint16", "int32"])
def test_integers(dtype: str, as_on_devices: list[ir.Operation]) -> None:
    """Of parts of halves of words: some are left over after draws, and not taken by the next ones."""
    n, low, high = pt.lscalars("n", "low", "high")
    rng = graphc.shared(generator())
    after, draws = pt.random.integers(low, high, size=(n,), dtype=dtype, rng=rng, return_next_rng=True)
    f = graphc.function([n, low, high], draws, updates={rng: after})
    assert as_on_devices
    expected, least, most = generator(), int(np.iinfo(dtype).min), int(np.iinfo(dtype).max)
    for count in (300, 1, 2, 3, 5, 0, 7):
        for bounds in ((0, 100), (least, most + 1), (5, 6), (least, least + (most - least) // 2 + 2)):
            wanted = expected.integers(*bounds, size=count, dtype=dtype)
            found = f(count, *bounds)
            assert found.dtype == wanted.dtype
            np.testing.assert_array_equal(found, wanted)
            np.testing.assert_array_equal(state_of(rng.get_value()), state_of(expected))


@pytest.mark.parametrize("name", ["random", "standard_normal", "standard_exponential"])
def test_float32(name: str, as_on_devices: list[ir.Operation]) -> None:
    """Of halves of words: one that is left over is the first of the next draws."""
    n, rng = pt.lscalar("n"), graphc.shared(generator())
    after, draws = getattr(pt.random, name)(size=(n,), dtype="float32", rng=rng, return_next_rng=True)
    f = graphc.function([n], draws, updates={rng: after})
    assert as_on_devices
    expected = generator()
    for count in (30_001, 0, 1, 2, 7, 1):
        wanted = getattr(expected, name)(count, dtype=np.float32)
        found = f(count)
        assert found.dtype == wanted.dtype
        np.testing.assert_allclose(found, wanted, rtol=3e-7)
        assert np.sum(found != wanted) <= count // 1_000
        np.testing.assert_array_equal(state_of(rng.get_value()), state_of(expected))


@pytest.mark.parametrize("name", ["standard_normal", "standard_exponential"])
def test_there_are_enough_words(name: str, as_on_devices: list[ir.Operation]) -> None:
    """Some words are added to a share of the draws: here they would not make up for too small a share."""
    n, rng = pt.lscalar("n"), graphc.shared(generator())
    after, draws = getattr(pt.random, name)(size=(n,), rng=rng, return_next_rng=True)
    f = graphc.function([n], draws, updates={rng: after})
    assert as_on_devices
    expected = generator()
    np.testing.assert_allclose(f(600_000), getattr(expected, name)(600_000), rtol=1e-14)
    np.testing.assert_array_equal(state_of(rng.get_value()), state_of(expected))


@pytest.mark.parametrize(("name", "given"), [("negative_binomial", (2.0, 0.0)), ("poisson", (-1e9,))])
def test_parameters_that_are_refused(
    name: str, given: tuple[float, ...], as_on_devices: list[ir.Operation]
) -> None:
    """Also where they are known when the function is compiled, and say how many words there are."""
    with np.errstate(divide="ignore"):
        f = graphc.function([], getattr(pt.random, name)(*given, size=(3,), rng=graphc.shared(generator())))
    assert as_on_devices
    with pytest.raises(ValueError, match=name):
        f()
