# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""The code of a function for a device as bytes: its schedule, PTX, and machine code where there is some."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import field

from graphc_runtime.container import Container, Writer
from graphc_runtime.cuda.analysis import by_library
from graphc_runtime.cuda.schedule import Ask, Schedule
from graphc_runtime.cuda.schedule_json import from_json, to_json
from graphc_runtime.errors import ArtifactError
from graphc_runtime.record import record

# Version 2 has matrix products that a library may compute, version 3 has other requests to libraries.
VERSIONS = (1, 2, 3)
TRIPLE = "nvptx64-nvidia-cuda"


@record(frozen=True)
class DeviceCode:
    """Parts of a device executable.

    Attributes:
        schedule: what the host does.
        ptx: the kernels; the driver compiles it for devices that are at least `arch`.
        arch: such as "sm_90".
        cubin: machine code by architecture, for devices of just that one; taken instead of the PTX.
        functions: artifacts of the CPU functions that the schedule calls, in order.
    """

    schedule: Schedule
    ptx: str
    arch: str
    cubin: Mapping[str, bytes] = field(default_factory=dict)
    functions: tuple[bytes, ...] = ()

    def to_bytes(self) -> bytes:
        """Serialises the code; equal code gives equal bytes.

        Raises:
            ArtifactError: the schedule does not agree with itself.
        """
        writer = Writer()
        # What does without goes to runtimes of before, too.
        found = by_library(self.schedule)
        newest = (
            2 if any(isinstance(step, Ask) for steps in found.values() for step in steps) else bool(found)
        )
        manifest = {
            "version": VERSIONS[newest],
            "arch": self.arch,
            "ptx": writer.add(self.ptx.encode()),
            "cubin": {arch: writer.add(code) for arch, code in sorted(self.cubin.items())},
            "functions": [writer.add(code) for code in self.functions],
            "schedule": writer.add(json.dumps(to_json(self.schedule), separators=(",", ":")).encode()),
        }
        return writer.to_bytes(manifest)

    @classmethod
    def from_bytes(cls, data: bytes) -> DeviceCode:
        """Reads what `to_bytes` wrote.

        Raises:
            ArtifactError: it is something else, of another version, or damaged.
        """
        container = Container(data, "the code for a device")
        raw = container.manifest
        try:
            if raw["version"] not in VERSIONS:
                raise ArtifactError(
                    f"code for a device of version {raw['version']!r:.50}, expected one of "
                    f"{', '.join(map(str, VERSIONS))}"
                )
            arch = raw["arch"]
            if not isinstance(arch, str):
                raise ArtifactError(f"code for a device with the architecture {arch!r:.50}")
            return cls(
                from_json(json.loads(bytes(container.blob(raw["schedule"])))),
                bytes(container.blob(raw["ptx"])).decode(),
                arch,
                {str(name): bytes(container.blob(blob)) for name, blob in raw["cubin"].items()},
                tuple(bytes(container.blob(blob)) for blob in raw["functions"]),
            )
        except (KeyError, TypeError, ValueError, AttributeError, RecursionError) as error:
            if isinstance(error, ArtifactError):
                raise
            raise ArtifactError(f"not code for a device: {type(error).__name__}: {error!s:.200}") from None
