# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Defines the functions for matrix products that a kernel's text declares."""

from __future__ import annotations

import re
from functools import cache

from graphc.library.products import blas
from graphc.library.products.blas import PARAMETERS
from graphc.library.products.blocks import block_product
from graphc.library.products.rows import SUMS, dot_products, row_product
from graphc.library.products.small import small_product, square, transposition
from graphc.native.vector_ir import VectorWriter, register_bytes

_GEMM = re.compile(r"^declare void @graphc_([sdcz])gemm\(.*\n", re.MULTILINE)
_BLOCK = re.compile(r"^declare void @graphc_([sd])block_(\d+)_(\d+)_(\d+)_([nt])([nt])\(.*\n", re.MULTILINE)
_VECTOR = "i64 %k, i64 %n, ptr noalias readonly %x, "
_MATRIX = "ptr noalias readonly %b, i64 %ldb, ptr noalias %y, i1 %accumulate"
_ROW, _DOTS = f"{_VECTOR}i64 %incx, {_MATRIX}", f"{_VECTOR}{_MATRIX}"
_BLOCK_PARAMETERS = (
    "ptr noalias readonly %a, i64 %lda, ptr noalias readonly %b, i64 %ldb, ptr noalias %c, i64 %ldc, "
    "i1 %accumulate"
)
# What callers may assume of a call, as LLVM does not see the definition when it optimises them.
_ATTRIBUTES = "nounwind willreturn memory(argmem: readwrite, inaccessiblemem: readwrite)"


def define_products(ir_text: str, features: str) -> tuple[str, str]:
    """Finds the products that a kernel's text declares.

    Args:
        ir_text: the kernel.
        features: of the target, as LLVM writes them.

    Returns:
        The kernel's text with better declarations, and the text of a module of definitions ("" if there are
        none). They are written in their final form: to optimise them costs several times the time to make
        machine code of them, so they are linked to the kernel after it has been optimised.
    """
    gemms, blocks = sorted(set(_GEMM.findall(ir_text))), sorted(set(_BLOCK.findall(ir_text)))
    if not gemms and not blocks:
        return ir_text, ""
    register = register_bytes(features)
    text = _BLOCK.sub("", _GEMM.sub("", ir_text))
    definitions: list[str] = []
    declarations: set[str] = set()
    for letter in gemms:
        text += f"declare void @graphc_{letter}gemm({_argument_types(PARAMETERS)}) {_ATTRIBUTES}\n"
        definitions.append(blas.gemm(letter, SUMS * register // (4 if letter == "s" else 8)))
        declarations |= blas.declarations(letter)
        if letter in "sd":
            more, needed = _real_functions(letter, register, _transposes(letter, ir_text))
            definitions.append(more)
            declarations |= needed
    for letter, m, n, k, ta, tb in blocks:
        name = f"graphc_{letter}block_{m}_{n}_{k}_{ta}{tb}"
        text += f"declare void @{name}({_argument_types(_BLOCK_PARAMETERS)}) {_ATTRIBUTES}\n"
        w = block_product(letter, register, (int(m), int(n), int(k)), (ta == "t", tb == "t"))
        definitions.append(_function("void", name, _BLOCK_PARAMETERS, w))
        declarations |= w.declarations
    zeros = "@graphc_zeros = internal constant [512 x i8] zeroinitializer, align 64\n"
    return text, "".join([zeros, *definitions, *(f"{line}\n" for line in sorted(declarations))])


def _transposes(letter: str, ir_text: str) -> bool:
    """Whether some call of `graphc_<letter>gemm` has its second operand transposed, or does not say."""
    flags = re.findall(
        rf"^ .* call void @graphc_{letter}gemm\(i64 [^,]*, i64 ([^,]*),", ir_text, re.MULTILINE
    )
    return any(flag != "0" for flag in flags)


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
    text += blas.small_gemm(letter, small, "".join(transposed), square(letter, register))
    return text, frozenset().union(*(w.declarations for w in writers))


def _function(result: str, name: str, parameters: str, w: VectorWriter) -> str:
    return f"define {result} @{name}({parameters}) nounwind {{\n{w.text()}  ret void\n}}\n"


def _argument_types(parameters: str) -> str:
    return ", ".join(parameter.rpartition(" %")[0] for parameter in parameters.split(", "))
