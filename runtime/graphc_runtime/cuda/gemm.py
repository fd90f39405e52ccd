# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Matrix products as a library takes them: matrices whose columns lie one after the other in memory.

An array in row-major order is, read so, its transpose. So the library is asked for the transpose of a
product, which is that of the transposes in the other order. What it does not take is left to kernels.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import TypeAlias

from graphc_runtime.cuda.array import DeviceArray
from graphc_runtime.errors import ArtifactError
from graphc_runtime.record import record

# Products with fewer multiplications and additions have kernels of ours: a launch of a few blocks.
LEAST = 1 << 21
# Factors, and sums.
KINDS = frozenset(
    [
        ("float16", "float32"),
        *((name, name) for name in ("float32", "float64", "complex64", "complex128")),
    ]
)
# Axes of the left side, of the right side, and of what is added to.
Axes: TypeAlias = tuple[str, str, str]
_ROW, _COLUMN, _INNER, _NONE = "i", "j", "k", "."
_SIDES = ((_ROW, _INNER), (_INNER, _COLUMN), (_ROW, _COLUMN))
# Per axis of a batch: its size, and how far the matrices of each side are apart.
_Apart: TypeAlias = tuple[int, int, int]


@record(frozen=True)
class Gemm:
    """C += op(A) op(B), or C = op(A) op(B), for some matrices, as the library takes it.

    Attributes:
        factors, sums: dtypes of A and B, and of C.
        sizes: rows and columns of C, and what is summed over.
        transposed: whether A and B are read as their transposes.
        leading: how far columns of A, B and C are apart, in elements.
        count: how many matrices each of them has.
        apart: how far these are apart, in elements.
        short: whether factors of float32 may be rounded to 10 bits.
        adds: whether the product is added to C.
    """

    factors: str
    sums: str
    sizes: tuple[int, int, int]
    transposed: tuple[bool, bool]
    leading: tuple[int, int, int]
    count: int = 1
    apart: tuple[int, int, int] = (0, 0, 0)
    short: bool = False
    adds: bool = True

    def __str__(self) -> str:
        m, n, k = self.sizes
        many = f"{self.count} times " if self.count > 1 else ""
        return f"{many}{m} by {k} times {k} by {n} numbers of {self.factors}, columns first"

    def stored(self) -> tuple[tuple[int, int], ...]:
        """Rows and columns of A, B and C as they lie in memory, columns one after the other."""
        m, n, k = self.sizes
        across_a, across_b = self.transposed
        return (k, m) if across_a else (m, k), (n, k) if across_b else (k, n), (m, n)


Asked: TypeAlias = tuple[Gemm, tuple[DeviceArray, DeviceArray, DeviceArray]]


def is_small(multiplications: int) -> bool:
    """True if so many multiplications are left to a kernel."""
    return multiplications < LEAST


def axes_of(form: str) -> Axes:
    """The axes of a product such as "hik,hkj->hij": i rows, j columns, k summed, others of a batch; of axes
    with "." only index 0 is used.

    Raises:
        ValueError: it is none.
    """
    sides, arrow, target = form.partition("->")
    left, comma, right = sides.partition(",")
    axes = left, right, target
    letters = [[axis for axis in part if axis != _NONE] for part in axes]
    if not arrow or not comma or any(len(set(part)) < len(part) for part in letters):
        raise ValueError(f"no form of a product: {form!r:.50}")
    inside = all(axis.isascii() and axis.islower() for part in letters for axis in part)
    for part, own in zip(letters, _SIDES, strict=True):
        others = {_ROW, _COLUMN, _INNER}.difference(own)
        inside = inside and set(own) <= set(part) and not others & set(part)
    if not inside or not set(left + right) - {_INNER, _NONE} <= set(target):
        raise ValueError(f"no form of a product: {form!r:.50}")
    return axes


def gemm_of(axes: Axes, arrays: Sequence[DeviceArray], *, short: bool, adds: bool) -> Asked | None:
    """Request to the library, and A, B and C; None if kernels do it.

    Args:
        axes: of the left side, the right side and the result.
        arrays: these.
        short, adds: see `graphc_runtime.cuda.schedule.Product`.

    Raises:
        ArtifactError: the arrays do not go together, or are larger than their memory.
    """
    sizes = _sizes(axes, arrays)
    if is_small(math.prod(sizes.values())) or _kind(arrays) not in KINDS:
        return None
    batch = _batch(axes, arrays, sizes)
    strides = [_strides(part, array) for part, array in zip(axes, arrays, strict=True)]
    left, right, target = (
        _stored(sizes[down], sizes[across], steps[down], steps[across])
        for steps, (down, across) in zip(strides, _SIDES, strict=True)
    )
    if batch is None or left is None or right is None or target is None:
        return None
    for array in arrays:
        _require_inside(array)
    count, apart = batch
    m, n, k = (sizes[axis] for axis in (_ROW, _COLUMN, _INNER))
    a, b, c = arrays
    factors, sums = _kind(arrays)
    rounds = short and factors == "float32"
    if target[1]:
        # Its columns lie one after the other, as the library has them.
        leading = left[0], right[0], target[0]
        across = not left[1], not right[1]
        return Gemm(factors, sums, (m, n, k), across, leading, count, apart, rounds, adds), (a, b, c)
    leading = right[0], left[0], target[0]
    apart = apart[1], apart[0], apart[2]
    across = right[1], left[1]
    return Gemm(factors, sums, (n, m, k), across, leading, count, apart, rounds, adds), (b, a, c)


def _kind(arrays: Sequence[DeviceArray]) -> tuple[str, str]:
    left, right, target = (array.dtype.name for array in arrays)
    return (left if left == right else "", target)


def _sizes(axes: Axes, arrays: Sequence[DeviceArray]) -> dict[str, int]:
    sizes: dict[str, int] = {}
    for part, array in zip(axes, arrays, strict=True):
        if len(part) != len(array.shape):
            raise ArtifactError(f"the schedule multiplies an array of shape {array.shape} with axes {part!r}")
        for axis, size in zip(part, array.shape, strict=True):
            if axis != _NONE and sizes.setdefault(axis, size) != size:
                raise ArtifactError(
                    f"the schedule multiplies arrays with {sizes[axis]} and {size} of the axis {axis!r}"
                )
    return sizes


def _strides(part: str, array: DeviceArray) -> dict[str, int]:
    return dict(zip(part, array.strides, strict=True))


def _stored(rows: int, columns: int, down: int, across: int) -> tuple[int, bool] | None:
    """Distance of rows, or columns, and whether it is of columns; None if they do not lie so."""
    if (columns == 1 or across == 1) and (rows == 1 or down >= columns):
        return (down if rows > 1 else columns), False
    if (rows == 1 or down == 1) and (columns == 1 or across >= rows):
        return (across if columns > 1 else rows), True
    return None


def _batch(
    axes: Axes, arrays: Sequence[DeviceArray], sizes: dict[str, int]
) -> tuple[int, tuple[int, int, int]] | None:
    """Number of matrices and their distance; None if no one distance says that."""
    strides = [_strides(part, array) for part, array in zip(axes, arrays, strict=True)]
    names = [axis for axis in axes[2] if axis not in (_ROW, _COLUMN, _NONE) and sizes[axis] > 1]
    found: list[tuple[int, _Apart]] = []
    for axis in names:
        left, right, target = (steps.get(axis, 0) for steps in strides)
        found.append((sizes[axis], (left, right, target)))
    # Those that are farthest apart in the result first.
    found.sort(key=lambda each: -each[1][2])
    while len(found) > 1:
        (outer, far), (inner, near) = found[-2:]
        if any(x != y * inner for x, y in zip(far, near, strict=True)):
            return None
        found[-2:] = [(outer * inner, near)]
    if not found:
        return 1, (0, 0, 0)
    ((count, apart),) = found
    return (count, apart) if min(apart) >= 0 and apart[2] > 0 else None


def _require_inside(array: DeviceArray) -> None:
    """Looks whether an array lies in its memory.

    Raises:
        ArtifactError: it does not.
    """
    pairs = zip(array.shape, array.strides, strict=True)
    last = array.offset + sum((size - 1) * stride for size, stride in pairs)
    if array.offset < 0 or (last + 1) * array.dtype.itemsize > array.memory.nbytes:
        raise ArtifactError(
            f"the schedule multiplies an array of shape {array.shape} with strides {array.strides} from "
            f"{array.offset} on in {array.memory.nbytes} bytes"
        )
