# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Small blocks of memory that were given back, for the next one who asks.

The driver's pool would do the same, for a call of the driver to get one and a call to give it back, which for
small results take longer than all else that a call does on the host.
"""

from __future__ import annotations

from contextlib import suppress

# Blocks have 256 bytes, or twice as many and so on, up to 1 MiB.
_LEAST_BITS, _KINDS = 8, 13
_LARGEST = 1 << (_LEAST_BITS + _KINDS - 1)
# Of each size at most so many are kept, so 64 MiB in all.
_KEPT = 32


class Blocks:
    """Blocks of one stream, in whose order they are used, given back and used again.

    Any number of threads may use it: each step that matters is one of a list or of a dict.
    """

    def __init__(self) -> None:
        self._kept: list[list[int]] = [[] for _ in range(_KINDS)]
        # Where blocks that are in use go.
        self._home: dict[int, list[int]] = {}

    def take(self, nbytes: int) -> int | None:
        """A block that was given back."""
        if nbytes > _LARGEST:
            return None
        kept = self._kept[_kind(nbytes)]
        if not kept:
            return None
        try:
            address = kept.pop()
        except IndexError:  # another thread was faster
            return None
        self._home[address] = kept
        return address

    def size(self, nbytes: int) -> int:
        """Number of bytes to ask the driver for."""
        return nbytes if nbytes > _LARGEST else 1 << (_LEAST_BITS + _kind(nbytes))

    def add(self, address: int, nbytes: int) -> None:
        """A block from the driver is in use."""
        if nbytes <= _LARGEST:
            self._home[address] = self._kept[_kind(nbytes)]

    def give_back(self, address: int) -> bool:
        """True if a block is kept; the driver gets it back otherwise."""
        kept = self._home.pop(address, None)
        if kept is None or len(kept) >= _KEPT:
            return False
        kept.append(address)
        return True

    def clear(self) -> list[int]:
        """All that are kept, for the driver to get back."""
        found: list[int] = []
        for kept in self._kept:
            with suppress(IndexError):  # one at a time: other threads take some meanwhile
                while True:
                    found.append(kept.pop())
        return found


def _kind(nbytes: int) -> int:
    """Sizes of which one is enough; nothing needs some memory, too."""
    return ((nbytes or 1) - 1 >> _LEAST_BITS).bit_length()
