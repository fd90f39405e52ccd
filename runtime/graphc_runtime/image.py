# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""The memory picture of an object: where its sections go, and its bytes for a given base address."""

from __future__ import annotations

import mmap
from collections.abc import Callable
from dataclasses import field

from graphc_runtime import elf, relocate
from graphc_runtime.errors import LoadError, SymbolError
from graphc_runtime.record import record

_CODE, _CONSTANTS, _DATA = range(3)
_MAX_IMAGE = 1 << 30

Resolver = Callable[[str], int]


@record()
class Image:
    """The memory picture of an object: code (with stubs), constants (with the GOT), then writable data.

    Each part begins on a page of its own. Offsets are fixed by the constructor, addresses by `relocate`.
    """

    object: elf.Object
    resolve: Resolver
    offsets: dict[int, int] = field(default_factory=dict)  # section index -> offset in the image
    slots: dict[int, int] = field(default_factory=dict)  # symbol index -> offset of its GOT slot
    stubs: dict[int, int] = field(default_factory=dict)  # symbol index -> offset of its stub
    commons: dict[int, int] = field(default_factory=dict)  # symbol index -> offset of its storage

    def __post_init__(self) -> None:
        self.machine = self.object.machine
        if self.machine not in (elf.X86_64, elf.AARCH64):
            raise LoadError(f"objects of ELF machine {self.machine} are not supported")
        parts = self._parts()
        self.align = max([mmap.PAGESIZE, *(self.object.sections[i].align for part in parts for i in part)])
        self._count_stubs(parts)
        end = self._place(parts[_CODE], 0)
        end = self._reserve(self.stubs, relocate.STUB_SIZE, end)
        self.code_size = _round(end, mmap.PAGESIZE)
        end = self._place(parts[_CONSTANTS], self.code_size)
        end = self._reserve(self.slots, 8, end)
        start = _round(end, mmap.PAGESIZE)
        self.constants_size = start - self.code_size
        end = self._place(parts[_DATA], start)
        for index, symbol in enumerate(self.object.symbols):
            if symbol.section == elf.SHN_COMMON:
                end = _round(end, min(max(symbol.value, 1), 4096))
                self.commons[index] = end
                end += symbol.size
        self.size = max(_round(end, mmap.PAGESIZE), mmap.PAGESIZE)
        if self.size > _MAX_IMAGE:
            raise LoadError(f"the object needs {self.size} bytes; at most {_MAX_IMAGE} are supported")

    def relocate(self, base: int) -> bytearray:
        """The bytes of the image when it is loaded at `base`, up to the end of initialised data."""
        content = bytearray(self.size)
        for index, offset in self.offsets.items():
            section = self.object.sections[index]
            if section.kind != elf.SHT_NOBITS:
                content[offset : offset + section.size] = self.object.data[
                    section.offset : section.offset + section.size
                ]
        addresses = _Addresses(self, base)
        for index, slot in self.slots.items():
            content[slot : slot + 8] = (addresses[index] & (1 << 64) - 1).to_bytes(8, "little")
        for index, at in self.stubs.items():
            code = relocate.stub(self.machine, base + at, base + self.slots[index])
            content[at : at + relocate.STUB_SIZE] = code
        for target, entries in self.object.relocations.items():
            if target in self.offsets:
                for entry in entries:
                    self._apply(content, base, target, entry, addresses)
        return content

    def exports(self, base: int, *, local_symbols: bool = False) -> dict[str, int]:
        """Addresses of the global symbols, on demand also of the local ones that have a name."""
        return {
            symbol.name: base + self.offsets[symbol.section] + symbol.value
            for symbol in self.object.symbols
            if (symbol.is_global or (local_symbols and symbol.name)) and symbol.section in self.offsets
        }

    def _parts(self) -> tuple[list[int], list[int], list[int]]:
        parts: tuple[list[int], list[int], list[int]] = ([], [], [])
        for index, section in enumerate(self.object.sections):
            # Unwind tables are never registered, so they need not be loaded.
            if not section.flags & elf.SHF_ALLOC or section.name.startswith(".eh_frame"):
                continue
            if section.flags & elf.SHF_TLS or section.name.startswith(
                (".init_array", ".ctors", ".fini_array")
            ):
                raise LoadError(
                    f"section {section.name}: thread-local data and initialisers are not supported"
                )
            kind = (
                _CODE
                if section.flags & elf.SHF_EXEC
                else _DATA
                if section.flags & elf.SHF_WRITE
                else _CONSTANTS
            )
            parts[kind].append(index)
        return parts

    def _count_stubs(self, parts: tuple[list[int], ...]) -> None:
        """Gives a GOT slot or stub to each symbol that some relocation wants one for."""
        for part in parts:
            for index in part:
                for entry in self.object.relocations.get(index, ()):
                    undefined = self.object.symbols[entry.symbol].section == elf.SHN_UNDEF
                    call = relocate.is_call(self.machine, entry.kind) and undefined
                    if call:
                        self.stubs[entry.symbol] = 0
                    if call or relocate.uses_got(self.machine, entry.kind):
                        self.slots[entry.symbol] = 0

    def _place(self, part: list[int], end: int) -> int:
        for index in part:
            end = _round(end, self.object.sections[index].align)
            self.offsets[index] = end
            end += self.object.sections[index].size
        return end

    def _reserve(self, table: dict[int, int], size: int, end: int) -> int:
        end = _round(end, 16)
        for index in table:
            table[index] = end
            end += size
        return end

    def _apply(
        self, content: bytearray, base: int, target: int, entry: elf.Relocation, addresses: _Addresses
    ) -> None:
        section = self.object.sections[target]
        name = self.object.symbols[entry.symbol].name
        if (
            entry.offset + relocate.width(self.machine, entry.kind) > section.size
            or section.kind == elf.SHT_NOBITS
        ):
            raise LoadError(
                f"corrupt object: relocation at {entry.offset} of {section.name} ({section.size} bytes)"
            )
        at = self.offsets[target] + entry.offset
        if relocate.uses_got(self.machine, entry.kind):
            value = base + self.slots[entry.symbol]
        else:
            value = addresses[entry.symbol]
            far = not relocate.reachable(self.machine, value + entry.addend - base - at)
            if far and entry.symbol in self.stubs and relocate.is_call(self.machine, entry.kind):
                value = base + self.stubs[entry.symbol]
        relocate.apply(
            self.machine, entry.kind, relocate.Place(content, at, base + at, name), value, entry.addend
        )


class _Addresses(dict[int, int]):
    """Address of each symbol by index, computed on first use."""

    def __init__(self, image: Image, base: int) -> None:
        super().__init__()
        self._image, self._base = image, base

    def __missing__(self, index: int) -> int:
        image = self._image
        symbol = image.object.symbols[index]
        if symbol.section in image.offsets:
            address = self._base + image.offsets[symbol.section] + symbol.value
        elif index in image.commons:
            address = self._base + image.commons[index]
        elif symbol.section == elf.SHN_ABS:
            address = symbol.value
        elif symbol.section == elf.SHN_UNDEF and symbol.name:
            address = self._external(symbol)
        else:
            raise LoadError(f"symbol {symbol.name or index!r} is in a section that is not loaded")
        self[index] = address
        return address

    def _external(self, symbol: elf.Symbol) -> int:
        try:
            return self._image.resolve(symbol.name)
        except SymbolError:
            if symbol.is_weak:
                return 0
            raise


def _round(value: int, align: int) -> int:
    return -(-value // align) * align
