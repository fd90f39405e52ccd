# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Defines the functions for matrix products that a kernel declares."""

from __future__ import annotations

from collections.abc import Iterable
from functools import cache

from graphc.library.helpers import BlockProduct, Gemm, Helper, of_kind
from graphc.library.products.blas import define_blas
from graphc.library.products.blocks import block_product
from graphc.library.products.rows import SUMS, dot_products, row_product
from graphc.library.products.small import small_gemm, small_product, square, transposition
from graphc.native.parts import Definitions
from graphc.native.vector_ir import VectorWriter, register_bytes

_VECTOR = "i64 %k, i64 %n, ptr noalias readonly %x, "
_MATRIX = "ptr noalias readonly %b, i64 %ldb, ptr noalias %y, i1 %accumulate"
_ROW, _DOTS = f"{_VECTOR}i64 %incx, {_MATRIX}", f"{_VECTOR}{_MATRIX}"
_BLOCK_PARAMETERS = (
    "ptr noalias readonly %a, i64 %lda, ptr noalias readonly %b, i64 %ldb, ptr noalias %c, i64 %ldc, "
    "i1 %accumulate"
)


def define_products(helpers: Iterable[Helper], features: str) -> Definitions:
    """The products among what a kernel declares.

    Args:
        helpers: what the kernel declares.
        features: of the target, as LLVM writes them.

    Returns:
        Definitions in their final form: to optimise them costs several times the time to make machine code of
        them.
    """
    helpers = [*helpers]
    gemms, blocks = of_kind(helpers, Gemm), of_kind(helpers, BlockProduct)
    made = Definitions()
    if not gemms and not blocks:
        return made
    register = register_bytes(features)
    made.add("@graphc_zeros = internal constant [512 x i8] zeroinitializer, align 64\n")
    for gemm in gemms:
        letter = gemm.letter
        made.add(*define_blas(letter, SUMS * register // (4 if letter == "s" else 8)))
        if letter in "sd":
            made.add(*_real_functions(letter, register, gemm.packs))
    for block in blocks:
        w = block_product(block.letter, register, block.sizes, block.transposed)
        made.add(_function("void", block.symbol, _BLOCK_PARAMETERS, w), w.declarations)
    return made


@cache
def _real_functions(letter: str, register: int, transposes: bool) -> tuple[str, frozenset[str]]:
    """Definitions of `graphc_?row`, `graphc_?dots` and `graphc_?gemm`, and the declarations they need."""
    row, dots = row_product(letter, register), dot_products(letter, register)
    text = _function("internal void", f"graphc_{letter}row", _ROW, row)
    text += _function("internal void", f"graphc_{letter}dots", _DOTS, dots)
    writers = [row, dots, small_product(letter, register)]
    if transposes:
        writers.append(transposition(letter, register))
    small, *transposed = (w.text() for w in writers[2:])
    text += small_gemm(letter, small, "".join(transposed), square(letter, register))
    return text, frozenset().union(*(w.declarations for w in writers))


def _function(result: str, name: str, parameters: str, w: VectorWriter) -> str:
    return f"define {result} @{name}({parameters}) nounwind {{\n{w.text()}  ret void\n}}\n"
