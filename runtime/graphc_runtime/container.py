# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""The file format `.gcx`: a header, a JSON manifest, and blobs that the manifest lists by place and SHA-256.

    0   8  magic                       24   4  bytes of the signature after the blobs, 0 or 96
    8   4  version of the format       28   4  0
    12  4  bytes of the manifest       32  32  SHA-256 of the manifest
    16  8  bytes of the file           64      the manifest; then blobs, each at a multiple of 64

All numbers are little-endian. The header holds the hash of the manifest and the manifest that of each blob,
so that a signature of both covers the file. What is read is checked before anything is made of it: nothing
here runs code, imports a module or opens another file.
"""

from __future__ import annotations

import hashlib
import json
import mmap
import os
import struct
import tempfile
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from graphc_runtime.errors import ArtifactError
from graphc_runtime.record import record

MAGIC = b"\x93gcx\r\n\x1a\n"  # as that of PNG: a transfer as text damages it visibly
VERSION = 1
ALIGN = 64
MAX_MANIFEST = 64 << 20
MAX_FILE = 1 << 40
_MAX_DEPTH = 60
_HEADER = struct.Struct("<8sIIQII32s")

Json = dict[str, Any]


@record(frozen=True)
class Blob:
    """A piece of the file."""

    offset: int
    size: int
    sha256: str


class Writer:
    """Collects blobs; equal ones are kept once."""

    def __init__(self) -> None:
        self._blobs: list[bytes] = []
        self._known: dict[str, int] = {}

    def add(self, data: bytes) -> int:
        """The number of a blob with this content."""
        digest = hashlib.sha256(data).hexdigest()
        if digest not in self._known:
            self._known[digest] = len(self._blobs)
            self._blobs.append(data)
        return self._known[digest]

    def to_bytes(self, manifest: Json, sign: Any = None) -> bytes:
        """The file.

        Args:
            manifest: everything but its key ``"blobs"``.
            sign: takes bytes and gives 96 bytes, public key and signature.
        """
        sizes = [len(blob) for blob in self._blobs]
        # Offsets are part of the manifest, whose length they change: they count from the first blob.
        starts = [0]
        for size in sizes:
            starts.append(_aligned(starts[-1] + size))
        places = zip(starts, sizes, self._known, strict=False)
        blobs = [{"offset": start, "size": size, "sha256": digest} for start, size, digest in places]
        text = json.dumps({**manifest, "blobs": blobs}, separators=(",", ":"))
        body = text.encode()
        first = _aligned(_HEADER.size + len(body))
        trailer = 0 if sign is None else 96
        total = first + starts[-1] + trailer
        header = _HEADER.pack(MAGIC, VERSION, len(body), total, trailer, 0, hashlib.sha256(body).digest())
        parts = [header, body, bytes(first - _HEADER.size - len(body))]
        for blob in self._blobs:
            parts += [blob, bytes(_aligned(len(blob)) - len(blob))]
        if sign is not None:
            parts.append(sign(header + body))
        return b"".join(parts)


def write_file(path: str | os.PathLike[str], data: bytes) -> None:
    """Writes a file at once or not at all."""
    target = Path(path)
    if not target.parent.is_dir():
        raise FileNotFoundError(f"cannot write {str(target)!r}: there is no folder {str(target.parent)!r}")
    descriptor, temporary = tempfile.mkstemp(dir=target.parent, prefix=f".{target.name}.")
    try:
        with os.fdopen(descriptor, "wb") as file:
            file.write(data)
        os.chmod(temporary, 0o644)
        os.replace(temporary, target)
    except BaseException:
        os.unlink(temporary)
        raise


class Container:
    """A file that was read, or mapped into memory.

    Args:
        data: the whole file.
        name: how errors call it.

    Attributes:
        manifest: the JSON object.
        signature: 96 bytes, public key and signature; empty if the file is not signed.
        signed: what the signature is of.

    Raises:
        ArtifactError: not such a file, of another version, or damaged.
    """

    def __init__(self, data: bytes | mmap.mmap | memoryview, name: str = "the artifact") -> None:
        self._name = name
        self._view = memoryview(data)
        if len(self._view) < _HEADER.size or bytes(self._view[: len(MAGIC)]) != MAGIC:
            raise self._error(
                f"not a .gcx file: {len(self._view)} bytes that begin with {bytes(self._view[:8])!r}"
            )
        _, version, length, total, trailer, zero, digest = _HEADER.unpack(self._view[: _HEADER.size])
        if version != VERSION:
            raise self._error(f"its format has version {version}, this runtime reads {VERSION}")
        if total != len(self._view) or total > MAX_FILE:
            raise self._error(
                f"it has {len(self._view)} bytes, its header says {total}: truncated or damaged"
            )
        if zero or trailer not in (0, 96) or length > MAX_MANIFEST or _HEADER.size + length + trailer > total:
            raise self._error("its header is damaged")
        self._end = total - trailer
        body = self._view[_HEADER.size : _HEADER.size + length]
        if hashlib.sha256(body).digest() != digest:
            raise self._error("the SHA-256 of its manifest does not match: damaged")
        self.manifest = self._parse(bytes(body))
        self.signature = bytes(self._view[self._end :])
        self.signed = bytes(self._view[: _HEADER.size + length])
        self._blobs = self._places(_aligned(_HEADER.size + length))
        self._checked: set[int] = set()

    @classmethod
    def open(cls, path: str | os.PathLike[str]) -> Container:
        """Maps a file into memory.

        Raises:
            OSError: it cannot be opened.
            ArtifactError: as above.
        """
        with open(path, "rb") as file:
            size = os.fstat(file.fileno()).st_size
            if size < _HEADER.size:
                return cls(file.read(_HEADER.size), str(path))
            return cls(mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ), str(path))

    def __len__(self) -> int:
        return len(self._blobs)

    @property
    def whole(self) -> memoryview:
        """The content of the file."""
        return self._view

    def blob(self, number: int, *, check: bool = True) -> memoryview:
        """The content of a blob.

        Args:
            number: of the blob.
            check: compare its SHA-256, once.

        Raises:
            ArtifactError: there is no such blob, or it is damaged.
        """
        if type(number) is not int or not 0 <= number < len(self._blobs):
            raise self._error(f"it refers to blob {number!r:.50}, of {len(self._blobs)}")
        place = self._blobs[number]
        content = self._view[place.offset : place.offset + place.size]
        if check and number not in self._checked:
            if hashlib.sha256(content).hexdigest() != place.sha256:
                raise self._error(f"the SHA-256 of blob {number} does not match: damaged")
            self._checked.add(number)
        return content

    def _parse(self, body: bytes) -> Json:
        try:
            manifest = json.loads(body, parse_constant=_refuse)
            _require_shallow(manifest)
        except (ValueError, RecursionError) as error:
            raise self._error(f"its manifest is not JSON: {error}") from None
        if not isinstance(manifest, dict):
            raise self._error("its manifest is not a JSON object")
        return manifest

    def _places(self, first: int) -> list[Blob]:
        """The blobs, which lie in order, do not overlap and end within the file."""
        self._require_padding(len(self.signed), first)
        listed = self.manifest.get("blobs")
        if not isinstance(listed, list):
            raise self._error("its manifest lists no blobs")
        found, end = [], first
        for number, item in enumerate(listed):
            place = _blob(item, first)
            if place is None or place.offset != end or place.offset + place.size > self._end:
                raise self._error(f"blob {number} is not where it can be: damaged, or not written by graphc")
            found.append(place)
            end = _aligned(place.offset + place.size)
            self._require_padding(place.offset + place.size, end)
        if end != self._end:
            raise self._error(f"its blobs end at {end}, not at {self._end}: damaged")
        return found

    def _require_padding(self, start: int, end: int) -> None:
        if end > self._end or any(self._view[start:end]):
            raise self._error(f"there is something between its parts, at {start}: damaged")

    def _error(self, message: str) -> ArtifactError:
        return ArtifactError(f"{self._name}: {message}")


def _blob(item: object, first: int) -> Blob | None:
    if not isinstance(item, Mapping):
        return None
    offset, size, digest = (item.get(key) for key in ("offset", "size", "sha256"))
    if type(offset) is not int or type(size) is not int or not isinstance(digest, str):
        return None
    if not 0 <= offset <= MAX_FILE or not 0 <= size <= MAX_FILE or offset % ALIGN:
        return None
    return Blob(first + offset, size, digest)


def _aligned(size: int) -> int:
    return -(-size // ALIGN) * ALIGN


def _refuse(text: str) -> Any:
    raise ValueError(f"{text} is not a number")


def _require_shallow(value: Any) -> None:
    """Refuses what is nested so deeply that a walk over it could end the process."""
    level: Sequence[Any] = [value]
    for _ in range(_MAX_DEPTH):
        level = [
            item
            for parent in level
            for item in (parent.values() if isinstance(parent, dict) else parent)
            if isinstance(item, dict | list)
        ]
        if not level:
            return
    raise ValueError("it is nested too deeply")
