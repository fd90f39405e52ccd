# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Nested containers of variables: dicts, lists, tuples, named tuples, dataclasses; None has no leaves."""

from __future__ import annotations

import copy
import dataclasses
from collections.abc import Hashable, Iterable, Iterator, Mapping, Sequence
from itertools import repeat
from typing import Any

from graphc_runtime.record import record


@record(frozen=True)
class Structure:
    """The form of a tree without its leaves.

    Attributes:
        kind: class of the container, None for a leaf.
        keys: keys, names of fields, or positions of the children.
        children: one for each key.
        example: a copy of the container without its parts, of which others are made: of dicts and
            dataclasses. None for others.
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

    def paths(self, prefix: str = "") -> Iterator[str]:
        """Path to each leaf, as Python would write it."""
        if self.kind is None:
            yield prefix
        for key, child in zip(self.keys, self.children, strict=True):
            yield from child.paths(self._path(prefix, key))

    def leaves_of(self, value: object, name: str, *, blank: bool = False) -> list[object]:
        """The leaves of a value that has this form; whatever stands in a leaf's place is one.

        Args:
            value: lists and tuples stand for each other.
            name: where the value is, for messages.
            blank: None may stand for a part whose leaves are all None.

        Raises:
            TypeError: it has another form. The message says where, what was expected, and what was given.
        """
        if self.kind is None:
            return [value]
        if value is None and blank:
            return [None] * self.n_leaves
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
            found += child.leaves_of(part, self._path(name, key), blank=blank)
        return found

    def _path(self, prefix: str, key: Hashable) -> str:
        named = dataclasses.is_dataclass(self.kind) or hasattr(self.kind, "_fields")
        return f"{prefix}.{key}" if named else f"{prefix}[{key!r}]"

    def build(self, leaves: Sequence[object]) -> Any:
        """The tree with other leaves."""
        if len(leaves) != self.n_leaves:
            raise ValueError(f"the tree {self} has {self.n_leaves} leaves, got {len(leaves)}")
        return self.take(iter(leaves))

    def take(self, leaves: Iterator[object]) -> Any:
        """The tree with the next of other leaves."""
        if self.kind is None:
            return next(leaves)
        if self.kind is type(None):
            return None
        parts = [next(leaves) if child.kind is None else child.take(leaves) for child in self.children]
        if self.kind is list:
            return parts
        if self.example is not None:
            return _with_parts(self.example, self.keys, parts)
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


def _with_parts(example: Any, keys: Sequence[Any], parts: Iterable[object]) -> Any:
    """A copy of a dict or a dataclass with other entries, or fields."""
    made = example.copy() if type(example) is dict else copy.copy(example)
    if isinstance(made, dict):
        dict.update(made, zip(keys, parts))  # noqa: B905
        return made
    for key, part in zip(keys, parts, strict=False):
        object.__setattr__(made, key, part)
    return made


def flatten(tree: object, *, as_written: bool = False) -> tuple[list[Any], Structure]:
    """The leaves in order, and the form.

    Args:
        tree: a container or a leaf.
        as_written: entries are in the order of their dict, which may be any mapping, not in that of keys.
    """
    leaves: list[object] = []
    return leaves, _flatten(tree, leaves, as_written)


def _flatten(tree: Any, leaves: list[object], as_written: bool) -> Structure:
    keys: Sequence[Any]
    if tree is None:
        return Structure(type(None))
    if isinstance(tree, Mapping if as_written else dict):
        keys = list(tree) if as_written else sorted(tree, key=lambda key: (type(key).__name__, repr(key)))
        is_plain = type(tree) is dict or not isinstance(tree, dict)
        blank = dict.fromkeys(tree) if is_plain else _with_parts(tree, keys, repeat(None))
        parts = tuple([_flatten(tree[key], leaves, as_written) for key in keys])
        return Structure(type(blank), tuple(keys), parts, blank)
    if isinstance(tree, list | tuple):
        kind = type(tree) if hasattr(tree, "_fields") else list if isinstance(tree, list) else tuple
        keys = getattr(tree, "_fields", range(len(tree)))
        # Several outputs of a loop iterate as a pair.
        return Structure(kind, tuple(keys), tuple([_flatten(each, leaves, as_written) for each in tree[:]]))
    if dataclasses.is_dataclass(tree) and not isinstance(tree, type):
        names = tuple(field.name for field in dataclasses.fields(tree))
        parts = tuple([_flatten(getattr(tree, name), leaves, as_written) for name in names])
        return Structure(type(tree), names, parts, _with_parts(tree, names, repeat(None)))
    leaves.append(tree)
    return LEAF
