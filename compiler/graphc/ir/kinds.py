# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""How the lowering treats each graph-stage operation.

* a *view* computes no new value: each reader inlines it as an index computation;
* an *elementwise* operation computes one value per element of its result;
* a *reduction* combines the elements of its operand along some axes;
* everything else is lowered by a rule of its own (graphc.lowering.structural).
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from graphc.ir.views import GATHERS
from graphc.ops.elementwise import ROWS

if TYPE_CHECKING:
    from graphc_dialects._mlir import ir

REDUCTIONS = frozenset(
    {f"graphc.reduce_{kind}" for kind in ("sum", "prod", "max", "min", "and", "or")}
    | {"graphc.argmax", "graphc.argmin"}
)
# Elementwise operations that take no longer than reading their result from memory.
CHEAP = frozenset(f"graphc.{row.name}" for row in ROWS.values() if row.cheap) | {"graphc.cast"}


def is_elementwise(name: str) -> bool:
    """Whether the dialect operation computes one scalar per result element."""
    return name == "graphc.cast" or (name.startswith("graphc.") and name[7:] in ROWS) or name in GATHERS


def reduced_axes(op: ir.Operation) -> tuple[int, ...]:
    """The axes a reduction removes."""
    if op.name in ("graphc.argmax", "graphc.argmin"):
        return (op.attributes["axis"].value,)
    return tuple(op.attributes["axes"])


def static_shape(value: ir.Value) -> tuple[int | None, ...]:
    """The shape of a ranked tensor value, None where it is dynamic."""
    return tuple([None if size < 0 else size for size in value.type.shape])
