# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""``ConditionalThunk``: the lazy thunk of a conditional."""

from __future__ import annotations

from collections.abc import Sequence

from graphc_runtime.thunk import Flag, Register, Thunk


class ConditionalThunk(Thunk):
    """Asks for the condition, then for the values of the chosen side, and passes these on.

    Args:
        input_computed: flags of the condition, n values if it holds, and n values otherwise.
        output_computed: flags of the n outputs.
        input_registers: registers of the inputs.
        output_registers: registers of the outputs.
    """

    __slots__ = ("_condition", "_known", "_sides")

    def __init__(
        self,
        input_computed: Sequence[Flag],
        output_computed: Sequence[Flag],
        input_registers: Sequence[Register],
        output_registers: Sequence[Register],
    ) -> None:
        n = len(output_registers)
        self._known, self._condition = input_computed[0], input_registers[0]
        # For each side: position, flag and register of an input, flag and register of its output.
        self._sides = [
            [
                (start + k, input_computed[start + k], input_registers[start + k], flag, register)
                for k, (flag, register) in enumerate(zip(output_computed, output_registers, strict=True))
            ]
            for start in (1 + n, 1)
        ]

    @property
    def lazy(self) -> bool:
        return True

    def __call__(self) -> Sequence[int] | None:
        if not self._known[0]:
            return [0]
        chosen = self._sides[bool(self._condition[0])]
        missing = [position for position, known, *_ in chosen if not known[0]]
        if missing:
            return missing
        for _, _, value, flag, register in chosen:
            register[0] = value[0]
            flag[0] = True
        return None
