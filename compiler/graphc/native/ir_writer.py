# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Writes the body of one LLVM IR function as text."""

from __future__ import annotations

from collections.abc import Sequence

# Bytes that are cleared word by word.
_FEW = 64


class Writer:
    """Lines of IR, fresh value names, and the block being written."""

    def __init__(self) -> None:
        self._lines: list[str] = []
        self._count = 0
        self.block = ""

    def text(self) -> str:
        """Everything written so far."""
        return "\n".join([*self._lines, ""])

    def line(self, text: str) -> None:
        self._lines.append(text)

    def label(self, name: str) -> None:
        """Begins a block."""
        self._lines.append(f"{name}:")
        self.block = name

    def let(self, instruction: str) -> str:
        """Writes an instruction and returns the name of its result."""
        self._count += 1
        self._lines.append(f"  %v{self._count} = {instruction}")
        return f"%v{self._count}"

    def address(self, base: str, offset: int) -> str:
        """Pointer `offset` bytes after `base`."""
        return self.let(f"getelementptr i8, ptr {base}, i64 {offset}") if offset else base

    def load(self, kind: str, base: str, offset: int) -> str:
        return self.let(f"load {kind}, ptr {self.address(base, offset)}")

    def store(self, kind: str, value: str, base: str, offset: int) -> None:
        self.line(f"  store {kind} {value}, ptr {self.address(base, offset)}")

    def clear(self, base: str, size: int) -> None:
        """Sets `size` bytes to zero: word by word if few, as the lowest level of code calls what fills."""
        if size % 8 == 0 and size <= _FEW:
            for offset in range(0, size, 8):
                self.store("i64", "0", base, offset)
        else:
            self.line(f"  call void @llvm.memset.p0.i64(ptr {base}, i8 0, i64 {size}, i1 false)")

    def require(self, condition: str, otherwise: str) -> None:
        """Goes on in a new block if the condition holds, else to the (cold) label."""
        self._count += 1
        block = f"ok{self._count}"
        self.line(f"  br i1 {condition}, label %{block}, label %{otherwise}, !prof !0")
        self.label(block)

    def all(self, conditions: Sequence[str]) -> str:
        """Conjunction of at least one i1."""
        return self._fold("and i1", conditions)

    def sum(self, values: Sequence[str]) -> str:
        """Sum of i64 values."""
        return self._fold("add i64", values) if values else "0"

    def product(self, values: Sequence[str]) -> str:
        """Product of i64 values."""
        return self._fold("mul i64", values) if values else "1"

    def _fold(self, operation: str, values: Sequence[str]) -> str:
        result = values[0]
        for value in values[1:]:
            result = self.let(f"{operation} {result}, {value}")
        return result
