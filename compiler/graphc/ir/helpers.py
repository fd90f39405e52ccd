# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Declarations of what `graphc.library` defines, with the attribute that says what they are.

`graphc.helper = {kind = "product", letter = "d", packs = false}`: the fields of a class of
`graphc.library.helpers`. Conversions to the llvm dialect keep it.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Sequence
from functools import cache
from typing import Any, get_type_hints

from graphc.ir.build import declare
from graphc.ir.diagnostics import fail
from graphc.ir.walk import symbol_of
from graphc.library.helpers import KINDS, Helper
from graphc_dialects._mlir import ir

HELPER = "graphc.helper"
_KIND_OF = {kind: name for name, kind in KINDS.items()}


def declare_helper(
    op: ir.Module | ir.Operation, helper: Helper, types: Sequence[ir.Type | str], results: Sequence[ir.Type]
) -> None:
    """Declares a function in the module around an operation, if it is not yet.

    Args:
        op: see `graphc.ir.build.declare`.
        helper: what the function is.
        types, results: see `graphc.ir.build.declare`.
    """
    attributes = f"{HELPER} = {attribute_of(helper)}"
    if helper.assumes:
        attributes += f", {helper.assumes}"
    found = declare(op, helper.symbol, types, results, attributes)
    if found is not None:
        old = _required(found)
        new = old.merged(helper)
        if new != old:
            found.attributes[HELPER] = attribute_of(new)


def declared(module: ir.Module) -> dict[str, Helper]:
    """By name, what a module declares of these.

    Raises:
        PassError: an attribute is not one that `attribute_of` makes; a diagnostic says so.
    """
    found = {}
    for op in [op.operation for op in module.body.operations]:
        if HELPER in op.attributes:
            try:
                found[symbol_of(op)] = _read(op.attributes[HELPER])
            except ValueError as error:
                fail(op, str(error))
    return found


def helper_of(op: ir.Operation) -> Helper | None:
    """The kind of helper that a function is; None if it is none.

    Raises:
        ValueError: the attribute is not one that `attribute_of` makes.
    """
    attributes = op.attributes
    return _read(attributes[HELPER]) if HELPER in attributes else None


def callee_of(call: ir.Operation) -> str:
    """The name of the function that a call names; empty for calls of addresses."""
    attributes = call.attributes
    return str(ir.FlatSymbolRefAttr(attributes["callee"]).value) if "callee" in attributes else ""


def _required(op: ir.Operation) -> Helper:
    helper = helper_of(op)
    assert helper is not None, f"{op.attributes['sym_name']} is declared without '{HELPER}'"
    return helper


def attribute_of(helper: Helper) -> ir.Attribute:
    """The attribute for a function."""
    what = _KIND_OF[type(helper)]
    values = {"kind": ir.StringAttr.get(what)}
    for name, kind in _fields(what):
        values[name] = _WRITE[kind](getattr(helper, name))
    return ir.DictAttr.get(values)


def _read(attribute: ir.Attribute) -> Helper:
    try:
        what = ir.StringAttr(attribute["kind"]).value
        return KINDS[what](**{name: _READ[kind](attribute[name]) for name, kind in _fields(what)})
    except (KeyError, TypeError, ValueError):
        raise ValueError(f"'{HELPER}' must say what a function is, but is {attribute}") from None


@cache
def _fields(what: str) -> tuple[tuple[str, Any], ...]:
    """Names and types of what describes a helper of a kind."""
    kind = KINDS[what]
    hints = get_type_hints(kind)
    return tuple((field.name, hints[field.name]) for field in dataclasses.fields(kind))


_WRITE: dict[Any, Any] = {
    int: lambda value: ir.IntegerAttr.get(ir.IntegerType.get_signless(64), value),
    bool: lambda value: ir.BoolAttr.get(value),
    str: lambda value: ir.StringAttr.get(value),
    tuple[int, ...]: lambda values: ir.DenseI64ArrayAttr.get(list(values)),
    tuple[int, int, int]: lambda values: ir.DenseI64ArrayAttr.get(list(values)),
    tuple[bool, bool]: lambda values: ir.DenseBoolArrayAttr.get(list(values)),
    tuple[str, ...]: lambda values: ir.ArrayAttr.get([ir.StringAttr.get(value) for value in values]),
}
_READ: dict[Any, Any] = {
    int: lambda attribute: ir.IntegerAttr(attribute).value,
    bool: lambda attribute: ir.BoolAttr(attribute).value,
    str: lambda attribute: ir.StringAttr(attribute).value,
    tuple[int, ...]: lambda attribute: tuple(ir.DenseI64ArrayAttr(attribute)),
    tuple[int, int, int]: lambda attribute: tuple(ir.DenseI64ArrayAttr(attribute)),
    tuple[bool, bool]: lambda attribute: tuple(ir.DenseBoolArrayAttr(attribute)),
    tuple[str, ...]: lambda attribute: tuple(ir.StringAttr(each).value for each in ir.ArrayAttr(attribute)),
}
