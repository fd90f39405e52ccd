# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Reads ELF64 little-endian relocatable objects (System V gABI, chapter 4). Every offset is checked."""

from __future__ import annotations

import struct
from dataclasses import dataclass

from graphc_runtime.errors import LoadError

X86_64, AARCH64 = 62, 183
SHT_SYMTAB, SHT_RELA, SHT_NOBITS, SHT_REL = 2, 4, 8, 9
SHF_WRITE, SHF_ALLOC, SHF_EXEC, SHF_TLS = 1, 2, 4, 0x400
SHN_UNDEF, SHN_ABS, SHN_COMMON, SHN_RESERVED = 0, 0xFFF1, 0xFFF2, 0xFF00

_HEADER = struct.Struct("<16sHHIQQQIHHHHHH")
_SECTION = struct.Struct("<IIQQQQIIQQ")
_SYMBOL = struct.Struct("<IBBHQQ")
_RELA = struct.Struct("<QQq")
_MAX_SIZE = 1 << 31  # everything has to be reachable with 32-bit displacements


@dataclass(frozen=True, slots=True)
class Section:
    """One section header; `offset` is into the file."""

    name: str
    kind: int
    flags: int
    offset: int
    size: int
    link: int
    info: int
    align: int


@dataclass(frozen=True, slots=True)
class Symbol:
    """One symbol; `section` is an index or one of the SHN constants."""

    name: str
    section: int
    value: int
    size: int
    is_global: bool
    is_weak: bool


@dataclass(frozen=True, slots=True)
class Relocation:
    """One entry of a relocation section; `offset` is into the section it applies to."""

    offset: int
    kind: int
    symbol: int
    addend: int


@dataclass(frozen=True, slots=True)
class Object:
    """A parsed object. `relocations` maps a section index to its entries."""

    data: bytes
    machine: int
    sections: list[Section]
    symbols: list[Symbol]
    relocations: dict[int, list[Relocation]]


def parse(data: bytes) -> Object:
    """Parses object bytes.

    Raises:
        LoadError: the bytes are not a well-formed ELF64 little-endian relocatable object.
    """
    if len(data) < _HEADER.size or data[:4] != b"\x7fELF":
        raise LoadError(f"not an ELF object: {len(data)} bytes that begin with {data[:4]!r}")
    ident, kind, machine, _, _, _, table, _, _, _, _, entry_size, count, names = _HEADER.unpack_from(data)
    if ident[4] != 2 or ident[5] != 1 or kind != 1 or entry_size != _SECTION.size:
        raise LoadError("expected a 64-bit little-endian relocatable ELF object")
    sections = _sections(data, table, count, names)
    symbols: list[Symbol] = []
    relocations: dict[int, list[Relocation]] = {}
    for index, section in enumerate(sections):
        if section.kind == SHT_SYMTAB:
            if symbols:
                raise LoadError("corrupt object: two symbol tables")
            symbols = _symbols(data, sections, section)
        elif section.kind == SHT_REL:
            raise LoadError(f"section {section.name}: relocations without addends are not supported")
        elif section.kind == SHT_RELA:
            if not 0 < section.info < count:
                raise LoadError(
                    f"corrupt object: {section.name} applies to section {section.info} of {count}"
                )
            relocations.setdefault(section.info, []).extend(_relocations(data, sections[index]))
    _check_references(symbols, relocations, sections)
    return Object(data, machine, sections, symbols, relocations)


def _sections(data: bytes, table: int, count: int, names: int) -> list[Section]:
    if table + count * _SECTION.size > len(data) or not count or names >= count:
        raise LoadError("corrupt object: the section table lies outside the file")
    raw = [_SECTION.unpack_from(data, table + i * _SECTION.size) for i in range(count)]
    strings = _slice(data, raw[names][4], raw[names][5], "section names")
    sections = []
    for name, kind, flags, _, offset, size, link, info, align, _ in raw:
        section = Section(_string(strings, name), kind, flags, offset, size, link, info, align or 1)
        if kind not in (SHT_NOBITS, 0):
            _slice(data, offset, size, section.name)
        if size > _MAX_SIZE or section.align & (section.align - 1) or section.align > 1 << 24:
            raise LoadError(f"corrupt object: section {section.name} has size {size}, alignment {align}")
        sections.append(section)
    return sections


def _symbols(data: bytes, sections: list[Section], table: Section) -> list[Symbol]:
    if table.link >= len(sections):
        raise LoadError("corrupt object: the symbol table has no names")
    strings = _slice(data, sections[table.link].offset, sections[table.link].size, "symbol names")
    body = _slice(data, table.offset, table.size - table.size % _SYMBOL.size, table.name)
    return [
        Symbol(_string(strings, name), section, value, size, info >> 4 != 0, info >> 4 == 2)
        for name, info, _, section, value, size in _SYMBOL.iter_unpack(body)
    ]


def _relocations(data: bytes, section: Section) -> list[Relocation]:
    body = _slice(data, section.offset, section.size - section.size % _RELA.size, section.name)
    return [
        Relocation(at, info & 0xFFFFFFFF, info >> 32, addend) for at, info, addend in _RELA.iter_unpack(body)
    ]


def _check_references(
    symbols: list[Symbol], relocations: dict[int, list[Relocation]], sections: list[Section]
) -> None:
    for symbol in symbols:
        if symbol.section < SHN_RESERVED and symbol.section >= len(sections):
            raise LoadError(
                f"corrupt object: symbol {symbol.name} is in section {symbol.section} of {len(sections)}"
            )
        if 0 < symbol.section < SHN_RESERVED and symbol.value > sections[symbol.section].size:
            raise LoadError(f"corrupt object: symbol {symbol.name} lies outside section {symbol.section}")
        if symbol.section == SHN_COMMON and symbol.size > _MAX_SIZE:
            raise LoadError(f"corrupt object: common symbol {symbol.name} has size {symbol.size}")
    for target, entries in relocations.items():
        for entry in entries:
            if entry.symbol >= len(symbols):
                raise LoadError(
                    f"corrupt object: relocation in {sections[target].name} of symbol {entry.symbol}"
                )


def _slice(data: bytes, offset: int, size: int, what: str) -> bytes:
    if offset + size > len(data):
        raise LoadError(f"corrupt object: {what} lies at {offset}..{offset + size} of {len(data)} bytes")
    return data[offset : offset + size]


def _string(strings: bytes, offset: int) -> str:
    end = strings.find(b"\0", offset)
    if offset >= max(len(strings), 1) or (end < 0 and strings):
        raise LoadError("corrupt object: a name lies outside the string table")
    try:
        return strings[offset:end].decode()
    except UnicodeDecodeError:
        raise LoadError("corrupt object: a name is not UTF-8") from None


def external_symbols(data: bytes) -> list[str]:
    """Names of the symbols that an object uses and does not define, sorted."""
    return sorted(s.name for s in parse(data).symbols if s.section == SHN_UNDEF and s.name)
