# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Facts that PTX states about its kernels."""

from __future__ import annotations


def entries(ptx: str) -> dict[str, list[int]]:
    """The entries of PTX by name, and the bytes of their parameters."""
    found: dict[str, list[int]] = {}
    open_ = ""
    for line in ptx.splitlines():
        words = line.split()
        if ".entry" in words:
            open_ = words[words.index(".entry") + 1].partition("(")[0]
            found[open_] = []
        elif open_ and words[:1] == [".param"]:
            # Halves are arrays of bytes: `.align 2 .b8 name[2]`.
            kind = words[1] if words[1] != ".align" else ""
            size = int(kind.lstrip(".busf")) // 8 if kind else int(line.partition("[")[2].partition("]")[0])
            found[open_].append(size)
        elif words[:1] == ["{"]:
            open_ = ""
    return found
