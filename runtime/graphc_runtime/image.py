# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""The memory picture of an object: where its sections go, and its bytes for a given base address.

Relocation formulas and far-call stubs are those of the x86-64 psABI 4.4, and of ELF for the Arm 64-bit
Architecture 5.7. S is the symbol's address, A the addend, P the address of the patched place, G the address
of the symbol's GOT slot.
"""

from __future__ import annotations

import mmap
import struct
from collections.abc import Callable
from dataclasses import field
from typing import NamedTuple

from graphc_runtime import elf
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
        end = self._reserve(self.stubs, _STUB_SIZE, end)
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
            code = _stub(self.machine, base + at, base + self.slots[index])
            content[at : at + _STUB_SIZE] = code
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
                    call = undefined and entry.kind in _CALL[self.machine]
                    if call:
                        self.stubs[entry.symbol] = 0
                    if call or entry.kind in _GOT[self.machine]:
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
        """Patches one place.

        Raises:
            LoadError: an unknown relocation, one outside of its section, or a value that does not fit.
        """
        section, machine, kind = self.object.sections[target], self.machine, entry.kind
        name = self.object.symbols[entry.symbol].name
        if entry.offset + _WIDTH[machine].get(kind, 4) > section.size or section.kind == elf.SHT_NOBITS:
            raise LoadError(
                f"corrupt object: relocation at {entry.offset} of {section.name} ({section.size} bytes)"
            )
        at = self.offsets[target] + entry.offset
        if kind in _GOT[machine]:
            value = base + self.slots[entry.symbol]
        else:
            value = addresses[entry.symbol]
            if kind in _CALL[machine] and entry.symbol in self.stubs:
                distance, reach = value + entry.addend - base - at, _REACH[machine]
                if not -reach <= distance < reach:
                    value = base + self.stubs[entry.symbol]
        apply(machine, kind, Place(content, at, base + at, name), value, entry.addend)


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


# Which relocations go through a GOT slot, and which may go through a stub.
_GOT = {elf.X86_64: {9, 41, 42}, elf.AARCH64: {311, 312}}
_CALL = {elf.X86_64: {4}, elf.AARCH64: {282, 283, 314}}
# What a direct call can cover.
_REACH = {elf.X86_64: (1 << 31) - 64, elf.AARCH64: (1 << 27) - 64}
_STUB_SIZE = 16


class Place(NamedTuple):
    """Place of a relocation: `image[at]` will live at address `address`."""

    image: bytearray
    at: int
    address: int
    name: str


def _stub(machine: int, address: int, slot: int) -> bytes:
    """Code at `address` that jumps to where the GOT slot points."""
    if machine == elf.X86_64:  # jmp *slot(%rip); int3 padding
        return b"\xff\x25" + struct.pack("<i", slot - address - 6) + b"\xcc" * 10
    pages = (slot >> 12) - (address >> 12)
    adrp = 0x90000010 | (pages & 3) << 29 | (pages >> 2 & 0x7FFFF) << 5  # adrp x16, page of slot
    ldr = 0xF9400211 | (slot & 0xFFF) >> 3 << 10  # ldr x17, [x16, #lo12]
    return struct.pack("<4I", adrp, ldr, 0xD61F0220, 0xD503201F)  # br x17; nop


def apply(machine: int, kind: int, place: Place, target: int, addend: int) -> None:
    """Patches one place. `target` is S, or G for the relocations that use the GOT.

    Raises:
        LoadError: an unknown relocation, or a value that does not fit.
    """
    formula = _FORMULAS[machine].get(kind)
    if formula is None:
        machine_name = "x86-64" if machine == elf.X86_64 else "AArch64"
        raise LoadError(f"relocation {kind} of {machine_name} for symbol {place.name!r} is not supported")
    formula(place, target + addend)


_Formula = Callable[[Place, int], None]


def _put(place: Place, value: int, size: int, *, signed: bool) -> None:
    low = -(1 << size * 8 - 1) if signed else 0
    if not low <= value < 1 << (size * 8 - (1 if signed else 0)):
        raise LoadError(f"symbol {place.name!r} is out of reach of a {size * 8}-bit relocation")
    place.image[place.at : place.at + size] = (value & ((1 << size * 8) - 1)).to_bytes(size, "little")


def _absolute(size: int, *, signed: bool = False) -> _Formula:
    return lambda place, value: _put(
        place, value & (1 << 64) - 1 if size == 8 else value, size, signed=signed
    )


def _relative(size: int) -> _Formula:
    return lambda place, value: _put(place, value - place.address, size, signed=True)


def _field(place: Place, value: int, bits: int, shift: int) -> None:
    """Stores a `bits` wide field of an AArch64 instruction."""
    word = int.from_bytes(place.image[place.at : place.at + 4], "little")
    mask = ((1 << bits) - 1) << shift
    word = (word & ~mask) | (value << shift & mask)
    place.image[place.at : place.at + 4] = word.to_bytes(4, "little")


def _branch(bits: int, shift: int) -> _Formula:
    def patch(place: Place, value: int) -> None:
        distance = value - place.address
        if distance & 3 or not -(1 << bits + 1) <= distance < 1 << bits + 1:
            raise LoadError(f"symbol {place.name!r} is out of reach of a {bits}-bit branch")
        _field(place, distance >> 2, bits, shift)

    return patch


def _page(place: Place, value: int) -> None:
    pages = (value >> 12) - (place.address >> 12)
    if not -(1 << 20) <= pages < 1 << 20:
        raise LoadError(f"symbol {place.name!r} is out of reach of adrp")
    _field(place, pages & 3, 2, 29)
    _field(place, pages >> 2, 19, 5)


def _adr(place: Place, value: int) -> None:
    distance = value - place.address
    if not -(1 << 20) <= distance < 1 << 20:
        raise LoadError(f"symbol {place.name!r} is out of reach of adr")
    _field(place, distance & 3, 2, 29)
    _field(place, distance >> 2, 19, 5)


def _low12(scale: int) -> _Formula:
    def patch(place: Place, value: int) -> None:
        if value & ((1 << scale) - 1):
            raise LoadError(f"symbol {place.name!r} is not aligned for a {1 << scale}-byte access")
        _field(place, (value & 0xFFF) >> scale, 12, 10)

    return patch


def _move(group: int) -> _Formula:
    return lambda place, value: _field(place, value >> 16 * group & 0xFFFF, 16, 5)


def _nothing(place: Place, value: int) -> None:
    """R_*_NONE."""


_FORMULAS: dict[int, dict[int, _Formula]] = {
    elf.X86_64: {
        0: _nothing,
        1: _absolute(8),  # 64
        2: _relative(4),  # PC32
        4: _relative(4),  # PLT32
        9: _relative(4),  # GOTPCREL
        10: _absolute(4),  # 32
        11: _absolute(4, signed=True),  # 32S
        24: _relative(8),  # PC64
        41: _relative(4),  # GOTPCRELX
        42: _relative(4),  # REX_GOTPCRELX
    },
    elf.AARCH64: {
        0: _nothing,
        257: _absolute(8),
        258: _absolute(4),
        260: _relative(8),
        261: _relative(4),
        263: _move(0),
        264: _move(0),
        265: _move(1),
        266: _move(1),
        267: _move(2),
        268: _move(2),
        269: _move(3),
        273: _branch(19, 5),  # ldr literal
        274: _adr,
        275: _page,
        276: _page,
        277: _low12(0),
        278: _low12(0),
        279: _branch(14, 5),
        280: _branch(19, 5),
        282: _branch(26, 0),
        283: _branch(26, 0),
        284: _low12(1),
        285: _low12(2),
        286: _low12(3),
        299: _low12(4),
        311: _page,
        312: _low12(3),
        314: _relative(4),
    },
}

# Bytes that each relocation writes: anything not listed is four.
_WIDTH = {elf.X86_64: {0: 0, 1: 8, 24: 8}, elf.AARCH64: {0: 0, 257: 8, 260: 8}}
