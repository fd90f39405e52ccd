# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""How many operations the inline code of elementary functions has."""

from __future__ import annotations

from collections.abc import Iterable

from graphc.ir.walk import walk
from graphc.lowering.math import expansions
from graphc.passes.buffer._expressions import Expressions
from graphc.passes.buffer.expand_math import ExpandMath
from graphc.passes.buffer.work._arithmetic import Arithmetic, operations_of
from graphc_dialects._mlir import ir


def weights(functions: Iterable[str]) -> dict[str, int]:
    """By name as `exp f64`, the floating-point operations of functions that are no calls."""
    known = expansions()
    found = {}
    for function in functions:
        name, _, element = function.rpartition(" ")
        if f"math.{name}" in known:
            found[function] = _weight(name, element)
    return found


def _weight(name: str, element: str) -> int:
    text = f"""
        func.func @f(%x: {element}) -> {element} {{
          %y = math.{name} %x : {element}
          return %y : {element}
        }}"""
    module = ir.Module.parse(text)
    ExpandMath().run(module)
    (function,) = (op for op in walk(module.operation) if op.name == "func.func")
    counted = Arithmetic(Expressions(), {}).block(operations_of(function.regions[0].blocks[0]))
    return sum(counted["flops"].values())
