# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""graphc as a backend of PyTensor: its linker and its modes."""

from __future__ import annotations

from collections.abc import Callable
from operator import itemgetter
from typing import TYPE_CHECKING, Any

import numpy as np
import pytensor
from pytensor.compile.mode import Mode, predefined_linkers, register_linker, register_mode
from pytensor.graph.fg import FunctionGraph
from pytensor.graph.rewriting.db import RewriteDatabaseQuery
from pytensor.link.basic import JITLinker
from pytensor.scalar.basic import ScalarType

import graphc
from graphc.function.types import Function
from graphc.graph.basic import Variable
from graphc.interop.pytensor.graphs import converted
from graphc.interop.pytensor.maker import compile_with_cache, known
from graphc.interop.pytensor.stored import store
from graphc.interop.pytensor.types import is_generator
from graphc_runtime.generators import generator_of

if TYPE_CHECKING:
    from pytensor.graph.type import Type


class GraphcLinker(JITLinker):
    """Compiles whole graphs of PyTensor with graphc.

    Shared variables are arguments of the compiled function: both libraries see one value.
    """

    required_rewrites = ("minimum_compile",)
    # What graphc does itself, and better for whole graphs: fusion, work in place, products, memory of loops.
    incompatible_rewrites = (
        "cxx_only",
        "BlasOpt",
        "fusion",
        "inplace",
        "local_careduce_fusion",
        "scan_save_mem",
        "scan_save_mem_prealloc",
        "scan_save_mem_no_prealloc",
        "scan_make_inplace",
        "reuse_lu_decomposition_multiple_solves",
        "scan_split_non_sequence_lu_decomposition_solve",
    )

    def fgraph_convert(self, fgraph: FunctionGraph, **kwargs: Any) -> Callable[..., Any]:
        """A function from the values of the graph's inputs to those of its outputs."""
        found = known(fgraph)
        if found is not None and found.function is not None:
            return found.function
        inputs, results = converted(fgraph.inputs, fgraph.outputs)
        outputs: list[Variable] = []
        made = [
            _value(variable.type, result, outputs)
            for variable, result in zip(fgraph.outputs, results, strict=True)
        ]
        compiled = graphc.function(
            inputs, outputs, name=getattr(fgraph, "name", None), on_unused_input="ignore", trust_input=True
        )
        if not all(isinstance(get, itemgetter) for get in made):
            return _remade(compiled, made)
        if found is not None:
            store(found.key, compiled)
        return compiled

    def create_thunk_inputs(self, storage_map: dict[object, list[object]]) -> list[list[object]]:
        """The cells that hold the values of inputs and shared variables."""
        return [storage_map[variable] for variable in self.fgraph.inputs]

    def jit_compile(self, fn: Callable[..., object]) -> Callable[..., object]:
        """Nothing is left to do."""
        return fn


def _value(kind: Type, result: object, outputs: list[Variable]) -> Callable[[list[Any]], object]:
    """What gets PyTensor's value of an output from graphc's results.

    PyTensor's generators are objects of NumPy, where graphc's results are their states; its scalars are
    NumPy's, where graphc's are arrays; a slice is made of what is computed in it.

    Args:
        kind: PyTensor's type.
        result: what stands for the output.
        outputs: graphc's outputs, which gain what is computed.
    """
    if isinstance(result, slice):
        ends = [_value(ScalarType("int64"), end, outputs) for end in (result.start, result.stop, result.step)]
        return lambda values: slice(*(end(values) for end in ends))
    if not isinstance(result, Variable):
        return lambda values: result
    i = len(outputs)
    outputs.append(result)
    if is_generator(kind):
        return lambda values: generator_of(values[i]) if isinstance(values[i], np.ndarray) else values[i]
    return (lambda values: values[i][()]) if isinstance(kind, ScalarType) else itemgetter(i)


def _remade(compiled: Function, made: list[Callable[[list[Any]], object]]) -> Callable[..., list[object]]:
    def call(*values: object) -> list[object]:
        results = compiled(*values)
        return [get(results) for get in made]

    call.report = compiled.report  # type: ignore[attr-defined]
    return call


LINKER = GraphcLinker()
_EXCLUDED = list(GraphcLinker.incompatible_rewrites)
# The smallest set that keeps numbers as stable as PyTensor's: what graphs need to be compiled at all. Sums,
# products, quotients and masks get their stable forms when they are converted.
_SMALLEST = Mode(LINKER, RewriteDatabaseQuery(include=["minimum_compile"], exclude=_EXCLUDED))
# Without "ShapeOpt" some models' rewrites go round in circles for minutes; without "specialize" log densities
# overflow where PyTensor's do not, since some of its stable forms are registered there only.
_REWRITES = ["minimum_compile", "ShapeOpt", "UnShapeOpt", "canonicalize", "stabilize", "specialize"]
MODES = {
    "GRAPHC": _SMALLEST,
    "GRAPHC_RAW": _SMALLEST,
    "GRAPHC_REWRITTEN": Mode(LINKER, RewriteDatabaseQuery(include=_REWRITES, exclude=_EXCLUDED)),
}


def register() -> None:
    """Makes the modes known to PyTensor by their names; a second call does nothing."""
    if "graphc" in predefined_linkers:
        return
    register_linker("graphc", LINKER)
    compile_with_cache(GraphcLinker)
    for name, mode in MODES.items():
        register_mode(name, mode)
    # The setting takes names from a list of PyTensor's own.
    setting = pytensor.config._config_var_dict["mode"]
    known = setting._apply
    setting._apply = lambda value: value if isinstance(value, str) and value in MODES else known(value)
