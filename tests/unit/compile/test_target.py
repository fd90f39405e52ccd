# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""The seam between front and back: options are part of the key, settings become options, new targets."""

from __future__ import annotations

import dataclasses
import sys
from typing import ClassVar

import numpy as np
import pytest

import graphc
import graphc.tensor as pt
from graphc import backends
from graphc.backends import CompileOptions, Donation
from graphc.backends.interpret.target import InterpretTarget
from graphc.compile.fingerprint import fingerprint
from graphc.function import modes
from graphc.function.settings import compile_options
from graphc.graph.function_graph import FunctionGraph

OPTIONS = CompileOptions("fast_run")
CHANGED = {
    "mode": "fast_compile",
    "fastmath": "fast",
    "flush_denormals": True,
    "donations": (Donation(0, (0,)),),
    "workspace_limit_mb": 5,
    "poison_memory": True,
    "verify_memory": True,
    "arch": "sm_80",
    "profile": True,
    "memory_budget": 1000,
    "matmul_precision": "tf32",
}


def test_every_option_is_part_of_the_key():
    assert {field.name for field in dataclasses.fields(CompileOptions)} == CHANGED.keys()
    x = pt.dvector("x")
    graph = FunctionGraph([x], [pt.exp(x)])
    keys = {fingerprint(graph, dataclasses.replace(OPTIONS, **{k: v})) for k, v in CHANGED.items()}
    assert len(keys | {fingerprint(graph, OPTIONS)}) == len(CHANGED) + 1 and None not in keys
    kept = dataclasses.replace(OPTIONS, donations=(Donation(0, (0,), keeps_on_failure=True),))
    assert fingerprint(graph, kept) not in keys


@pytest.mark.parametrize(
    "setting", ["fastmath", "flush_denormals", "workspace_limit_mb", "poison_memory", "verify_memory"]
)
def test_settings_are_options(setting):
    with graphc.config.change_flags({setting: CHANGED[setting]}):
        assert getattr(compile_options("fast_run"), setting) == CHANGED[setting]


def test_a_subset_is_compiled_like_its_function():
    """Also where settings have changed meanwhile."""
    x = pt.dvector("x")
    with graphc.config.change_flags(fastmath="reassoc"):
        f = graphc.function([x], [x + 1.0, x * 2.0])
    f(np.ones(2), outputs_wanted=[1])
    (part,) = f.subsets.values()
    assert part.report.options.fastmath == f.report.options.fastmath == "reassoc"


class Recorded(InterpretTarget):
    """Another target, in the modules of nobody."""

    name = "recorded"
    compiled: ClassVar[list[CompileOptions]] = []

    def compile(self, text, signature, options, log):
        self.compiled.append(options)
        return super().compile(text, signature, options, log)


def test_a_new_target_is_a_class_a_row_and_a_name(cache_dir, monkeypatch):
    """Two files outside of its own: the registry and the list of modes."""
    monkeypatch.setitem(sys.modules, "somewhere", sys.modules[__name__])
    monkeypatch.setitem(backends.TARGETS, "recorded", "somewhere:Recorded")
    monkeypatch.setattr(modes, "MODES", (*modes.MODES, "recorded"))
    x, total = pt.dvector("x"), graphc.shared(1.0, name="total")
    f = graphc.function([x], x * total, updates={total: total + x.sum()}, mode="recorded", donate=[x])
    np.testing.assert_array_equal(f([1.0, 2.0]), [1.0, 2.0])
    np.testing.assert_array_equal(f(np.ones(2)), [4.0, 4.0])
    assert total.get_value() == 6 and [options.mode for options in Recorded.compiled] == ["recorded"]
    assert Recorded.compiled[0].donations[0] == Donation(0, (0,)) and f.report.cache == ["miss"]
    again = graphc.function([x], x * total, updates={total: total + x.sum()}, mode="recorded", donate=[x])
    assert again.report.cache == ["hit"] and len(Recorded.compiled) == 1
