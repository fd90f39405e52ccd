# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Matrix products that a library may compute where kernels are run: what launches say of them."""

from __future__ import annotations

import math
import string
from collections.abc import Sequence

from graphc.ir.types import dtype_of
from graphc.passes.gpu._nest import Operand
from graphc.passes.gpu._product import Product
from graphc_dialects._mlir import ir
from graphc_runtime.cuda.gemm import KINDS, is_small
from graphc_runtime.record import record

_ATTRIBUTE = "graphc.product"
# Sizes of grids and blocks are the first operands of launches.
_SIZES = 6
_BATCH = [letter for letter in string.ascii_lowercase if letter not in "ijk"]


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


def form_of(product: Product) -> str | None:
    """The axes of a product; None if no library takes it, or it is known to be too small for one."""
    nest = product.nest
    left, right, target = (dtype_of(operand.argument.type).name for operand in nest.operands)
    if left != right or (left, target) not in KINDS or len(product.batch) > len(_BATCH):
        return None
    sizes = [nest.static_extent(axis) for axis in range(nest.rank)]
    known = [size for size in sizes if size is not None]
    if len(known) == nest.rank and is_small(math.prod(known)):
        return None
    names = dict(zip(product.batch, _BATCH, strict=False))
    names |= {product.row: "i", product.column: "j", product.inner: "k"}
    one, two, three = (_axes(operand, names) for operand in nest.operands)
    return f"{one},{two}->{three}"


def _axes(operand: Operand, names: dict[int, str]) -> str:
    return "".join("." if axis is None else names[axis] for axis in operand.axes)


def mark(launches: Sequence[ir.Operation], product: Product, form: str, *, number: int, short: bool) -> None:
    """Notes on launches that they compute a product."""
    wide, flag = ir.IntegerType.get_signless(64), ir.IntegerType.get_signless(1)
    buffers = [operand.buffer for operand in product.nest.operands]
    for launch in launches:
        given = list(launch.operands)[_SIZES:]
        places = [given.index(buffer) for buffer in buffers]
        launch.attributes[_ATTRIBUTE] = ir.DictAttr.get(
            {
                "number": ir.IntegerAttr.get(wide, number),
                "launches": ir.IntegerAttr.get(wide, len(launches)),
                "form": ir.StringAttr.get(form),
                "short": ir.IntegerAttr.get(flag, short),
                "adds": ir.IntegerAttr.get(flag, product.adds),
                "arrays": ir.DenseI64ArrayAttr.get(places),
            }
        )


def unmark(attributes: dict[str, ir.Attribute]) -> None:
    """Takes the note away, from launches whose arguments become other ones."""
    attributes.pop(_ATTRIBUTE, None)


def product_of(launch: ir.Operation) -> LibraryProduct | None:
    """The product that a launch is a part of, if a library may compute it."""
    if launch.name != "gpu.launch_func" or _ATTRIBUTE not in launch.attributes:
        return None
    noted = ir.DictAttr(launch.attributes[_ATTRIBUTE])
    given = list(launch.operands)[_SIZES:]
    a, b, c = (given[place] for place in ir.DenseI64ArrayAttr(noted["arrays"]))
    number, launches = (ir.IntegerAttr(noted[name]).value for name in ("number", "launches"))
    short, adds = (bool(ir.IntegerAttr(noted[name]).value) for name in ("short", "adds"))
    return LibraryProduct(number, launches, ir.StringAttr(noted["form"]).value, short, adds, (a, b, c))


def groups(operations: Sequence[ir.Operation]) -> dict[ir.Operation, list[ir.Operation]]:
    """For the last launch of each product in a block all of its launches, and nothing for the others.

    Launches between which something else is asked of the device stay what they are.
    """
    found: dict[ir.Operation, list[ir.Operation]] = {}
    open_: list[ir.Operation] = []
    for op in operations:
        product = product_of(op)
        if product is None:
            if not op.name.startswith("arith.") and op.name not in _PURE:
                open_ = []
            continue
        first = product_of(open_[0]) if open_ else None
        if first is None or (first.number, first.form, first.arrays) != (
            product.number,
            product.form,
            product.arrays,
        ):
            open_ = []
        open_.append(op)
        if len(open_) == product.launches:
            found |= {launch: [] for launch in open_}
            found[op] = open_
            open_ = []
    return found


_PURE = frozenset(("memref.dim", "memref.reinterpret_cast", "memref.cast", "memref.extract_strided_metadata"))
