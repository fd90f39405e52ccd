# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Defines the functions for matrix products that a kernel declares."""

from __future__ import annotations

from collections.abc import Iterable
from functools import cache

from graphc.library.helpers import BlockProduct, Gemm, Helper, of_kind
from graphc.library.products.blas import define_blas, define_large
from graphc.library.products.blocks import block_product
from graphc.library.products.rows import SUMS, dot_products, row_product
from graphc.library.products.small import small_gemm, small_product, square, transposition
from graphc.native.parts import Definitions, Part
from graphc.native.vector_ir import VectorWriter, register_bytes

_VECTOR = "i64 %k, i64 %n, ptr noalias readonly %x, "
_MATRIX = "ptr noalias readonly %b, i64 %ldb, ptr noalias %y, i1 %accumulate"
_ROW, _DOTS = f"{_VECTOR}i64 %incx, {_MATRIX}", f"{_VECTOR}{_MATRIX}"
_TYPES = (
    "i64, i64, ptr, i64, ptr, i64, ptr, i1",
    "i64, i64, ptr, ptr, i64, ptr, i1",
    "i64, i64, i64, i64, i64, ptr, i64, ptr, i64, ptr, i64, i1",
)
_ZEROS = "@graphc_zeros = internal constant [512 x i8] zeroinitializer, align 64\n"
_BLOCK_PARAMETERS = (
    "ptr noalias readonly %a, i64 %lda, ptr noalias readonly %b, i64 %ldb, ptr noalias %c, i64 %ldc, "
    "i1 %accumulate"
)


def product_parts(helpers: Iterable[Helper], features: str) -> list[Part]:
    """The products among what a kernel declares, in their final form: to optimise them costs several times
    the time to make machine code of them. With AVX, machine code of the first level is as fast as that of the
    third one, and takes three quarters of the time to make.

    Each product of known sizes is a part of its own, and so are all others of a type: many functions have the
    one or the other.

    Args:
        helpers: what the kernel declares.
        features: of the target, as LLVM writes them.
    """
    helpers, register = [*helpers], register_bytes(features)
    found = []
    for gemm in of_kind(helpers, Gemm):
        tile = SUMS * register // (4 if gemm.letter == "s" else 8)
        level = 1 if register > 16 else 3
        found.append(Part(_general(gemm.letter, register, gemm.packs), finished=True, level=level))
        found.append(Part(_large(gemm.letter, tile), finished=True, level=0))
    found += [Part(_block(block, register), finished=True) for block in of_kind(helpers, BlockProduct)]
    return found


@cache
def _general(letter: str, register: int, transposes: bool) -> str:
    """`graphc_<letter>gemm`, for any sizes."""
    made = Definitions()
    made.add(_ZEROS)
    made.add(define_blas(letter))
    if letter in "sd":
        made.add(*_real_functions(letter, register, transposes))
    return made.text()


@cache
def _large(letter: str, tile: int) -> str:
    """Callees for large matrices."""
    made = Definitions()
    text, declarations = define_large(letter, tile)
    if letter in "sd":
        rows = {
            f"declare void @graphc_{letter}row({_TYPES[0]})",
            f"declare void @graphc_{letter}dots({_TYPES[1]})",
            f"declare void @graphc_{letter}gemm({_TYPES[2]})",
        }
        declarations |= rows
    made.add(text, declarations)
    return made.text()


@cache
def _block(block: BlockProduct, register: int) -> str:
    """A product of known sizes."""
    made = Definitions()
    made.add(_ZEROS)
    w = block_product(block.letter, register, block.sizes, block.transposed)
    made.add(_function("void", block.symbol, _BLOCK_PARAMETERS, w), w.declarations)
    return made.text()


@cache
def _real_functions(letter: str, register: int, transposes: bool) -> tuple[str, frozenset[str]]:
    """Definitions of `graphc_?row`, `graphc_?dots` and `graphc_?gemm`, and the declarations they need."""
    row, dots = row_product(letter, register), dot_products(letter, register)
    text = _function("void", f"graphc_{letter}row", _ROW, row)
    text += _function("void", f"graphc_{letter}dots", _DOTS, dots)
    writers = [row, dots, small_product(letter, register)]
    if transposes:
        writers.append(transposition(letter, register))
    small, *transposed = (w.text() for w in writers[2:])
    text += small_gemm(letter, small, "".join(transposed), square(letter, register))
    return text, frozenset().union(*(w.declarations for w in writers))


def _function(result: str, name: str, parameters: str, w: VectorWriter) -> str:
    return f"define {result} @{name}({parameters}) nounwind {{\n{w.text()}  ret void\n}}\n"
