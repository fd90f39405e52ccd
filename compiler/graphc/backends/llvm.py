# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""The functions of llvmlite's library that we need, called without llvmlite's lock and objects.

llvmlite lets one thread at a time call LLVM, with a lock that an interrupt or a fork at the wrong moment
leaves locked for ever, and frees what it made from whichever thread collects garbage. LLVM itself asks for
less: what a thread works on, its context, modules and passes, must be its own. So each module here has a
context of its own and ends where its ``with`` block ends, and so do pass managers, which llvmlite's objects
never free. All calls release the GIL.
"""

from __future__ import annotations

import ctypes
import functools
from collections.abc import Iterator, Mapping
from contextlib import ExitStack, contextmanager
from ctypes import POINTER, c_bool, c_char_p, c_int, c_size_t, c_void_p
from pathlib import Path
from threading import Lock
from typing import Any

_STRING = POINTER(c_void_p)
# Infos come last: other threads find a target by them, and it has to be complete then.
_EVERYTHING = ("Targets", "TargetMCs", "AsmPrinters", "TargetInfos")
# Level 0 of `CodeGenerator.optimise`: for loops that are final. LLVM's own level 0 leaves scalars in memory.
_TIDY = ("AlwaysInliner", "SROA", "SimplifyCFG", "LoopRotate")
# Result and arguments of each function; handles are pointers.
_TYPES: Mapping[str, tuple[Any, ...]] = {
    "ContextCreate": (c_void_p,),
    "ContextDispose": (None, c_void_p),
    "CopyStringRepOfTargetData": (None, c_void_p, _STRING),
    "CreateNewModulePassManager": (c_void_p,),
    "CreatePassBuilder": (c_void_p, c_void_p, c_void_p),
    "CreatePipelineTuningOptions": (c_void_p,),
    "CreateTargetMachine": (
        c_void_p,
        c_void_p,
        *(c_char_p, c_char_p, c_char_p, c_int),
        *(c_char_p, c_char_p, c_int, c_int, c_char_p),
    ),
    "CreateTargetMachineData": (c_void_p, c_void_p),
    "DisposeFunctionsIter": (None, c_void_p),
    "DisposeGlobalsIter": (None, c_void_p),
    "DisposeMemoryBuffer": (None, c_void_p),
    "DisposeModule": (None, c_void_p),
    "DisposeNewModulePassManger": (None, c_void_p),
    "DisposePassBuilder": (None, c_void_p),
    "DisposePipelineTuningOptions": (None, c_void_p),
    "DisposeString": (None, c_void_p),
    "DisposeTargetData": (None, c_void_p),
    "DisposeTargetMachine": (None, c_void_p),
    "FunctionsIterNext": (c_void_p, c_void_p),
    "GetBufferSize": (c_size_t, c_void_p),
    "GetBufferStart": (c_void_p, c_void_p),
    "GetHostCPUFeatures": (c_int, _STRING),
    "GetHostCPUName": (None, _STRING),
    "GetLinkage": (c_int, c_void_p),
    "GetTargetFromTriple": (c_void_p, c_char_p, _STRING),
    "GetValueName": (c_char_p, c_void_p),
    "InitializeNativeAsmPrinter": (None,),
    "InitializeNativeTarget": (None,),
    "IsDeclaration": (c_int, c_void_p),
    "LinkModules": (c_int, c_void_p, c_void_p, _STRING),
    "GlobalsIterNext": (c_void_p, c_void_p),
    "ModuleFunctionsIter": (c_void_p, c_void_p),
    "ModuleGlobalsIter": (c_void_p, c_void_p),
    "PTOSetLoopUnrolling": (None, c_void_p, c_bool),
    "PTOSetLoopVectorization": (None, c_void_p, c_bool),
    "PTOSetSLPVectorization": (None, c_void_p, c_bool),
    "ParseAssembly": (c_void_p, c_void_p, c_char_p, _STRING),
    "PrintModuleToString": (None, c_void_p, _STRING),
    "RunNewModulePassManager": (None, c_void_p, c_void_p, c_void_p),
    "SetDataLayout": (None, c_void_p, c_char_p),
    "SetLinkage": (None, c_void_p, c_int),
    "SetTarget": (None, c_void_p, c_char_p),
    "SetValueName": (None, c_void_p, c_char_p),
    "SetVisibility": (None, c_void_p, c_int),
    "TargetMachineEmitToMemory": (c_void_p, c_void_p, c_void_p, c_int, _STRING),
    "VerifyModule": (c_bool, c_void_p, _STRING),
    "GetVersionInfo": (c_int,),
    **{f"InitializeAll{what}": (None,) for what in _EVERYTHING},
    "buildPerModuleDefaultPipeline": (c_void_p, c_void_p, c_int),
    **{f"module_Add{name}Pass": (None, c_void_p) for name in _TIDY},
}
# Numbers of llvm-c/Core.h and of llvmlite.
_EXTERNAL, _INTERNAL, _HIDDEN = 0, 8, 1
_ASSEMBLY, _OBJECT = 0, 1
# The first version of LLVM whose pipelines have no level for size of their own; llvmlite 0.47 has LLVM 20.
_NO_SIZE_LEVEL = 22


class LLVMError(RuntimeError):
    """LLVM refused a text or could not make code of a module."""


class Symbol:
    """A function or a global variable of a module, valid as long as the module is."""

    def __init__(self, handle: int) -> None:
        self._handle = handle
        self.name = call("GetValueName", handle).decode()
        self.is_declaration = bool(call("IsDeclaration", handle))

    @property
    def is_external(self) -> bool:
        """True if other modules see it."""
        return bool(call("GetLinkage", self._handle) == _EXTERNAL)

    def rename(self, name: str) -> None:
        """Gives it another name.

        Raises:
            LLVMError: something else in the module has it.
        """
        call("SetValueName", self._handle, name.encode())
        self.name = call("GetValueName", self._handle).decode()
        if self.name != name:
            raise LLVMError(f"the module has another {name}")

    def internalise(self) -> None:
        """Makes it the module's own."""
        call("SetLinkage", self._handle, _INTERNAL)

    def hide(self) -> None:
        """Lets only other objects of the same executable see it."""
        call("SetVisibility", self._handle, _HIDDEN)


class Module:
    """A module with a context of its own; freed by `parsed`."""

    def __init__(self, context: int, handle: int) -> None:
        self.context = context
        self.handle = handle

    def set_target(self, triple: str, data_layout: str) -> None:
        """Says what code is made for."""
        call("SetTarget", self.handle, triple.encode())
        call("SetDataLayout", self.handle, data_layout.encode())

    def link_in(self, text: str) -> None:
        """Adds what another text defines.

        Raises:
            LLVMError: the text is not valid, or both define a symbol.
        """
        _link(self.handle, _parse(self.context, text))

    def link_to(self, text: str) -> None:
        """Becomes a module of another text with all that this one has: declarations are those of the text.

        Raises:
            LLVMError: as `link_in`.
        """
        other = _parse(self.context, text)
        own, self.handle = self.handle, other
        _link(other, own)

    def functions(self) -> Iterator[Symbol]:
        """All functions, with those that are only declared."""
        return self._symbols("Functions")

    def variables(self) -> Iterator[Symbol]:
        """All global variables, with those that are only declared."""
        return self._symbols("Globals")

    def _symbols(self, kind: str) -> Iterator[Symbol]:
        iterator = call(f"Module{kind}Iter", self.handle)
        try:
            while (handle := call(f"{kind}IterNext", iterator)) is not None:
                yield Symbol(handle)
        finally:
            call(f"Dispose{kind}Iter", iterator)

    def __str__(self) -> str:
        with _message() as text:
            call("PrintModuleToString", self.handle, text)
            return _text(text)


@contextmanager
def parsed(text: str) -> Iterator[Module]:
    """The module of a text, in a context of its own.

    Raises:
        LLVMError: the text does not parse or verify.
    """
    context = call("ContextCreate")
    module = None
    try:
        module = Module(context, _parse(context, text))
        yield module
    finally:
        if module is not None:
            call("DisposeModule", module.handle)
        call("ContextDispose", context)


def _link(module: int, other: int) -> None:
    with _message() as error:
        if call("LinkModules", module, other, error):
            raise LLVMError(_text(error))


def _parse(context: int, text: str) -> int:
    with _message() as error:
        handle: int | None = call("ParseAssembly", context, text.encode(), error)
        if handle is None:
            raise LLVMError(_text(error))
    with _message() as error:
        if call("VerifyModule", handle, error):
            message = _text(error)
            call("DisposeModule", handle)
            raise LLVMError(message)
    return handle


class CodeGenerator:
    """A code generator; it works for one module at a time."""

    def __init__(self, handle: int) -> None:
        self._handle = handle

    def optimise(self, module: Module, level: int, *, vectorise: bool, unroll: bool) -> None:
        """Runs LLVM's default passes, or few.

        Args:
            module: is changed.
            level: of the pipeline, 1 to 3; 0 for what is final but for functions to inline, and scalars in
                memory. To look at one loop takes the default passes 8 ms, whatever they find.
            vectorise: loops. Looking for more in straight-line code doubles the time.
            unroll: loops.
        """
        with ExitStack() as stack:

            def made(kind: str, name: str, *arguments: Any) -> int:
                handle: int = call(name, *arguments)
                stack.callback(call, f"Dispose{kind}", handle)
                return handle

            options = made("PipelineTuningOptions", "CreatePipelineTuningOptions")
            call("PTOSetLoopVectorization", options, vectorise)
            call("PTOSetSLPVectorization", options, False)
            call("PTOSetLoopUnrolling", options, unroll)
            builder = made("PassBuilder", "CreatePassBuilder", self._handle, options)
            # "Manger" is how it is spelt.
            if level:
                levels = (level, 0) if version() < _NO_SIZE_LEVEL else (level,)
                passes = made("NewModulePassManger", "buildPerModuleDefaultPipeline", builder, *levels)
            else:
                passes = made("NewModulePassManger", "CreateNewModulePassManager")
                for name in _TIDY:
                    call(f"module_Add{name}Pass", passes)
            call("RunNewModulePassManager", passes, module.handle, builder)

    def emit_object(self, module: Module) -> bytes:
        """The bytes of an ELF object.

        Raises:
            LLVMError: LLVM cannot make code of the module.
        """
        return self._emit(module, _OBJECT)

    def emit_assembly(self, module: Module) -> str:
        """The code as text, errors as in `emit_object`."""
        return self._emit(module, _ASSEMBLY).decode()

    def _emit(self, module: Module, kind: int) -> bytes:
        with _message() as error:
            memory = call("TargetMachineEmitToMemory", self._handle, module.handle, kind, error)
            if memory is None:
                raise LLVMError(_text(error))
        try:
            return ctypes.string_at(call("GetBufferStart", memory), call("GetBufferSize", memory))
        finally:
            call("DisposeMemoryBuffer", memory)


# Machines that nobody uses, by their arguments. Appending and popping are atomic.
_IDLE: dict[tuple[str, str, str, int], list[CodeGenerator]] = {}


@contextmanager
def code_generator(triple: str, cpu: str, features: str, opt_level: int) -> Iterator[CodeGenerator]:
    """A code generator for the block alone, kept for others if the block succeeds.

    Args:
        triple, cpu, features: what code is made for.
        opt_level: of code generation, 0 to 3.
    """
    idle = _IDLE.setdefault((triple, cpu, features, opt_level), [])
    try:
        found = idle.pop()
    except IndexError:
        found = CodeGenerator(_machine(triple, cpu, features, opt_level))
    yield found
    idle.append(found)


_TARGETS = Lock()


def _machine(triple: str, cpu: str, features: str, opt_level: int) -> int:
    # LLVM's list of targets has no lock: no other thread may see one that is half registered.
    with _TARGETS:
        with _message() as error:
            if call("GetTargetFromTriple", triple.encode(), error) is None:
                _initialise_all()
        with _message() as error:
            target = call("GetTargetFromTriple", triple.encode(), error)
            if target is None:
                raise LLVMError(_text(error))
    names = (triple.encode(), cpu.encode(), features.encode())
    handle: int | None = call("CreateTargetMachine", target, *names, opt_level, b"pic", b"default", 0, 0, b"")
    if handle is None:
        raise LLVMError(f"LLVM has no code generator for {triple}, {cpu}")
    return handle


_INITIALISING = Lock()


def _initialise_all() -> None:
    """Adds the code generators of other machines than this one."""
    with _INITIALISING:
        for what in _EVERYTHING:
            call(f"InitializeAll{what}")


def data_layout(triple: str, cpu: str, features: str) -> str:
    """The data layout of a target, as modules name it."""
    handle = _machine(triple, cpu, features, 0)
    data = call("CreateTargetMachineData", handle)
    try:
        with _message() as text:
            call("CopyStringRepOfTargetData", data, text)
            return _text(text)
    finally:
        call("DisposeTargetData", data)
        call("DisposeTargetMachine", handle)


def host_cpu() -> tuple[str, str]:
    """Name and features of this machine's CPU; features as ``"+avx2,-sse4a"``, sorted by name."""
    with _message() as name:
        call("GetHostCPUName", name)
        cpu = _text(name)
    with _message() as text:
        found = _text(text) if call("GetHostCPUFeatures", text) else ""
    return cpu, ",".join(sorted(filter(None, found.split(",")), key=lambda feature: feature[1:]))


@contextmanager
def _message() -> Iterator[c_void_p]:
    """A place for a string that LLVM makes; freed at the end of the block."""
    place = c_void_p()
    try:
        yield place
    finally:
        if place.value is not None:
            call("DisposeString", place)


def _text(place: c_void_p) -> str:
    return ctypes.string_at(place.value).decode(errors="replace") if place.value is not None else ""


@functools.cache
def version() -> int:
    """The major version of llvmlite's LLVM."""
    return _major(call("GetVersionInfo"))


def _major(version: int) -> int:
    return version >> 16


def call(name: str, *arguments: Any) -> Any:
    """Calls ``LLVMPY_<name>``."""
    return _functions()[name](*arguments)


@functools.cache
def _functions() -> dict[str, Any]:
    """The functions with their types, from a handle of the library that is ours alone."""
    library = ctypes.CDLL(str(_path()))
    functions = {}
    for name, (result, *arguments) in _TYPES.items():
        function = library[f"LLVMPY_{name}"]
        function.restype, function.argtypes = result, arguments
        functions[name] = function
    if _major(functions["GetVersionInfo"]()) < _NO_SIZE_LEVEL:
        functions["buildPerModuleDefaultPipeline"].argtypes = (c_void_p, c_int, c_int)
    functions["InitializeNativeTarget"]()
    functions["InitializeNativeAsmPrinter"]()
    return functions


def _path() -> Path:
    """Path of llvmlite's library; importing `llvmlite.binding`, which also knows it, takes 30 ms."""
    import llvmlite
    from llvmlite.utils import get_library_name

    path = Path(llvmlite.__file__).parent / "binding" / get_library_name()
    if path.exists():
        return path
    from llvmlite.binding import ffi

    return Path(ffi.lib._name)
