# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Traits of structured operations: tables from names to rules, which passes ask and so know no names.

A table is filled by the files of this folder, one a family, which are imported when it is first asked. Rules
of `graphc.random` stand here. Operations of which all is said by a table of their own (elementwise, kernels)
have none.
"""

from __future__ import annotations

import importlib
from collections.abc import Callable, Iterable, Iterator, Sequence
from functools import cache
from typing import TYPE_CHECKING, Any, Generic, Protocol, TypeVar

from graphc.names import modules_below
from graphc_dialects._mlir import ir
from graphc_runtime.record import record

if TYPE_CHECKING:
    from graphc.ir.dims import DimKeys
    from graphc.ir.parts import LiftRule


R = TypeVar("R")


@cache
def load_families(package: str) -> None:
    """Imports every file of a package, which registers what it says of its operations."""
    for name in modules_below(package):
        importlib.import_module(name)


class Trait(Generic[R]):
    """Rules by operation name.

    Args:
        package: whose files register rules.
    """

    def __init__(self, package: str = "graphc.ir.traits") -> None:
        self._package = package
        self._rules: dict[str, R] = {}

    def __call__(self, *names: str) -> Callable[[R], R]:
        """A decorator that registers a rule for operations, such as `"graphc.take"`.

        Raises:
            ValueError: one of them has a rule already.
        """

        def register(rule: R) -> R:
            for name in names:
                if self._rules.setdefault(name, rule) is not rule:
                    raise ValueError(f"{name} has two rules: {self._rules[name]} and {rule}")
            return rule

        return register

    def get(self, name: str) -> R | None:
        """The rule of an operation, None if it has none."""
        load_families(self._package)
        return self._rules.get(name)

    def __contains__(self, name: str) -> bool:
        load_families(self._package)
        return name in self._rules

    def __iter__(self) -> Iterator[str]:
        load_families(self._package)
        return iter(self._rules)


class Marker:
    """A set of operation names. To ask costs little more than to compare a name.

    Args:
        package: whose files add names.
    """

    def __init__(self, package: str = "graphc.ir.traits") -> None:
        self._package = package
        self._names: set[str] = set()

    def __call__(self, *names: str) -> None:
        """Marks operations."""
        self._names.update(names)

    def __contains__(self, name: object) -> bool:
        self._load()
        return name in self._names

    def __iter__(self) -> Iterator[str]:
        self._load()
        return iter(self._names)

    def _load(self) -> None:
        load_families(self._package)
        if type(self).__contains__ is Marker.__contains__:
            # Passes ask a hundred thousand times: from here on without a function of Python.
            own = {"__contains__": self._names.__contains__, "__iter__": self._names.__iter__}
            self.__class__ = type("Marker", (type(self),), own)


# A dimension of a tensor, or an index value, whose axis is -1.
Dimension = tuple[ir.Value, int]
# What each dimension of a result is as long as. The first names it (graphc.ir.dims); without any, it
# is not known to be as long as anything else.
Sizes = list[tuple[Dimension, ...]]
SIZES: Trait[Callable[[ir.Operation], Sizes]] = Trait()


def sizes_of(x: ir.Value) -> Sizes:
    """`SIZES` of a result with the shape of a tensor."""
    return [((x, axis),) for axis in range(len(x.type.shape))]


def broadcast_sizes(op: ir.Operation) -> Sizes:
    """`SIZES` of a result whose operands of equal rank broadcast.

    Where all of them have size 1, so has the result, even if its type does not say so.
    """
    operands = list(op.operands)
    wide = [
        [x for x, size in zip(operands, sizes, strict=True) if size != 1] or operands[:1]
        for sizes in zip(*(x.type.shape for x in operands), strict=True)
    ]
    return [tuple((x, axis) for x in xs) for axis, xs in enumerate(wide)]


def given_sizes(values: Iterable[ir.Value]) -> Sizes:
    """`SIZES` of a result whose sizes are index values."""
    return [((value, -1),) for value in values]


# NumPy semantics: the result for arrays, and ints for index operands (graphc.ir.references).
REFERENCE: Trait[Callable[..., Any]] = Trait()

# Which parts of its operands it needs for parts of its result (lift-slices).
PARTS: Trait[LiftRule] = Trait()

# Whether rows of its results are worth to be kept, or to be computed for all iterations at once: a product,
# a function of many elements. Arithmetic is not: an iteration does it in the time it takes to load a row.
EXPENSIVE: Trait[Callable[[ir.Operation], bool]] = Trait()

# They read by position. A check before them may be what keeps the position in range.
POSITIONAL = Marker()

# They take from a stream how much depends on what they find there, so that parts of them cannot be computed
# at the same time.
SEQUENTIAL = Marker()


def always_expensive(op: ir.Operation) -> bool:
    """`EXPENSIVE` of operations that always are."""
    return True


class CannotBatch(Exception):
    """A value cannot be computed for all iterations at once, outside of the loop."""


@record(frozen=True)
class Batch:
    """A value of the body, outside.

    Attributes:
        value: a tensor; a stack has rows along its first axis.
        stacked: whether it is a stack, and not the same in all iterations.
    """

    value: ir.Value
    stacked: bool


class Batching(Protocol):
    """Builder of stacks before a loop (`graphc.passes.loops._batch` has the one there is)."""

    rows: ir.Value
    static_rows: int
    dims: DimKeys

    @property
    def checked_in_body(self) -> bool:
        """True if bounds may rely on a check that is made in the body."""

    def create(
        self, name: str, operands: Sequence[ir.Value], type_: ir.Type, **attributes: ir.Attribute
    ) -> ir.Value:
        """The result of a new operation."""

    def stack_type(self, row: ir.Type) -> ir.RankedTensorType:
        """The type of a stack of rows of a type."""

    def cast(self, value: ir.Value, type_: ir.Type) -> ir.Value:
        """`tensor.cast` where types differ in what is static."""

    def index(self, value: ir.Value) -> ir.Value:
        """An index value of the body that does not depend on the iteration."""

    def size(self, value: ir.Value) -> ir.Value:
        """Such an index value that is asked for as a size: 0 instead of a negative one without rows."""

    def dimshuffle(self, value: ir.Value, order: Sequence[int]) -> ir.Value:
        """`graphc.dimshuffle`; nothing if nothing changes."""

    def reshape(self, value: ir.Value, sizes: Sequence[ir.Value], shape: Sequence[int]) -> ir.Value:
        """`graphc.reshape` to index values whose static values, where known, are `shape`."""

    def repeated(self, batch: Batch) -> ir.Value:
        """A stack; that of an invariant has equal rows."""

    def fit(self, stack: ir.Value, axis: int, size: ir.Value) -> ir.Value:
        """The stack, with `size` along an axis if there are no rows, and as it is if there are."""

    def agreeing(self, batches: Sequence[Batch], axes: Sequence[int] | None = None) -> list[ir.Value]:
        """Operands of an operation that needs equal sizes (along `axes`, by default all)."""


# The stack of a result for operands of which at least one is a stack (scan-to-map and its like).
BATCH: Trait[Callable[[Batching, ir.Operation, list[Batch]], ir.Value]] = Trait()


RANDOM = "graphc.random"
SEQUENTIAL(RANDOM)


@SIZES(RANDOM)
def _sizes(op: ir.Operation) -> Sizes:
    return given_sizes(list(op.operands)[1 + len(list(op.attributes["cores"])) :])
