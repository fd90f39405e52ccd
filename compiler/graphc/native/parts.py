# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Parts: functions that many compiled functions call, compiled apart from them and kept.

The entry of a form of call, the code of a factorization or a Fourier transform and that of matrix products
are the same in all functions that need them, and take longer to compile than the function itself. A process
keeps those that it has seen last, and the disk cache all of them. An object is joined from the function's own
code and its parts (`graphc_runtime.elf.join`).

The modules of a kernel are kept in the process, too. They have no names of users, so that functions share
them whose graphs compute the same in the same layout: models that are built again, functions that differ in
what surrounds the kernel, and modules of large kernels. Other processes find whole functions on the disk.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterable

from graphc_runtime.cache import DiskCache
from graphc_runtime.record import record


@record(frozen=True)
class Piece:
    """A module of a kernel.

    Attributes:
        text: LLVM IR.
        exports: the functions that it defines for the others; if there are none, it hides nothing.
        is_final: whether LLVM has nothing to do but to make code of it.
    """

    text: str
    exports: frozenset[str] = frozenset()
    is_final: bool = False


@record(frozen=True)
class Part:
    """A module that needs nothing of the kernel that calls it but what the kernel exports.

    Attributes:
        text: LLVM IR. Functions that are not internal become hidden symbols of the object.
        exports: those of them that the loader is to find.
        finished: it is written in its final form: optimising it would cost several times the time to make
            machine code of it.
        level: of optimisation, at most: 1 for code without loops, which then takes half the time, and for
            loops that were measured to be as fast.
    """

    text: str
    exports: frozenset[str] = frozenset()
    finished: bool = False
    level: int = 3


class Definitions:
    """Functions of one module."""

    def __init__(self) -> None:
        self._functions: list[str] = []
        self._declarations: set[str] = set()

    def add(self, text: str, declarations: Iterable[str] = ()) -> None:
        """Adds a text of definitions, and the lines that declare what it needs."""
        self._functions.append(text)
        self._declarations.update(declarations)

    def text(self) -> str:
        """The module's text; empty if nothing is defined."""
        return "\n".join([*self._functions, *sorted(self._declarations), ""]) if self._functions else ""


# Objects that this process has made or read, by their keys; the one used longest ago comes first.
_MADE: dict[str, bytes] = {}
_MADE_BYTES = 4 << 20
# Larger ones are not kept: a few would take the place of all others.
_LARGEST = _MADE_BYTES // 16


@record(frozen=True)
class PartStore:
    """Objects of modules: in this process, and those of parts in the disk cache if there is one.

    Attributes:
        toolchain: identifies compiler and machine.
        cache: where they are kept for other processes.
        renew: compile all anew, whatever is there.
    """

    toolchain: str
    cache: DiskCache | None = None
    renew: bool = False

    def key(self, what: str) -> str:
        """The key of an object.

        Args:
            what: all that it depends on beside the toolchain.
        """
        return hashlib.sha256(f"{self.toolchain};{what}".encode()).hexdigest()

    def get(self, key: str, *, is_part: bool) -> bytes | None:
        """The object of a key, if it is there; that of a part may be on the disk."""
        if self.renew:
            return None
        code = _MADE.get(key)
        if code is None and self.cache is not None and is_part:
            code = self.cache.get(key)
            if code is not None and not code.startswith(b"\x7fELF"):
                self.cache.discard(key)
                return None
        if code is not None:
            _keep(key, code)
        return code

    def put(self, key: str, code: bytes, *, is_part: bool) -> None:
        """Keeps an object; that of a part on the disk, too."""
        _keep(key, code)
        if self.cache is not None and is_part:
            self.cache.put(key, code)


def _keep(key: str, code: bytes) -> None:
    """Keeps an object in this process, and drops those that were used longest ago where there are too many.

    Without a lock, which a fork could leave locked: each step is atomic, and what two threads drop is made
    again.
    """
    if len(code) > _LARGEST:
        return
    _MADE.pop(key, None)
    _MADE[key] = code
    kept = [*_MADE.items()]
    size = sum(len(code) for _, code in kept)
    for oldest, code in kept[:-1]:
        if size <= _MADE_BYTES:
            return
        size -= len(code)
        _MADE.pop(oldest, None)


def forget_parts() -> None:
    """Drops what this process keeps, so that parts are read or made again."""
    _MADE.clear()


def used_ir(symbols: Iterable[str]) -> str:
    """A list of what is kept although nothing calls it yet. Linking modules joins such lists."""
    kept = [f"ptr @{symbol}" for symbol in symbols]
    if not kept:
        return ""
    return (
        f"@llvm.compiler.used = appending global [{len(kept)} x ptr] [{', '.join(kept)}], "
        'section "llvm.metadata"\n'
    )
