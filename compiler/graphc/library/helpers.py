# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Functions that a kernel calls and this package defines: their names, and what their code depends on.

A declaration in a module says which of these it is (`graphc.ir.helpers` writes and reads the attribute), so
nothing is read out of a function's name.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace
from typing import ClassVar, TypeVar

from graphc_runtime.record import record

_H = TypeVar("_H", bound="Helper")


@record(frozen=True)
class Helper:
    """A function that a kernel declares.

    Attributes:
        takes_memory: whether it takes memory for the call, and gives 0 where there is none.
        gives_status: whether the kernel ends with its result if that is not 0.
        assumes: what callers may assume of a call, as attributes of the llvm dialect.
    """

    takes_memory: ClassVar[bool] = False
    gives_status: ClassVar[bool] = False
    assumes: ClassVar[str] = ""
    # The function's name, of the attributes; kinds whose names need more define `symbol`.
    named: ClassVar[str]

    @property
    def symbol(self) -> str:
        """The function's name."""
        return self.named.format(self)

    def merged(self, other: Helper) -> Helper:
        """A helper that serves callers of both; they have one name."""
        assert self == other, f"{self.symbol} is two functions"
        return self


def of_kind(helpers: Iterable[Helper], kind: type[_H]) -> list[_H]:
    """Those of one kind, each once, by name."""
    found = {helper.symbol: helper for helper in helpers if isinstance(helper, kind)}
    return [found[symbol] for symbol in sorted(found)]


def _effects(**known: str) -> str:
    places = ("other", "argMem", "inaccessibleMem", "errnoMem", "targetMem0", "targetMem1")
    listed = ", ".join(f"{place} = {known.get(place, 'none')}" for place in places)
    return f"llvm.memory_effects = #llvm.memory_effects<{listed}>"


# What they touch of memory is what their arguments point at, or nothing that kernels know.
_ARGUMENTS_ONLY = _effects(argMem="readwrite", inaccessibleMem="readwrite")
# Calls whose result nobody reads go, and those of equal operands are one.
PURE = f"llvm.no_unwind, llvm.will_return, {_effects()}"


@record(frozen=True)
class BlockProduct(Helper):
    """A product of matrices whose sizes are known (`graphc.library.products`).

    Attributes:
        letter: BLAS's for the element type, as in `Gemm`.
        sizes: rows and columns of the result, and the number of products that each element is the sum of.
        transposed: which of the two matrices are.
    """

    letter: str
    sizes: tuple[int, int, int]
    transposed: tuple[bool, bool]
    assumes: ClassVar[str] = f"llvm.no_unwind, llvm.will_return, {_ARGUMENTS_ONLY}"

    @property
    def symbol(self) -> str:
        sizes = "_".join(map(str, self.sizes))
        return f"graphc_{self.letter}block_{sizes}_{''.join('nt'[flag] for flag in self.transposed)}"


@record(frozen=True)
class Gemm(Helper):
    """A product of matrices of any size (`graphc.library.products.blas`).

    Attributes:
        letter: s, d, c or z.
        packs: whether some call has its second matrix transposed.
    """

    letter: str
    packs: bool
    assumes: ClassVar[str] = BlockProduct.assumes
    named: ClassVar[str] = "graphc_{0.letter}gemm"

    def merged(self, other: Helper) -> Helper:
        assert isinstance(other, Gemm)
        return replace(self, packs=self.packs or other.packs)


@record(frozen=True)
class KernelCall(Helper):
    """A kernel of the library over a batch (`graphc.library.define`).

    Attributes:
        name: the kernel.
        types: of operands and results, as the kernel language names them.
        keywords, values: its attributes.
    """

    name: str
    types: tuple[str, ...]
    keywords: tuple[str, ...]
    values: tuple[int, ...]

    @property
    def may_fail(self) -> bool:
        """True if its attributes leave open that an element of the batch is an error."""
        return dict(zip(self.keywords, self.values, strict=True)).get("check", 1) != 0

    @property
    def symbol(self) -> str:
        pairs = zip(self.keywords, self.values, strict=True)
        flags = "-".join(f"{key}-{value}".replace("--", "-m") for key, value in pairs)
        return f"graphc_kernel.{self.name}.{'-'.join(self.types)}.{flags}"


@record(frozen=True)
class ScalarCall(Helper):
    """A scalar kernel (`graphc.library.scalars`).

    Attributes:
        name: of the kernel.
        operands: how many numbers it takes.
        whole: whether these are integers.
    """

    name: str
    operands: int
    whole: bool
    assumes: ClassVar[str] = PURE
    named: ClassVar[str] = "graphc_scalar.{0.name}"


@record(frozen=True)
class Draws(Helper):
    """Random draws (`graphc.library.random`)."""

    generator: str
    distribution: str
    named: ClassVar[str] = "graphc_random_{0.generator}_{0.distribution}"


@record(frozen=True)
class Poll(Helper):
    """The function that notices Ctrl-C (`graphc.library.interrupts`)."""

    gives_status: ClassVar[bool] = True
    assumes: ClassVar[str] = f"llvm.no_unwind, {_ARGUMENTS_ONLY}"
    named: ClassVar[str] = "graphc_tick"


@record(frozen=True)
class Progress(Poll):
    """A poll that reports how far a loop is.

    Attributes:
        loop: its name.
    """

    loop: str

    @property
    def symbol(self) -> str:
        return f"graphc_progress_{self.loop.encode().hex()}"


@record(frozen=True)
class LibraryFound(Helper):
    """In host code for a device: true if a library of the device's vendor is there.

    Attributes:
        library: its name (`graphc_runtime.cuda.libraries.LIBRARIES`).
    """

    library: str
    named: ClassVar[str] = "graphc_found.{0.library}"


@record(frozen=True)
class LibraryAsked(Helper):
    """In host code for a device: a request to a library of its vendor, of arrays, numbers and a count.

    Attributes:
        routine: its name (`graphc_runtime.cuda.libraries.ROUTINES`).
    """

    routine: str
    named: ClassVar[str] = "graphc_ask.{0.routine}"


@record(frozen=True)
class Arena(Helper):
    """The functions that mark a place in the call's arena, or give back what was taken since."""

    name: str
    assumes: ClassVar[str] = "llvm.no_unwind"
    named: ClassVar[str] = "graphc_{0.name}"


@record(frozen=True)
class Workspace(Helper):
    """The function that takes the memory of a workspace (`graphc.library.workspace`).

    Attributes:
        number: of the workspace.
        planned: whether its size is found when the kernel runs.
    """

    number: int
    planned: bool
    takes_memory: ClassVar[bool] = True
    assumes: ClassVar[str] = "llvm.no_unwind"

    @property
    def symbol(self) -> str:
        return f"graphc_{'plan' if self.planned else 'workspace'}_{self.number}"


@record(frozen=True)
class Allocation(Helper):
    """The function that takes memory of the call's arena."""

    takes_memory: ClassVar[bool] = True
    assumes: ClassVar[str] = "llvm.no_unwind"
    named: ClassVar[str] = "graphc_alloc"


@record(frozen=True)
class Split(Helper):
    """The function that shares the ranges of a loop (`graphc.library.pool`).

    Attributes:
        number: of the loop's body.
        products: whether an iteration is a product of matrices of any size.
    """

    number: int
    products: bool

    @property
    def symbol(self) -> str:
        return f"graphc_split_{'products_' if self.products else ''}{self.number}"

    @property
    def body(self) -> str:
        """The function that does a range of the loop."""
        return f"graphc_body_{self.number}"

    @property
    def range(self) -> str:
        """The function that threads call for a range: it takes from memory what the body captures."""
        return f"graphc_range_{self.number}"


@record(frozen=True)
class ProfileCall(Helper):
    """The function that measures time (`graphc.library.profile`).

    Attributes:
        name: "begin", "enter" or "leave".
        slots: how many counters there are.
    """

    name: str
    slots: int
    assumes: ClassVar[str] = f"llvm.no_unwind, llvm.will_return, {_effects(inaccessibleMem='readwrite')}"

    @property
    def symbol(self) -> str:
        return f"graphc_profile_{self.name}"


# What takes the call's context before its other arguments.
CONTEXT = (Poll, Arena, Workspace)
KINDS: dict[str, type[Helper]] = {
    "block product": BlockProduct,
    "product": Gemm,
    "kernel": KernelCall,
    "scalar": ScalarCall,
    "draws": Draws,
    "poll": Poll,
    "progress": Progress,
    "library found": LibraryFound,
    "library asked": LibraryAsked,
    "arena": Arena,
    "workspace": Workspace,
    "allocation": Allocation,
    "split": Split,
    "profile": ProfileCall,
}
