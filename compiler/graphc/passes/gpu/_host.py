# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Code of the host between launches: its loops, its arithmetic (integers of 64 bits, and conditions), and the
calls of library kernels for which passes write kernels of a device.

What a call takes as pointers are `graphc.address` operations of buffers; kernels take the buffers as they
lie, with their strides.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from typing import TypeVar

import numpy as np

from graphc.ir import build, plain
from graphc.ir.diagnostics import fail
from graphc.ir.helpers import callee_of, declared
from graphc.ir.value import as_index
from graphc.ir.walk import blocks_of, definition, functions, is_used, walk
from graphc.library.helpers import KernelCall
from graphc.lowering.calls import ADDRESS
from graphc.passes.gpu._kernel import allocate
from graphc_dialects._mlir import ir
from graphc_runtime.index_arithmetic import COMPARISONS
from graphc_runtime.record import record

# Index arithmetic, whose names are those of `Compute`.
ARITHMETIC = frozenset(
    "addi subi muli divsi floordivsi ceildivsi remsi minsi maxsi andi ori xori select".split()
)
# What never differs for sizes, which are not negative.
UNSIGNED = {"divui": "divsi", "remui": "remsi", "minui": "minsi", "maxui": "maxsi", "ceildivui": "ceildivsi"}
PREDICATES = tuple(COMPARISONS)
# What changes nothing for numbers that the host has.
SAME = frozenset(("arith.index_cast", "arith.extsi", "arith.extui", "arith.index_castui"))

_PURE = ("arith.", "math.", "complex.")
# Their operands' bits are what decides, of whatever width.
_OF_ANY_WIDTH = ("andi", "ori", "xori", "select")


def is_arithmetic(op: ir.Operation) -> bool:
    """True if an operation gives numbers that depend on nothing but its operands."""
    return op.name.startswith(_PURE)


def is_of_host(op: ir.Operation) -> bool:
    """True if the host has the arithmetic of an operation on numbers, and so need not ask the device."""
    if op.name in ("arith.constant", "complex.constant"):
        return True
    dialect, _, name = op.name.partition(".")
    if dialect != "arith":
        return False
    if op.name in SAME:
        return name != "extui" or _width(op.operands[0].type) == 1
    if name == "cmpi" or name in _OF_ANY_WIDTH:
        return True
    return name in ARITHMETIC | UNSIGNED.keys() and _width(op.results[0].type) == 64


def _width(kind: ir.Type) -> int:
    return 64 if isinstance(kind, ir.IndexType) else ir.IntegerType(kind).width


_T = TypeVar("_T")
_REGIONS = ("scf.for", "scf.while", "scf.if")


def host_blocks(function: ir.Operation) -> list[ir.Block]:
    """The blocks of a function of the host, in its loops and conditionals, too."""
    found = list(function.regions[0].blocks)
    for block in found:
        for op in block.operations:
            if op.operation.name in _REGIONS:
                found += blocks_of(op.operation)
    return found


def host_operations(module: ir.Module, *names: str) -> list[ir.Operation]:
    """The operations of the host that have one of some names."""
    return [op for function in functions(module) for op in walk(function) if op.name in names]


def replace_loops(
    module: ir.Module,
    found: Callable[[ir.Operation], _T | None],
    replace: Callable[[_T], None],
    names: Sequence[str] = ("scf.for",),
) -> int:
    """Replaces the loops of the host, operations of some names, and all that is inside of them, outer ones
    first: those that are something that is looked for, which the other function takes. Gives how many.
    """
    count = 0
    blocks = [block for function in functions(module) for block in function.regions[0].blocks]
    while blocks:
        for op in [op.operation for op in blocks.pop(0).operations]:
            if op.name in names and (known := found(op)) is not None:
                replace(known)
                count += 1
            elif op.name in _REGIONS:
                blocks += blocks_of(op)
    return count


class HostLoop:
    """The parts of an `scf.for`: what it is given (`lower`, `upper`, `step`, `initial`), what an iteration is
    given (`index`, `carried`), its operations without the last one (`body`), and what it hands on (`yields`).
    """

    def __init__(self, op: ir.Operation) -> None:
        self.op = op
        self.lower, self.upper, self.step, *self.initial = op.operands
        self.index, *self.carried = op.regions[0].blocks[0].arguments
        *self.body, end = [inner.operation for inner in op.regions[0].blocks[0].operations]
        self.yields: list[ir.Value] = list(end.operands)

    @property
    def starts(self) -> dict[ir.Value, ir.Value]:
        """The initial values of those that are carried."""
        return dict(zip(self.carried, self.initial, strict=True))

    @property
    def carries_arrays(self) -> bool:
        """True if nothing else is carried."""
        return all(isinstance(value.type, ir.MemRefType) for value in self.carried)

    def arrays(self, sizes: Callable[[int], Sequence[ir.Value]]) -> dict[int, ir.Value]:
        """New arrays of the device for results that are used, by their numbers, which stand for them."""
        found: dict[int, ir.Value] = {}
        for number, result in enumerate(self.op.results):
            if is_used(result):
                found[number] = allocate(sizes(number), ir.MemRefType(result.type).element_type)
                cast = build.create("memref.cast", [result.type], [found[number]]).result
                result.replace_all_uses_with(cast)
        return found


# -- calls of library kernels -----------------------------------------------------------------------------

_KINDS = {"i": "int", "u": "uint", "f": "float", "c": "complex"}


@record(frozen=True)
class LibraryCall:
    """A call of a kernel, with its buffers (operands, results, and memory to work with where the kernel asks
    for it) and numbers (sizes and so on, as indices).
    """

    op: ir.Operation
    kernel: KernelCall
    buffers: Sequence[ir.Value]
    numbers: Sequence[ir.Value]

    @property
    def dtypes(self) -> list[np.dtype]:
        """Of operands and results."""
        return [dtype_named(name) for name in self.kernel.types]

    def attribute(self, name: str) -> int:
        """One of the kernel's attributes."""
        if name not in self.kernel.keywords:
            fail(self.op, f"'{self.kernel.name}' is declared without its attribute '{name}'")
        return self.kernel.values[self.kernel.keywords.index(name)]

    def erase(self) -> None:
        """Erases the call, whose results nobody may use, and the pointers that only it used."""
        pointers = [x.owner for x in self.op.operands if is_address(x)]
        self.op.erase()
        for pointer in dict.fromkeys(pointers):
            if not is_used(pointer.results[0]):
                pointer.operation.erase()


def calls_of(module: ir.Module, names: Iterable[str]) -> list[LibraryCall]:
    """The calls of kernels with some names; indices for their numbers are made where they are."""
    wanted = frozenset(names)
    kernels = {
        symbol: helper
        for symbol, helper in declared(module).items()
        if isinstance(helper, KernelCall) and helper.name in wanted
    }
    if not kernels:
        return []
    found = []
    for op in host_operations(module, "func.call"):
        if (kernel := kernels.get(callee_of(op))) is not None:
            for name in kernel.types:
                try:
                    dtype_named(name)
                except (TypeError, KeyError, IndexError):
                    fail(op, f"'{kernel.name}' is declared with a type '{name}', which kernels do not have")
            buffers = [x.owner.operands[0] for x in op.operands if is_address(x)]
            with ir.InsertionPoint(op), op.location:
                numbers = [_index(x) for x in op.operands if not is_address(x)]
            found.append(LibraryCall(op, kernel, buffers, numbers))
    return found


def dtype_named(name: str) -> np.dtype:
    """The dtype of a type of the kernel language."""
    return np.dtype("bool" if name == "bool" else f"{_KINDS[name[0]]}{name[1:]}")


def is_address(value: ir.Value) -> bool:
    """True if a value is the address of a buffer, for a call."""
    return definition(value, ADDRESS) is not None


def _index(number: ir.Value) -> ir.Value:
    """The index that was cast to a number."""
    cast, known = definition(number, "arith.index_cast"), build.constant_value(number)
    if cast is not None and isinstance(cast.operands[0].type, ir.IndexType):
        return cast.operands[0]
    return as_index(number if known is None else known)


# -- launches of products that a library may compute -------------------------------------------------------

_ATTRIBUTE = "graphc.product"
# Sizes of grids and blocks are the first operands of launches.
SIZES = 6


@record(frozen=True)
class LibraryProduct:
    """A product that some launches compute, one after the other.

    Attributes:
        number: which one it is.
        launches: how many there are.
        form: its axes, see `graphc_runtime.cuda.gemm.axes_of`.
        short: whether factors of float32 may be rounded to 10 bits.
        adds: whether the result is added to what there is.
        arrays: left side, right side and result.
    """

    number: int
    launches: int
    form: str
    short: bool
    adds: bool
    arrays: tuple[ir.Value, ir.Value, ir.Value]


def mark(launches: Sequence[ir.Operation], arrays: Sequence[ir.Value], **said: str | int) -> None:
    """Notes on launches that they compute a product: of which arrays, and what else `LibraryProduct` says."""
    for launch in launches:
        given = list(launch.operands)[SIZES:]
        places = [given.index(array) for array in arrays]
        launch.attributes[_ATTRIBUTE] = plain.write({**said, "launches": len(launches), "arrays": places})


def product_of(launch: ir.Operation) -> LibraryProduct | None:
    """The product that a launch is a part of, if a library may compute it."""
    if launch.name != "gpu.launch_func" or _ATTRIBUTE not in launch.attributes:
        return None
    noted = plain.read(launch.attributes[_ATTRIBUTE])
    a, b, c = (launch.operands[SIZES + place] for place in noted.pop("arrays"))
    return LibraryProduct(**noted, arrays=(a, b, c))


def groups(operations: Sequence[ir.Operation]) -> dict[ir.Operation, list[ir.Operation]]:
    """For the last launch of each product in a block all of its launches, and nothing for the others.

    Launches between which something else is asked of the device stay what they are.
    """
    found: dict[ir.Operation, list[ir.Operation]] = {}
    open_: list[ir.Operation] = []
    for op in operations:
        product = product_of(op)
        if product is None:
            if not op.name.startswith("arith.") and op.name not in _VIEWS:
                open_ = []
            continue
        if open_ and product_of(open_[0]) != product:
            open_ = []
        open_.append(op)
        if len(open_) == product.launches:
            found |= {launch: [] for launch in open_}
            found[op] = open_
            open_ = []
    return found


_VIEWS = frozenset(
    ("memref.dim", "memref.reinterpret_cast", "memref.cast", "memref.extract_strided_metadata")
)
