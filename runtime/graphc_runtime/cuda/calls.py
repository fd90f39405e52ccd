# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Functions of the CUDA driver by name, through ctypes: inputs as ints, results after the status.

Results are written through pointers, which come before the inputs but for `cuStreamEndCapture`. A call that
fails leaves its results at 0, and the status says why.
"""

from __future__ import annotations

import ctypes
import sys
from collections.abc import Callable, Mapping
from typing import Protocol, TypeAlias

from graphc_runtime.cuda.driver import KernelLaunch, NoDeviceError

# Name: its symbol in the library, types of results, types of inputs.
_INT, _UNSIGNED, _SIZE, _HANDLE = ctypes.c_int, ctypes.c_uint, ctypes.c_size_t, ctypes.c_void_p
_ADDRESS = ctypes.c_uint64
_Integers = type[ctypes.c_int] | type[ctypes.c_uint] | type[ctypes.c_size_t] | type[ctypes.c_uint64]
_Types = tuple[_Integers | type[ctypes.c_void_p], ...]
FUNCTIONS: dict[str, tuple[str, _Types, _Types]] = {
    "cuInit": ("cuInit", (), (_UNSIGNED,)),
    "cuDriverGetVersion": ("cuDriverGetVersion", (_INT,), ()),
    "cuDeviceGetCount": ("cuDeviceGetCount", (_INT,), ()),
    "cuDeviceGet": ("cuDeviceGet", (_INT,), (_INT,)),
    "cuDeviceGetAttribute": ("cuDeviceGetAttribute", (_INT,), (_INT, _INT)),
    "cuDevicePrimaryCtxRetain": ("cuDevicePrimaryCtxRetain", (_HANDLE,), (_INT,)),
    "cuCtxSetCurrent": ("cuCtxSetCurrent", (), (_HANDLE,)),
    "cuDeviceGetDefaultMemPool": ("cuDeviceGetDefaultMemPool", (_HANDLE,), (_INT,)),
    "cuModuleUnload": ("cuModuleUnload", (), (_HANDLE,)),
    "cuFuncSetAttribute": ("cuFuncSetAttribute", (), (_HANDLE, _INT, _INT)),
    "cuMemAllocAsync": ("cuMemAllocAsync", (_ADDRESS,), (_SIZE, _HANDLE)),
    "cuMemFreeAsync": ("cuMemFreeAsync", (), (_ADDRESS, _HANDLE)),
    "cuMemcpyHtoDAsync": ("cuMemcpyHtoDAsync_v2", (), (_ADDRESS, _HANDLE, _SIZE, _HANDLE)),
    "cuMemcpyDtoHAsync": ("cuMemcpyDtoHAsync_v2", (), (_HANDLE, _ADDRESS, _SIZE, _HANDLE)),
    "cuMemcpyDtoDAsync": ("cuMemcpyDtoDAsync_v2", (), (_ADDRESS, _ADDRESS, _SIZE, _HANDLE)),
    "cuMemGetInfo": ("cuMemGetInfo_v2", (_SIZE, _SIZE), ()),
    "cuStreamCreate": ("cuStreamCreate", (_HANDLE,), (_UNSIGNED,)),
    "cuStreamSynchronize": ("cuStreamSynchronize", (), (_HANDLE,)),
    "cuStreamWaitEvent": ("cuStreamWaitEvent", (), (_HANDLE, _HANDLE, _UNSIGNED)),
    "cuStreamBeginCapture": ("cuStreamBeginCapture_v2", (), (_HANDLE, _INT)),
    "cuStreamEndCapture": ("cuStreamEndCapture", (_HANDLE,), (_HANDLE,)),
    "cuEventCreate": ("cuEventCreate", (_HANDLE,), (_UNSIGNED,)),
    "cuEventRecord": ("cuEventRecord", (), (_HANDLE, _HANDLE)),
    "cuEventSynchronize": ("cuEventSynchronize", (), (_HANDLE,)),
    "cuEventDestroy": ("cuEventDestroy_v2", (), (_HANDLE,)),
    "cuGraphInstantiate": ("cuGraphInstantiateWithFlags", (_HANDLE,), (_HANDLE, _ADDRESS)),
    "cuGraphDestroy": ("cuGraphDestroy", (), (_HANDLE,)),
    "cuGraphLaunch": ("cuGraphLaunch", (), (_HANDLE, _HANDLE)),
    "cuGraphExecDestroy": ("cuGraphExecDestroy", (), (_HANDLE,)),
}
_NAME_BYTES = 256
# A function of the driver with all its arguments; gives its status.
Bound: TypeAlias = Callable[[], int]
Options = Mapping[int, "ctypes.Array[ctypes.c_char] | int"]


class Calls(Protocol):
    """Functions of the driver; the first result of each is its status."""

    def call(self, name: str, *arguments: int) -> tuple[int, ...]:
        """A function of `FUNCTIONS`."""

    def device_name(self, device: int) -> str:
        """The name of a device."""

    def error_text(self, status: int) -> str:
        """Meaning of a status."""

    def pool_attribute(self, pool: int, attribute: int, value: ctypes.c_uint64) -> int:
        """Sets a number of a memory pool."""

    def load_module(self, image: ctypes.Array[ctypes.c_char], options: Options) -> tuple[int, int]:
        """A module of PTX or machine code."""

    def kernel(self, module: int, name: str) -> tuple[int, int]:
        """A kernel of a module."""

    def launch(self, asked: KernelLaunch, stream: int, parameters: int) -> int:
        """Launches a kernel with the arguments that pointers at `parameters` point at."""

    def address(self, name: str) -> int:
        """The address of a function of the driver."""

    def elapsed(self, first: int, last: int) -> tuple[int, float]:
        """Milliseconds between two events."""

    def graph_nodes(self, graph: int) -> tuple[int, int]:
        """Number of nodes of a graph."""

    def update_graph(self, ready: int, graph: int) -> int:
        """Gives a graph that is ready to be launched the arguments of another one."""


class LibraryCalls:
    """The driver's library, by ctypes.

    Args:
        library: path or name; by default that of the system.

    Raises:
        NoDeviceError: it is not there, or lacks a function.
    """

    def __init__(self, library: str = "") -> None:
        path = library or ("nvcuda.dll" if sys.platform == "win32" else "libcuda.so.1")
        try:
            self._library = ctypes.CDLL(path)
            self._functions = {name: self._function(name) for name in FUNCTIONS}
            self._launch = self._library.cuLaunchKernel
            self._together = self._library.cuLaunchCooperativeKernel
        except (OSError, AttributeError) as error:
            raise NoDeviceError(
                f"there is no CUDA driver here ({error}); functions for CUDA devices need one of version 12 "
                "or newer, all other targets work without it"
            ) from None
        sizes = [_UNSIGNED] * 7
        self._launch.argtypes = (_HANDLE, *sizes, _HANDLE, _HANDLE, _HANDLE)
        self._together.argtypes = (_HANDLE, *sizes, _HANDLE, _HANDLE)

    def _function(self, name: str) -> Callable[..., tuple[int, ...]]:
        symbol, results, inputs = FUNCTIONS[name]
        function = getattr(self._library, symbol)
        pointers = tuple(ctypes.POINTER(kind) for kind in results)
        last = name == "cuStreamEndCapture"
        function.argtypes = (*inputs, *pointers) if last else (*pointers, *inputs)
        if not results:
            return lambda *arguments: (function(*arguments),)

        def call(*arguments: int) -> tuple[int, ...]:
            found = [kind() for kind in results]
            at = [ctypes.byref(value) for value in found]
            status = function(*arguments, *at) if last else function(*at, *arguments)
            return (status, *(value.value or 0 for value in found))

        return call

    def call(self, name: str, *arguments: int) -> tuple[int, ...]:
        return self._functions[name](*arguments)

    def device_name(self, device: int) -> str:
        text = ctypes.create_string_buffer(_NAME_BYTES)
        self._library.cuDeviceGetName(text, _NAME_BYTES, device)
        return text.value.decode(errors="replace")

    def error_text(self, status: int) -> str:
        name, text = ctypes.c_char_p(), ctypes.c_char_p()
        self._library.cuGetErrorName(status, ctypes.byref(name))
        self._library.cuGetErrorString(status, ctypes.byref(text))
        return f"{(name.value or b'unknown').decode()}: {(text.value or b'').decode()}"

    def pool_attribute(self, pool: int, attribute: int, value: ctypes.c_uint64) -> int:
        return int(self._library.cuMemPoolSetAttribute(_HANDLE(pool), attribute, ctypes.byref(value)))

    def load_module(self, image: ctypes.Array[ctypes.c_char], options: Options) -> tuple[int, int]:
        module = _HANDLE()
        kinds = (_INT * len(options))(*options)
        values = (_HANDLE * len(options))(
            *(value if isinstance(value, int) else ctypes.addressof(value) for value in options.values())
        )
        status = self._library.cuModuleLoadDataEx(ctypes.byref(module), image, len(options), kinds, values)
        return int(status), module.value or 0

    def kernel(self, module: int, name: str) -> tuple[int, int]:
        function = _HANDLE()
        status = self._library.cuModuleGetFunction(ctypes.byref(function), _HANDLE(module), name.encode())
        return int(status), function.value or 0

    def launch(self, asked: KernelLaunch, stream: int, parameters: int) -> int:
        sizes = *asked.grid, *asked.block, asked.shared
        if asked.cooperative:
            return int(self._together(asked.function, *sizes, stream, parameters))
        return int(self._launch(asked.function, *sizes, stream, parameters, None))

    def address(self, name: str) -> int:
        function = self._library[FUNCTIONS[name][0] if name in FUNCTIONS else name]
        return ctypes.cast(function, ctypes.c_void_p).value or 0

    def elapsed(self, first: int, last: int) -> tuple[int, float]:
        found = ctypes.c_float()
        status = self._library.cuEventElapsedTime(ctypes.byref(found), _HANDLE(first), _HANDLE(last))
        return int(status), found.value

    def graph_nodes(self, graph: int) -> tuple[int, int]:
        count = _SIZE()
        return int(self._library.cuGraphGetNodes(_HANDLE(graph), None, ctypes.byref(count))), count.value

    def update_graph(self, ready: int, graph: int) -> int:
        # What differs: a number, and two nodes.
        found = (_HANDLE * 3)()
        return int(self._library.cuGraphExecUpdate_v2(_HANDLE(ready), _HANDLE(graph), found))
