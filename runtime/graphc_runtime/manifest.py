# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Arguments, results and needs of a compiled function: the JSON half of an artifact."""

from __future__ import annotations

import json
from dataclasses import field
from typing import Any

from graphc_runtime.errors import ArtifactError, Site
from graphc_runtime.record import record
from graphc_runtime.symbols import DTYPES

ABI = 1
GIL_THRESHOLD = 1 << 16


@record(frozen=True)
class ArraySpec:
    """An array: dtype name and static shape, with None where a size is known only at run time."""

    dtype: str
    shape: tuple[int | None, ...]
    name: str = ""

    def __post_init__(self) -> None:
        if self.dtype not in DTYPES:
            raise ArtifactError(
                f"dtype {self.dtype!r} of {self.name or 'an array'}; expected one of {', '.join(DTYPES)}"
            )

    @property
    def rank(self) -> int:
        """Number of dimensions."""
        return len(self.shape)

    @property
    def is_static(self) -> bool:
        """True if every size is known."""
        return None not in self.shape


@record(frozen=True)
class Update:
    """The new value of a cell, computed like an output."""

    cell: int
    value: ArraySpec


@record(frozen=True)
class Signature:
    """Arguments and results of a compiled function.

    Attributes:
        inputs: call arguments.
        cells: values kept by the function: shared variables and large constants. Kernels see them as further
            inputs.
        outputs: what a call returns.
        updates: new values of cells. Kernels see them as further outputs.
        returns: "single" array, "list", or "none" (no outputs).
        needs_shapes: whether `graphc_shapes` has to run: some output size is dynamic, or there are checks.
        donated: pairs of an argument and the result that kernels compute in its memory: an input and an
            output, or a cell and its update. Both have the same address in a call.
        spares: pairs of an input that kernels do not read and an output, which is the input's array in calls
            in which the sizes agree; kernels do not know of it.
        gil_threshold: elements (inputs and results together) from which a call releases the GIL.
        name: name of the callable.
    """

    inputs: tuple[ArraySpec, ...]
    cells: tuple[ArraySpec, ...] = ()
    outputs: tuple[ArraySpec, ...] = ()
    updates: tuple[Update, ...] = ()
    returns: str = "single"
    needs_shapes: bool = True
    donated: tuple[tuple[int, int], ...] = ()
    spares: tuple[tuple[int, int], ...] = ()
    gil_threshold: int = GIL_THRESHOLD
    name: str = "function"

    def __post_init__(self) -> None:
        expected = {"single": len(self.outputs) == 1, "list": True, "none": not self.outputs}
        if not expected.get(self.returns, False):
            raise ArtifactError(f"{len(self.outputs)} outputs cannot be returned as {self.returns!r}")
        if not self.needs_shapes and not all(spec.is_static for spec in self.results):
            raise ArtifactError("an output of dynamic size needs graphc_shapes")
        cells = [update.cell for update in self.updates]
        if len(set(cells)) < len(cells) or any(not 0 <= cell < len(self.cells) for cell in cells):
            raise ArtifactError(
                f"updates of cells {cells}; there are {len(self.cells)} cells, each updated at most once"
            )

        for argument, result in (*self.donated, *self.spares):
            given, computed = self.arguments[argument], self.results[result]
            if (given.dtype, given.shape) != (computed.dtype, computed.shape):
                raise ArtifactError(f"result {result} is not of the type of the donated argument {argument}")

    @property
    def arguments(self) -> tuple[ArraySpec, ...]:
        """Kernel inputs: inputs, then cells."""
        return self.inputs + self.cells

    @property
    def results(self) -> tuple[ArraySpec, ...]:
        """Kernel outputs: outputs, then updates."""
        return self.outputs + tuple(update.value for update in self.updates)


@record(frozen=True)
class Manifest:
    """Everything about an artifact but its code.

    Attributes:
        signature: arguments and results.
        sites: check sites; status k + 1 of a kernel is site k.
        symbols: external symbols of the object.
        target: triple, cpu and features it was compiled for.
        entries: native entries it holds: "struct" and/or "buffer".
        tuple_items: tuple layout that its struct entry assumes.
        abi: version of the kernel ABI.
        extra: data of the compiler (report, names); the runtime does not read it.
        memory: the memory plan of each of the kernel's functions: buffers with their sizes, lifetimes and
            places; `Function.memory_plan` shows it, the runtime does not read it.
    """

    signature: Signature
    sites: tuple[Site, ...] = ()
    symbols: tuple[str, ...] = ()
    target: dict[str, str] = field(default_factory=dict)
    entries: tuple[str, ...] = ()
    tuple_items: int = 0
    abi: int = ABI
    extra: dict[str, Any] = field(default_factory=dict)
    memory: tuple[dict[str, Any], ...] = ()

    def to_json(self) -> str:
        """Compact JSON with sorted keys."""
        # `asdict` would copy all of it first, several times as long.
        return json.dumps(vars(self), sort_keys=True, separators=(",", ":"), default=vars)

    @classmethod
    def from_json(cls, text: str) -> Manifest:
        """Reads what `to_json` wrote.

        Raises:
            ArtifactError: not a manifest of this ABI.
        """
        try:
            raw = json.loads(text)
            if raw["abi"] != ABI:
                raise ArtifactError(
                    f"the artifact has kernel ABI {raw['abi']}, this runtime {ABI}; compile it again"
                )
            raw["signature"] = signature_from(raw["signature"])
            raw["sites"] = tuple(Site(**site) for site in raw["sites"])
            for key in ("symbols", "entries", "memory"):
                raw[key] = tuple(raw.get(key, ()))
            return cls(**raw)
        except (KeyError, TypeError, ValueError, RecursionError) as error:
            raise ArtifactError(f"not a manifest: {error}") from None


def signature_from(raw: dict[str, Any]) -> Signature:
    """A signature from its JSON object, which is changed."""
    for key in ("inputs", "cells", "outputs"):
        raw[key] = tuple(map(_array, raw[key]))
    raw["updates"] = tuple(Update(update["cell"], _array(update["value"])) for update in raw["updates"])
    for key in ("donated", "spares"):
        raw[key] = tuple(map(tuple, raw.get(key, ())))
    return Signature(**raw)


def _array(raw: dict[str, Any]) -> ArraySpec:
    return ArraySpec(raw["dtype"], tuple(raw["shape"]), raw["name"])
