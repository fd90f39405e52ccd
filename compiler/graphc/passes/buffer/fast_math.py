# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Freedom that LLVM has with floating-point arithmetic."""

from __future__ import annotations

from graphc.ir.diagnostics import fail
from graphc.ir.walk import walk, walk_for
from graphc.lowering.loops import SUM_FLAGS
from graphc.passes import Pass
from graphc_dialects._mlir import ir
from graphc_runtime.record import record

# Flags of each level; each allows what the one before does. None has nnan or ninf: values that these leave
# undefined could become positions in arrays.
LEVELS = {
    "off": "none",
    "contract": "contract",
    "reassoc": "reassoc,nsz,contract",
    "fast": "reassoc,nsz,arcp,contract,afn",
}
_ARITHMETIC = frozenset(f"arith.{name}f" for name in ("add", "sub", "mul", "div", "neg"))


@record()
class FastMath(Pass):
    """Sets the fast-math flags of arithmetic on floating-point numbers.

    | level | allows |
    |---|---|
    | `off` | nothing: each operation is rounded by itself, as in NumPy |
    | `contract` | a product and a sum become one fused multiply-add, which is rounded once |
    | `reassoc` | also sums and products in another order, and the sign of a zero to change |
    | `fast` | also `x / y` as `x * (1 / y)`, and approximate functions where LLVM has them |

    NaN and infinities mean what they always do: no level lets the compiler assume that there are none. The
    sums of reductions, which are blocked so that they vectorise, keep their flags at every level. It runs in
    front of `graphc-expand-math`, whose expansions rely on each rounding.

    Options:
        level: one of the above; empty leaves all flags as they are.
    """

    stage = "buffer"
    level: str = ""

    def run(self, module: ir.Module) -> None:
        level = self.level
        if not level:
            return
        if level not in LEVELS:
            fail(module.operation, f"there is no fast-math level '{level}'; there are {', '.join(LEVELS)}")
        flags = ir.Attribute.parse(f"#arith.fastmath<{LEVELS[level]}>")
        sums = ir.Attribute.parse(SUM_FLAGS)
        found = walk_for(module.operation, _ARITHMETIC)
        if level == "fast":
            found += [op for op in walk(module.operation) if op.name.startswith("math.")]
        for op in found:
            if op.name not in _ARITHMETIC and "fastmath" not in op.attributes:
                continue
            if "fastmath" not in op.attributes or op.attributes["fastmath"] not in (flags, sums):
                op.attributes["fastmath"] = flags
                self.count("flags changed")
