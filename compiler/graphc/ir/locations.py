# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Where operations come from: nodes of the emitted graph are names in locations."""

from __future__ import annotations

import re
from typing import Any

_NODE = re.compile(r'"(n\d+)"')


def node_of(op: Any) -> str:
    """The graph node that an operation comes from, such as `n12`; empty if it is not known."""
    found = _NODE.search(str(op.location))
    return found[1] if found else ""
