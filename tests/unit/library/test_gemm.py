# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""The row-major products of compiled code against NumPy: on BLAS, and as vector code of every width."""

from __future__ import annotations

import ctypes
import mmap
from functools import cache

import numpy as np
import pytest

from graphc.backends.cpu.object import compile_to_object, this_machine
from graphc.library.helpers import BlockProduct, Gemm, ScalarCall
from graphc.library.products import product_parts
from graphc_runtime import symbols
from graphc_runtime.loader import LoadedObject, load_object

DTYPES = {"s": "float32", "d": "float64", "c": "complex64", "z": "complex128"}
TYPES = ["i64"] * 5 + ["ptr", "i64"] * 3
SIZES = [(1, 1, 1), (3, 5, 7), (17, 1, 9), (1, 33, 2), (0, 4, 3), (4, 0, 3), (4, 3, 0), (65, 31, 40)]
# Features of targets whose registers have 16, 32 and 64 bytes; LLVM splits what this machine does not have.
WIDTHS = {16: "", 32: "+avx", 64: "+avx512f"}


def declared(name: str, types: list[str]) -> str:
    """A kernel that hands its arguments to a function and has the same ones."""
    arguments = ", ".join(f"{kind} %x{i}" for i, kind in enumerate(types))
    return f"""declare void @{name}({", ".join([*types, "i1"])})
define i64 @graphc_run({arguments}, i64 %add) {{
  %flag = trunc i64 %add to i1
  call void @{name}({arguments}, i1 %flag)
  ret i64 0
}}
"""


@cache
def loaded(helper: Gemm | BlockProduct, kinds: tuple[str, ...], features: str) -> LoadedObject:
    text = declared(helper.symbol, list(kinds))
    return load_object(compile_to_object(text, parts=product_parts([helper], features)), symbols.resolve)


def gemm(letter, flags, sizes, matrices, strides, add, features=None):
    """Calls `graphc_<letter>gemm`; the matrices are arrays or addresses."""
    features = this_machine().features if features is None else features
    code = loaded(Gemm(letter, packs=True), tuple(TYPES), features)
    function = ctypes.CFUNCTYPE(ctypes.c_int64, *[ctypes.c_int64] * 12)(code.address("graphc_run"))
    pairs = [
        x for matrix, stride in zip(matrices, strides, strict=True) for x in (matrix.ctypes.data, stride)
    ]
    function(*flags, *sizes, *pairs, add)


def random(letter, *shape, seed=0):
    rng = np.random.default_rng(seed)
    value = rng.normal(size=shape) + (1j * rng.normal(size=shape) if letter in "cz" else 0)
    return np.ascontiguousarray(value.astype(DTYPES[letter]))


def check(letter, flags, sizes, add, features=None, gap=0):
    """One product of random matrices whose rows are `gap` elements apart."""
    (ta, tb), (m, n, k) = flags, sizes
    a, b, c = (
        random(letter, k if ta else m, (m if ta else k) + gap),
        random(letter, n if tb else k, (k if tb else n) + gap),
        random(letter, m, n + gap),
    )
    x, y = a[:, : a.shape[1] - gap], b[:, : b.shape[1] - gap]
    want = c.copy()
    want[:, :n] = (c[:, :n] if add else 0) + (x.T if ta else x) @ (y.T if tb else y)
    if not add:
        c[:, :n] = np.nan
    gemm(letter, flags, sizes, (a, b, c), (a.shape[1], b.shape[1], c.shape[1]), add, features)
    tolerance = 1e-4 if letter in "sc" else 1e-11
    np.testing.assert_allclose(c, want, rtol=tolerance, atol=tolerance, err_msg=str((flags, sizes, add)))


@pytest.mark.parametrize("letter", DTYPES)
@pytest.mark.parametrize("ta", [0, 1])
@pytest.mark.parametrize("tb", [0, 1])
def test_against_numpy(letter, ta, tb):
    for sizes in SIZES:
        for add in (0, 1):
            check(letter, (ta, tb), sizes, add)
            check(letter, (ta, tb), sizes, add, gap=3)


@pytest.mark.parametrize("letter", "sd")
@pytest.mark.parametrize("width", WIDTHS)
def test_vectors_of_every_size(letter, width):
    """All remainders of the tiles of columns, of rows, and of the sums."""
    for n in (1, 2, 3, 5, 7, 8, 9, 15, 16, 17, 31, 33, 40, 63, 64, 70, 129):
        for k in (0, 1, 2, 3, 4, 7, 8, 9, 16, 17, 33):
            for flags in ((0, 0), (0, 1), (1, 0), (1, 1)):
                check(letter, flags, (1, n, k), n % 2, WIDTHS[width])
                check(letter, flags, (n, 1, k), k % 2, WIDTHS[width])


@pytest.mark.parametrize("letter", "sd")
@pytest.mark.parametrize("width", WIDTHS)
def test_small_matrices_of_every_size(letter, width):
    """All remainders of the tiles of rows and columns, and of the squares that are transposed."""
    for m in (2, 3, 4, 5, 8, 9):
        for n in (2, 3, 4, 5, 7, 8, 9, 12, 15, 16, 17, 24, 25, 33):
            for k in (0, 1, 2, 3, 4, 5, 8, 9, 17):
                flags = ((m + n) % 2, k % 2)
                check(letter, flags, (m, n, k), (m + k) % 2, WIDTHS[width], gap=n % 3)
                check(letter, (flags[0], 1 - flags[1]), (m, n, k), n % 2, WIDTHS[width])


@pytest.mark.parametrize("letter", "sd")
def test_where_small_matrices_end(letter):
    """Up to a number of multiplications, more if the second operand is small, and as long as a transposed
    one fits the buffer; blocks of what is too large for one thread.
    """
    for sizes in (
        (3000, 9, 8),
        (4000, 9, 9),
        (250, 32, 32),
        (250, 32, 33),
        (25, 25, 26),
        (26, 25, 26),
        (32, 32, 32),
        (33, 32, 32),
        (2, 32, 33),
        (2, 3, 400),
        (3, 400, 2),
    ):
        for flags in ((0, 0), (0, 1), (1, 1)):
            check(letter, flags, sizes, 1)


@pytest.mark.parametrize("letter", "sd")
def test_columns_and_rows_with_any_strides(letter):
    """A column whose elements lie apart, and a row with such elements times a transposed matrix."""
    for m, k in ((1, 5), (3, 7), (9, 17), (70, 33), (0, 3), (4, 0)):
        for flags in ((0, 0), (1, 0), (0, 1), (1, 1)):
            check(letter, flags, (m, 1, k), m % 2, gap=2)
            check(letter, flags, (1, m, k), k % 2, gap=2)


@pytest.mark.parametrize("letter", "sd")
@pytest.mark.parametrize("row", [600, 3])
def test_rows_that_run_backwards_or_overlap(letter, row):
    """Strides that BLAS does not take, for sizes at which it would be called."""
    m, k, n = 40, 50, 60
    memory = random(letter, 2 * row * m + k)
    b, c = random(letter, k, n, seed=1), np.empty((m, n), DTYPES[letter])
    step = memory.itemsize
    transposed = np.ascontiguousarray(b.T)
    for sign in (1, -1):
        a = np.lib.stride_tricks.as_strided(memory[row * m :], (m, k), (sign * row * step, step))
        gemm(letter, (0, 0), (m, n, k), (a, b, c), (sign * row, n, n), 0)
        np.testing.assert_allclose(c, a @ b, rtol=1e-3, atol=1e-3)
        c[...] = np.nan
        gemm(letter, (0, 1), (m, n, k), (a, transposed, c), (sign * row, k, n), 0)
        np.testing.assert_allclose(c, a @ b, rtol=1e-3, atol=1e-3)


@pytest.mark.parametrize("letter", "sd")
@pytest.mark.parametrize("width", WIDTHS)
def test_nothing_beyond_the_end_is_touched(letter, width):
    """The last row of each operand ends where unreadable memory begins."""
    with Guarded() as page:
        for n in (1, 3, 5, 8, 9, 15, 17, 40, 65):
            for k in (1, 2, 5, 8, 13):
                m = 1 + n % 2 * (k % 5)
                for tb in (0, 1):
                    for which in range(3):
                        shapes = [(m, k), (n, k) if tb else (k, n), (m, n)]
                        arrays = [random(letter, *shape, seed=i) for i, shape in enumerate(shapes)]
                        want = arrays[0] @ (arrays[1].T if tb else arrays[1])
                        arrays[which] = page.place(arrays[which])
                        strides = [array.shape[1] for array in arrays]
                        gemm(letter, (0, tb), (m, n, k), arrays, strides, 0, WIDTHS[width])
                        np.testing.assert_allclose(arrays[2], want, rtol=1e-3, atol=1e-4)


class Guarded:
    """Memory before a page that must not be touched."""

    def __enter__(self) -> Guarded:
        self._size = 1 << 16
        self._map = mmap.mmap(-1, self._size + mmap.PAGESIZE)
        self._anchor = ctypes.c_char.from_buffer(self._map)
        self._base = ctypes.addressof(self._anchor)
        self._protect(0)
        return self

    def __exit__(self, *_: object) -> None:
        self._protect(mmap.PROT_READ | mmap.PROT_WRITE)
        del self._anchor
        self._map.close()

    def _protect(self, how: int) -> None:
        libc = ctypes.CDLL(None, use_errno=True)
        assert libc.mprotect(ctypes.c_void_p(self._base + self._size), mmap.PAGESIZE, how) == 0

    def place(self, array: np.ndarray) -> np.ndarray:
        """A copy that ends right before the page."""
        address = self._base + self._size - array.nbytes
        memory = (ctypes.c_char * array.nbytes).from_address(address)
        copy = np.frombuffer(memory, array.dtype).reshape(array.shape)
        copy[...] = array
        return copy


@pytest.mark.parametrize("value", [np.nan, np.inf])
def test_nan_and_infinity_reach_what_they_should_only(value):
    for tb in (0, 1):
        for n, k in ((5, 3), (20, 9), (70, 33)):
            a, b, c = np.ones((1, k)), np.ones((n, k) if tb else (k, n)), np.empty((1, n))
            b[(n // 2, k - 1) if tb else (k - 1, n // 2)] = value
            gemm("d", (0, tb), (1, n, k), (a, b, c), (k, b.shape[1], n), 0)
            np.testing.assert_array_equal(c, a @ (b.T if tb else b))


@pytest.mark.parametrize("letter", "sd")
@pytest.mark.parametrize("width", WIDTHS)
@pytest.mark.parametrize("flags", ["nn", "nt", "tn", "tt"])
def test_blocks(letter, width, flags):
    for m, n, k in ((1, 8, 8), (8, 1, 3), (5, 5, 5), (16, 16, 16), (3, 7, 2), (2, 13, 16), (16, 1, 1)):
        ta, tb = (flag == "t" for flag in flags)
        product = BlockProduct(letter, (m, n, k), (flags[0] == "t", flags[1] == "t"))
        code = loaded(product, ("ptr", "i64") * 3, WIDTHS[width])
        function = ctypes.CFUNCTYPE(ctypes.c_int64, *[ctypes.c_int64] * 7)(code.address("graphc_run"))
        with Guarded() as page:
            a = page.place(random(letter, *((k, m) if ta else (m, k))))
            want = (a.T if ta else a).copy()
            b = random(letter, *((n, k) if tb else (k, n)), seed=1)
            want = want @ (b.T if tb else b)
            for add in (0, 1):
                c = random(letter, m, n + 2, seed=2)
                expected = c.copy()
                expected[:, :n] = want + (c[:, :n] if add else 0)
                function(a.ctypes.data, a.shape[1], b.ctypes.data, b.shape[1], c.ctypes.data, n + 2, add)
                np.testing.assert_allclose(c, expected, rtol=1e-4, atol=1e-4)


def texts(helpers, features):
    return "".join(part.text for part in product_parts(helpers, features))


def test_only_what_is_declared():
    assert not product_parts([ScalarCall("zeta", 2, False)], "+avx2")
    double, single = Gemm("d", packs=True), Gemm("s", packs=True)
    products = texts([double], "+avx,+avx2")
    assert "define" in products
    assert "@blas_dgemm" in products and "sgemm" not in products and "<4 x double>" in products
    assert "<8 x double>" in texts([double], "+avx,+avx512f")
    both = texts([double, single], "")
    assert "@blas_dgemm" in both and "@blas_sgemm" in both
    # The code for a transposed second operand is left out where no call has one.
    assert "gemm.packed" in products
    assert "gemm.packed" not in texts([Gemm("d", packs=False)], "+avx")


def test_products_of_known_sizes_are_parts_of_their_own():
    """Another function has the same general product, whatever sizes its own loops have."""
    first, second = (BlockProduct("d", (1, size, size), (False, True)) for size in (8, 16))
    general = product_parts([Gemm("d", packs=True)], "+avx2")
    assert [part.level for part in general] == [3, 0]  # large ones need no good code around BLAS
    assert [part.level for part in product_parts([Gemm("d", packs=True)], "+avx")] == [1, 0]
    for block in (first, second):
        assert product_parts([Gemm("d", packs=True), block], "+avx2")[:2] == general
    assert len(product_parts([first, second], "+avx2")) == 2


def test_a_transposed_operand_is_read_in_squares():
    """Element by element it would be 256 numbers, and as many instructions that put them into vectors."""
    text = texts([BlockProduct("d", (1, 16, 16), (False, True))], "+avx,+avx2")
    assert text.count("load double") == 4 * 16  # those of the first operand, for each piece of the result
    assert text.count("load <4 x double>") == 4 * (16 + 1)
