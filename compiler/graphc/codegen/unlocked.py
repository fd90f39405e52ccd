# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""LLVM's two long calls without llvmlite's lock, so that several threads can make them at once.

llvmlite lets one thread at a time call LLVM. LLVM itself asks for less: what a thread works on, its context,
modules, target machine and passes, must be its own. The calls here release the GIL too. Everything else goes
through llvmlite's functions as usual.
"""

from __future__ import annotations

import ctypes
import functools
from collections.abc import Callable, Sequence
from threading import Lock, Thread
from typing import Any, TypeVar

_Item = TypeVar("_Item")
_Result = TypeVar("_Result")


def run_passes(manager: Any, module: Any, builder: Any) -> None:
    """The same as `ModulePassManager.run`; nothing that it is given may be in use elsewhere."""
    _library().LLVMPY_RunNewModulePassManager(manager, module, builder)


def emit_object(machine: Any, module: Any) -> bytes:
    """The same as `TargetMachine.emit_object`; nothing that it is given may be in use elsewhere.

    Raises:
        RuntimeError: LLVM cannot emit the module.
    """
    from llvmlite.binding import ffi

    with ffi.OutputString() as error:
        memory = _library().LLVMPY_TargetMachineEmitToMemory(machine, module, 1, error)
        if not memory:
            raise RuntimeError(str(error))
    try:
        return ctypes.string_at(ffi.lib.LLVMPY_GetBufferStart(memory), ffi.lib.LLVMPY_GetBufferSize(memory))
    finally:
        ffi.lib.LLVMPY_DisposeMemoryBuffer(memory)


@functools.cache
def _library() -> Any:
    """A handle of llvmlite's library whose functions have types of their own."""
    from llvmlite.binding import ffi

    library = ctypes.CDLL(ffi.lib._name)
    library.LLVMPY_RunNewModulePassManager.restype = None
    library.LLVMPY_RunNewModulePassManager.argtypes = [
        ffi.LLVMModulePassManagerRef,
        ffi.LLVMModuleRef,
        ffi.LLVMPassBuilderRef,
    ]
    emit = library.LLVMPY_TargetMachineEmitToMemory
    emit.restype = ffi.LLVMMemoryBufferRef
    emit.argtypes = [
        ffi.LLVMTargetMachineRef,
        ffi.LLVMModuleRef,
        ctypes.c_int,
        ctypes.POINTER(ctypes.c_char_p),
    ]
    return library


def share(function: Callable[[_Item], _Result], items: Sequence[_Item], threads: int) -> list[_Result]:
    """`[function(item) for item in items]`, by this thread and at most `threads - 1` others.

    Raises:
        The first exception of `function`, once the other threads have finished.
    """
    results: dict[int, _Result] = {}
    errors: list[BaseException] = []
    pending = list(reversed(range(len(items))))
    lock = Lock()

    def work() -> None:
        while True:
            with lock:
                if errors or not pending:
                    return
                number = pending.pop()
            try:
                results[number] = function(items[number])
            except BaseException as error:
                errors.append(error)

    helpers: list[Thread] = []
    try:
        for _ in range(min(threads, len(items)) - 1):
            helper = Thread(target=work, name="graphc-codegen")
            try:
                helper.start()
            except RuntimeError:  # no more threads are to be had
                break
            helpers.append(helper)
        work()
    finally:
        with lock:
            pending.clear()
        for helper in helpers:
            helper.join()
    if errors:
        raise errors[0]
    return [results[number] for number in range(len(items))]
