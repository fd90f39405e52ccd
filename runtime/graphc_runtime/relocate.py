# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Relocation formulas and far-call stubs of x86-64 and AArch64.

Sources: x86-64 psABI 4.4; ELF for the Arm 64-bit Architecture 5.7. S is the symbol's address, A the addend,
P the address of the patched place, G the address of the symbol's GOT slot.
"""

from __future__ import annotations

import struct
from collections.abc import Callable
from typing import NamedTuple

from graphc_runtime.elf import AARCH64, X86_64
from graphc_runtime.errors import LoadError

# Which relocations go through a GOT slot, and which may go through a stub.
_GOT = {X86_64: {9, 41, 42}, AARCH64: {311, 312}}
_CALL = {X86_64: {4}, AARCH64: {282, 283, 314}}
STUB_SIZE = 16


class Place(NamedTuple):
    """Place of a relocation: `image[at]` will live at address `address`."""

    image: bytearray
    at: int
    address: int
    name: str


def uses_got(machine: int, kind: int) -> bool:
    """True if the formula needs a GOT slot for the symbol."""
    return kind in _GOT[machine]


def is_call(machine: int, kind: int) -> bool:
    """True if the relocation may be redirected to a stub."""
    return kind in _CALL[machine]


def reachable(machine: int, distance: int) -> bool:
    """True if a direct call can cover the distance."""
    limit = 1 << (31 if machine == X86_64 else 27)
    return -limit + 64 <= distance < limit - 64


def stub(machine: int, address: int, slot: int) -> bytes:
    """Code at `address` that jumps to where the GOT slot points."""
    if machine == X86_64:  # jmp *slot(%rip); int3 padding
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
        machine_name = "x86-64" if machine == X86_64 else "AArch64"
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
    X86_64: {
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
    AARCH64: {
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

# Bytes that each relocation touches: anything not listed is four.
_WIDE = {X86_64: {1, 24}, AARCH64: {257, 260}}


def width(machine: int, kind: int) -> int:
    """Bytes that a relocation writes."""
    return 8 if kind in _WIDE[machine] else 0 if kind == 0 else 4
