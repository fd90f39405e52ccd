# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Matrix products of a library that is not there, on the memory of a simulated device.

Sums are made in float64 and rounded once, where the library adds up in an order of its own.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from graphc_runtime.cuda.gemm import KINDS, Gemm
from graphc_tools.gpu.memory import BoundsError, LaunchError, Memory, UninitialisedError


def check(gemm: Gemm) -> None:
    """Refuses what the library refuses.

    Raises:
        LaunchError: a size or a distance is out of range, or the dtypes do not go together.
    """
    if (gemm.factors, gemm.sums) not in KINDS:
        raise LaunchError(f"the library multiplies no {gemm.factors} to {gemm.sums}")
    if min(*gemm.sizes, gemm.count) < 1:
        raise LaunchError(f"the library is asked for a product without elements: {gemm}")
    for (rows, _), leading, name in zip(gemm.stored(), gemm.leading, "ABC", strict=True):
        if leading < rows:
            raise LaunchError(f"columns of {name} have {rows} elements and are {leading} apart: {gemm}")
    if min(gemm.apart) < 0 or (gemm.count > 1 and not gemm.apart[2]):
        raise LaunchError(f"the matrices of a batch are {gemm.apart} apart: {gemm}")
    if gemm.short and gemm.factors != "float32":
        raise LaunchError(f"only factors of float32 are rounded: {gemm}")


def multiply(memory: Memory, gemm: Gemm, addresses: Sequence[int]) -> None:
    """Adds the product to C, or stores it there.

    Raises:
        BoundsError: a matrix is not within its memory.
        UninitialisedError: an element of a matrix has not been written.
        LaunchError: C shares memory with A or B, or its matrices do with each other.
    """
    places = [
        _places(memory, gemm, number, address) for number, address in zip(range(3), addresses, strict=True)
    ]
    dtypes = [np.dtype(gemm.factors)] * 2 + [np.dtype(gemm.sums)]
    a, b = (_read(memory, *place, dtypes[0]) for place in places[:2])
    written = _addresses(*places[2])
    if len(np.unique(written)) < written.size or any(
        np.isin(written, _addresses(*place)).any() for place in places[:2]
    ):
        raise LaunchError(f"the result of a product shares memory: {gemm}")
    if gemm.short:
        a, b = _rounded(a), _rounded(b)
    wide = np.complex128 if dtypes[2].kind == "c" else np.float64
    first, second = (
        matrices.swapaxes(1, 2) if across else matrices
        for matrices, across in zip((a, b), gemm.transposed, strict=True)
    )
    # What becomes infinite or NaN does so without a word on a device.
    with np.errstate(all="ignore"):
        total = first.astype(wide) @ second.astype(wide)
        if gemm.adds:
            total = total + _read(memory, *places[2], dtypes[2])
        _write(memory, *places[2], total.astype(dtypes[2]))


# An address, and where bytes begin beyond it, of each element.
_Place = tuple[int, np.ndarray]


def _places(memory: Memory, gemm: Gemm, number: int, address: int) -> _Place:
    rows, columns = gemm.stored()[number]
    itemsize = np.dtype(gemm.sums if number == 2 else gemm.factors).itemsize
    matrix, column, row = np.ogrid[: gemm.count, :columns, :rows]
    elements = (matrix * gemm.apart[number] + column * gemm.leading[number] + row).swapaxes(1, 2)
    region = memory.find(address)
    name = "ABC"[number]
    if region is None or address % itemsize:
        raise BoundsError(f"{name} of a product is at {address:#x}, where nothing lives or begins: {gemm}")
    places = elements * itemsize + (address - region.address)
    if int(places.max()) + itemsize > region.data.size:
        raise BoundsError(
            f"{name} of a product ends at byte {int(places.max()) + itemsize} of {region.name}: {gemm}"
        )
    return region.address, places


def _bytes(places: np.ndarray, itemsize: int) -> np.ndarray:
    return places[..., None] + np.arange(itemsize)


def _read(memory: Memory, address: int, places: np.ndarray, dtype: np.dtype) -> np.ndarray:
    region, at = memory.regions[address], _bytes(places, dtype.itemsize)
    if not region.initialised[at].all():
        raise UninitialisedError(f"a product reads {region.name}, not all of which has been written")
    return region.data[at].view(dtype)[..., 0]


def _write(memory: Memory, address: int, places: np.ndarray, values: np.ndarray) -> None:
    region, at = memory.regions[address], _bytes(places, values.dtype.itemsize)
    region.data[at] = np.ascontiguousarray(values)[..., None].view(np.uint8)
    region.initialised[at] = True


def _addresses(address: int, places: np.ndarray) -> np.ndarray:
    return address + places.reshape(-1)


def _rounded(values: np.ndarray) -> np.ndarray:
    """Floats with 10 bits of their digits: to nearest, ties away from 0, infinities and NaN as they are."""
    bits = np.ascontiguousarray(values).view(np.uint32)
    nearest = ((bits + np.uint32(0x1000)) & np.uint32(0xFFFFE000)).view(np.float32)
    return np.where(np.isfinite(values), nearest, values)
