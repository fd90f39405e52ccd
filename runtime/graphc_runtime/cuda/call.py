# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Calls of a compiled function for a device, from Python."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from typing import Any, Protocol

import numpy as np

from graphc_runtime.commit import attempts, commit, snapshot
from graphc_runtime.cuda.array import (
    DeviceArray,
    Layout,
    Memory,
    from_dlpack,
    from_interface,
    layout,
    upload,
)
from graphc_runtime.cuda.driver import DeviceMemoryError, Driver, DriverError
from graphc_runtime.cuda.interface import CUDA, MANAGED, has_dlpack, has_interface
from graphc_runtime.cuda.outs import Target, targets
from graphc_runtime.cuda.plans import Plans
from graphc_runtime.cuda.registers import Cell, OnCheck
from graphc_runtime.errors import Origin
from graphc_runtime.kernel import Shape
from graphc_runtime.manifest import ArraySpec, Signature
from graphc_runtime.marshal import canonical, fits
from graphc_runtime.symbols import DESCRIPTORS


class Runs(Protocol):
    """Needs of a call of an executable."""

    @property
    def driver(self) -> Driver:
        """Of the device."""

    @property
    def plans(self) -> Plans:
        """Of calls that repeat."""

    def hold(self, cells: Sequence[Cell]) -> None:
        """Moves values of cells to the device."""

    def result_shapes(self, arguments: Sequence[DeviceArray | np.ndarray], on_check: OnCheck) -> list[Shape]:
        """The shapes of the results."""

    def run(
        self, arguments: Sequence[DeviceArray], results: Sequence[DeviceArray], on_check: OnCheck
    ) -> None:
        """Asks for the results."""


class DeviceCall:
    """``f(*inputs, out=None)``: takes arrays of the host or the device, gives arrays of the device.

    Args:
        executable: what computes.
        cells: one-element lists; their values move to the device in the first call, and stay there.
        on_check: called when a check fails; raises.
        signature: the form of calls; the manifest's, or one of the same arguments and results.

    Attributes:
        where: gives what is known of a node of the graph, for errors of the driver; None where nothing does.
    """

    def __init__(
        self, executable: Runs, cells: Sequence[Cell], on_check: OnCheck, signature: Signature
    ) -> None:
        self._executable, self._cells, self._on_check = executable, cells, on_check
        self._signature, self._plans = signature, executable.plans
        self._read = cells[: max(executable.plans.reads - len(signature.inputs), 0)]
        self._stored = [cells[update.cell] for update in signature.updates]
        self.where: Callable[[str], Origin] | None = None
        self.__name__ = signature.name

    def __call__(self, *args: object, out: object = None) -> object:
        """Calls the function.

        Args:
            args: one value for each input.
            out: an array, or one for each output, of the host or the device, for the results; None among
                them stands for a new one.

        Raises:
            TypeError, ValueError: a value is of another type or shape.
            DriverError: the device refuses.
        """
        signature = self._signature
        try:
            outs = [out] if signature.returns == "single" else out
            ready = None
            if out is None:
                ready = self.ready(args)
            elif isinstance(outs, tuple | list) and len(outs) == len(signature.outputs):
                ready = self.ready(args, outs)
            if ready is None:
                return self._call(args, out)
        except DriverError as error:
            raise self._placed(error) from None
        if signature.returns == "single":
            return ready[0]
        return ready if signature.returns == "list" else None

    def _placed(self, error: DriverError) -> DriverError:
        """The error with what is known of the step, if it is one of a step."""
        return error if error.step is None else error.at(error.step, self.where)

    def ready(self, args: Sequence[object], outs: Sequence[object] = ()) -> list[DeviceArray] | None:
        """The outputs of a call that has a plan; None if it has to go the general way.

        Args:
            args: values by position. They need no check if they are arrays, of the host or the device (also
                those of other libraries), in forms that a call has had before.
            outs: arrays for the outputs, None for new ones; empty where all are new.

        Raises:
            DriverError: the device refuses a step.
        """
        read = snapshot(self._read) if self._read else ()
        arrays: list[Any] = [*args, *read]
        own: list[int] = []
        try:
            found = self._plans.ready(tuple([value.layout for value in arrays]))
        except (AttributeError, TypeError):  # not all are arrays of the device
            found = None
        if found is None:
            layouts = self._layouts(arrays, len(args), own)
            found = None if layouts is None else self._plans.ready(layouts)
            if found is None:
                return None
        try:
            for number in own:
                driver = self._executable.driver
                arrays[number] = upload(driver, arrays[number], driver.main_stream)
            places = found.places(outs, arrays) if outs else ()
            results = None if places is None else found.call(arrays, own, places)
        except DriverError as error:
            if isinstance(error, DeviceMemoryError) and error.step is None:
                return None  # nothing has been computed; the general way says for what there is no memory
            raise self._placed(error) from None
        if results is None or not self._stored:
            return results
        outputs, new = results[: -len(self._stored)], results[-len(self._stored) :]
        return outputs if commit(self._stored, new, self._read, read) else None

    def _layouts(self, arrays: list[Any], given: int, own: list[int]) -> tuple[Layout, ...] | None:
        """The forms of arrays, of which those of other libraries become ours; None if one is something else.

        Args:
            arrays: arguments, then values of cells.
            given: how many arguments.
            own: gains the numbers of those that are on the host.
        """
        found: list[Layout] = []
        for number, value in enumerate(arrays):
            if type(value) is np.ndarray and number < given:
                found.append(layout(value.dtype, value.shape, None, 0))
                own.append(number)
                continue
            there = _on_device(self._executable.driver, value)
            if there is None:
                return None
            found.append(there.layout)
            arrays[number] = there
        return tuple(found)

    def _call(self, args: Sequence[object], out: object) -> object:
        signature, driver = self._signature, self._executable.driver
        if len(args) != len(signature.inputs):
            names = ", ".join(spec.name or f"input {i}" for i, spec in enumerate(signature.inputs)) or "none"
            count = len(signature.inputs)
            raise TypeError(f"{self.__name__}() takes {count} arguments ({names}), given {len(args)}")
        outs = self._outs(out)
        for last in attempts():
            # Anew in each attempt, as one may compute its results in the memory of its copies.
            inputs = [
                as_device(driver, value, spec, f"input {i} ({spec.name})" if spec.name else f"input {i}")
                for i, (value, spec) in enumerate(zip(args, signature.inputs, strict=True))
            ]
            # Memory of other libraries has an owner.
            own = [a is not value and a.memory.owner is None for a, value in zip(inputs, args, strict=True)]
            results = self._attempt(inputs, own, outs, last)
            if results is not None:
                break
        assert results is not None
        outputs = [
            result if target is None else target.store(result)
            for result, target in zip(results, outs, strict=True)
        ]
        if signature.returns == "single":
            return outputs[0]
        return outputs if signature.returns == "list" else None

    def _attempt(
        self, inputs: Sequence[DeviceArray], own: Sequence[bool], outs: Sequence[Target | None], last: bool
    ) -> list[DeviceArray] | None:
        """The results; None if another thread has replaced the value of a cell meanwhile."""
        signature = self._signature
        if self._cells:
            self._executable.hold(self._cells)
        read: list[DeviceArray] = snapshot(self._cells)
        arguments = [*inputs, *read]
        shapes = self._executable.result_shapes(arguments, self._on_check)
        results = self._results(arguments, shapes, own, outs)
        self._executable.run(arguments, results, self._on_check)
        outputs, new = results[: len(signature.outputs)], results[len(signature.outputs) :]
        if new:
            targets = [self._cells[update.cell] for update in signature.updates]
            if not commit(targets, new, self._cells, read):
                if not last:
                    return None
                commit(targets, new, (), ())
        return outputs

    def _results(
        self,
        arguments: list[DeviceArray],
        shapes: Sequence[Shape],
        own: Sequence[bool],
        outs: Sequence[Target | None],
    ) -> list[DeviceArray]:
        """New arrays, those of the caller, or those of arguments that results are computed in.

        Values of cells are copied: whoever has asked for one may still have it.
        """
        for target, shape in zip(outs, shapes, strict=False):
            if target is not None:
                target.check(shape)
        driver, lent = self._executable.driver, {}
        for argument, result in self._signature.donated:
            if argument >= len(own) or not own[argument]:
                arguments[argument] = _copied(driver, arguments[argument])
            lent[result] = arguments[argument]
            lent[result].known = None
        found = []
        for i, (spec, shape) in enumerate(zip(self._signature.results, shapes, strict=True)):
            target = outs[i] if i < len(outs) and i not in lent else None
            place = target.place(arguments) if target is not None else lent.get(i)
            found.append(self._new(i, spec, shape) if place is None else place)
        return found

    def _new(self, i: int, spec: ArraySpec, shape: Shape) -> DeviceArray:
        try:
            return empty(self._executable.driver, spec.dtype, shape)
        except DeviceMemoryError as error:
            name = f"result {i}" + (f" {spec.name!r}" if spec.name else "")
            raise error.because(f"for {name}, of shape {shape} and dtype {spec.dtype}") from None

    def _outs(self, out: object) -> list[Target | None]:
        specs = self._signature.outputs
        if out is None:
            return [None] * len(specs)
        given = [out] if self._signature.returns == "single" else out
        if not isinstance(given, tuple | list) or len(given) != len(specs):
            raise TypeError(f"{self.__name__}(out=): expected an array for each of {len(specs)} outputs")
        return targets(self._executable.driver, given, specs, self.__name__)


def empty(driver: Driver, dtype: str, shape: Shape) -> DeviceArray:
    """A new array; its content is undefined."""
    memory = Memory(driver, math.prod(shape) * DESCRIPTORS[dtype].itemsize, driver.main_stream)
    return DeviceArray(memory, DESCRIPTORS[dtype], shape)


def as_device(driver: Driver, value: object, spec: ArraySpec, name: str) -> DeviceArray:
    """A value as kernels take it: an array of the device as it is, all else as a copy there.

    Args:
        driver: of the device.
        value: a `DeviceArray`, an array of another library on the device, or what NumPy makes an array of.
        spec: what is wanted.
        name: how errors call it.

    Raises:
        TypeError: dtype or number of axes cannot be used.
        ValueError: a static size differs.
    """
    found = _on_device(driver, value)
    if found is None:
        given = canonical(value, spec, name)
        try:
            made = upload(driver, given, driver.main_stream)
        except DeviceMemoryError as error:
            raise error.because(f"for {name}, of shape {given.shape} and dtype {given.dtype}") from None
        if not given.shape:
            made.known = given.copy()
        return made
    if found.memory.driver is not driver:
        raise TypeError(f"{name}: an array of {found.device}, expected one of cuda:{driver.ordinal}")
    if found.dtype != spec.dtype or found.ndim != spec.rank:
        raise TypeError(
            f"{name}: expected dtype {spec.dtype} and {spec.rank} axes, given {found.dtype} of shape "
            f"{found.shape}; arrays of the device are not converted"
        )
    if not fits(found.shape, spec):
        shape = ", ".join("?" if size is None else str(size) for size in spec.shape)
        raise ValueError(f"{name}: expected shape ({shape}), given {found.shape}")
    if not found.is_contiguous:
        raise TypeError(f"{name}: an array of the device that is not contiguous, strides {found.strides}")
    return found.at_start()


def _on_device(driver: Driver, value: object) -> DeviceArray | None:
    if isinstance(value, DeviceArray):
        return value
    if isinstance(value, np.ndarray | np.generic | int | float | list | tuple):
        return None
    if has_interface(value):
        return from_interface(driver, value, driver.main_stream)
    if has_dlpack(value) and value.__dlpack_device__()[0] in (CUDA, MANAGED):
        return from_dlpack(driver, value, driver.main_stream)
    return None


def _copied(driver: Driver, array: DeviceArray) -> DeviceArray:
    made = empty(driver, array.dtype.name, array.shape)
    driver.copy(made.address, array.address, array.nbytes, driver.main_stream)
    return made
