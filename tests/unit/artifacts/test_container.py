# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Files that are damaged, forged, or of another version."""

from __future__ import annotations

import mutated_artifacts
import numpy as np
import pytest

import graphc_runtime
from graphc_runtime.container import Container, Writer
from graphc_runtime.errors import ArtifactError


def test_blobs_are_aligned_and_stored_once():
    writer = Writer()
    numbers = [writer.add(data) for data in (b"a" * 100, b"", b"b", b"a" * 100)]
    container = Container(writer.to_bytes({"more": 1}))
    assert numbers == [0, 1, 2, 0] and len(container) == 3
    assert [bytes(container.blob(i)) for i in range(3)] == [b"a" * 100, b"", b"b"]
    assert all(place.offset % 64 == 0 for place in container._blobs)
    assert container.manifest["more"] == 1


def test_files_are_mapped(exported):
    module = graphc_runtime.load(exported)
    (constant, *_) = module._content.constants.values()
    assert not constant.flags.owndata and not constant.flags.writeable
    assert constant.ctypes.data % 64 == 0
    np.testing.assert_array_equal(constant, np.linspace(-1, 1, 40))


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (lambda d: b"", "not a .gcx file: 0 bytes"),
        (lambda d: b"PK" + d[2:], "not a .gcx file"),
        (lambda d: d[:8] + b"\x02" + d[9:], "version 2, this runtime reads 1"),
        (lambda d: d[:-1], "truncated"),
        (lambda d: d + b"\0", "truncated or damaged"),
        (lambda d: d[:70] + bytes([d[70] ^ 1]) + d[71:], "SHA-256 of its manifest"),
    ],
)
def test_one_clear_error(exported, change, message, tmp_path):
    data = change(exported.read_bytes())
    with pytest.raises(ArtifactError, match=message):
        graphc_runtime.load(data)
    path = tmp_path / "bad.gcx"
    path.write_bytes(data)
    with pytest.raises(ArtifactError, match=f"bad.gcx.*{message}"):
        graphc_runtime.load(path)


def test_each_part_is_compared_with_its_hash(exported):
    data = exported.read_bytes()
    places = [place for place in Container(data)._blobs if place.size]
    for place in places:
        changed = bytearray(data)
        changed[place.offset + place.size // 2] ^= 1
        with pytest.raises(ArtifactError, match=r"SHA-256 of blob \d+ does not match"):
            graphc_runtime.load(bytes(changed))
    gap = next(p.offset + p.size for p in places if p.size % 64)
    with pytest.raises(ArtifactError, match="something between its parts"):
        graphc_runtime.load(data[:gap] + b"x" + data[gap + 1 :])


def test_constants_that_are_not_checked_and_code_that_always_is(exported):
    module = graphc_runtime.load(exported)
    functions, container = module.package.functions, module._content.container
    (constant,) = {what.blob for f in functions.values() for kind, what in f.cells if kind == "constant"}
    for number, fine in ((constant, True), (functions["model"].code["host"].blob, False)):
        changed = bytearray(exported.read_bytes())
        changed[container._blobs[number].offset] ^= 1
        if fine:
            assert graphc_runtime.load(bytes(changed), check_all=False).target == "host"
        else:
            with pytest.raises(ArtifactError, match="does not match"):
                graphc_runtime.load(bytes(changed), check_all=False)


@pytest.mark.parametrize("name", ["../escape", "/etc/passwd", "a/b", "", "a b", "x" * 300, "é"])
def test_names_are_no_paths(exported, name):
    data = exported.read_bytes()
    manifest = mutated_artifacts._manifest(data)
    manifest["functions"][name] = manifest["functions"].pop("model")
    with pytest.raises(ArtifactError, match="is not a name"):
        graphc_runtime.load(mutated_artifacts._with_manifest(data, manifest))


def test_declared_sizes_are_not_believed(exported):
    data = exported.read_bytes()
    for change, message in [
        (lambda m: m["blobs"][0].update(size=1 << 39), "is not where it can be"),
        (lambda m: m["blobs"][1].update(offset=0), "is not where it can be"),
        (lambda m: m["states"][0]["value"].update(shape=[1 << 40, 1 << 40]), "an array of shape"),
        (lambda m: m["states"][0]["value"].update(shape=[3]), "does not have the"),
        (lambda m: m["states"][0]["value"].update(blob=99), "blob 99"),
        (lambda m: m.update(abi=2), "kernel ABI 2, this runtime"),
        (lambda m: m.update(functions={}), "no functions"),
        (lambda m: m.update(extra=eval("[" * 90 + "]" * 90)), "nested too deeply"),
    ]:
        manifest = mutated_artifacts._manifest(data)
        change(manifest)
        with pytest.raises(ArtifactError, match=message):
            graphc_runtime.load(mutated_artifacts._with_manifest(data, manifest))


def test_mutants(exported):
    """`make fuzz` tries 10,000."""
    tally = mutated_artifacts.run(exported.read_bytes(), 400)
    assert tally["truncated", "refused"] == tally["extended", "refused"] == 50
    assert tally["forged", "refused"] > 50 and sum(tally.values()) == 400
