# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Compiled functions in the disk cache, under the key of PyTensor's graph before its rewrites.

A process that finds one needs neither PyTensor's rewrites nor graphc's graph; both are made only if something
asks for them: errors, which name the user's line, and what looks into a function.
"""

from __future__ import annotations

import io
import struct
from collections.abc import Callable
from dataclasses import replace
from functools import cached_property
from typing import Any

import numpy as np

from graphc.config import config
from graphc.function.report import CompileReport
from graphc.function.settings import compile_options
from graphc.function.types import Function
from graphc.graph.basic import Constant
from graphc_runtime.cache import disk_cache
from graphc_runtime.callable_type import NativeCallable, enable, install
from graphc_runtime.errors import ArtifactError, LoadError, Origin
from graphc_runtime.machine_code import MachineCode

# Data beyond this are not worth a copy on the disk.
_MAX_BYTES = 32 << 20


@enable
class StoredFunction(NativeCallable):
    """A compiled function from the disk. It is called as a `graphc.function.types.Function` is, and has the
    attributes of one, for which the graph is rewritten, converted and compiled.

    Args:
        executable: its code.
        constants: large constants of the graph, in order.
        report: what stands for the report of its compilation.
        make: makes the function from the graph.
    """

    __slots__ = ("__dict__", "__weakref__", "_native_self")

    def __init__(
        self,
        executable: MachineCode,
        constants: list[np.ndarray],
        report: CompileReport,
        make: Callable[[], Function],
    ) -> None:
        self.executable = executable
        self.report = report
        self._make = make
        self._cells = cells = [[constant] for constant in constants]
        self._slow = executable.bind(cells, where=self._where)
        address = executable.vectorcall_address()
        if address is not None:
            install(self, address, executable.native_self(cells, where=self._where))

    def __call__(self, *args: Any, **keywords: Any) -> Any:
        return self._slow(*args, **keywords)

    def machine_code(self) -> tuple[MachineCode, list[list[Any]]]:
        """As that of `Function`."""
        return self.executable, self._cells

    @cached_property
    def made(self) -> Function:
        """The function with its graph."""
        return self._make()

    def _where(self, node: str) -> Origin:
        return self.made.executor.where(node)

    def __getattr__(self, name: str) -> Any:
        if name.startswith("__"):
            raise AttributeError(name)
        return getattr(self.made, name)

    def __reduce__(self) -> tuple[object, ...]:
        return self.made.__reduce__()


def store(key: str, function: Function) -> None:
    """Keeps a function under a key, if its calls are machine code alone.

    Args:
        key: of `graphc.interop.pytensor.identity.key_of`.
        function: of `graphc.function`, with outputs as a list.
    """
    found = function.machine_code()
    if not config.cache_dir or found is None or not function.report.fast_call:
        return
    executable = found[0]
    constants = [v.data for v in function.cell_variables if isinstance(v, Constant)]
    whole = len(constants) == len(executable.manifest.signature.cells)
    if not whole or sum(constant.nbytes for constant in constants) > _MAX_BYTES:
        return
    file = io.BytesIO()
    code = executable.artifact.to_bytes()
    file.write(struct.pack("<QQ", len(code), len(constants)))
    file.write(code)
    for constant in constants:
        np.lib.format.write_array(file, constant, allow_pickle=False)
    disk_cache(config.cache_dir, config.cache_size_mb).put(key, file.getvalue())


def load(key: str, name: str | None, make: Callable[[], Function]) -> StoredFunction | None:
    """The function under a key, None if there is none or if it does not fit this machine.

    Args:
        key: of `graphc.interop.pytensor.identity.key_of`.
        name: of the function, for messages.
        make: makes the function from the graph.
    """
    disk = disk_cache(config.cache_dir, config.cache_size_mb)
    data = disk.get(key)
    if data is None:
        return None
    try:
        size, count = struct.unpack_from("<QQ", data)
        executable = MachineCode.from_bytes(data[16 : 16 + size])
        file = io.BytesIO(data[16 + size :])
        constants = [np.lib.format.read_array(file, allow_pickle=False) for _ in range(count)]
    except (ArtifactError, LoadError, ValueError, struct.error):
        disk.discard(key)
        return None
    if name is not None:
        executable.manifest = replace(
            executable.manifest, signature=replace(executable.manifest.signature, name=name)
        )
    report = CompileReport(
        name=name or "function",
        mode=config.mode,
        options=compile_options(config.mode),
        segments=1,
        cache=["hit"],
        fast_call=True,
    )
    return StoredFunction(executable, constants, report, make)
