# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Nested containers of variables: dicts, lists, tuples, named tuples, dataclasses; None has no leaves."""

from __future__ import annotations

import copy
import dataclasses
from collections.abc import Hashable, Iterator, Mapping, Sequence
from typing import Any

from graphc_runtime.record import record


@record(frozen=True)
class Structure:
    """The form of a tree without its leaves.

    Attributes:
        kind: class of the container, None for a leaf.
        keys: keys, names of fields, or positions of the children.
        children: one for each key.
        example: the container itself, where a new one cannot be made from its parts alone.
    """

    kind: Any
    keys: tuple[Hashable, ...] = ()
    children: tuple[Structure, ...] = ()
    example: Any = dataclasses.field(default=None, compare=False)

    @property
    def n_leaves(self) -> int:
        """Number of leaves."""
        return 1 if self.kind is None else sum(child.n_leaves for child in self.children)

    @property
    def class_name(self) -> str:
        """Name of the container's class."""
        return str(self.kind.__name__)

    def without_example(self) -> Structure:
        """The form without what new containers are made from; it can only take values apart."""
        return Structure(self.kind, self.keys, tuple(child.without_example() for child in self.children))

    def paths(self, prefix: str = "") -> Iterator[str]:
        """Path to each leaf, as Python would write it."""
        if self.kind is None:
            yield prefix
        for key, child in zip(self.keys, self.children, strict=True):
            yield from child.paths(self._path(prefix, key))

    def leaves_of(self, value: object, name: str) -> list[object]:
        """The leaves of a value that has this form; whatever stands in a leaf's place is one.

        Args:
            value: lists and tuples stand for each other.
            name: where the value is, for messages.

        Raises:
            TypeError: it has another form. The message says where, what was expected, and what was given.
        """
        if self.kind is None:
            return [value]
        if self.kind is type(None):
            if value is None:
                return []
            raise TypeError(f"{name} must be None, got {_brief(value)}")
        if issubclass(self.kind, dict):
            if not isinstance(value, Mapping) or set(value) != set(self.keys):
                raise TypeError(f"{name} must be a dict with the keys {list(self.keys)}, got {_brief(value)}")
            parts = [value[key] for key in self.keys]
        elif dataclasses.is_dataclass(self.kind):
            if type(value) is not self.kind:
                raise TypeError(f"{name} must be a {self.class_name}, got {_brief(value)}")
            parts = [getattr(value, str(key)) for key in self.keys]
        else:
            if not isinstance(value, list | tuple) or len(value) != len(self.keys):
                raise TypeError(
                    f"{name} must be a {self.class_name} of {len(self.keys)} items, got {_brief(value)}"
                )
            parts = list(value)
        found: list[object] = []
        for key, child, part in zip(self.keys, self.children, parts, strict=True):
            found += child.leaves_of(part, self._path(name, key))
        return found

    def _path(self, prefix: str, key: Hashable) -> str:
        named = dataclasses.is_dataclass(self.kind) or hasattr(self.kind, "_fields")
        return f"{prefix}.{key}" if named else f"{prefix}[{key!r}]"

    def build(self, leaves: Sequence[object]) -> Any:
        """The tree with other leaves."""
        if len(leaves) != self.n_leaves:
            raise ValueError(f"the tree {self} has {self.n_leaves} leaves, got {len(leaves)}")
        return self._take(iter(leaves))

    def _take(self, leaves: Iterator[object]) -> Any:
        if self.kind is None:
            return next(leaves)
        if self.kind is type(None):
            return None
        parts = [child._take(leaves) for child in self.children]
        if issubclass(self.kind, dict):
            made = copy.copy(self.example)
            made.update(zip(self.keys, parts, strict=True))
            return made
        if dataclasses.is_dataclass(self.kind):
            made = copy.copy(self.example)
            for key, part in zip(self.keys, parts, strict=True):
                object.__setattr__(made, str(key), part)
            return made
        return self.kind(*parts) if hasattr(self.kind, "_fields") else self.kind(parts)

    def __str__(self) -> str:
        if self.kind is None:
            return "*"
        if self.kind is type(None):
            return "None"
        parts = [str(child) for child in self.children]
        if issubclass(self.kind, dict):
            return (
                "{" + ", ".join(f"{key!r}: {part}" for key, part in zip(self.keys, parts, strict=True)) + "}"
            )
        if self.kind is list:
            return f"[{', '.join(parts)}]"
        if self.kind is tuple:
            return f"({', '.join(parts)}{',' if len(parts) == 1 else ''})"
        named = ", ".join(f"{key}={part}" for key, part in zip(self.keys, parts, strict=True))
        return f"{self.kind.__name__}({named})"


LEAF = Structure(None)


def is_tree(value: object) -> bool:
    """True if a value is a container, not a leaf; None is one without leaves."""
    if value is None or isinstance(value, dict | list | tuple):
        return True
    return dataclasses.is_dataclass(value) and not isinstance(value, type)


def _brief(value: object) -> str:
    if isinstance(value, Mapping):
        return f"a {type(value).__name__} with the keys {list(value)}"
    if isinstance(value, list | tuple):
        return f"a {type(value).__name__} of {len(value)} items"
    return f"{value!r:.60} of type {type(value).__name__}"


def flatten(tree: object) -> tuple[list[Any], Structure]:
    """The leaves in order, and the form; entries of dicts are ordered by their keys."""
    leaves: list[object] = []
    return leaves, _flatten(tree, leaves)


def _flatten(tree: object, leaves: list[object]) -> Structure:
    if tree is None:
        return Structure(type(None))
    if isinstance(tree, dict):
        keys = sorted(tree, key=lambda key: (type(key).__name__, repr(key)))
        return Structure(type(tree), tuple(keys), tuple(_flatten(tree[key], leaves) for key in keys), tree)
    if isinstance(tree, list | tuple):
        keys = list(getattr(tree, "_fields", range(len(tree))))
        return Structure(type(tree), tuple(keys), tuple(_flatten(each, leaves) for each in tree))
    if dataclasses.is_dataclass(tree) and not isinstance(tree, type):
        names = tuple(field.name for field in dataclasses.fields(tree))
        return Structure(type(tree), names, tuple(_flatten(getattr(tree, n), leaves) for n in names), tree)
    leaves.append(tree)
    return LEAF
