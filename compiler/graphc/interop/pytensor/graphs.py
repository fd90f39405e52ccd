# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Whole graphs: inputs and outputs of PyTensor as those of graphc."""

from __future__ import annotations

import sys
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from types import MappingProxyType
from typing import TYPE_CHECKING, Any

from pytensor.graph.basic import Variable

# Importing a module of rules registers these.
from graphc.graph.basic import located
from graphc.interop.pytensor import (  # noqa: F401
    elementwise,
    extras,
    linalg,
    randoms,
    samplers,
    scans,
    shapes,
    sparse,
)
from graphc.interop.pytensor.convert import Converter
from graphc.interop.pytensor.masks import computed_once
from graphc.interop.pytensor.types import share

if TYPE_CHECKING:
    from graphc.graph.basic import Variable as Converted
    from graphc.interop.pytensor.convert import Checks
    from graphc_runtime.thunk import Register

_DEPTH = 20_000


def from_pytensor(
    inputs: Sequence[Variable], outputs: Variable | Sequence[Variable]
) -> tuple[list[Converted], Any]:
    """A graph of PyTensor, with PyMC's log densities for example, as a graph of graphc.

    Args:
        inputs: variables of PyTensor that the graph reads. Constants and shared variables need not be given.
            The value of a shared tensor lives in one place that both libraries read and write; a shared
            random generator is copied.
        outputs: a variable or several.

    Returns:
        The inputs and the outputs of the same types, shapes (as far as PyTensor knows them) and names;
        outputs are a variable or a list, as given. Nodes have the lines of the user's code
        where PyTensor kept them.

    Raises:
        TypeError: something is not a variable, the graph needs one that is not given, or has values of a type
            that graphc lacks.
    """
    for given in (*inputs, *([outputs] if isinstance(outputs, Variable) else outputs)):
        if not isinstance(given, Variable):
            raise TypeError(
                f"from_pytensor takes variables of PyTensor, given {type(given).__name__} {given!r}"
            )
    single = isinstance(outputs, Variable)
    made, results = converted(inputs, [outputs] if single else outputs)
    return made, results[0] if single else results


def converted(
    inputs: Sequence[Variable],
    outputs: Sequence[Variable],
    checks: Checks = "switch",
    cells: Mapping[Variable, Register] = MappingProxyType({}),
) -> tuple[list[Converted], list[Any]]:
    """As `from_pytensor`, for lists; ``checks`` as in `Converter`, ``cells`` are places of shared values."""
    with _deep_recursion():
        c = Converter(checks=checks)
        c.bind(cells, [share(variable, storage) for variable, storage in cells.items()])
        made = [c.new_input(variable) for variable in inputs]
        with located("", 0):  # no line of PyTensor that calls the bridge is a place of a node
            results = c.convert(computed_once(outputs))
    return made, results


@contextmanager
def _deep_recursion() -> Iterator[None]:
    """Graphs inside graphs inside graphs are converted by functions that call themselves."""
    before = sys.getrecursionlimit()
    sys.setrecursionlimit(max(before, _DEPTH))
    try:
        yield
    finally:
        sys.setrecursionlimit(before)
