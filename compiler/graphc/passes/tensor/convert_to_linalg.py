# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""From the graphc dialect to linalg on tensors."""

from __future__ import annotations

from graphc.ir.build import dtype_of
from graphc.ir.diagnostics import fail
from graphc.ir.donations import DONATED
from graphc.lowering.conditionals import place_results
from graphc.lowering.converter import FunctionConverter
from graphc.lowering.memory.donation import Donations
from graphc.passes import Pass
from graphc_dialects._mlir import ir
from graphc_runtime.record import record


@record()
class ConvertToLinalg(Pass):
    """Turns every cluster of fused operations into one `linalg.generic`; the rest becomes tensor and scf.

    Element types become storage types (signless; one byte for bool). Each tensor result becomes a buffer
    argument that is written with `bufferization.materialize_in_destination`, so that the last loop writes
    straight into the caller's memory. Functions that return index values (`@shapes`) keep their results.

    The module attribute `graphc.donate` names arguments that a result may be computed in, where that takes no
    copy. The buffer of such a result is the argument; `graphc.donated` then lists these pairs, arguments that
    are not read, which callers may pass as the buffer of a result (`spares`), and why other arguments are not
    used. With `keeps_on_failure`, the argument must be intact if a check fails.

    An `scf.if` loses its tensor results: each region computes what it gave where the value is wanted (the
    caller's memory, a part of a join, a row of a scan, or new memory); results of one element are scalars.

    Operations without a `cluster` attribute (the fusion pass did not run) get a loop of their own.

    Attributes:
        device: for a device: running sums and recurrences are calls, which kernels take the place of.
        results: say in the attribute `graphc.first_result` where arguments begin that are results.
    """

    device: bool = False
    results: bool = False

    stage = "tensor"

    def run(self, module: ir.Module) -> None:
        for function in list(module.body.operations):
            if function.operation.name == "func.func" and len(function.regions[0].blocks):
                _check_element_types(function)
                placed = place_results(function.operation, updates=not self.device)
                donations = Donations.of_module(module, function.operation)
                if donations.pairs or donations.spares or donations.notes:
                    outcome = ir.Attribute.parse(donations.outcome.to_text())
                    module.operation.attributes[DONATED] = outcome
                FunctionConverter(
                    function.operation, donations, device=self.device, results=self.results
                ).run()
                counts = {"donated arguments": len(donations.pairs), "functions": 1}
                self.count_all({"results of conditionals": placed, **counts})


def _check_element_types(function: ir.Operation) -> None:
    """Refuses tensors of element types that have no storage type."""
    seen: set[ir.Type] = set()
    for op in function.regions[0].blocks[0].operations:
        for result in op.results:
            result_type = result.type
            if result_type in seen:
                continue
            seen.add(result_type)
            if not isinstance(result_type, ir.RankedTensorType) or isinstance(
                result_type.element_type, ir.IndexType
            ):
                continue
            try:
                dtype_of(result_type.element_type)
            except TypeError as error:
                fail(op, str(error))
