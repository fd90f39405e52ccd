# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Conversions read all that ops say of themselves: what a rule does not ask for cannot change its result."""

from __future__ import annotations

import importlib
import inspect
import pkgutil
import re
import types
from collections.abc import Iterator
from typing import Any

import numpy as np
import pymc.math
import pytensor
import pytensor.tensor as pt
import pytest
from pytensor.graph.op import Op
from pytensor.tensor.basic import alloc_diag

import graphc.interop.pytensor  # noqa: F401
from graphc.interop.pytensor.convert import _RULES, rule_of

# Names of properties that no rule needs, and why.
IGNORED = {
    **dict.fromkeys(
        "inplace inplace_pattern destructive overwrite_a overwrite_b overwrite_c overwrite_d overwrite_dl overwrite_du"
        " destroyhandler_tolerate_aliased destroy_map as_view view".split(),
        "what may be overwritten: graphc decides that itself",
    ),
    **dict.fromkeys(
        "lop_overrides grad_overrides rop_overrides pullback pushforward connection_pattern grad_preserves_dense structured sparse_grad"
        " no_zeros_in_input truncate_gradient multiplier kmap".split(),
        "of derivatives, which PyTensor has taken",
    ),
    **dict.fromkeys(
        "name nfunc_spec gufunc_spec openmp inline strict mode typeConstructor profile allow_gc n_inputs".split(),
        "how PyTensor itself would show or run it",
    ),
    **dict.fromkeys(
        "signature extended_signature ndim_supp ndims_params dtype upcast_discrete_output output_types_preference"
        " input_ndim o_type dims new_dims input_types output_types".split(),
        "the types of the node's variables say it",
    ),
    "kind": "sorts are stable",
    "driver": "which routine of LAPACK",
    "assumptions": "what rewrites may make use of",
    "idx_list": "indices_from_subtensor gives it together with the inputs",
    **dict.fromkeys(("rtol", "atol"), "of the comparison in a density, not of the value"),
    **dict.fromkeys(("x", "variables"), "inputs of the inner graph, which has them"),
    **dict.fromkeys(("objective", "equation", "equations"), "the first output of the inner graph"),
    "function": "of a function of graphc on its way back",
}


def _loaded() -> None:
    for info in pkgutil.iter_modules(pytensor.tensor.__path__, "pytensor.tensor."):
        importlib.import_module(info.name)
    for name in ("pytensor.sparse.linalg", "pytensor.sparse.math", "pytensor.gradient", "pytensor.ifelse"):
        importlib.import_module(name)


def _classes(base: type) -> Iterator[type]:
    for cls in base.__subclasses__():
        yield cls
        yield from _classes(cls)


def _sources(rule: Any, known: set[Any]) -> str:
    """The text of a rule, of the functions beside it that it is made of, and of attributes listed for it."""
    if isinstance(rule, list):
        return " ".join(rule)
    if not isinstance(rule, types.FunctionType) or rule in known:
        return ""
    known.add(rule)
    inner = [cell.cell_contents for cell in rule.__closure__ or ()]
    named = (rule.__globals__.get(name) for name in rule.__code__.co_names)
    inner += [f for f in named if getattr(f, "__module__", None) == rule.__module__]
    return inspect.getsource(rule) + "".join(_sources(f, known) for f in inner)


def _said() -> list[tuple[type, list[str]]]:
    _loaded()
    found = []
    for cls in sorted(set(_classes(Op)), key=lambda cls: (cls.__module__, cls.__name__)):
        if cls.__module__.startswith(("pytensor.", "pymc.")) and cls.__name__ in _RULES and rule_of(cls):
            skipped = {"self", "args", "kwargs", "inputs", "outputs"}
            said = [*(getattr(cls, "__props__", ()) or ()), *inspect.signature(cls.__init__).parameters]
            found.append((cls, [name for name in dict.fromkeys(said) if name not in skipped]))
    return found


@pytest.mark.parametrize(("cls", "said"), _said(), ids=lambda value: getattr(value, "__name__", ""))
def test_rules_read_every_property(cls: type, said: list[str]) -> None:
    text = _sources(rule_of(cls), set())
    assert [name for name in said if name not in IGNORED and not re.search(rf"\b{name}\b", text)] == []


@pytest.mark.parametrize("mode", ["GRAPHC", "GRAPHC_REWRITTEN"])
@pytest.mark.parametrize("axes", [(0, 1), (0, 2), (1, 2), (1, 3), (2, 3)])
def test_diagonals_in_all_axes(mode: str, axes: tuple[int, int]) -> None:
    x = pt.tensor("x", shape=(None,) * max(2, axes[1]))
    value = np.random.default_rng(0).normal(size=(2, 3, 4)[: x.ndim])
    offsets, inputs, outputs, weights = (0, 1, -2), [x], [], []
    for offset in offsets:
        placed = alloc_diag(x, offset=offset, axis1=axes[0], axis2=axes[1])
        inputs.append(pt.tensor("weights", shape=(None,) * placed.ndim))
        outputs += [placed, pytensor.grad((placed * inputs[-1]).sum(), x)]
        sizes = list(value.shape[:-1])
        for axis in axes:
            sizes.insert(axis, value.shape[-1] + abs(offset))
        weights.append(np.random.default_rng(1).normal(size=sizes))
    found = pytensor.function(inputs, outputs, mode=mode, on_unused_input="ignore")(value, *weights)
    for offset, weight, result, gradient in zip(offsets, weights, found[::2], found[1::2], strict=True):
        assert result.shape == weight.shape and np.count_nonzero(result) == value.size
        np.testing.assert_array_equal(np.diagonal(result, offset, *axes), value)
        np.testing.assert_array_equal(gradient, np.diagonal(weight, offset, *axes))


@pytest.mark.parametrize("mode", ["GRAPHC", "GRAPHC_REWRITTEN"])
def test_diagonal_matrices_of_a_batch(mode: str) -> None:
    x = pt.matrix("x")
    value = np.arange(6.0).reshape(2, 3) + 1
    found = pytensor.function([x], pymc.math.BatchedDiag()(x), mode=mode)(value)
    np.testing.assert_array_equal(found, [np.diag(row) for row in value])
