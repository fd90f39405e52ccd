# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Numbers of float64, which take words of the stream, and of float32, which take halves of words."""

from __future__ import annotations

import ctypes
from collections.abc import Callable

import numpy as np

from graphc.ir import build
from graphc.lowering import device_halves, device_philox
from graphc.lowering.device_philox import word_type
from graphc_dialects._mlir import ir
from graphc_runtime import npyrandom
from graphc_runtime.record import record

# Of a ziggurat.
LEVELS = 256


@record(frozen=True)
class Format:
    """What numbers are of.

    Attributes:
        name: in the names of NumPy's tables.
        dtype, limit: dtypes of these; of numbers, and of bits.
        mantissa: bits of a normal number.
        shift: how many bits of a word, or half a one, exponential numbers leave out.
        bits: of a state the word, or the half, at a place.
        uniform: a number in [0, 1) of these.
    """

    name: str
    dtype: str
    limit: str
    mantissa: int
    shift: int
    bits: Callable[[ir.Value, ir.Value], ir.Value]
    uniform: Callable[[ir.Value], ir.Value]

    def type(self) -> ir.Type:
        """The type of numbers."""
        return ir.F64Type.get() if self.dtype == "float64" else ir.F32Type.get()

    def constant(self, value: float) -> ir.Value:
        """A number."""
        attribute = ir.FloatAttr.get(self.type(), value)
        return build.create("arith.constant", [self.type()], [], value=attribute).result

    def convert(self, count: ir.Value) -> ir.Value:
        """An i64 as a number."""
        return build.create("arith.sitofp", [self.type()], [count]).result

    def rounded(self, function: str, x: ir.Value) -> ir.Value:
        """A function, computed in float64 and rounded, as the C library's of float32 nearly always are."""
        found = build.math(function, wide(x))
        if self.dtype == "float64":
            return found
        return build.create("arith.truncf", [self.type()], [found]).result

    def table(self, name: str, of_bits: bool) -> ir.Value:
        """One of NumPy's tables, as a tensor."""
        dtype = np.dtype(self.limit if of_bits else self.dtype)
        address = npyrandom.address(f"{name}_{self.name}")
        raw = (ctypes.c_char * (dtype.itemsize * LEVELS)).from_address(address).raw
        table = np.frombuffer(raw, dtype)
        kind = ir.RankedTensorType.get([LEVELS], word_type() if of_bits else self.type())
        value = ir.DenseElementsAttr.get(table.astype(np.int64) if of_bits else table, type=kind)
        return build.create("arith.constant", [kind], [], value=value).result


def wide(x: ir.Value) -> ir.Value:
    """A number in float64."""
    double = ir.F64Type.get()
    return x if x.type == double else build.create("arith.extf", [double], [x]).result


def _word(state: ir.Value, place: ir.Value) -> ir.Value:
    return device_philox.word(device_philox.State(state), place)


def _half(state: ir.Value, place: ir.Value) -> ir.Value:
    return device_halves.Halves(state).bits(place)


DOUBLE = Format("double", "float64", "uint64", 0x000FFFFFFFFFFFFF, 3, _word, device_philox.uniform)
FLOAT = Format("float", "float32", "uint32", 0x007FFFFF, 1, _half, device_halves.uniform)
