# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Calls that go to machine code without PyTensor's way through storage, which takes 2 us.

Samplers set ``f.trust_input`` and call with arrays. Such a call of a function without updates needs nothing
that PyTensor does around one: arguments and values of shared variables go in, results come out.
"""

from __future__ import annotations

import copyreg
from collections.abc import Callable
from typing import Any

from pytensor.compile import Function

Direct = Callable[..., Any]


class QuickFunction(Function):
    """A compiled function of PyTensor; `make_quick` makes one of a `Function`."""

    __slots__ = ()

    def __call__(self, *args: Any, **keywords: Any) -> Any:
        if self.trust_input and not keywords and not self.profile:
            count, direct = self.vm.direct
            if len(args) == count:
                try:
                    results = direct(*args)
                except Exception:
                    # PyTensor's way ends in the same error, and says where.
                    return super().__call__(*args)
                # Copies learn only after they are made whether they return one value.
                return results[0] if self.unpack_single else results
        return super().__call__(*args, **keywords)


# Pickled and copied by the same function as the class that it stands for.
copyreg.pickle(QuickFunction, copyreg.dispatch_table[Function])


def make_quick(function: Function, has_updates: bool) -> None:
    """Gives a function quick calls, if it is machine code alone and takes its inputs as they are given.

    Args:
        function: as PyTensor has made it with graphc's linker.
        has_updates: whether calls change shared variables.
    """
    native = function.vm.jit_fn
    report = getattr(native, "report", None)
    if has_updates or report is None or not report.fast_call:
        return
    if function.return_none or getattr(function, "output_keys", None) is not None:
        return
    given = [container for container in function.input_storage if not container.implicit]
    shared = [container.storage for container in function.input_storage if container.implicit]
    # Inputs with defaults keep what they were given.
    if function.input_storage[: len(given)] != given or not all(container.required for container in given):
        return
    function.vm.direct = len(given), _direct(native, shared)
    function.__class__ = QuickFunction


def _direct(native: Direct, shared: list[list[object]]) -> Direct:
    """The call of a function without PyTensor's storage of inputs and outputs."""
    return (lambda *args: native(*args, *[cell[0] for cell in shared])) if shared else native
