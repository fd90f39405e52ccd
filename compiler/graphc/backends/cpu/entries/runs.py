# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Many inputs of one kind: an entry reads them in a loop; its code does not grow with their number."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from graphc.backends.cpu.entries.tiers import VIEW_SIZE
from graphc_runtime.manifest import ArraySpec, Signature

# Shorter runs are written out, which is a little faster to call.
MANY_EQUAL = 24


def sizes_of(spec: ArraySpec) -> list[str | None]:
    """The sizes of an array that are known, as text."""
    return [None if size is None else str(size) for size in spec.shape]


def runs(signature: Signature) -> list[tuple[int, int]]:
    """First and end of each run of inputs of one dtype and shape; of donated ones each is its own."""
    lent = {argument for argument, _ in (*signature.donated, *signature.spares)}
    found: list[tuple[int, int]] = []
    for i, spec in enumerate(signature.inputs):
        if found and not {i - 1, i} & lent and _kind(signature.inputs[i - 1]) == _kind(spec):
            found[-1] = found[-1][0], i + 1
        else:
            found.append((i, i + 1))
    return found


def _kind(spec: ArraySpec) -> tuple[str, tuple[int | None, ...]]:
    return spec.dtype, tuple(spec.shape)


class Readers:
    """Functions that read one array each.

    Args:
        tier: its name.
        make: an entry of the same tier, by its signature.

    Attributes:
        texts: the functions that are needed.
    """

    def __init__(self, tier: str, make: Callable[[Signature], Any]) -> None:
        self._tier, self._make = tier, make
        self.texts: list[str] = []
        self._names: dict[tuple[str, tuple[int | None, ...]], str] = {}

    def read(self, entry: Any, first: int, end: int) -> str:
        """Writes the loop over some inputs; the number of all their elements."""
        w, before = entry.w, entry.w.block
        spec = entry.s.inputs[first]
        name = self._names.get(_kind(spec)) or self._define(spec)
        loop, done = f"read{first}", f"done{first}"
        w.line(f"  br label %{loop}")
        w.label(loop)
        step, total = f"%next{first}", f"%total{first}"
        i = w.let(f"phi i64 [{first}, %{before}], [{step}, %{loop}_more]")
        elements = w.let(f"phi i64 [0, %{before}], [{total}, %{loop}_more]")
        value = w.let(f"load ptr, ptr {w.let(f'getelementptr ptr, ptr %args, i64 {i}')}")
        data = w.let(f"getelementptr ptr, ptr %data, i64 {i}")
        count = w.let(f"getelementptr i64, ptr %bytes, i64 {i}")
        # The sizes of inputs of the run lie one after the other.
        position = w.let(f"mul i64 {w.let(f'sub i64 {i}, {first}')}, {spec.rank}")
        dims = w.let(f"getelementptr i64, ptr {w.address('%dims', 8 * entry.starts[first])}, i64 {position}")
        views = "null"
        if entry.tier.has_views:
            views = w.let(f"getelementptr [{VIEW_SIZE} x i8], ptr %views, i64 {i}")
        found = w.let(f"call i64 @{name}(ptr {value}, ptr {data}, ptr {dims}, ptr {count}, ptr {views})")
        good = w.let(f"icmp sge i64 {found}, 0")
        w.line(f"  br i1 {good}, label %{loop}_more, label %{entry.tier.unlike}, !prof !0")
        w.label(f"{loop}_more")
        w.line(f"  {total} = add i64 {elements}, {found}")
        w.line(f"  {step} = add i64 {i}, 1")
        w.line(f"  br i1 {w.let(f'icmp eq i64 {step}, {end}')}, label %{done}, label %{loop}")
        w.label(done)
        return total

    def _define(self, spec: ArraySpec) -> str:
        """Writes the function for a dtype and shape: how many elements, or -1 if the array does not fit."""
        name = self._names[_kind(spec)] = f"graphc_read_{self._tier}_{len(self._names)}"
        reader = self._make(Signature((spec,), returns="none", needs_shapes=False))
        w = reader.w
        parameters = "ptr %value, ptr %data, ptr %dims, ptr %bytes, ptr %views"
        w.line(f"define internal i64 @{name}({parameters}) noinline {{")
        w.label("begin")
        reader.array(0, "%value", sizes_of(spec))
        reader.measure(1)
        w.line(f"  ret i64 {reader.counts[0]}")
        w.label(reader.tier.unlike)
        w.line("  ret i64 -1")
        w.line("}")
        self.texts.append(w.text())
        return name
