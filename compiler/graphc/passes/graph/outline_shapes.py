# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Splits off the computation of the output sizes."""

from __future__ import annotations

from graphc.ir.constants import CONSTANTS
from graphc.ir.diagnostics import fail
from graphc.ir.rewrite import Rewriter, erase_unused, is_removable
from graphc.ir.scan_view import is_scan
from graphc.ir.totality import Totality
from graphc.ir.walk import functions, inputs_of, signature_of, symbol_of, walk
from graphc.passes import Pass
from graphc.passes.graph._shapes import RULES
from graphc_dialects._mlir import ir
from graphc_dialects.check import checks_in, raises


class OutlineShapes(Pass):
    """Makes `@shapes` from `@main`: the same arguments, returning the dynamic sizes of the results.

    The sizes come in the order of results and, within a result, of dimensions; static sizes are not
    returned. The caller allocates the outputs by them before it runs `@main`. Sizes are computed from
    shapes wherever the operations say how, and from values only where they depend on values (`arange(n)`).

    Checks whose condition needs no array computation (sizes, elements of arguments and arithmetic on them)
    move to `@shapes`, so that most errors are raised before anything is allocated or computed. Where a size
    depends on an operation that could fail, all earlier checks are made in `@shapes` as well.

    `@main` must have one block and no `@shapes` beside it.
    """

    stage = "graph"

    def run(self, module: ir.Module) -> None:
        named = {symbol_of(function): function for function in functions(module)}
        main = named.get("main")
        if main is None:
            fail(module.operation, "outline-shapes needs a function @main")
        if "shapes" in named:
            fail(named["shapes"], "outline-shapes makes the function @shapes, but there is one already")
        if len(main.regions[0].blocks) != 1:
            fail(main, "outline-shapes needs @main to have one block")
        self._outline(main)

    def _outline(self, main: ir.Operation) -> None:
        shapes = main.clone(ip=ir.InsertionPoint(main))
        shapes.move_after(main)
        shapes.attributes["sym_name"] = ir.StringAttr.get("shapes")
        self._return_sizes(shapes)
        Rewriter(shapes, RULES).run()
        self._erase_unneeded(shapes)
        checks = [op for op in checks_in(main) if not self._is_nested(op)]
        if checks:
            kept = self._keep_cheap_checks(shapes)
            self._erase_unneeded(shapes)
            for check, cheap in zip(checks, kept, strict=True):
                if cheap:
                    check.erase()
            self.count("checks moved", sum(kept))
        erase_unused(walk(main))

    def _return_sizes(self, shapes: ir.Operation) -> None:
        """Returns the dynamic sizes instead of the tensors."""
        terminator = [op.operation for op in shapes.regions[0].blocks[0].operations][-1]
        index = ir.IndexType.get()
        sizes = []
        with ir.InsertionPoint(terminator), terminator.location:
            for value in terminator.operands:
                if not isinstance(value.type, ir.RankedTensorType):
                    fail(terminator, f"results whose sizes are asked for are tensors, not {value.type}")
                for axis, size in enumerate(value.type.shape):
                    if size < 0:
                        position = ir.Operation.create(
                            "arith.constant", [index], attributes={"value": ir.IntegerAttr.get(index, axis)}
                        )
                        sizes.append(
                            ir.Operation.create("tensor.dim", [index], [value, position.result]).result
                        )
            ir.Operation.create("func.return", [], sizes)
        terminator.erase()
        inputs = signature_of(shapes).inputs
        shapes.attributes["function_type"] = ir.TypeAttr.get(
            ir.FunctionType.get(inputs, [index] * len(sizes))
        )
        if "res_attrs" in shapes.attributes:
            del shapes.attributes["res_attrs"]
        self.count("sizes", len(sizes))

    def _erase_unneeded(self, shapes: ir.Operation) -> None:
        """Erases what no size needs, loops and conditionals with checks, too: these stay in @main."""
        for op in reversed(walk(shapes)):
            used = any(next(result.uses, None) is not None for result in op.results)
            if not used and (op.name == "scf.if" or is_scan(op) or is_removable(op)):
                op.erase()

    def _keep_cheap_checks(self, shapes: ir.Operation) -> list[bool]:
        """Erases the checks that need array computations; says of each, in order, whether it moved.

        Checks in scans and conditionals do not count: they stay in @main, and here too if a size depends on
        the operation around them.
        """
        protecting = self._protecting_checks(shapes)
        cheap: dict[ir.Value, bool] = {}
        kept, expensive = [], []
        for op in walk(shapes):
            stays = all(cheap.get(operand, True) for operand in op.operands)
            if raises(op):
                if self._is_nested(op):
                    continue
                kept.append(stays)
                if not stays and op not in protecting:
                    expensive.append(op)
            elif op.name == "scf.if":
                stays = all(cheap.get(x, True) for x in inputs_of(op)) and all(map(self._is_cheap, walk(op)))
            else:
                stays = stays and self._is_cheap(op)
            for result in op.results:
                cheap[result] = stays
        for op in reversed(expensive):
            op.erase()
        return kept

    def _protecting_checks(self, shapes: ir.Operation) -> set[ir.Operation]:
        """The checks before operations that a size needs, and that would do harm where a check fails."""
        totality = Totality({result: op for op in walk(shapes) for result in op.results})
        operations = [op.operation for op in shapes.regions[0].blocks[0].operations]
        wanted = set(operations[-1].operands)
        found: set[ir.Operation] = set()
        risky = False
        for op in reversed(operations[:-1]):
            if raises(op):
                needed = risky
                found.update([op] if risky else [])
            else:
                needed = any(result in wanted for result in op.results)
                scalar = op.name == "tensor.extract" and len(op.operands) == 1
                risky = risky or (needed and not scalar and not totality.is_total(op, guarded=True))
            if needed:
                wanted.update(inputs_of(op))
        return found

    def _is_nested(self, check: ir.Operation) -> bool:
        """True if a check is in the body of a scan or in a region of a conditional."""
        return bool(check.parent.name != "func.func")

    def _is_cheap(self, op: ir.Operation) -> bool:
        """True if an operation is no array computation."""
        if is_scan(op):
            return False
        return not op.name.startswith("graphc.") or op.name in CONSTANTS or self._is_scalar_work(op)

    def _is_scalar_work(self, op: ir.Operation) -> bool:
        """True if all operands and the result of an operation have at most one element."""
        values = [*op.operands, *op.results]
        return all(all(size == 1 for size in getattr(value.type, "shape", ())) for value in values)
