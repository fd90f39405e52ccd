# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""A content-addressed cache on disk, shared by processes without locks.

An entry is written to a temporary file and renamed, so a reader sees all of it or nothing. Each file carries
the SHA-256 of its key and content; one that does not match, or is larger than entries get, is removed and
counts as a miss.

Entries are machine code, and a hash is no signature: whoever can write into the folder can run code in this
process. So folder and entries have to belong to this user (or to root), others must not be able to write to
the folder, and an entry has to be an ordinary file.
"""

from __future__ import annotations

import errno
import hashlib
import os
import re
import stat
import time
import warnings
from dataclasses import field
from functools import cache
from pathlib import Path

from graphc_runtime.record import record

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


@record()
class CacheStatistics:
    """Counts since the cache object was made."""

    hits: int = 0
    misses: int = 0
    stores: int = 0
    evictions: int = 0
    corrupt: int = 0


@record()
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
    _safe: bool | None = None  # None before the first look at the folder

    def get(self, key: str) -> bytes | None:
        """The entry of a key, or None."""
        path = self._path(key)
        if path is None or not self._is_safe():
            return None
        try:
            data = _read(path, max(self.max_bytes, DEFAULT_SIZE_MB << 20))
        except FileNotFoundError:
            self.statistics.misses += 1
            return None
        except OSError as error:
            self._unusable(str(error))
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
            os.makedirs(self.directory, mode=0o700, exist_ok=True)
            if not self._is_safe():
                return
            path.parent.mkdir(mode=0o700, exist_ok=True)
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
            self._unusable(str(error))
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

    def _is_safe(self) -> bool:
        """True if nobody else can put code into the folder, or there is none yet; warns if not."""
        if self._safe is None:
            try:
                danger = _danger(os.stat(self.directory))
            except FileNotFoundError:
                return True
            except OSError as error:
                danger = str(error)
            self._safe = danger is None
            if danger is not None:
                self._unusable(danger)
        return self._safe

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
        """Time of last use, size and path of each entry. Removes temporary files that a crash left."""
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

    def _unusable(self, reason: str) -> None:
        if not self._warned:
            self._warned = True
            warnings.warn(
                f"the compilation cache {self.directory!r} cannot be used ({reason}); going on without it. "
                "Set GRAPHC_CACHE_DIR to a folder of your own, or to nothing to switch the cache off",
                RuntimeWarning,
                stacklevel=3,
            )


def _danger(status: os.stat_result) -> str | None:
    """Reason for which the code in a folder cannot be trusted, or None."""
    if not hasattr(os, "geteuid"):
        return None
    user, mode = os.geteuid(), stat.filemode(status.st_mode)
    if status.st_uid not in (user, 0):
        return f"it belongs to user {status.st_uid}, who could run code in processes of user {user}"
    # A group with the number of the user has no other members, by the convention of user-private groups.
    private = status.st_gid == status.st_uid
    if status.st_mode & (stat.S_IWOTH if private else stat.S_IWOTH | stat.S_IWGRP):
        return (
            f"others may write to it ({mode}) and could run code in this process; 'chmod go-w' changes that"
        )
    return None


def _read(path: Path, limit: int) -> bytes:
    """Contents of an entry; nothing where it is not a file of this user's, or has more bytes than any entry.

    Raises:
        OSError: it cannot be opened.
    """
    # Opening a FIFO would wait for a writer.
    flags = os.O_RDONLY | getattr(os, "O_NONBLOCK", 0) | getattr(os, "O_NOFOLLOW", 0)
    try:
        handle = os.open(path, flags)
    except OSError as error:
        if error.errno in (errno.ELOOP, errno.ENXIO):  # a symbolic link, a socket
            return b""
        raise
    try:
        status = os.fstat(handle)
        own = not hasattr(os, "geteuid") or status.st_uid in (os.geteuid(), 0)
        if not (own and stat.S_ISREG(status.st_mode)) or status.st_size > limit:
            return b""
        with open(handle, "rb", closefd=False) as file:
            return file.read(status.st_size)
    finally:
        os.close(handle)


def _digest(key: str, data: bytes) -> bytes:
    return hashlib.sha256(key.encode() + b"\0" + data).digest()


def _remove(path: str | Path) -> None:
    try:
        os.rmdir(path) if os.path.isdir(path) and not os.path.islink(path) else os.unlink(path)
    except OSError:
        return  # another process was faster, or the folder is read-only


@cache
def disk_cache(directory: str, size_mb: int) -> DiskCache:
    """The cache in a folder; one object per process and setting, so that its statistics add up."""
    return DiskCache(directory, size_mb << 20)
