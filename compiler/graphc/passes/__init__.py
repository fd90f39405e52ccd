# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Passes: their base class, and how they are found by the names of their files, in folders by stage."""

from __future__ import annotations

import difflib
import importlib
import inspect
import typing
from collections.abc import Container, Mapping
from dataclasses import field, fields
from functools import cache
from typing import TYPE_CHECKING, Any, ClassVar, Literal

from graphc.names import modules_below
from graphc_runtime.record import record

if TYPE_CHECKING:
    from graphc_dialects._mlir import ir

Stage = Literal["graph", "tensor", "buffer", "llvm"]
STAGES: tuple[Stage, ...] = ("graph", "tensor", "buffer", "llvm")
_PREFIX = "graphc-"

# Passes of one idea, which share the file of one of them: others by that file.
_TOGETHER: dict[str, tuple[str, ...]] = {
    "gpu_elementwise": ("gpu_transpose",),
    "gpu_library": ("gpu_factor",),
    "gpu_numbers": ("gpu_constants", "gpu_functions", "gpu_loops"),
    "gpu_placement": ("gpu_half_products",),
    "gpu_sort": ("gpu_select",),
}

# Of each option the attribute, the name and the default; by pass.
_OPTIONS: dict[type, list[tuple[str, str, object]]] = {}


@record()
class Pass:
    """Base of all passes.

    A subclass is a dataclass in a file of that name in a folder of `graphc.passes`, or in one with others of
    its kind (`_TOGETHER`). The class's name with hyphens is its flag, its fields are its options, its
    docstring is its documentation.

    Attributes:
        stage: which IR it takes and leaves: graph, tensor, buffer or llvm (see
            `graphc_tools.legality`).
        acts_on: names of operations of which a module has one, or else the pass need not run; None where
            names do not tell.
        statistics: counters that `run` adds to.
        text: its pipeline text, where that has been asked for.
    """

    stage: ClassVar[Stage]
    acts_on: ClassVar[Container[str] | None] = None
    statistics: dict[str, int] = field(default_factory=dict, init=False, repr=False, compare=False)
    text: str = field(default="", init=False, repr=False, compare=False)

    def run(self, module: ir.Module) -> None:
        """Rewrites the module in place. Raises PassError (through `fail`) for IR it must not accept."""
        raise NotImplementedError(f"{type(self).__name__} does not define run")

    def count(self, name: str, number: int = 1) -> None:
        """Adds to a counter; nothing that happened is no counter."""
        if number:
            self.statistics[name] = self.statistics.get(name, 0) + number

    def count_all(self, counts: Mapping[str, int]) -> None:
        """Adds to several; names may be those of rules, ``product_of_sums``."""
        for name, number in counts.items():
            self.count(name.strip("_").replace("_", " "), number)

    @classmethod
    def flag(cls) -> str:
        """Its name in pipelines and, after `--`, on the command line: `graphc-constant-folding`."""
        return flag_of("".join(f"_{c.lower()}" if c.isupper() else c for c in cls.__name__)[1:])

    @classmethod
    def options(cls) -> dict[str, Any]:
        """Option names, with hyphens, and their default values."""
        return {item.name.replace("_", "-"): item.default for item in fields(cls) if item.init}

    @classmethod
    def from_options(cls, text: str) -> Pass:
        """The pass with options given as `key=value` separated by spaces, the way MLIR writes them.

        Raises:
            ValueError: an option does not exist or its value cannot be read.
        """
        if not text:
            return cls()
        hints = typing.get_type_hints(cls)
        known = {item.name for item in fields(cls) if item.init}
        values: dict[str, object] = {}
        for word in text.split():
            key, equals, value = word.partition("=")
            name = key.replace("-", "_")
            if name not in known:
                listed = ", ".join(sorted(cls.options())) or "none"
                raise ValueError(f"pass {cls.flag()} has no option '{key}'; its options are: {listed}")
            values[name] = _parse_value(cls, key, value if equals else "true", hints[name])
        return cls(**values)

    def __str__(self) -> str:
        """Its pipeline text, with the options that differ from the defaults."""
        kind = type(self)
        if kind not in _OPTIONS:
            _OPTIONS[kind] = [
                (item.name, item.name.replace("_", "-"), item.default) for item in fields(kind) if item.init
            ]
        changed = [
            f"{shown}={str(value).lower() if isinstance(value, bool) else value}"
            for name, shown, default in _OPTIONS[kind]
            if (value := getattr(self, name)) != default
        ]
        return self.flag() + (f"{{{' '.join(changed)}}}" if changed else "")


def _parse_value(cls: type[Pass], key: str, text: str, kind: Any) -> float | str:
    if kind is bool and text in ("true", "false", "0", "1"):
        return text in ("true", "1")
    if kind is int and text.lstrip("-").isdigit():
        return int(text)
    if kind is str:
        return text
    if kind is float:
        try:
            return float(text)
        except ValueError:
            pass
    raise ValueError(f"pass {cls.flag()}: option '{key}' expects {kind.__name__}, but was given '{text}'")


# -- discovery -------------------------------------------------------------------------------------


def flag_of(module_name: str) -> str:
    """`constant_folding` -> `graphc-constant-folding`."""
    return _PREFIX + module_name.replace("_", "-")


@cache
def discover() -> dict[str, str]:
    """Flag to module name of every pass. Only lists files: no pass is imported."""
    names = {name.rpartition(".")[2]: name for name in modules_below("graphc.passes") if _may_hold_pass(name)}
    names |= {other: names[name] for name, others in _TOGETHER.items() for other in others}
    return {flag_of(name): names[name] for name in sorted(names)}


def _may_hold_pass(name: str) -> bool:
    """Passes are in folders; names with underscores are helpers."""
    return name.count(".") > 2 and not name.rpartition(".")[2].startswith("_")


@cache
def find(flag: str) -> type[Pass]:
    """The pass class of a flag such as `graphc-fusion`.

    Raises:
        ValueError: there is no such pass.
    """
    name = discover().get(flag)
    if name is None:
        names = [known.removeprefix(_PREFIX) for known in discover()]
        near = difflib.get_close_matches(flag.removeprefix(_PREFIX), names, 1)
        hint = f"do you mean '{_PREFIX}{near[0]}'? --list-passes shows all" if near else ""
        raise ValueError(f"no pass named '{flag}'; {hint or 'the passes are: ' + ', '.join(discover())}")
    module = importlib.import_module(name)
    classes = [
        item
        for item in vars(module).values()
        if inspect.isclass(item)
        and issubclass(item, Pass)
        and item.__module__ == module.__name__
        and item.flag() == flag
    ]
    if len(classes) != 1:
        raise ValueError(f"{name} must define one Pass of that name, but defines {len(classes)}")
    return classes[0]
