# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""graphc as a backend of PyTensor: its linker and its modes.

PyTensor's maker compiles functions in these modes, but for graphs that the disk cache knows: compiled
functions are in it under the key of PyTensor's graph before its rewrites.

A process that finds one needs neither PyTensor's rewrites nor graphc's graph; both are made only if something
asks for them: errors, which name the user's line, and what looks into a function.
"""

from __future__ import annotations

import io
import struct
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from functools import cached_property
from operator import itemgetter
from typing import TYPE_CHECKING, Any

import numpy as np
import pytensor
from pytensor.compile import FunctionMaker
from pytensor.compile.mode import Mode, predefined_linkers, register_linker, register_mode
from pytensor.graph.fg import FunctionGraph
from pytensor.graph.rewriting.db import RewriteDatabaseQuery
from pytensor.link.basic import JITLinker, Linker
from pytensor.scalar.basic import ScalarType

import graphc
from graphc.config import config
from graphc.function.report import CompileReport
from graphc.function.settings import compile_options
from graphc.function.types import Function
from graphc.graph.basic import Constant, Variable
from graphc.interop.pytensor.calls import make_quick
from graphc.interop.pytensor.graphs import converted
from graphc.interop.pytensor.identity import key_of
from graphc.interop.pytensor.types import is_cell, is_dense, is_generator
from graphc_runtime.cache import disk_cache
from graphc_runtime.callable_type import NativeCallable, enable, install
from graphc_runtime.collecting import new_objects_only
from graphc_runtime.errors import ArtifactError, LoadError, Origin
from graphc_runtime.generators import generator_of
from graphc_runtime.machine_code import MachineCode

if TYPE_CHECKING:
    from pytensor.graph.type import Type

    from graphc.interop.pytensor.convert import Checks
    from graphc_runtime.thunk import Register


# Data beyond this are not worth a copy on the disk.
_MAX_BYTES = 32 << 20


@enable
class StoredFunction(NativeCallable):
    """A compiled function from the disk. It is called as a `graphc.function.types.Function` is, and has the
    attributes of one, for which the graph is rewritten, converted and compiled.

    Args:
        executable: its code.
        cells: large constants of the graph, and places of shared values, which `bind` fills in.
        report: what stands for the report of its compilation.
        make: makes the function from the graph.
    """

    __slots__ = ("__dict__", "__weakref__", "_native_self")

    def __init__(
        self,
        executable: MachineCode,
        cells: list[np.ndarray | int],
        report: CompileReport,
        make: Callable[[], Function],
    ) -> None:
        self.executable = executable
        self.report = report
        self._make = make
        self._given = cells

    def bind(self, storages: Sequence[Register]) -> StoredFunction:
        """The function with the places of the values of the graph's inputs."""
        self._cells = cells = [storages[x] if isinstance(x, int) else [x] for x in self._given]
        self._slow = self.executable.bind(cells, where=self._where)
        address = self.executable.vectorcall_address()
        if address is not None:
            install(self, address, self.executable.native_self(cells, where=self._where))
        return self

    def __call__(self, *args: Any, **keywords: Any) -> Any:
        return self._slow(*args, **keywords)

    def machine_code(self) -> tuple[MachineCode, list[list[Any]]]:
        """As that of `Function`."""
        return self.executable, self._cells

    @cached_property
    def made(self) -> Function:
        """The function with its graph."""
        return self._make()

    def _where(self, node: str) -> Origin:
        return self.made.executor.where(node)

    def __getattr__(self, name: str) -> Any:
        if name.startswith("__"):
            raise AttributeError(name)
        return getattr(self.made, name)

    def __reduce__(self) -> tuple[object, ...]:
        return self.made.__reduce__()


def store(key: str, function: Function, storages: Sequence[Register]) -> None:
    """Keeps a function under a key, if its calls are machine code alone.

    Args:
        key: of `graphc.interop.pytensor.identity.key_of`.
        function: of `graphc.function`, with outputs as a list.
        storages: places of the values of the graph's inputs, of which some are cells of the function.
    """
    found = function.machine_code()
    if not config.cache_dir or found is None or not function.report.fast_call:
        return
    executable, cells = found
    numbers = {id(storage): number for number, storage in enumerate(storages)}
    places = [numbers.get(id(cell), -1) for cell in cells]
    constants = [v.data for v in function.cell_variables if isinstance(v, Constant)]
    if len(constants) != places.count(-1) or sum(constant.nbytes for constant in constants) > _MAX_BYTES:
        return
    file = io.BytesIO()
    code = executable.artifact.to_bytes()
    file.write(struct.pack("<QQ", len(code), len(constants)))
    file.write(code)
    for array in (np.array(places, np.int64), *constants):
        np.lib.format.write_array(file, array, allow_pickle=False)
    disk_cache(config.cache_dir, config.cache_size_mb).put(key, file.getvalue())


def load(key: str, name: str | None, make: Callable[[], Function]) -> StoredFunction | None:
    """The function under a key, None if there is none or if it does not fit this machine.

    Args:
        key: of `graphc.interop.pytensor.identity.key_of`.
        name: of the function, for messages.
        make: makes the function from the graph.
    """
    disk = disk_cache(config.cache_dir, config.cache_size_mb)
    data = disk.get(key)
    if data is None:
        return None
    try:
        size, count = struct.unpack_from("<QQ", data)
        executable = MachineCode.from_bytes(data[16 : 16 + size])
        file = io.BytesIO(data[16 + size :])
        places, *constants = (np.lib.format.read_array(file, allow_pickle=False) for _ in range(count + 1))
    except (ArtifactError, LoadError, ValueError, struct.error):
        disk.discard(key)
        return None
    if name is not None:
        executable.manifest = replace(
            executable.manifest, signature=replace(executable.manifest.signature, name=name)
        )
    report = CompileReport(
        name=name or "function",
        mode=config.mode,
        options=compile_options(config.mode),
        segments=1,
        cache=["hit"],
        fast_call=True,
    )
    kept = iter(constants)
    return StoredFunction(executable, [next(kept) if x < 0 else x for x in places.tolist()], report, make)


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
    """Facts that the linker finds of a graph that the disk cache may know; they hang on the graph.

    Args:
        key: of the graph as it was before its rewrites.
        rewrite: applies the rewrites of the mode, once; None where they have been applied.
        function: from the disk.
    """

    def __init__(self, key: str, rewrite: Callable[[], None] | None, function: StoredFunction | None) -> None:
        self.key, self.rewrite, self.function = key, rewrite, function


def known(fgraph: FunctionGraph) -> Known | None:
    """Findings of the maker about a graph."""
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
            copy.update_mapping, copy._graphc_checks = fgraph.update_mapping, fgraph._graphc_checks
            FunctionMaker.prepare_fgraph(inputs, outputs, additional_outputs, copy, mode, profile)
            return mode.linker.fgraph_convert(copy)

        fgraph._graphc_checks = checks_of(mode)
        key = _key(inputs, [*outputs, *additional_outputs], fgraph, mode) if config.cache_dir else None
        stored = None if key is None else load(key, getattr(fgraph, "name", None), make)
        if key is not None:
            fgraph._graphc = Known(key, rewrite if stored is not None else None, stored)
        if stored is None:
            rewrite()


def checks_of(mode: Mode) -> Checks:
    """Treatment of checks of parameters that PyMC asked a mode for, by the names of its own rewrites.

    They stand among PyTensor's canonical forms, which ``"GRAPHC"`` does not apply: the conversion does what
    they do.
    """
    asked = getattr(mode.provided_optimizer, "include", None) or ()
    if "local_remove_check_parameter" in asked:
        return "remove"
    return "switch" if "local_check_parameter_to_ninf_switch" in asked else "raise"


def _key(inputs: Sequence[Any], outputs: Sequence[Any], fgraph: FunctionGraph, mode: Mode) -> str | None:
    """The key of a graph of dense arrays, of which no result is an argument itself."""
    if not all(is_dense(v.type) for v in (*fgraph.inputs, *fgraph.outputs)):
        return None
    if any(v.owner is None for v in fgraph.outputs) or config.nan_guard != "off":
        return None
    parts = (
        [(bool(given.borrow), bool(given.mutable)) for given in inputs],
        [bool(result.borrow) for result in outputs],
        [is_cell(v) for v in fgraph.inputs],
        sorted((fgraph.update_mapping or {}).items()),
        type(mode.linker).__name__,
    )
    return key_of(fgraph, mode, parts)


class GraphcLinker(JITLinker):
    """Compiles whole graphs of PyTensor with graphc.

    Shared arrays are cells of the compiled function: both libraries see one value.

    Attributes:
        finds_shared: whether they are; else they are arguments, as all other shared values.
    """

    finds_shared = True

    required_rewrites = ("minimum_compile",)
    # What graphc does itself, and better for whole graphs: fusion, work in place, products, memory of loops.
    incompatible_rewrites = (
        "cxx_only", "BlasOpt", "fusion", "inplace", "local_careduce_fusion", "scan_save_mem",
        "scan_save_mem_prealloc", "scan_save_mem_no_prealloc", "scan_make_inplace",
        "reuse_lu_decomposition_multiple_solves", "scan_split_non_sequence_lu_decomposition_solve",
    )  # fmt: skip

    def fgraph_convert(
        self, fgraph: FunctionGraph, storage_map: Mapping[object, Register] | None = None, **kwargs: Any
    ) -> Callable[..., Any]:
        """A function from the values of the graph's inputs, less shared arrays, to those of its outputs."""
        found = known(fgraph)
        places = {v: v.container.storage for v in fgraph.inputs if is_cell(v)}
        storages = [(storage_map or places).get(v, []) for v in fgraph.inputs]
        if found is not None and found.function is not None:
            return found.function.bind(storages)
        checks: Checks = getattr(fgraph, "_graphc_checks", "raise")
        cells = {v: place for v, place in zip(fgraph.inputs, storages, strict=True) if self._is_cell(v)}
        given = [v for v in fgraph.inputs if v not in cells]
        inputs, results = converted(given, fgraph.outputs, checks, cells)
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
            store(found.key, compiled, storages)
        return compiled

    def create_thunk_inputs(self, storage_map: dict[object, list[object]]) -> list[list[object]]:
        """The places of the values that a call is given."""
        return [storage_map[variable] for variable in self.fgraph.inputs if not self._is_cell(variable)]

    def _is_cell(self, variable: object) -> bool:
        return self.finds_shared and is_cell(variable)

    def jit_compile(self, fn: Callable[..., object]) -> Callable[..., object]:
        """Nothing is left to do."""
        return fn


def _value(kind: Type, result: object, outputs: list[Variable]) -> Callable[[list[Any]], object]:
    """A function that makes PyTensor's value of an output from graphc's results.

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
