# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""The parts of a compiled `Function` that an artifact has: its kernel, its arguments by name, and its
values.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import field, replace
from typing import TYPE_CHECKING, Any

import numpy as np

from graphc.backends import CompileLog, CompileOptions
from graphc.backends.cpu.generate import generate, wrap
from graphc.backends.cpu.lower import lower
from graphc.backends.cuda.code import compile_for_device
from graphc.config import config
from graphc.emit import emit_module
from graphc.function.compiled import Compiled
from graphc.function.settings import resources
from graphc.function.types import Function
from graphc.graph.basic import Constant
from graphc.graph.shared import SharedVariable
from graphc_dialects._mlir import ir
from graphc_dialects.dialect import new_context
from graphc_dialects.foreign import excess
from graphc_runtime.artifact import Artifact
from graphc_runtime.cuda.executable import DeviceExecutable
from graphc_runtime.machine_code import MachineCode
from graphc_runtime.manifest import ArraySpec, Manifest, Signature
from graphc_runtime.marshal import on_host
from graphc_runtime.package import MAX_NAME
from graphc_runtime.record import record

if TYPE_CHECKING:
    from graphc.backends.cpu.generate import Wrapped
    from graphc.backends.cpu.lower import Lowered
    from graphc.backends.cpu.object import Machine


@record(frozen=True)
class Source:
    """A function to be exported.

    Attributes:
        name: of the function in the artifact.
        text: the graph as MLIR.
        signature: of calls, in which inputs have names; without donations, which are the compiler's choice.
        options: how it is compiled.
        cells: for each cell of the signature its variable, a `SharedVariable` or a `Constant`.
        outputs: names of the outputs, empty where they have none.
        form: of the results, as `graphc_runtime.forms` has it.
        defaults: values of inputs that calls may leave out, by position.
    """

    name: str
    text: str
    signature: Signature
    options: CompileOptions
    cells: tuple[Any, ...] = ()
    outputs: tuple[str, ...] = ()
    form: Any = None
    defaults: Mapping[int, np.ndarray] = field(default_factory=dict)

    def value(self, number: int) -> np.ndarray:
        """The value of a cell now."""
        variable = self.cells[number]
        return _plain(variable.data if isinstance(variable, Constant) else on_host(variable.container[0]))

    def lowered(self, *, donate: bool = True) -> Lowered:
        """The kernel as LLVM IR, which is the same for all targets.

        Args:
            donate: results may be computed in the memory of arguments.
        """
        return lower(self.text, self.options if donate else replace(self.options, donations=()))

    def compiled(self, lowered: Lowered, target: Machine) -> Artifact:
        """Machine code for a target, with entries for Python."""
        given = (lowered, self.signature, self.options, resources(), CompileLog())
        return generate(*given, machine=target, tiers=("struct", "buffer"))

    def for_device(self, target: Machine, sites: int = 0) -> Artifact:
        """Kernels and schedule for a device.

        Args:
            target: its architecture is the target's `cpu`.
            sites: number of the check sites that others have, before those of the schedule.

        Raises:
            CompileError: something in it has no kernel.
        """
        options = replace(self.options, arch=target.cpu, matmul_precision=config.matmul_precision)
        made = compile_for_device(self.text, options, resources(), CompileLog(), sites)
        return Artifact(Manifest(self.signature, made.sites, target=target.to_dict()), made.code.to_bytes())

    def wrapped(self, lowered: Lowered, target: Machine) -> Wrapped:
        """The kernel's text for a target, without a way to call it."""
        return wrap(lowered, self.signature, self.options, target)


def sources(functions: Function | Mapping[str, Function]) -> list[Source]:
    """The functions of an export.

    Raises:
        TypeError: one of them is no compiled function, or needs Python.
        ValueError: a name is no identifier.
    """
    if not isinstance(functions, Mapping):
        functions = {getattr(functions, "name", None) or "function": functions}
    if not functions:
        raise ValueError("export needs at least one function")
    return [_source(name, function) for name, function in functions.items()]


def _source(name: str, function: Function) -> Source:
    if not (isinstance(name, str) and name.isidentifier() and name.isascii() and len(name) <= MAX_NAME):
        raise ValueError(
            f"the name of an exported function must be an ASCII identifier of at most {MAX_NAME} characters, "
            f"got {name!r:.300}"
        )
    executable = getattr(function, "executor", None)
    reason = _obstacle(function, executable)
    if reason is not None:
        raise TypeError(f"{name} cannot be exported: {reason}")
    assert isinstance(executable, Compiled)
    cells = list(function.fgraph.inputs[len(function.inputs) :])
    for target in function.signature.targets:
        if not any(_is_same(target, cell) for cell in cells):
            cells.append(target)
    signature = executable.executable.manifest.signature
    names = [item.name or "" for item in function.inputs]
    inputs = tuple(replace(spec, name=label) for spec, label in zip(signature.inputs, names, strict=True))
    options = executable.options
    if isinstance(executable.executable, DeviceExecutable):
        options = replace(options, mode="fast_run")  # for targets that are CPUs
    plain = replace(signature, inputs=inputs, donated=(), spares=(), name=name)
    defaults = {i: _plain(x.default[0]) for i, x in enumerate(function.inputs) if x.default is not None}
    form = function.signature.form.to_data()
    keys = _keys(form)
    return Source(
        name,
        emit_module(executable.fgraph).text,
        plain,
        options,
        tuple(cells),
        tuple(keys.get(i) or variable.name or "" for i, variable in enumerate(function.outputs)),
        form,
        defaults,
    )


def _keys(form: Any, path: str = "") -> dict[int, str]:
    """Keys of results in the dicts of a form: by number of the output, the keys on the way to it."""
    if isinstance(form, int):
        return {form: path} if path else {}
    kind, *parts = form or ["list"]
    found: dict[int, str] = {}
    for part in parts:
        key, inner = part if kind == "dict" else ("", part)
        found |= _keys(inner, ".".join(filter(None, (path, str(key)))))
    return found


def _plain(value: np.ndarray) -> np.ndarray:
    """A C-contiguous array; `ascontiguousarray` makes vectors of scalars."""
    return np.ascontiguousarray(value).reshape(np.shape(value))


def _is_same(target: Any, cell: Any) -> bool:
    """True if they are one shared variable, perhaps by another name."""
    return isinstance(cell, SharedVariable) and cell.container is target.container


def _obstacle(function: object, executable: Compiled | None) -> str | None:
    """Reason for which a function has no kernel of its own; None if it has one."""
    if not isinstance(function, Function):
        return f"it must be a compiled graphc.function, got {type(function).__name__}"
    if function.report.fallbacks:
        return "it runs partly in Python: " + "; ".join(
            f"{f.op} ({f.reason})" for f in function.report.fallbacks
        )
    if not all(isinstance(target, SharedVariable) for target in function.signature.targets):
        return "an input has an update; use a shared variable"
    known = MachineCode | DeviceExecutable
    if not isinstance(executable, Compiled) or not isinstance(executable.executable, known):
        return f"it is not compiled as a whole (mode {function.report.mode!r})"
    return None


_ELEMENTS = {"f16": "float16", "f32": "float32", "f64": "float64", "i1": "bool"}
_ELEMENTS |= {"complex<f32>": "complex64", "complex<f64>": "complex128"}
_ELEMENTS |= {f"i{bits}": f"int{bits}" for bits in (8, 16, 32, 64)}
_ELEMENTS |= {f"ui{bits}": f"uint{bits}" for bits in (8, 16, 32, 64)}


def mlir_source(name: str, text: str, mode: str) -> Source:
    """A function from a module of the graph stage.

    Args:
        name: of the function in the artifact.
        text: a module with `@main` of ranked tensors.
        mode: a key of `graphc.backends.cpu.pipeline.PIPELINES`.

    Raises:
        ValueError: the text is not such a module.
    """
    if problem := excess(text):
        raise ValueError(f"not a module of graphc's graph stage: {problem}")
    with new_context(), ir.Location.unknown():
        try:
            module = ir.Module.parse(text)
        except ir.MLIRError as error:
            raise ValueError(f"not a module of graphc's graph stage: {error}") from None
        found = [op for op in module.body.operations if _symbol(op) == "main"]
        if not found:
            raise ValueError("the module has no function @main")
        kind = ir.FunctionType(ir.TypeAttr(found[0].attributes["function_type"]).value)
        inputs, outputs = (tuple(map(_array_of, types)) for types in (kind.inputs, kind.results))
    named = tuple(replace(spec, name=f"input_{i}") for i, spec in enumerate(inputs))
    returns = "single" if len(outputs) == 1 else "list"
    signature = Signature(named, outputs=outputs, returns=returns, name=name)
    form = 0 if returns == "single" else ["list", *range(len(outputs))]
    options = CompileOptions(mode, fastmath="off")
    return Source(name, text, signature, options, (), ("",) * len(outputs), form)


def _symbol(op: ir.Operation) -> str:
    attributes = op.operation.attributes
    return str(attributes["sym_name"]).strip('"') if "sym_name" in attributes else ""


def _array_of(kind: ir.Type) -> ArraySpec:
    if not isinstance(kind, ir.RankedTensorType) or str(kind.element_type) not in _ELEMENTS:
        raise ValueError(f"@main takes and gives tensors of numbers, found {kind}")
    shape = tuple(None if kind.is_dynamic_dim(i) else kind.get_dim_size(i) for i in range(kind.rank))
    return ArraySpec(_ELEMENTS[str(kind.element_type)], shape)
