# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""The kernels of a module, ready to run without a device."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence

import numpy as np

from graphc.backends.contexts import shared_context
from graphc_dialects._mlir import ir
from graphc_tools.gpu.interpreter import Decoder, Kernel
from graphc_tools.gpu.memory import Memory, Region
from graphc_tools.gpu.operations import decode


class Kernels(Mapping[str, Kernel]):
    """The kernels of all `gpu.module` of a text.

    Args:
        text: MLIR.

    Raises:
        ValueError: it does not parse, or has no kernel.

    Examples:
        >>> from graphc_tools.gpu.kernels import Kernels, run_kernel
        >>> text = '''gpu.module @kernels {
        ...   gpu.func @double(%x: memref<?xf32>) kernel {
        ...     %i = gpu.thread_id x
        ...     %a = memref.load %x[%i] : memref<?xf32>
        ...     %b = arith.addf %a, %a : f32
        ...     memref.store %b, %x[%i] : memref<?xf32>
        ...     gpu.return
        ...   }
        ... }'''
        >>> x = np.array([1, 2, 3], np.float32)
        >>> run_kernel(Kernels(text)["double"], (1, 1, 1), (3, 1, 1), [x])
        >>> x
        array([2., 4., 6.], dtype=float32)
    """

    def __init__(self, text: str) -> None:
        self._context = shared_context()
        with self._context:
            self._module = ir.Module.parse(text)
        self._functions: dict[str, ir.Operation] = {}
        self._kernels: dict[str, Kernel] = {}
        for op in self._module.body.operations:
            if op.operation.name == "gpu.module":
                self._collect(op.operation)
        if not self._kernels:
            raise ValueError("the module has no kernels")

    def _collect(self, module: ir.Operation) -> None:
        for op in module.regions[0].blocks[0].operations:
            if op.operation.name in ("func.func", "llvm.func"):
                self._functions[op.attributes["sym_name"].value] = op.operation
            elif op.operation.name == "gpu.func":
                kernel = Kernel(op.operation, Decoder(decode, self._functions.__getitem__))
                self._kernels[kernel.name] = kernel

    def __getitem__(self, name: str) -> Kernel:
        return self._kernels[name]

    def __iter__(self) -> Iterator[str]:
        return iter(self._kernels)

    def __len__(self) -> int:
        return len(self._kernels)


def run_kernel(
    kernel: Kernel,
    grid: tuple[int, int, int],
    block: tuple[int, int, int],
    arguments: Sequence[np.ndarray | int | float],
    *,
    shared: int = 0,
    initialised: Sequence[bool] | None = None,
) -> None:
    """Runs a kernel on arrays of the host, which it changes.

    Args:
        kernel: the kernel.
        grid, block: sizes along x, y, z.
        arguments: an array for each memref, a number for each scalar.
        shared: bytes of dynamic shared memory.
        initialised: for each argument, whether its content counts as written.

    Raises:
        KernelError: what the kernel does is wrong or undefined on a device.
    """
    memory, flat = Memory(), []
    address = 1 << 32
    copies: list[tuple[np.ndarray, Region]] = []
    for i, argument in enumerate(arguments):
        if not isinstance(argument, np.ndarray):
            flat.append(argument)
            continue
        region = Region(
            address,
            np.ascontiguousarray(argument).view(np.uint8).reshape(-1).copy()
            if argument.size
            else np.zeros(0, np.uint8),
            f"argument {i}",
            initialised=initialised is None or initialised[i],
        )
        memory.regions[address] = region
        copies.append((argument, region))
        strides = [int(np.prod(argument.shape[axis + 1 :], dtype=np.int64)) for axis in range(argument.ndim)]
        flat += [address, address, 0, *argument.shape, *strides]
        address += -(-max(argument.nbytes, 1) // 256) * 256 + 256
    try:
        kernel.run(grid, block, flat, memory, shared)
    finally:
        for argument, region in copies:
            if argument.flags.writeable:
                argument[...] = region.data.view(argument.dtype).reshape(argument.shape)
