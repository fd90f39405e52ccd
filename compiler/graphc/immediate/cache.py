# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""``ExecutableCache``: the executables of an environment, bounded in number."""

from __future__ import annotations

import threading
from collections import OrderedDict
from typing import NamedTuple

from graphc.immediate.executable import Executable
from graphc_runtime.worker import renew_in_children


class CacheInfo(NamedTuple):
    """Statistics of a cache.

    Attributes:
        hits: calls that found their executable.
        misses: calls that did not, so that one was made.
        evictions: executables thrown away to make room.
        size: executables that are kept.
        maxsize: the most that are.
    """

    hits: int
    misses: int
    evictions: int
    size: int
    maxsize: int


class ExecutableCache:
    """Executables by key.

    Which one goes when there are too many: one that was not used for long. Calls that go from an operator
    straight to its executable do not come by here, they are counted only. So the oldest entry whose count is
    still the same as when it was last looked at goes, and others get a second chance (the clock algorithm).

    Args:
        maxsize: the most executables to keep, at least 1.
    """

    def __init__(self, maxsize: int) -> None:
        self.lock = threading.RLock()
        renew_in_children(self)
        self._entries: OrderedDict[object, Executable] = OrderedDict()
        self.resize(maxsize)
        self._past_hits = self._misses = self._evictions = 0

    def resize(self, maxsize: int) -> None:
        """Keep another number of executables from now on.

        Raises:
            ValueError: it is no integer of at least 1.
        """
        if not isinstance(maxsize, int) or maxsize < 1:
            raise ValueError(f"cache_size must be an integer of at least 1, got {maxsize!r}")
        with self.lock:
            self.maxsize = maxsize
            while len(self._entries) > maxsize:
                self._evict(next(reversed(self._entries)))

    def find(self, key: object) -> Executable | None:
        """The executable of a key, which counts as a use."""
        with self.lock:
            found = self._entries.get(key)
            if found is None:
                self._misses += 1
            else:
                found.hits += 1
                found.seen = found.hits
                self._entries.move_to_end(key)
            return found

    def add(self, key: object, executable: Executable) -> Executable:
        """Keep an executable; returns the one that is kept, if another thread was faster."""
        with self.lock:
            kept = self._entries.setdefault(key, executable)
            while len(self._entries) > self.maxsize:
                self._evict(key)
            return kept

    def _evict(self, newest: object) -> None:
        while True:
            key = next(iter(self._entries))
            entry = self._entries[key]
            if key == newest or (entry.hits != entry.seen and len(self._entries) > 1):
                entry.seen = entry.hits
                self._entries.move_to_end(key)
                continue
            del self._entries[key]
            entry.forget()
            self._past_hits += entry.hits
            self._evictions += 1
            return

    def clear(self) -> None:
        """Throw all executables away, and start the statistics anew."""
        with self.lock:
            for entry in self._entries.values():
                entry.forget()
            self._entries.clear()
            self._past_hits = self._misses = self._evictions = 0

    def disconnect(self) -> None:
        """Let every call come by the environment, instead of going straight to its executable."""
        with self.lock:
            for entry in self._entries.values():
                entry.forget()

    def info(self) -> CacheInfo:
        """The statistics."""
        with self.lock:
            hits = self._past_hits + sum(entry.hits for entry in self._entries.values())
            return CacheInfo(hits, self._misses, self._evictions, len(self._entries), self.maxsize)
