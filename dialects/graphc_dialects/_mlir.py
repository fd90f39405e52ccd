# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""The one module that imports MLIR's Python bindings.

Upstream's bindings are used under the name `mlir` where a complete and recent build of them is installed,
else through the `torch-mlir` wheel, which carries the same modules. Everything else imports from here:

    from graphc_dialects._mlir import arith, ir, tensor

Dialect modules are loaded when they are first asked for, because some of them are slow to import.
"""

from __future__ import annotations

import ctypes
import importlib
import importlib.util
import sys
from ctypes import c_void_p
from functools import cache
from types import ModuleType
from typing import TYPE_CHECKING, Any

_INSTALL_HINT = (
    "graphc compiles with MLIR's Python bindings, which are not installed. "
    "Install them with: pip install 'torch-mlir==20261001'"
)
_DIALECTS = frozenset(
    "affine arith bufferization builtin cf complex ext func gpu index irdl linalg llvm math memref nvvm scf "
    "shape tensor transform ub vector".split()
)
# Those whose operations, types and attributes a compilation wraps.
_PLAIN = (
    "affine arith bufferization builtin cf complex func gpu index linalg llvm math memref scf tensor ub "
    "vector"
).split()


def _has_dialect_support(root: str) -> bool:
    """True if the bindings under this name can define dialects with verifiers in Python."""
    try:
        if importlib.util.find_spec(f"{root}._mlir_libs") is None:
            return False
        module = importlib.import_module(f"{root}.ir")
    except ImportError:
        return False
    return hasattr(module, "DynamicOpTrait") and importlib.util.find_spec(f"{root}.dialects.ext") is not None


def _find_root() -> str:
    for root in ("mlir", "torch_mlir"):
        if _has_dialect_support(root):
            return root
    raise ImportError(_INSTALL_HINT)


ROOT = _find_root()

if TYPE_CHECKING:
    import graphc_dialects._ext
    import graphc_dialects._ir

    ext = graphc_dialects._ext
    ir = graphc_dialects._ir
else:
    ir = importlib.import_module(f"{ROOT}.ir")
passmanager: Any = importlib.import_module(f"{ROOT}.passmanager")
rewrite: Any = importlib.import_module(f"{ROOT}.rewrite")


def translate_module_to_llvmir(operation: Any) -> str:
    """Textual LLVM IR of a module in the llvm dialect.

    The function of the bindings never frees its text, so the C API below them is called if it is found.
    """
    capi = _translation()
    if capi is not None:
        pointer = _capsule_pointer()(operation._CAPIPtr, _capsule_name()(operation._CAPIPtr))
        context = capi.LLVMContextCreate()
        module = text = None
        try:
            module = capi.mlirTranslateModuleToLLVMIR(pointer, context)
            if module is not None:
                text = capi.LLVMPrintModuleToString(module)
                return ctypes.string_at(text).decode()
        finally:
            if text is not None:
                capi.LLVMDisposeMessage(text)
            if module is not None:
                capi.LLVMDisposeModule(module)
            capi.LLVMContextDispose(context)
    # Also where translation fails, for the exception.
    return str(dialect_module("llvm").translate_module_to_llvmir(operation))


@cache
def _translation() -> Any:
    """The library of the C API with the types of what translates; None where it has other names."""
    try:
        library = ctypes.CDLL(importlib.import_module(f"{ROOT}._mlir_libs._mlirDialectsLLVM").__file__)
        for name, result, *arguments in (
            ("LLVMContextCreate", c_void_p),
            ("mlirTranslateModuleToLLVMIR", c_void_p, c_void_p, c_void_p),
            ("LLVMPrintModuleToString", c_void_p, c_void_p),
            ("LLVMDisposeMessage", None, c_void_p),
            ("LLVMDisposeModule", None, c_void_p),
            ("LLVMContextDispose", None, c_void_p),
        ):
            function = getattr(library, name)
            function.restype, function.argtypes = result, arguments
    except (ImportError, AttributeError, OSError):
        return None
    return library


@cache
def _capsule_pointer() -> Any:
    prototype = ctypes.PYFUNCTYPE(c_void_p, ctypes.py_object, ctypes.c_char_p)
    return prototype(("PyCapsule_GetPointer", ctypes.pythonapi))


@cache
def _capsule_name() -> Any:
    prototype = ctypes.PYFUNCTYPE(ctypes.c_char_p, ctypes.py_object)
    return prototype(("PyCapsule_GetName", ctypes.pythonapi))


def dialect_module(name: str) -> ModuleType:
    """The bindings of one upstream dialect.

    Raises:
        ImportError: this build of the bindings does not have it.
    """
    return importlib.import_module(f"{ROOT}.dialects.{name}")


def add_dialect_search_prefix(package: str) -> None:
    """Lets the bindings find `package.<namespace>` when they look for a dialect's classes."""
    _globals().append_dialect_search_prefix(package)


def _globals() -> Any:
    return importlib.import_module(f"{ROOT}._mlir_libs._mlir").globals


def _without_dialect_classes() -> None:
    """Wrapped operations of upstream's dialects are plain `OpView`s, as long as nobody imports their classes.

    The bindings would import a dialect's module, with a class for each of its operations, when they first
    wrap one: 0.1 s for all. We name operations, operands and attributes, and need none of these classes. The
    modules that the bindings are shown in their place are empty.
    """
    package = f"{__package__}.plain"
    for name in (package, *(f"{package}.{dialect}" for dialect in _PLAIN)):
        sys.modules[name] = ModuleType(name, "Stands for a module of classes that nobody needs.")
    sys.modules[package].__path__ = []
    found = _globals()
    found.dialect_search_modules = [package, *found.dialect_search_modules]


_without_dialect_classes()


def __getattr__(name: str) -> Any:
    if name in _DIALECTS:
        module = dialect_module(name)
        globals()[name] = module
        return module
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
