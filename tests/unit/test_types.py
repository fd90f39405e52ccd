# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""How often types give up; the numbers may only become smaller."""

from __future__ import annotations

import ast
import inspect
import re
import runpy
from pathlib import Path

import numpy as np
import pytest

import graphc
import graphc.tensor as pt
from graphc.immediate.namespace import LOOPS, names_of
from graphc.tensor import constructors

ROOT = Path(__file__).resolve().parents[2]
OPTIONS = ("name", "target", "lazy", "mode")
MOST = {r"\bAny\b": 2335, r"type: ignore": 38}


@pytest.mark.parametrize("pattern", MOST)
def test_types_give_up_ever_less(pattern):
    files = [
        path
        for root in ("compiler", "dialects", "runtime", "tools")
        for path in (ROOT / root).rglob("*.py*")
        if path.suffix in (".py", ".pyi")
    ]
    found = sum(len(re.findall(pattern, path.read_text(encoding="utf-8"))) for path in files)
    assert found <= MOST[pattern]
    # Room for what others are about to land; then the number above goes down.
    assert found > MOST[pattern] - 100, f"lower the number of {pattern} to {found}"


def test_users_see_types():
    """The program whose types mypy checks runs, and signatures say the same to `help` and to editors."""
    runpy.run_path(str(ROOT / "tests" / "typing" / "user_types.py"))
    assert '"user_types"' in (ROOT / "pyproject.toml").read_text(encoding="utf-8")
    assert list(inspect.signature(pt.clip).parameters) == ["x", "min", "max"]
    assert list(inspect.signature(pt.arctan2).parameters) == ["y", "x"]
    for function, first in (
        (graphc.grad, "cost"),
        (graphc.jacobian, "expression"),
        (pt.concatenate, "tensor_list"),
    ):
        assert next(iter(inspect.signature(function).parameters)) == first


def test_environments_say_which_functions_give_other_things_than_a_tensor():
    """`typed.pyi` has every function of `graphc.tensor` and its modules that does not give one tensor."""
    stub = ast.parse((ROOT / "compiler/graphc/immediate/typed.pyi").read_text(encoding="utf-8"))
    classes = {each.name: each for each in stub.body if isinstance(each, ast.ClassDef)}
    made = {*constructors.__all__, "constant", "get_underlying_scalar_constant_value", "register_transfer"}
    for name, module in (
        ("Typed", pt), ("Linalg", pt.linalg), ("Nn", pt.nn), ("Special", pt.special), ("", pt.fft)
    ):  # fmt: skip
        body = classes[name].body if name else []
        known = {x.target.id for x in body if isinstance(x, ast.AnnAssign)}
        known |= {x.name for x in body if isinstance(x, ast.FunctionDef)}
        names = [*LOOPS, *names_of(pt)] if module is pt else module.__all__
        for each in names:
            value = getattr(module, each, None)
            given = getattr(value, "__annotations__", {}).get("return", "TensorVariable")
            if (
                inspect.isfunction(value)
                and given != "TensorVariable"
                and (name, each) != ("Nn", "logsumexp")
            ):
                assert each in known | made | {"logsumexp"}, (name, each, given)
        assert all(hasattr(module, each) or each in (*LOOPS, *OPTIONS) for each in known), name


def test_operands_by_name():
    x = np.array([-1.0, 0.5, 2.0])
    np.testing.assert_array_equal(pt.clip(x, max=1.0, min=0.0).eval(), [0.0, 0.5, 1.0])
    np.testing.assert_array_equal(pt.switch(cond=x > 0, ift=x, iff=0.0).eval(), [0.0, 0.5, 2.0])
    np.testing.assert_array_equal(pt.sub(x, y=1.0).eval(), x - 1)
    with pytest.raises(TypeError, match="clip takes the operands x, min, max: "):
        pt.clip(x, low=0.0, max=1.0)
