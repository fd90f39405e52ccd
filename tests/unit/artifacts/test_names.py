# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Names of inputs, functions and states: any works, or is refused before a file is written."""

from __future__ import annotations

import inspect
import shutil
import subprocess

import numpy as np
import pytest

import graphc
import graphc.tensor as pt
import graphc_runtime
from graphc.artifacts.emit import emit

ODD = [
    "out",
    "self",
    "args",
    "keywords",
    "lambda",
    "None",
    "__class__",
    "é",
    "a b",
    "f",
    "x" * 300,
    "*/",
    "0",
]


def _with_state(name, nested=False):
    x, state = pt.vector(name), graphc.shared(np.arange(3.0), name=name)
    result = {"r": [x * state]} if nested else x * state
    return graphc.function([x], result, updates={state: state + 1}), state


@pytest.mark.parametrize("nested", [False, True])
@pytest.mark.parametrize("name", ODD)
def test_inputs_are_given_by_any_name(tmp_path, name, nested):
    f, state = _with_state(name, nested)
    graphc.export({"f": f}, tmp_path / "f.gcx")
    loaded = graphc_runtime.load(tmp_path / "f.gcx").f
    x, taken = np.array([1.0, 2, 3]), lambda found: found["r"][0] if nested else found
    for function in (f, loaded):
        np.testing.assert_array_equal(taken(function(**{name: x})), x * [0, 1, 2])
        np.testing.assert_array_equal(taken(function(x)), x * [1, 2, 3])
        with pytest.raises(TypeError, match=r"two values|both by position|several|takes 1|shape|form"):
            function(x, **{name: x})
    np.testing.assert_array_equal(state.get_value(), [2, 3, 4])
    parameters = list(inspect.signature(loaded).parameters)
    usable = name.isidentifier() and name not in ("lambda", "None")
    assert (parameters[0] == (name if usable else "input_0") and name in repr(loaded)) or not usable


def test_inputs_of_one_name_are_given_by_position(tmp_path):
    x, y = pt.vector("x"), pt.vector("x")
    f = graphc.function([x, y], x - y)
    graphc.export({"f": f}, tmp_path / "f.gcx")
    for function in (f, graphc_runtime.load(tmp_path / "f.gcx").f):
        assert function([3.0], [1.0]) == [2]
        with pytest.raises(TypeError, match="several inputs named 'x'"):
            function([3.0], x=[1.0])


@pytest.mark.parametrize("name", [*ODD, "", "x" * 254, "x" * 255, "x" * 256])
def test_states_of_any_names_are_told_apart(tmp_path, name):
    states = [graphc.shared(np.full(2, i), name=name or None) for i in range(12)]
    graphc.export({"f": graphc.function([], sum(states))}, tmp_path / "f.gcx")
    module = graphc_runtime.load(tmp_path / "f.gcx")
    assert sorted(int(value[0]) for value in module.state.values()) == list(range(12))
    module.state.update(**dict(module.state))
    np.testing.assert_array_equal(module.f(), [66, 66])


@pytest.mark.parametrize(
    "name", ["f", "lambda", "int", "class", "state", "text", "__init__", "_content", "x" * 255, "items"]
)
def test_functions_of_any_identifier_are_items(tmp_path, name):
    x = pt.vector("x")
    graphc.export({name: graphc.function([x], 2 * x)}, tmp_path / "f.gcx")
    module = graphc_runtime.load(tmp_path / "f.gcx")
    assert list(module) == [name] and module[name]([2.0]) == [4]


@pytest.mark.parametrize("name", ["", "x" * 256, "a b", "é", "0", "a\n", None, 3])
def test_what_load_would_refuse_is_not_written(tmp_path, name):
    x = pt.vector("x")
    f = graphc.function([x], 2 * x)
    with pytest.raises(ValueError, match="ASCII identifier of at most 255"):
        graphc.export({name: f}, tmp_path / "f.gcx")
    assert not list(tmp_path.iterdir())


@pytest.mark.parametrize("name", ["int", "class", "restrict", "main", "NULL", "graphc_run", "exp", "sinf"])
def test_c_functions_have_names_that_c_has_not(tmp_path, name):
    x = pt.vector("x")
    f = graphc.function([x], 2 * x)
    with pytest.raises(ValueError, match=f"cannot be named '{name}'"):
        emit({name: f}, tmp_path / "f.h", "header")
    with pytest.raises(ValueError, match="'f' and 'f_shapes' would both define 'f_shapes'"):
        emit({"f": f, "f_shapes": f}, tmp_path / "f.h", "header")
    assert not list(tmp_path.iterdir())


@pytest.mark.skipif(shutil.which("cc") is None, reason="there is no C compiler (cc)")
@pytest.mark.parametrize("stem", ["graphc", "3-model", "é", "int"])
def test_headers_of_any_file_name_compile(tmp_path, stem):
    x, state = pt.vector("*/"), graphc.shared(np.ones(3), name="int")
    emit({"model": graphc.function([x], x * state)}, tmp_path / f"{stem}.h", "header")
    source = tmp_path / "main.c"
    # The one with this name in the folder of the source, then <graphc.h>, which it includes.
    source.write_text(
        f'#include "{stem}.h"\nint main(void) {{ return model_n_outputs - 1 + !model; }}\n', encoding="utf-8"
    )
    folder = f"{next(iter(graphc_runtime.__path__))}/include"
    subprocess.run(["cc", "-Wall", "-fsyntax-only", f"-I{folder}", str(source)], check=True)
