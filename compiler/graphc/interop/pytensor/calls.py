# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Calls that go to machine code without PyTensor's way through storage, which takes 2 us.

Samplers set ``f.trust_input`` and call with arrays. Such a call of a function without updates needs nothing
that PyTensor does around one: arguments and values of shared variables go in, results come out.
"""

from __future__ import annotations

import copyreg
from functools import partial
from typing import Any

from pytensor.compile import Function
from pytensor.link.utils import raise_with_op

# What a quick call depends on: the caller's word, a profile that wants to see each call, and the form of
# results, which copies learn only after they are made.
_SWITCHES = frozenset({"trust_input", "profile", "unpack_single"})


class QuickFunction(Function):
    """A compiled function of PyTensor; `make_quick` makes one of a `Function`.

    An instance that is called quickly is of a class of its own, whose call is the machine code itself: a
    ``__call__`` in Python that asks if it may be takes 150 ns, as long as a small log density.
    """

    __slots__ = ()

    def __setattr__(self, name: str, value: object) -> None:
        super().__setattr__(name, value)
        if name in _SWITCHES:
            is_quick = self.trust_input and not self.profile
            super().__setattr__("__class__", self.vm.quick[self.unpack_single] if is_quick else QuickFunction)

    def __reduce_ex__(self, protocol: Any) -> Any:
        """As the class that it stands for, also for copies."""
        return copyreg.dispatch_table[Function](self)


def make_quick(function: Function, has_updates: bool) -> None:
    """Gives a function quick calls, if it is machine code alone and takes its inputs as they are given.

    Args:
        function: as PyTensor has made it with graphc's linker.
        has_updates: whether calls change shared variables.
    """
    native = function.vm.jit_fn
    found = native.machine_code() if hasattr(native, "machine_code") and native.report.fast_call else None
    if has_updates or found is None:
        return
    if function.return_none or getattr(function, "output_keys", None) is not None:
        return
    given = [container for container in function.input_storage if not container.implicit]
    # Inputs with defaults keep what they were given; shared generators are arguments of the code.
    executable, cells = found
    inputs = executable.manifest.signature.inputs
    if len(given) != len(inputs) or not all(container.required for container in given):
        return
    # Functions from the disk have no graph before somebody asks.
    raise_status = executable.handler(lambda node: native.executor.where(node))

    def on_error(status: int, given: int, expected: int) -> None:
        try:
            raise_status(status, given, expected)
        except Exception:
            graph = function.maker.fgraph
            raise_with_op(graph, next(v.owner for v in graph.outputs if v.owner is not None))

    # What the code does not take goes PyTensor's way.
    call = executable.bind(cells, partial(Function.__call__, function), on_error)

    def first(*args: object, **keywords: object) -> Any:
        results = call(*args, **keywords)
        return results[0] if isinstance(results, list) else results  # one value from PyTensor's way

    function.vm.quick = [
        type("QuickFunction", (QuickFunction,), {"__slots__": (), "__call__": staticmethod(quick)})
        for quick in (call, first)
    ]
    function.__class__ = QuickFunction
    function.trust_input = function.trust_input
