# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Maps object code into memory: the only way compiled code enters the process, whoever compiled it."""

from __future__ import annotations

import ctypes
import mmap
import platform
import sys

from graphc_runtime import elf
from graphc_runtime.errors import LoadError, SymbolError
from graphc_runtime.image import Image, Resolver

_MACHINES = {"x86_64": elf.X86_64, "AMD64": elf.X86_64, "aarch64": elf.AARCH64, "arm64": elf.AARCH64}
_UNLOAD = ctypes.CFUNCTYPE(None)


class LoadedObject:
    """Object code in memory, unmapped when this object is deleted: keep it while its code can run."""

    def __init__(self, base: int, size: int, symbols: dict[str, int]) -> None:
        self._base, self._size, self._symbols = base, size, symbols
        self._unmap = _libc().munmap
        # Frees what the code keeps between calls.
        unload = symbols.get("graphc_unload")
        self._unload = _UNLOAD(unload) if unload else None

    def address(self, symbol: str) -> int:
        """Address of a global symbol.

        Raises:
            SymbolError: the object does not define it.
        """
        try:
            return self._symbols[symbol]
        except KeyError:
            known = ", ".join(sorted(self._symbols)) or "nothing"
            raise SymbolError(f"the object does not define {symbol!r}; it defines {known}") from None

    def __contains__(self, symbol: str) -> bool:
        return symbol in self._symbols

    @property
    def size(self) -> int:
        """Bytes of memory mapped."""
        return self._size

    def __del__(self) -> None:
        if getattr(self, "_base", 0):
            if self._unload is not None:
                self._unload()
            self._unmap(self._base, self._size)
            self._base = 0


def load_object(data: bytes, resolve: Resolver, *, local_symbols: bool = False) -> LoadedObject:
    """Loads an ELF relocatable object.

    Args:
        data: object bytes for this machine's architecture.
        resolve: gives the address of an external symbol; raises SymbolError for one it does not know.
        local_symbols: also give the addresses of symbols that are not global.

    Raises:
        LoadError: the object is corrupt, for another architecture, or uses an unsupported feature.
    """
    machine = host_machine()
    image = Image(elf.parse(data), resolve)
    if image.machine != machine:
        raise LoadError(f"the object is for ELF machine {image.machine}, this process runs on {machine}")
    page = mmap.PAGESIZE
    size = image.size + max(image.align - page, 0)
    base = _map(size)
    try:
        start = -(-base // image.align) * image.align
        content = image.relocate(start)
        ctypes.memmove(start, bytes(content), len(content))
        code, constants = image.code_size, image.constants_size
        _protect(start, code, mmap.PROT_READ | mmap.PROT_EXEC)
        _protect(start + code, constants, mmap.PROT_READ)
        _flush_instructions(start, code)
    except BaseException:
        _libc().munmap(base, size)
        raise
    return LoadedObject(base, size, image.exports(start, local_symbols=local_symbols))


def host_machine() -> int:
    """ELF machine number of this process.

    Raises:
        LoadError: neither x86-64 nor AArch64.
    """
    name = platform.machine()
    if name not in _MACHINES or sys.maxsize < 1 << 32 or sys.platform == "win32":
        raise LoadError(
            f"no loader for {name} on {sys.platform}; x86-64 and AArch64 on Linux and macOS are supported"
        )
    return _MACHINES[name]


_LIBC: list[ctypes.CDLL] = []


def _libc() -> ctypes.CDLL:
    if not _LIBC:
        libc = ctypes.CDLL(None, use_errno=True)
        libc.mmap.restype = ctypes.c_void_p
        libc.mmap.argtypes = [ctypes.c_void_p, ctypes.c_size_t, *[ctypes.c_int] * 3, ctypes.c_long]
        libc.munmap.argtypes = [ctypes.c_void_p, ctypes.c_size_t]
        libc.mprotect.argtypes = [ctypes.c_void_p, ctypes.c_size_t, ctypes.c_int]
        _LIBC.append(libc)
    return _LIBC[0]


def _map(size: int) -> int:
    flags = mmap.MAP_PRIVATE | mmap.MAP_ANON
    address = _libc().mmap(None, size, mmap.PROT_READ | mmap.PROT_WRITE, flags, -1, 0)
    if address in (None, ctypes.c_void_p(-1).value):
        raise LoadError(f"no memory for {size} bytes of code (errno {ctypes.get_errno()})")
    return int(address)


def _protect(address: int, size: int, protection: int) -> None:
    if size and _libc().mprotect(address, size, protection):
        raise LoadError(f"the system does not let code become executable (errno {ctypes.get_errno()})")


def _flush_instructions(address: int, size: int) -> None:
    """AArch64 caches instructions apart from data; x86-64 keeps both coherent."""
    if host_machine() != elf.AARCH64:
        return
    name = "sys_icache_invalidate" if sys.platform == "darwin" else "__clear_cache"
    flush = getattr(_libc(), name, None)
    if flush is not None:  # without it Linux has flushed the pages when mprotect made them executable
        second = size if sys.platform == "darwin" else address + size
        flush(ctypes.c_void_p(address), ctypes.c_void_p(second))
