# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""The vendor's libraries that are not there, on the memory of a simulated device.

Products are added up in float64 and rounded once, where the library adds up in an order of its own; all else
is NumPy's and SciPy's. Results leave in memory what the libraries leave there, and nonsense where these make
no promise. `ROUTINES` has what each routine does with arrays as it sees them, columns side by side.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence

import numpy as np
import scipy.linalg

from graphc_runtime.cuda import libraries
from graphc_runtime.cuda.gemm import KINDS, Gemm
from graphc_runtime.cuda.libraries import Request
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


# -- routines -----------------------------------------------------------------------------------------------

# What memory has where nobody has promised anything.
_NONSENSE = 1e30
Numbers = dict[str, int]
# Numbers by name, and arrays in order, flat; they are changed in place.
Does = Callable[..., None]


def _matrix(array: np.ndarray, rows: int, columns: int, apart: int) -> np.ndarray:
    """A view of a matrix whose columns are `apart`."""
    return np.lib.stride_tricks.as_strided(
        array, (rows, columns), (array.itemsize, apart * array.itemsize), writeable=True
    )


def _potrf(numbers: Numbers, a: np.ndarray, info: np.ndarray) -> None:
    n, upper = numbers["n"], numbers["upper"]
    matrix = _matrix(a, n, n, numbers["lda"])
    half = np.triu(matrix) if upper else np.tril(matrix)
    whole = half + half.T - np.diag(np.diag(half))
    other = np.tri(n, k=-1, dtype=bool) if upper else ~np.tri(n, dtype=bool)
    try:
        factor = np.linalg.cholesky(whole)
    except np.linalg.LinAlgError:
        matrix[...], info[0] = _NONSENSE, n
        return
    matrix[...] = np.where(other, _NONSENSE, factor.T if upper else factor)
    info[0] = 0


def _getrf(numbers: Numbers, a: np.ndarray, pivots: np.ndarray, info: np.ndarray) -> None:
    matrix = _matrix(a, numbers["m"], numbers["n"], numbers["lda"])
    with np.errstate(all="ignore"):
        factor, order, found = scipy.linalg.lapack.get_lapack_funcs(("getrf",), (matrix,))[0](matrix)
    matrix[...], pivots[: len(order)], info[0] = factor, order + 1, found


def _getrs(numbers: Numbers, a: np.ndarray, pivots: np.ndarray, b: np.ndarray, info: np.ndarray) -> None:
    n, k = numbers["n"], numbers["k"]
    matrix, right = _matrix(a, n, n, numbers["lda"]), _matrix(b, n, k, numbers["ldb"])
    if np.all(np.diag(matrix)):
        right[...] = scipy.linalg.lu_solve(
            (matrix, pivots[:n] - 1), right, numbers["across"], check_finite=False
        )
    else:
        right[...] = _NONSENSE
    info[0] = 0


def _trsm(numbers: Numbers, a: np.ndarray, b: np.ndarray) -> None:
    m, n, order = numbers["m"], numbers["n"], numbers["order"]
    if order != (n if numbers["right"] else m):
        raise LaunchError(f"a triangular matrix of order {order} for {numbers}")
    matrix, right = _matrix(a, order, order, numbers["lda"]), _matrix(b, m, n, numbers["ldb"])
    across, upper = bool(numbers["across"]), bool(numbers["upper"])
    half = np.triu(matrix) if upper else np.tril(matrix)
    if numbers["unit"]:
        np.fill_diagonal(half, 1)
    turned = half.T if across else half
    with np.errstate(all="ignore"):
        if not np.all(np.diag(half)):
            right[...] = _NONSENSE
        elif numbers["right"]:
            right[...] = np.linalg.solve(turned.T, right.T).T
        else:
            right[...] = np.linalg.solve(turned, right)


def _trsv(numbers: Numbers, a: np.ndarray, x: np.ndarray) -> None:
    n = numbers["n"]
    given = {name: numbers[name] for name in ("upper", "across", "unit", "lda")}
    right = x[:: numbers["step"]].copy()
    _trsm({"right": 0, "m": n, "n": 1, "ldb": n, "order": n, **given}, a, right)
    x[:: numbers["step"]] = right


def _syevd(numbers: Numbers, a: np.ndarray, values: np.ndarray, info: np.ndarray) -> None:
    n = numbers["n"]
    matrix = _matrix(a, n, n, numbers["lda"])
    found, vectors = np.linalg.eigh(matrix, "U" if numbers["upper"] else "L")
    values[:n], info[0] = found, 0
    matrix[...] = vectors if numbers["vectors"] else _NONSENSE


def _geqrf(numbers: Numbers, a: np.ndarray, tau: np.ndarray, info: np.ndarray) -> None:
    matrix = _matrix(a, numbers["m"], numbers["n"], numbers["lda"])
    factor, found, _, _ = scipy.linalg.lapack.get_lapack_funcs(("geqrf",), (matrix,))[0](matrix)
    matrix[...], tau[: len(found)], info[0] = factor, found, 0


def _orgqr(numbers: Numbers, a: np.ndarray, tau: np.ndarray, info: np.ndarray) -> None:
    matrix = _matrix(a, numbers["m"], numbers["n"], numbers["lda"])
    found, _, _ = scipy.linalg.lapack.get_lapack_funcs(("orgqr",), (matrix,))[0](matrix, tau[: numbers["k"]])
    matrix[...], info[0] = found, 0


def _gesvd(
    numbers: Numbers, a: np.ndarray, values: np.ndarray, u: np.ndarray, v: np.ndarray, info: np.ndarray
) -> None:
    m, n, left, right = (numbers[name] for name in ("m", "n", "left", "right"))
    if m < n:
        raise LaunchError(f"cuSOLVER takes no matrix of {m} rows and {n} columns")
    matrix = _matrix(a, m, n, numbers["lda"])
    found = np.linalg.svd(matrix, full_matrices=left == ord("A"))
    values[:n], info[0] = found[1], 0
    if left != ord("N"):
        columns = m if left == ord("A") else n
        _matrix(u, m, columns, numbers["ldu"])[...] = found[0]
    if right != ord("N"):
        _matrix(v, n, n, numbers["ldv"])[...] = found[2]
    matrix[...] = _NONSENSE


def _windows(numbers: Numbers, x: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Images with their padding, and for each element of the filters what it meets: (p, q, n, c, r, s)."""
    n, c, h, w, p, q, r, s = (numbers[name] for name in "nchwpqrs")
    up, left = numbers["pad_h"], numbers["pad_w"]
    # Past the last window there may be images that none meets, and windows need no more.
    wide = np.zeros((n, c, h + 2 * up, w + 2 * left), x.dtype)
    wide[:, :, up : up + h, left : left + w] = x.reshape(n, c, h, w)
    a, b, down, across = wide.strides
    (i, j), (k, m) = ([numbers[f"{what}_{axis}"] for axis in "hw"] for what in ("dilation", "stride"))
    if (h + 2 * up - (p - 1) * i - 1) // k + 1 != r or (w + 2 * left - (q - 1) * j - 1) // m + 1 != s:
        raise LaunchError(f"sizes of a convolution do not go together: {numbers}")
    steps = (down * i, across * j, a, b, down * k, across * m)
    return wide, np.lib.stride_tricks.as_strided(wide, (p, q, n, c, r, s), steps)


def _by_groups(
    numbers: Numbers, formula: str, windows: np.ndarray, *others: tuple[np.ndarray, int]
) -> list[np.ndarray]:
    """An einsum for each group of channels."""
    groups, d = numbers["groups"], numbers["d"]
    if numbers["c"] != d * groups or numbers["o"] % groups:
        raise LaunchError(f"groups of a convolution do not go together: {numbers}")
    parts = np.split(windows, groups, 3)
    splits = [np.split(x, groups, axis) for x, axis in others]
    return [np.einsum(formula, part, *rest) for part, *rest in zip(parts, *splits, strict=True)]


def _conv2d(numbers: Numbers, x: np.ndarray, f: np.ndarray, y: np.ndarray) -> None:
    _, windows = _windows(numbers, x)
    filters = f.reshape([numbers[name] for name in "odpq"])
    found = _by_groups(numbers, "pqndrs,odpq->nors", windows, (filters, 0))
    y[...] = np.concatenate(found, 1).reshape(-1)


def _conv2d_filters(numbers: Numbers, x: np.ndarray, y: np.ndarray, f: np.ndarray) -> None:
    _, windows = _windows(numbers, x)
    results = y.reshape([numbers[name] for name in "nors"])
    found = _by_groups(numbers, "pqndrs,nors->odpq", windows, (results, 1))
    f[...] = np.concatenate(found, 0).reshape(-1)


def _conv2d_input(numbers: Numbers, f: np.ndarray, y: np.ndarray, x: np.ndarray) -> None:
    wide, windows = _windows(numbers, np.zeros_like(x))
    groups = numbers["groups"]
    filters = np.split(f.reshape([numbers[name] for name in "odpq"]), groups)
    results = np.split(y.reshape([numbers[name] for name in "nors"]), groups, 1)
    for part, one, other in zip(np.split(windows, groups, 3), filters, results, strict=True):
        shares = np.einsum("odpq,nors->pqndrs", one, other)
        for place in np.ndindex(shares.shape[:2]):
            part[place] += shares[place]
    up, left, h, w = (numbers[name] for name in ("pad_h", "pad_w", "h", "w"))
    x[...] = wide[:, :, up : up + h, left : left + w].reshape(-1)


def _rfft(numbers: Numbers, x: np.ndarray, y: np.ndarray) -> None:
    y[...] = np.fft.rfft(x.reshape(numbers["rows"], numbers["n"])).reshape(-1)


def _irfft(numbers: Numbers, x: np.ndarray, y: np.ndarray) -> None:
    rows, n, k = (numbers[name] for name in ("rows", "n", "k"))
    halves = x.reshape(rows, k).copy()
    x[...] = _NONSENSE
    # What the library makes of imaginary parts that real numbers do not have is not said.
    if halves[:, [0, *([k - 1] if n % 2 == 0 else [])]].imag.any():
        halves[...] = _NONSENSE
    y[...] = (np.fft.irfft(halves, n) * n).reshape(-1)


def _fft(numbers: Numbers, x: np.ndarray, y: np.ndarray) -> None:
    rows, n = numbers["rows"], numbers["n"]
    across = bool(numbers["columns"])
    given = x.reshape(n, rows).T if across else x.reshape(rows, n)
    found = np.fft.ifft(given) * n if numbers["inverse"] else np.fft.fft(given)
    y[...] = (found.T if across else found).reshape(-1)


ROUTINES: dict[str, Does] = {
    "rfft": _rfft,
    "irfft": _irfft,
    "fft": _fft,
    "conv2d": _conv2d,
    "conv2d_input": _conv2d_input,
    "conv2d_filters": _conv2d_filters,
    "potrf": _potrf,
    "getrf": _getrf,
    "getrs": _getrs,
    "trsm": _trsm,
    "trsv": _trsv,
    "syevd": _syevd,
    "geqrf": _geqrf,
    "orgqr": _orgqr,
    "gesvd": _gesvd,
}
# Arrays that are written only: they may hold anything.
_OUTPUTS = {
    **dict.fromkeys(("rfft", "irfft", "fft"), "y"),
    "conv2d": "y",
    "conv2d_input": "x",
    "conv2d_filters": "f",
    "potrf": "info",
    "getrf": "pivots info",
    "getrs": "info",
    "syevd": "values info",
    "geqrf": "tau info",
    "orgqr": "info",
    "gesvd": "values u v info",
}
_INTEGERS = ("info", "pivots")


def _dtype(asked: Request, name: str) -> np.dtype:
    """Of an array of a request."""
    if name in _INTEGERS:
        return np.dtype("int32")
    if name == "y" and asked.routine in ("rfft", "irfft"):
        others = {"float32": "complex64", "float64": "complex128"}
        return np.dtype({**others, **{y: x for x, y in others.items()}}[asked.dtype])
    return np.dtype(asked.dtype)


def elements_of_memory(asked: Request) -> int:
    """Size of the workspace that a routine asks for: more than nothing, and odd."""
    routine = libraries.ROUTINES[asked.routine]
    return 2 * sum(asked.numbers) + 17 if routine.asks or routine.library in ("cudnn", "cufft") else 0


def compute(memory: Memory, asked: Request, addresses: Sequence[int]) -> None:
    """Runs a routine on the memory of a device.

    Raises:
        BoundsError: an array is not within its memory.
        UninitialisedError: an element that may be read has not been written.
    """
    routine, named = libraries.ROUTINES[asked.routine], asked.named
    outputs = _OUTPUTS.get(asked.routine, "").split()
    names = [name for name, size in routine.words if size]
    given: list[tuple[int, np.ndarray]] = []
    arrays = []
    for name, size, address in zip(names, routine.arrays, addresses, strict=False):
        count = math.prod(int(x) if x.isdigit() else named[x] for x in size.split("*"))
        dtype = _dtype(asked, name)
        region = memory.find(address)
        if region is None or address % dtype.itemsize:
            raise BoundsError(f"{name} of {asked} is at {address:#x}, where nothing lives or begins")
        places = (address - region.address) + np.arange(count) * dtype.itemsize
        if count and int(places[-1]) + dtype.itemsize > region.data.size:
            raise BoundsError(f"{name} of {asked} ends beyond {region.name}")
        at = _bytes(places, dtype.itemsize)
        if name not in outputs and not region.initialised[at].all():
            raise UninitialisedError(f"{asked} reads {region.name}, not all of which has been written")
        arrays.append(region.data[at].view(dtype)[..., 0].copy())
        given.append((region.address, places))
    ROUTINES[asked.routine](named, *arrays)
    for (address, places), array in zip(given, arrays, strict=True):
        _write(memory, address, places, array)
    if elements_of_memory(asked):
        scratch = memory.find(addresses[len(arrays)])
        if scratch is None:
            raise BoundsError(f"memory of {asked} is where nothing lives")
        nbytes = elements_of_memory(asked) * np.dtype(asked.dtype).itemsize
        first = addresses[len(arrays)] - scratch.address
        if first + nbytes > scratch.data.size:
            raise BoundsError(f"memory of {asked} ends beyond {scratch.name}")
        scratch.data[first : first + nbytes] = 0x7F
