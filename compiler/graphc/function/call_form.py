# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""The form of calls of a function: to its user, and to the code that is compiled for them."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from graphc.function.io import In, InputForm, OutputForm
from graphc.graph.basic import Constant, Variable
from graphc.graph.function_graph import FunctionGraph
from graphc.graph.shared import SharedVariable
from graphc.graph.tensor.type import TensorType
from graphc.ir.donations import Donation
from graphc_runtime import manifest
from graphc_runtime.manifest import ArraySpec, Update
from graphc_runtime.record import record

Cell = list[Any]


@record()
class Signature:
    """The form of a function's calls, to its user.

    Attributes:
        inputs: the inputs in order.
        form: the form in which results are returned.
        targets: what the outputs after the results replace: shared variables, or the default cells of inputs.
        name: the user's name for the function.
        trust_input: whether inputs are taken as they are.
        allow_downcast: what inputs are filtered with where they do not say so themselves.
        arguments: the form of calls whose arguments are containers; None where each argument is an input.
    """

    inputs: list[In]
    form: OutputForm
    targets: list[Any]
    name: str | None
    trust_input: bool
    allow_downcast: bool | None
    arguments: InputForm | None = None

    @property
    def donated(self) -> list[int]:
        """Positions of the inputs that calls may overwrite."""
        return [i for i, item in enumerate(self.inputs) if item.mutable]


@record(frozen=True)
class KernelForm:
    """The form of calls of compiled code.

    Attributes:
        signature: arguments and results.
        donations: arguments that it may overwrite.
        takes_calls: whether these are the calls of a function, and not those of a part of one.
    """

    signature: manifest.Signature
    donations: tuple[Donation, ...] = ()
    takes_calls: bool = True


def container(target: Any) -> Cell:
    """The cell that holds a value: of a shared variable, of a constant, or an input's default itself."""
    if isinstance(target, SharedVariable):
        return target.container
    return [target.data] if isinstance(target, Constant) else target


def with_targets(cells: Sequence[Cell], targets: Sequence[Cell]) -> tuple[list[Cell], list[int]]:
    """Cells that calls read, then those that they only replace; and where each target is among them."""
    found = list(cells)
    updates = []
    for target in targets:
        index = next((i for i, cell in enumerate(found) if cell is target), len(found))
        if index == len(found):
            found.append(target)
        updates.append(index)
    return found, updates


def kernel_form(signature: Signature, fgraph: FunctionGraph, name: str) -> KernelForm | None:
    """The form in which calls can go straight to compiled code; None if a part of the signature has no such
    form.

    Args:
        signature: of the function.
        fgraph: inputs, then variables whose values the function keeps, to results, then updates.
        name: of the function.
    """
    if any(not isinstance(t, SharedVariable) for t in signature.targets):
        return None
    if not all(isinstance(v.type, TensorType) for v in (*fgraph.inputs, *fgraph.outputs)):
        return None
    count, n_results = len(signature.inputs), signature.form.count
    kept = [container(v) for v in fgraph.inputs[count:]]
    _, updates = with_targets(kept, [container(target) for target in signature.targets])
    inputs, outputs = [_spec(v) for v in fgraph.inputs], [_spec(v) for v in fgraph.outputs]
    only_replaced = [outputs[n_results + i] for i, cell in enumerate(updates) if cell >= len(kept)]
    found = manifest.Signature(
        tuple(inputs[:count]),
        (*inputs[count:], *only_replaced),
        tuple(outputs[:n_results]),
        tuple(Update(cell, outputs[n_results + i]) for i, cell in enumerate(updates)),
        returns="single" if signature.form.is_single else "list",
        name=name,
    )
    return KernelForm(found, _donations(found, signature.donated, len(kept)))


def plain_form(fgraph: FunctionGraph, name: str) -> KernelForm:
    """The form of calls of a graph that is a part of a function: all inputs to all outputs."""
    outputs = tuple(map(_spec, fgraph.outputs))
    returns = "single" if len(outputs) == 1 else "list"
    inputs = tuple(map(_spec, fgraph.inputs))
    signature = manifest.Signature(inputs, outputs=outputs, returns=returns, name=name)
    return KernelForm(signature, takes_calls=False)


def _spec(v: Variable) -> ArraySpec:
    assert isinstance(v.type, TensorType)
    return ArraySpec(v.type.dtype, tuple(v.type.shape))


def _donations(signature: manifest.Signature, donated: Sequence[int], n_cells: int) -> tuple[Donation, ...]:
    """Inputs that may be overwritten, and the cells that are updated: those must survive a failure."""
    found = []
    for argument in donated:
        spec = signature.inputs[argument]
        results = enumerate(signature.outputs)
        same = [i for i, out in results if (out.dtype, out.shape) == (spec.dtype, spec.shape)]
        found.append(Donation(argument, tuple(same)))
    for i, update in enumerate(signature.updates, len(signature.outputs)):
        cell = signature.cells[update.cell]
        if update.cell < n_cells and (cell.dtype, cell.shape) == (update.value.dtype, update.value.shape):
            found.append(Donation(len(signature.inputs) + update.cell, (i,), keeps_on_failure=True))
    return tuple(found)
