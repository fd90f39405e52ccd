# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Interfaces by which libraries say where their arrays on a device are.

Apart from arrays of our own: what asks whether a value is one needs no driver.
"""

from __future__ import annotations

from typing import NotRequired, Protocol, TypedDict, TypeGuard

# Kinds of devices in DLPack.
CUDA, MANAGED = 2, 13


class Interface(TypedDict):
    """`__cuda_array_interface__`, version 3; strides are in bytes."""

    shape: tuple[int, ...]
    typestr: str
    data: tuple[int, bool]
    version: int
    strides: NotRequired[tuple[int, ...] | None]
    stream: NotRequired[int | None]


class HasInterface(Protocol):
    """An array of another library on the device."""

    @property
    def __cuda_array_interface__(self) -> Interface:
        """Place of the array."""


class HasDlpack(Protocol):
    """An array of another library."""

    def __dlpack__(self, *, stream: int | None = None) -> object:
        """A capsule."""

    def __dlpack_device__(self) -> tuple[int, int]:
        """Kind and number of its device."""


def has_interface(value: object) -> TypeGuard[HasInterface]:
    """True if a value is an array of a device; asking a `Protocol` takes ten times as long."""
    return hasattr(value, "__cuda_array_interface__")


def has_dlpack(value: object) -> TypeGuard[HasDlpack]:
    """True if a value is an array that DLPack passes on."""
    return hasattr(value, "__dlpack__") and hasattr(value, "__dlpack_device__")
