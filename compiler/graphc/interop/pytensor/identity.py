# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Keys of PyTensor's graphs before any rewrite, the same in every process.

Two graphs get one key only if rewriting and compiling them gives the same code: same structure, ops, types,
data of constants, rewrites, settings and versions. What cannot be identified for certain, such as an op of a
user's own module, has no key.
"""

from __future__ import annotations

import dataclasses
import enum
import hashlib
import importlib.metadata
import importlib.util
import os
import re
import types
from collections.abc import Iterable, Mapping
from functools import cache
from typing import TYPE_CHECKING, Any

import numpy as np
import pytensor
from pytensor.compile.mode import Mode
from pytensor.graph import fg
from pytensor.graph.basic import Constant, Variable
from pytensor.graph.fg import FunctionGraph
from pytensor.graph.op import Op
from pytensor.graph.rewriting.basic import Rewriter
from pytensor.graph.rewriting.db import RewriteDatabase, RewriteDatabaseQuery
from pytensor.graph.utils import MetaObject
from pytensor.scalar.basic import ScalarType
from pytensor.tensor.random.type import RandomGeneratorType
from pytensor.tensor.type import TensorType
from pytensor.tensor.type_other import NoneTypeT, SliceType

from graphc.backends import toolchain
from graphc.config import config

if TYPE_CHECKING:
    from graphc.graph.tensor import TensorLike

# Whose classes and functions are what their version says.
_PACKAGES = ("pytensor", "pymc", "pymc_extras", "numpy", "builtins")
# Ops compare by `__props__`, or by attributes, of which these say nothing about what they compute: names,
# derivatives, caches, and what follows from the others.
_IRRELEVANT = frozenset((
    "name", "profile", "mode", "kwargs", "lop_overrides", "grad_overrides", "rop_overrides", "inputs",
    "outputs", "pullback", "pushforward", "prepare_node_called", "nin", "nout", "connection_pattern",
))  # fmt: skip
_SETTINGS = (
    "floatX", "cast_policy", "optimizer_excluding", "optimizer_including", "optimizer_requiring",
    "on_opt_error", "compute_test_value", "compute_test_value_opt", "optdb__position_cutoff",
    "optdb__max_use_ratio",
    "cycle_detection", "openmp", "on_shape_error", "scan__allow_gc", "scan__allow_output_prealloc",
    "tensor__cmp_sloppy",
)  # fmt: skip
# Settings of graphc that do not change code.
_NOT_CODE = frozenset(
    ("cache_dir", "cache_size_mb", "threads", "reproducer_dir", "on_unused_input", "floatX")
)
_ADDRESS = re.compile(" at 0x[0-9a-fA-F]+")
_PLAIN = (bool, int, float, complex, str, bytes, type(None))


class Unidentified(Exception):
    """A part of a graph, or of what rewrites it, that has no identity beyond this process."""


def key_of(fgraph: FunctionGraph, mode: Mode, parts: Iterable[object]) -> str | None:
    """Hexadecimal SHA-256 key of a graph that has not been rewritten.

    Args:
        fgraph: the graph.
        mode: whose rewrites will be applied.
        parts: what else the result depends on: plain data.

    Returns:
        The key, or None if something cannot be identified.
    """
    try:
        described = _Description()
        lines = [
            described.graph(fgraph.inputs, fgraph.outputs),
            described.value(tuple(parts)),
            _query(described, mode._optimizer),
            *_rewrites(mode.optdb, mode._optimizer),
        ]
    except Unidentified:
        return None
    return hashlib.sha256("\n".join([*lines, _surroundings()]).encode()).hexdigest()


class _Description:
    """Texts of values, each op and type only once."""

    def __init__(self) -> None:
        self._known: dict[int, str] = {}
        self._kept: list[Variable] = []

    def _once(self, value: TensorLike, text: str) -> str:
        """A short text for a long one; the value is kept, so that its address stays its own."""
        self._kept.append(value)
        short = hashlib.blake2b(text.encode(), digest_size=16).hexdigest() if len(text) > 48 else text
        return self._known.setdefault(id(value), short)

    def graph(self, inputs: Iterable[Variable], outputs: Iterable[Variable]) -> str:
        """A line for each input and node, in an order that depends on the structure alone."""
        outputs = list(outputs)
        numbers = {variable: f"i{k}" for k, variable in enumerate(inputs)}
        lines = [self.leaf(variable) for variable in numbers]
        seen = set()
        stack: list[tuple[Any, bool]] = [(variable.owner, False) for variable in reversed(outputs)]
        while stack:
            node, ready = stack.pop()
            if node is None or node in seen:
                continue
            if not ready:
                stack.append((node, True))
                stack.extend(
                    (v.owner, False)
                    for v in reversed(node.inputs)
                    if v.owner is not None and v not in numbers
                )
                continue
            seen.add(node)
            read = ",".join([numbers.get(v) or self._constant(v, numbers) for v in node.inputs])
            made = ",".join([self.leaf(v) for v in node.outputs])
            lines.append(f"{self.value(node.op)}({read}){made}")
            numbers.update((v, f"{len(lines)}.{j}") for j, v in enumerate(node.outputs))
        lines.append(",".join([numbers.get(v) or self._constant(v, numbers) for v in outputs]))
        return "\n".join(lines)

    def leaf(self, variable: Variable) -> str:
        """The type of a variable, its name, which errors show, and what rewrites are told of it by tags."""
        text = self.type(variable.type)
        if variable.name is not None:
            text += f" {variable.name!r} "
        for name, value in variable.tag.__dict__.items():
            if value is True or value is False:
                text += f"{name}={value}"
        return text

    def _constant(self, variable: Variable, numbers: dict[Variable, str]) -> str:
        if not isinstance(variable, Constant):
            raise Unidentified(variable)
        numbers[variable] = text = f"{self.leaf(variable)}={self.value(variable.data)}"
        return text

    def type(self, kind: Any) -> str:
        """A type of PyTensor."""
        if id(kind) in self._known:
            return self._known[id(kind)]
        if type(kind) is TensorType:
            text = f"{kind.dtype}{kind.shape}"
        elif type(kind) is ScalarType:
            text = f"scalar {kind.dtype}"
        elif isinstance(kind, (NoneTypeT, SliceType, RandomGeneratorType)):
            text = type(kind).__name__
        else:
            raise Unidentified(kind)
        return self._once(kind, text)

    def value(self, value: Any) -> str:
        """Any value that is, or belongs to, an op or a constant."""
        cls: Any = type(value)
        if cls in _PLAIN:
            return f"{value!r}"
        if id(value) in self._known:
            return self._known[id(value)]
        kind = _kind(cls)
        if kind is Op:
            return self._once(value, self._object(value))
        if kind is MetaObject:
            return self._typed(value)
        if kind is np.ndarray:
            return _array(value)
        if kind is np.generic:
            return _array(np.asarray(value))
        if kind is np.dtype:
            return _dtype(value)
        if kind is tuple:
            return self._items(value)
        if kind is Mapping:
            return "{" + ",".join(sorted(f"{self.value(k)}:{self.value(v)}" for k, v in value.items())) + "}"
        if kind is set:
            return "{" + ",".join(sorted(map(self.value, value))) + "}"
        if kind is slice:
            return f"slice{self._items((value.start, value.stop, value.step))}"
        if kind is enum.Enum:
            return f"{_named(cls)}.{value.name}"
        if kind is type:
            return _named(value)
        if kind is FunctionGraph:
            return self._once(value, f"[{self.graph(value.inputs, value.outputs)}]")
        raise Unidentified(value)

    def _typed(self, value: TensorLike) -> str:
        """Types and other objects that compare by their `__props__`."""
        try:
            return self.type(value)
        except Unidentified:
            return self._once(value, self._object(value))

    def _items(self, value: Variable) -> str:
        if dataclasses.is_dataclass(value) and not isinstance(value, type):
            value = tuple(getattr(value, field.name) for field in dataclasses.fields(value))
        return "(" + ",".join([self.value(item) for item in value]) + ")"

    def _object(self, value: TensorLike) -> str:
        """Class and attributes that decide whether two ops are equal."""
        cls: Variable = type(value)
        names = _props(cls)
        if names is None:
            if getattr(value, "shared_inputs", None):
                raise Unidentified(value)
            names = {n for n in vars(value) if not n.startswith("_") and n not in _IRRELEVANT}
            names |= set(getattr(cls, "__props__", None) or ())
            if hasattr(value, "fgraph"):
                names.add("fgraph")
        listed = [f"{name}={self.value(getattr(value, name))}" for name in sorted(names)]
        return f"{_named(cls)}({';'.join(listed)})"


# Kinds of values, and the classes that belong to each; the first that fits counts.
_KINDS: tuple[tuple[type, tuple[type, ...]], ...] = (
    (np.ndarray, (np.ndarray,)),
    (np.generic, (np.generic,)),
    (np.dtype, (np.dtype,)),
    (tuple, (tuple, list)),
    (Mapping, (dict, types.MappingProxyType)),
    (set, (set, frozenset)),
    (slice, (slice,)),
    (enum.Enum, (enum.Enum,)),
    (type, (type, types.FunctionType, types.BuiltinFunctionType, np.ufunc)),
    # From PyTensor 3.1 on inner graphs are of a class of their own.
    (FunctionGraph, (getattr(fg, "AbstractFunctionGraph", FunctionGraph),)),
    (Op, (Op,)),
    (MetaObject, (MetaObject,)),
)


@cache
def _kind(cls: type) -> type | None:
    """The kind of a class's objects.

    Classes are looked for among the bases: PyTensor's are abstract base classes, and each of these would ask
    all of its hundreds of subclasses about a class that it has not seen.
    """
    if dataclasses.is_dataclass(cls):
        return tuple
    bases = frozenset(cls.__mro__)
    found = next((kind for kind, classes in _KINDS if not bases.isdisjoint(classes)), None)
    return Mapping if found is None and issubclass(cls, Mapping) else found


@cache
def _props(cls: Any) -> Iterable[str] | None:
    """The attributes by which objects of a class compare, if it says so."""
    compares = next(base for base in cls.__mro__ if "__eq__" in base.__dict__)
    return compares.__props__ if "__props__" in compares.__dict__ else None


def _array(value: np.ndarray) -> str:
    data = np.ascontiguousarray(value)
    if data.nbytes <= 16:
        return f"{_dtype(value.dtype)}{value.shape}{data.tobytes().hex()}"
    return f"{_dtype(value.dtype)}{value.shape}{hashlib.blake2b(data.data, digest_size=20).hexdigest()}"


def _dtype(value: np.dtype) -> str:
    if value.hasobject or value.names is not None:
        raise Unidentified(value)
    return value.str


def _named(value: Variable) -> str:
    """A class or a function by its name, if it is part of a package with a version."""
    module = getattr(value, "__module__", None) or type(value).__module__
    name = getattr(value, "__qualname__", value.__name__)
    if module.partition(".")[0] not in _PACKAGES or "<" in name:
        raise Unidentified(value)
    return f"{module}.{name}"


def _query(described: _Description, query: object) -> str:
    """The rewrites of the database that are applied."""
    if not isinstance(query, RewriteDatabaseQuery) or query.extra_rewrites:
        raise Unidentified(query)
    groups = [sorted(group or ()) for group in (query.include, query.require, query.exclude)]
    subqueries = {name: _query(described, sub) for name, sub in (query.subquery or {}).items()}
    return described.value((groups, subqueries, query.position_cutoff))


def _rewrites(database: RewriteDatabase, query: RewriteDatabaseQuery) -> list[str]:
    """Rewrites that a query finds in a database and in those in it: others than PyTensor may register
    more.
    """
    found: dict[Variable, None] = {}
    for tag in query.include:
        found.update(dict.fromkeys(database.__db__.get(tag, ())))
    for tag in query.require:
        found = {rewriter: None for rewriter in found if rewriter in database.__db__.get(tag, ())}
    for tag in query.exclude:
        found = {rewriter: None for rewriter in found if rewriter not in database.__db__.get(tag, ())}
    positions = getattr(database, "__position__", {})
    lines = [f"{database.name}"]
    for rewriter in found:
        lines.append(f"{rewriter.name} {positions.get(rewriter.name)}")
        if isinstance(rewriter, RewriteDatabase):
            lines += _rewrites(rewriter, query.subquery.get(rewriter.name, query))
        else:
            lines.append(_rewriter(rewriter))
    return lines


def _rewriter(rewriter: Any) -> str:
    """A rewrite by its class and, where it has them, its function, its pattern or what it applies."""
    text = f"{rewriter.name} {_named(type(rewriter))}"
    if hasattr(rewriter, "in_pattern"):
        # Conditions of patterns show their addresses.
        text += _ADDRESS.sub("", f"{rewriter.in_pattern!s} {rewriter.out_pattern!s}")
    function = getattr(rewriter, "fn", None)
    if function is not None and getattr(function, "__module__", "").partition(".")[0] not in _PACKAGES:
        raise Unidentified(rewriter)
    inner = [getattr(rewriter, "node_rewriter", None), *(getattr(rewriter, "rewrites", None) or ())]
    return " ".join([text, *(_rewriter(part) for part in inner if isinstance(part, Rewriter))])


def _surroundings() -> str:
    """Versions and settings."""
    theirs = {name: getattr(pytensor.config, name) for name in _SETTINGS if hasattr(pytensor.config, name)}
    ours = {field.name: getattr(config, field.name) for field in dataclasses.fields(config)}
    ours = {name: value for name, value in ours.items() if name not in _NOT_CODE}
    return f"{_versions()};{toolchain()};{theirs};{ours}"


@cache
def _versions() -> str:
    found = []
    for package in ("pytensor", "pymc", "pymc_extras", "numpy", "scipy"):
        spec = importlib.util.find_spec(package)
        if spec is not None and spec.origin is not None:
            time = os.stat(spec.origin).st_mtime_ns
            found.append(f"{package} {_version(package)} {spec.origin} {time}")
    return ";".join(found)


def _version(package: str) -> str:
    """The version of an installed package. To have all of its metadata parsed takes milliseconds."""
    try:
        text = importlib.metadata.distribution(package).read_text("METADATA") or ""
    except importlib.metadata.PackageNotFoundError:
        return "unknown"
    head, _, _ = text.partition("\n\n")
    return next((line for line in head.splitlines() if line.startswith("Version:")), "unknown")
