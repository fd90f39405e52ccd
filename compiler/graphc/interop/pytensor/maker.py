# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""What compiles functions in graphc's modes: PyTensor's maker, but for graphs that the disk cache knows."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any

from pytensor.compile import FunctionMaker
from pytensor.compile.mode import Mode
from pytensor.graph.fg import FunctionGraph
from pytensor.link.basic import Linker

from graphc.config import config
from graphc.function.types import Function
from graphc.interop.pytensor.calls import make_quick
from graphc.interop.pytensor.identity import key_of
from graphc.interop.pytensor.stored import StoredFunction, load
from graphc.interop.pytensor.types import is_dense
from graphc_runtime.collecting import new_objects_only

if TYPE_CHECKING:
    import numpy as np


def compile_with_cache(linker: type[Linker]) -> None:
    """Modes of a linker look graphs up in the disk cache before they are rewritten.

    PyMC makes a plain mode of its own around the linker of the mode that it is given, so that a subclass of
    `Mode` would be lost: which class compiles functions is said for all modes.
    """
    theirs = Mode.__dict__.get("function_maker")  # absent before PyTensor 3

    def function_maker(mode: Mode) -> Any:
        if isinstance(mode.linker, linker):
            return CachingMaker
        return FunctionMaker if theirs is None else theirs.__get__(mode)

    Mode.function_maker = property(function_maker)


class Known:
    """What the linker finds of a graph that the disk cache may know; it hangs on the graph.

    Args:
        key: of the graph as it was before its rewrites.
        rewrite: applies the rewrites of the mode, once; None where they have been applied.
        function: from the disk.
    """

    def __init__(self, key: str, rewrite: Callable[[], None] | None, function: StoredFunction | None) -> None:
        self.key, self.rewrite, self.function = key, rewrite, function


def known(fgraph: FunctionGraph) -> Known | None:
    """What the maker has found out about a graph."""
    found: Known | None = getattr(fgraph, "_graphc", None)
    return found


class CachingMaker(FunctionMaker):
    """Looks a graph up in the disk cache before it is rewritten.

    A graph that was found there is rewritten when somebody looks at it (``f.maker.fgraph``), so that
    functions look the same wherever their code came from.
    """

    @property
    def fgraph(self) -> FunctionGraph:
        """The graph as it was compiled."""
        graph = self.__dict__["fgraph"]
        if self.__dict__.get("_settled"):
            self._rewrite(graph)
        return graph

    @fgraph.setter
    def fgraph(self, graph: FunctionGraph) -> None:
        self.__dict__["fgraph"] = graph

    def __init__(self, *args: object, **keywords: object) -> None:
        with new_objects_only():
            super().__init__(*args, **keywords)

    def create(self, *args: Any, **keywords: Any) -> Any:
        """As PyTensor's."""
        self._settled = False
        with new_objects_only():
            made = super().create(*args, **keywords)
        self._storage_map = made.vm.storage_map
        make_quick(made, bool(self.__dict__["fgraph"].update_mapping))
        self._settled = True
        return made

    def _rewrite(self, graph: FunctionGraph) -> None:
        found = known(graph)
        if found is None or found.rewrite is None:
            return
        storage = self._storage_map
        results = [storage[v] for v in graph.outputs]
        rewrite, found.rewrite = found.rewrite, None
        rewrite()
        # Who copies the function finds values by the graph's variables.
        kept = {v: storage[v] for v in graph.inputs}
        storage.clear()
        storage.update(kept)
        storage.update(zip(graph.outputs, results, strict=True))

    def __getstate__(self) -> dict[str, Any]:
        graph = self.fgraph
        state = {name: value for name, value in self.__dict__.items() if name != "_storage_map"}
        if known(graph) is not None:
            del graph._graphc
        return {**state, "_settled": False}

    @staticmethod
    def prepare_fgraph(
        inputs: Sequence[np.ndarray],
        outputs: Sequence[np.ndarray],
        additional_outputs: Sequence[np.ndarray],
        fgraph: FunctionGraph,
        mode: Mode,
        profile: object,
    ) -> None:
        """As PyTensor's, but a graph that the disk cache knows stays as it is for now."""

        def rewrite() -> None:
            FunctionMaker.prepare_fgraph(inputs, outputs, additional_outputs, fgraph, mode, profile)

        def make() -> Function:
            copy = FunctionGraph(fgraph.inputs, fgraph.outputs, clone=True)
            copy.update_mapping = fgraph.update_mapping
            FunctionMaker.prepare_fgraph(inputs, outputs, additional_outputs, copy, mode, profile)
            return mode.linker.fgraph_convert(copy)

        key = _key(inputs, [*outputs, *additional_outputs], fgraph, mode) if config.cache_dir else None
        stored = None if key is None else load(key, getattr(fgraph, "name", None), make)
        if key is not None:
            fgraph._graphc = Known(key, rewrite if stored is not None else None, stored)
        if stored is None:
            rewrite()


def _key(inputs: Sequence[Any], outputs: Sequence[Any], fgraph: FunctionGraph, mode: Mode) -> str | None:
    """The key of a graph of dense arrays, of which no result is an argument itself."""
    if not all(is_dense(v.type) for v in (*fgraph.inputs, *fgraph.outputs)):
        return None
    if any(v.owner is None for v in fgraph.outputs) or config.nan_guard != "off":
        return None
    parts = (
        [(bool(given.borrow), bool(given.mutable)) for given in inputs],
        [bool(result.borrow) for result in outputs],
        sorted((fgraph.update_mapping or {}).items()),
        type(mode.linker).__name__,
    )
    return key_of(fgraph, mode, parts)
