# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""The public names of graphc, by namespace: for the reference of the site and the test of docstrings."""

from __future__ import annotations

import importlib
import inspect
import re
from dataclasses import dataclass
from typing import Any

from graphc.ops.elementwise import Elementwise

# Namespaces, in the order of the reference, with the title of their page.
NAMESPACES = {
    "graphc": "Functions, gradients, graphs",
    "graphc.tensor": "Tensors",
    "graphc.tensor.linalg": "Linear algebra",
    "graphc.tensor.random": "Random numbers",
    "graphc.tensor.special": "Special functions",
    "graphc.tensor.nn": "Neural networks",
    "graphc.tensor.fft": "Fourier transforms",
    "graphc.tensor.fourier": "PyTensor's Fourier transforms",
    "graphc.tensor.signal": "Signals",
    "graphc.tensor.optimize": "Minima and roots",
    "graphc.optimizers": "Optimisers",
    "graphc.scan": "Loops",
    "graphc.gradient": "Derivatives",
    "graphc.graph": "Graphs",
    "graphc.sparse": "Sparse matrices",
    "graphc.immediate": "Immediate mode",
    "graphc.distributed": "Clusters",
    "graphc_runtime": "The runtime",
}

# `dmatrix`, `imatrices`: as `matrix` and `matrices`, for one dtype; one table makes all of them.
_OF_A_DTYPE = re.compile(r"[bcdfilwz](scalar|vector|matrix|row|col|tensor[3-7]|matrice)s?")


@dataclass(frozen=True)
class PublicName:
    """A function, class or elementwise operation that users call.

    Attributes:
        namespace: where users find it.
        name: under which name.
        value: what it is.
    """

    namespace: str
    name: str
    value: Any

    @property
    def shown(self) -> str:
        """The name with its namespace."""
        return f"{self.namespace}.{self.name}"

    @property
    def defined(self) -> str:
        """Dotted path of the definition."""
        return f"{self.value.__module__}.{self.value.__qualname__}"


def names_of(namespace: str) -> list[PublicName]:
    """The public names of one namespace, sorted; modules, numbers, dtypes and types of variables are none."""
    module = importlib.import_module(namespace)
    # graphc.tensor takes its names from the modules beside it.
    listed = dir(module) if namespace == "graphc.tensor" else module.__all__
    found = []
    for name in sorted(set(listed), key=str.lower):
        if name.startswith("_") or name == "Any" or _OF_A_DTYPE.fullmatch(name):
            continue
        value = getattr(module, name)
        if isinstance(value, Elementwise) or inspect.isroutine(value) or inspect.isclass(value):
            found.append(PublicName(namespace, name, value))
        elif inspect.ismodule(value) and callable(value):  # graphc.scan is a package and a function
            found.append(PublicName(namespace, name, getattr(value, name)))
    return found


def public_names() -> dict[str, list[PublicName]]:
    """All public names by namespace; what several namespaces have stands in the first of them only."""
    seen: set[int] = set()
    found: dict[str, list[PublicName]] = {}
    for namespace in NAMESPACES:
        fresh = [each for each in names_of(namespace) if id(each.value) not in seen]
        by_value: dict[int, PublicName] = {}
        for each in fresh:  # of several names in one namespace, the one that it is defined by
            own = getattr(each.value, "__name__", None) == each.name
            if own or id(each.value) not in by_value:
                by_value[id(each.value)] = each
        seen.update(by_value)
        found[namespace] = sorted(by_value.values(), key=lambda each: each.name.lower())
    return found
