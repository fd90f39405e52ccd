# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Output formats of graphc-opt."""

from __future__ import annotations

import argparse
from typing import Any

from graphc.backends.handoff import to_llvmlite
from graphc.ir.walk import functions
from graphc_dialects._mlir import ir, translate_module_to_llvmir
from graphc_tools.loop_notation import loop_notation
from graphc_tools.short_form import short_form


class EmitError(Exception):
    """The module cannot be written in the form asked for."""


def emit(module: ir.Module, arguments: argparse.Namespace) -> str | bytes:
    """A verified module as MLIR, LLVM IR, assembly text or object bytes.

    Raises:
        EmitError: the module is not entirely in the llvm dialect, or LLVM rejects it.
    """
    if arguments.short:
        return short_form(module, locations=arguments.mlir_print_debuginfo)
    if arguments.loop_notation:
        if not any(_symbol(function) == "main" for function in functions(module)):
            raise EmitError("--loop-notation prints the function @main, which this module does not have")
        return "".join(f"{line}\n" for line in loop_notation(module))
    if arguments.emit == "mlir":
        text = module.operation.get_asm(
            print_generic_op_form=arguments.mlir_print_op_generic,
            enable_debug_info=arguments.mlir_print_debuginfo,
            assume_verified=not arguments.mlir_print_op_generic,
        )
        return f"{text.rstrip()}\n"
    text = _llvm_text(module)
    if arguments.emit == "llvm":
        return text
    return _machine_code(text, arguments.emit)


def _symbol(function: ir.Operation) -> str:
    return str(ir.StringAttr(function.attributes["sym_name"]).value)


def _llvm_text(module: Any) -> str:
    foreign: list[str] = []

    def visit(op: ir.Operation) -> Any:
        if op.name.partition(".")[0] not in ("llvm", "builtin"):
            foreign.append(op.name)
        return ir.WalkResult.ADVANCE

    module.operation.walk(visit)
    if foreign:
        raise EmitError(
            f"only modules in the llvm dialect can be translated, but this one contains '{foreign[0]}'; "
            "add the passes that lower it"
        )
    try:
        return translate_module_to_llvmir(module.operation)
    except (RuntimeError, ValueError, ir.MLIRError) as error:
        raise EmitError(f"translation to LLVM IR failed: {error}") from None


def _machine_code(text: str, form: str) -> str | bytes:
    import llvmlite.binding as llvm

    llvm.initialize_native_target()
    llvm.initialize_native_asmprinter()
    try:
        parsed = llvm.parse_assembly(to_llvmlite(text))
        parsed.verify()
    except RuntimeError as error:
        raise EmitError(f"LLVM rejected the module: {error}") from None
    machine = llvm.Target.from_default_triple().create_target_machine(opt=3, reloc="pic")
    return machine.emit_assembly(parsed) if form == "asm" else machine.emit_object(parsed)
