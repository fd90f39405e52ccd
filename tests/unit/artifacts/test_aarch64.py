# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Objects for AArch64 compute what this machine's code does, on an emulated processor."""

from __future__ import annotations

import importlib

import numpy as np
import pytest

import graphc
import graphc.tensor as pt
from graphc.artifacts.c_module import c_module
from graphc.artifacts.emit import emit
from graphc.artifacts.export import StateNames, named_target
from graphc.artifacts.source import sources

pytest.importorskip("unicorn", reason="unicorn (of the extra test) is not installed")


def machine(functions, **options):
    """A processor with the functions, and their interfaces."""
    given = sources(functions)
    made = c_module(given, StateNames(given).of_cells, named_target("aarch64"), **options)
    return importlib.import_module("aarch64_machine").Machine(made.code), made.interfaces


def compare(f, *values, rtol=1e-13, **options):
    """Runs a function that keeps nothing in both ways; gives the machine."""
    arm, interfaces = machine({"f": f}, **options)
    interface = interfaces["f"]
    more = [member.initial for member in interface.inputs[len(values) :]]
    found = arm.call("f", [*values, *more], [member.spec for member in interface.outputs])
    expected = f(*values)
    expected = expected if isinstance(expected, list) else [expected]
    for x, y in zip(found, expected, strict=False):
        assert x.dtype == y.dtype and x.shape == y.shape
        np.testing.assert_allclose(x, y, rtol=rtol, atol=rtol)
    return arm


def test_a_family_with_state(family, point):
    functions, bias = family
    arm, interfaces = machine(functions)
    outputs = {name: [m.spec for m in interface.outputs] for name, interface in interfaces.items()}
    kept = bias.get_value()
    found = arm.call("gradient", [*point, kept], outputs["gradient"])
    for x, y in zip(found, functions["gradient"](*point).values(), strict=True):
        np.testing.assert_allclose(x, y, rtol=1e-13)
    try:
        state = kept
        for _ in range(3):
            value, state = arm.call("step", [*point, state], outputs["step"])
            np.testing.assert_allclose(value, functions["step"](*point)[0], rtol=1e-13)
            np.testing.assert_allclose(state, bias.get_value(), rtol=1e-13)
    finally:
        bias.set_value(kept)
    with pytest.raises(ValueError, match="8: "):
        arm.call("gradient", [np.ones(2), np.array(2), kept], outputs["gradient"])
    with pytest.raises(ValueError, match="2: "):
        arm.call("gradient", [point[0].astype("float32"), point[1], kept], outputs["gradient"])


@pytest.mark.parametrize("dtype", ["float32", "float64", "int32", "int64", "uint8", "bool", "complex128"])
def test_elements_and_reductions(dtype):
    x = pt.matrix("x", dtype=dtype)
    values = np.random.default_rng(0).normal(size=(13, 37)) * 5
    values = values + 1j if dtype == "complex128" else np.abs(values) if dtype == "uint8" else values
    graphs = [x.sum(axis=0), x.T[1:, ::-1] + x.T[1:], pt.switch(pt.eq(x, x[0]), x, x[::-1])]
    if dtype != "complex128":
        graphs += [x.max(axis=1), x.argmax(axis=1), pt.cumsum(x, axis=1), pt.sort(x, axis=1)]
    if dtype.startswith("float"):
        graphs += [pt.exp(-x) + pt.tanh(x) * pt.sin(x), pt.log1p(abs(x)), pt.erf(x), x**3.5, pt.mean(x)]
    compare(graphc.function([x], graphs), values.astype(dtype), rtol=2e-5 if dtype == "float32" else 1e-13)


def test_loops_and_libraries():
    x, w = pt.dmatrix("x"), pt.dmatrix("w")
    product = pt.dot(x, pt.dot(w, w.T))
    h = graphc.scan(
        lambda row, h: pt.tanh(row + pt.dot(h, w)),
        sequences=[x],
        outputs_info=[pt.zeros((64,))],
        return_updates=False,
    )
    loss = (h**2).mean() + pt.linalg.cholesky(pt.dot(w, w.T) + 64 * pt.eye(64)).sum() + (product**2).mean()
    rng = np.random.default_rng(0)
    f = graphc.function([x, w], [loss, *graphc.grad(loss, [x, w])])
    arm = compare(f, rng.normal(size=(70, 64)), rng.normal(size=(64, 64)) / 8, rtol=1e-9)
    assert {"dgemm_", "dpotrf_"} <= arm.called


@pytest.mark.parametrize("dtype", ["float32", "float64"])
def test_freestanding(dtype):
    x, w = pt.matrix("x", dtype=dtype), pt.matrix("w", dtype=dtype)
    f = graphc.function([x, w], [pt.tanh(pt.dot(x, w)), pt.exp(x).sum(axis=0), pt.sort(x, axis=0)])
    rng = np.random.default_rng(0)
    values = [rng.normal(size=shape).astype(dtype) for shape in ((30, 17), (17, 23))]
    arm = compare(f, *values, rtol=1e-4 if dtype == "float32" else 1e-12, freestanding=True)
    assert arm.called <= {"memcpy", "memset", "memmove"}


def test_draws():
    rng = graphc.shared(np.random.default_rng(3), name="rng")
    next_rng, x = rng.normal(1.0, 2.0, size=500)
    last, y = next_rng.uniform(size=5)
    f = graphc.function([], [x, y], updates={rng: last})
    arm, interfaces = machine({"f": f})
    state, specs = interfaces["f"].inputs[0].initial, [member.spec for member in interfaces["f"].outputs]
    expected = np.random.default_rng(3)
    for _ in range(2):
        x, y, state = arm.call("f", [state], specs)
        np.testing.assert_allclose(x, expected.normal(1.0, 2.0, size=500), rtol=1e-14)
        np.testing.assert_allclose(y, expected.uniform(size=5), rtol=1e-14)
    # The rare draws outside of the ziggurat's rectangles are NumPy's.
    assert "random_normal" in arm.called


def test_the_register_of_macos_is_left_alone(tmp_path):
    """Code for Linux and for macOS is the same: the latter owns x18."""
    x = pt.dmatrix("x")
    rows = graphc.scan(
        lambda row, h: pt.tanh(row * h[::-1] + pt.sin(h) * row.sum()),
        sequences=[x],
        outputs_info=[pt.zeros(x.shape[1])],
        return_updates=False,
    )
    f = graphc.function([x], [rows, graphc.grad(rows[-1].sum(), x)], name="f")
    emit(f, tmp_path / "f.s", "asm", "aarch64")
    text = (tmp_path / "f.s").read_text(encoding="utf-8")
    assert text.count("x17") > 10 and "x19" in text
    assert "x18" not in text and "w18" not in text
