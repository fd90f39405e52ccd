# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Ed25519 signatures of artifacts, through the package `cryptography` (`graphc-runtime[signing]`)."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from graphc_runtime.errors import ArtifactError

_KEY_SIZE = 32


def _ed25519() -> Any:
    try:
        from cryptography.hazmat.primitives.asymmetric import ed25519
    except ImportError:
        raise ImportError(
            "signatures need the package cryptography: pip install 'graphc-runtime[signing]'"
        ) from None
    return ed25519


def generate_key() -> tuple[bytes, bytes]:
    """A new pair of keys: private and public, 32 bytes each."""
    private = _ed25519().Ed25519PrivateKey.generate()
    return private.private_bytes_raw(), private.public_key().public_bytes_raw()


def signer(private_key: bytes) -> Callable[[bytes], bytes]:
    """A function that gives public key and signature of its argument, 96 bytes.

    Raises:
        ValueError: the key has not 32 bytes.
    """
    if not isinstance(private_key, bytes) or len(private_key) != _KEY_SIZE:
        raise ValueError("an Ed25519 private key is 32 bytes, as graphc_runtime.signing.generate_key gives")
    key = _ed25519().Ed25519PrivateKey.from_private_bytes(private_key)
    public: bytes = key.public_key().public_bytes_raw()

    def sign(message: bytes) -> bytes:
        signature: bytes = key.sign(message)
        return public + signature

    return sign


def require(signature: bytes, message: bytes, trusted_keys: Sequence[bytes], name: str) -> None:
    """Checks that one of these keys signed.

    Args:
        signature: public key and signature; empty where there is none.
        message: what was signed.
        trusted_keys: public keys, 32 bytes each.
        name: how errors call the artifact.

    Raises:
        ArtifactError: not signed, by another key, or not what was signed.
    """
    if not signature:
        raise ArtifactError(f"{name}: it is not signed, and trusted_keys asks for a signature")
    public = signature[:_KEY_SIZE]
    if public not in [bytes(key) for key in trusted_keys]:
        raise ArtifactError(
            f"{name}: it is signed by the key {public.hex()}, which is not among trusted_keys"
        )
    from cryptography.exceptions import InvalidSignature

    try:
        _ed25519().Ed25519PublicKey.from_public_bytes(public).verify(signature[_KEY_SIZE:], message)
    except InvalidSignature:
        raise ArtifactError(f"{name}: its signature does not match its content") from None
