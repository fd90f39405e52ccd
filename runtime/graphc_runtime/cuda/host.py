# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Functions of the host that a schedule for a device calls."""

from __future__ import annotations

import threading
from collections.abc import Sequence

import numpy as np

from graphc_runtime.artifact import Artifact
from graphc_runtime.cuda.registers import OnCheck, Value
from graphc_runtime.errors import ArtifactError
from graphc_runtime.kernel_call import KernelCall
from graphc_runtime.machine_code import MachineCode


class HostPart:
    """Machine code for CPUs. It is loaded when it is first called, by any of several threads.

    Args:
        data: its artifact, as bytes.
    """

    def __init__(self, data: bytes) -> None:
        self._data = data
        self._lock = threading.Lock()
        self._code: MachineCode | None = None

    def __call__(self, arguments: Sequence[Value], on_check: OnCheck) -> list[np.ndarray]:
        """Calls it.

        Args:
            arguments: arrays of the host, and numbers.
            on_check: called when a check fails; raises.

        Raises:
            LoadError: the code cannot run on this machine.
        """
        with self._lock:
            if self._code is None:
                self._code = MachineCode(Artifact.from_bytes(self._data))

        def raise_error(status: int, given: int, expected: int) -> None:
            on_check(status, given, expected)

        signature = self._code.manifest.signature
        given = [
            value.view(spec.dtype) if isinstance(value, np.ndarray) else value
            for value, spec in zip(arguments, signature.inputs, strict=True)
        ]
        results = KernelCall(self._code.make_kernel(raise_error), signature)(*given)
        if not isinstance(results, list):
            raise ArtifactError("a function of the host does not give a list")
        return [_stored(result) for result in results]


def _stored(array: np.ndarray) -> np.ndarray:
    """An array as kernels know it: integers have no sign in memory, and bools are bytes."""
    return array.view(f"int{8 * array.itemsize}") if array.dtype.kind in "bu" else array
