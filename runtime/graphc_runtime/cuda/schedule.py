# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Work of the host in a call of a compiled function on a device: programs for registers.

A register holds an array of the device, an array of the host, or a number (int, float or bool of Python).
Registers are numbered; every register is written by one step, and steps of a block see the registers of the
blocks around it. Sizes, offsets and strides are registers, in elements. Steps of a stream run in order;
steps of two streams are ordered by `Record` and `Wait`. `graphc_runtime.cuda.steps` runs schedules,
`schedule_json` writes, reads and checks them.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import field
from typing import ClassVar

from graphc_runtime.index_arithmetic import BINARY, COMPARISONS, wrapped
from graphc_runtime.record import record

# Launch limit of all devices.
MAX_THREADS = 1024

# Arithmetic of `Compute`, on signed integers of 64 bits; comparisons give bools.
OPERATIONS: dict[str, Callable[..., int]] = {
    **BINARY,
    **COMPARISONS,
    "select": lambda condition, a, b: a if condition else b,
    "power_of_2": lambda a: wrapped(1 << max(a - 1, 0).bit_length()),
}


@record(frozen=True)
class Step:
    """Something to do.

    Attributes:
        op: the operation of the graph that it is for: the position of its node, or a text.
        line: the user's line that applied it, for errors.
        stream: number of the stream that it is done in; 0 is the one that results are ordered by.
    """

    kind: ClassVar[str]

    op: str = field(default="", kw_only=True)
    line: str = field(default="", kw_only=True)
    stream: int = field(default=0, kw_only=True)


@record(frozen=True)
class Constant(Step):
    """A number."""

    kind = "constant"
    result: int
    value: int | float | bool


@record(frozen=True)
class Dim(Step):
    """The size of an array along an axis."""

    kind = "dim"
    result: int
    array: int
    axis: int


@record(frozen=True)
class Offset(Step):
    """Offset of an array in its memory, in elements."""

    kind = "offset"
    result: int
    array: int


@record(frozen=True)
class Stride(Step):
    """Distance of neighbours along an axis of an array, in elements."""

    kind = "stride"
    result: int
    array: int
    axis: int


@record(frozen=True)
class Compute(Step):
    """Arithmetic of `OPERATIONS`; "select" also chooses one of two arrays."""

    kind = "compute"
    result: int
    operation: str
    operands: tuple[int, ...]


@record(frozen=True)
class Allocate(Step):
    """A contiguous array of the device, in stream order; its content is undefined."""

    kind = "allocate"
    result: int
    dtype: str
    sizes: tuple[int, ...]


@record(frozen=True)
class Free(Step):
    """Gives the memory of an allocated array back, in stream order, after its last use."""

    kind = "free"
    array: int


@record(frozen=True)
class View(Step):
    """An array in the memory of another one, with the same dtype or that of `dtype`.

    Attributes:
        offset: where it begins, in elements of its own, counted from the start of the other's memory.
        sizes, strides: registers; no two elements that a kernel writes may share memory.
        dtype: NumPy's name; empty for that of `array`.
    """

    kind = "view"
    result: int
    array: int
    offset: int
    sizes: tuple[int, ...]
    strides: tuple[int, ...]
    dtype: str = ""


@record(frozen=True)
class Launch(Step):
    """Runs a kernel; nothing happens where the grid has no blocks.

    Attributes:
        kernel: its name in the PTX.
        grid: registers: blocks along x, y, z.
        block: registers: threads along x, y, z.
        arguments: registers. An array is passed as its descriptor (`descriptor_types`), a number as `types`
            says.
        types: dtype of each argument that is a number, "" for arrays; () stands for int64 and float64.
        shared: bytes of shared memory beyond those that the kernel declares.
        cooperative: whether all blocks have to run at the same time, for barriers of the grid.
    """

    kind = "launch"
    kernel: str
    grid: tuple[int, int, int]
    block: tuple[int, int, int]
    arguments: tuple[int, ...]
    types: tuple[str, ...] = ()
    shared: int = 0
    cooperative: bool = False


@record(frozen=True)
class Copy(Step):
    """Copies an array of the device to another one of equal dtype and shape, both contiguous."""

    kind = "copy"
    source: int
    target: int


@record(frozen=True)
class Upload(Step):
    """Copies an array of the host to a new one of the device, to be freed by `Free`."""

    kind = "upload"
    result: int
    source: int


@record(frozen=True)
class Download(Step):
    """Copies an array of the device to a new one of the host; waits for the stream."""

    kind = "download"
    result: int
    source: int


@record(frozen=True)
class HostCall(Step):
    """Calls a function of the host: a CPU executable, or an operation that is Python.

    Attributes:
        function: its number among the functions that the executor is given.
        arguments: registers of arrays of the host, or numbers.
        results: registers of the arrays of the host that it returns.
        first_site: number of the manifest's sites that stand before those of the function.
    """

    kind = "host_call"
    function: int
    arguments: tuple[int, ...]
    results: tuple[int, ...]
    first_site: int = 0


@record(frozen=True)
class Read(Step):
    """An element of an array as number; waits for the stream if the array is on the device."""

    kind = "read"
    result: int
    array: int
    indices: tuple[int, ...] = ()


@record(frozen=True)
class Check(Step):
    """Fails with the manifest's site `status - 1` unless a condition holds.

    Attributes:
        given, expected: numbers for the message.
    """

    kind = "check"
    status: int
    condition: int
    given: int
    expected: int


@record(frozen=True)
class Record(Step):
    """Makes an event of all that the stream has been asked for."""

    kind = "record"
    event: int


@record(frozen=True)
class Wait(Step):
    """A wait for an event, before later work of the stream."""

    kind = "wait"
    event: int


@record(frozen=True)
class Block:
    """Steps within a step: registers that it is given, and registers of what it gives."""

    arguments: tuple[int, ...]
    steps: tuple[Step, ...]
    yields: tuple[int, ...]


@record(frozen=True)
class If(Step):
    """Runs one of two blocks; its yields become the results."""

    kind = "if"
    condition: int
    then: Block
    otherwise: Block
    results: tuple[int, ...] = ()


@record(frozen=True)
class Loop(Step):
    """Runs a block for each index from `lower` up to, without, `upper`.

    The block's arguments are the index and what is carried, its yields what is carried on.
    """

    kind = "loop"
    lower: int
    upper: int
    step: int
    initial: tuple[int, ...]
    body: Block
    results: tuple[int, ...] = ()


@record(frozen=True)
class While(Step):
    """Runs `before`, which yields a condition and values; while it holds, `after` on these, then again."""

    kind = "while"
    initial: tuple[int, ...]
    before: Block
    after: Block
    results: tuple[int, ...] = ()


@record(frozen=True)
class Product(Step):
    """A matrix product in an array: by a library for it where there is one, else by kernels.

    Attributes:
        left, right, target: registers of arrays.
        form: their axes, see `graphc_runtime.cuda.gemm.axes_of`.
        kernels: launches that do the same.
        short: whether factors of float32 may be rounded to 10 bits.
        adds: whether it is added to what the array holds, or replaces that.
    """

    kind = "product"
    left: int
    right: int
    target: int
    form: str
    kernels: Block
    short: bool = False
    adds: bool = True


@record(frozen=True)
class Has(Step):
    """True if a library is there, and may be used.

    Attributes:
        library: of `graphc_runtime.cuda.libraries.LIBRARIES`.
    """

    kind = "has"
    result: int
    library: str


@record(frozen=True)
class Ask(Step):
    """Asks a library, which is there, for what it does with each array of a batch.

    Attributes:
        routine: of `graphc_runtime.cuda.libraries.ROUTINES`.
        arrays: registers of arrays, contiguous, which have `count` parts of equal size.
        numbers: registers of the routine's numbers.
        count: register.
    """

    kind = "ask"
    routine: str
    arrays: tuple[int, ...]
    numbers: tuple[int, ...]
    count: int


STEPS: tuple[type[Step], ...] = (
    *(Constant, Dim, Offset, Stride, Compute, Allocate, Free, View, Launch, Copy, Upload, Download),
    *(HostCall, Read, Check, Record, Wait, If, Loop, While, Product, Has, Ask),
)


@record(frozen=True)
class Program:
    """Steps with their registers.

    Attributes:
        parameters: registers 0 to `parameters - 1` hold the arguments.
        registers: how many there are.
        steps: what to do.
        results: registers.
    """

    parameters: int
    registers: int
    steps: tuple[Step, ...]
    results: tuple[int, ...] = ()


@record(frozen=True)
class Schedule:
    """The programs of a function.

    Attributes:
        main: its arguments are the arrays of the signature: inputs, cells, outputs, updates.
        shapes: its arguments are the inputs and cells, its results the sizes of outputs and updates that are
            not static, one after the other. It computes on shapes only, and needs no device.
        streams: how many `main` uses.
        events: how many.
        functions: how many functions of the host it calls.
    """

    main: Program
    shapes: Program
    streams: int = 1
    events: int = 0
    functions: int = 0


def descriptor_types(rank: int) -> tuple[str, ...]:
    """Arguments of a kernel for an array: pointer, the same pointer, offset, sizes, strides."""
    return ("pointer", "pointer", *["int64"] * (1 + 2 * rank))
