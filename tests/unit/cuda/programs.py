# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Schedules written by hand, of the kernels in kernels/right.mlir."""

from __future__ import annotations

from pathlib import Path

from graphc_runtime.artifact import Artifact
from graphc_runtime.cuda import schedule as sc
from graphc_runtime.cuda.code import DeviceCode
from graphc_runtime.cuda.executable import DeviceExecutable
from graphc_runtime.errors import Site
from graphc_runtime.manifest import ArraySpec, Manifest, Signature, Update
from graphc_tools.gpu.kernels import Kernels
from graphc_tools.gpu.simulated import SimulatedDriver

KERNELS = Kernels(Path(__file__).with_name("kernels").joinpath("right.mlir").read_text())
NOTHING = sc.Program(0, 0, ())


class Steps:
    """Collects steps; registers are numbered as they are asked for."""

    def __init__(self, parameters: int) -> None:
        self.parameters = self.count = parameters
        self.steps: list[sc.Step] = []

    def new(self, make, *arguments, **options) -> int:
        """A step with a result first."""
        register = self.register()
        self.steps.append(make(register, *arguments, **options))
        return register

    def register(self) -> int:
        self.count += 1
        return self.count - 1

    def number(self, value) -> int:
        return self.new(sc.Constant, value)

    def launch(self, kernel, grid, block, arguments, **options) -> None:
        places = [tuple(self.number(n) if n < 0 else n for n in self.three(sizes)) for sizes in (grid, block)]
        self.steps.append(sc.Launch(kernel, *places, tuple(arguments), **options))

    def three(self, sizes):
        one = self.number(1)
        return (*sizes, *[one] * (3 - len(sizes)))

    def program(self, *results) -> sc.Program:
        return sc.Program(self.parameters, self.count, tuple(self.steps), results)


def executable(
    main, signature, shapes=NOTHING, driver=None, functions=(), sites=(), streams=1, events=0
) -> DeviceExecutable:
    schedule = sc.Schedule(main, shapes, streams, events, len(functions))
    manifest = Manifest(signature, sites=sites, target={"triple": "nvptx64-nvidia-cuda", "cpu": "sm_90"})
    code = DeviceCode(schedule, ".version 8.0", "sm_90").to_bytes()
    driver = SimulatedDriver(KERNELS) if driver is None else driver
    return DeviceExecutable(Artifact(manifest, code), driver, functions)


def size_of_axis(axis) -> sc.Program:
    """Shapes: one result, with the size of the first argument along an axis."""
    steps = Steps(1)
    return steps.program(steps.new(sc.Dim, 0, axis))


def column_sums(**options) -> DeviceExecutable:
    """Transposes, and sums the rows of that."""
    steps = Steps(2)
    rows, columns = steps.new(sc.Dim, 0, 0), steps.new(sc.Dim, 0, 1)
    eight, threads = steps.number(8), steps.number(64)
    turned = steps.new(sc.Allocate, "float32", (columns, rows), op="Transpose")
    down, right = (steps.new(sc.Compute, "ceildivsi", (n, eight)) for n in (rows, columns))
    steps.launch("transpose", (right, down), (eight, eight), (0, turned), op="Transpose", line="model.py:7")
    steps.launch("row_sums", (columns,), (threads,), (turned, 1))
    steps.steps.append(sc.Free(turned))
    signature = Signature(
        (ArraySpec("float32", (None, None), "x"),), outputs=(ArraySpec("float32", (None,)),)
    )
    return executable(steps.program(), signature, size_of_axis(1), **options)


def axpy(times=3, **options) -> DeviceExecutable:
    """Adds 0.5 x to a shared variable, some times; the result is its new value."""
    steps = Steps(3)
    x, old, new = 0, 1, 2
    two, threads = steps.number(2), steps.number(32)
    half = steps.number(0.5)
    steps.steps.append(sc.Copy(old, new))
    for _ in range(times):
        steps.launch("axpy", (two,), (threads,), (half, x, new), types=("float32", "", ""))
    spec = ArraySpec("float32", (None,), "y")
    signature = Signature((spec,), (spec,), (), (Update(0, spec),), returns="none")
    return executable(steps.program(), signature, size_of_axis(0), **options)


def in_place(**options) -> DeviceExecutable:
    """Adds half a shared variable to x, in the memory of x, and half of that to the shared variable."""
    steps = Steps(4)
    x, old, out, new = range(4)
    two, threads = steps.number(2), steps.number(32)
    half = steps.number(0.5)
    steps.launch("axpy", (two,), (threads,), (half, old, out), types=("float32", "", ""))
    steps.steps.append(sc.Copy(old, new))
    steps.launch("axpy", (two,), (threads,), (half, out, new), types=("float32", "", ""))
    spec = ArraySpec("float32", (None,), "x")
    signature = Signature((spec,), (spec,), (spec,), (Update(0, spec),), donated=((x, 0),))
    shapes = Steps(2)
    sizes = shapes.new(sc.Dim, 0, 0), shapes.new(sc.Dim, 1, 0)
    return executable(steps.program(), signature, shapes.program(*sizes), **options)


def repeated(**options) -> DeviceExecutable:
    """Adds x to y as often as the first element of n says, and as often as a loop runs that doubles."""
    steps = Steps(4)
    x, y, n, out = range(4)
    zero, one, two, threads = (steps.number(i) for i in (0, 1, 2, 32))
    whole = steps.number(1.0)
    steps.steps.append(sc.Copy(y, out))
    count = steps.new(sc.Read, n, (zero,), op="Scan", line="model.py:9")
    body = Steps(0)
    body.count = steps.count
    index = body.register()
    one_more = sc.Launch("axpy", (two, one, one), (threads, one, one), (whole, x, out), ("float32", "", ""))
    steps.count = body.count
    steps.steps.append(sc.Loop(zero, count, one, (), sc.Block((index,), (one_more,), ()), ()))
    given, more, passed, doubled, last = (steps.register() for _ in range(5))
    before = sc.Block((given,), (sc.Compute(more, "slt", (given, count)),), (more, given))
    after = sc.Block((passed,), (one_more, sc.Compute(doubled, "addi", (passed, passed))), (doubled,))
    steps.steps.append(sc.While((one,), before, after, (last,)))
    limit = steps.number(64)
    condition = steps.new(sc.Compute, "sle", (last, limit))
    steps.steps.append(sc.Check(1, condition, last, limit))
    odd = steps.new(sc.Compute, "andi", (count, one))
    steps.steps.append(sc.If(odd, sc.Block((), (one_more,), ()), sc.Block((), (), ()), ()))
    specs = ArraySpec("float32", (None,), "x"), ArraySpec("float32", (None,), "y")
    signature = Signature((*specs, ArraySpec("int64", (1,), "n")), outputs=(ArraySpec("float32", (None,)),))
    sites = (Site("{given} steps are more than {expected}", "ValueError"),)
    return executable(steps.program(), signature, size_of_axis(0), sites=sites, **options)
