# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Sort functions for C programs, in the place of NumPy's: heapsort of numbers none of which is NaN."""
# mypy: ignore-errors

from __future__ import annotations

from functools import cache

from graphc.native.builtins import cast
from graphc.native.translate import Translator
from graphc.native.types import BYTE, I64, Type, Value


def sift(data, root, count):
    """Lets the element at a root sink to where both of its children are smaller."""
    value, at = data[root], root
    while 2 * at + 1 < count:
        larger = 2 * at + 1
        other = min(larger + 1, count - 1)
        if data[other] > data[larger]:
            larger = other
        if data[larger] <= value:
            break
        data[at] = data[larger]
        at = larger
    data[at] = value


def heapsort(data, count, unused):
    for i in range(count // 2 - 1, -1, -1):
        sift(data, i, count)
    for last in range(count - 1, 0, -1):
        largest = data[0]
        data[0] = data[last]
        data[last] = largest
        sift(data, 0, last)
    return cast(0, "i32")


@cache
def sort_ir() -> str:
    """The functions' text."""
    t = Translator(prefix="graphc_c_sort", apart=False)
    kinds = [
        ("uint", 8),
        ("uint", 16),
        *((kind, bits) for kind in ("uint", "int", "float") for bits in (32, 64)),
    ]
    for kind, bits in kinds:
        data = Value("%data", Type(f"{kind[0]}{bits}", True))
        parameters = [data, Value("%count", I64), Value("%unused", BYTE.to)]
        t.define(heapsort, f"numpy_sort_{kind}{bits}", parameters)
    return t.text()
