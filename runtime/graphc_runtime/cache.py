# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""A content-addressed cache on disk, shared by processes without locks.

An entry is written to a temporary file and renamed, so a reader sees all of it or nothing. Each file carries
the SHA-256 of its key and content; one that does not match is removed and counts as a miss.
"""

from __future__ import annotations

import hashlib
import os
import re
import time
import warnings
from dataclasses import dataclass, field
from pathlib import Path

MAGIC = b"graphcC\x01"
_HEADER = len(MAGIC) + 32
_STALE_SECONDS = 3600
DEFAULT_SIZE_MB = 512


def default_directory() -> str:
    """GRAPHC_CACHE_DIR if set (empty: no cache), else `graphc` in the XDG cache folder."""
    configured = os.environ.get("GRAPHC_CACHE_DIR")
    if configured is not None:
        return configured
    base = os.environ.get("XDG_CACHE_HOME") or os.path.join(Path.home(), ".cache")
    return os.path.join(base, "graphc")


@dataclass
class CacheStatistics:
    """Counts since the cache object was made."""

    hits: int = 0
    misses: int = 0
    stores: int = 0
    evictions: int = 0
    corrupt: int = 0


@dataclass
class DiskCache:
    """Maps hexadecimal keys to bytes.

    Attributes:
        directory: where entries live; empty switches the cache off.
        max_bytes: least recently used entries are removed above this size.
        statistics: counters.
    """

    directory: str = field(default_factory=default_directory)
    max_bytes: int = DEFAULT_SIZE_MB << 20
    statistics: CacheStatistics = field(default_factory=CacheStatistics)
    _size: int | None = None  # estimate; None before the first scan
    _warned: bool = False

    def get(self, key: str) -> bytes | None:
        """The entry of a key, or None."""
        path = self._path(key)
        if path is None:
            return None
        try:
            data = path.read_bytes()
        except FileNotFoundError:
            self.statistics.misses += 1
            return None
        except OSError as error:
            self._unusable(error)
            return None
        body = data[_HEADER:]
        if data[:_HEADER] != MAGIC + _digest(key, body):
            self.statistics.corrupt += 1
            self.statistics.misses += 1
            self.discard(key)
            return None
        self.statistics.hits += 1
        try:
            os.utime(path)
        except OSError:
            return body  # a read-only cache still serves
        return body

    def put(self, key: str, data: bytes) -> None:
        """Stores an entry; an entry larger than the whole cache is not kept."""
        path = self._path(key)
        if path is None or len(data) + _HEADER > self.max_bytes:
            return
        try:
            path.parent.mkdir(parents=True, exist_ok=True)
            import tempfile  # 4 ms that only a process that stores something needs

            handle, temporary = tempfile.mkstemp(prefix=".tmp-", dir=path.parent)
            try:
                with os.fdopen(handle, "wb") as file:
                    file.write(MAGIC + _digest(key, data) + data)
                os.replace(temporary, path)
            except BaseException:
                _remove(temporary)
                raise
        except OSError as error:
            self._unusable(error)
            return
        self.statistics.stores += 1
        self._shrink(len(data) + _HEADER)

    def discard(self, key: str) -> None:
        """Removes an entry if it is there."""
        path = self._path(key)
        if path is not None:
            _remove(path)

    def clear(self) -> None:
        """Removes all entries."""
        for _, _, path in self._entries():
            _remove(path)
        self._size = None

    def _path(self, key: str) -> Path | None:
        if not re.fullmatch(r"[0-9a-f]{8,128}", key):
            raise ValueError(f"cache key {key!r}; expected 8 to 128 hexadecimal digits")
        return Path(self.directory, key[:2], f"{key}.bin") if self.directory else None

    def _shrink(self, added: int) -> None:
        """Removes old entries above the bound; a quarter is freed, so that scans are rare."""
        if self._size is not None:
            self._size += added
            if self._size <= self.max_bytes:
                return
        entries = sorted(self._entries())
        total = sum(size for _, size, _ in entries)
        if total > self.max_bytes:
            for _, size, path in entries[:-1]:
                if total <= self.max_bytes * 3 // 4:
                    break
                _remove(path)
                self.statistics.evictions += 1
                total -= size
        self._size = total

    def _entries(self) -> list[tuple[float, int, str]]:
        """Time of last use, size and path of each entry. Removes temporary files that a crash left behind."""
        found = []
        try:
            folders = (
                [folder.path for folder in os.scandir(self.directory) if folder.is_dir()]
                if self.directory
                else []
            )
        except OSError:
            return []
        for folder in folders:
            try:
                with os.scandir(folder) as files:
                    for file in files:
                        status = file.stat()
                        if file.name.endswith(".bin"):
                            found.append((status.st_mtime, status.st_size, file.path))
                        elif file.name.startswith(".tmp-") and status.st_mtime < time.time() - _STALE_SECONDS:
                            _remove(file.path)
            except OSError:
                continue  # another process removed it meanwhile
        return found

    def _unusable(self, error: OSError) -> None:
        if not self._warned:
            self._warned = True
            warnings.warn(
                f"the compilation cache {self.directory!r} cannot be used ({error}); going on without it. "
                "Set GRAPHC_CACHE_DIR to a writable folder, or to nothing to switch the cache off",
                RuntimeWarning,
                stacklevel=3,
            )


def _digest(key: str, data: bytes) -> bytes:
    return hashlib.sha256(key.encode() + b"\0" + data).digest()


def _remove(path: str | Path) -> None:
    try:
        os.unlink(path)
    except OSError:
        return  # another process was faster, or the folder is read-only
