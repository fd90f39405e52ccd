# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""NumPy's C functions for random draws, from the static library that its Linux wheels contain.

``numpy/random/lib/libnpyrandom.a`` holds the very code that ``numpy.random.Generator`` runs, so that compiled
code draws the same numbers. Its objects are loaded when one of their symbols is first asked for, by the
loader that also maps our own code; nothing is copied and nothing is linked.
"""

from __future__ import annotations

from dataclasses import field
from functools import cache
from pathlib import Path

import numpy as np

from graphc_runtime import elf
from graphc_runtime.errors import LoadError, SymbolError
from graphc_runtime.libraries import c_function
from graphc_runtime.loader import LoadedObject, host_machine, load_object
from graphc_runtime.record import record

_MAGIC, _HEADER_SIZE = b"!<arch>\n", 60
# Members of an archive that are tables of the archiver.
_TABLES = ("/", "//", "/SYM64/", "__.SYMDEF")
_MAX_SIZE = 1 << 26


def archive_path() -> Path:
    """Path of NumPy's library, if it has one."""
    return Path(np.__file__).parent / "random" / "lib" / "libnpyrandom.a"


def members(data: bytes) -> list[bytes]:
    """The objects in an archive of the common (System V, GNU) format.

    Raises:
        LoadError: it is no such archive, or it ends early.
    """
    if not data.startswith(_MAGIC):
        raise LoadError(f"not an archive: it begins with {data[:8]!r}")
    found, at = [], len(_MAGIC)
    while at < len(data):
        header = data[at : at + _HEADER_SIZE]
        if len(header) < _HEADER_SIZE or header[58:] != b"`\n":
            raise LoadError(f"corrupt archive: no member header at {at}")
        try:
            size = int(header[48:58])
        except ValueError:
            raise LoadError(f"corrupt archive: the size of the member at {at} is no number") from None
        start = at + _HEADER_SIZE
        if size < 0 or start + size > len(data):
            raise LoadError(f"corrupt archive: the member at {at} goes beyond the end")
        if header[:16].decode("latin-1").strip() not in _TABLES:
            found.append(data[start : start + size])
        at = start + size + size % 2
    return found


@record()
class _Library:
    """The objects of an archive; each is loaded when it is needed."""

    objects: list[bytes]
    defined: dict[str, int]
    loaded: dict[int, LoadedObject] = field(default_factory=dict)
    loading: set[int] = field(default_factory=set)

    @classmethod
    def read(cls, path: Path) -> _Library:
        """Finds out which object defines which symbols; the tables of the ziggurats are local ones.

        Raises:
            LoadError: the file is missing, damaged, or made for another kind of machine.
        """
        try:
            data = path.read_bytes() if path.stat().st_size <= _MAX_SIZE else b""
        except OSError as error:
            raise LoadError(f"{path} cannot be read: {error.strerror}") from None
        objects = members(data)
        defined: dict[str, int] = {}
        for number, content in enumerate(objects):
            parsed = elf.parse(content)
            if parsed.machine != host_machine():
                raise LoadError(f"{path} is for ELF machine {parsed.machine}")
            for symbol in parsed.symbols:
                if symbol.name and 0 < symbol.section < elf.SHN_RESERVED:
                    defined.setdefault(symbol.name, number)
        return cls(objects, defined)

    def address(self, name: str) -> int:
        number = self.defined.get(name)
        if number is None:
            raise SymbolError(f"NumPy's library of random draws does not define {name!r}")
        if number not in self.loaded:
            if number in self.loading:
                raise SymbolError(f"objects of NumPy's library of random draws need each other for {name!r}")
            self.loading.add(number)
            try:
                self.loaded[number] = load_object(self.objects[number], self._resolve, local_symbols=True)
            finally:
                self.loading.discard(number)
        return self.loaded[number].address(name)

    def _resolve(self, name: str) -> int:
        """A symbol that an object uses: of another object, or of the C library."""
        if name in self.defined:
            return self.address(name)
        address = c_function(name)
        if address is None:
            raise SymbolError(
                f"NumPy's library of random draws needs {name!r}, which this process does not have"
            )
        return address


# Compiled code holds addresses of these for the life of the process.
_ALIVE: list[_Library] = []


@cache
def _library() -> _Library | str:
    """The library, or the reason why there is none."""
    try:
        _ALIVE.append(_Library.read(archive_path()))
    except LoadError as error:
        return str(error)
    return _ALIVE[-1]


def address(name: str) -> int:
    """Address of a function or table of the library.

    Raises:
        SymbolError: there is no library that this process can use, or it does not define the symbol.
        LoadError: the object that defines it cannot be loaded.
    """
    library = _library()
    if isinstance(library, str):
        raise SymbolError(
            f"the compiled code needs NumPy's C function {name!r}, but {library}; compile again here, so "
            "that draws run in Python"
        )
    return library.address(name)


@cache
def obstacle(*names: str) -> str | None:
    """Reason for which symbols of the library cannot be used here; None if they can."""
    try:
        for name in names:
            address(name)
    except LoadError as error:
        return str(error)
    return None
