# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""A compiled function as bytes: magic, SHA-256 of the rest, length of the manifest, manifest, object code."""

from __future__ import annotations

import hashlib
import struct

from graphc_runtime.errors import ArtifactError
from graphc_runtime.manifest import Manifest
from graphc_runtime.record import record

MAGIC = b"graphc\x00\x01"  # the last byte is the version of this layout
_HEADER = struct.Struct("<8s32sI")


@record(frozen=True)
class Artifact:
    """Manifest and ELF object of a compiled function."""

    manifest: Manifest
    code: bytes

    def to_bytes(self) -> bytes:
        """Serialises the artifact."""
        manifest = self.manifest.to_json().encode()
        digest = _digest(len(manifest), manifest + self.code)
        return _HEADER.pack(MAGIC, digest, len(manifest)) + manifest + self.code

    @classmethod
    def from_bytes(cls, data: bytes) -> Artifact:
        """Reads what `to_bytes` wrote.

        The hash guards against damage, not against a forger: it is no signature.

        Raises:
            ArtifactError: not an artifact, of another version, or changed since it was written.
        """
        if len(data) < _HEADER.size or data[:6] != MAGIC[:6]:
            raise ArtifactError(
                f"not a graphc artifact: {len(data)} bytes that begin with {bytes(data[:8])!r}"
            )
        magic, digest, length = _HEADER.unpack_from(data)
        if magic != MAGIC:
            raise ArtifactError(f"the artifact has version {magic[7]}, expected {MAGIC[7]}; compile it again")
        body = bytes(data[_HEADER.size :])
        if _digest(length, body) != digest:
            raise ArtifactError("the artifact is damaged: its SHA-256 does not match; compile it again")
        if length > len(body):
            raise ArtifactError("the artifact is damaged: its manifest is cut off")
        return cls(Manifest.from_json(body[:length].decode()), body[length:])


def _digest(length: int, body: bytes) -> bytes:
    return hashlib.sha256(struct.pack("<I", length) + body).digest()
