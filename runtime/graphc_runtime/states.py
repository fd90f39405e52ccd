# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Values that the functions of an artifact keep between calls."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator, MutableMapping, Sequence
from typing import Any

import numpy as np

from graphc_runtime.commit import commit
from graphc_runtime.generators import state_of
from graphc_runtime.manifest import ArraySpec
from graphc_runtime.marshal import canonical
from graphc_runtime.package import StateRecord, Stored


class States(MutableMapping[str, np.ndarray]):
    """The states of an instance by name. Items are copies, and values that are set are copied.

    The state of a random generator is a vector of words; a ``numpy.random.Generator`` can be set, too, and
    ``graphc_runtime.generators.generator_of`` makes one of the words.

    Args:
        records: of the artifact.
        array: gives the initial value of one.
    """

    def __init__(self, records: Sequence[StateRecord], array: Callable[[Stored], np.ndarray]) -> None:
        self._specs = {r.name: ArraySpec(r.value.dtype, tuple(r.shape), r.name) for r in records}
        self._cells: list[list[Any]] = [[np.array(array(r.value))] for r in records]
        self._numbers = {record.name: i for i, record in enumerate(records)}

    def cell(self, number: int) -> list[Any]:
        """The one-element list that functions read and write."""
        return self._cells[number]

    def __getitem__(self, name: str) -> np.ndarray:
        # Values of functions for a device are there.
        return np.array(self._cells[self._number(name)][0])

    def __setitem__(self, name: str, value: object) -> None:
        self.update({name: value})

    def update(self, /, *args: Any, **keywords: Any) -> None:
        """Sets several states at once.

        Raises:
            KeyError: there is no state of such a name.
            TypeError, ValueError: a value has another dtype, rank or static size. No state changes.
        """
        given = dict(*args, **keywords)
        cells = [self._cells[self._number(name)] for name in given]
        given = {n: state_of(v) if isinstance(v, np.random.Generator) else v for n, v in given.items()}
        new = [np.array(canonical(v, self._specs[name], f"state {name!r}")) for name, v in given.items()]
        if cells:
            commit(cells, new, (), ())

    def __delitem__(self, name: str) -> None:
        raise TypeError("states cannot be deleted")

    def __iter__(self) -> Iterator[str]:
        return iter(self._numbers)

    def __len__(self) -> int:
        return len(self._numbers)

    def save(self, path: str | os.PathLike[str]) -> None:
        """Writes all states as a NumPy archive."""
        with open(path, "wb") as file:
            np.savez(file, **{f"state_{name}": value for name, value in self.items()})  # type: ignore[arg-type]

    def load(self, path: str | os.PathLike[str]) -> None:
        """Reads what `save` wrote; all states or none.

        Raises:
            ValueError: the file has other states.
        """
        with np.load(path, allow_pickle=False) as found:
            if set(found) != {f"state_{name}" for name in self}:
                raise ValueError(f"{path} has the states {sorted(found)}, expected {sorted(self)}")
            self.update({name: found[f"state_{name}"] for name in self})

    def _number(self, name: str) -> int:
        try:
            return self._numbers[name]
        except KeyError:
            raise KeyError(f"{name!r}; there are the states {', '.join(self) or '(none)'}") from None

    def __repr__(self) -> str:
        return f"<states {', '.join(self) or '(none)'}>"
