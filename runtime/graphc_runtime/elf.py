# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Reads ELF64 little-endian relocatable objects (System V gABI, chapter 4). Every offset is checked.

Several objects that refer to each other can be joined: magic, number of objects, size of each, and the
objects. They are read as if they were one.
"""

from __future__ import annotations

import struct
from collections.abc import Sequence
from functools import lru_cache
from typing import NamedTuple

from graphc_runtime.errors import LoadError
from graphc_runtime.record import record

X86_64, AARCH64 = 62, 183
SHT_SYMTAB, SHT_RELA, SHT_NOBITS, SHT_REL = 2, 4, 8, 9
SHF_WRITE, SHF_ALLOC, SHF_EXEC, SHF_TLS = 1, 2, 4, 0x400
SHN_UNDEF, SHN_ABS, SHN_COMMON, SHN_RESERVED = 0, 0xFFF1, 0xFFF2, 0xFF00

_HEADER = struct.Struct("<16sHHIQQQIHHHHHH")
_SECTION = struct.Struct("<IIQQQQIIQQ")
_SYMBOL = struct.Struct("<IBBHQQ")
_RELA = struct.Struct("<QQq")
JOINED = b"graphcO\x01"  # the last byte is the version of the layout
STV_INTERNAL, STV_HIDDEN = 1, 2
_MAX_SIZE = 1 << 31  # everything has to be reachable with 32-bit displacements


class Section(NamedTuple):
    """One section header; `offset` is into the file."""

    name: str
    kind: int
    flags: int
    offset: int
    size: int
    link: int
    info: int
    align: int


class Symbol(NamedTuple):
    """One symbol; `section` is an index or one of the SHN constants.

    Hidden symbols are not global: objects that are joined see them, nobody else does.
    """

    name: str
    section: int
    value: int
    size: int
    is_global: bool
    is_weak: bool
    is_hidden: bool = False


class Relocation(NamedTuple):
    """One entry of a relocation section; `offset` is into the section it applies to."""

    offset: int
    kind: int
    symbol: int
    addend: int


@record(frozen=True)
class Object:
    """A parsed object. `relocations` maps a section index to its entries."""

    data: bytes
    machine: int
    sections: list[Section]
    symbols: list[Symbol]
    relocations: dict[int, list[Relocation]]


@lru_cache(maxsize=1)  # what was compiled is read for its external symbols, and then to be loaded
def parse(data: bytes) -> Object:
    """Parses an object, or several that `join` has joined. Nobody changes what it returns.

    Raises:
        LoadError: not well-formed ELF64 little-endian relocatable objects, or two of them define a symbol.
    """
    if data[: len(JOINED)] == JOINED:
        return _merge(data)
    return _parse(data)


def join(objects: Sequence[bytes]) -> bytes:
    """Objects as one sequence of bytes; a single one stays as it is."""
    if len(objects) == 1:
        return bytes(objects[0])
    sizes = [len(data) for data in objects]
    return b"".join([JOINED, struct.pack(f"<I{len(sizes)}Q", len(sizes), *sizes), *objects])


def _parse(data: bytes) -> Object:
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
        _symbol(_string(strings, name), info >> 4, other & 3, section, value, size)
        for name, info, other, section, value, size in _SYMBOL.iter_unpack(body)
    ]


def _symbol(name: str, binding: int, visibility: int, section: int, value: int, size: int) -> Symbol:
    hidden = binding != 0 and visibility in (STV_INTERNAL, STV_HIDDEN)
    return Symbol(name, section, value, size, binding != 0 and not hidden, binding == 2, hidden)


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


def _merge(data: bytes) -> Object:
    """Joined objects as one: sections and symbols of all, one after the other."""
    sections: list[Section] = []
    symbols: list[Symbol] = []
    relocations: dict[int, list[Relocation]] = {}
    machines = set()
    for start, size in _places(data):
        one = _parse(data[start : start + size])
        machines.add(one.machine)
        first_section, first_symbol = len(sections), len(symbols)
        sections += [
            Section(name, kind, flags, offset + start, *rest)
            for name, kind, flags, offset, *rest in one.sections
        ]
        symbols += [_moved(symbol, first_section) for symbol in one.symbols]
        for target, entries in one.relocations.items():
            relocations[target + first_section] = [
                Relocation(offset, kind, symbol + first_symbol, addend)
                for offset, kind, symbol, addend in entries
            ]
    if len(machines) > 1:
        raise LoadError("corrupt object: objects for several machines are joined")
    return Object(data, machines.pop(), sections, _resolved(symbols), relocations)


def _places(data: bytes) -> list[tuple[int, int]]:
    """Offset and size of each joined object."""
    table = len(JOINED) + 4
    count = int.from_bytes(data[len(JOINED) : table], "little")
    start = table + 8 * count
    if len(data) < start or not count:
        raise LoadError("corrupt object: the table of joined objects is cut off")
    places = []
    for size in struct.unpack_from(f"<{count}Q", data, table):
        _slice(data, start, size, "a joined object")
        places.append((start, size))
        start += size
    return places


def _moved(symbol: Symbol, first_section: int) -> Symbol:
    """A symbol whose object's sections begin with this number."""
    if not 0 < symbol.section < SHN_RESERVED:
        return symbol
    if symbol.section + first_section >= SHN_RESERVED:
        raise LoadError("the joined objects have too many sections")
    return symbol._replace(section=symbol.section + first_section)


def _resolved(symbols: list[Symbol]) -> list[Symbol]:
    """The symbols, with definitions in the place of what another object defines."""
    defined: dict[str, Symbol] = {}
    for symbol in symbols:
        if symbol.section != SHN_UNDEF and (symbol.is_global or symbol.is_hidden):
            if symbol.name in defined:
                raise LoadError(f"two joined objects define {symbol.name!r}")
            defined[symbol.name] = symbol
    return [defined.get(s.name, s) if s.section == SHN_UNDEF and s.name else s for s in symbols]


def external_symbols(data: bytes) -> list[str]:
    """Names of the symbols that an object uses and does not define, sorted."""
    return sorted(s.name for s in parse(data).symbols if s.section == SHN_UNDEF and s.name)
