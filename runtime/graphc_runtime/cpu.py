# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Check that this CPU has the instructions that code was compiled for."""

from __future__ import annotations

import functools
import itertools
import platform
from collections.abc import Mapping

from graphc_runtime.errors import LoadError
from graphc_runtime.record import record

# LLVM's names of instruction sets that compilers use unasked, and Linux's where they differ.
_LINUX_NAMES = {
    "sse3": "pni",
    "sse4.1": "sse4_1",
    "sse4.2": "sse4_2",
    "lzcnt": "abm",
    "bmi": "bmi1",
    "pclmul": "pclmulqdq",
    "avx512vbmi2": "avx512_vbmi2",
    "avx512bitalg": "avx512_bitalg",
    "avx512vnni": "avx512_vnni",
    "avx512bf16": "avx512_bf16",
    "avx512fp16": "avx512_fp16",
    "avx512vpopcntdq": "avx512_vpopcntdq",
    "avxvnni": "avx_vnni",
    "fullfp16": "asimdhp",
    "dotprod": "asimddp",
    "lse": "atomics",
}
_SAME_NAMES = (
    *("ssse3", "popcnt", "movbe", "avx", "avx2", "fma", "f16c", "bmi2", "adx", "vaes", "vpclmulqdq", "gfni"),
    *("avx512f", "avx512cd", "avx512bw", "avx512dq", "avx512vl", "avx512ifma", "avx512vbmi", "sve", "sve2"),
)
_CHECKED = _LINUX_NAMES | {name: name for name in _SAME_NAMES}


@record(frozen=True)
class TargetRecord:
    """Target of code: LLVM's triple, name of the CPU and features that it must have."""

    triple: str
    cpu: str
    features: str = ""


@functools.cache
def host_flags() -> frozenset[str]:
    """Linux's names of this CPU's features; empty where the system does not tell."""
    return frozenset(_field("flags", "Features").split())


def host_vendor() -> str:
    """The vendor as x86 processors give it, such as "GenuineIntel"; empty where the system does not tell."""
    return _field("vendor_id").strip()


def _field(*names: str) -> str:
    """A field of the first processor in Linux's list."""
    for line in first_processor():
        name, _, value = line.partition(":")
        if name.strip() in names:
            return value
    return ""


@functools.cache
def first_processor() -> tuple[str, ...]:
    """Linux's description of the first processor, line by line; empty where the system does not tell.

    The lines of the others, which may be hundreds, are not read.
    """
    try:
        with open("/proc/cpuinfo", encoding="utf-8", errors="replace") as file:
            return tuple(line.rstrip("\n") for line in itertools.takewhile(str.strip, file))
    except OSError:
        return ()


def missing_features(target: dict[str, str]) -> list[str]:
    """Features in a manifest's target that this CPU lacks, by LLVM's names."""
    flags = host_flags()
    if not flags:
        return []
    wanted = {name[1:] for name in target.get("features", "").split(",") if name.startswith("+")}
    return sorted(name for name in wanted if name in _CHECKED and _CHECKED[name] not in flags)


def best_target(targets: Mapping[str, TargetRecord]) -> str:
    """The name of the target whose code uses most of what this CPU has, else of one for other devices.

    Where the system does not tell what the CPU has, it is the one that asks for least.

    Raises:
        LoadError: none of them can run here; the message says why for each.
    """
    arm = platform.machine() in ("arm64", "aarch64")
    machine, reasons = "aarch64" if arm else "x86_64", []
    found: list[tuple[int, str]] = []
    for name, target in targets.items():
        missing = missing_features({"features": target.features})
        if not target.triple.startswith(f"{machine}-"):
            reasons.append(f"{name} is for {target.triple.split('-', maxsplit=1)[0]}")
        elif missing:
            reasons.append(f"{name} needs {', '.join(missing)}")
        else:
            found.append((target.features.count("+"), name))
    if not found:
        # Code for devices runs on any CPU; whether there is one shows when a function is called.
        found = [(0, name) for name, target in targets.items() if target.triple.startswith("nvptx64-")]
    if not found:
        raise LoadError(
            f"no code for this machine ({platform.machine()}): {'; '.join(reasons) or 'it has no targets'}"
        )
    return max(found)[1] if host_flags() else min(found)[1]
