# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Mutated artifacts: whatever is in a file, reading it is an error or works, and nothing in it runs.

`python tests/fuzz/mutated_artifacts.py [COUNT] [SEED]`; `make fuzz` runs 10,000.
"""

from __future__ import annotations

import copy
import hashlib
import json
import random
import struct
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path

from graphc_runtime import elf, symbols
from graphc_runtime.cuda.code import TRIPLE
from graphc_runtime.errors import ArtifactError, LoadError
from graphc_runtime.image import Image
from graphc_runtime.loaded import load

_HEADER = struct.Struct("<8sIIQII32s")
_VALUES = (
    None,
    True,
    -1,
    0,
    1 << 70,
    1.5,
    "",
    "../../etc/passwd",
    "/dev/null",
    [],
    {},
    [[1]],
    "float64",
    10**400,
)


def mutants(data: bytes, count: int, seed: int) -> Iterator[tuple[str, bytes]]:
    """Kind and content of damaged or forged files."""
    source = random.Random(seed)
    kinds = (_flipped, _truncated, _extended, _shuffled, _header_number, _forged, _forged, _forged_code)
    for number in range(count):
        make = kinds[number % len(kinds)]
        yield make.__name__[1:], make(data, source)


def _flipped(data: bytes, source: random.Random) -> bytes:
    changed = bytearray(data)
    for _ in range(source.choice((1, 1, 3, 40))):
        changed[source.randrange(len(changed))] ^= 1 << source.randrange(8)
    return bytes(changed)


def _truncated(data: bytes, source: random.Random) -> bytes:
    return data[: source.choice((source.randrange(len(data)), source.randrange(200)))]


def _extended(data: bytes, source: random.Random) -> bytes:
    return data + source.randbytes(source.randrange(1, 200))


def _shuffled(data: bytes, source: random.Random) -> bytes:
    a, b, size = (source.randrange(len(data)) for _ in range(3))
    piece = data[a : a + min(size, 300)]
    return data[:b] + piece + data[b + len(piece) :]


def _header_number(data: bytes, source: random.Random) -> bytes:
    at, size = source.choice(((8, 4), (12, 4), (16, 8), (24, 4), (28, 4)))
    number = source.choice(
        (0, 1, 2, 63, 64, 96, 1 << 31, (1 << 32) - 1, len(data), source.randrange(1 << 32))
    )
    return data[:at] + number.to_bytes(8, "little")[:size] + data[at + size :]


def _forged(data: bytes, source: random.Random) -> bytes:
    """Another manifest with the right hash."""
    manifest = _manifest(data)
    for _ in range(source.choice((1, 1, 2, 5))):
        _change(manifest, source)
    return _with_manifest(data, manifest)


def _forged_code(data: bytes, source: random.Random) -> bytes:
    """Other bytes in a blob, with the right hashes."""
    manifest = _manifest(data)
    start = _first(data)
    place = source.choice(manifest["blobs"])
    blob = bytearray(data[start + place["offset"] : start + place["offset"] + place["size"]])
    if blob:
        blob[source.randrange(len(blob))] ^= 1 << source.randrange(8)
    place["sha256"] = hashlib.sha256(blob).hexdigest()
    at = start + place["offset"]
    return _with_manifest(data[:at] + bytes(blob) + data[at + len(blob) :], manifest)


def _change(manifest: dict, source: random.Random) -> None:
    """Replaces, removes or copies something in the manifest."""
    places = list(_places(manifest))
    parent, key = source.choice(places)
    kind = source.randrange(4)
    if kind == 0 and isinstance(parent, dict):
        del parent[key]
    elif kind == 1:
        other, place = source.choice(places)
        parent[key] = json.loads(json.dumps(other[place]))
    elif kind == 2 and isinstance(parent[key], int):
        parent[key] = parent[key] + source.choice((-1, 1, 64, 1 << 40))
    else:
        parent[key] = copy.deepcopy(source.choice(_VALUES))


def _places(value):
    items = value.items() if isinstance(value, dict) else enumerate(value)
    for key, item in list(items):
        yield value, key
        if isinstance(item, dict | list):
            yield from _places(item)


def _manifest(data: bytes) -> dict:
    length = _HEADER.unpack_from(data)[2]
    return json.loads(data[_HEADER.size : _HEADER.size + length])


def _first(data: bytes) -> int:
    return -(-(_HEADER.size + _HEADER.unpack_from(data)[2]) // 64) * 64


def _with_manifest(data: bytes, manifest: dict) -> bytes:
    magic, version, *_ = _HEADER.unpack_from(data)
    body = json.dumps(manifest).encode()
    blobs = data[_first(data) :]
    start = -(-(_HEADER.size + len(body)) // 64) * 64
    digest = hashlib.sha256(body).digest()
    header = _HEADER.pack(magic, version, len(body), start + len(blobs), 0, 0, digest)
    return header + body + bytes(start - _HEADER.size - len(body)) + blobs


def outcome(kind: str, data: bytes) -> str:
    """``"refused"`` or ``"read"``; whatever else is an error of the reader.

    Code whose hash is right is mapped, but never called; changed code is only relocated, since unmapping an
    object calls its function that frees memory.
    """
    try:
        module = load(data)
        for name in module:
            code = module.package.functions[name].code[module.target]
            if kind == "forged_code" and module.package.targets[module.target].triple != TRIPLE:
                container = module._content.container
                Image(elf.parse(bytes(container.blob(code.blob))), symbols.resolve).relocate(1 << 21)
            else:
                _ = module[name]
    except (ArtifactError, LoadError) as error:
        assert 10 < len(str(error)) < 2000, error
        return "refused"
    return "read"


def run(data: bytes, count: int, seed: int = 0) -> dict[tuple[str, str], int]:
    """How many mutants of each kind were refused or read."""
    tally: dict[tuple[str, str], int] = {}
    for number, (kind, changed) in enumerate(mutants(data, count, seed)):
        try:
            found = outcome(kind, changed)
        except BaseException:
            print(f"mutant {number} ({kind}) of seed {seed}")
            raise
        assert found == "refused" or kind.startswith("forged") or changed == data, f"{number} ({kind})"
        tally[kind, found] = tally.get((kind, found), 0) + 1
    return tally


def example(path: Path) -> bytes:
    """The content of a file with two functions, a state, and constants."""
    import numpy as np

    import graphc
    import graphc.tensor as pt

    x, w = pt.dvector("x"), graphc.shared(np.ones(3), name="w")
    value = pt.dot(pt.constant(np.linspace(-1, 1, 40)), pt.exp(x.sum() + pt.zeros(40))) * w.sum()
    functions = {
        "model": graphc.function([x], value),
        "step": graphc.function([x], {"value": value, "more": [x]}, updates={w: w + x.sum()}),
    }
    graphc.export(functions, path, targets=["host", "aarch64"], keep_ir=True)
    return path.read_bytes()


def main() -> None:
    """python tests/fuzz/mutated_artifacts.py [COUNT] [SEED]"""
    numbers = [int(text) for text in sys.argv[1:]]
    with tempfile.TemporaryDirectory() as folder:
        data = example(Path(folder, "example.gcx"))
    for (kind, found), many in sorted(run(data, *(numbers or [10_000])).items()):
        print(f"{kind:15} {found:8} {many}")


if __name__ == "__main__":
    main()
