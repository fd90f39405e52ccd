# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""What the loader asks macOS on Apple's processors for, where there is no such machine: calls, in order.

Memory there is writable or executable, never both; pages have 16 KiB, and instructions are cached apart from
data. A process with the hardened runtime needs Apple's entitlement for executable memory besides.
"""

from __future__ import annotations

import ctypes
import mmap
from types import SimpleNamespace

import pytest

from graphc_runtime import elf, loader
from graphc_runtime.errors import LoadError

PAGE = 16384
SOURCE = """
@table = internal constant [4 x i64] [i64 1, i64 2, i64 3, i64 4]
@counter = global i64 5
declare i64 @outside()
define i64 @f(i64 %i) {
  %p = getelementptr i64, ptr @table, i64 %i
  %v = load i64, ptr %p
  %o = call i64 @outside()
  %r = add i64 %v, %o
  store i64 %r, ptr @counter
  ret i64 %r
}
"""
W, X = mmap.PROT_WRITE, mmap.PROT_EXEC


class System:
    """A C library that writes down its calls; its memory is a buffer of this process."""

    def __init__(self, answer=0):
        self.calls, self.answer = [], answer

    def mmap(self, address, size, protection, flags, file, offset):
        self.memory = ctypes.create_string_buffer(size + PAGE)
        self.base = -(-ctypes.addressof(self.memory) // PAGE) * PAGE
        self.calls.append(("mmap", 0, size, protection))
        assert flags == mmap.MAP_PRIVATE | mmap.MAP_ANON and (file, offset) == (-1, 0)
        return self.base

    def mprotect(self, address, size, protection):
        self.calls.append(("mprotect", address - self.base, size, protection))
        return self.answer

    def munmap(self, address, size):
        self.calls.append(("munmap", address - self.base, size, 0))

    def sys_icache_invalidate(self, address, size):
        self.calls.append(("invalidate", address.value - self.base, size.value, 0))


@pytest.fixture
def code():
    import llvmlite.binding as llvm

    llvm.initialize_all_targets()
    llvm.initialize_all_asmprinters()
    module = llvm.parse_assembly(SOURCE)
    module.triple = "aarch64-unknown-linux-gnu"  # what graphc compiles for on every system
    machine = llvm.Target.from_triple(module.triple).create_target_machine(opt=2, reloc="pic")
    return machine.emit_object(module)


@pytest.fixture
def system(monkeypatch):
    made = System()
    monkeypatch.setattr(loader, "sys", SimpleNamespace(platform="darwin", maxsize=2**63 - 1))
    monkeypatch.setattr(loader, "platform", SimpleNamespace(machine=lambda: "arm64"))
    monkeypatch.setattr(mmap, "PAGESIZE", PAGE)
    monkeypatch.setattr(loader, "_libc", lambda: made)
    return made


def test_memory_is_writable_or_executable(system, code):
    loaded = loader.load_object(code, lambda name: 0x1234_5678)
    names = [name for name, *_ in system.calls]
    assert names == ["mmap", "mprotect", "mprotect", "invalidate"]
    assert not any(protection & W and protection & X for *_, protection in system.calls)
    (_, start, size, first), (_, then, more, second) = system.calls[1:3]
    assert first == X | mmap.PROT_READ and second == mmap.PROT_READ
    assert (start, then) == (0, size) and size % PAGE == more % PAGE == 0 < more
    assert system.calls[3][1:3] == (0, size)  # after the bytes are there, and all of them
    assert 0 <= loaded.address("f") - system.base < size
    assert ctypes.c_int32.from_address(loaded.address("f")).value != 0  # written before it was executable
    assert loaded.address("counter") - system.base >= size + more  # data stay writable
    del loaded
    assert system.calls[-1][0] == "munmap"


def test_a_process_that_may_not_execute_memory_says_so(system, code):
    system.answer = -1
    with pytest.raises(LoadError, match="does not let code become executable"):
        loader.load_object(code, lambda name: 0)
    assert system.calls[-1][0] == "munmap"


def test_code_for_linux_is_code_for_macos(system):
    assert loader.host_machine() == elf.AARCH64
