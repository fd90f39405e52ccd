# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""An AArch64 processor in this process (Unicorn), which runs exported objects.

The loader's own relocations place the code. Memory is this process's, at the same addresses, so arrays and
structures are ctypes' and NumPy's. Functions of libraries are traps: this process's are called instead.
"""

from __future__ import annotations

import ctypes
import mmap

import numpy as np
import unicorn
from unicorn import arm64_const as arm
from ways_artifacts import Error, Tensor

from graphc_runtime import elf, symbols
from graphc_runtime.generators import generator_of, state_of
from graphc_runtime.image import Image
from graphc_runtime.symbols import DTYPES

_SIZE, _STACK, _PAGE = 1 << 26, 1 << 20, 1 << 12
_RETURN = bytes.fromhex("c0035fd6")
_BINARY = ("pow", "atan2", "fmod", "hypot", "copysign", "nextafter", "fmin", "fmax", "remainder")
_MEMORY = {"memcpy": ctypes.memmove, "memmove": ctypes.memmove, "memset": ctypes.memset}
_ARGUMENTS = [arm.UC_ARM64_REG_X0 + i for i in range(8)]


class Machine:
    """A processor with the code of an object.

    Args:
        code: an ELF object for AArch64.

    Attributes:
        called: functions of libraries that have been called.
    """

    def __init__(self, code: bytes) -> None:
        self.called: set[str] = set()
        self._memory = mmap.mmap(-1, _SIZE)
        self._start = self._next = ctypes.addressof(ctypes.c_char.from_buffer(self._memory))
        self._libm = ctypes.CDLL("libm.so.6")
        self._uc = unicorn.Uc(unicorn.UC_ARCH_ARM64, unicorn.UC_MODE_LITTLE_ENDIAN)
        self._uc.mem_map_ptr(self._start, _SIZE, unicorn.UC_PROT_ALL, self._start)
        self._uc.reg_write(arm.UC_ARM64_REG_CPACR_EL1, 3 << 20)  # floating point is there
        self._traps: dict[int, str] = {}
        self._trap_page = self.take(_PAGE)
        ctypes.memmove(self._trap_page, _RETURN * (_PAGE // 4), _PAGE)
        self._uc.hook_add(
            unicorn.UC_HOOK_CODE, self._trapped, begin=self._trap_page, end=self._trap_page + _PAGE - 1
        )
        self._stop = self._trap("")
        image = Image(elf.parse(code), self._trap)
        assert image.machine == elf.AARCH64
        base = self.take(image.size, image.align)
        content = image.relocate(base)
        ctypes.memmove(base, bytes(content), len(content))
        self._addresses = image.exports(base)
        self._stack = self.take(_STACK) + _STACK

    def take(self, size: int, align: int = 64) -> int:
        """Memory that the processor has, too."""
        at = -(-self._next // align) * align
        self._next = at + size
        assert self._next <= self._start + _SIZE
        return at

    def array(self, value: np.ndarray) -> np.ndarray:
        """A copy there."""
        memory = (ctypes.c_char * max(value.nbytes, 1)).from_address(self.take(value.nbytes + 1))
        made = np.frombuffer(memory, value.dtype, value.size).reshape(value.shape)
        made[...] = value
        return made

    def make(self, kind: type) -> object:
        """A zeroed ctypes object there."""
        return kind.from_address(self.take(ctypes.sizeof(kind)))

    def run(self, symbol: str, *arguments: int) -> int:
        """Calls a function of the object with pointers; its result as 64 bits."""
        for register, value in zip(_ARGUMENTS, arguments, strict=False):
            self._uc.reg_write(register, value)
        self._uc.reg_write(arm.UC_ARM64_REG_SP, self._stack)
        self._uc.reg_write(arm.UC_ARM64_REG_LR, self._stop)
        self._uc.emu_start(self._addresses[symbol], self._stop)
        return ctypes.c_int64(self._uc.reg_read(arm.UC_ARM64_REG_X0)).value

    def call(self, name: str, inputs: list[np.ndarray], specs: list[object]) -> list[np.ndarray]:
        """Calls an exported function as a C program does: shapes, workspace, run.

        Raises:
            ValueError: it returned an error, with the code and the message.
        """
        given = self._tensors([self.array(np.asarray(x)) for x in inputs])
        shapes = self._tensors([np.empty((0,) * spec.rank, spec.dtype) for spec in specs])
        error = self.make(Error)
        size = self.run(f"{name}_workspace", ctypes.addressof(given), ctypes.addressof(error))
        size = 1 << 20 if size < 0 else size
        workspace = self.make(ctypes.c_uint64 * 3)
        workspace[:] = (self.take(size), size, 0)

        def run(symbol: str, outputs: object) -> None:
            places = [ctypes.addressof(x) for x in (workspace, given, outputs, error)]
            status = ctypes.c_int32(self.run(symbol, *places)).value
            if status:
                raise ValueError(f"{status}: {(error.message or b'').decode()}")

        run(f"{name}_shapes", shapes)
        outputs = [
            self.array(np.full(shapes[i].shape[: spec.rank], 1, spec.dtype)) for i, spec in enumerate(specs)
        ]
        run(name, self._tensors(outputs))
        return outputs

    def _tensors(self, arrays: list[np.ndarray]) -> object:
        made = self.make(Tensor * max(len(arrays), 1))
        for tensor, array in zip(made, arrays, strict=False):
            sizes = self.make(ctypes.c_int64 * max(array.ndim, 1))
            sizes[: array.ndim] = array.shape
            tensor.data, tensor.dtype, tensor.rank = (
                array.ctypes.data,
                DTYPES.index(array.dtype.name),
                array.ndim,
            )
            tensor.shape = ctypes.cast(sizes, ctypes.POINTER(ctypes.c_int64))
        return made

    def _trap(self, symbol: str) -> int:
        at = self._trap_page + 4 * len(self._traps)
        self._traps[at] = symbol
        return at

    def _trapped(self, uc: object, address: int, size: int, data: object) -> None:
        """A call of a function of a library; a return follows."""
        symbol = self._traps.get(address, "")
        if not symbol:
            return
        self.called.add(symbol)
        if symbol in _MEMORY:
            _MEMORY[symbol](*(self._uc.reg_read(register) for register in _ARGUMENTS[:3]))
        elif symbol.startswith("random_"):
            self._draw(symbol)
        elif symbol.endswith("_"):
            self._fortran(symbol)
        else:
            self._mathematical(symbol)

    def _draw(self, symbol: str) -> None:
        """A draw of NumPy's library, of one number with parameters that are numbers, from a PCG64."""
        pointer = self._uc.reg_read(arm.UC_ARM64_REG_X0)
        words = (ctypes.c_uint64 * 6).from_address(ctypes.c_uint64.from_address(pointer).value)
        generator = generator_of(np.array(words))
        count = {"random_normal": 2, "random_standard_normal": 0, "random_standard_gamma": 1}[symbol]
        registers = [arm.UC_ARM64_REG_D0 + i for i in range(count)]
        values = [ctypes.c_double.from_buffer(ctypes.c_uint64(self._uc.reg_read(r))).value for r in registers]
        drawn = getattr(generator, symbol.removeprefix("random_"))(*values)
        words[:] = state_of(generator).tolist()
        self._uc.reg_write(arm.UC_ARM64_REG_D0, ctypes.c_uint64.from_buffer(ctypes.c_double(drawn)).value)

    def _fortran(self, symbol: str) -> None:
        """A function of BLAS or LAPACK, which takes pointers: eight in registers, more on the stack."""
        address = symbols.optional(f"blas_{symbol[:-1]}") or symbols.resolve(f"lapack_{symbol[:-1]}")
        stack = (ctypes.c_uint64 * 12).from_address(self._uc.reg_read(arm.UC_ARM64_REG_SP))
        pointers = [*(self._uc.reg_read(register) for register in _ARGUMENTS), *stack]
        ctypes.CFUNCTYPE(None, *[ctypes.c_uint64] * len(pointers))(address)(*pointers)

    def _mathematical(self, symbol: str) -> None:
        """A function of libm."""
        single = symbol.endswith("f") and symbol not in ("erf",)
        count = 2 if symbol.removesuffix("f") in _BINARY else 1
        kind, first = (
            (ctypes.c_float, arm.UC_ARM64_REG_S0) if single else (ctypes.c_double, arm.UC_ARM64_REG_D0)
        )
        width = ctypes.c_uint32 if single else ctypes.c_uint64
        function = self._libm[symbol]
        function.restype, function.argtypes = kind, [kind] * count
        values = [kind.from_buffer(width(self._uc.reg_read(first + i))).value for i in range(count)]
        self._uc.reg_write(first, width.from_buffer(kind(function(*values))).value)
