# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""``graphc-opt --reduce``: the smallest module for which a command still succeeds.

An operation goes, and what it computed becomes an argument of its function; then results and arguments of
functions go that nobody needs. Whatever the command still accepts stays so, until nothing more can go.
"""

from __future__ import annotations

import shlex
import subprocess
import tempfile
from collections.abc import Iterator
from pathlib import Path
from typing import TextIO

from graphc.ir.walk import functions
from graphc_dialects._mlir import ir
from graphc_dialects.dialect import new_context
from graphc_dialects.foreign import excess
from graphc_tools._usage import UsageError


def reduce(source: str, command: str, stderr: TextIO) -> str:
    """The smaller module.

    Args:
        source: the module.
        command: what is run with the path of a file after it; 0 says that the file is still of interest.
        stderr: where progress is told.

    Raises:
        UsageError: the module cannot be parsed, or the command does not accept it as it is.
    """
    if problem := excess(source):
        raise UsageError(str(problem))
    words = shlex.split(command)
    with tempfile.TemporaryDirectory() as folder, new_context(), ir.Location.unknown():
        file = Path(folder, "module.mlir")

        def accepts(text: str) -> bool:
            file.write_text(text, encoding="utf-8")
            try:
                done = subprocess.run([*words, str(file)], capture_output=True, check=False)
            except OSError as error:
                raise UsageError(f"cannot run '{command}': {error.strerror}") from None
            return done.returncode == 0

        try:
            best = str(ir.Module.parse(source))
        except ir.MLIRError as error:
            raise UsageError(f"--reduce needs a module that can be parsed: {error}") from None
        if not accepts(best):
            raise UsageError(f"'{command}' must exit with 0 for the module as it is")
        changed = True
        while changed:
            changed = False
            for position in range(_count(best) - 1, -1, -1):
                smaller = _without(best, position)
                if smaller is not None and smaller != best and accepts(smaller):
                    best, changed = smaller, True
            print(f"reduced to {best.count(chr(10))} lines", file=stderr)
    return f"{best.rstrip()}\n"


def _candidates(module: ir.Module) -> Iterator[tuple[ir.Operation, int | None]]:
    """Removal candidates: operations of functions, whole functions, and results and arguments of
    functions.
    """
    for function in functions(module):
        yield function, None
        block = function.regions[0].blocks[0]
        for operation in list(block.operations)[:-1]:
            yield operation.operation, None
        last = list(block.operations)[-1].operation
        for number in range(len(last.operands)):
            yield last, number
        for number in range(len(block.arguments)):
            yield function, number


def _count(text: str) -> int:
    return sum(1 for _ in _candidates(ir.Module.parse(text)))


def _without(text: str, position: int) -> str | None:
    """The module without one of the candidates; None where it cannot go."""
    module = ir.Module.parse(text)
    found = list(_candidates(module))
    if position >= len(found):
        return None
    op, number = found[position]
    try:
        if op.name == "func.func" and number is None:
            op.erase()
        elif op.name == "func.func":
            _drop_argument(op, number or 0)
        elif number is not None:
            _drop_result(op, number)
        else:
            _to_arguments(op)
        module.operation.verify()
    except (ir.MLIRError, ValueError):
        return None
    return str(module)


def _to_arguments(op: ir.Operation) -> None:
    """Makes what an operation computes arguments of its function."""
    function = op.parent.operation
    if function.name != "func.func":
        raise ValueError("it is in another operation")
    block = function.regions[0].blocks[0]
    for result in op.results:
        if len(list(result.uses)):
            result.replace_all_uses_with(block.add_argument(result.type, op.location))
    op.erase()
    _set_type(function)


def _drop_argument(function: ir.Operation, number: int) -> None:
    block = function.regions[0].blocks[0]
    if len(list(block.arguments[number].uses)):
        raise ValueError("it is used")
    block.erase_argument(number)
    _set_type(function)


def _drop_result(last: ir.Operation, number: int) -> None:
    function = last.parent.operation
    operands = [operand for i, operand in enumerate(last.operands) if i != number]
    with ir.InsertionPoint(last), last.location:
        ir.Operation.create(last.name, [], operands, {})
    last.erase()
    _set_type(function)


def _set_type(function: ir.Operation) -> None:
    """Gives a function the type that its block and its last operation say."""
    block = function.regions[0].blocks[0]
    inputs = [argument.type for argument in block.arguments]
    results = [operand.type for operand in list(block.operations)[-1].operation.operands]
    function.attributes["function_type"] = ir.TypeAttr.get(ir.FunctionType.get(inputs, results))
    for name in ("arg_attrs", "res_attrs"):
        if name in function.attributes:
            del function.attributes[name]
