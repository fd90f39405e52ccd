# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Verifiers of `graphc.scan` and `graphc.scan_trace`: promises that a scan's declarations make each other."""

from typing import Any

from graphc_dialects._base import attribute_of, check_shape, fail
from graphc_dialects._mlir import ir

DECLARATIONS = ("graphc.scan_carry", "graphc.scan_collect")


def is_state(declaration: Any) -> bool:
    """True if a declaration is that of a state, which has initial rows, and not of an output."""
    return bool(declaration.name == DECLARATIONS[0])


def row_shape(declaration: Any) -> list[int]:
    """The shape of a row of a state or output, as types know it."""
    shape = list(declaration.operands[0].type.shape)
    return shape[1:] if is_state(declaration) else shape


def declarations(scan: Any) -> dict[str, Any]:
    """The `scan_carry` and `scan_collect` operations of a scan by the name they declare, in order."""
    found = {}
    for block in scan.regions[0].blocks:
        for op in block.operations:
            if op.operation.name in DECLARATIONS:
                name = attribute_of(op.operation, "state")
                if isinstance(name, ir.StringAttr):
                    found[name.value] = op.operation
    return found


def carry_of(prev: Any) -> Any:
    """The `scan_carry` that declares the state a `scan_prev` reads."""
    scan = prev.operands[0].owner.owner
    return declarations(scan)[ir.StringAttr(prev.attributes["state"]).value]


def verify_scan(scan: Any) -> bool:
    """True if the body is one block on an index, and every state is declared once and read as declared."""
    if len(scan.operands) != 1 or len(scan.regions) != 1:
        return fail(scan, "expects 1 operand and 1 region")
    blocks = list(scan.regions[0].blocks)
    if len(blocks) != 1 or [str(a.type) for a in blocks[0].arguments] != ["index"]:
        return fail(scan, "needs a body of one block that takes the index of the iteration")
    if not isinstance(attribute_of(scan, "reverse"), ir.BoolAttr):
        return fail(scan, "needs a boolean attribute 'reverse'")
    if "name" in scan.attributes and not isinstance(attribute_of(scan, "name"), ir.StringAttr):
        return fail(scan, "its attribute 'name' must be a string")
    operations = [op.operation for op in blocks[0].operations]
    if not operations or operations[-1].name != "graphc.scan_end":
        return fail(scan, "its body must end with graphc.scan_end")
    declared: dict[str, Any] = {}
    for op in operations:
        if op.name in DECLARATIONS:
            # The scan is verified before what is in its body.
            if not op.opview.verify_invariants():
                return False
            name = op.attributes["state"].value
            if name in declared:
                return fail(op, f"'{name}' is declared twice in one scan")
            declared[name] = op
    return all(_verify_read(use.owner, declared) for use in blocks[0].arguments[0].uses)


def _verify_read(op: Any, declared: dict[str, Any]) -> bool:
    if op.name != "graphc.scan_prev":
        return True
    if not op.opview.verify_invariants():
        return False
    name, tap = op.attributes["state"].value, op.attributes["tap"].value
    carry = declared.get(name)
    if carry is None or not is_state(carry):
        return fail(op, f"no state '{name}' is declared in its scan")
    taps = list(carry.attributes["taps"])
    if tap not in taps:
        return fail(op, f"state '{name}' has the taps {taps}, but {tap} is read")
    initial, row = carry.operands[0].type, op.results[0].type
    if type(row) is not ir.RankedTensorType or row.element_type != initial.element_type:
        return fail(op, f"state '{name}' starts as rows of {initial}, but is read as {row}")
    return check_shape(op, list(row.shape), list(initial.shape)[1:])


def verify_trace(trace: Any) -> bool:
    """True if the name is declared and the result has the rows that are kept."""
    if len(trace.operands) != 1 or len(trace.results) != 1:
        return fail(trace, "expects 1 operand and 1 result")
    owner = trace.operands[0].owner
    if isinstance(owner, ir.Block) or owner.name != "graphc.scan":
        return fail(trace, "takes its rows from a graphc.scan")
    attribute = attribute_of(trace, "state")
    name = attribute.value if isinstance(attribute, ir.StringAttr) else None
    declaration = declarations(owner).get(name) if name is not None else None
    if declaration is None:
        return fail(trace, f"its scan declares no state or output '{name}'")
    kind = trace.results[0].type
    source = declaration.operands[0].type
    if type(kind) is not ir.RankedTensorType or kind.element_type != source.element_type:
        return fail(trace, f"'{name}' is declared with {source}, but taken as {kind}")
    keep = declaration.attributes["keep"].value
    rows = declaration.attributes["rows"].value if keep == "last" else ir.ShapedType.get_dynamic_size()
    return check_shape(trace, list(kind.shape), [rows, *row_shape(declaration)])
