# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""The machines that artifacts can have code for, by name."""

from __future__ import annotations

from graphc.backends.cpu.object import Machine, this_machine
from graphc_runtime.cuda.code import TRIPLE

# The levels of the x86-64 psABI: each has the features of those before it.
_LEVELS = {
    "x86-64-v2": "cx16 popcnt sahf sse3 sse4.1 sse4.2 ssse3",
    "x86-64-v3": "avx avx2 bmi bmi2 f16c fma lzcnt movbe xsave",
    "x86-64-v4": "avx512f avx512bw avx512cd avx512dq avx512vl",
}
# Linux, macOS: the latter keeps the register x18 for itself.
_AARCH64 = Machine("aarch64-unknown-linux-gnu", "generic", "+neon,+reserve-x18")
# Devices: what is compiled for an architecture runs on all later ones.
_DEVICES = {"cuda": "sm_90", **{f"cuda-{arch}": arch for arch in ("sm_80", "sm_90", "sm_100")}}
NAMES = ("host", *_LEVELS, "aarch64", *_DEVICES)


def named_target(name: str) -> Machine:
    """The target of a name.

    Raises:
        ValueError: there is none.
    """
    if name == "host":
        return this_machine()
    if name == "aarch64":
        return _AARCH64
    if name in _DEVICES:
        return Machine(TRIPLE, _DEVICES[name], "")
    if name not in _LEVELS:
        raise ValueError(f"target must be one of {', '.join(NAMES)}, got {name!r}")
    levels = list(_LEVELS)
    features = [f for level in levels[: levels.index(name) + 1] for f in _LEVELS[level].split()]
    return Machine("x86_64-unknown-linux-gnu", name, ",".join(f"+{feature}" for feature in features))


def is_device(target: Machine) -> bool:
    """Whether it is no CPU."""
    return target.triple == TRIPLE
