# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
from __future__ import annotations

import dataclasses
import random

import pytest

from graphc_runtime.artifact import MAGIC, Artifact
from graphc_runtime.errors import ArtifactError, LoadError, Origin, Site, status_error
from graphc_runtime.machine_code import MachineCode
from graphc_runtime.manifest import ArraySpec, Manifest, Signature, Update


def test_round_trip(artifact):
    for name in ("two", "counter", "ones"):
        original = artifact(name)
        assert Artifact.from_bytes(original.to_bytes()) == original


def test_any_changed_byte_is_noticed(artifact):
    data = artifact("ones").to_bytes()
    source = random.Random(1)
    for at in [0, 7, 8, 40, 43, 44, len(data) - 1, *(source.randrange(len(data)) for _ in range(300))]:
        damaged = bytearray(data)
        damaged[at] ^= 1 << source.randrange(8)
        with pytest.raises(ArtifactError):
            MachineCode.from_bytes(bytes(damaged))
    for end in (0, 5, 44, len(data) - 1):
        with pytest.raises(ArtifactError):
            Artifact.from_bytes(data[:end])


def test_other_version(artifact):
    data = MAGIC[:7] + b"\x02" + artifact("ones").to_bytes()[8:]
    with pytest.raises(ArtifactError, match="version 2, expected 1"):
        Artifact.from_bytes(data)


def test_other_abi():
    text = Manifest(Signature((), returns="none")).to_json().replace('"abi":1', '"abi":99')
    with pytest.raises(ArtifactError, match="kernel ABI 99"):
        Manifest.from_json(text)


def test_code_for_another_cpu(artifact):
    original = artifact("ones")
    manifest = dataclasses.replace(original.manifest, target={"features": "+avx512fp16,+sve2,+sse3"})
    with pytest.raises(LoadError, match=r"CPU features that are not here: .*(sve2|avx512fp16)"):
        MachineCode(Artifact(manifest, original.code))


@pytest.mark.parametrize(
    "make",
    [
        lambda: ArraySpec("float128", ()),
        lambda: Signature((), outputs=(), returns="single"),
        lambda: Signature((), outputs=(ArraySpec("int8", (None,)),), needs_shapes=False),
        lambda: Signature((), updates=(Update(0, ArraySpec("int8", ())),), returns="none"),
    ],
)
def test_signature_is_checked(make):
    with pytest.raises(ArtifactError):
        make()


def test_status_errors():
    sites = (Site("bad {given} of {expected}", "IndexError", "n1"), Site("plain"))
    error = status_error(sites, 1, 7, 5, lambda node: Origin(f"{node}.py:3"))
    assert isinstance(error, IndexError) and str(error) == "bad 7 of 5\n  made at n1.py:3"
    assert isinstance(status_error(sites, 2, 0, 0), ValueError)
    assert isinstance(status_error(sites, -1, 0, 0), MemoryError)
    assert isinstance(status_error(sites, 3, 0, 0), RuntimeError)
