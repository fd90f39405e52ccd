# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""The modes in which derivatives of loops are checked."""

from __future__ import annotations

MODES = ["reference", None]
