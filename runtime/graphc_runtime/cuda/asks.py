# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Recorded driver calls with symbolic addresses."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import TypeAlias

from graphc_runtime.cuda.driver import Driver, DriverError, KernelLaunch
from graphc_runtime.cuda.libraries import Asked
from graphc_runtime.cuda.schedule import Step
from graphc_runtime.record import record

# Asks for everything, given the addresses in the order of their places.
Prepared: TypeAlias = Callable[[Sequence[int]], None]


@record(frozen=True)
class Place:
    """Place of an address in the table."""

    number: int


@record(frozen=True, eq=False)
class AskLaunch:
    """A kernel; `values` are its arguments, addresses among them as places."""

    step: Step
    launch: KernelLaunch
    values: tuple[int | float | Place, ...]

    def ask(self, driver: Driver, addresses: Sequence[int], stream: int) -> None:
        """Asks for it."""
        values = [addresses[value.number] if isinstance(value, Place) else value for value in self.values]
        driver.launch(self.launch, values, stream)

    def mapped(self, change: Callable[[int], Place]) -> AskLaunch:
        """The same with other places; a function gives them for the numbers of these."""
        values = [change(value.number) if isinstance(value, Place) else value for value in self.values]
        return replace(self, values=tuple(values))


@record(frozen=True, eq=False)
class AskCopy:
    """A copy within the device."""

    step: Step
    target: Place
    source: Place
    nbytes: int

    def ask(self, driver: Driver, addresses: Sequence[int], stream: int) -> None:
        """Asks for it."""
        driver.copy(addresses[self.target.number], addresses[self.source.number], self.nbytes, stream)

    def mapped(self, change: Callable[[int], Place]) -> AskCopy:
        """As `AskLaunch.mapped`."""
        return replace(self, target=change(self.target.number), source=change(self.source.number))


@record(frozen=True, eq=False)
class AskLibrary:
    """A request to a library, on arrays."""

    step: Step
    asked: Asked
    arrays: tuple[Place, ...]

    def ask(self, driver: Driver, addresses: Sequence[int], stream: int) -> None:
        """Asks for it."""
        driver.ask(self.asked, [addresses[place.number] for place in self.arrays], stream)

    def mapped(self, change: Callable[[int], Place]) -> AskLibrary:
        """As `AskLaunch.mapped`."""
        return replace(self, arrays=tuple(change(place.number) for place in self.arrays))


Ask: TypeAlias = AskLaunch | AskCopy | AskLibrary


def ask_all(driver: Driver, asks: Sequence[Ask], addresses: Sequence[int], stream: int) -> None:
    """Asks for everything, one after the other, as `Driver.prepare` does it without preparation.

    Raises:
        DriverError: the driver refuses; it has the step.
    """
    for ask in asks:
        try:
            ask.ask(driver, addresses, stream)
        except DriverError as error:
            raise error.at(ask.step) from None
