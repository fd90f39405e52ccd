# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Exported functions give what those of this process give."""

from __future__ import annotations

import inspect
import pickle
import threading

import numpy as np
import pytest

import graphc
import graphc.tensor as pt
import graphc_runtime
from graphc_runtime.errors import ArtifactError, LoadError


def test_results_equal_those_of_the_process(family, exported, point):
    functions, _ = family
    module = graphc_runtime.load(exported)
    assert set(module) == set(functions) and module.target == "host"
    assert module.model(*point) == functions["model"](*point)
    found, expected = module.gradient(*point), functions["gradient"](*point)
    assert list(found) == ["value", "gradient"]
    np.testing.assert_array_equal(found["gradient"], expected["gradient"])
    with pytest.raises(IndexError):
        module.model(np.ones(2), 2)


def test_keywords_conversions_and_out(exported, point):
    model = graphc_runtime.load(exported).model
    x, n = point
    expected = model(x, n)
    assert model(n=3, x=list(x)) == expected == model(x, n=np.int8(3))
    assert model(x.astype(">f8")[::1], 3) == expected
    out = np.empty(())
    assert model(x, n, out=out) is out and out == expected
    for bad in ({"y": 1}, {"x": x}):
        with pytest.raises(TypeError, match="model"):
            model(x, n, **bad)
    with pytest.raises(TypeError, match="misses the arguments n"):
        model(x)
    with pytest.raises(TypeError, match="2 arguments, given 3"):
        model(x, n, n)


def test_out_in_the_form_of_the_results(exported, point):
    gradient = graphc_runtime.load(exported).gradient
    out = {"value": np.empty(()), "gradient": np.empty(7)}
    found = gradient(*point, out=out)
    assert found["gradient"] is out["gradient"]
    np.testing.assert_array_equal(out["gradient"], gradient(*point)["gradient"])
    with pytest.raises(TypeError, match="keys"):
        gradient(*point, out=[np.empty(()), np.empty(7)])


def test_an_artifact_says_what_to_call(exported):
    with pytest.raises(TypeError, match=r"called by one of its functions: module\.\w+, module\.\w+"):
        graphc_runtime.load(exported)(1.0)


def test_names_and_documentation(exported):
    model = graphc_runtime.load(exported).model
    assert [(spec.name, spec.dtype, spec.shape) for spec in model.inputs] == [
        ("x", "float64", (None,)),
        ("n", "int64", ()),
    ]
    assert model.__doc__ == "The value of a model." and model.__name__ == "model"
    assert list(inspect.signature(model).parameters) == ["x", "n", "out"]


def test_state_is_shared_within_an_instance_only(family, exported, point, tmp_path):
    functions, bias = family
    first = graphc_runtime.load(exported)
    second = first.instance()
    before = first.model(*point)
    new = graphc.function([], bias, name="now")
    value = first.step(*point)
    assert value == [before]
    assert first.model(*point) != before and second.model(*point) == before
    kept = bias.get_value()
    functions["step"](*point)
    np.testing.assert_array_equal(first.state["bias"], new())
    bias.set_value(kept)
    first.save_state(tmp_path / "state.npz")
    second.load_state(tmp_path / "state.npz")
    assert second.model(*point) == first.model(*point)
    with pytest.raises(TypeError, match="state 'bias'"):
        first.state["bias"] = np.ones((2, 2))
    with pytest.raises(KeyError, match="bias"):
        first.state["other"] = 1.0


def test_updates_of_threads_are_not_lost(tmp_path):
    total = graphc.shared(0, name="total")
    add = graphc.function([], total, updates={total: total + 1}, name="add")
    graphc.export(add, tmp_path / "add.gcx")
    module = graphc_runtime.load(tmp_path / "add.gcx")
    work = [threading.Thread(target=lambda: [module.add() for _ in range(300)]) for _ in range(4)]
    for thread in work:
        thread.start()
    for thread in work:
        thread.join()
    assert module.state["total"] == 1200


def test_constants_are_stored_once(exported):
    module = graphc_runtime.load(exported)
    constants = [
        what.blob
        for function in module.package.functions.values()
        for kind, what in function.cells
        if kind == "constant"
    ]
    assert len(constants) >= 3 and len(set(constants)) == 1


def test_donated_inputs_and_defaults(tmp_path):
    x, y = pt.dvector("x"), pt.dscalar("y")
    f = graphc.function([x, graphc.In(y, value=2.0)], pt.exp(x) * y, donate=[x], name="f")
    graphc.export(f, tmp_path / "f.gcx")
    g = graphc_runtime.load(tmp_path / "f.gcx").f
    assert g.donated == ("x",)
    values = np.arange(3.0)
    expected = np.exp(values) * 2
    given = values.copy()
    result = g(given)
    np.testing.assert_allclose(result, expected, rtol=1e-15)
    assert result is given
    np.testing.assert_allclose(g(values.copy(), y=3.0), expected * 1.5, rtol=1e-15)


def test_modules_and_functions_pickle(exported, point):
    module = graphc_runtime.load(exported)
    module.step(*point)
    copy, function = pickle.loads(pickle.dumps((module, module.model)))
    assert copy.model(*point) == function(*point) == module.model(*point)
    assert function is copy.model


def test_from_memory_and_other_targets(exported, point):
    data = exported.read_bytes()
    expected = graphc_runtime.load(exported).model(*point)
    np.testing.assert_allclose(
        graphc_runtime.load(data, target="x86-64-v2").model(*point), expected, rtol=1e-14
    )
    with pytest.raises(LoadError, match="machine"):
        graphc_runtime.load(data, target="aarch64").model(*point)
    with pytest.raises(LoadError, match="it has host, x86-64-v2, aarch64"):
        graphc_runtime.load(data, target="sparc")


def test_a_machine_that_fits_no_target(family, tmp_path):
    functions, _ = family
    graphc.export({"model": functions["model"]}, tmp_path / "arm.gcx", targets="aarch64")
    with pytest.raises(LoadError, match="aarch64 is for aarch64"):
        graphc_runtime.load(tmp_path / "arm.gcx")


def test_signatures(family, tmp_path):
    pytest.importorskip("cryptography", reason="signatures need the package cryptography")
    from graphc_runtime.signing import generate_key

    functions, _ = family
    (private, public), (_, other) = generate_key(), generate_key()
    path = tmp_path / "signed.gcx"
    graphc.export({"model": functions["model"]}, path, signing_key=private)
    assert graphc_runtime.load(path, trusted_keys=[other, public]).model(np.ones(3), 1) > 0
    assert graphc_runtime.load(path).model(np.ones(3), 1) > 0
    with pytest.raises(ArtifactError, match="not among trusted_keys"):
        graphc_runtime.load(path, trusted_keys=[other])
    damaged = bytearray(path.read_bytes())
    damaged[-1] ^= 1
    with pytest.raises(ArtifactError, match="signature does not match"):
        graphc_runtime.load(bytes(damaged), trusted_keys=[public])


def test_unsigned_is_refused_where_keys_are_trusted(exported):
    with pytest.raises(ArtifactError, match="not signed"):
        graphc_runtime.load(exported, trusted_keys=[bytes(32)])


def test_what_cannot_be_exported(tmp_path):
    x = pt.dvector("x")
    in_python = graphc.function([x], graphc.as_op([pt.dvector], [pt.dvector])(lambda v: v)(x))
    reference = graphc.function([x], x + 1, mode="reference")
    good = graphc.function([x], x + 1)
    updated = graphc.function([graphc.In(x, value=np.ones(2), update=x + 1)], x.sum())
    for functions, options, error, message in [
        (in_python, {}, TypeError, "runs partly in Python"),
        (reference, {}, TypeError, "not compiled as a whole"),
        (np.sin, {}, TypeError, "must be a compiled graphc.function"),
        (updated, {}, TypeError, "use a shared variable"),
        ({"../f": good}, {}, ValueError, "identifier"),
        ({}, {}, ValueError, "at least one function"),
        (good, {"targets": "vax"}, ValueError, "target must be one of"),
        (good, {"docs": {"g": ""}}, ValueError, "g, which are not exported"),
    ]:
        with pytest.raises(error, match=message):
            graphc.export(functions, tmp_path / "x.gcx", **options)
    assert not list(tmp_path.iterdir())
