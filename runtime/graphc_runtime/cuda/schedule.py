# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Work of the host in a call of a compiled function on a device: programs for registers.

A register holds an array of the device, an array of the host, or a number (int, float or bool of Python).
Registers are numbered; every register is written by one step, and steps of a block see the registers of the
blocks around it. The types of a step's fields say what the registers in them hold, and whether the step
writes them (`fields_of`). Sizes, offsets and strides are registers, in elements. Steps of a stream run in
order; steps of two streams are ordered by `Record` and `Wait`. `graphc_runtime.cuda.steps` runs schedules,
`schedule_json` writes, reads and checks them.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import field, fields
from typing import ClassVar, TypeAlias

from graphc_runtime.index_arithmetic import BINARY, COMPARISONS, wrapped
from graphc_runtime.record import record

# Launch limit of all devices.
MAX_THREADS = 1024

DEVICE, HOST, NUMBER = "an array of the device", "an array of the host", "a number"
# Registers that a step reads: an array of the device or the host, or either of them; a number, or that or an
# array; anything. Those whose types begin with New are written.
Device: TypeAlias = int
Host: TypeAlias = int
Array: TypeAlias = int
Number: TypeAlias = int
OfDevice: TypeAlias = int
OfHost: TypeAlias = int
Held: TypeAlias = int
NewDevice: TypeAlias = int
NewHost: TypeAlias = int
NewNumber: TypeAlias = int
New: TypeAlias = int
_HELD = {
    "Device": (DEVICE,),
    "Host": (HOST,),
    "Number": (NUMBER,),
    "Held": (),
    "": (),
    "Array": (DEVICE, HOST),
    "OfDevice": (DEVICE, NUMBER),
    "OfHost": (HOST, NUMBER),
}
Sizes: TypeAlias = tuple[Number, Number, Number]

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

    def __init_subclass__(cls) -> None:
        """A kind of step has the name of its class."""
        letters = (f"_{letter.lower()}" if letter.isupper() else letter for letter in cls.__name__)
        cls.kind = "".join(letters).removeprefix("_")

    op: str = field(default="", kw_only=True)
    line: str = field(default="", kw_only=True)
    stream: int = field(default=0, kw_only=True)


@record(frozen=True)
class HostStep(Step):
    """Something that needs no more of the device than elements of arrays."""


@record(frozen=True)
class Constant(HostStep):
    """A number."""

    result: NewNumber
    value: int | float | bool


@record(frozen=True)
class Dim(HostStep):
    """The size of an array along an axis."""

    result: NewNumber
    array: Array
    axis: int


@record(frozen=True)
class Offset(HostStep):
    """Offset of an array in its memory, in elements."""

    result: NewNumber
    array: Device


@record(frozen=True)
class Stride(HostStep):
    """Distance of neighbours along an axis of an array, in elements."""

    result: NewNumber
    array: Device
    axis: int


@record(frozen=True)
class Compute(HostStep):
    """Arithmetic of `OPERATIONS`; "select" also chooses one of two arrays."""

    result: New
    operation: str
    operands: tuple[OfDevice, ...]


@record(frozen=True)
class Allocate(Step):
    """A contiguous array of the device, in stream order; its content is undefined."""

    result: NewDevice
    dtype: str
    sizes: tuple[Number, ...]


@record(frozen=True)
class Free(Step):
    """Gives the memory of an allocated array back, in stream order, after its last use."""

    array: Device


@record(frozen=True)
class View(Step):
    """An array in the memory of another one, with the same dtype or that of `dtype`.

    Attributes:
        offset: where it begins, in elements of its own, counted from the start of the other's memory.
        sizes, strides: registers; no two elements that a kernel writes may share memory.
        dtype: NumPy's name; empty for that of `array`.
    """

    result: NewDevice
    array: Device
    offset: Number
    sizes: tuple[Number, ...]
    strides: tuple[Number, ...]
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

    kernel: str
    grid: Sizes
    block: Sizes
    arguments: tuple[OfDevice, ...]
    types: tuple[str, ...] = ()
    shared: int = 0
    cooperative: bool = False


@record(frozen=True)
class Copy(Step):
    """Copies an array of the device to another one of equal dtype and shape, both contiguous."""

    source: Device
    target: Device


@record(frozen=True)
class Upload(Step):
    """Copies an array of the host to a new one of the device, to be freed by `Free`."""

    result: NewDevice
    source: Host


@record(frozen=True)
class Download(Step):
    """Copies an array of the device to a new one of the host; waits for the stream."""

    result: NewHost
    source: Device


@record(frozen=True)
class HostCall(Step):
    """Calls a function of the host: a CPU executable, or an operation that is Python.

    Attributes:
        function: its number among the functions that the executor is given.
        arguments: registers of arrays of the host, or numbers.
        results: registers of the arrays of the host that it returns.
        first_site: number of the manifest's sites that stand before those of the function.
    """

    function: int
    arguments: tuple[OfHost, ...]
    results: tuple[NewHost, ...]
    first_site: int = 0


@record(frozen=True)
class Read(HostStep):
    """An element of an array as number; waits for the stream if the array is on the device."""

    result: NewNumber
    array: Array
    indices: tuple[Number, ...] = ()


@record(frozen=True)
class Check(HostStep):
    """Fails with the manifest's site `status - 1` unless a condition holds.

    Attributes:
        given, expected: numbers for the message.
    """

    status: int
    condition: Number
    given: Number
    expected: Number


@record(frozen=True)
class Record(Step):
    """Makes an event of all that the stream has been asked for."""

    event: int


@record(frozen=True)
class Wait(Step):
    """A wait for an event, before later work of the stream."""

    event: int


@record(frozen=True)
class Block:
    """Steps within a step: registers that it is given, and registers of what it gives."""

    arguments: tuple[int, ...]
    steps: tuple[Step, ...]
    yields: tuple[int, ...]


@record(frozen=True)
class If(HostStep):
    """Runs one of two blocks; its yields become the results."""

    condition: Number
    then: Block
    otherwise: Block
    results: tuple[New, ...] = ()


@record(frozen=True)
class Loop(HostStep):
    """Runs a block for each index from `lower` up to, without, `upper`.

    The block's arguments are the index and what is carried, its yields what is carried on.
    """

    lower: Number
    upper: Number
    step: Number
    initial: tuple[Held, ...]
    body: Block
    results: tuple[New, ...] = ()


@record(frozen=True)
class While(HostStep):
    """Runs `before`, which yields a condition and values; while it holds, `after` on these, then again."""

    initial: tuple[Held, ...]
    before: Block
    after: Block
    results: tuple[New, ...] = ()


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

    left: Device
    right: Device
    target: Device
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

    result: NewNumber
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

    routine: str
    arrays: tuple[Device, ...]
    numbers: tuple[Number, ...]
    count: Number


STEPS: tuple[type[Step], ...] = (
    *(Constant, Dim, Offset, Stride, Compute, Allocate, Free, View, Launch, Copy, Upload, Download),
    *(HostCall, Read, Check, Record, Wait, If, Loop, While, Product, Has, Ask),
)


@record(frozen=True)
class StepField:
    """A field of a step.

    Attributes:
        name: of the field.
        type: "register", "str", "bool", "Block", "int" or "int | float | bool".
        is_many: whether it is a tuple of these.
        held: what registers in it may hold, no matter what if that is empty.
        is_new: whether the step writes these registers.
        default: of the field, or `MISSING`.
    """

    name: str
    type: str
    is_many: bool
    held: tuple[str, ...]
    is_new: bool
    default: object


_FIELDS: dict[type[Step], dict[str, StepField]] = {}


def fields_of(kind: type[Step]) -> dict[str, StepField]:
    """The fields of a step, by name."""
    if kind not in _FIELDS:
        _FIELDS[kind] = {each.name: _field(each.name, str(each.type), each.default) for each in fields(kind)}
    return _FIELDS[kind]


def _field(name: str, type_: str, default: object) -> StepField:
    text = type_.replace("Sizes", "tuple[Number, ...]")
    one = text.removeprefix("tuple[").partition(",")[0]
    held = _HELD.get(one.removeprefix("New"))
    shown = one if held is None else "register"
    return StepField(name, shown, one != text, held or (), one.startswith("New"), default)


def registers_of(step: Step, *, are_new: bool) -> list[tuple[int, tuple[str, ...]]]:
    """Registers that a step reads, or those that it writes, and what they may hold."""
    found: list[tuple[int, tuple[str, ...]]] = []
    for each in fields_of(type(step)).values():
        if each.type == "register" and each.is_new == are_new:
            value = getattr(step, each.name)
            found += [(register, each.held) for register in (value if each.is_many else [value])]
    return found


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
