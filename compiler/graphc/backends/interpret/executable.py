# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""A module that the interpreter runs, as an executable."""

from __future__ import annotations

import threading
from collections.abc import Sequence
from typing import Any

import numpy as np

from graphc.backends.contexts import shared_context
from graphc.backends.interpret.interpreter import checks, run_function
from graphc.ir.walk import functions, symbol_of
from graphc_dialects._mlir import ir
from graphc_runtime.artifact import Artifact
from graphc_runtime.executable import Executable
from graphc_runtime.kernel import Kernel, OnError, Run, Shape
from graphc_runtime.manifest import Signature


class Interpreted(Executable):
    """The text of an artifact, parsed."""

    def __init__(self, artifact: Artifact) -> None:
        super().__init__(artifact)
        self._context = shared_context()
        with self._context:
            self.module = ir.Module.parse(artifact.code.decode())
        by_name = {symbol_of(op): op for op in functions(self.module)}
        self.has_shapes = "shapes" in by_name
        self.n_arguments = len(by_name["main"].regions[0].blocks[0].arguments)
        self._status = {check: i for i, check in enumerate(checks(self.module), 1)}
        # Sizes of rows are found by operations that are made for it and erased again.
        self._lock = threading.RLock()

    def make_kernel(self, on_error: OnError) -> Kernel:
        return _Interpreter(self, on_error)

    def run(self, name: str, arguments: Sequence[np.ndarray], on_error: OnError) -> list[Any]:
        """The results of a function."""

        def failed(check: Any, given: int, expected: int) -> None:
            on_error(self._status[check], int(given), int(expected))

        with self._lock, self._context, np.errstate(all="ignore"):
            return run_function(self.module, arguments, name, failed)


class _Interpreter(Kernel):
    def __init__(self, executable: Interpreted, on_error: OnError) -> None:
        self.executable, self.on_error = executable, on_error

    def begin(self) -> Run:
        return _Run(self)


class _Run(Run):
    """Results are computed when their shapes are asked for."""

    def __init__(self, kernel: _Interpreter) -> None:
        self._kernel = kernel
        self._found: list[np.ndarray] = []

    def shapes(self, arguments: Sequence[np.ndarray], signature: Signature) -> list[Shape]:
        executable, on_error = self._kernel.executable, self._kernel.on_error
        given = arguments[: executable.n_arguments]
        if executable.has_shapes:
            # It makes the checks that have to come before anything is computed.
            executable.run("shapes", given, on_error)
        self._found = executable.run("main", given, on_error)
        return [value.shape for value in self._found]

    def compute(self, arguments: Sequence[np.ndarray], results: Sequence[np.ndarray], *, alone: bool) -> None:
        for result, value in zip(results, self._found, strict=True):
            result[...] = value

    def release(self) -> None:
        self._found = []
